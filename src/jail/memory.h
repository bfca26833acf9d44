/*
 * How much memory there is left for us: of the host, and of each control group around us that has
 * a limit. Numbers alone; what is too little is not known here.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "jail/cgroup.h"

enum { MEMORY_ROOMS_MAX = 8 };

struct memory_room {
    char where[CGROUP_PATH_BYTES]; /* "host", or the group's folder */
    uint64_t total_bytes, available_bytes;
};

/* Where to look; groups do not move, so it is found once. */
struct memory_watch {
    char folder[CGROUP_PATH_BYTES]; /* our own group's; "": there is none */
    char top[CGROUP_PATH_BYTES];    /* where that hierarchy is mounted */
};

void memory_watch_init(struct memory_watch *watch);
/* The host first, then groups from ours outward; returns how many are known. */
size_t memory_look(const struct memory_watch *watch,
                   struct memory_room rooms[MEMORY_ROOMS_MAX]);

/* A descriptor that polls readable when tasks of the host wait for memory for longer than is
 * usual, until memory_psi_take; -1 where the kernel does not offer that. The caller closes both. */
struct memory_psi {
    int poll, trigger;
};
void memory_psi_open(struct memory_psi *ret);
void memory_psi_take(const struct memory_psi *psi);
void memory_psi_close(struct memory_psi *psi);
