/*
 * The factory: pid 1 of a jail in which one zygote lives and cells are made. Runs between
 * clone and death without allocating; speaks with the supervisor over one SOCK_SEQPACKET
 * socket, which is also its lifeline: when it closes, the factory ends, and the kernel ends
 * everything in its pid namespace with it: the zygote, every cell, every process of theirs.
 *
 *   supervisor ── factory (pid 1, no user code, no Python)
 *                   ├── zygote            warm interpreter, forks on request
 *                   ├── init of a cell    pid 1 of namespaces of its own
 *                   └── the cell          forked by the zygote into those (CLONE_PARENT)
 *
 * So the wait status of a cell's program is seen by code that user code cannot touch.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/jail.h"

enum {
    FACTORY_CELLS_MAX = 1024, /* alive at once in one factory */
    FACTORY_IDS = 255,        /* users that its cells are spread over, when we are root */
};

enum factory_request_kind {
    FACTORY_MAKE = 1, /* with descriptors in the order of enum factory_fd */
    FACTORY_KILL,
    FACTORY_CLEAR,     /* kills whatever runs in the cell beside its program */
    FACTORY_INTERRUPT, /* SIGINT to the cell's program, as a terminal would send it */
};
enum factory_fd {
    FACTORY_GUEST,
    FACTORY_CLAIMS,
    FACTORY_STDIN,
    FACTORY_STDOUT,
    FACTORY_STDERR,
    FACTORY_JOINS, /* up to CGROUP_SLOTS: see cgroup_join */
};
struct factory_request {
    uint32_t kind;
    uint32_t id; /* chosen by the supervisor, never 0 */
};

enum factory_report_kind {
    FACTORY_MADE = 1,    /* with two descriptors: the cell's /tmp and its /proc */
    FACTORY_FAILED,      /* err says why; id 0: the zygote, no more cells can come */
    FACTORY_ENDING,      /* the cell's program runs no more code: wait_status */
    FACTORY_EXITED,      /* the cell's program has ended: wait_status, usage */
    FACTORY_INTERRUPTED, /* the signal is on its way: what is sent now comes after it */
    FACTORY_CLEARED,     /* err: not all of it could be ended */
    FACTORY_GONE,        /* … and nothing of the cell is left */
};
struct factory_report {
    uint32_t kind;
    uint32_t id;
    int32_t wait_status;
    uint64_t cpu_us, peak_bytes; /* of the program and its waited-for children */
    struct err err;
};

struct factory_task {
    const struct jail_plan *plan; /* JAIL_FACTORY */
    const struct jail_plan *cell; /* JAIL_CELL: what each cell enters */
    char *const *argv;            /* of the zygote's interpreter */
    char *const *envp;
    int report; /* the factory's end of its socket */
    int zygote; /* the zygote's end of its own socket to the supervisor */
    int stderr_fd;
    bool as_root; /* cells get users of their own, out of the range that is mapped */
};

/* Runs in the cloned child and does not return. */
NORETURN void factory_main(const struct factory_task *task);
