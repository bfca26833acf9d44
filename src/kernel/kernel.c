/* Raw system calls. The only file with #if: numbers that differ or are missing in old
 * headers. */
#include "kernel/kernel.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers of the generic table, the same on every architecture since 5.1. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum { LANDLOCK_CREATE_VERSION = 1 << 0, LANDLOCK_RULE_PATH = 1 };

pid_t
k_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

pid_t
k_clone(uint64_t flags, int exit_signal, int *pidfd)
{
    /* Flags, stack, and where the pidfd goes: alike on x86-64 and arm64. */
    return (pid_t)syscall(SYS_clone, flags | (uint64_t)exit_signal, NULL, pidfd, NULL,
                          NULL);
}

int
k_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
k_pidfd_kill(int pidfd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

int
k_openat2(int dir, const char *path, const struct open_how *how)
{
    return (int)syscall(SYS_openat2, dir, path, how, sizeof(*how));
}

int
k_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int
k_seccomp(unsigned operation, unsigned flags, void *args)
{
    return (int)syscall(SYS_seccomp, operation, flags, args);
}

int
k_capabilities_clear(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
        return -1;
    return (int)syscall(SYS_capset, &header, none);
}

int
k_capability_last(void)
{
    int last = CAP_LAST_CAP;
    /* The kernel may know more than our headers: it answers EINVAL past its last one. */
    while (last < 63 && prctl(PR_CAPBSET_READ, last + 1, 0, 0, 0) >= 0)
        last++;
    return last;
}

int
k_bounding_drop(int capability)
{
    return prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

int
k_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

int
k_landlock_create(const struct k_landlock_ruleset *rules, size_t size)
{
    return (int)syscall(SYS_landlock_create_ruleset, rules, size, 0);
}

int
k_landlock_add_path(int ruleset, const struct k_landlock_path *rule)
{
    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH, rule, 0);
}

int
k_landlock_restrict(int ruleset, uint32_t flags)
{
    return (int)syscall(SYS_landlock_restrict_self, ruleset, flags);
}
