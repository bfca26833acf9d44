/*
 * Sessions: cells that stay, under a handle that is their authority. Runs of one session follow one
 * another; each takes its turn among all runs of the supervisor. A session outlives whoever opened
 * it, until it is closed, idle or old for too long, lost, or the supervisor ends; how it ended is
 * kept for a while, so that a late question finds the reason.
 *
 * In the ledger a session is an intent without code, whose outcome is the end of the session.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "engine/serve_parts.h"

enum {
    SESSIONS_MAX = 4096, /* alive at once, where there are descriptors for them */
    SESSION_FDS = 12,    /* the most that one holds (cell_parts.h) */
    ENDED_MAX = 1024,    /* remembered */
    WAITING_MAX = 64,    /* runs, in each */
    RANDOM_BYTES = 16,
    US_PER_MS = 1000,
    MS_PER_S = 1000,
    COMPLETE_RUN = INT32_MAX, /* the number of a question, which is no run */
};

static void
make_id(char id[OUTCOME_ID_BYTES])
{
    unsigned char random[RANDOM_BYTES];
    ssize_t got;
    do
        got = getrandom(random, sizeof(random), 0);
    while (got < 0 && errno == EINTR);
    assert(got == sizeof(random)); /* never less than 256 bytes once seeded */
    char *p = id;
    *p++ = 's';
    *p++ = '_';
    for (size_t i = 0; i < sizeof(random); i++, p += 2)
        snprintf(p, 3, "%02x", random[i]);
}

/* Half of all descriptors, at least, are for clients and runs. */
size_t
serve_session_max(const struct serve *serve)
{
    struct rlimit files;
    uint64_t others = SERVE_CLIENTS_MAX * 2ULL + serve->queue.running_max * SESSION_FDS;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 0;
    uint64_t half = files.rlim_cur / 2;
    uint64_t n = (files.rlim_cur - (others < half ? others : half)) / SESSION_FDS;
    return n < SESSIONS_MAX ? (size_t)n : SESSIONS_MAX;
}

static struct serve_session **
bucket_of(struct serve *serve, const char *id)
{
    size_t sum = 0;
    for (; *id != '\0'; id++)
        sum = sum * 31 + (unsigned char)*id;
    return &serve->buckets[sum % SERVE_SESSION_BUCKETS];
}

/* --- the end --- */

static void
free_session(struct serve_session *session)
{
    struct serve_session **at = &session->serve->sessions;
    while (*at != session)
        at = &(*at)->after;
    *at = session->after;
    for (at = bucket_of(session->serve, session->id); *at != session;)
        at = &(*at)->next_in_bucket;
    *at = session->next_in_bucket;
    if (session->serve->measured == session)
        session->serve->measured = session->after;
    if (session->on_time)
        event_free(session->on_time);
    serve_policy_release(session->loaded);
    free(session->folders);
    free(session);
}

/* The oldest go: new ones are put in front. */
static void
forget_some(struct serve *serve)
{
    struct serve_session *oldest = NULL;
    size_t n = 0;
    for (struct serve_session *at = serve->sessions; at; at = at->after)
        if (at->state == SESSION_ENDED && at->users == 0) {
            oldest = at;
            n++;
        }
    if (n >= ENDED_MAX)
        free_session(oldest);
}

/* What it holds while it waits is not there for runs. */
static void
count_rest(struct serve_session *session, uint64_t bytes)
{
    session->serve->queue.held_bytes += bytes;
    session->serve->queue.held_bytes -= session->rest_bytes;
    session->rest_bytes = bytes;
}

static bool
is_idle(const struct serve_session *session)
{
    return session->state == SESSION_OPEN && !session->current && session->run;
}

static void
record_end(struct serve_session *session)
{
    struct outcome outcome;
    outcome_init(&outcome);
    outcome.status = STATUS_OK;
    memcpy(outcome.session_id, session->id, sizeof(outcome.session_id));
    outcome.execution_count = session->runs;
    outcome.wall_us = clock_now_us() - session->opened_us;
    snprintf(outcome.message, sizeof(outcome.message), "session closed: %.200s",
             session->reason);
    serve_record_session_end(session, &outcome);
    outcome_done(&outcome);
}

static void
end(struct serve_session *session, const char *reason)
{
    if (session->state == SESSION_ENDED)
        return;
    session->state = SESSION_ENDED;
    snprintf(session->reason, sizeof(session->reason), "%s", reason);
    session->serve->sessions_n--;
    count_rest(session, 0);
    if (session->on_time)
        event_del(session->on_time);
    serve_files_end(session, reason);
    record_end(session);
}

static void
on_lost(void *context, const struct outcome *outcome)
{
    struct serve_session *session = context;
    session->run = NULL;
    end(session, outcome->session_note[0] ? outcome->session_note : outcome->message);
}

static void
close_session(struct serve_session *session, const char *reason)
{
    struct pool_run *run = session->run;
    end(session, reason);
    session->run = NULL;
    if (run)
        pool_cancel(run); /* with on_end, when one goes on in it */
}

/* --- time --- */

static void
set_time(struct serve_session *session)
{
    uint64_t now = clock_now_us();
    uint64_t old_us = session->opened_us + session->policy.session_age_ms * US_PER_MS;
    uint64_t idle_us = session->last_us + session->policy.session_idle_ms * US_PER_MS;
    uint64_t at = session->current || old_us < idle_us ? old_us : idle_us;
    uint64_t wait_ms = at > now ? (at - now) / US_PER_MS + 1 : 1;
    struct timeval wait = {.tv_sec = (time_t)(wait_ms / MS_PER_S),
                           .tv_usec = (suseconds_t)(wait_ms % MS_PER_S * US_PER_MS)};
    if (session->on_time && event_add(session->on_time, &wait) < 0)
        close_session(session, "there was no memory to watch its time");
}

static void
on_time(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct serve_session *session = context;
    uint64_t now = clock_now_us();
    const struct policy *policy = &session->policy;
    if (now >= session->opened_us + policy->session_age_ms * US_PER_MS)
        close_session(session, "expired: it was as old as its policy lets it be "
                               "(session_age)");
    else if (!session->current &&
             now >= session->last_us + policy->session_idle_ms * US_PER_MS)
        close_session(session, "expired: it was idle for as long as its policy allows "
                               "(session_idle)");
    else
        set_time(session);
}

/* --- finding one --- */

int
serve_session_find(struct serve *serve, const char *id, struct serve_session **ret,
                   struct err *err)
{
    struct serve_session *session = *bucket_of(serve, id);
    while (session && strcmp(session->id, id) != 0)
        session = session->next_in_bucket;
    if (!session)
        return err_set(err, -EIDRM, "there is no session of that id");
    if (session->state == SESSION_ENDED)
        return err_set(err, -EIDRM, "the session has ended: %.180s", session->reason);
    *ret = session;
    return 0;
}

/* --- runs --- */

static int
make(struct serve_job *job, struct err *err)
{
    struct serve *serve = job->serve;
    if (serve->draining)
        return err_set(err, -EIDRM, "the supervisor is ending");
    if (serve->sessions_n >= serve_session_max(serve))
        return err_set(
            err, -EIDRM,
            "there are %zu sessions already; more would need a higher limit of "
            "open files (ulimit -n)",
            serve->sessions_n);
    struct serve_session *session = calloc(1, sizeof(*session));
    if (!session)
        return err_set(err, -ENOMEM, "no memory for a session");
    forget_some(
        serve); /* here, where nobody holds one: who ends a session still looks at it */
    make_id(session->id);
    session->serve = serve;
    session->opened_us = session->last_us = clock_now_us();
    session->on_time = event_new(serve->base, -1, 0, on_time, session);
    session->after = serve->sessions;
    serve->sessions = session;
    struct serve_session **bucket = bucket_of(serve, session->id);
    session->next_in_bucket = *bucket;
    *bucket = session;
    serve->sessions_n++;
    job->session = session;
    session->users = 1;
    return 0;
}

int
serve_session_enter(struct serve_job *job, const char *id, struct err *err)
{
    if (job->opens && id[0] == '\0')
        return make(job, err);
    int r = serve_session_find(job->serve, id, &job->session, err);
    if (r == 0)
        job->session->users++;
    return r;
}

void
serve_session_open(struct serve_job *job)
{
    struct serve_session *session = job->session;
    session->policy = job->policy;
    session->loaded = job->loaded;
    session->loaded->refs++;
    memcpy(session->python, job->asked->python, sizeof(session->python));
    session->tied = job->asked->tied ? job->client : NULL;
}

void
serve_session_abandon(const struct serve_client *client)
{
    for (struct serve_session *at = client->serve->sessions; at; at = at->after)
        if (at->tied == client) {
            at->tied = NULL;
            close_session(at, "its client is gone, and it was tied to that");
        }
}

bool
serve_session_take_turn(struct serve_job *job)
{
    struct serve_session *session = job->session;
    if (!session->current)
        session->current = job;
    if (session->current == job)
        count_rest(session, 0); /* the run is counted with all that it may use */
    return session->current == job;
}

int
serve_session_await(struct serve_job *job)
{
    struct serve_job **at = &job->session->waiting;
    size_t n = 0;
    for (; *at; at = &(*at)->next_in_session)
        n++;
    if (n >= WAITING_MAX)
        return -EBUSY;
    *at = job;
    return (int)n;
}

void
serve_session_leave(struct serve_job *job)
{
    struct serve_session *session = job->session;
    job->session = NULL;
    session->users--;
    for (struct serve_job **at = &session->waiting; *at; at = &(*at)->next_in_session)
        if (*at == job) {
            *at = job->next_in_session;
            break;
        }
    if (session->current != job)
        return;
    session->current = NULL;
    session->last_us = clock_now_us();
    if (session->state == SESSION_OPENING) /* it was never opened */
        end(session, "it could not be opened");
    else if (session->state == SESSION_OPEN)
        set_time(session);
    struct serve_job *next = session->waiting;
    if (next) {
        session->waiting = next->next_in_session;
        next->next_in_session = NULL;
        session->current = next;
        serve_job_go_on(next);
    } else if (is_idle(session)) {
        count_rest(session, pool_memory_bytes(session->run));
    }
}

int
serve_session_submit(struct serve_job *job, struct pool_request *request, struct err *err)
{
    struct serve_session *session = job->session;
    request->session = &session->policy;
    request->session_context = session;
    request->on_lost = on_lost;
    if (session->state == SESSION_ENDED)
        return err_set(err, -EIDRM, "the session has ended: %.180s", session->reason);
    if (job->opens) {
        if (session->run) /* restarted: what was there goes without a word */
            pool_cancel(session->run);
        serve_files_end(session, "it began again");
        session->run = NULL;
        session->runs = 0;
        request->run = 0;
        request->python = session->python[0] != '\0' ? session->python : NULL;
        int r = pool_submit(session->serve->pool, request, &job->run, err);
        session->run = job->run;
        return r;
    }
    request->run = job->asked->job.completes ? COMPLETE_RUN : ++session->runs;
    int r = session->run ? pool_next(session->run, request, err)
                         : err_set(err, -EIDRM, "the session is lost");
    job->run = r == 0 ? session->run : NULL;
    return r;
}

void
serve_session_take_end(struct serve_job *job, struct outcome *outcome)
{
    struct serve_session *session = job->session;
    memcpy(outcome->session_id, session->id, sizeof(outcome->session_id));
    outcome->execution_count = session->runs;
    if (outcome->session == SESSION_NONE) /* the run never came to it */
        outcome->session =
            session->run && !job->was_submitted ? SESSION_KEPT : SESSION_LOST;
    if (outcome->session == SESSION_LOST && session->state == SESSION_ENDED) {
        snprintf(outcome->session_note, sizeof(outcome->session_note), "%s",
                 session->reason);
        return;
    }
    if (outcome->session == SESSION_LOST) {
        session->run = NULL;
        if (outcome->session_note[0] == '\0')
            snprintf(outcome->session_note, sizeof(outcome->session_note), "%s",
                     outcome->message);
        if (session->state == SESSION_OPEN)
            end(session, outcome->session_note);
        return;
    }
    if (job->opens && session->state == SESSION_OPENING) {
        session->state = SESSION_OPEN;
        session->intent = job->intent; /* its outcome is the session's end */
        job->intent = 0;
    }
}

/* --- what is asked of one --- */

int
serve_session_ask(struct serve_client *client, const struct protocol_request *request,
                  struct err *err)
{
    struct serve *serve = client->serve;
    struct serve_session *session;
    if (request->kind == PROTOCOL_SESSION_LIST) {
        serve_reply_sessions(client, request->id);
        return 0;
    }
    int r = serve_session_find(serve, request->session, &session, err);
    if (r < 0)
        return r;
    if (request->kind == PROTOCOL_SESSION_INTERRUPT && session->current &&
        session->current->run)
        pool_interrupt(session->current->run);
    if (request->kind == PROTOCOL_SESSION_CLOSE)
        close_session(session, "closed on request");
    serve_reply_session(client, request->id, session);
    return 0;
}

/* --- memory --- */

void
serve_session_measure(struct serve *serve, size_t most)
{
    struct serve_session *session = serve->measured ? serve->measured : serve->sessions;
    for (; session && most > 0; session = session->after) {
        if (!is_idle(session))
            continue;
        count_rest(session, pool_memory_bytes(session->run));
        most--;
    }
    serve->measured = session;
}

static struct serve_session *
longest_idle(const struct serve *serve)
{
    struct serve_session *longest = NULL;
    for (struct serve_session *at = serve->sessions; at; at = at->after)
        if (is_idle(at) && at->policy.session_pressure == SESSION_PRESSURE_CLOSE &&
            (!longest || at->last_us < longest->last_us))
            longest = at;
    return longest;
}

uint64_t
serve_session_close_idle(struct serve *serve, uint64_t bytes, size_t most,
                         const char *reason)
{
    uint64_t closed = 0, freed = 0;
    while (closed < most && freed < bytes) {
        struct serve_session *session = longest_idle(serve);
        if (!session)
            break;
        freed += session->rest_bytes;
        close_session(session, reason);
        closed++;
    }
    return closed;
}

void
serve_session_count(const struct serve *serve, size_t *ret_idle)
{
    *ret_idle = 0;
    for (const struct serve_session *at = serve->sessions; at; at = at->after)
        *ret_idle += is_idle(at);
}

void
serve_session_end_all(struct serve *serve, const char *reason)
{
    for (struct serve_session *at = serve->sessions; at; at = at->after) {
        at->run = NULL;
        if (at->state != SESSION_ENDED)
            end(at, reason);
    }
}

void
serve_session_free_all(struct serve *serve)
{
    while (serve->sessions)
        free_session(serve->sessions);
}
