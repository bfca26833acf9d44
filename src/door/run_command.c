/*
 * `adyton run`: command line, policy, job, run, ending. What is wrong before a run begins
 * is the caller's mistake and ends with 2; from then on the outcome decides, by the table
 * of statuses. SIGINT and SIGTERM keep their default actions: our death is what ends the
 * cell.
 */
#include "door/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "door/run_call.h"
#include "door/run_input.h"
#include "door/run_options.h"
#include "door/run_output.h"
#include "door/run_stream.h"
#include "door/session_files.h"
#include "door/terminal.h"
#include "engine/engine.h"
#include "engine/workspace.h"

enum { EXIT_WRONG_USE = 2, EXIT_OUR_FAULT = 125, ERROR_LINE_BYTES = 4096 };
enum { CODE_TOO_LONG = 1 };

struct run {
    struct run_options options;
    struct policy policy;
    struct job job;
    struct outcome outcome;
    struct run_output output;
    struct run_stream stream;
    struct run_data data;
    int collect_dir;
    bool may_call;        /* a supervisor can be asked for this */
    struct err no_policy; /* why the policy is not known here; code 0: it is */
};

static void
run_done(struct run *run)
{
    policy_done(&run->policy);
    job_done(&run->job);
    run_data_done(&run->data);
    outcome_done(&run->outcome);
    run_output_done(&run->output);
    fd_close(&run->collect_dir);
}

/* The text may quote file names and code: it is one line, and drives no terminal. */
static int
complain(const struct err *err, int exit_status)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, ERROR_LINE_BYTES);
    if (terminal_append_line(err->text, &line) == 0)
        fprintf(stderr, "adyton run: %s\n", line.p);
    return exit_status;
}

static int
resolve_policy(const struct run_options *options, struct policy *ret, struct err *err)
{
    int r = policy_load(options->policy, ret, err);
    for (size_t i = 0; r == 0 && i < options->limits_n; i++) {
        const struct run_limit *limit = &options->limits[i];
        r = policy_narrow(ret, limit->field, limit->field->option, span_of(limit->text),
                          err);
    }
    return r;
}

/* A name that is not known here may be one of the supervisor's: until it has been asked,
 * the input is read as if it were the default. */
static int
resolve_some_policy(struct run *run, struct err *err)
{
    struct run_options named = run->options;
    int r = resolve_policy(&run->options, &run->policy, err);
    if (r != -ENOENT || !run->may_call)
        return r;
    run->no_policy = *err;
    named.policy = policy_default;
    named.limits_n = 0;
    r = resolve_policy(&named, &run->policy, err);
    run->policy.source_bytes = run->policy.disk_bytes = JOB_BYTES_MAX;
    return r;
}

static int
open_out_dir(const char *path, int *ret_dir, struct err *err)
{
    if (!path)
        return 0;
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_sys(err, "--out: cannot make '%.120s'", path);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, "--out: cannot open '%.120s'", path);
    *ret_dir = dir;
    return 0;
}

/* Too long to be run is a verdict on the code, and comes out as every other verdict
 * does. */
static void
reject_code(struct run *run, const struct err *err)
{
    outcome_init(&run->outcome);
    run->outcome.status = STATUS_REJECTED;
    run->outcome.limit_value = run->policy.source_bytes;
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_fields[i].offset == offsetof(struct policy, source_bytes))
            snprintf(run->outcome.limit_name, sizeof(run->outcome.limit_name), "%s",
                     policy_fields[i].name);
    snprintf(run->outcome.message, sizeof(run->outcome.message), "%s", err->text);
    const struct run_request request = {.policy = &run->policy,
                                        .job = &run->job,
                                        .ledger_path = run->options.ledger,
                                        .collect_dir = -1};
    engine_record(&request, &run->outcome); /* with as much of the code as was read */
}

/* Everything that can be wrong with the command line; 0 or CODE_TOO_LONG when nothing
 * is. */
static int
prepare(struct run *run, struct err *err)
{
    int r = run_call_is_for(&run->options, &run->may_call, err);
    if (r == 0)
        r = resolve_some_policy(run, err);
    if (r == 0)
        r = run_input_read_data(&run->options, &run->data, err);
    if (r == 0)
        r = open_out_dir(run->options.out_dir, &run->collect_dir, err);
    if (r == 0)
        r = run_input_read_code(&run->options, &run->policy, &run->job, err);
    if (r == -EFBIG)
        return CODE_TOO_LONG;
    return r < 0 ? r : run_input_read_rest(&run->options, &run->policy, &run->job, err);
}

static void
execute_here(struct run *run)
{
    bool lines = run->options.stream;
    bool watched = run_output_watches(&run->output, &run->options);
    const struct run_request request = {
        .policy = &run->policy,
        .job = &run->job,
        .python = run->options.python,
        .ledger_path = run->options.ledger,
        .collect_dir = run->collect_dir,
        .on_output = lines               ? run_stream_output
                     : run->options.json ? NULL
                                         : run_output_stream,
        .on_display = lines ? run_stream_display : NULL,
        .on_event = lines     ? run_stream_event
                    : watched ? run_output_event
                              : NULL,
        .context = lines ? (void *)&run->stream : &run->output,
    };
    engine_run(&request, &run->outcome);
}

/* Of a run of our own: whoever starts it is the operator. */
static int
take_folders(struct run *run, struct err *err)
{
    const char *workspace = run->options.workspace;
    int r = data_folders_take(run->data.folders, run->data.n, &run->policy, true,
                              &run->job, err);
    return r == 0 && workspace ? workspace_take(workspace, &run->policy, &run->job, err)
                               : r;
}

/* The cell lives on: its files are asked for. */
static void
collect_from_session(struct run *run)
{
    struct err err;
    const struct session_files wish = {.socket = run->options.socket,
                                       .session = run->options.session};
    if (!run->options.out_dir || run->outcome.session != SESSION_KEPT)
        return;
    if (session_files_collect(&wish, run->collect_dir, &run->outcome, &err) < 0) {
        err_wrap(&err, "--out");
        complain(&err, 0);
    }
}

/* CALL_ENDED: there is an outcome. Everything else is told, and ends with 2. */
static enum call_result
execute(struct run *run, struct err *err)
{
    bool lines = run->options.stream;
    bool watched = run_output_watches(&run->output, &run->options);
    const struct run_call call = {
        .options = &run->options,
        .policy = &run->policy,
        .job = &run->job,
        .data = &run->data,
        .collect_dir = run->collect_dir,
        .on_output = lines               ? run_stream_output
                     : run->options.json ? NULL
                                         : run_output_stream,
        .on_message = lines     ? run_stream_message
                      : watched ? run_output_message
                                : NULL,
        .context = lines ? (void *)&run->stream : &run->output,
    };
    enum call_result result = CALL_NOBODY;
    if (run->may_call)
        result = run_call(&call, &run->outcome, err);
    if (result == CALL_ENDED && run->options.session)
        collect_from_session(run);
    bool may_be_ours = !run->options.socket && !run->options.session;
    if ((result == CALL_NOBODY || result == CALL_UNFIT) && may_be_ours) {
        if (run->no_policy.code != 0) {
            *err = run->no_policy;
            return CALL_REFUSED;
        }
        if (take_folders(run, err) < 0)
            return CALL_REFUSED;
        execute_here(run);
        return CALL_ENDED;
    }
    if (result == CALL_NOBODY || result == CALL_FAILED) {
        outcome_init(&run->outcome);
        outcome_fail(&run->outcome, err);
        return CALL_ENDED;
    }
    return result;
}

static int
report(struct run *run)
{
    struct err err;
    const struct run_options *options = &run->options;
    int r =
        options->stream ? run_stream_finish(&run->stream, options, &run->outcome, &err)
        : options->json ? run_output_json(&run->output, options, &run->outcome, &err)
                        : run_output_finish(&run->output, options, &run->outcome, &err);
    if (run->outcome.session == SESSION_LOST && !options->json && !options->stream &&
        options->verbosity != RUN_QUIET) {
        err_set(&err, -EIDRM, "the session is lost: %.200s", run->outcome.session_note);
        complain(&err, 0);
    }
    return r < 0 ? complain(&err, EXIT_OUR_FAULT) : outcome_exit_status(&run->outcome);
}

int
run_command(int argc, char **argv)
{
    __attribute__((cleanup(run_done))) struct run run = {.collect_dir = -1};
    struct err err;
    if (run_options_parse(argc, argv, &run.options, &err) < 0) {
        complain(&err, EXIT_WRONG_USE);
        fputs("Try 'adyton run --help'.\n", stderr);
        return EXIT_WRONG_USE;
    }
    if (run.options.help)
        return run_options_help(&err) < 0 ? complain(&err, EXIT_OUR_FAULT) : 0;

    /* A reader that is gone, ours or the cell's stdin, is an error to handle and no
     * signal. */
    signal(SIGPIPE, SIG_IGN);
    job_init(&run.job);
    run_output_init(&run.output);
    run_stream_init(&run.stream, &run.output);
    int r = prepare(&run, &err);
    if (r < 0)
        return complain(&err, EXIT_WRONG_USE);
    if (r == CODE_TOO_LONG)
        reject_code(&run, &err);
    else if (execute(&run, &err) != CALL_ENDED)
        return complain(&err, EXIT_WRONG_USE);
    return report(&run);
}
