/*
 * The cell's control group: a child of a group that we may write, one for each hierarchy
 * the host has (one with cgroup v2; memory, pids and cpuacct with v1, cgroups(7)). Used
 * by the supervisor alone. Its folders are named adyton-PID-START-N after the supervisor
 * that made them, so that whoever comes later can tell an orphan from a living cell's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "policy/policy.h"

enum { CGROUP_SLOTS = 3, CGROUP_PATH_BYTES = 512, CGROUP_NAME_BYTES = 64 };

struct cgroup_slot {
    char parent[CGROUP_PATH_BYTES]; /* absolute; "" when this hierarchy is not used */
    int dir;                        /* the cell's folder in it; -1 before it is made */
};

struct cgroup {
    int version; /* 2, 1, or 0: none (the policy may make it optional) */
    char name[CGROUP_NAME_BYTES];
    struct cgroup_slot slots[CGROUP_SLOTS]; /* v2: only the first */
};

struct cgroup_usage {
    uint64_t memory_peak_bytes; /* 0: the kernel does not say */
    uint64_t cpu_us;
    uint64_t oom_kills;
    uint64_t pids_refused; /* forks that met pids.max */
    uint64_t pids_peak;    /* init included; 0: the kernel does not say */
};

/* Finds writable parents and names the group; makes nothing. -ENOENT or -EACCES with a
 * sentence when there are none. */
int cgroup_find(struct cgroup *ret, struct err *err) MUST_USE;
/* The folder of our own group in the hierarchy that counts memory, and where that is mounted. */
int cgroup_find_own_memory(char ret_folder[CGROUP_PATH_BYTES],
                           char ret_top[CGROUP_PATH_BYTES]) MUST_USE;
/* Removes groups that dead supervisors have left beneath the same parents. */
void cgroup_sweep(const struct cgroup *cgroup);
/* Another one beneath the same parents: a name, no look around. */
void cgroup_like(const struct cgroup *other, struct cgroup *ret);
/* Removes every group of the supervisor that named this one; for when it is dead. */
void cgroup_remove_family(const struct cgroup *cgroup);
int cgroup_make(struct cgroup *cgroup, const struct policy *policy,
                struct err *err) MUST_USE;
/* Sets the limits again, which a job may have narrowed. */
int cgroup_limit(const struct cgroup *cgroup, const struct policy *policy,
                 struct err *err) MUST_USE;
/* Whether two policies set the same ones. */
bool cgroup_limits_alike(const struct policy *a, const struct policy *b);
/* How many processes and threads are in it, as the kernel counts; 0 when it does not say. */
uint64_t cgroup_population(const struct cgroup *cgroup);
/* Whether cgroup_usage will know the peak of memory. */
bool cgroup_tells_peak(const struct cgroup *cgroup);
/* Opens, for each hierarchy, the file through which the new process joins (cgroup_join);
 * unused places give -1. The caller closes them. */
int cgroup_open_joins(const struct cgroup *cgroup, int ret_fds[CGROUP_SLOTS],
                      struct err *err) MUST_USE;
/* In the new process, while it has one thread; not needed after CLONE_INTO_CGROUP. With
 * v1 a process that moves itself by `tasks` is not held up by the lock that every other
 * move takes, whose RCU grace period is 10 to 20 ms. */
int cgroup_join(const int fds[CGROUP_SLOTS], struct err *err) MUST_USE;
/* v2: the folder's descriptor for CLONE_INTO_CGROUP; -1 with v1. */
int cgroup_clone_fd(const struct cgroup *cgroup);
/* A descriptor that polls readable when the group runs out of memory; -1 when there is
 * none. The caller closes it. */
int cgroup_watch_oom(const struct cgroup *cgroup);
/* What its processes hold now; 0: the kernel does not say. */
uint64_t cgroup_memory_bytes(const struct cgroup *cgroup);
/* CPU time alone: one file. */
uint64_t cgroup_cpu_us(const struct cgroup *cgroup);
void cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *ret);
/* Ends what is still in it, and removes it: 0, or -EBUSY when something stays.
 * Idempotent. */
int cgroup_remove(struct cgroup *cgroup);
void cgroup_init(struct cgroup *cgroup);
/* "v1" or "v2". */
const char *cgroup_label(const struct cgroup *cgroup);
