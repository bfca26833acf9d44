/*
 * From a policy to a plan: everything a cell's init will need, resolved before the fork.
 * Decides which layers this kernel must have, and refuses in words where one is missing.
 */
#include "jail/jail.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/kernel.h"

enum {
    /* Room for address space that is reserved and never touched (thread stacks, mmap of
     * large files, numpy.empty), while an absurd allocation still fails as MemoryError at
     * once. */
    ADDRESS_SPACE_SLACK_GIB = 64,
    /* Not 0: a core_pattern that is a pipe would still start the host's crash handler on
     * the cell's memory; the kernel spares only processes whose limit is exactly 1
     * (core(5)). */
    CORE_BYTES = 1,
    MESSAGE_QUEUE_BYTES = 0,
    MEMORY_LOCK_BYTES = 64 * 1024,
    SIGNALS_PENDING = 1024,
    AUDIT_OFF_ABI = 7,
};

static void
add_rlimit(struct seal *seal, int resource, uint64_t value)
{
    for (size_t i = 0; i < SEAL_RLIMITS; i++) {
        if (seal->rlimits[i].set)
            continue;
        seal->rlimits[i].resource = resource;
        seal->rlimits[i].value = value;
        seal->rlimits[i].set = 1;
        return;
    }
}

/* What cgroups cannot count, and what stands behind them. CPU time is the supervisor's:
 * an rlimit counts each process alone. */
static void
plan_rlimits(struct jail_plan *plan, bool pids_by_kernel)
{
    const struct policy *policy = plan->policy;
    uint64_t slack_bytes = (uint64_t)ADDRESS_SPACE_SLACK_GIB << 30;
    struct seal *seal = &plan->seal;
    add_rlimit(seal, RLIMIT_AS, policy->memory_bytes + slack_bytes);
    add_rlimit(seal, RLIMIT_CORE, CORE_BYTES);
    add_rlimit(seal, RLIMIT_FSIZE, policy->file_bytes);
    add_rlimit(seal, RLIMIT_MEMLOCK, MEMORY_LOCK_BYTES);
    add_rlimit(seal, RLIMIT_MSGQUEUE, MESSAGE_QUEUE_BYTES);
    add_rlimit(seal, RLIMIT_NOFILE, policy->open_files);
    add_rlimit(seal, RLIMIT_SIGPENDING, SIGNALS_PENDING);
    /* In a user namespace of its own this counts the cell alone (Linux 5.14); the cell's
     * init is one of them. On the host it would count the user's other processes, too. */
    if (!pids_by_kernel && policy->isolation == ISOLATION_NAMESPACES)
        add_rlimit(seal, RLIMIT_NPROC, policy->pids + 1);
}

static int
plan_landlock(struct jail_plan *plan, struct err *err)
{
    plan->landlock_abi = k_landlock_abi();
    if (plan->landlock_abi == 0)
        return err_set(err, -ENOSYS,
                       "this kernel has no Landlock (or it is not in the lsm= boot "
                       "list): boot with lsm=landlock,… added; "
                       "see 'adyton doctor'");
    uint32_t abi = (uint32_t)plan->landlock_abi;
    plan->seal.landlock_abi = plan->init_seal.landlock_abi = abi;
    /* Without a pid namespace init ends the cell by signals, which its own domain would
     * scope. */
    if (plan->policy->isolation == ISOLATION_LANDLOCK)
        plan->init_seal.landlock_abi = 0;
    plan->seal.landlock_audit_off = plan->init_seal.landlock_audit_off =
        abi >= AUDIT_OFF_ABI;
    return 0;
}

static int
copy_path(char *to, size_t n, const char *from, const char *what, struct err *err)
{
    int length = snprintf(to, n, "%s", from);
    if (length < 0 || (size_t)length >= n)
        return err_set(err, -ENAMETOOLONG, "%s: the path has more than %zu bytes: %.100s",
                       what, n - 1, from);
    return 0;
}

int
jail_plan_build(const struct policy *policy, const struct image *image,
                const char *guest_file, bool pids_by_kernel,
                const struct filter_store *filters, struct jail_plan *ret,
                struct err *err)
{
    struct jail_plan *plan = ret;
    memset(plan, 0, sizeof(*plan));
    plan->policy = policy;
    plan->filters = filters;
    plan->kind =
        policy->isolation == ISOLATION_LANDLOCK ? JAIL_LANDLOCK : JAIL_NAMESPACES;
    plan->uid_inside = JAIL_UID;
    plan->image = image;
    plan->as_root = geteuid() == 0;
    plan->seal.landlock_fd = plan->init_seal.landlock_fd = -1;
    int r =
        copy_path(plan->guest_file, sizeof(plan->guest_file), guest_file, "guest", err);
    if (r < 0)
        return r;
    r = plan_landlock(plan, err);
    if (r < 0)
        return r;
    plan->when = jail_syscall_when(policy, plan->landlock_abi);
    plan_rlimits(plan, pids_by_kernel);
    add_rlimit(&plan->init_seal, RLIMIT_CORE, CORE_BYTES);
    return jail_filter_init(filters, &plan->init_seal, err);
}

static bool
is_beneath(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* A mount hides what is beneath it; and beneath one of the host's no folder can be made for it. */
static int
check_place(const char *target, const char *path, struct err *err)
{
    if (!is_beneath(path, target) && !is_beneath(target, path))
        return 0;
    return err_set(err, -EINVAL,
                   "a data folder at %s would be in the way of %.120s, which the cell "
                   "needs: give it another name",
                   target, path);
}

int
jail_plan_folders(struct jail_plan *plan, const struct job_folders *folders,
                  struct err *err)
{
    const struct policy *policy = plan->policy;
    int r = 0;
    for (size_t i = 0; i < folders->n && r == 0; i++) {
        const char *target = folders->list[i].target;
        for (size_t j = 0; j < plan->image->paths_n && r == 0; j++)
            r = check_place(target, plan->image->paths[j], err);
        for (size_t j = 0; j < policy->read_paths.n && r == 0; j++)
            r = check_place(target, policy->read_paths.items[j], err);
    }
    if (r == 0)
        plan->folders = folders;
    return r;
}

int
jail_plan_filter(struct jail_plan *plan, struct err *err)
{
    return jail_filter_cell(plan->when, plan->filters, &plan->seal, err);
}

uint64_t
jail_clone_flags(const struct jail_plan *plan)
{
    if (plan->policy->isolation == ISOLATION_LANDLOCK)
        return 0;
    /* The cgroup namespace is unshared later, from inside the cell's cgroup: it is rooted
     * where the process is at that moment. */
    return CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
           CLONE_NEWUTS;
}

const char jail_font_list[] = "/run/adyton/fontlist.json";

const char *
jail_guest_file(const struct jail_plan *plan)
{
    return plan->policy->isolation == ISOLATION_NAMESPACES ? "/run/adyton/_adyton.abi3.so"
                                                           : plan->guest_file;
}

const char *
jail_tmp_dir(const struct jail_plan *plan)
{
    return plan->policy->isolation == ISOLATION_NAMESPACES ? "/tmp" : plan->scratch_dir;
}
