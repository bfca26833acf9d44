/* One run after the other, each with the same files and the same limits. */
#include "door/ask_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "door/run_call.h"
#include "engine/engine.h"

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

static int
open_out_dir(const char *path, int *ret_dir, struct err *err)
{
    if (!path)
        return 0;
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_sys(err, "--out: cannot make '%.120s'", path);
    *ret_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_dir < 0 ? err_sys(err, "--out: cannot open '%.120s'", path) : 0;
}

int
ask_run_init(struct ask_run *run, const struct run_options *options, struct err *err)
{
    *run = (struct ask_run){.options = options, .collect_dir = -1};
    job_init(&run->job);
    int r = run_call_is_for(options, &run->may_call, err);
    if (r == 0)
        r = resolve_policy(options, &run->policy, err);
    if (r == 0)
        r = run_input_read_data(options, &run->data, err);
    if (r == 0)
        r = open_out_dir(options->out_dir, &run->collect_dir, err);
    return r < 0 ? r : run_input_read_rest(options, &run->policy, &run->job, err);
}

void
ask_run_done(struct ask_run *run)
{
    policy_done(&run->policy);
    job_done(&run->job);
    run_data_done(&run->data);
    fd_close(&run->collect_dir);
}

static int
set_code(struct job *job, struct span code, struct err *err)
{
    buf_done(&job->code);
    buf_init(&job->code, JOB_BYTES_MAX);
    return buf_append(&job->code, code.p, code.n) < 0
               ? err_set(err, -ENOMEM, "no memory for the code")
               : 0;
}

static int
execute_here(struct ask_run *run, bool validate_only, struct outcome *ret,
             struct err *err)
{
    const struct run_request request = {.policy = &run->policy,
                                        .job = &run->job,
                                        .python = run->options->python,
                                        .ledger_path = run->options->ledger,
                                        .collect_dir = run->collect_dir,
                                        .validate_only = validate_only};
    int r = 0;
    if (!run->has_folders)
        r = data_folders_take(run->data.folders, run->data.n, &run->policy, true,
                              &run->job, err);
    if (r < 0)
        return r;
    run->has_folders = true;
    engine_run(&request, ret);
    return 0;
}

int
ask_run_execute(struct ask_run *run, struct span code, bool validate_only,
                struct outcome *ret, struct err *err)
{
    const struct run_call call = {.options = run->options,
                                  .policy = &run->policy,
                                  .job = &run->job,
                                  .data = &run->data,
                                  .collect_dir = run->collect_dir};
    enum call_result result = CALL_NOBODY;
    int r = set_code(&run->job, code, err);
    if (r < 0)
        return r;
    if (run->may_call && !validate_only)
        result = run_call(&call, ret, err);
    if (result == CALL_ENDED)
        return 0;
    if (validate_only ||
        ((result == CALL_NOBODY || result == CALL_UNFIT) && !run->options->socket))
        return execute_here(run, validate_only, ret, err);
    return err->code < 0 ? err->code : -EIO;
}
