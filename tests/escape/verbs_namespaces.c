/*
 * Verbs that ask for namespaces, mounts and another root. Where nothing stops them they
 * happen, so the programs run them in a mount and UTS namespace of their own (scratch.c).
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Flags of mount(2): <sys/mount.h> and <linux/mount.h> cannot be included together. */
enum { DETACH = 2, NOFOLLOW = 8 };

/* The child of a clone that was let through says nothing and ends. */
static long
ended(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, __WALL);
    return pid;
}

static long
run_clone(const struct verb *verb, pid_t target)
{
    return ended(probe_call(verb, target));
}

/* The flags stand in arg 0 of the row, because clone3 takes a pointer. */
static long
run_clone3(const struct verb *verb, pid_t target)
{
    (void)target;
    struct clone_args args = {
        .flags = (unsigned long)verb->args[0],
        .exit_signal = SIGCHLD,
    };
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    return ended(pid < 0 ? -errno : pid);
}

/* By a pidfd: all namespaces of the target at once, as nsenter does. */
static long
run_setns_target(const struct verb *verb, pid_t target)
{
    (void)verb;
    long fd = syscall(SYS_pidfd_open, target, 0);
    long unnamed = fd < 0 ? -errno : 0;
    /* Where the target cannot even be named, setns is asked all the same. */
    if (setns((int)fd, CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET) == 0)
        return 0;
    return errno == EBADF && unnamed ? unnamed : -errno;
}

#define UNSHARE(f) .number = SYS_unshare, .args = {f}
#define SETNS(f)   .number = SYS_setns, .args = {-1, f}
#define CLONE(f)   .run = run_clone, .number = SYS_clone, .args = {(f) | SIGCHLD}
#define CLONE3(f)  .run = run_clone3, .args = {f}

/* clang-format off */
const struct verb verbs_namespaces[] = {
    {"unshare_user", "a user namespace", UNSHARE(CLONE_NEWUSER)},
    {"unshare_mount", "a mount namespace", UNSHARE(CLONE_NEWNS)},
    {"unshare_pid", "a pid namespace", UNSHARE(CLONE_NEWPID)},
    {"unshare_net", "a network namespace", UNSHARE(CLONE_NEWNET)},
    {"unshare_ipc", "an IPC namespace", UNSHARE(CLONE_NEWIPC)},
    {"unshare_uts", "a UTS namespace", UNSHARE(CLONE_NEWUTS)},
    {"unshare_cgroup", "a cgroup namespace", UNSHARE(CLONE_NEWCGROUP)},
    {"unshare_time", "a time namespace", UNSHARE(CLONE_NEWTIME)},
    {"unshare_user_high", "a user namespace, with high bits beside the flag",
     UNSHARE(0x100000000L | CLONE_NEWUSER)},
    {"clone_user", "a child in a user namespace", CLONE(CLONE_NEWUSER)},
    {"clone_mount", "a child in a mount namespace", CLONE(CLONE_NEWNS)},
    {"clone_pid", "a child in a pid namespace", CLONE(CLONE_NEWPID)},
    {"clone_net", "a child in a network namespace", CLONE(CLONE_NEWNET)},
    {"clone_ipc", "a child in an IPC namespace", CLONE(CLONE_NEWIPC)},
    {"clone_uts", "a child in a UTS namespace", CLONE(CLONE_NEWUTS)},
    {"clone_cgroup", "a child in a cgroup namespace", CLONE(CLONE_NEWCGROUP)},
    {"clone_user_high", "a child in a user namespace, with high bits beside the flag",
     CLONE(0x100000000L | CLONE_NEWUSER)},
    {"clone3_user", "clone3 into a user namespace", CLONE3(CLONE_NEWUSER)},
    {"clone3_mount", "clone3 into a mount namespace", CLONE3(CLONE_NEWNS)},
    {"clone3_pid", "clone3 into a pid namespace", CLONE3(CLONE_NEWPID)},
    {"clone3_net", "clone3 into a network namespace", CLONE3(CLONE_NEWNET)},
    {"clone3_ipc", "clone3 into an IPC namespace", CLONE3(CLONE_NEWIPC)},
    {"clone3_uts", "clone3 into a UTS namespace", CLONE3(CLONE_NEWUTS)},
    {"clone3_cgroup", "clone3 into a cgroup namespace", CLONE3(CLONE_NEWCGROUP)},
    {"clone3_time", "clone3 into a time namespace", CLONE3(CLONE_NEWTIME)},
    {"clone3_plain", "clone3 without a flag: libc must fall back to clone", CLONE3(0)},
    {"setns_user", "to enter a user namespace", SETNS(CLONE_NEWUSER)},
    {"setns_mount", "to enter a mount namespace", SETNS(CLONE_NEWNS)},
    {"setns_pid", "to enter a pid namespace", SETNS(CLONE_NEWPID)},
    {"setns_net", "to enter a network namespace", SETNS(CLONE_NEWNET)},
    {"setns_ipc", "to enter an IPC namespace", SETNS(CLONE_NEWIPC)},
    {"setns_uts", "to enter a UTS namespace", SETNS(CLONE_NEWUTS)},
    {"setns_cgroup", "to enter a cgroup namespace", SETNS(CLONE_NEWCGROUP)},
    {"setns_time", "to enter a time namespace", SETNS(CLONE_NEWTIME)},
    {"setns_target", "to enter the namespaces of a process outside",
     .run = run_setns_target, .aim = AIM_OWN},
};
/* clang-format on */
const size_t verbs_namespaces_n = COUNT(verbs_namespaces);

static const struct mount_attr unlock = {.attr_clr = MOUNT_ATTR_RDONLY};

/* The row's mount, then what it was for: a name beneath the old root that chroot would
 * free. */
static long
run_chroot_escape(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    int root = open("/", O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    if (chroot("/tmp") < 0)
        return -errno;
    if (fchdir(root) < 0)
        return -errno;
    return chdir("../../../..") < 0 ? -errno : 0;
}

#define PATH(p) (long)(p)
#define MOUNT(source, at, type, flags)                                                   \
    .number = SYS_mount, .args = {PATH(source), PATH(at), PATH(type), flags, 0}

/* clang-format off */
const struct verb verbs_mounts[] = {
    {"mount_null", "mount with bad pointers", .number = SYS_mount},
    {"mount_tmpfs", "a tmpfs over /tmp", MOUNT("none", "/tmp", "tmpfs", 0)},
    {"mount_bind", "the root over /tmp", MOUNT("/", "/tmp", NULL, MS_BIND | MS_REC)},
    {"mount_proc", "a proc over /tmp", MOUNT("none", "/tmp", "proc", 0)},
    {"mount_remount", "the root writable",
     MOUNT("none", "/", NULL, MS_REMOUNT | MS_BIND)},
    {"mount_shared", "the root shared with the host",
     MOUNT("none", "/", NULL, MS_SHARED)},
    {"mount_move", "/proc moved away", MOUNT("/proc", "/tmp", NULL, MS_MOVE)},
    {"umount_proc", "what lies beneath /proc", .number = SYS_umount2,
     .args = {PATH("/proc"), DETACH | NOFOLLOW}},
    {"umount_root", "what lies beneath the root", .number = SYS_umount2,
     .args = {PATH("/adyton-none"), DETACH}},
    {"pivot_root", "another root", .number = SYS_pivot_root,
     .args = {PATH("/"), PATH("/")}},
    {"chroot", "another root", .number = SYS_chroot, .args = {PATH("/")}},
    {"chroot_escape", "out of a root by chroot and fchdir", .run = run_chroot_escape},
    {"open_tree", "a detached copy of the root", .number = SYS_open_tree,
     .args = {AT_FDCWD, PATH("/"), OPEN_TREE_CLONE}},
    {"move_mount", "a detached mount attached", .number = SYS_move_mount,
     .args = {-1, PATH(""), -1, PATH(""), MOVE_MOUNT_F_EMPTY_PATH}},
    {"fsopen", "a file system being made", .number = SYS_fsopen,
     .args = {PATH("tmpfs"), FSOPEN_CLOEXEC}},
    {"fsconfig", "a file system being configured", .number = SYS_fsconfig,
     .args = {-1, 0}},
    {"fsmount", "a file system mounted", .number = SYS_fsmount, .args = {-1, 0, 0}},
    {"fspick", "a file system reconfigured", .number = SYS_fspick,
     .args = {AT_FDCWD, PATH("/"), FSPICK_CLOEXEC}},
    {"mount_setattr", "read-only off the root", .number = SYS_mount_setattr,
     .args = {AT_FDCWD, PATH("/"), 0, (long)&unlock, sizeof(unlock)}},
    /* Numbers from 424 on are the same everywhere; headers here stop at 450. */
    {"statmount", "what is mounted", .number = 457},
    {"listmount", "which mounts there are", .number = 458},
    {"open_tree_attr", "a copy of the root with other flags", .number = 467,
     .args = {AT_FDCWD, PATH("/"), OPEN_TREE_CLONE, (long)&unlock, sizeof(unlock)}},
};
/* clang-format on */
const size_t verbs_mounts_n = COUNT(verbs_mounts);
