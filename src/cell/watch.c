/*
 * A living cell in the caller's event loop: what it says, what it uses, when it must end,
 * and that it has ended. Everything of a cell is released here.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process.h"
#include "cell/cell_parts.h"
#include "cell/collect.h"
#include "cell/init.h"

enum {
    MS_US = 1000,
    ABANDON_WAIT_MS = 5000,
};

struct timeval
cell_time_of(uint64_t us)
{
    enum { US_PER_S = 1000000 };
    return (struct timeval){.tv_sec = (time_t)(us / US_PER_S),
                            .tv_usec = (suseconds_t)(us % US_PER_S)};
}

void
cell_end(struct cell *cell, enum cause cause)
{
    if (cell->cause == CAUSE_NONE && !cell->exited)
        cell->cause = cause;
    if (cell->zygote && !cell->finished)
        zygote_kill(cell->zygote, cell->warm_id);
    if (cell->init <= 0)
        return;
    /* With a pid namespace init's death is everybody's. Without one init has to do it:
     * the end of its lifeline tells it to. */
    if (cell->request.policy->isolation == ISOLATION_NAMESPACES)
        kill(cell->init, SIGKILL);
    else
        (void)!fd_send(cell->report, "e", 1, NULL, 0);
}

static void
note_failure(struct cell *cell, const struct err *err)
{
    if (cell->failure.code == 0)
        cell->failure = *err;
}

void
cell_fail(struct cell *cell, int code, const char *what)
{
    struct err err;
    err_set(&err, code, "%s: %s", what, strerrordesc_np(-code));
    note_failure(cell, &err);
    cell_end(cell, CAUSE_ABANDON);
}

void
cell_on_wall(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct cell *cell = context;
    static const struct err late = {-ETIMEDOUT, "a process that it left does not end"};
    if (cell->clears) {
        session_cleared(cell, &late);
        return;
    }
    if (cell->going && session_interrupt(cell, CAUSE_WALL))
        return;
    cell_end(cell, cell->interrupted != CAUSE_NONE ? cell->interrupted
                   : cell->going                   ? CAUSE_WALL
                   : cell->rests                   ? CAUSE_CHANNEL
                   : cell->sealed                  ? CAUSE_CHECK_TIME
                                                   : CAUSE_START);
}

static void
on_oom(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct cell *cell = context;
    char events[4096];
    struct cgroup_usage usage;
    (void)!read(fd, events, sizeof(events));
    /* memory.events also changes for lesser things. */
    cgroup_usage(&cell->cgroup, &usage);
    if (usage.oom_kills > cell->earlier.oom_kills || cell->cgroup.version == 1)
        cell_end(cell, CAUSE_MEMORY);
}

struct event *
cell_watch(struct cell *cell, int fd, short what, event_callback_fn callback,
           uint64_t timeout_us)
{
    struct event *event = event_new(cell->base, fd, what, callback, cell);
    struct timeval timeout = cell_time_of(timeout_us);
    if (event && event_add(event, timeout_us > 0 ? &timeout : NULL) < 0) {
        event_free(event);
        event = NULL;
    }
    if (!event)
        cell_fail(cell, -ENOMEM, "watch the cell");
    return event;
}

void
cell_forget(struct event **event)
{
    if (*event)
        event_free(*event);
    *event = NULL;
}

void
cell_go(struct cell *cell, bool waits)
{
    if (!session_is_on(cell))
        cell_forget(&cell->on_guest);
    cell->going = true;
    /* Heard late, it may have ended already. */
    cell->started_us = cell->ended_us > 0 ? cell->ended_us : clock_now_us();
    struct timeval wall = cell_time_of(cell->request.policy->wall_ms * MS_US);
    event_add(cell->on_wall, &wall);
    cell_tick_start(cell);
    cell_tell_started(cell);
    int r = waits ? fd_send(cell->guest, "g", 1, NULL, 0) : 0;
    if (r < 0 && r != -EPIPE) /* EPIPE: it has died, and init reports how */
        cell_fail(cell, r, "let the cell go");
}

void
cell_validate(struct cell *cell)
{
    struct timeval limit = cell_time_of(validation_limit_ms(cell) * MS_US);
    event_add(cell->on_wall, &limit);
}

/* The guest has sealed itself: it may go, or validates first. */
static void
hear_guest(struct cell *cell)
{
    struct guest_ready ready;
    int fds[1];
    ssize_t n = fd_receive(cell->guest, &ready, sizeof(ready), fds, 1);
    if (n == -EAGAIN)
        return;
    if (n != (ssize_t)sizeof(ready) || (!cell->zygote && !validation_is_on(cell)))
        cell_forget(&cell->on_guest);
    if (n < 0 && n != -ECONNRESET) /* that one: it died before it had read its setup */
        cell_fail(cell, (int)n, "hear from the guest");
    if (n != (ssize_t)sizeof(ready) || ready.magic != GUEST_MAGIC)
        return; /* it died on the way: init reports how */
    if (ready.err.code != 0) {
        ready.err.text[sizeof(ready.err.text) - 1] = '\0';
        cell_forget(&cell->on_guest);
        note_failure(cell, &ready.err);
        return;
    }
    cell->sealed = true;
    cell->notify = fds[0];
    if (cell->notify < 0) { /* the message came, its descriptor found no room */
        cell_fail(cell, -EMFILE, "listen to the cell's system calls");
        return;
    }
    cell->on_notify =
        cell_watch(cell, cell->notify, EV_READ | EV_PERSIST, cell_notified, 0);
    if (cell->zygote) {
        warm_sealed(cell);
        return;
    }
    if (!validation_is_on(cell)) {
        cell_go(cell, false);
        return;
    }
    cell_validate(cell);
}

void
cell_on_guest(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct cell *cell = context;
    if (!cell->sealed)
        hear_guest(cell);
    else if (session_is_on(cell) && (cell->going || cell->rests))
        session_hear(cell);
    else
        validation_hear(cell);
}

static bool
has_proc(const struct cell *cell)
{
    return cell->request.policy->isolation == ISOLATION_NAMESPACES;
}

void
cell_note_usage(struct cell *cell, uint64_t cpu_us, uint64_t peak_bytes)
{
    if (cpu_us > cell->meter_cpu_us)
        cell->meter_cpu_us = cpu_us;
    if (peak_bytes > cell->meter_peak_bytes)
        cell->meter_peak_bytes = peak_bytes;
}

void
cell_note_exit(struct cell *cell, int wait_status, uint64_t cpu_us, uint64_t peak_bytes)
{
    cell->exited = true;
    cell->wait_status = wait_status;
    cell->ended_us = clock_now_us();
    cell_note_usage(cell, cpu_us, peak_bytes);
}

void
cell_finish_early(struct cell *cell)
{
    if (!cell->finished && !cell->unwanted && cgroup_population(&cell->cgroup) == 1)
        cell_finish(cell);
}

static void
take_message(struct cell *cell, struct init_message *message, int *fds)
{
    switch (message->kind) {
    case INIT_ENTERED:
        cell->tmp_fd = fd_take(&fds[0]);
        cell->proc_fd = fd_take(&fds[1]);
        if (cell->tmp_fd < 0 || (cell->proc_fd < 0 && has_proc(cell)))
            cell_fail(cell, -EMFILE, "take the cell's /tmp over");
        break;
    case INIT_FAILED:
        message->err.text[sizeof(message->err.text) - 1] = '\0';
        note_failure(cell, &message->err);
        break;
    case INIT_EXITED:
        cell_note_exit(cell, message->wait_status, message->cpu_us, message->peak_bytes);
        break;
    default:
        break;
    }
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

/* As fd_receive: 0 is the end, init has closed its side. */
static ssize_t
read_message(struct cell *cell)
{
    struct init_message message;
    int fds[2];
    ssize_t n = fd_receive(cell->report, &message, sizeof(message), fds, 2);
    if (n == (ssize_t)sizeof(message))
        take_message(cell, &message, fds);
    return n;
}

static void
on_report(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct cell *cell = context;
    ssize_t n = read_message(cell);
    if (n <= 0 && n != -EAGAIN)
        cell_forget(&cell->on_report);
    else if (cell->exited)
        cell_finish_early(cell);
}

static void
stop_watching(struct cell *cell)
{
    struct event **const events[] = {&cell->on_init,   &cell->on_report, &cell->on_guest,
                                     &cell->on_notify, &cell->on_oom,    &cell->on_stdin,
                                     &cell->on_wall,   &cell->on_tick,   &cell->on_usage};
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        cell_forget(events[i]);
}

static void
reap_init(struct cell *cell)
{
    struct rusage usage;
    int status;
    while (wait4(cell->init, &status, 0, &usage) < 0 && errno == EINTR)
        continue;
    cell->init = 0;
    cell_note_usage(cell, process_cpu_us(&usage), process_peak_bytes(&usage));
}

const char *const cell_own_folders[] = {".cache", ".config/matplotlib", NULL};

static void
collect(struct cell *cell)
{
    const struct cell_request *request = &cell->request;
    if (!request->job->collect || cell->tmp_fd < 0 || !cell->going)
        return;
    struct collect_limits limits = {.files = request->policy->collect_files,
                                    .bytes = request->policy->collect_bytes,
                                    .job = request->job,
                                    .own_folders = cell_own_folders};
    struct err err = {0};
    if (collect_files(cell->tmp_fd, &limits, request->collect_dir, cell->outcome, &err) <
        0)
        note_failure(cell, &err);
}

void
cell_release(struct cell *cell)
{
    stop_watching(cell);
    output_done(&cell->out);
    output_done(&cell->err);
    const int *const fds[] = {&cell->init_pidfd,  &cell->report,   &cell->guest,
                              &cell->notify,      &cell->tmp_fd,   &cell->proc_fd,
                              &cell->oom_fd,      &cell->stdin_fd, &cell->claims_fd,
                              &cell->workspace_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        fd_close(fds[i]);
    cell->init_pidfd = cell->report = cell->guest = cell->notify = cell->tmp_fd = -1;
    cell->proc_fd = cell->oom_fd = cell->stdin_fd = cell->claims_fd = -1;
    cell->workspace_fd = -1;
    if (cell->claims)
        munmap(cell->claims, sizeof(struct claims_memory)); /* it begins with them */
    cell->claims = NULL;
    cell->display = NULL;
    bool clean = cgroup_remove(&cell->cgroup) == 0;
    if (cell->scratch_dir[0] != '\0' && keeper_remove_tree(cell->scratch_dir) < 0)
        clean = false;
    if (cell->keeper.pid > 0 && clean)
        keeper_done(&cell->keeper);
    else
        fd_close(&cell->keeper.lifeline); /* it goes on trying */
}

/* A supervisor that was held up meets all of a short run at once, in any order. */
void
cell_catch_up(struct cell *cell)
{
    if (cell->on_guest && !cell->sealed)
        hear_guest(cell);
    if (cell->on_guest && cell->sealed && !cell->rests)
        validation_hear(cell);
}

/* Whatever was in the guest's socket when it died, nobody has read: the kernel says so. */
static void
look_for_unread(struct cell *cell)
{
    char byte;
    if (cell->guest >= 0 && cell->sealed &&
        fd_receive(cell->guest, &byte, sizeof(byte), NULL, 0) == -ECONNRESET)
        cell->unread = true;
}

void
cell_finish(struct cell *cell)
{
    cell_catch_up(cell);
    look_for_unread(cell);
    if (cell->ended_us == 0)
        cell->ended_us = clock_now_us();
    stop_watching(cell);
    output_drain(&cell->out);
    output_drain(&cell->err);
    events_close(cell->outcome);
    collect(cell);
    if (session_is_on(cell))
        session_prepare_end(cell);
    if (!cell->decided)
        cell_decide(cell);
    if (session_is_on(cell) && !cell->decided)
        session_tell_lost(cell);
    cell_tell_incidents(cell);
    cell->finished = true;
    cell->request.on_end(cell->request.context);
}

static void
on_init(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct cell *cell = context;
    if (cell->on_guest && !cell->sealed)
        hear_guest(cell); /* before init's last word: what ended may have been sealed */
    while (read_message(cell) > 0)
        continue;
    reap_init(cell);
    cell_finish(cell);
}

void
cell_watch_memory(struct cell *cell)
{
    cell->oom_fd = cgroup_watch_oom(&cell->cgroup);
    if (cell->oom_fd >= 0)
        cell->on_oom = cell_watch(cell, cell->oom_fd, EV_READ | EV_PERSIST, on_oom, 0);
}

static int
unblock(int fd, const char *what, struct err *err)
{
    int r = fd_set_nonblocking(fd);
    return r < 0 ? err_set(err, r, "watch %s: %s", what, strerrordesc_np(-r)) : 0;
}

int
cell_watch_streams(struct cell *cell, struct err *err)
{
    struct outcome *outcome = cell->outcome;
    const struct job *job = cell->request.job;
    int r = output_start(cell, &cell->out, 1, cell->out.fd, &outcome->out, err);
    if (r == 0)
        r = output_start(cell, &cell->err, 2, cell->err.fd, &outcome->err, err);
    if (r == 0 && job->stdin_bytes.n > 0)
        r = unblock(cell->stdin_fd, "the cell's stdin", err);
    if (r < 0)
        return r;
    if (job->stdin_bytes.n > 0)
        cell->on_stdin =
            cell_watch(cell, cell->stdin_fd, EV_WRITE | EV_PERSIST, cell_feed_stdin, 0);
    else
        close(fd_take(&cell->stdin_fd));
    return cell->failure.code == 0
               ? 0
               : err_set(err, cell->failure.code, "%s", cell->failure.text);
}

static int
start_watching(struct cell *cell, struct err *err)
{
    int r = unblock(cell->report, "the cell's init", err);
    if (r == 0)
        r = unblock(cell->guest, "the guest", err);
    if (r < 0)
        return r;
    cell->on_init = cell_watch(cell, cell->init_pidfd, EV_READ | EV_PERSIST, on_init, 0);
    cell->on_report = cell_watch(cell, cell->report, EV_READ | EV_PERSIST, on_report, 0);
    cell->on_guest =
        cell_watch(cell, cell->guest, EV_READ | EV_PERSIST, cell_on_guest, 0);
    cell->on_wall =
        cell_watch(cell, -1, 0, cell_on_wall, (uint64_t)START_LIMIT_MS * MS_US);
    cell_watch_memory(cell);
    return cell_watch_streams(cell, err);
}

struct cell *
cell_new(struct event_base *base)
{
    struct cell *cell = calloc(1, sizeof(*cell));
    if (!cell)
        return NULL;
    cell->base = base;
    cell->started_us = clock_now_us();
    cell->init_pidfd = cell->report = cell->guest = cell->notify = cell->tmp_fd = -1;
    cell->proc_fd = cell->oom_fd = cell->stdin_fd = cell->claims_fd = -1;
    cell->out.fd = cell->err.fd = cell->keeper.lifeline = cell->workspace_fd = -1;
    cgroup_init(&cell->cgroup);
    return cell;
}

void
cell_assign(struct cell *cell, const struct cell_request *request,
            struct outcome *outcome)
{
    cell->request = *request;
    cell->outcome = outcome;
    source_init(&cell->source, buf_span(&request->job->code));
    policy_check_settings(request->policy, &cell->check);
}

int
cell_start(struct event_base *base, const struct cell_request *request,
           struct outcome *outcome, struct cell **ret, struct err *err)
{
    struct cell *cell = cell_new(base);
    if (cell)
        cell->own_plan = calloc(1, sizeof(*cell->own_plan));
    if (!cell || !cell->own_plan) {
        free(cell);
        return err_set(err, -ENOMEM, "no memory for a cell");
    }
    cell->plan = cell->own_plan;
    cell->start = "cold";
    cell_assign(cell, request, outcome);
    int r = cell_spawn(cell, err);
    if (r == 0)
        r = start_watching(cell, err);
    if (r < 0) {
        cell_free(cell);
        return r;
    }
    *ret = cell;
    return 0;
}

void
cell_free(struct cell *cell)
{
    if (!cell)
        return;
    if (cell->init > 0) {
        if (!cell->exited) /* else init is about to end by itself */
            cell_end(cell, CAUSE_ABANDON);
        /* The lifeline, for an init that waits for its go. */
        close(fd_take(&cell->report));
        reap_init(cell);
    }
    if (cell->zygote && cell->warm_id != 0 && !cell->gone) {
        /* Its groups go when nobody is in them any more: on_gone comes back here. */
        if (!cell->exited)
            zygote_kill(cell->zygote, cell->warm_id);
        stop_watching(cell);
        output_done(&cell->out);
        output_done(&cell->err);
        cell->unwanted = true;
        return;
    }
    cell_release(cell);
    source_done(&cell->source);
    free(cell->own_plan);
    free(cell);
}
