/*
 * One run from a job and a policy to an outcome, in this process: find the interpreter,
 * start a cold cell, wait for its end.
 */
#include "engine/engine.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>

#include "cell/cell.h"
#include "engine/engine_parts.h"
#include "engine/filter_cache.h"
#include "engine/interpreter.h"
#include "engine/record.h"

struct forward {
    const struct run_request *request;
    struct event_base *base;
    struct outcome *outcome;
    struct record record;
    bool recorded, ended;
};

static void
forward_output(void *context, int stream, struct span bytes)
{
    const struct forward *forward = context;
    if (forward->request->on_output)
        forward->request->on_output(forward->request->context, stream, bytes);
}

static void
forward_display(void *context, const struct display_item *item)
{
    const struct forward *forward = context;
    if (forward->request->on_display)
        forward->request->on_display(forward->request->context, item);
}

static void
forward_event(void *context, const struct run_event *event)
{
    const struct forward *forward = context;
    struct run_event own = *event;
    own.run_id = forward->outcome->id;
    forward->request->on_event(forward->request->context, &own);
}

/* Once. */
static void
end_record(struct forward *forward)
{
    if (!forward->ended)
        record_end(&forward->record, forward->outcome);
    forward->ended = true;
}

static void
forward_end(void *context)
{
    struct forward *forward = context;
    end_record(forward); /* while what is left of the cell ends */
    event_base_loopbreak(forward->base);
}

/* The intent is committed before the cell gets code; a cold cell's interpreter starts
 * meanwhile. Once. */
static int
begin_record(void *context, struct err *err)
{
    struct forward *forward = context;
    if (forward->recorded || forward->request->validate_only)
        return 0;
    forward->recorded = true;
    return record_begin(forward->request, forward->base, forward->outcome,
                        &forward->record, err);
}

static int
run(struct forward *forward, struct err *err)
{
    const struct run_request *request = forward->request;
    char guest[ENGINE_GUEST_BYTES];
    struct cell *cell;
    struct image *image = calloc(1, sizeof(*image));
    if (!image)
        return err_set(err, -ENOMEM, "no memory for the interpreter's description");
    bool programs = request->policy->processes == PROCESSES_EXEC;
    struct cell_request cell_request = {.policy = request->policy,
                                        .job = request->job,
                                        .image = image,
                                        .guest_file = guest,
                                        .filters = &filter_cache,
                                        .validate_only = request->validate_only,
                                        .collect_dir = request->collect_dir,
                                        .on_output = forward_output,
                                        .on_display = forward_display,
                                        .on_event =
                                            request->on_event ? forward_event : NULL,
                                        .before_code = begin_record,
                                        .on_end = forward_end,
                                        .context = forward};
    int r = engine_find_guest(guest, err);
    if (r == 0)
        r = interpreter_find(request->python, programs, image, err);
    if (r == 0)
        r = cell_start(forward->base, &cell_request, forward->outcome, &cell, err);
    if (r == 0) {
        event_base_dispatch(forward->base);
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
    struct event_base *base = event_base_new();
    struct forward forward = {.request = request, .base = base, .outcome = ret};
    int r = base ? 0 : err_set(&err, -ENOMEM, "no memory for an event loop");
    bool rejected = r == 0 && engine_judge_bytes(request->policy, request->job,
                                                 request->validate_only, ret);
    if (r == 0 && !rejected)
        r = run(&forward, &err);
    if (r < 0)
        outcome_fail(ret, &err);
    /* What never came to a cell is a run all the same, and one that cannot be recorded has
     * failed, whatever it was. */
    if (base && begin_record(&forward, &err) < 0)
        outcome_fail(ret, &err);
    end_record(&forward);
    record_done(&forward.record, ret);
    if (base)
        event_base_free(base);
}

void
engine_record(const struct run_request *request, struct outcome *outcome)
{
    struct err err = {0};
    struct event_base *base = event_base_new();
    struct forward forward = {.request = request, .base = base, .outcome = outcome};
    int r = base ? begin_record(&forward, &err)
                 : err_set(&err, -ENOMEM, "no memory for an event loop");
    if (r < 0)
        outcome_fail(outcome, &err);
    end_record(&forward);
    record_done(&forward.record, outcome);
    if (base)
        event_base_free(base);
}
