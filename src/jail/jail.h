/*
 * Applies a policy to this process. Confinement has two halves:
 *
 *   jail_enter  namespaces, mounts, identity: once, by the cell's init, which clone3 has put into
 *               fresh namespaces and which still has capabilities there;
 *   jail_seal   rlimits, capabilities, no_new_privs, Landlock, seccomp: in every process of ours
 *               that stays in the cell, needing no privilege, just before it meets user code.
 *
 * Whatever allocates (the BPF program, the mount list) is made before the fork, in a jail_plan.
 * Between clone and seal nothing here allocates, prints or locks; failures are a struct err.
 * The order of both halves is a table with a reason for each step: jail_enter_steps (enter.c)
 * and jail_seal_steps (seal.c).
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/image.h"
#include "job/job_folder.h"
#include "policy/policy.h"

enum {
    SEAL_FILTER_MAX = 4096, /* BPF instructions: the kernel's own BPF_MAXINSNS */
    SEAL_RLIMITS = 8,
    JAIL_UID = 1000, /* inside; also the gid */
    JAIL_PATH_BYTES = 512,
};

/* Everything that jail_seal needs, plain data: it crosses a socket into the cell. */
struct seal {
    struct {
        int32_t resource;
        uint32_t set; /* 0: row unused */
        uint64_t value;
    } rlimits[SEAL_RLIMITS];
    int32_t landlock_fd;   /* ruleset descriptor in the sealing process; -1: none */
    uint32_t landlock_abi; /* 0: this host has no Landlock */
    uint32_t landlock_audit_off;
    uint32_t filter_n; /* instructions in filter; 0: no filter */
    uint32_t notify;   /* 1: ask the kernel for a listener */
    struct sock_filter filter[SEAL_FILTER_MAX];
};

struct seal_run {
    const struct seal *seal;
    int *ret_notify_fd; /* -1 when seal->notify is 0 */
};
struct seal_step {
    const char *name;
    const char *why; /* why it stands where it stands */
    int (*run)(struct seal_run *run, struct err *err);
};
extern const struct seal_step jail_seal_steps[];
extern const size_t jail_seal_steps_n;

/* Runs every step in order; the first failure ends it, and the process must then die. */
int jail_seal(const struct seal *seal, int *ret_notify_fd, struct err *err) MUST_USE;

/* What is entered. A factory is a jail that makes more of them: it keeps its capabilities in
 * its own user namespace and never sees user code; its cells share its tree. */
enum jail_kind { JAIL_NAMESPACES, JAIL_LANDLOCK, JAIL_FACTORY, JAIL_CELL };

/* What one cell is made of, built by the supervisor before the fork and read-only after
 * it. */
struct jail_plan {
    enum jail_kind kind;
    uid_t uid_inside;                  /* and gid: JAIL_UID, or 0 in a factory */
    const struct policy *policy;       /* borrowed */
    const struct image *image;         /* borrowed */
    const struct job_folders *folders; /* borrowed; NULL: none */
    char guest_file[JAIL_PATH_BYTES];  /* on the host: the guest extension */
    char scratch_dir[JAIL_PATH_BYTES]; /* landlock isolation: the private folder */
    bool as_root; /* a uid of its own, and supplementary groups are dropped */
    int landlock_abi;
    const struct filter_store *filters; /* borrowed; NULL: none */
    unsigned when;                      /* which rows of the system-call table hold */
    struct seal seal; /* for the interpreter; its filter comes with jail_plan_filter */
    struct seal init_seal; /* for the cell's init: a far narrower filter */
};

/* Filters that were compiled before: that takes longer than all else that is ours in a cold run. */
enum { FILTER_NAME_BYTES = 24 };
struct filter_store {
    /* The one of this name, into ret->filter and filter_n; false: none that can be trusted. */
    bool (*find)(const char *name, struct seal *ret);
    void (*keep)(const char *name, const struct seal *seal);
};

/* Resolves policy and image into a plan. A layer that the policy needs and this kernel
 * lacks is an error that says how to mend it. pids_by_kernel: a pids cgroup counts, no
 * rlimit is needed. */
int jail_plan_build(const struct policy *policy, const struct image *image,
                    const char *guest_file, bool pids_by_kernel,
                    const struct filter_store *filters, struct jail_plan *ret,
                    struct err *err) MUST_USE;
/* Gives the plan folders of the host; refuses one that would hide what the cell needs. */
int jail_plan_folders(struct jail_plan *plan, const struct job_folders *folders,
                      struct err *err) MUST_USE;
/* The interpreter's filter: found, or compiled, which takes 1.6 ms and more, that the supervisor
 * spends while the new interpreter starts. Without it plan->seal is refused by the guest (fail closed). */
int jail_plan_filter(struct jail_plan *plan, struct err *err) MUST_USE;

/* The host's uid and gid of a cell when we are root: one for each live init, from a range
 * that no account, container or nspawn machine is given (systemd's UIDs and GIDs
 * document). */
enum { JAIL_HOST_UID_BASE = 1879048192 };
/* Users of workspaces, beyond those: the same one each time. */
enum {
    JAIL_WORKSPACE_UID_BASE = JAIL_HOST_UID_BASE + (1 << 24),
    JAIL_WORKSPACE_UIDS = 1 << 24
};
static inline uid_t
jail_host_uid(pid_t init)
{
    return (uid_t)JAIL_HOST_UID_BASE + (uid_t)init;
}

/* clone3 flags of the new namespaces. */
uint64_t jail_clone_flags(const struct jail_plan *plan);

/* Descriptors that jail_enter leaves open for the caller (close-on-exec). */
struct jail_entered {
    int tmp_fd;      /* the cell's /tmp: collected from after its death */
    int proc_fd;     /* the cell's /proc, or -1 */
    int landlock_fd; /* the ruleset to restrict with, or -1 */
};

enum {
    JAIL_DEVICES = 5,
    JAIL_SOURCES_MAX =
        IMAGE_PATHS_MAX + POLICY_LIST_MAX + JOB_FOLDERS_MAX + JAIL_DEVICES + 2
};

struct enter_run {
    const struct jail_plan *plan;
    struct jail_entered *entered;
    struct jail_source { /* a detached copy of a part of the host's tree */
        int fd;
        const char *target; /* absolute, as the cell sees it */
    } sources[JAIL_SOURCES_MAX];
    size_t sources_n;
    int root_fd; /* the new root; the working directory while it is being filled */
};
struct enter_step {
    const char *name;
    const char *why;
    unsigned kinds; /* bits (1 << enum jail_kind): where it applies */
    int (*run)(struct enter_run *run, struct err *err);
};
extern const struct enter_step jail_enter_steps[];
extern const size_t jail_enter_steps_n;

/* In the cloned child: maps are written and the cgroup is joined already. */
int jail_enter(const struct jail_plan *plan, struct jail_entered *ret,
               struct err *err) MUST_USE;

/* Where the guest extension and the private folder are, as the cell sees them. */
const char *jail_guest_file(const struct jail_plan *plan);
/* image->font_list as the cell sees it (namespaces). */
extern const char jail_font_list[];
const char *jail_tmp_dir(const struct jail_plan *plan);

/* --- mounts.c: the steps that build the cell's tree --- */
int mounts_sources(struct enter_run *run, struct err *err) MUST_USE;
int mounts_root(struct enter_run *run, struct err *err) MUST_USE;
int mounts_place(struct enter_run *run, struct err *err) MUST_USE;
int mounts_substitutes(struct enter_run *run, struct err *err) MUST_USE;
int mounts_files(struct enter_run *run, struct err *err) MUST_USE;
int mounts_scratch(struct enter_run *run, struct err *err) MUST_USE;
int mounts_proc(struct enter_run *run, struct err *err) MUST_USE;
int mounts_fonts(struct enter_run *run, struct err *err) MUST_USE;
int mounts_pivot(struct enter_run *run, struct err *err) MUST_USE;

/* --- landlock.c --- */
/* Builds the ruleset for this plan out of the paths as they are now; returns its
 * descriptor. */
int jail_landlock_ruleset(const struct jail_plan *plan, int *ret_fd,
                          struct err *err) MUST_USE;

/* --- syscalls.c and seccomp.c --- */
enum syscall_verdict {
    CALL_ALLOW,
    CALL_QUIET,  /* errno, nothing recorded: libraries probe for it */
    CALL_REFUSE, /* errno, and the supervisor records an incident */
    CALL_END,    /* attack-only: the supervisor ends the cell */
    CALL_BELL,   /* a call that no kernel has: the guest announces what it shows */
};
enum syscall_when {
    WHEN_ALWAYS = 0,
    WHEN_FORK = 1 << 0, /* the policy lets the code fork */
    WHEN_EXEC = 1 << 1, /* … and execute programs */
    WHEN_NO_FORK = 1 << 2,
    WHEN_NO_EXEC = 1 << 3,
    WHEN_LOOPBACK = 1 << 4, /* the policy gives it a loopback of its own */
    WHEN_NO_NETWORK = 1 << 5,
    WHEN_NAMESPACES = 1 << 6,
    WHEN_LANDLOCK = 1 << 7,
    WHEN_UNSCOPED = 1 << 8, /* signals reach outside: no pid namespace, ABI < 6 */
    WHEN_SCOPED = 1 << 9,
};
enum syscall_test { TEST_NONE, TEST_EQ, TEST_NE, TEST_MASKED, TEST_GT, TEST_LT };
struct syscall_test_row {
    unsigned argument;
    enum syscall_test test;
    uint64_t mask, value; /* TEST_MASKED: (argument & mask) == value */
};
struct syscall_row {
    int number; /* negative where this architecture lacks it */
    const char *name;
    enum syscall_verdict verdict;
    int error;
    unsigned when; /* all bits must hold */
    struct syscall_test_row test;
    const char *why;
    struct syscall_test_row and; /* a second condition; TEST_NONE in most rows */
};
/* The first argument of the bell: nobody calls it by mistake. */
enum { JAIL_BELL = 0x61647974 };
extern const struct syscall_row jail_syscalls[];
extern const size_t jail_syscalls_n;

/* The `when` bits that hold for a policy on a kernel with this Landlock ABI. */
unsigned jail_syscall_when(const struct policy *policy, int landlock_abi);
/* The table (for the interpreter) and the short list (for the cell's init), found in the store,
 * which may be NULL, or compiled, into *ret. */
int jail_filter_cell(unsigned when, const struct filter_store *store, struct seal *ret,
                     struct err *err) MUST_USE;
int jail_filter_init(const struct filter_store *store, struct seal *ret,
                     struct err *err) MUST_USE;

/* The row that decides about a call, or NULL (unknown: ENOSYS). */
const struct syscall_row *jail_syscall_row(unsigned when, int number,
                                           const uint64_t arguments[6]);
/* The call as text for an incident: "ptrace(16902)", "socket(AF_INET, SOCK_STREAM)". */
enum { SYSCALL_TEXT_BYTES = 96 };
void jail_syscall_text(int number, const uint64_t arguments[6],
                       char text[SYSCALL_TEXT_BYTES]);
