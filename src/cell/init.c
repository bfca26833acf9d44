/*
 * Pid 1 of a cell. It enters the jail, puts the job's files into /tmp, starts the
 * interpreter, seals itself with a far narrower filter, and stays: to reap orphans, to
 * report how the program ended, and to end everything when the program or the supervisor
 * does.
 *
 * Why the program is not pid 1 itself: the kernel spares pid 1 the signals that it has no
 * handler for, so os.kill(os.getpid(), SIGTERM) or abort() would behave unlike anywhere
 * else.
 */
#include "cell/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "guest/wire.h"
#include "kernel/kernel.h"

enum {
    REPORT_FD = 5, /* after GUEST_FD and GUEST_LANDLOCK_FD */
    CHILDREN_FD,   /* landlock isolation: /proc/self/task/…/children */
    FIRST_FREE_FD,
    CHILDREN_BYTES = 16 * 1024,
    KILL_ROUNDS = 20000,
};

static int
report(const struct init_message *message, const int *fds, size_t fds_n)
{
    return fd_send(REPORT_FD, message, sizeof(*message), fds, fds_n);
}

static NORETURN void
fail_on(int socket, const struct err *err)
{
    const struct init_message message = {.kind = INIT_FAILED, .err = *err};
    (void)!fd_send(socket, &message, sizeof(message), NULL, 0);
    _exit(EXIT_FAILURE);
}

static NORETURN void
fail(const struct err *err)
{
    fail_on(REPORT_FD, err);
}

/* Everything above the standard streams, the guest's socket and ours is the supervisor's. */
static int
keep_descriptors(const struct init_task *task, int *socket, struct err *err)
{
    const struct process_fd kept[] = {{task->report, REPORT_FD},
                                      {task->stdio[0], 0},
                                      {task->stdio[1], 1},
                                      {task->stdio[2], 2},
                                      {task->guest, GUEST_FD}};
    int r =
        process_keep_fds(kept, sizeof(kept) / sizeof(*kept), REPORT_FD + 1, socket, err);
    if (r == 0 && fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC) < 0)
        return err_sys(err, "keep init's socket from the interpreter");
    return r;
}

/* One byte: the supervisor has written the identity maps. */
static void
wait_for_go(void)
{
    char go;
    ssize_t n;
    do
        n = read(REPORT_FD, &go, 1);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        struct err err;
        err_sys(&err, "wait for the supervisor's go");
        fail(&err);
    }
    if (n == 0) /* it is gone */
        _exit(EXIT_FAILURE);
}

static int
write_file(const char *name, struct span data, struct err *err)
{
    char part[JOB_PATH_BYTES];
    for (const char *p = strchr(name, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(p - name), name);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_sys(err, "make the folder %s in the cell's /tmp", part);
    }
    AUTO_CLOSE int fd =
        open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_sys(err, "make %s in the cell's /tmp", name);
    int r = fd_write_all(fd, data.p, data.n);
    if (r < 0)
        return err_set(err, r, "write %s (%zu bytes) into the cell's /tmp: %s", name,
                       data.n, strerrordesc_np(-r));
    return 0;
}

/* The working directory is the cell's /tmp, and nobody but us is in it yet. */
static int
place_files(const struct job *job, struct err *err)
{
    int r = write_file(job->name, buf_span(&job->code), err);
    for (size_t i = 0; i < job->files_n && r == 0; i++)
        r = write_file(job->files[i].name, buf_span(&job->files[i].data), err);
    return r;
}

static NORETURN void
start_interpreter(const struct init_task *task)
{
    struct err err = {0};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    /* The one to go first when the cell's memory is full; init must live to tell. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    (void)!file_write(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
    if (task->plan->policy->isolation == ISOLATION_LANDLOCK)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* The guest's seal repeats these; here they hold for the interpreter's own
     * start-up. */
    if (k_capabilities_clear() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        err_sys(&err, "give up privileges before the interpreter starts");
        fail(&err);
    }
    execve(task->plan->image->executable, task->argv, task->envp);
    err_sys(&err, "execute %s in the cell", task->plan->image->executable);
    fail(&err);
}

/* Ends what is left without a pid namespace: as the subreaper, every process of the cell
 * becomes our child sooner or later, so killing children until there is none ends them
 * all. */
static void
kill_children(void)
{
    char text[CHILDREN_BYTES];
    for (int round = 0; round < KILL_ROUNDS; round++) {
        ssize_t n = lseek(CHILDREN_FD, 0, SEEK_SET) < 0
                        ? -1
                        : read(CHILDREN_FD, text, sizeof(text) - 1);
        pid_t pid = 0;
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 1) {
                kill(pid, SIGKILL);
                pid = 0;
            }
        }
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0)
            continue;
        if (reaped < 0 && errno == ECHILD)
            return;
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
}

/* Reaps whoever died; true when the program itself did. */
static bool
reap(pid_t program, struct init_message *ret)
{
    bool ended = false;
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid <= 0)
            return ended;
        if (pid == program) {
            *ret = (struct init_message){.kind = INIT_EXITED,
                                         .wait_status = status,
                                         .cpu_us = process_cpu_us(&usage),
                                         .peak_bytes = process_peak_bytes(&usage)};
            ended = true;
        }
    }
}

static NORETURN void
watch_program(pid_t program, int signals, bool own_pid_namespace)
{
    struct pollfd polls[] = {{REPORT_FD, POLLIN, 0}, {signals, POLLIN, 0}};
    for (;;) {
        if (poll(polls, 2, -1) < 0 && errno != EINTR)
            break;
        if (polls[0].revents)
            break; /* the supervisor never writes twice: it is gone */
        struct signalfd_siginfo signal_info;
        struct init_message message;
        if (polls[1].revents)
            (void)!read(signals, &signal_info, sizeof(signal_info));
        if (reap(program, &message)) {
            (void)!report(&message, NULL, 0);
            break;
        }
    }
    /* With a pid namespace the kernel kills everything in it when we exit. */
    if (!own_pid_namespace)
        kill_children();
    _exit(EXIT_SUCCESS);
}

static int
open_children_list(struct err *err)
{
    AUTO_CLOSE int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "open the list of the cell's processes");
    if (fd != CHILDREN_FD && dup3(fd, CHILDREN_FD, O_CLOEXEC) < 0)
        return err_sys(err, "keep the list of the cell's processes");
    if (fd == CHILDREN_FD)
        fd_take(&fd);
    return 0;
}

static int
block_child_signals(struct err *err)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    int fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? err_sys(err, "watch the cell's processes") : fd;
}

/* What the supervisor collects from and measures by. The interpreter has been forked by then: whoever
 * is woken by this may get our core. */
static void
hand_over(struct jail_entered *entered)
{
    const int given[] = {entered->tmp_fd, entered->proc_fd};
    const struct init_message message = {.kind = INIT_ENTERED};
    struct err err = {0};
    int r = report(&message, given, entered->proc_fd >= 0 ? 2 : 1);
    if (r < 0) {
        err_set(&err, r, "hand the cell's /tmp over: %s", strerrordesc_np(-r));
        fail(&err);
    }
    fd_close(&entered->tmp_fd);
    fd_close(&entered->proc_fd);
}

static void
keep_ruleset(struct jail_entered *entered)
{
    struct err err = {0};
    int r = fd_move(&entered->landlock_fd, GUEST_LANDLOCK_FD);
    if (r < 0) {
        err_set(&err, r, "keep the Landlock ruleset: %s", strerrordesc_np(-r));
        fail(&err);
    }
}

void
init_main(const struct init_task *task)
{
    struct err err = {0};
    struct jail_entered entered;
    bool namespaces = task->plan->policy->isolation == ISOLATION_NAMESPACES;
    int no_listener;

    process_reset_signals();
    int joined = cgroup_join(task->joins, &err);
    struct err lost;
    int socket = task->report;
    if (keep_descriptors(task, &socket, &lost) < 0)
        fail_on(socket, &lost);
    if (joined < 0)
        fail(&err);
    wait_for_go();
    if (!namespaces && open_children_list(&err) < 0)
        fail(&err);
    if (jail_enter(task->plan, &entered, &err) < 0 || place_files(task->job, &err) < 0)
        fail(&err);
    keep_ruleset(&entered);

    int signals = block_child_signals(&err);
    pid_t program = signals < 0 ? -1 : _Fork(); /* no handlers, no locks */
    if (program == 0)
        start_interpreter(task);
    if (program < 0) {
        if (signals >= 0)
            err_sys(&err, "start a process for the interpreter");
        fail(&err);
    }
    hand_over(&entered);
    for (int fd = 0; fd <= GUEST_FD; fd++)
        close(fd);
    if (jail_seal(&task->plan->init_seal, &no_listener, &err) < 0)
        fail(&err);
    watch_program(program, signals, namespaces);
}
