/*
 * A small process that outlives a killed supervisor just long enough to remove what the
 * kernel does not remove by itself: the cell's control groups and, in the landlock
 * isolation, its private folder. It knows the names before anything is made under them.
 */
#pragma once

#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/cgroup.h"

struct keeper {
    pid_t pid;    /* 0: none */
    int lifeline; /* closing it without keeper_done is the supervisor's death */
};

/* family: of a supervisor, for all groups that it ever makes; else for this one alone. */
int keeper_start(const struct cgroup *cgroup, const char *scratch_dir, bool family,
                 struct keeper *ret, struct err *err) MUST_USE;
/* All is removed already: the keeper goes without touching anything. */
void keeper_done(struct keeper *keeper);
/* Removes a folder and everything in it, never following a link; 0 when it is gone. */
int keeper_remove_tree(const char *path) MUST_USE;
