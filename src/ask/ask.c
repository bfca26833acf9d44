/*
 * The loop. One round is one request: its answer is text, which ends it, or code, whose outcome
 * goes back. What fails is counted over the whole question, so that a model that never gets it
 * right is stopped; one that never stops calling is stopped by the rounds, tokens and time.
 */
#include "ask/ask.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "ask/ask_parts.h"
#include "ask/extract.h"
#include "ask/result.h"
#include "ask/tools.h"

enum { ID_RANDOM_BYTES = 16, BYTES_PER_TOKEN = 4 };

static const char *const end_names[] = {
    [ASK_ANSWERED] = "answered", [ASK_SHOWN] = "dry-run",   [ASK_FAILED] = "failed",
    [ASK_DECLINED] = "declined", [ASK_REFUSED] = "refused", [ASK_SPENT] = "spent"};

const char *
ask_end_name(enum ask_end end)
{
    return end_names[end];
}

static int
finish(struct asking *a, enum ask_end end, const char *reason)
{
    a->over = true;
    a->answer->end = end;
    snprintf(a->answer->reason, sizeof(a->answer->reason), "%s", reason);
    return 0;
}

static int
no_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "no memory for the conversation");
}

/* ---- one piece of code ---- */

static void
take_outcome(struct asking *a, struct outcome *outcome, bool validated_only)
{
    if (a->answer->has_outcome)
        outcome_done(&a->answer->outcome);
    a->answer->outcome = *outcome;
    a->answer->has_outcome = true;
    if (a->q->hooks.on_outcome)
        a->q->hooks.on_outcome(a->q->context, &a->answer->outcome, validated_only);
}

static int
execute(struct asking *a, struct span source, bool validate_only, struct err *err)
{
    struct outcome outcome = {0};
    int r = a->q->hooks.execute(a->q->context, source, validate_only, &outcome, err);
    if (r < 0)
        return r;
    take_outcome(a, &outcome, validate_only);
    if (a->answer->outcome.status == STATUS_FAILED)
        return err_set(err, -EIO, "the code could not be run: %.190s",
                       a->answer->outcome.message);
    return 0;
}

/* Without a run: the verdict for a dry run, or for the person who is asked. */
static int
look_first(struct asking *a, struct span piece, struct span source, struct err *err)
{
    const struct outcome *verdict = &a->answer->outcome;
    bool asks = a->q->hooks.may_run != NULL;
    if (!a->q->dry_run && !asks)
        return 0;
    int r = execute(a, source, true, err);
    if (r < 0)
        return r;
    bool rejected = verdict->status == STATUS_REJECTED;
    if (a->q->dry_run) {
        r = program_keep(&a->answer->program, piece, err);
        if (r == 0)
            r = ask_record(a, NULL, rejected ? "rejected" : "dry-run", verdict->message,
                           err);
        return r < 0 ? r : finish(a, ASK_SHOWN, rejected ? verdict->message : "");
    }
    if (rejected || a->q->hooks.may_run(a->q->context, verdict))
        return 0; /* what is rejected runs nowhere, and goes back as such */
    r = ask_record(a, NULL, "declined", "", err);
    return r < 0 ? r : finish(a, ASK_DECLINED, "the code was not run: it was declined");
}

static int
fail(struct asking *a, const char *why)
{
    char reason[256];
    if (++a->failures < a->q->attempts)
        return 0;
    snprintf(reason, sizeof(reason), "%u attempts failed; the last: %.180s", a->failures,
             why);
    return finish(a, ASK_FAILED, reason);
}

/* The piece has run: what is said of it, and whether it is kept. */
static int
judge(struct asking *a, struct span piece, struct buf *text, bool *ret_failed,
      struct err *err)
{
    const struct outcome *outcome = &a->answer->outcome;
    struct program *program = &a->answer->program;
    *ret_failed = outcome->status != STATUS_OK;
    int r =
        ask_record(a, outcome->id, status_name(outcome->status), outcome->message, err);
    if (r == 0 && result_text(outcome, program, text) < 0)
        r = no_memory(err);
    if (r == 0 && !*ret_failed)
        r = program_keep(program, piece, err);
    if (r == 0 && *ret_failed)
        r = fail(a, outcome->message);
    return r;
}

static int
run_piece(struct asking *a, struct span piece, struct buf *text, bool *ret_failed,
          struct err *err)
{
    AUTO_BUF struct buf source = {0};
    buf_init(&source, 2 * PROGRAM_BYTES_MAX);
    *ret_failed = true;
    if (a->q->hooks.on_code)
        a->q->hooks.on_code(a->q->context, piece);
    int r = program_source(&a->answer->program, piece, &source, err);
    if (r == 0)
        r = look_first(a, piece, buf_span(&source), err);
    if (r < 0 || a->over)
        return r;
    ask_step(a, "running %zu bytes of Python", piece.n);
    a->answer->runs++;
    r = execute(a, buf_span(&source), false, err);
    return r < 0 ? r : judge(a, piece, text, ret_failed, err);
}

/* What cannot be run is an attempt that failed, too. */
static int
tell_problem(struct asking *a, const char *problem, struct buf *text, struct err *err)
{
    ask_step(a, "no code to run: %.250s", problem);
    int r = ask_record(a, NULL, "no-code", problem, err);
    if (r == 0 && buf_printf(text, "%s\n", problem) < 0)
        r = no_memory(err);
    return r < 0 ? r : fail(a, problem);
}

/* ---- an answer with calls ---- */

static int
do_call(struct asking *a, const struct reply_call *call, struct buf *text,
        bool *ret_failed, struct err *err)
{
    struct extract found;
    bool cut = a->reply.finish == FINISH_CUT;
    *ret_failed = true;
    if (strcmp(call->name, TOOL_NAME) != 0)
        return tell_problem(
            a, "there is no such tool: the only one is " TOOL_NAME " {\"code\": \"...\"}",
            text, err);
    extract_init(&found);
    int r = extract_arguments(buf_span(&call->arguments), cut, &found, err);
    if (r == 0 && found.kind == EXTRACT_CODE)
        r = run_piece(a, buf_span(&found.code), text, ret_failed, err);
    else if (r == 0)
        r = tell_problem(a, found.problem, text, err);
    extract_done(&found);
    return r;
}

static int
do_calls(struct asking *a, struct err *err)
{
    struct buf texts[REPLY_CALLS_MAX] = {0};
    struct form_result results[REPLY_CALLS_MAX] = {0};
    const struct form *form = a->q->endpoint->form;
    size_t n = a->reply.calls_n;
    int r = 0;
    a->used_tool = true;
    for (size_t i = 0; r == 0 && !a->over && i < n; i++) {
        buf_init(&texts[i], RESULT_BYTES_MAX);
        r = do_call(a, &a->reply.calls[i], &texts[i], &results[i].failed, err);
        results[i].text = buf_span(&texts[i]);
    }
    if (r == 0 && !a->over &&
        (!form->add_reply(a->messages, &a->reply) ||
         !form->add_results(a->messages, &a->reply, results)))
        r = no_memory(err);
    for (size_t i = 0; i < n; i++)
        buf_done(&texts[i]);
    return r;
}

/* ---- an answer without ---- */

static int
answer_with(struct asking *a, struct err *err)
{
    struct span text = reply_said(&a->reply);
    bool refused = a->reply.finish == FINISH_REFUSED;
    int r = ask_record(a, NULL, refused ? "refused" : "answer", "", err);
    if (r == 0 && buf_append(&a->answer->text, text.p, text.n) < 0)
        r = no_memory(err);
    if (r < 0)
        return r;
    if (refused)
        return finish(a, ASK_REFUSED, "the model, or its endpoint, refuses to answer");
    return finish(a, ASK_ANSWERED,
                  a->reply.finish == FINISH_CUT
                      ? "the answer was cut off at its limit of tokens"
                      : "");
}

static int
send_back(struct asking *a, const struct buf *text, struct err *err)
{
    const struct form *form = a->q->endpoint->form;
    if (a->over || (form->add_reply(a->messages, &a->reply) &&
                    form->add_user(a->messages, buf_span(text))))
        return 0;
    return no_memory(err);
}

static int
run_block(struct asking *a, const struct extract *found, struct err *err)
{
    AUTO_BUF struct buf text = {0};
    struct span code = buf_span(&found->code), before = buf_span(&a->piece);
    buf_init(&text, RESULT_BYTES_MAX);
    bool failed;
    /* The block that has run, once more: it stands in the answer for the person. */
    if (code.n == before.n && memcmp(code.p, before.p, code.n) == 0)
        return answer_with(a, err);
    if (found->blocks > 1)
        ask_step(a, "%zu blocks of Python, taken as one", found->blocks);
    int r = buf_printf(&text, "What came of the code:\n") < 0 ? no_memory(err) : 0;
    if (r == 0)
        r = run_piece(a, code, &text, &failed, err);
    buf_consume(&a->piece, a->piece.n);
    if (r == 0 && !failed && buf_append(&a->piece, code.p, code.n) < 0)
        r = no_memory(err);
    return r < 0 ? r : send_back(a, &text, err);
}

static int
do_text(struct asking *a, struct err *err)
{
    AUTO_BUF struct buf text = {0};
    struct extract found;
    buf_init(&text, RESULT_BYTES_MAX);
    extract_init(&found);
    int r = 0;
    /* One that calls tools has blocks in its answers for the person, not for us. */
    if (!a->used_tool)
        r = extract_text(reply_said(&a->reply), a->reply.finish == FINISH_CUT, &found,
                         err);
    if (r == 0 && reply_said(&a->reply).n == 0 && a->reply.finish != FINISH_REFUSED) {
        found.kind = EXTRACT_PROBLEM;
        snprintf(found.problem, sizeof(found.problem),
                 "the answer was %s: call " TOOL_NAME ", or answer in words",
                 a->reply.finish == FINISH_CUT ? "cut off before it began" : "empty");
    }
    if (r == 0 && found.kind == EXTRACT_CODE && a->reply.finish != FINISH_REFUSED) {
        r = run_block(a, &found, err);
    } else if (r == 0 && found.kind == EXTRACT_PROBLEM) {
        r = tell_problem(a, found.problem, &text, err);
        if (r == 0)
            r = send_back(a, &text, err);
    } else if (r == 0) {
        r = answer_with(a, err);
    }
    extract_done(&found);
    return r;
}

/* ---- rounds ---- */

static uint64_t
spent(const struct asking *a)
{
    return a->answer->input_tokens + a->answer->output_tokens;
}

/* An endpoint that does not tell is reckoned with. */
static void
count_tokens(struct asking *a)
{
    const struct reply *reply = &a->reply;
    size_t said = reply->text.n;
    for (size_t i = 0; i < reply->calls_n; i++)
        said += reply->calls[i].arguments.n;
    a->answer->input_tokens +=
        reply->input_tokens > 0 ? reply->input_tokens : a->body.n / BYTES_PER_TOKEN;
    a->answer->output_tokens +=
        reply->output_tokens > 0 ? reply->output_tokens : said / BYTES_PER_TOKEN;
}

static int
ask_round(struct asking *a, struct err *err)
{
    const struct ask_request *q = a->q;
    if (a->answer->requests >= ASK_ROUNDS_MAX)
        return finish(a, ASK_SPENT, "the model goes on and on: it was stopped");
    if (spent(a) >= q->token_budget)
        return finish(a, ASK_SPENT, "the token budget is used up (--token-budget)");
    reply_reset(&a->reply);
    buf_consume(&a->body, a->body.n);
    a->answer->requests++;
    ask_step(a, "request %u to %.100s", a->answer->requests, q->endpoint->model);
    int r = endpoint_ask(q->endpoint, q->system, a->messages, &a->body, &a->reply, err);
    if (r < 0)
        return r;
    count_tokens(a);
    reply_name_calls(&a->reply, &a->made);
    ask_step(a, "answer: %zu bytes of text, %zu calls; %llu tokens so far",
             a->reply.text.n, a->reply.calls_n, (unsigned long long)spent(a));
    return a->reply.calls_n > 0 ? do_calls(a, err) : do_text(a, err);
}

/* In a chat a question is followed by an answer, whatever came of it. */
static int
remember_end(struct asking *a, struct err *err)
{
    struct reply reply;
    const char *reason = a->answer->reason;
    reply_init(&reply);
    struct span said = buf_span(&a->answer->text);
    if (said.n == 0)
        said = reason[0] != '\0' ? span_of(reason) : span_of("(no answer)");
    bool kept = buf_append(&reply.text, said.p, said.n) == 0 &&
                a->q->endpoint->form->add_reply(a->messages, &reply);
    reply_done(&reply);
    return kept ? 0 : no_memory(err);
}

static void
name(char id[ASK_ID_BYTES])
{
    unsigned char random[ID_RANDOM_BYTES];
    randombytes_buf(random, sizeof(random));
    id[0] = 'a';
    id[1] = '_';
    sodium_bin2hex(id + 2, ASK_ID_BYTES - 2, random, sizeof(random));
}

int
ask(const struct ask_request *request, struct ask_answer *ret, struct err *err)
{
    struct asking a = {.q = request,
                       .answer = ret,
                       .messages = request->messages ? json_incref(request->messages)
                                                     : json_array()};
    *ret = (struct ask_answer){.steps = json_array()};
    buf_init(&ret->text, REPLY_TEXT_BYTES_MAX);
    program_init(&ret->program);
    ret->program.lives = request->messages != NULL;
    name(ret->id);
    reply_init(&a.reply);
    a.reply.on_text = request->hooks.on_text;
    a.reply.context = request->context;
    buf_init(&a.body, ENDPOINT_BODY_BYTES_MAX);
    buf_init(&a.piece, EXTRACT_CODE_BYTES_MAX);
    int r = 0;
    if (!a.messages || !ret->steps)
        r = no_memory(err);
    else if (!request->endpoint->form->add_user(a.messages, span_of(request->question)))
        r = err_set(err, -EILSEQ, "the question is not UTF-8");
    while (r == 0 && !a.over)
        r = ask_round(&a, err);
    if (r == 0 && request->messages)
        r = remember_end(&a, err);
    reply_done(&a.reply);
    buf_done(&a.body);
    buf_done(&a.piece);
    json_decref(a.messages);
    return r;
}

void
ask_answer_done(struct ask_answer *answer)
{
    buf_done(&answer->text);
    program_done(&answer->program);
    if (answer->has_outcome)
        outcome_done(&answer->outcome);
    answer->has_outcome = false;
    json_decref(answer->steps);
    answer->steps = NULL;
}
