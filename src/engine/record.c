/*
 * The ledger's part of a run. An intent goes to the disk within half a second without
 * anybody waiting for it; the outcome when the run is over, for nobody may be there later
 * to see to it.
 */
#include "engine/record.h"

#include <stdio.h>

static const struct timeval flush_period = {.tv_usec = 500 * 1000};

static void
flush(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    ledger_flush_soon(context);
}

static bool
is_full(const struct policy *policy)
{
    return policy->sync == SYNC_FULL;
}

int
record_begin(const struct run_request *request, struct event_base *base,
             const struct outcome *outcome, struct record *ret, struct err *err)
{
    const struct policy *policy = request->policy;
    const struct job *job = request->job;
    *ret = (struct record){.policy = policy};
    int r = ledger_open(request->ledger_path, LEDGER_WRITE, &ret->ledger, err);
    if (r < 0)
        return r;
    const struct ledger_intent intent = {.run = outcome->id,
                                         .policy = policy->name,
                                         .name = job->name,
                                         .code = buf_span(&job->code),
                                         .keep_code = policy->keep_code == KEEP_CODE_YES,
                                         .full_sync = is_full(policy)};
    r = ledger_intent(ret->ledger, &intent, &ret->intent, err);
    if (r < 0)
        return r;
    /* Without it, a power cut takes more than was said; nothing else depends on it. */
    ret->on_flush = event_new(base, -1, EV_PERSIST, flush, ret->ledger);
    if (ret->on_flush && !is_full(policy))
        event_add(ret->on_flush, &flush_period);
    return 0;
}

static void
fail(struct outcome *outcome, const struct err *err)
{
    struct err why;
    err_set(&why, err->code, "how the run ended could not be recorded: %.180s",
            err->text);
    outcome_fail(outcome, &why);
}

void
record_end(struct record *record, struct outcome *outcome)
{
    struct err err;
    if (record->on_flush)
        event_free(record->on_flush);
    if (record->intent == 0)
        return;
    if (ledger_outcome(record->ledger, record->intent, outcome, is_full(record->policy),
                       &err) < 0) {
        record->intent = 0;
        fail(outcome, &err);
    } else {
        ledger_flush_begin(record->ledger);
    }
}

void
record_done(struct record *record, struct outcome *outcome)
{
    struct err err;
    const struct policy *policy = record->policy;
    if (record->intent > 0 && ledger_flush(record->ledger, &err) < 0) {
        fail(outcome, &err);
    } else if (record->intent > 0) {
        const struct ledger_retention retention = {.days = policy->ledger_days,
                                                   .bytes = policy->ledger_bytes};
        /* The next run tries again. */
        (void)!ledger_tidy(record->ledger, &retention, &err);
    }
    ledger_free(record->ledger);
}
