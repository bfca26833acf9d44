/*
 * The ledger's part of a supervised run: one ledger for all of them. What is committed
 * reaches the disk within half a second, by a timer that nobody waits for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/serve_parts.h"

/* The loop waits no longer for a lock; who needs the ledger comes again. */
enum { PATIENCE_MS = 2 };

static const struct timeval flush_period = {.tv_usec = 500 * 1000};

/* Nobody waits for it, so nobody else would hear of it. */
static void
tell_flush(struct serve *serve)
{
    int error = ledger_flush_error(serve->ledger);
    if (error == serve->flush_error)
        return;
    serve->flush_error = error;
    if (error != 0)
        serve_note(serve,
                   "the ledger does not reach the disk (%s): a power cut would take what "
                   "was recorded lately; it is tried again",
                   strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error");
    else
        serve_note(serve, "the ledger reaches the disk again");
}

static void
on_flush(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct serve *serve = context;
    /* Until it is on the disk, and whoever brings it there is reaped. */
    if (ledger_flush_soon(serve->ledger))
        event_add(serve->on_flush, &flush_period);
    tell_flush(serve);
}

int
serve_record_open(struct serve *serve, struct err *err)
{
    int r = ledger_open(serve->options->ledger, LEDGER_WRITE, &serve->ledger, err);
    if (r < 0)
        return r;
    ledger_set_patience(serve->ledger, PATIENCE_MS);
    /* Without it a power cut takes more than was said; nothing else depends on it. */
    serve->on_flush = event_new(serve->base, -1, 0, on_flush, serve);
    return 0;
}

/* Once for all that is committed until it comes: an idle supervisor has no timer. */
static void
flush_later(struct serve *serve)
{
    if (serve->on_flush && !event_pending(serve->on_flush, EV_TIMEOUT, NULL))
        event_add(serve->on_flush, &flush_period);
}

int
serve_record_begin(struct serve_job *job, struct err *err)
{
    const struct policy *policy = &job->policy;
    const struct job *asked = &job->asked->job;
    const struct ledger_intent intent = {.run = job->run_id,
                                         .session =
                                             job->session ? job->session->id : NULL,
                                         .policy = policy->name,
                                         .name = asked->name,
                                         .code = buf_span(&asked->code),
                                         .keep_code = policy->keep_code == KEEP_CODE_YES,
                                         .full_sync = policy->sync == SYNC_FULL};
    int r = ledger_intent(job->serve->ledger, &intent, &job->intent, err);
    if (r == 0)
        flush_later(job->serve);
    return r;
}

static int
try_end(struct serve_job *job, struct outcome *outcome, struct err *err)
{
    struct ledger *ledger = job->serve->ledger;
    const struct policy *policy = &job->policy;
    struct err ignored;
    if (job->intent == 0)
        return 0;
    int r = ledger_outcome(ledger, job->intent, outcome, policy->sync == SYNC_FULL, err);
    if (r < 0)
        return r;
    job->intent = 0;
    flush_later(job->serve);
    const struct ledger_retention retention = {.days = policy->ledger_days,
                                               .bytes = policy->ledger_bytes};
    (void)!ledger_tidy(ledger, &retention, &ignored); /* the next run tries again */
    return 0;
}

int
serve_record_try_end(struct serve_job *job, struct outcome *outcome)
{
    struct err ignored;
    return try_end(job, outcome, &ignored) == -EBUSY ? -EBUSY : 0;
}

void
serve_record_end(struct serve_job *job, struct outcome *outcome)
{
    struct err err;
    struct ledger *ledger = job->serve->ledger;
    /* Whoever has not come again, for nobody would keep the outcome, waits here. */
    if (job->locked_us == 0)
        ledger_set_patience(ledger, LEDGER_PATIENCE_MS);
    int r = try_end(job, outcome, &err);
    ledger_set_patience(ledger, PATIENCE_MS);
    job->intent = 0;
    if (r < 0) {
        struct err why;
        err_set(&why, r, "how the run ended could not be recorded: %.180s", err.text);
        outcome_fail(outcome, &why);
    }
}

void
serve_record_session_end(struct serve_session *session, struct outcome *outcome)
{
    struct err err;
    if (session->intent == 0)
        return;
    struct ledger *ledger = session->serve->ledger;
    ledger_set_patience(ledger, LEDGER_PATIENCE_MS); /* nobody comes again with it */
    int r = ledger_outcome(ledger, session->intent, outcome,
                           session->policy.sync == SYNC_FULL, &err);
    ledger_set_patience(ledger, PATIENCE_MS);
    session->intent = 0;
    if (r < 0)
        serve_note(session->serve, "the end of a session could not be recorded: %.180s",
                   err.text);
    flush_later(session->serve);
}

void
serve_record_close(struct serve *serve)
{
    if (serve->on_flush)
        event_free(serve->on_flush);
    ledger_free(serve->ledger);
}
