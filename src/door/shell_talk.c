/*
 * One question at a time, over an event-driven client: whoever types waits for each answer, and
 * Ctrl-C meanwhile goes to the code. Between questions nothing watches for signals, so that the
 * editor has them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "door/run_output.h"
#include "door/shell_parts.h"
#include "engine/protocol.h"
#include "job/outcome_parse.h"

enum { QUESTION_S = 4 }; /* about a text; a session that is busy has no answer in time */

struct question {
    struct shell *shell;
    struct run_output *output; /* of a run; NULL: the question is about a text */
    uint64_t number;
    json_t *last;
    json_t *shown; /* results of a run, as they came */
    bool done, interrupted;
};

static const char *
text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void
on_gone(void *context, const struct err *err)
{
    struct shell *shell = context;
    shell->gone = *err;
}

/* How a terminal draws is asked once, when there is something to draw. */
static void
show_result(const struct question *question, const json_t *item)
{
    struct shell *shell = question->shell;
    if (!shell->was_asked && shell->results.is_terminal && !shell->options->no_images &&
        json_object_get(json_object_get(item, "data"), "image/png")) {
        shell->was_asked = true;
        shell->results.protocol = images_ask(question->output->out.fd);
    }
    run_output_result(question->output, &shell->results, item);
}

static void
take_message(struct question *question, const json_t *message)
{
    json_t *item = json_object_get(message, "item");
    if (item && strcmp(text_of(message, "type"), "display") == 0) {
        show_result(question, item);
        if (question->shown)
            (void)!json_array_append(question->shown, item);
    } else {
        run_output_message(question->output, message);
    }
}

static void
hear(void *context, const json_t *message, bool last)
{
    struct question *question = context;
    if (message && !last && question->output)
        take_message(question, message);
    if (last) {
        question->last = message ? json_deep_copy(message) : NULL;
        question->done = true;
    }
}

static void
ignore(void *context, const json_t *message, bool last)
{
    (void)context, (void)message, (void)last;
}

static void
interrupt_run(struct question *question)
{
    struct shell *shell = question->shell;
    struct err ignored;
    uint64_t number;
    json_t *request =
        json_pack("{s:s, s:s}", "type", "session_interrupt", "session", shell->session);
    if (!request ||
        client_ask(shell->client, request, -1, ignore, NULL, &number, &ignored) < 0)
        client_cancel(shell->client, question->number);
    json_decref(request);
}

static void
give_up(struct question *question)
{
    client_forget(question->shell->client, question->number);
    question->done = true;
}

static void
on_interrupt(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct question *question = context;
    question->interrupted = true;
    if (question->output)
        interrupt_run(question);
    else
        give_up(question);
}

static void
on_time(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct question *question = context;
    if (!question->output)
        give_up(question);
}

static void
wait_for(struct question *question, const struct timeval *limit)
{
    struct shell *shell = question->shell;
    struct event *on_signal =
        event_new(shell->base, SIGINT, EV_SIGNAL | EV_PERSIST, on_interrupt, question);
    struct event *timer = event_new(shell->base, -1, 0, on_time, question);
    sigset_t interrupt, old;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    if (on_signal)
        event_add(on_signal, NULL);
    sigprocmask(SIG_UNBLOCK, &interrupt, &old); /* the editor has it blocked */
    if (timer && limit)
        event_add(timer, limit);
    while (!question->done && shell->gone.code == 0)
        if (event_base_loop(shell->base, EVLOOP_ONCE) != 0)
            break;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (on_signal)
        event_free(on_signal);
    if (timer)
        event_free(timer);
}

/* Takes the request over. question->last (owned by the caller): the last message, or NULL. */
static int
ask(struct shell *shell, json_t *request, struct question *question,
    const struct timeval *limit, struct err *err)
{
    question->shell = shell;
    int r = !request ? err_set(err, -ENOMEM, "no memory for a request")
                     : client_ask(shell->client, request, -1, hear, question,
                                  &question->number, err);
    json_decref(request);
    if (r < 0)
        return r;
    wait_for(question, limit);
    if (shell->gone.code != 0)
        return err_set(err, shell->gone.code, "%.200s", shell->gone.text);
    return 0;
}

/* --- the session --- */

static json_t *
request_of_new(const struct shell_options *options)
{
    return json_pack("{s:s, s:b, s:s*, s:s*, s:O}", "type", "session_new", "tied", 1,
                     "policy", options->policy, "python", options->python, "limits",
                     options->limits);
}

static int
take_session(struct shell *shell, json_t *request, struct err *err)
{
    struct question question = {.output = NULL};
    int r = ask(shell, request, &question, NULL, err);
    const json_t *session = json_object_get(question.last, "session");
    if (r == 0 && question.interrupted)
        r = err_set(err, -EINTR, "interrupted before there was a session");
    else if (r == 0 && strcmp(text_of(question.last, "type"), "busy") == 0)
        r = err_set(err, -EBUSY, "the supervisor has no room for a session now");
    else if (r == 0 && !session)
        r = err_set(err, -EPROTO, "%.200s", text_of(question.last, "message"));
    if (r == 0)
        snprintf(shell->session, sizeof(shell->session), "%s",
                 text_of(session, "session_id"));
    json_decref(question.last);
    return r;
}

int
shell_talk_open(struct shell *shell, const struct serve_options *serve, struct err *err)
{
    const struct shell_options *options = shell->options;
    const struct client_options client = {.socket = options->socket,
                                          .carry = !options->socket && !options->session,
                                          .alone = options->alone,
                                          .serve = serve,
                                          .on_gone = on_gone,
                                          .context = shell};
    int r = client_open(shell->base, &client, &shell->client, err);
    if (r < 0)
        return r;
    return take_session(shell,
                        options->session ? json_pack("{s:s, s:s}", "type", "session_show",
                                                     "session", options->session)
                                         : request_of_new(options),
                        err);
}

void
shell_talk_close(struct shell *shell)
{
    client_close(shell->client);
    shell->client = NULL;
}

/* note: why the one before is no more. */
static int
begin_again(struct shell *shell, const char *note, struct err *err)
{
    shell->failed = true;
    int r = take_session(shell, request_of_new(shell->options), err);
    shell_say("the session is lost: %s", note);
    if (r == 0)
        shell_say("a new one was started: variables, imports and files are gone");
    return r;
}

/* --- runs --- */

/* Code that is no UTF-8 goes as it is; the interpreter says what it thinks of it. */
static int
put_code(json_t *request, struct span code)
{
    json_t *text = json_stringn(code.p, code.n);
    if (text)
        return json_object_set_new(request, "code", text);
    return json_object_set_new(request, "code_base64", protocol_base64(code));
}

static json_t *
request_with(const struct shell *shell, const char *type, struct span code)
{
    json_t *request = json_pack("{s:s, s:s}", "type", type, "session", shell->session);
    if (request && put_code(request, code) == 0)
        return request;
    json_decref(request);
    return NULL;
}

/* Each was shown when it came; those that were not told then (we have read too slowly) follow now. */
static void
show_missing(struct question *question, const json_t *document, struct outcome *outcome)
{
    const json_t *results = json_object_get(document, "results");
    uint64_t dropped = outcome->displays.dropped;
    size_t done = 0;
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *item = json_array_get(results, i);
        if (json_equal(item, json_array_get(question->shown, done)))
            done++;
        else
            show_result(question, item);
    }
    displays_done(&outcome->displays);
    outcome->displays.dropped = dropped;
}

/* The next prompt begins a line. */
static void
end_line(const struct shell *shell, const struct run_output *output)
{
    bool out = output->out.is_terminal && output->out.last != '\n';
    bool err = output->err.is_terminal && output->err.last != '\n';
    if (shell->is_terminal && (out || err))
        fputs("\n", out ? stdout : stderr);
    fflush(stdout);
}

static int
show(struct question *question, const json_t *document, struct err *err)
{
    struct shell *shell = question->shell;
    struct run_output *output = question->output;
    struct outcome outcome;
    int r = outcome_from_json(document, &outcome, err);
    if (r < 0)
        return r;
    show_missing(question, document, &outcome);
    r = run_output_finish(output, &shell->run, &outcome, err);
    end_line(shell, output);
    shell->failed = shell->failed || outcome.status != STATUS_OK;
    if (r == 0 && outcome.session == SESSION_LOST)
        r = begin_again(shell, outcome.session_note, err);
    outcome_done(&outcome);
    return r;
}

static int
take_answer(struct question *question, struct err *err)
{
    struct shell *shell = question->shell;
    const json_t *answer = question->last;
    const char *type = text_of(answer, "type"), *why = text_of(answer, "message");
    if (strcmp(type, "finished") == 0)
        return show(question, json_object_get(answer, "outcome"), err);
    end_line(shell, question->output);
    shell->failed = true;
    if (strcmp(text_of(answer, "code"), "session") == 0) {
        int r = begin_again(shell, why, err);
        if (r == 0)
            shell_say("the statement was not run");
        return r;
    }
    shell_say("the statement was not run: %s",
              strcmp(type, "busy") == 0 ? "the supervisor has no room for it now" : why);
    return 0;
}

int
shell_talk_run(struct shell *shell, struct span code, struct err *err)
{
    struct run_output output = {0};
    struct question question = {.output = &output, .shown = json_array()};
    run_output_init(&output);
    (void)run_output_watches(&output, &shell->run);
    json_t *request = request_with(shell, "run", code);
    if (request && (json_object_set_new(request, "stream", json_true()) < 0 ||
                    json_object_set_new(request, "show_last", json_true()) < 0)) {
        json_decref(request);
        request = NULL;
    }
    int r = ask(shell, request, &question, NULL, err);
    if (r == 0)
        r = take_answer(&question, err);
    shell->interrupted = shell->interrupted || question.interrupted;
    json_decref(question.last);
    json_decref(question.shown);
    run_output_done(&output);
    return r;
}

/* --- questions about a text --- */

static json_t *
ask_about(struct shell *shell, struct span code, bool matches)
{
    const struct timeval limit = {.tv_sec = QUESTION_S};
    struct question question = {.output = NULL};
    struct err ignored;
    json_t *request = request_with(shell, "session_complete", code);
    size_t characters = 0;
    for (size_t i = 0; i < code.n; i++)
        characters += ((unsigned char)code.p[i] & 0xC0) != 0x80;
    if (request && matches)
        (void)!json_object_set_new(request, "cursor",
                                   json_integer((json_int_t)characters));
    (void)!ask(shell, request, &question, &limit, &ignored);
    if (strcmp(text_of(question.last, "type"), "completions") == 0)
        return question.last;
    json_decref(question.last);
    return NULL;
}

enum shell_state
shell_talk_state(struct shell *shell, struct span code)
{
    json_t *answer = ask_about(shell, code, false);
    const char *state = text_of(answer, "state");
    enum shell_state ret = strcmp(state, "complete") == 0     ? SHELL_COMPLETE
                           : strcmp(state, "incomplete") == 0 ? SHELL_INCOMPLETE
                                                              : SHELL_INVALID;
    json_decref(answer);
    return ret;
}

json_t *
shell_talk_matches(struct shell *shell, struct span code)
{
    return ask_about(shell, code, true);
}
