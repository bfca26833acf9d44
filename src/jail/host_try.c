/*
 * The attempts of host_probe that change the process that makes them: each in a child of
 * its own, which says up a pipe what refused and dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/host_parts.h"
#include "jail/jail.h"
#include "kernel/kernel.h"

/* The answer of the filter below: no getppid ever fails by itself, least of all so. */
enum { FILTER_SAYS = ENOTNAM };

struct attempt {
    int (*run)(const struct attempt *attempt, struct err *err);
    int clone_flags;   /* of namespaces that the child begins in or unshares */
    unsigned uid, gid; /* ours, as the child maps them */
};

/* The child's part: never returns. */
static NORETURN void
child(const struct attempt *attempt, int pipe)
{
    struct err err = {0};
    /* Whatever happens to us, nothing of it stays. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (attempt->run(attempt, &err) < 0 || err.code < 0)
        (void)!fd_write_all(pipe, &err, sizeof(err));
    _exit(0);
}

static int
await(pid_t pid, int pipe, struct err *err)
{
    struct err said = {0};
    struct buf bytes = {0};
    buf_init(&bytes, sizeof(said));
    int r = fd_read_all(pipe, &bytes);
    if (r == 0 && bytes.n == sizeof(said))
        memcpy(&said, bytes.p, sizeof(said));
    buf_done(&bytes);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (said.code < 0) {
        *err = said;
        return said.code;
    }
    /* A filter that kills, say of a container, leaves no word. */
    if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, -EPERM, "the process that tried was killed by signal %d",
                       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}

/* fork, or clone3 straight into namespaces as cells are made. */
static int
try_in_child(const struct attempt *attempt, bool by_clone3, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "cannot make a pipe");
    AUTO_CLOSE int from = ends[0];
    AUTO_CLOSE int to = ends[1];
    struct clone_args how = {.exit_signal = SIGCHLD,
                             .flags = (uint64_t)(unsigned)attempt->clone_flags};
    pid_t pid = by_clone3 ? k_clone3(&how) : fork();
    if (pid == 0)
        child(attempt, to);
    if (pid < 0)
        return err_sys(err, "refused");
    close(fd_take(&to));
    return await(pid, from, err);
}

static int
run_namespace(const struct attempt *attempt, struct err *err)
{
    if (unshare(CLONE_NEWUSER) < 0)
        return err_sys(err, "refused");
    if (attempt->clone_flags != CLONE_NEWUSER && unshare(attempt->clone_flags) < 0)
        return err_sys(err, "refused inside a user namespace");
    return 0;
}

int
host_try_namespace(int clone_flag, struct err *err)
{
    const struct attempt attempt = {.run = run_namespace, .clone_flags = clone_flag};
    return try_in_child(&attempt, false, err);
}

/* One id each, which needs no privilege. */
static int
write_maps(const struct attempt *attempt, struct err *err)
{
    char uid_map[48], gid_map[48];
    snprintf(uid_map, sizeof(uid_map), "%d %u 1", JAIL_UID, attempt->uid);
    snprintf(gid_map, sizeof(gid_map), "%d %u 1", JAIL_UID, attempt->gid);
    const struct {
        const char *file, *text;
    } writes[] = {{"/proc/self/uid_map", uid_map},
                  {"/proc/self/setgroups", "deny"},
                  {"/proc/self/gid_map", gid_map}};
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        int r = file_write(AT_FDCWD, writes[i].file, writes[i].text);
        if (r < 0)
            return err_set(err, r, "write %s: %s", writes[i].file, strerrordesc_np(-r));
    }
    return 0;
}

static int
mount_new(const char *type, struct err *err)
{
    AUTO_CLOSE int context = fsopen(type, FSOPEN_CLOEXEC);
    if (context < 0)
        return err_sys(err, "open a new %s", type);
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(err, "make a new %s", type);
    AUTO_CLOSE int fd =
        fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    return fd < 0 ? err_sys(err, "mount a new %s", type) : 0;
}

/* Where processes have all of a cell's namespaces: what its init mounts. */
static int
run_mounts(const struct attempt *attempt, struct err *err)
{
    int r = write_maps(attempt, err);
    if (r == 0)
        r = mount_new("tmpfs", err);
    if (r == 0)
        r = mount_new("proc", err);
    if (r < 0)
        return r;
    AUTO_CLOSE int tree =
        open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
    if (tree < 0)
        return err_sys(err, "copy the mount of /usr");
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return err_sys(err, "make a mount read-only");
    return 0;
}

int
host_try_mounts(struct err *err)
{
    const struct attempt attempt = {.run = run_mounts,
                                    .clone_flags = CLONE_NEWUSER | CLONE_NEWNS |
                                                   CLONE_NEWPID | CLONE_NEWNET |
                                                   CLONE_NEWIPC | CLONE_NEWUTS,
                                    .uid = geteuid(),
                                    .gid = getegid()};
    return try_in_child(&attempt, true, err);
}

static int
no_new_privileges(struct err *err)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? err_sys(err, "set no_new_privs")
                                                      : 0;
}

static int
run_landlock(const struct attempt *attempt, struct err *err)
{
    (void)attempt;
    int r = no_new_privileges(err);
    if (r < 0)
        return r;
    struct k_landlock_ruleset rules = {.handled_access_fs = K_FS_READ_FILE};
    /* The size of ABI 1: later members are unknown to it. */
    AUTO_CLOSE int fd = k_landlock_create(&rules, sizeof(rules.handled_access_fs));
    if (fd < 0)
        return err_sys(err, "make a ruleset");
    if (k_landlock_restrict(fd, 0) < 0)
        return err_sys(err, "restrict a process");
    AUTO_CLOSE int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file >= 0 || errno != EACCES)
        return err_set(err, -EINVAL, "a restricted process can still read files");
    return 0;
}

int
host_try_landlock(struct err *err)
{
    const struct attempt attempt = {.run = run_landlock};
    return try_in_child(&attempt, false, err);
}

static int
install_filter(unsigned flags, struct err *err)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | FILTER_SAYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
    int r = no_new_privileges(err);
    if (r < 0)
        return r;
    r = k_seccomp(SECCOMP_SET_MODE_FILTER, flags, &program);
    if (r < 0 && errno == EBUSY)
        return err_set(err, -EBUSY,
                       "this process runs under another supervisor with "
                       "notifications; the kernel allows one");
    return r < 0 ? err_sys(err, "install a filter") : r;
}

static int
run_filter(const struct attempt *attempt, struct err *err)
{
    (void)attempt;
    int r = install_filter(0, err);
    if (r < 0)
        return r;
    if (syscall(SYS_getppid) != -1 || errno != FILTER_SAYS)
        return err_set(err, -EINVAL, "a filter was taken and does not filter");
    return 0;
}

int
host_try_filter(struct err *err)
{
    const struct attempt attempt = {.run = run_filter};
    return try_in_child(&attempt, false, err);
}

static int
run_notification(const struct attempt *attempt, struct err *err)
{
    (void)attempt;
    int fd = install_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, err);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

int
host_try_notification(struct err *err)
{
    const struct attempt attempt = {.run = run_notification};
    return try_in_child(&attempt, false, err);
}

static int
run_nothing(const struct attempt *attempt, struct err *err)
{
    (void)attempt, (void)err;
    return 0;
}

int
host_try_clone3(struct err *err)
{
    const struct attempt attempt = {.run = run_nothing};
    return try_in_child(&attempt, true, err);
}
