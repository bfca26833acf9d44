/*
 * One run: spawn, watch, decide. The supervisor's half of a cell, driven by the caller's
 * event loop; the other half (init.c) runs inside.
 *
 *   supervisor ── keeper            removes the cell's groups and folder if we are killed
 *        └────── init (pid 1)       enters the jail, starts the interpreter, reaps, reports
 *                  └── interpreter  guest extension: seals itself, becomes the program
 *
 * Facts come from wait statuses, the control group, seccomp notifications and our own
 * clock.
 */
#pragma once

#include <event2/event.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "cell/files.h"
#include "jail/image.h"
#include "job/job.h"
#include "job/outcome.h"
#include "job/run_event.h"
#include "policy/policy.h"

struct cell;

struct zygote;
struct filter_store;

struct cell_request {
    const struct policy *policy; /* all borrowed until `on_end` was called */
    const struct job *job;
    const struct image *image;
    const char *guest_file;             /* the guest extension on the host */
    const struct filter_store *filters; /* of a cold cell; NULL: none */
    bool validate_only; /* look at the code, whatever the policy's mode; never run it */
    /* The cell stays when the run has ended; what it is under between runs. NULL: it ends. Only
     * for a cell that is given its job. */
    const struct policy *session;
    uint32_t run;    /* of the session, from 1 */
    int collect_dir; /* where collected files go, or -1 */
    void (*on_output)(void *context, int stream, struct span bytes); /* may be NULL */
    /* The program has shown something; borrowed from the outcome. May be NULL. */
    void (*on_display)(void *context, const struct display_item *item);
    /* What happens beside the output; borrowed for the call. May be NULL. */
    void (*on_event)(void *context, const struct run_event *event);
    /* The interpreter is starting and has no code yet: what takes time and must come before
     * the code is done here, beside it. A failure ends the cell. May be NULL. */
    int (*before_code)(void *context, struct err *err);
    /* A session's: the run has ended, outcome is filled but for its id, and the cell waits for
     * cell_next. */
    void (*on_kept)(void *context);
    /* The cell is dead and nothing of it is left; outcome is filled but for its id. */
    void (*on_end)(void *context);
    void *context;
};

/* Starts a cell; events on `base` drive it from here. outcome must be initialised and
 * live until on_end. On failure nothing is left, and on_end is not called. */
int cell_start(struct event_base *base, const struct cell_request *request,
               struct outcome *outcome, struct cell **ret, struct err *err) MUST_USE;
/* After on_end, or to abandon a living cell, which ends at once: a cold one before this returns,
 * a warm one, with its groups, when its factory says that it is gone. */
void cell_free(struct cell *cell);

/* --- warm cells --- */

/* What becomes of a warm cell that waits for its job. */
struct cell_warm_events {
    void (*on_idle)(void *context); /* it can be given a job */
    /* It cannot, ever; nothing of it is left. err says why when something failed. Free it. */
    void (*on_lost)(void *context, const struct err *err);
    void *context;
};

/* Asks a zygote for a cell under the zygote's policy. cgroup: one that was found (cgroup.h),
 * whose parents it will share. */
struct cgroup;
int cell_prepare(struct event_base *base, struct zygote *zygote,
                 const struct policy *policy, const struct cgroup *cgroup,
                 const struct cell_warm_events *events, struct cell **ret,
                 struct err *err) MUST_USE;
/* Gives an idle cell its job; the policy is the zygote's, with limits that may be narrower. From
 * here it behaves as one from cell_start. start: "pool" or "warm", for the outcome. */
int cell_give(struct cell *cell, const struct cell_request *request, const char *start,
              struct outcome *outcome, struct err *err) MUST_USE;
/* Gives a cell that waits, after on_kept, its next run; on failure it goes on waiting. outcome must
 * live until its on_kept or on_end. */
int cell_next(struct cell *cell, const struct cell_request *request,
              struct outcome *outcome, struct err *err) MUST_USE;
/* An outcome for what happens until then: a cell that waits may die, with on_end. */
void cell_wait_with(struct cell *cell, struct outcome *outcome);
/* KeyboardInterrupt in the run of a session; what does not end of it is ended. */
void cell_interrupt(struct cell *cell);
/* Works on the files of a session's cell, between runs and during one; tmp_dir and own_folders of
 * the task are filled in here. What is not done when the cell ends is the caller's to cancel. */
int cell_files(const struct cell *cell, struct files_task *task, struct files_work **ret,
               struct err *err) MUST_USE;
/* What an idle cell holds beyond what it shares with its zygote; 0: nobody counts. */
uint64_t cell_memory_bytes(const struct cell *cell);
/* Ends a cell; on_lost or on_end follows when it is gone. */
void cell_stop(struct cell *cell);
