/*
 * What this kernel offers to this process, found by trying each thing as a cell would use
 * it: never by version numbers, since configuration, boot options, security modules and
 * containers take away what a version promises.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

enum {
    HOST_ROWS_MAX = 32,
    HOST_DETAIL_BYTES = 300,
    HOST_REMEDY_BYTES = 160,
};

enum host_state {
    HOST_YES,
    HOST_NO,
    HOST_NOTE, /* neither good nor bad: worth knowing */
};

/* What cannot be without the row; a sum of these. */
enum host_need {
    HOST_FOR_NAMESPACES = 1 << 0, /* isolation: namespaces */
    HOST_FOR_LANDLOCK = 1 << 1,   /* isolation: landlock */
    HOST_FOR_CGROUP = 1 << 2,     /* cgroup: required */
};

struct host_row {
    const char *name;
    enum host_state state;
    unsigned needed_for;            /* enum host_need */
    char detail[HOST_DETAIL_BYTES]; /* what was seen: "ABI 7", "refused: …" */
    const char *cost;               /* what is lost without it */
    char remedy[HOST_REMEDY_BYTES]; /* a command or option that mends it, or "" */
};

struct host {
    uid_t uid;
    bool in_container;
    struct host_row rows[HOST_ROWS_MAX];
    size_t rows_n;
    /* Whether every row that it needs is there. */
    bool namespaces, landlock, cgroup;
};

/* Takes some 20 ms. Leaves no process, mount, descriptor or cell's control group behind;
 * with cgroup v2 it may leave the parent that cells have their groups in, as each run
 * does. */
int host_probe(struct host *ret, struct err *err) MUST_USE;

/* "yes", "no", "note". */
const char *host_state_name(enum host_state state);
