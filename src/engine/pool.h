/*
 * Where a supervisor's cells come from: warm ones out of a zygote's pool, a cold one
 * where there is no zygote for the request. One event loop, no threads; every run ends
 * with on_end, once.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "cell/files.h"
#include "job/job.h"
#include "job/outcome.h"
#include "job/run_event.h"
#include "policy/policy.h"

struct pool;
struct pool_run;

struct pool_options {
    struct event_base *base; /* borrowed */
    const char *python; /* of the default environment; NULL: the default interpreter */
    uint64_t idle_min,
        idle_max; /* pooled cells that wait, for each environment; 0: 2, 16 */
    const char *const *modules; /* that zygotes import; NULL: the usual ones */
    size_t modules_n;
    /* One line for whoever looks after the supervisor; may be NULL. */
    void (*on_note)(void *context, const char *line);
    void *context;
};

struct pool_request {
    const struct policy *policy; /* borrowed until on_end */
    const struct job *job;       /* borrowed until on_end */
    const char *python;          /* NULL: the pool's own */
    /* A session's: its cell stays when the run has ended, for pool_next, and waits under this.
     * NULL: a run of its own. Borrowed until the session has ended. */
    const struct policy *session;
    bool validate_only; /* the code is looked at and never run */
    uint32_t run;       /* in the session, from 1; 0: what opens it */
    /* The session has died while it waited; the run is the pool's again. */
    void (*on_lost)(void *session_context, const struct outcome *outcome);
    void *session_context;
    int collect_dir; /* borrowed until on_end; -1: none */
    void (*on_output)(void *context, int stream, struct span bytes);    /* may be NULL */
    void (*on_display)(void *context, const struct display_item *item); /* may be NULL */
    void (*on_event)(void *context, const struct run_event *event);     /* may be NULL */
    /* The outcome is complete; it is the pool's and lives until this returns. */
    void (*on_end)(void *context, const struct outcome *outcome);
    void *context;
};

enum { POOL_KINDS_MAX = 8 };

/* Cells of one policy, interpreter and set of folders. */
struct pool_kind {
    const char *policy; /* borrowed */
    bool ready; /* runs find warm cells; else its zygote is starting, or none comes */
    bool rests; /* its zygote was given back, because memory was short */
    uint64_t idle, making, busy;
    uint64_t cells, age_ms; /* of its zygote */
    uint64_t memory_bytes;
};

struct pool_status {
    uint64_t zygotes, idle, busy;     /* cells that wait for a job, and that run one */
    uint64_t runs, runs_cold, failed; /* since the start */
    uint64_t memory_bytes; /* of zygotes and idle cells, as far as it is known */
    struct pool_kind kinds[POOL_KINDS_MAX];
    size_t kinds_n;
};

/* Starts a zygote for runs under this policy (borrowed for the call), so that the first of
 * them finds it warm. Without it the first run starts it, and is cold. */
int pool_warm(struct pool *pool, const struct policy *policy, struct err *err) MUST_USE;
int pool_new(const struct pool_options *options, struct pool **ret,
             struct err *err) MUST_USE;
/* Starts a run; on failure on_end is not called. */
int pool_submit(struct pool *pool, const struct pool_request *request,
                struct pool_run **ret, struct err *err) MUST_USE;
/* The next run of a session, after on_end has told of one whose session was kept. On failure it
 * goes on waiting. */
int pool_next(struct pool_run *run, const struct pool_request *request,
              struct err *err) MUST_USE;
/* KeyboardInterrupt; what does not end of it loses its session. on_end follows. */
void pool_interrupt(struct pool_run *run);
/* See cell_files. */
int pool_files(const struct pool_run *run, struct files_task *task,
               struct files_work **ret, struct err *err) MUST_USE;
/* What the cell of a session holds; 0: nobody counts. */
uint64_t pool_memory_bytes(const struct pool_run *run);
/* Ends a run that nobody waits for any more; on_end is still called, with
 * STATUS_FAILED. Ends a session too; one that waits, without a word. */
void pool_cancel(struct pool_run *run);
/* In on_end: the outcome stays, with the run, until pool_release. Its cell goes all the same. */
void pool_hold(struct pool_run *run);
void pool_release(struct pool_run *run);
/* While memory is short: at most so many idle cells of each kind. How many have gone. */
uint64_t pool_hold_idle(struct pool *pool, uint64_t most);
/* Gives back the zygote of the kind that nobody uses and that was not used for longest, if that is
 * at least so long: true. */
bool pool_give_zygote(struct pool *pool, uint64_t unused_ms);
/* Starts one of those again, if there is one: true. */
bool pool_wake_zygote(struct pool *pool);
/* Reads a file or two for each zygote and idle cell. */
void pool_status(const struct pool *pool, struct pool_status *ret);
/* Ends whatever still runs, at once, without on_end. */
void pool_free(struct pool *pool);
