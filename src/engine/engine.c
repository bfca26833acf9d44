/*
 * One run from a job and a policy to an outcome, in this process: find the interpreter,
 * start a cold cell, wait for its end.
 */
#include "engine/engine.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cell/cell.h"
#include "engine/interpreter.h"
#include "engine/record.h"

enum { GUEST_PATH_BYTES = 512 };

/* The guest extension stands beside the program in a build folder, under lib in a
 * prefix. */
static int
find_guest(char path[GUEST_PATH_BYTES], struct err *err)
{
    static const char *const places[] = {"src/guest", "guest", "../lib/adyton",
                                         "../lib/x86_64-linux-gnu/adyton",
                                         "../lib/aarch64-linux-gnu/adyton"};
    char program[GUEST_PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (n < 0)
        return err_sys(err, "find out where adyton itself is");
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        char candidate[2 * GUEST_PATH_BYTES];
        snprintf(candidate, sizeof(candidate), "%s/%s/_adyton.abi3.so", program,
                 places[i]);
        if (access(candidate, R_OK) == 0 && strlen(candidate) < GUEST_PATH_BYTES) {
            snprintf(path, GUEST_PATH_BYTES, "%.*s", GUEST_PATH_BYTES - 1, candidate);
            return 0;
        }
    }
    return err_set(err, -ENOENT,
                   "the guest extension _adyton.abi3.so is not beside %s nor in "
                   "its ../lib/adyton: build or install adyton again",
                   program);
}

static int
check_source(const struct policy *policy, const struct job *job, struct err *err)
{
    char limit[UNITS_TEXT_BYTES];
    if (job->code.n <= policy->source_bytes)
        return 0;
    return err_set(err, -EFBIG,
                   "the source has %zu bytes; policy '%s' takes %s (source_size)",
                   job->code.n, policy->name, format_bytes(policy->source_bytes, limit));
}

struct forward {
    const struct run_request *request;
    struct event_base *base;
};

static void
forward_output(void *context, int stream, struct span bytes)
{
    const struct forward *forward = context;
    if (forward->request->on_output)
        forward->request->on_output(forward->request->context, stream, bytes);
}

static void
forward_end(void *context)
{
    const struct forward *forward = context;
    event_base_loopbreak(forward->base);
}

static int
run(const struct run_request *request, struct event_base *base, struct outcome *outcome,
    struct err *err)
{
    char guest[GUEST_PATH_BYTES];
    struct cell *cell;
    struct image *image = calloc(1, sizeof(*image));
    if (!image)
        return err_set(err, -ENOMEM, "no memory for the interpreter's description");
    bool programs = request->policy->processes == PROCESSES_EXEC;
    struct forward forward = {request, base};
    struct cell_request cell_request = {.policy = request->policy,
                                        .job = request->job,
                                        .image = image,
                                        .guest_file = guest,
                                        .collect_dir = request->collect_dir,
                                        .on_output = forward_output,
                                        .on_end = forward_end,
                                        .context = &forward};
    int r = check_source(request->policy, request->job, err);
    if (r == 0)
        r = find_guest(guest, err);
    if (r == 0)
        r = interpreter_find(request->python, programs, image, err);
    if (r == 0)
        r = cell_start(base, &cell_request, outcome, &cell, err);
    if (r == 0) {
        event_base_dispatch(base);
        cell_free(cell);
    }
    free(image);
    return r;
}

void
engine_run(const struct run_request *request, struct outcome *ret)
{
    struct err err = {0};
    outcome_init(ret);
    /* A program that reads no more, a door that is gone: a return value, not our
     * death. So too a file that may grow no further (RLIMIT_FSIZE). */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    struct record record = {0};
    struct event_base *base = event_base_new();
    int r = base ? record_begin(request, base, ret, &record, &err)
                 : err_set(&err, -ENOMEM, "no memory for an event loop");
    if (r == 0)
        r = run(request, base, ret, &err);
    if (r < 0)
        outcome_fail(ret, &err);
    record_end(&record, ret);
    if (base)
        event_base_free(base);
}
