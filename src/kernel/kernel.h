/*
 * System calls that glibc 2.36 lacks, and constants that its kernel headers lack. One
 * function a call, no decisions: each returns what the kernel returned, -1 with errno on
 * failure.
 */
#pragma once

#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

pid_t k_clone3(struct clone_args *args);
/* The older call: no CLONE_INTO_CGROUP, and the only one that some containers let
 * through. The child runs on a copy of the caller's stack, as with fork. */
pid_t k_clone(uint64_t flags, int exit_signal, int *pidfd);
/* glibc has them since 2.36. */
int k_pidfd_open(pid_t pid);
int k_pidfd_kill(int pidfd, int signal);
int k_openat2(int dir, const char *path, const struct open_how *how);
int k_pivot_root(const char *new_root, const char *put_old);
int k_seccomp(unsigned operation, unsigned flags, void *args);
/* Clears the three capability sets of this thread, and its ambient set. */
int k_capabilities_clear(void);
/* Highest capability the kernel knows: the bounding set ends there. */
int k_capability_last(void);
int k_bounding_drop(int capability);

/* Landlock up to ABI 7. A kernel of a lower ABI refuses unknown bits and sizes: the
 * caller masks by the ABI that k_landlock_abi gave. */
struct k_landlock_ruleset {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* ABI 4 */
    uint64_t scoped;             /* ABI 6 */
};
struct k_landlock_path {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

int k_landlock_abi(void); /* 0 where Landlock is absent or off */
int k_landlock_create(const struct k_landlock_ruleset *rules, size_t size);
int k_landlock_add_path(int ruleset, const struct k_landlock_path *rule);
int k_landlock_restrict(int ruleset, uint32_t flags);

/* madvise(2) since 6.1, newer than the headers: makes huge pages of a range, now. */
enum { K_MADV_COLLAPSE = 25 };

enum {
    K_FS_EXECUTE = 1 << 0,
    K_FS_WRITE_FILE = 1 << 1,
    K_FS_READ_FILE = 1 << 2,
    K_FS_READ_DIR = 1 << 3,
    K_FS_REMOVE_DIR = 1 << 4,
    K_FS_REMOVE_FILE = 1 << 5,
    K_FS_MAKE_CHAR = 1 << 6,
    K_FS_MAKE_DIR = 1 << 7,
    K_FS_MAKE_REG = 1 << 8,
    K_FS_MAKE_SOCK = 1 << 9,
    K_FS_MAKE_FIFO = 1 << 10,
    K_FS_MAKE_BLOCK = 1 << 11,
    K_FS_MAKE_SYM = 1 << 12,
    K_FS_REFER = 1 << 13,     /* ABI 2 */
    K_FS_TRUNCATE = 1 << 14,  /* ABI 3 */
    K_FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
    K_NET_BIND_TCP = 1 << 0,
    K_NET_CONNECT_TCP = 1 << 1,
    K_SCOPE_ABSTRACT_UNIX = 1 << 0,
    K_SCOPE_SIGNAL = 1 << 1,
    /* ABI 7: a denial writes no line into the kernel's audit log of the host. */
    K_RESTRICT_LOG_SAME_EXEC_OFF = 1 << 0,
};
