/*
 * `adyton ask`: command line, key, endpoint, prompt, the loop, the answer. What is wrong before
 * anything is asked is the caller's mistake and ends with 2.
 */
#include "door/ask_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask/ask.h"
#include "ask/key.h"
#include "ask/libraries.h"
#include "ask/prompt.h"
#include "base/clock.h"
#include "base/fd.h"
#include "door/ask_options.h"
#include "door/ask_output.h"
#include "door/ask_run.h"
#include "door/ask_session.h"
#include "door/terminal.h"
#include "engine/interpreter.h"

enum {
    EXIT_ANSWERED = 0,
    EXIT_NO_ANSWER = 1,
    EXIT_WRONG_USE = 2,
    EXIT_OUR_FAULT = 125,
    EXIT_REJECTED = 126,
    ERROR_LINE_BYTES = 4096,
    US_PER_MS = 1000,
    LIBRARIES_BYTES = 16 * 1024,
};

struct asker {
    struct ask_options options;
    struct ask_run run;
    struct ask_output output;
    struct ask_answer answer;
    struct endpoint endpoint;
    struct buf key, question, system;
    struct ask_session *session; /* of a chat */
    bool has_none;               /* no supervisor could be had for it */
    json_t *messages;
};

static void
asker_done(struct asker *asker)
{
    ask_session_close(asker->session);
    json_decref(asker->messages);
    ask_run_done(&asker->run);
    ask_answer_done(&asker->answer);
    endpoint_done(&asker->endpoint);
    key_done(&asker->key);
    buf_done(&asker->question);
    buf_done(&asker->system);
}

static int
complain(const struct err *err, int exit_status)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, ERROR_LINE_BYTES);
    if (terminal_append_line(err->text, &line) == 0)
        fprintf(stderr, "adyton ask: %s\n", line.p);
    return exit_status;
}

/* ---- hooks ---- */

static int
on_execute(void *context, struct span code, bool validate_only, struct outcome *ret,
           struct err *err)
{
    struct asker *asker = context;
    if (asker->session && !validate_only)
        return ask_session_execute(asker->session, code, ret, err);
    return ask_run_execute(&asker->run, code, validate_only, ret, err);
}

static void
on_text(void *context, struct span text)
{
    ask_output_text(&((struct asker *)context)->output, text);
}

static void
on_step(void *context, const char *line)
{
    ask_output_step(&((struct asker *)context)->output, line);
}

static void
on_wait(void *context, const char *line)
{
    ask_output_wait(&((struct asker *)context)->output, line);
}

static void
on_code(void *context, struct span code)
{
    ask_output_code(&((struct asker *)context)->output, code);
}

static void
on_outcome(void *context, const struct outcome *outcome, bool validated_only)
{
    ask_output_outcome(&((struct asker *)context)->output, outcome, validated_only);
}

static bool
may_run(void *context, const struct outcome *verdict)
{
    return ask_output_may_run(&((struct asker *)context)->output, verdict);
}

/* ---- before it ---- */

static const char *
or_variable(const char *value, const char *variable)
{
    const char *set = value ? value : getenv(variable);
    return set && (value || set[0] != '\0') ? set : NULL;
}

static int
prepare_endpoint(struct asker *asker, struct err *err)
{
    struct ask_options *o = &asker->options;
    o->model = or_variable(o->model, o->form->model_variable);
    if (!o->model || o->model[0] == '\0')
        return err_set(err, -EINVAL, "which model? Give --model NAME or set %s",
                       o->form->model_variable);
    int r = key_read(o->key_file, o->form->key_variable, &asker->key, err);
    if (r < 0)
        return r;
    asker->endpoint = (struct endpoint){
        .form = o->form,
        .base_url = or_variable(o->base_url, o->form->base_variable),
        .model = o->model,
        .key = &asker->key,
        .ca_file = or_variable(o->ca_file, "SSL_CERT_FILE"),
        .proxy = o->proxy,
        .stream = !o->no_stream,
        .no_tools = o->no_tools,
        .plain_key = o->plain_key,
        .retries = (unsigned)o->retries,
        .max_tokens = o->max_tokens,
        .until_us = clock_now_us() + o->time_budget_ms * US_PER_MS,
        .on_wait = on_wait,
        .context = asker,
    };
    return endpoint_init(&asker->endpoint, err);
}

static int
read_question(struct asker *asker, struct err *err)
{
    const char *text = asker->options.question;
    buf_init(&asker->question, ASK_QUESTION_BYTES_MAX);
    int r = strcmp(text, "-") == 0 ? fd_read_all(STDIN_FILENO, &asker->question)
                                   : buf_append(&asker->question, text, strlen(text));
    if (r == -ENOSPC)
        return err_set(err, -E2BIG, "the question has more than %d bytes: give a --file",
                       ASK_QUESTION_BYTES_MAX);
    if (r < 0)
        return err_set(err, r, "the question cannot be read");
    if (asker->question.n == 0 || memchr(asker->question.p, '\0', asker->question.n))
        return err_set(err, -EINVAL, "the question is empty, or no text");
    return 0;
}

static int
check_person(const struct asker *asker, struct err *err)
{
    if (asker->options.confirm != CONFIRM_ALWAYS)
        return 0;
    AUTO_CLOSE int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    return tty < 0 ? err_set(err, -ENOTTY, "--confirm: there is no terminal to ask at")
                   : 0;
}

static int
write_prompt(struct asker *asker, struct err *err)
{
    AUTO_BUF struct buf libraries = {0};
    AUTO_FREE struct image *image = calloc(1, sizeof(*image));
    buf_init(&libraries, LIBRARIES_BYTES);
    buf_init(&asker->system, PROMPT_BYTES_MAX);
    if (!image)
        return err_set(err, -ENOMEM, "no memory for the interpreter's description");
    int r = interpreter_find(asker->options.run.python, false, image, err);
    if (r < 0)
        return r;
    if (libraries_describe(image, &libraries) < 0)
        buf_consume(&libraries, libraries.n); /* the model finds out */
    const struct prompt prompt = {.policy = &asker->run.policy,
                                  .job = &asker->run.job,
                                  .data = asker->run.data.folders,
                                  .data_n = asker->run.data.n,
                                  .python_version = image->version,
                                  .libraries = libraries.n > 0 ? libraries.p : "",
                                  .session = asker->options.chat};
    return prompt_system(&prompt, &asker->system) < 0
               ? err_set(err, -E2BIG,
                         "what is to be said of the files has more than %d bytes",
                         PROMPT_BYTES_MAX)
               : 0;
}

static int
prepare(struct asker *asker, struct err *err)
{
    int r = check_person(asker, err);
    if (r == 0 && asker->options.question)
        r = read_question(asker, err);
    if (r == 0)
        r = ask_run_init(&asker->run, &asker->options.run, err);
    /* A supervisor that is carried is a fork of this process, and has no use for the key. */
    if (r == 0 && asker->options.chat) {
        r = ask_session_open(&asker->run, &asker->session, err);
        asker->has_none = r < 0;
    }
    if (r == 0)
        r = prepare_endpoint(asker, err);
    return r < 0 ? r : write_prompt(asker, err);
}

/* ---- it ---- */

static bool
wants_person(const struct asker *asker)
{
    enum ask_confirm confirm = asker->options.confirm;
    return confirm == CONFIRM_ALWAYS ||
           (confirm == CONFIRM_ON_TERMINAL && isatty(STDIN_FILENO) == 1 &&
            isatty(STDERR_FILENO) == 1);
}

static int
ask_it(struct asker *asker, struct err *err)
{
    const struct ask_options *o = &asker->options;
    const struct ask_request request = {
        .endpoint = &asker->endpoint,
        .policy = &asker->run.policy,
        .system = asker->system.p,
        .question = asker->question.p,
        .ledger_path = o->run.ledger,
        .attempts = (unsigned)o->attempts,
        .token_budget = o->token_budget,
        .dry_run = o->dry_run,
        .messages = asker->messages,
        .hooks = {.execute = on_execute,
                  .on_text = asker->output.is_live ? on_text : NULL,
                  .on_step = on_step,
                  .on_code = on_code,
                  .on_outcome = on_outcome,
                  .may_run = wants_person(asker) ? may_run : NULL},
        .context = asker,
    };
    asker->output.program = &asker->answer.program;
    return ask(&request, &asker->answer, err);
}

static int
exit_status_of(const struct ask_answer *answer)
{
    int of_run = answer->has_outcome ? outcome_exit_status(&answer->outcome) : 0;
    if (answer->end == ASK_ANSWERED)
        return EXIT_ANSWERED;
    if (answer->end == ASK_SHOWN)
        return answer->outcome.status == STATUS_REJECTED ? EXIT_REJECTED : EXIT_ANSWERED;
    return answer->end == ASK_FAILED && of_run != 0 ? of_run : EXIT_NO_ANSWER;
}

/* ---- one after the other ---- */

/* What a failed question has left would be a question without an answer. */
static void
forget_since(json_t *messages, size_t n)
{
    while (json_array_size(messages) > n)
        json_array_remove(messages, json_array_size(messages) - 1);
}

/* The exit status. */
static int
answer_one(struct asker *asker)
{
    struct err err = {0};
    size_t before = json_array_size(asker->messages);
    asker->endpoint.until_us = clock_now_us() + asker->options.time_budget_ms * US_PER_MS;
    int r = ask_it(asker, &err), status;
    if (r == 0)
        r = ask_output_finish(&asker->output, &asker->answer, &err);
    else
        forget_since(asker->messages, before);
    status = r < 0 ? complain(&err, EXIT_OUR_FAULT) : exit_status_of(&asker->answer);
    ask_answer_done(&asker->answer);
    asker->answer = (struct ask_answer){0};
    return status;
}

/* The next line that is not blank; false: there is none. */
static bool
next_question(struct asker *asker, char **line, size_t *size)
{
    bool asks = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
    for (;;) {
        if (asks)
            fputs("\n> ", stderr);
        ssize_t n = getline(line, size, stdin);
        if (n < 0)
            return false;
        while (n > 0 && strchr(" \t\r\n", (*line)[n - 1]))
            (*line)[--n] = '\0';
        if (n == 0)
            continue;
        struct err err;
        buf_consume(&asker->question, asker->question.n);
        if (n < ASK_QUESTION_BYTES_MAX && strlen(*line) == (size_t)n &&
            buf_append(&asker->question, *line, (size_t)n) == 0)
            return true;
        err_set(&err, -EINVAL, "this question is too long, or no text");
        complain(&err, EXIT_WRONG_USE);
    }
}

static int
chat(struct asker *asker)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    int status = EXIT_ANSWERED;
    asker->messages = json_array();
    if (!asker->messages)
        return complain(&(struct err){.text = "no memory for a conversation"},
                        EXIT_OUR_FAULT);
    if (asker->options.question)
        status = answer_one(asker);
    else
        buf_init(&asker->question, ASK_QUESTION_BYTES_MAX);
    while (next_question(asker, &line, &size))
        status = answer_one(asker);
    return status;
}

int
ask_command(int argc, char **argv)
{
    __attribute__((cleanup(asker_done))) struct asker asker = {
        .run = {.collect_dir = -1}};
    struct err err = {0};
    if (ask_options_parse(argc, argv, &asker.options, &err) < 0) {
        complain(&err, EXIT_WRONG_USE);
        fputs("Try 'adyton ask --help'.\n", stderr);
        return EXIT_WRONG_USE;
    }
    if (asker.options.help) {
        ask_options_help();
        return fflush(stdout) == 0 ? 0 : EXIT_OUR_FAULT;
    }
    signal(SIGPIPE, SIG_IGN);
    int r = prepare(&asker, &err);
    if (r < 0)
        return complain(&err,
                        r == -ENOSYS || asker.has_none ? EXIT_OUR_FAULT : EXIT_WRONG_USE);
    ask_output_init(&asker.output, &asker.options);
    if (asker.options.chat)
        return chat(&asker);
    if (ask_it(&asker, &err) < 0)
        return complain(&err, EXIT_OUR_FAULT);
    if (ask_output_finish(&asker.output, &asker.answer, &err) < 0)
        return complain(&err, EXIT_OUR_FAULT);
    return exit_status_of(&asker.answer);
}
