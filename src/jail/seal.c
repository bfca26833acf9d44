/*
 * The second half of confinement: a process gives up, for good, what it could still do.
 * Needs no privilege and allocates nothing; runs in the cell's init and in every
 * interpreter just before it meets user code. The guest extension is linked with this
 * file and nothing else of the jail.
 */
#include "jail/jail.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/kernel.h"

static int
seal_rlimits(struct seal_run *run, struct err *err)
{
    for (size_t i = 0; i < SEAL_RLIMITS; i++) {
        if (!run->seal->rlimits[i].set)
            continue;
        int resource = run->seal->rlimits[i].resource;
        struct rlimit limit, now;
        limit.rlim_cur = limit.rlim_max = run->seal->rlimits[i].value;
        if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
            return err_sys(err, "read resource limit %d", resource);
        /* Raising a hard limit needs a capability: the host's lower one then holds. */
        if (limit.rlim_max > now.rlim_max)
            limit.rlim_cur = limit.rlim_max = now.rlim_max;
        if (setrlimit((__rlimit_resource_t)resource, &limit) < 0)
            return err_sys(err, "set resource limit %d", resource);
    }
    return 0;
}

static int
seal_capabilities(struct seal_run *run, struct err *err)
{
    (void)run;
    /* The bounding set needs CAP_SETPCAP, which an interpreter has lost at execve
     * already: what is not held and cannot be gained (no_new_privs) needs no bound. Init
     * still has it. */
    for (int capability = 0, last = k_capability_last(); capability <= last; capability++)
        if (k_bounding_drop(capability) < 0 && errno != EPERM)
            return err_sys(err, "drop capability %d from the bounding set", capability);
    if (k_capabilities_clear() < 0)
        return err_sys(err, "clear the capability sets");
    return 0;
}

static int
seal_privileges(struct seal_run *run, struct err *err)
{
    (void)run;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "set no_new_privs");
    return 0;
}

static int
seal_landlock(struct seal_run *run, struct err *err)
{
    if (run->seal->landlock_abi == 0)
        return 0; /* jail_plan_build has decided that this is allowed here */
    uint32_t flags = run->seal->landlock_audit_off ? K_RESTRICT_LOG_SAME_EXEC_OFF : 0;
    if (k_landlock_restrict(run->seal->landlock_fd, flags) < 0)
        return err_sys(err, "restrict this process with Landlock");
    close(run->seal->landlock_fd);
    return 0;
}

static int
seal_seccomp(struct seal_run *run, struct err *err)
{
    const struct seal *seal = run->seal;
    struct sock_fprog program = {
        .len = (unsigned short)seal->filter_n,
        /* The kernel only reads it; its own type has no const. */
        .filter = (struct sock_filter *)(uintptr_t)seal->filter,
    };
    unsigned flags = seal->notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    int r = k_seccomp(SECCOMP_SET_MODE_FILTER, flags, &program);
    if (r < 0 && errno == EBUSY)
        return err_set(err, -EBUSY,
                       "install the system-call filter: this process already "
                       "runs under a supervisor with seccomp notifications, and "
                       "the kernel allows one; start adyton outside of it");
    if (r < 0)
        return err_sys(err, "install the system-call filter");
    *run->ret_notify_fd = seal->notify ? r : -1;
    return 0;
}

const struct seal_step jail_seal_steps[] = {
    {"rlimits", "first, while setrlimit on other resources is not yet anyone's business",
     seal_rlimits},
    {"capabilities", "before no_new_privs, which would not take them away",
     seal_capabilities},
    {"no_new_privs", "Landlock and seccomp ask for it where there is no capability",
     seal_privileges},
    {"landlock", "before seccomp, which does not let landlock_restrict_self through",
     seal_landlock},
    {"seccomp", "last: after it nothing can be asked of the kernel", seal_seccomp},
};
const size_t jail_seal_steps_n = sizeof(jail_seal_steps) / sizeof(*jail_seal_steps);

int
jail_seal(const struct seal *seal, int *ret_notify_fd, struct err *err)
{
    struct seal_run run = {.seal = seal, .ret_notify_fd = ret_notify_fd};
    for (size_t i = 0; i < jail_seal_steps_n; i++) {
        int r = jail_seal_steps[i].run(&run, err);
        if (r < 0)
            return err_wrap(err, "seal, step %s", jail_seal_steps[i].name);
    }
    return 0;
}
