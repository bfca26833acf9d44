/*
 * A cell that stays: between runs it rests, with its streams unread and nothing of a request in our
 * hands. That a run has ended is what its guest says, over a socket that the code can reach when it
 * looks for it; so whatever comes there is checked, counted and can end its own session only. The
 * clocks, the limits and the death of the program stay facts.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "cell/cell_parts.h"

enum {
    DEATH_MS = 500, /* from a hung-up guest to the word of its factory */
    US_PER_MS = 1000,
    CLEAR_S = 10,   /* a factory that does not answer */
    STRAY_MAX = 64, /* messages of no guest of ours, in the session's life */
};

static const struct job no_job;

/* --- the end of a run --- */

static void
note_base(struct cell *cell)
{
    struct meter now;
    cell_meter(cell, &now);
    cgroup_usage(&cell->cgroup, &cell->earlier);
    cell->base_meter_cpu_us = cell->meter_cpu_us;
}

static void
rest(struct cell *cell)
{
    cell->rests = true;
    cell->going = false;
    source_done(&cell->source);
    cell->request.policy = cell->request.session;
    cell->request.job = &no_job;
    cell->request.on_output = NULL;
    cell->request.on_display = NULL;
    cell->request.on_event = NULL;
    /* What goes on without a run, threads and children or code that has only said that it has
     * ended, is held to as much CPU time as a run. */
    note_base(cell);
    cell_watch_rest(cell);
    cell->request.on_kept(cell->request.context);
}

/* What it wrote before it said so is in the pipes. */
static void
decide_run(struct cell *cell, int exit_code)
{
    struct outcome *outcome = cell->outcome;
    output_take(&cell->out);
    output_take(&cell->err);
    output_pause(&cell->out);
    output_pause(&cell->err);
    events_close(outcome);
    cell_decide_run(cell, exit_code);
    cell_tell_incidents(cell);
}

/* The run is what it was; the session ends, because the policy wants nothing left of it. */
static void
lose_for_background(struct cell *cell, const char *what)
{
    decide_run(cell, cell->exit_code);
    cell->outcome->session = SESSION_LOST;
    snprintf(cell->outcome->session_note, sizeof(cell->outcome->session_note),
             "%s (session_background)", what);
    cell->decided = true;
    cell_end(cell, CAUSE_ABANDON);
}

static void
conclude(struct cell *cell)
{
    decide_run(cell, cell->exit_code);
    cell->outcome->session = SESSION_KEPT;
    rest(cell);
}

void
session_cleared(void *context, const struct err *err)
{
    struct cell *cell = context;
    if (!cell->clears || cell->finished)
        return;
    cell->clears = false;
    event_del(cell->on_wall);
    if (err->code < 0)
        lose_for_background(cell, err->text);
    else
        conclude(cell);
}

static void
hear_end(struct cell *cell, const struct guest_ended *end)
{
    const struct timeval wait = {.tv_sec = CLEAR_S};
    if (cell->cause != CAUSE_NONE || cell->failure.code != 0)
        return; /* it is being ended */
    cell->ended_us = clock_now_us();
    event_del(cell->on_wall);
    cell_forget(&cell->on_tick);
    cell_forget(&cell->on_usage);
    cell->exit_code = end->exit_code;
    if (end->how == GUEST_THREADS_STAY)
        lose_for_background(cell, "a thread that the run left did not end");
    else if (!session_ends_background(cell))
        conclude(cell);
    else {
        cell->clears = true;
        zygote_clear(cell->zygote, cell->warm_id);
        event_add(cell->on_wall, &wait);
    }
}

void
session_refuse(struct cell *cell)
{
    int r = fd_send(cell->guest, "n", 1, NULL, 0);
    if (r < 0 && r != -EPIPE)
        cell_fail(cell, r, "refuse a run");
    cell->refused = true;
    cell->going = true; /* the guest says that it has understood */
}

static void
refused(struct cell *cell)
{
    cell->refused = false;
    event_del(cell->on_wall);
    cell->going = false;
    cell->ended_us = clock_now_us();
    cell->cause = CAUSE_REJECTED;
    output_pause(&cell->out);
    output_pause(&cell->err);
    events_close(cell->outcome);
    cell_decide(cell);
    cell->cause = CAUSE_NONE;
    cell->outcome->session = SESSION_KEPT;
    rest(cell);
}

static bool
is_sound(const struct cell *cell, const struct guest_ended *end, ssize_t n)
{
    return n == (ssize_t)sizeof(*end) && end->magic == GUEST_MAGIC &&
           end->run == cell->request.run && end->kind <= CLAIM_EXIT &&
           (end->how == GUEST_REFUSED) == cell->refused && cell->going && !cell->clears &&
           !cell->decided;
}

void
session_hear(struct cell *cell)
{
    /* A longer message is cut to what there is room for: one byte more tells. */
    union {
        struct guest_ended end;
        char longer[sizeof(struct guest_ended) + 1];
    } sent;
    ssize_t n = fd_receive(cell->guest, &sent, sizeof(sent.longer), NULL, 0);
    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        /* The program is dead, and its factory tells how; or the code has closed it. */
        cell_forget(&cell->on_guest);
        const struct timeval wait = {.tv_usec = DEATH_MS * US_PER_MS};
        if (cell->rests)
            event_add(cell->on_wall, &wait);
        return;
    }
    if (cell->exited)
        return; /* a child of the program, or its last word: its death is the fact */
    if (!is_sound(cell, &sent.end, n)) {
        if (++cell->stray_n > STRAY_MAX)
            cell_end(cell, CAUSE_CHANNEL);
    } else if (cell->refused) {
        refused(cell);
    } else {
        hear_end(cell, &sent.end);
    }
}
_Static_assert(sizeof(struct guest_ended) != sizeof(struct guest_checked) &&
                   sizeof(struct guest_ended) != sizeof(struct guest_finding),
               "told by size");

/* --- interrupts --- */

bool
session_interrupt(struct cell *cell, enum cause cause)
{
    const struct timeval grace =
        cell_time_of(cell->request.policy->session_grace_ms * US_PER_MS);
    if (!session_is_on(cell) || !cell->going || cell->interrupted != CAUSE_NONE)
        return false;
    if (cell->clears)
        return true; /* it has ended */
    cell->interrupted = cause;
    cell->interrupts_out++;
    zygote_interrupt(cell->zygote, cell->warm_id);
    return event_add(cell->on_wall, &grace) == 0;
}

void
cell_interrupt(struct cell *cell)
{
    if (cell->going && cell->interrupted == CAUSE_NONE &&
        !session_interrupt(cell, CAUSE_INTERRUPT))
        cell_end(cell, CAUSE_INTERRUPT);
}

/* --- the next run --- */

static void
go_on(struct cell *cell)
{
    struct err err = {0};
    cell->job_waits = false;
    int r = warm_send(cell, &err);
    if (r < 0 && r != -EPIPE) /* EPIPE: its end is on the way to us */
        cell_fail(cell, r, "give a session its run");
    else if (!validation_is_on(cell))
        cell_go(cell, false);
    else
        cell_validate(cell);
}

/* The signal for the last run is ahead of what is sent now. */
void
session_interrupted(void *context)
{
    struct cell *cell = context;
    if (cell->interrupts_out > 0)
        cell->interrupts_out--;
    if (cell->job_waits && cell->interrupts_out == 0 && !cell->unwanted &&
        !cell->finished)
        go_on(cell);
}

void
cell_wait_with(struct cell *cell, struct outcome *outcome)
{
    cell->outcome = outcome;
    cell->told_n = 0;
    output_into(&cell->out, &outcome->out);
    output_into(&cell->err, &outcome->err);
}

int
cell_next(struct cell *cell, const struct cell_request *request, struct outcome *outcome,
          struct err *err)
{
    if (!cell->rests || cell->cause != CAUSE_NONE || cell->exited)
        return err_set(err, -ECHILD, "the session is ending");
    bool limited = cell->cgroup.version != 0;
    /* The kernel would refuse it, or make room by a kill. */
    if (limited && cgroup_memory_bytes(&cell->cgroup) > request->policy->memory_bytes) {
        char limit[UNITS_TEXT_BYTES];
        return err_set(err, -ENOMEM,
                       "the session holds more memory than the %s that this run may use",
                       format_bytes(request->policy->memory_bytes, limit));
    }
    int r = limited ? cgroup_limit(&cell->cgroup, request->policy, err) : 0;
    if (r < 0)
        return r;
    cell_forget(&cell->on_tick);
    cell_assign(cell, request, outcome);
    cell->rests = false;
    cell->interrupted = CAUSE_NONE;
    cell->ended_us = 0;
    cell->start = "session";
    note_base(cell);
    output_into(&cell->out, &outcome->out); /* its limit is this run's */
    output_into(&cell->err, &outcome->err);
    if (output_resume(&cell->out, err) < 0 || output_resume(&cell->err, err) < 0)
        cell_fail(cell, err->code, "watch a session");
    if (cell->interrupts_out > 0)
        cell->job_waits = true;
    else
        go_on(cell);
    return 0;
}

int
cell_files(const struct cell *cell, struct files_task *task, struct files_work **ret,
           struct err *err)
{
    if (cell->finished || cell->exited || cell->tmp_fd < 0)
        return err_set(err, -ECHILD, "the session is ending");
    task->tmp_dir = cell->tmp_fd;
    task->own_folders = cell_own_folders;
    return files_start(cell->base, task, ret, err);
}

/* --- the end of the session --- */

/* What is about to be decided is not that of a run: none was going, or its guest has left. */
void
session_prepare_end(struct cell *cell)
{
    bool left = cell->exited && WIFEXITED(cell->wait_status) &&
                WEXITSTATUS(cell->wait_status) == GUEST_LEFT;
    if (left && cell->cause == CAUSE_NONE)
        cell->cause = CAUSE_CHANNEL;
    if (cell->rests) {
        cell->going = true;
        cell->started_us = cell->ended_us;
    }
}

void
session_tell_lost(struct cell *cell)
{
    struct outcome *outcome = cell->outcome;
    char *note = outcome->session_note;
    size_t n = sizeof(outcome->session_note);
    outcome->session = SESSION_LOST;
    if (cell->cause == CAUSE_CHANNEL)
        snprintf(note, n, "%s",
                 cell->stray_n > STRAY_MAX ? "its channel was misused by the code"
                                           : "its channel was closed by the code");
    else if (cell->cause == CAUSE_NONE && cell->failure.code == 0 && cell->exited &&
             WIFEXITED(cell->wait_status))
        snprintf(note, n, "the code ended the program itself, with exit code %d",
                 WEXITSTATUS(cell->wait_status));
    else
        snprintf(note, n, "%s",
                 outcome->message[0] != '\0' ? outcome->message : "the cell has ended");
}
