/* Shared by cgroup.c and cgroup_find.c; nobody else's. */
#pragma once

#include "base/attr.h"

/* The hierarchies of v1 that a cell is counted in. */
enum { SLOT_MEMORY, SLOT_PIDS, SLOT_CPU };

/* Kills what is in PARENT/NAME and removes it; 0 when it is gone. */
int cgroup_slot_remove(const char *parent, const char *name) MUST_USE;
