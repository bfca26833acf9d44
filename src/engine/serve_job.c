/*
 * A client's run, from the request to the outcome: which policy, whether there is room,
 * whose turn it is, and the cell. A run outlives its client by the time that its cell
 * takes to end; what it says then goes nowhere.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "engine/engine_parts.h"
#include "engine/serve_parts.h"

enum { LOCKED_MAX_US = 5 * 1000 * 1000 };

static const struct timeval locked_pause = {.tv_usec = 50 * 1000};

static void
job_free(struct serve_job *job)
{
    if (job->again)
        event_free(job->again);
    struct serve *serve = job->serve;
    *(job->before ? &job->before->after : &serve->jobs) = job->after;
    if (job->after)
        job->after->before = job->before;
    serve->jobs_n--;
    queue_remove(&serve->queue, &job->turn);
    if (job->session)
        serve_session_leave(job);
    serve_policy_release(job->loaded);
    protocol_run_free(job->asked);
    fd_close(&job->collect_dir);
    bool room = job->held_bytes > 0;
    serve->held_bytes -= job->held_bytes;
    free(job);
    if (room)
        serve_client_wake_all(serve);
}

static struct serve_job *
find_job(const struct serve_client *client, const char *id)
{
    for (struct serve_job *job = client->serve->jobs; job; job = job->after)
        if (job->client == client && strcmp(job->id, id) == 0)
            return job;
    return NULL;
}

static struct serve_job *
job_of(struct queue_item *turn)
{
    return (struct serve_job *)(void *)((char *)turn - offsetof(struct serve_job, turn));
}

/* ---- the end ---- */

static bool
reads_too_little(const struct serve_client *client)
{
    size_t pending = serve_client_pending(client);
    return pending > SERVE_PENDING_MAX ||
           (pending > SERVE_STREAM_PENDING_MAX &&
            client->serve->pending_bytes > SERVE_PENDING_ALL_MAX);
}

/* From here on the end of the client is no concern of the job's, nor its turn. */
static struct serve_client *
let_go(struct serve_job *job)
{
    struct serve_client *client = job->client;
    job->client = NULL;
    queue_remove(&job->serve->queue, &job->turn);
    return client;
}

static void on_again(evutil_socket_t fd, short what, void *context);

/* The ledger is locked: comes again, if that has not been so for too long. */
static bool
postpone(struct serve_job *job)
{
    uint64_t now_us = clock_now_us();
    if (job->locked_us == 0)
        job->locked_us = now_us;
    if (!job->again)
        job->again = event_new(job->serve->base, -1, 0, on_again, job);
    return job->again && now_us - job->locked_us < LOCKED_MAX_US &&
           event_add(job->again, &locked_pause) == 0;
}

static void
reply_opened(struct serve_client *client, const struct serve_job *job,
             const struct outcome *outcome)
{
    struct err err;
    if (outcome->session == SESSION_KEPT) {
        serve_reply_session(client, job->id, job->session);
        return;
    }
    err_set(&err, -EIDRM, "the session could not be opened: %.180s", outcome->message);
    serve_reply_error(client, job->id, &err);
}

/* The outcome is the ledger's first, then the client's. */
static void
finish(struct serve_job *job, struct outcome *outcome)
{
    struct serve *serve = job->serve;
    struct serve_client *client = let_go(job);
    if (job->run_id[0] != '\0')
        memcpy(outcome->id, job->run_id, sizeof(outcome->id));
    if (job->session)
        serve_session_take_end(job, outcome);
    serve_record_end(job, outcome);
    if (job->started_us > 0 && !job->asked->job.completes)
        serve_count_run(serve, clock_now_us() - job->started_us);
    if (client && reads_too_little(client))
        serve_client_close(client);
    else if (client && job->opens)
        reply_opened(client, job, outcome);
    else if (client && job->asked->job.completes)
        serve_complete_reply(client, job, outcome);
    else if (client)
        serve_reply_finished(client, job->id, outcome);
    job_free(job);
    if (client)
        serve_client_flush(client);
}

/* Whether the outcome cannot be recorded now, and will be tried again. */
static bool
must_wait(struct serve_job *job, struct outcome *outcome)
{
    memcpy(outcome->id, job->run_id, sizeof(outcome->id));
    if (serve_record_try_end(job, outcome) != -EBUSY) {
        job->locked_us = 0;
        return false;
    }
    return postpone(job);
}

static void
finish_late(struct serve_job *job)
{
    struct pool_run *run = job->late;
    struct outcome own = job->late_outcome;
    job->late = NULL;
    finish(job, &own);
    pool_release(run);
}

static void
on_end(void *context, const struct outcome *outcome)
{
    struct serve_job *job = context;
    struct serve *serve = job->serve;
    struct outcome own = *outcome; /* borrows what it points to */
    struct pool_run *run = job->run;
    job->run = NULL;
    /* A session goes on in its run, which cannot be held. */
    if (run && !job->session && must_wait(job, &own)) {
        pool_hold(run);
        job->late = run;
        job->late_outcome = own;
        return;
    }
    finish(job, &own);
    serve_job_pump(serve);
    serve_check_drained(serve);
}

static void
fail(struct serve_job *job, const struct err *err)
{
    struct outcome outcome;
    outcome_init(&outcome);
    outcome_fail(&outcome, err);
    finish(job, &outcome);
    outcome_done(&outcome);
}

/* ---- output ---- */

/* A client that does not read gets no more of a stream as it comes: the outcome has all
 * that is kept of it. */
static void
on_output(void *context, int stream, struct span bytes)
{
    struct serve_job *job = context;
    struct serve_client *client = job->client;
    if (!client || job->dropped[stream])
        return;
    if (serve_client_pending(client) + bytes.n > SERVE_STREAM_PENDING_MAX ||
        job->serve->pending_bytes > SERVE_PENDING_ALL_MAX) {
        job->dropped[stream] = true;
        serve_reply_dropped(client, job->id, stream);
    } else {
        serve_reply_output(client, job->id, stream, bytes);
    }
    serve_client_flush(client);
}

/* An item is not small, and comes with the outcome as well. */
static void
on_display(void *context, const struct display_item *item)
{
    struct serve_job *job = context;
    struct serve_client *client = job->client;
    if (!client || serve_client_pending(client) > SERVE_STREAM_PENDING_MAX ||
        job->serve->pending_bytes > SERVE_PENDING_ALL_MAX)
        return;
    serve_reply_display(client, job->id, item);
    serve_client_flush(client);
}

/* Told to a client that reads; the outcome has all that counts of it. */
static void
on_event(void *context, const struct run_event *event)
{
    struct serve_job *job = context;
    struct run_event own = *event;
    if (!job->client || serve_client_pending(job->client) > SERVE_STREAM_PENDING_MAX)
        return;
    own.run_id = job->run_id;
    serve_reply_event(job->client, job->id, &own);
    if (event->kind == RUN_STARTED) /* of a short run it goes with what follows */
        serve_client_flush_soon(job->client);
    else
        serve_client_flush(job->client);
}

/* ---- the beginning ---- */

static int
submit(struct serve_job *job, struct err *err)
{
    const struct protocol_run *asked = job->asked;
    struct pool_request request = {.policy = &job->policy,
                                   .job = &asked->job,
                                   .python = asked->python[0] ? asked->python : NULL,
                                   .validate_only = asked->check,
                                   .collect_dir = job->collect_dir,
                                   .on_output = asked->stream ? on_output : NULL,
                                   .on_display = asked->stream ? on_display : NULL,
                                   .on_event = asked->stream ? on_event : NULL,
                                   .on_end = on_end,
                                   .context = job};
    if (job->session) {
        int r = serve_session_submit(job, &request, err);
        job->was_submitted = r == 0;
        return r;
    }
    return pool_submit(job->serve->pool, &request, &job->run, err);
}

/* The intent is written before anything is done for it. What the bytes alone tell, and
 * what we cannot do, is an outcome at once. */
static void
start(struct serve_job *job)
{
    struct outcome early;
    struct err err = {0};
    outcome_init(&early);
    if (job->started_us == 0)
        memcpy(job->run_id, early.id, sizeof(job->run_id));
    if (job->started_us == 0)
        job->started_us = clock_now_us();
    /* What is only looked at is no run: nothing of it is recorded. */
    bool asks = job->asked->job.completes;
    int r = asks || job->asked->check ? 0 : serve_record_begin(job, &err);
    if (r == -EBUSY && postpone(job)) {
        outcome_done(&early);
        return;
    }
    job->locked_us = 0;
    bool judged =
        r == 0 && !asks &&
        engine_judge_bytes(&job->policy, &job->asked->job, job->asked->check, &early);
    if (r == 0 && !judged)
        r = submit(job, &err);
    if (r < 0)
        outcome_fail(&early, &err);
    if (r < 0 || judged)
        finish(job, &early);
    outcome_done(&early);
}

void
serve_job_pump(struct serve *serve)
{
    struct queue_item *turn;
    while ((turn = queue_next(&serve->queue)))
        start(job_of(turn));
}

/* Nobody waits any more for what has not begun. */
static void
on_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct serve_job *job = context;
    struct serve *serve = job->serve;
    if (job->late && must_wait(job, &job->late_outcome))
        return;
    if (job->late)
        finish_late(job);
    else if (job->client)
        start(job);
    else
        job_free(job);
    serve_job_pump(serve);
    serve_check_drained(serve);
}

static void
refuse(struct serve_job *job)
{
    struct serve_client *client = let_go(job);
    if (client)
        serve_reply_busy(client, job->id, serve_retry_ms(job->serve));
    job_free(job);
    if (client)
        serve_client_flush(client);
}

static struct serve_job *
job_new(struct serve_client *client, struct protocol_request *request)
{
    struct serve *serve = client->serve;
    struct serve_job *job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    job->serve = serve;
    job->client = client;
    job->collect_dir = -1;
    memcpy(job->id, request->id, sizeof(job->id));
    job->asked = request->run;
    job->opens = request->kind == PROTOCOL_SESSION_NEW ||
                 request->kind == PROTOCOL_SESSION_RESTART;
    request->run = NULL;
    job->held_bytes = client->reserved_bytes;
    client->reserved_bytes = 0;
    job->after = serve->jobs;
    if (job->after)
        job->after->before = job;
    serve->jobs = job;
    serve->jobs_n++;
    return job;
}

/* It waits, or it is told why not. */
static int
admit(struct serve_job *job, bool is_new, struct err *err)
{
    struct serve *serve = job->serve;
    struct serve_client *client = job->client;
    struct queue_item *evicted;
    size_t ahead = serve->queue.waiting;
    job->turn.memory_bytes = job->policy.memory_bytes;
    int r = serve->draining
                ? -EBUSY
                : queue_push(&serve->queue, &client->lane, &job->turn, &evicted);
    if (r == -EFBIG) {
        char asked[UNITS_TEXT_BYTES], most[UNITS_TEXT_BYTES];
        return err_set(err, r,
                       "the run may use %s of memory, and all runs of this supervisor "
                       "together %s",
                       format_bytes(job->turn.memory_bytes, asked),
                       format_bytes(serve->queue.memory_max_bytes, most));
    }
    if (r < 0) {
        refuse(job);
        return 0;
    }
    if (is_new)
        serve_reply_accepted(client, job->id, ahead);
    serve_client_flush_soon(client);
    if (evicted)
        refuse(job_of(evicted));
    serve_job_pump(serve);
    return 0;
}

/* Runs of a session wait for one another first, then for their turn among all. */
static int
admit_to_session(struct serve_job *job, struct err *err)
{
    if (serve_session_take_turn(job))
        return admit(job, true, err);
    int ahead = job->serve->draining ? -EBUSY : serve_session_await(job);
    if (ahead < 0) {
        refuse(job);
        return 0;
    }
    serve_reply_accepted(job->client, job->id, (size_t)ahead + 1);
    serve_client_flush_soon(job->client);
    return 0;
}

void
serve_job_go_on(struct serve_job *job)
{
    struct err err = {0};
    if (admit(job, false, &err) < 0)
        fail(job, &err);
}

void
serve_job_ask(struct serve_client *client, struct protocol_request *request)
{
    struct err err = {0};
    bool twice = find_job(client, request->id) != NULL;
    struct serve_job *job = twice ? NULL : job_new(client, request);
    if (!job) {
        err_set(&err, twice ? -EINVAL : -ENOMEM,
                twice ? "there is a run of that 'id' already" : "no memory for a run");
        serve_reply_error(client, request->id, &err);
        serve_client_flush(client);
        return;
    }
    int r = serve_job_examine(job, request->session, &err);
    if (r == 0)
        r = job->session ? admit_to_session(job, &err) : admit(job, true, &err);
    if (r < 0) {
        serve_reply_error(client, job->id, &err);
        job_free(job);
        serve_client_flush(client);
    }
}

/* ---- from outside ---- */

static bool
waits_in_session(const struct serve_job *job)
{
    return job->session && job->session->current != job;
}

/* A session is nobody's alone: its run is interrupted, and it lives on. */
static void
stop(struct serve_job *job)
{
    if (job->session && !job->opens)
        pool_interrupt(job->run);
    else
        pool_cancel(job->run);
}

static void
cancel(struct serve_job *job)
{
    if (job->run)
        stop(job);
    if (job->run || job->late)
        return; /* its outcome comes */
    static const struct err cancelled = {-ECANCELED, "the run was cancelled"};
    struct serve *serve = job->serve;
    fail(job, &cancelled);
    serve_job_pump(serve);
}

void
serve_job_cancel(struct serve_client *client, const char *id)
{
    struct serve_job *job = find_job(client, id);
    if (job) {
        cancel(job);
        return;
    }
    /* It may have ended while the wish was on its way. */
    struct err err;
    err_set(&err, -ESRCH, "there is no run of that 'id'");
    serve_reply_error(client, id, &err);
    serve_client_flush(client);
}

void
serve_job_abandon(struct serve_client *client)
{
    struct serve_job *after;
    for (struct serve_job *job = client->serve->jobs; job; job = after) {
        after = job->after;
        if (job->client != client)
            continue;
        job->client = NULL;
        if (job->run)
            stop(job);
        else if (job->turn.waits || waits_in_session(job))
            job_free(job);
    }
}

void
serve_job_refuse_waiting(struct serve *serve)
{
    /* From the front each time: a client that is closed on the way takes its others
     * along. */
    struct serve_job *job = serve->jobs;
    while (job) {
        bool waits = job->turn.waits || waits_in_session(job);
        if (waits)
            refuse(job);
        job = waits ? serve->jobs : job->after;
    }
}

void
serve_job_record_late(struct serve *serve)
{
    struct serve_job *after;
    for (struct serve_job *job = serve->jobs; job; job = after) {
        after = job->after;
        job->locked_us = 0; /* it is now or never */
        if (job->late)
            finish_late(job);
    }
}

void
serve_job_free_all(struct serve *serve)
{
    static const struct err ended = {-ECANCELED,
                                     "the supervisor was told to end at once"};
    while (serve->jobs) {
        serve->jobs->client = NULL;
        serve->jobs->run = NULL;
        fail(serve->jobs, &ended);
    }
}
