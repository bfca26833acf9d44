/* The factory's loop: see factory.h. Making one cell is factory_cell.c. */
#include "warm/factory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process.h"
#include "guest/wire.h"
#include "warm/factory_parts.h"

enum { REPORT_FD = 3, ZYGOTE_END_FD, STDERR_KEPT_FD, FIRST_FREE_FD };

void
factory_report(const struct factory_report *report, const int *fds, size_t fds_n)
{
    if (fd_send(REPORT_FD, report, sizeof(*report), fds, fds_n) < 0)
        _exit(EXIT_FAILURE); /* the supervisor is gone, or does not listen */
}

static NORETURN void
fail(const struct err *err)
{
    struct factory_report report = {.kind = FACTORY_FAILED, .err = *err};
    factory_report(&report, NULL, 0);
    _exit(EXIT_FAILURE);
}

static void
wait_for_go(void)
{
    char go;
    ssize_t n;
    do
        n = read(REPORT_FD, &go, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(EXIT_FAILURE);
}

/* Capabilities stay: it joins the pid namespaces of cells. It never runs user code, its
 * children drop them in their seal. */
static NORETURN void
be_zygote(const struct factory_task *task, int factory_end)
{
    struct err err = {0};
    int reach;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const struct process_fd kept[] = {{ZYGOTE_END_FD, GUEST_FD},
                                      {factory_end, ZYGOTE_FACTORY_FD},
                                      {null, 0},
                                      {STDERR_KEPT_FD, 1},
                                      {STDERR_KEPT_FD, 2}};
    process_reset_signals();
    if (null < 0 || process_keep_fds(kept, sizeof(kept) / sizeof(*kept),
                                     ZYGOTE_FACTORY_FD + 1, &reach, &err) < 0)
        _exit(EXIT_FAILURE);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(EXIT_FAILURE);
    execve(task->plan->image->executable, task->argv, task->envp);
    _exit(EXIT_FAILURE);
}

static void
start_zygote(struct factory *factory, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        err_sys(err, "make the zygote's socket");
        fail(err);
    }
    factory->zygote = _Fork();
    if (factory->zygote == 0)
        be_zygote(factory->task, ends[1]);
    if (factory->zygote < 0) {
        err_sys(err, "start the zygote");
        fail(err);
    }
    close(ends[1]);
    close(ZYGOTE_END_FD);
    close(STDERR_KEPT_FD);
    factory->zygote_socket = ends[0];
}

static void
report_exit(const struct factory_cell *cell, int status, const struct rusage *usage)
{
    struct factory_report report = {.kind = FACTORY_EXITED,
                                    .id = cell->id,
                                    .wait_status = status,
                                    .cpu_us = process_cpu_us(usage),
                                    .peak_bytes = process_peak_bytes(usage)};
    factory_report(&report, NULL, 0);
}

/* The cells that it has forked need it no more; the supervisor asks for no others, and ends
 * us after the last of them. */
static void
zygote_died(struct factory *factory)
{
    struct factory_report report = {.kind = FACTORY_FAILED};
    factory->zygote = 0;
    err_set(&report.err, -ECHILD, "the zygote has died");
    factory_report(&report, NULL, 0);
}

void
factory_bury(struct factory *factory, struct factory_cell *cell)
{
    struct factory_report report = {.kind = FACTORY_GONE, .id = cell->id};
    if (cell->program != 0 || cell->init != 0 || cell->is_making)
        return;
    factory_report(&report, NULL, 0);
    factory_forget(factory, cell);
}

/* An init that dies takes its program along first. Its flags in /proc tell. */
static bool
init_is_dying(const struct factory *factory, const struct factory_cell *cell)
{
    enum { STAT_BYTES = 512, FLAGS_FIELD = 9, PF_EXITING = 0x4 };
    char path[32], text[STAT_BYTES];
    snprintf(path, sizeof(path), "%d/stat", cell->init);
    if (cell->init <= 0 || file_read(factory->proc_fd, path, text, sizeof(text)) < 0)
        return true;
    const char *at = strrchr(text, ')'); /* the name's: field 2 */
    for (int field = 2; at && field < FLAGS_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at && (strtoul(at, NULL, 10) & PF_EXITING);
}

/* A program cannot kill its init: somebody outside has. Told before the program's end, which
 * would look like its own doing. */
static void
check_init(const struct factory *factory, const struct factory_cell *cell, int status)
{
    struct factory_report report = {.kind = FACTORY_FAILED, .id = cell->id};
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || cell->is_ended ||
        !init_is_dying(factory, cell))
        return;
    err_set(&report.err, -ECHILD, "the cell's init was killed from outside");
    factory_report(&report, NULL, 0);
}

/* The program's end is its cell's: init's death takes what is left of it along. */
static void
reaped(struct factory *factory, pid_t pid, int status, const struct rusage *usage)
{
    struct factory_cell *cell = factory_find(factory, pid);
    if (pid == factory->zygote)
        zygote_died(factory);
    if (!cell)
        return; /* or an orphan from elsewhere in the jail */
    if (pid == cell->program) {
        cell->program = 0;
        check_init(factory, cell, status);
        report_exit(cell, status, usage);
        if (cell->init > 0)
            kill(cell->init, SIGKILL);
    } else {
        cell->init = 0;
    }
    factory_bury(factory, cell);
}

static void
reap_all(struct factory *factory)
{
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid <= 0)
            return;
        if (WIFSTOPPED(status))
            factory_pass_on(factory, pid, status);
        else
            reaped(factory, pid, status, &usage);
    }
}

static void
drain_signals(const struct factory *factory)
{
    struct signalfd_siginfo signal_info;
    while (read(factory->signals, &signal_info, sizeof(signal_info)) > 0)
        continue;
}

int
factory_await(struct factory *factory, int socket, struct err *err)
{
    enum { MS_A_S = 1000, US_A_MS = 1000 };
    struct pollfd polls[] = {{socket, POLLIN, 0}, {factory->signals, POLLIN, 0}};
    uint64_t end_us = clock_now_us() + (uint64_t)FACTORY_STEP_S * MS_A_S * US_A_MS;
    for (;;) {
        uint64_t now_us = clock_now_us();
        int left_ms = now_us < end_us ? (int)((end_us - now_us) / US_A_MS) : 0;
        int n = poll(polls, 2, left_ms);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "wait for an answer");
        if (n > 0 && polls[1].revents) {
            drain_signals(factory);
            reap_all(factory);
        }
        if (n > 0 && polls[0].revents)
            return 0;
        if (left_ms == 0)
            return err_set(err, -ETIMEDOUT, "no answer within %d s", FACTORY_STEP_S);
    }
}

static void
on_request(struct factory *factory)
{
    struct factory_request request;
    int fds[FACTORY_JOINS + CGROUP_SLOTS];
    enum { FDS = sizeof(fds) / sizeof(*fds) };
    ssize_t n = fd_receive(REPORT_FD, &request, sizeof(request), fds, FDS);
    if (n != (ssize_t)sizeof(request))
        _exit(EXIT_SUCCESS); /* the supervisor is gone: so is everything here */
    size_t fds_n = 0;
    while (fds_n < FDS && fds[fds_n] >= 0)
        fds_n++;
    if (request.kind == FACTORY_MAKE)
        factory_make(factory, request.id, fds, fds_n);
    else if (request.kind == FACTORY_KILL)
        factory_kill(factory, request.id);
    else if (request.kind == FACTORY_CLEAR)
        factory_clear(factory, request.id);
    else if (request.kind == FACTORY_INTERRUPT)
        factory_interrupt(factory, request.id);
    for (size_t i = 0; i < fds_n; i++)
        close(fds[i]);
}

static int
watch_children(struct err *err)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    int fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        err_sys(err, "watch the factory's children");
        fail(err);
    }
    return fd;
}

static NORETURN void
serve(struct factory *factory)
{
    struct pollfd polls[] = {{REPORT_FD, POLLIN, 0}, {factory->signals, POLLIN, 0}};
    for (;;) {
        if (poll(polls, 2, -1) < 0 && errno != EINTR)
            _exit(EXIT_FAILURE);
        if (polls[1].revents)
            drain_signals(factory);
        reap_all(factory);
        if (polls[0].revents)
            on_request(factory);
    }
}

void
factory_main(const struct factory_task *task)
{
    struct err err = {0};
    struct jail_entered entered;
    struct factory factory = {.task = task, .zygote_socket = -1, .proc_fd = -1};
    int reach;
    const struct process_fd kept[] = {{task->report, REPORT_FD},
                                      {task->zygote, ZYGOTE_END_FD},
                                      {task->stderr_fd, STDERR_KEPT_FD}};
    process_reset_signals();
    if (process_keep_fds(kept, sizeof(kept) / sizeof(*kept), FIRST_FREE_FD, &reach,
                         &err) < 0)
        _exit(EXIT_FAILURE);
    for (int fd = REPORT_FD; fd < FIRST_FREE_FD; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    close_range(0, 2, 0);
    wait_for_go();
    if (jail_enter(task->plan, &entered, &err) < 0)
        fail(&err);
    factory.proc_fd = entered.proc_fd;
    fd_close(&entered.tmp_fd);
    if (factory_net_open_home(&factory, &err) < 0)
        fail(&err);
    factory.signals = watch_children(&err);
    start_zygote(&factory, &err);
    serve(&factory);
}
