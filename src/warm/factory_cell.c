/*
 * One cell of a factory, step by step: an init in fresh namespaces, its identity map, its own
 * /tmp and /proc; a process forked by the zygote into them; then init closes itself and seals.
 * The supervisor hears of it when all of that is done, and gives it a job no earlier.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "guest/wire.h"
#include "kernel/kernel.h"
#include "warm/factory_parts.h"

enum {
    IDLE_MS = 1000,
    INIT_SOCKET_FD = 3,
    INIT_JOINED_FD,
    INIT_JOINS_FD,
    INIT_FREE_FD = INIT_JOINS_FD + CGROUP_SLOTS,
};

/* What an init says to the factory, twice: entered (with descriptors), and sealed. */
struct init_word {
    struct err err; /* code 0: done */
};

struct making {
    struct factory *factory;
    struct factory_cell *cell;
    const int *fds;
    size_t fds_n;
    int socket; /* to the new init */
    int joined; /* pipe to it: the program's side */
    int pidfd;
    int entered[3]; /* its /tmp, its /proc, its Landlock ruleset */
};

/* --- the init --- */

static NORETURN void
tell_failure(const struct err *err)
{
    struct init_word word = {*err};
    (void)!fd_send(INIT_SOCKET_FD, &word, sizeof(word), NULL, 0);
    _exit(EXIT_FAILURE);
}

static void
await_byte(int fd)
{
    char byte;
    ssize_t n;
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(EXIT_FAILURE);
}

static void
init_enter(const struct making *making, int socket, int joined, struct err *err)
{
    enum { FIXED = 2 };
    struct process_fd kept[FIXED + CGROUP_SLOTS] = {{socket, INIT_SOCKET_FD},
                                                    {joined, INIT_JOINED_FD}};
    int joins[CGROUP_SLOTS] = {-1, -1, -1}, reach;
    size_t n = FIXED;
    for (size_t i = FACTORY_JOINS; i < making->fds_n; i++, n++) {
        joins[n - FIXED] = INIT_JOINS_FD + (int)(n - FIXED);
        kept[n] = (struct process_fd){making->fds[i], joins[n - FIXED]};
    }
    if (process_keep_fds(kept, n, INIT_FREE_FD, &reach, err) < 0)
        _exit(EXIT_FAILURE);
    if (cgroup_join(joins, err) < 0)
        tell_failure(err);
    close_range(INIT_JOINS_FD, INIT_FREE_FD, 0);
}

/* Reaps orphans until it is killed: the program itself is the factory's child. */
static NORETURN void
init_loop(void)
{
    for (;;)
        if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
            (void)poll(NULL, 0, IDLE_MS); /* SIGCHLD ends it sooner */
}

static void
on_child(int number)
{
    (void)number;
}

static NORETURN void
be_init(const struct making *making, int socket, int joined)
{
    struct err err = {0};
    struct jail_entered entered;
    struct init_word word = {{0}};
    struct sigaction wake = {.sa_handler = on_child};
    const struct jail_plan *plan = making->factory->task->cell;
    int no_listener;

    process_reset_signals();
    init_enter(making, socket, joined, &err);
    await_byte(INIT_SOCKET_FD); /* the identity map is written */
    if (jail_enter(plan, &entered, &err) < 0)
        tell_failure(&err);
    const int given[] = {entered.tmp_fd, entered.proc_fd, entered.landlock_fd};
    if (fd_send(INIT_SOCKET_FD, &word, sizeof(word), given, 3) < 0)
        _exit(EXIT_FAILURE);
    close(entered.tmp_fd);
    close(entered.proc_fd);
    /* The program has joined (its death says no more than that it has not): nobody needs to
     * look at us any more. */
    await_byte(INIT_JOINED_FD);
    close(INIT_JOINED_FD);
    sigaction(SIGCHLD, &wake, NULL);
    struct seal seal = plan->init_seal;
    seal.landlock_fd = entered.landlock_fd;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        jail_seal(&seal, &no_listener, &err) < 0)
        tell_failure(&err);
    if (fd_send(INIT_SOCKET_FD, &word, sizeof(word), NULL, 0) < 0)
        _exit(EXIT_FAILURE);
    init_loop();
}

/* --- the factory --- */

struct factory_cell *
factory_find(struct factory *factory, pid_t pid)
{
    for (size_t i = 0; i < FACTORY_CELLS_MAX && pid > 0; i++)
        if (factory->cells[i].id != 0 &&
            (factory->cells[i].init == pid || factory->cells[i].program == pid))
            return &factory->cells[i];
    return NULL;
}

void
factory_forget(struct factory *factory, struct factory_cell *cell)
{
    factory_net_return(factory, cell);
    *cell = (struct factory_cell){.net = -1};
}

struct factory_cell *
factory_find_id(struct factory *factory, uint32_t id)
{
    for (size_t i = 0; i < FACTORY_CELLS_MAX; i++)
        if (factory->cells[i].id == id)
            return &factory->cells[i];
    return NULL;
}

/* Sockets belong to the namespace that they are made in: ours are made at home. */
static int
clone_init(struct making *making, int socket, int joined, struct err *err)
{
    const struct jail_plan *plan = making->factory->task->cell;
    uint64_t flags = jail_clone_flags(plan) | CLONE_PIDFD;
    bool lent = factory_net_is_lent(plan);
    if (lent) {
        flags &= ~(uint64_t)CLONE_NEWNET;
        if (factory_net_enter(making->factory, making->cell, err) < 0)
            return err->code;
    }
    pid_t pid = k_clone(flags, SIGCHLD, &making->pidfd);
    if (pid == 0)
        be_init(making, socket, joined);
    if (pid < 0)
        err_sys(err, "start the cell's init");
    else
        making->cell->init = pid;
    if (lent && factory_net_leave(making->factory, pid < 0 ? &(struct err){0} : err) < 0)
        _exit(EXIT_FAILURE); /* or what we make next would be in the cell's */
    return pid < 0 ? err->code : 0;
}

static int
start_init(struct making *making, struct err *err)
{
    int ends[2], joined[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make the init's socket");
    making->socket = ends[0];
    if (pipe2(joined, O_CLOEXEC) < 0) {
        err_sys(err, "make the init's pipe");
        close(ends[1]);
        return err->code;
    }
    making->joined = joined[1];
    int r = clone_init(making, ends[1], joined[0], err);
    close(ends[1]);
    close(joined[0]);
    return r;
}

/* As root each cell has a user of its own, out of the factory's range. */
static int
write_maps(struct making *making, struct err *err)
{
    static const char *const files[] = {"uid_map", "gid_map"};
    struct factory *factory = making->factory;
    uint32_t outside =
        factory->task->as_root ? 1 + factory->users++ % (FACTORY_IDS - 1) : 0;
    char path[64], map[64];
    snprintf(map, sizeof(map), "%d %u 1", JAIL_UID, outside);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%d/%s", making->cell->init, files[i]);
        int r = file_write(factory->proc_fd, path, map);
        if (r < 0)
            return err_set(err, r, "write the cell's identity map: %s",
                           strerrordesc_np(-r));
    }
    return 0;
}

static int
hear_init(struct making *making, int *fds, size_t fds_n, struct err *err)
{
    struct init_word word;
    int r = factory_await(making->factory, making->socket, err);
    if (r < 0)
        return err_set(err, r, "the cell's init hangs: it gave no answer within %d s",
                       FACTORY_STEP_S);
    ssize_t n = fd_receive(making->socket, &word, sizeof(word), fds, fds_n);
    if (n != (ssize_t)sizeof(word))
        return err_set(err, -ECHILD, "the cell's init gave no answer");
    if (word.err.code < 0)
        *err = word.err;
    return word.err.code;
}

static int
nudge_init(struct making *making, struct err *err)
{
    int r = fd_send(making->socket, "g", 1, NULL, 0);
    return r < 0 ? err_set(err, r, "the cell's init is gone") : 0;
}

static int
fork_program(struct making *making, struct err *err)
{
    struct factory *factory = making->factory;
    struct zygote_request request = {.magic = GUEST_MAGIC,
                                     .drop_groups = factory->task->as_root};
    struct zygote_reply reply;
    int fds[ZYGOTE_JOINS + CGROUP_SLOTS] = {
        [ZYGOTE_INIT] = making->pidfd,
        [ZYGOTE_JOINED] = making->joined,
        [ZYGOTE_LANDLOCK] = making->entered[2],
        [ZYGOTE_GUEST] = making->fds[FACTORY_GUEST],
        [ZYGOTE_CLAIMS] = making->fds[FACTORY_CLAIMS],
        [ZYGOTE_STDIN] = making->fds[FACTORY_STDIN],
        [ZYGOTE_STDOUT] = making->fds[FACTORY_STDOUT],
        [ZYGOTE_STDERR] = making->fds[FACTORY_STDERR],
    };
    size_t n = ZYGOTE_JOINS;
    for (size_t i = FACTORY_JOINS; i < making->fds_n; i++)
        fds[n++] = making->fds[i];
    int r = fd_send(factory->zygote_socket, &request, sizeof(request), fds, n);
    if (r == 0)
        r = factory_await(factory, factory->zygote_socket, err);
    if (r == 0 && fd_receive(factory->zygote_socket, &reply, sizeof(reply), NULL, 0) !=
                      (ssize_t)sizeof(reply))
        r = -EPIPE;
    if (r < 0) {
        /* A late answer would be taken for that to another request. */
        if (factory->zygote > 0)
            kill(factory->zygote, SIGKILL);
        return err_set(err, r, "the zygote gave no answer");
    }
    if (reply.pid < 0) {
        *err = reply.err;
        return reply.pid;
    }
    making->cell->program = reply.pid;
    factory_trace(reply.pid);
    return 0;
}

static int
make(struct making *making, struct err *err)
{
    int r = start_init(making, err);
    if (r == 0)
        r = write_maps(making, err);
    if (r == 0)
        r = nudge_init(making, err);
    if (r == 0)
        r = hear_init(making, making->entered, 3, err);
    if (r == 0)
        r = fork_program(making, err);
    fd_close(&making->joined); /* the program's own is the last one */
    making->joined = -1;
    if (r == 0)
        r = hear_init(making, NULL, 0, err);
    return r;
}

/* Of what could not be made GONE follows when it is reaped, as of any other. */
static void
leave(struct factory *factory, struct factory_cell *cell, bool is_made)
{
    cell->is_making = false;
    cell->is_ended = !is_made;
    if (!is_made && cell->init > 0)
        kill(cell->init, SIGKILL);
    factory_bury(factory, cell);
}

void
factory_make(struct factory *factory, uint32_t id, const int *fds, size_t fds_n)
{
    struct factory_report report = {.kind = FACTORY_MADE, .id = id};
    struct making making = {.factory = factory,
                            .cell = factory_find_id(factory, 0),
                            .fds = fds,
                            .fds_n = fds_n,
                            .socket = -1,
                            .joined = -1,
                            .pidfd = -1,
                            .entered = {-1, -1, -1}};
    int r = !making.cell || fds_n < FACTORY_JOINS
                ? err_set(&report.err, -EAGAIN, "the factory has no room for a cell")
                : 0;
    if (r == 0) {
        *making.cell = (struct factory_cell){.id = id, .net = -1, .is_making = true};
        r = make(&making, &report.err);
        making.cell->is_clean = r == 0;
    }
    if (r < 0)
        report.kind = FACTORY_FAILED;
    factory_report(&report, making.entered, r == 0 ? 2 : 0);
    if (making.cell)
        leave(factory, making.cell, r == 0);
    else
        factory_report(&(struct factory_report){.kind = FACTORY_GONE, .id = id}, NULL, 0);
    fd_close(&making.socket);
    fd_close(&making.pidfd);
    for (size_t i = 0; i < 3; i++)
        fd_close(&making.entered[i]);
}

void
factory_kill(struct factory *factory, uint32_t id)
{
    struct factory_cell *cell = factory_find_id(factory, id);
    if (!cell || cell->init <= 0)
        return;
    cell->is_ended = true;
    kill(cell->init, SIGKILL);
}

void
factory_interrupt(struct factory *factory, uint32_t id)
{
    struct factory_report report = {.kind = FACTORY_INTERRUPTED, .id = id};
    struct factory_cell *cell = factory_find_id(factory, id);
    if (cell && cell->program > 0) /* not reaped: the number is still its own */
        kill(cell->program, SIGINT);
    factory_report(&report, NULL, 0);
}
