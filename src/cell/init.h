/*
 * The cell's init and what it tells the supervisor: messages on a SOCK_SEQPACKET socket,
 * whose other end is also init's lifeline: when it closes, the supervisor is gone and the
 * cell ends.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/jail.h"
#include "job/job.h"

enum init_message_kind {
    INIT_ENTERED = 1, /* with two descriptors: the cell's /tmp and its /proc */
    INIT_FAILED,      /* err says why; nothing ran */
    INIT_EXITED,      /* the program has ended */
};

struct init_message {
    uint32_t kind;
    int32_t wait_status; /* of INIT_EXITED, as wait(2) gives it; and what it has used */
    uint64_t cpu_us, peak_bytes;
    struct err err; /* of INIT_FAILED */
};

struct init_task {
    const struct jail_plan *plan;
    const struct job *job;
    char *const *argv; /* of the interpreter */
    char *const *envp;
    int report;              /* the socket */
    int guest;               /* the guest's end of its own socket */
    int stdio[3];            /* the interpreter's standard streams */
    int joins[CGROUP_SLOTS]; /* see cgroup_join */
};

/* Runs in the cloned child and does not return. Allocates nothing. */
NORETURN void init_main(const struct init_task *task);
