/*
 * Verbs against other processes, and against what holds this one: identity, capabilities,
 * limits, filters. Signals are number 0 and settings are set to what they are, so that an
 * attempt that is let through changes nothing.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/kcmp.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static long
result(long r)
{
    return r < 0 ? -errno : r;
}

static long
run_ptrace_parent(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    return result(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}

static long
run_pidfd_signal(const struct verb *verb, pid_t target)
{
    (void)verb;
    int fd = (int)syscall(SYS_pidfd_open, target, 0);
    return fd < 0 ? -errno : result(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
}

static long
run_pidfd_getfd(const struct verb *verb, pid_t target)
{
    (void)verb;
    long fd = syscall(SYS_pidfd_open, target, 0);
    long unnamed = fd < 0 ? -errno : 0;
    /* Where the target cannot even be named, the call is made all the same. */
    long r = result(syscall(SYS_pidfd_getfd, fd, 0, 0));
    return r == -EBADF && unnamed ? unnamed : r;
}

static long
run_kcmp(const struct verb *verb, pid_t target)
{
    (void)verb;
    return result(syscall(SYS_kcmp, target, target, KCMP_FILE, 0, 0));
}

static long
run_sigqueue(const struct verb *verb, pid_t target)
{
    siginfo_t info = {.si_code = SI_QUEUE};
    if (verb->number == SYS_rt_sigqueueinfo)
        return result(syscall(verb->number, target, 0, &info));
    return result(syscall(verb->number, target, target, 0, &info));
}

static long
run_setpriority(const struct verb *verb, pid_t target)
{
    (void)verb;
    errno = 0;
    int now = getpriority(PRIO_PROCESS, (id_t)target);
    if (errno)
        return -errno;
    return result(setpriority(PRIO_PROCESS, (id_t)target, now));
}

static long
run_affinity(const struct verb *verb, pid_t target)
{
    (void)verb;
    cpu_set_t now;
    if (sched_getaffinity(target, sizeof(now), &now) < 0)
        return -errno;
    return result(sched_setaffinity(target, sizeof(now), &now));
}

/* The signals of a descriptor's readiness go to whom the owner names. */
static long
run_setown(const struct verb *verb, pid_t target)
{
    (void)verb;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    return result(fcntl(fds[0], F_SETOWN, target));
}

static long
run_capset(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct all[2] = {
        {1U << CAP_SYS_ADMIN, 1U << CAP_SYS_ADMIN, 0},
        {0, 0, 0},
    };
    return result(syscall(SYS_capset, &head, all));
}

static long
run_setgroups(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    gid_t group = 0;
    return result(syscall(SYS_setgroups, 1, &group));
}

/* Both limits above the hard one as it is: only CAP_SYS_RESOURCE may. */
static long
run_raise(const struct verb *verb, pid_t target)
{
    (void)target;
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)verb->args[0], &limit) < 0)
        return -errno;
    if (limit.rlim_max == RLIM_INFINITY)
        return 0;
    limit.rlim_max++;
    limit.rlim_cur = limit.rlim_max;
    return result(setrlimit((__rlimit_resource_t)verb->args[0], &limit));
}

/* As many descriptors as a host allows and a cell does not, whatever the soft limit
 * is. */
static long
run_many_files(const struct verb *verb, pid_t target)
{
    (void)target;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    for (long n = 0; n < verb->args[0]; n++) {
        if (fcntl(1, F_DUPFD_CLOEXEC, 0) < 0)
            return -errno;
    }
    return 0;
}

/* One byte far out in a file: sparse, so the file size limit is what it meets. */
static long
run_large_file(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    signal(SIGXFSZ, SIG_IGN);
    char name[PROBE_PATH_BYTES];
    int fd = probe_temp(name);
    if (fd < 0)
        return fd;
    unlink(name);
    return result(pwrite(fd, "", 1, 1L << 40));
}

/* A core file may hold what the cell read. 0 makes none; 1 neither, and starts no crash
 * handler of the host's where core_pattern is a pipe (core(5)). */
static long
run_core(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return -errno;
    return limit.rlim_max <= 1 ? -EPERM : 0;
}

static long
run_lock_memory(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    size_t n =
        64U << 20; /* bytes: above any limit a cell should have, no burden to a host */
    void *p = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    return result(mlock2(p, n, MLOCK_ONFAULT));
}

static long
run_filter(const struct verb *verb, pid_t target)
{
    (void)target;
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return result(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, verb->args[0], &program));
}

/* A ruleset of its own that grants everything must not bring back what the first one
 * took: the value is what a file outside /tmp then answers. */
static long
run_landlock_relax(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    struct landlock_ruleset_attr attr = {.handled_access_fs =
                                             LANDLOCK_ACCESS_FS_READ_FILE};
    int set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (set < 0)
        return -errno;
    struct landlock_path_beneath_attr beneath = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
        .parent_fd = open("/", O_PATH | O_CLOEXEC),
    };
    syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_landlock_restrict_self, set, 0) < 0)
        return -errno;
    return result(open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
}

/* What runs when an execve is let through must end at once and say nothing. */
static const char *const quiet[] = {"adyton-escape", "--nothing", NULL};

/* A program, or, where none can be read, what no loader takes: the kernel then says
 * ENOEXEC. */
static int
write_program(int to)
{
    static const char nonsense[] = "neither ELF nor a script\n";
    char block[16384];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return write(to, nonsense, sizeof(nonsense)) < 0 ? -errno : 0;
    for (;;) {
        ssize_t n = read(from, block, sizeof(block));
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (write(to, block, (size_t)n) != n)
            return -errno;
    }
}

static long
run_exec_self(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    return result(syscall(SYS_execve, "/proc/self/exe", quiet, quiet + 2));
}

static long
run_exec_memfd(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    int fd = (int)syscall(SYS_memfd_create, "adyton", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write_program(fd);
    if (r < 0)
        return r;
    return result(syscall(SYS_execveat, fd, "", quiet, quiet + 2, AT_EMPTY_PATH));
}

static long
run_exec_tmp(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    char name[PROBE_PATH_BYTES];
    int fd = probe_temp(name);
    if (fd < 0)
        return fd;
    int r = write_program(fd);
    int c = fchmod(fd, 0700);
    close(fd);
    if (r < 0 || c < 0) {
        unlink(name);
        return r < 0 ? r : -errno;
    }
    /* Opened again read-only: a file that is open for writing cannot be executed. */
    fd = open(name, O_RDONLY | O_CLOEXEC);
    unlink(name);
    return result(syscall(SYS_execveat, fd, "", quiet, quiet + 2, AT_EMPTY_PATH));
}

/* aio of the target's memory: one byte at an address that is never mapped. */
static char byte;
static const struct iovec mine = {&byte, 1};
static const struct iovec theirs = {NULL, 1};

#define PTRACE(request) .number = SYS_ptrace, .args = {request}, .aim = 2
#define OWN_PID(f)      .run = f, .aim = AIM_OWN
#define PRCTL(...)      .number = SYS_prctl, .args = {__VA_ARGS__}
#define RAISE(limit)    .run = run_raise, .args = {limit}

/* clang-format off */
const struct verb verbs_process[] = {
    {"ptrace_traceme", "to be traced by its parent", .number = SYS_ptrace,
     .args = {PTRACE_TRACEME}},
    {"ptrace_seize", "to trace a process outside", PTRACE(PTRACE_SEIZE)},
    {"ptrace_attach_bad", "a ptrace request that does not exist", PTRACE(0xffff)},
    {"ptrace_parent", "to trace its parent", .run = run_ptrace_parent},
    {"process_vm_readv", "the memory of a process outside",
     .number = SYS_process_vm_readv,
     .args = {0, (long)&mine, 1, (long)&theirs, 1, 0}, .aim = 1},
    {"process_vm_writev", "the memory of a process outside",
     .number = SYS_process_vm_writev,
     .args = {0, (long)&mine, 1, (long)&theirs, 1, 0}, .aim = 1},
    {"process_madvise", "advice on the memory of another", .number = SYS_process_madvise,
     .args = {-1, (long)&mine, 1, 20, 0}},
    {"process_mrelease", "the memory of a dying process", .number = SYS_process_mrelease,
     .args = {-1, 0}},
    {"pidfd_getfd", "a descriptor of a process outside", OWN_PID(run_pidfd_getfd)},
    {"kcmp", "whether two processes share a file", OWN_PID(run_kcmp)},
    {"get_robust_list", "an address in a process outside", .number = SYS_get_robust_list,
     .args = {0, 0, 0}, .aim = 1},
    {"move_pages", "the pages of a process outside", .number = SYS_move_pages,
     .args = {0, 0, 0, 0, 0, 0}, .aim = 1},
    {"migrate_pages", "the pages of a process outside", .number = SYS_migrate_pages,
     .args = {0, 0, 0, 0}, .aim = 1},
    {"kill_target", "signal 0 to a process outside", .number = SYS_kill, .aim = 1},
    {"kill_all", "signal 0 to all there are", .number = SYS_kill, .args = {-1, 0}},
    {"tkill_target", "signal 0 to a thread outside", .number = SYS_tkill, .aim = 1},
    {"sigqueue_target", "signal 0 with data, outside", .number = SYS_rt_sigqueueinfo,
     OWN_PID(run_sigqueue)},
    {"tgsigqueue_target", "signal 0 with data to a thread",
     .number = SYS_rt_tgsigqueueinfo,
     OWN_PID(run_sigqueue)},
    {"pidfd_signal_target", "signal 0 by a pidfd", OWN_PID(run_pidfd_signal)},
    {"fcntl_setown_target", "a process outside as owner of a pipe", OWN_PID(run_setown)},
    {"prlimit_target", "the limits of a process outside", .number = SYS_prlimit64,
     .args = {0, RLIMIT_NOFILE, 0, 0}, .aim = 1},
    {"affinity_target", "the processors of a process outside", OWN_PID(run_affinity)},
    {"priority_target", "the priority of a process outside", OWN_PID(run_setpriority)},
    {"getpgid_target", "the group of a process outside", .number = SYS_getpgid, .aim = 1},
    {"getsid_target", "the session of a process outside", .number = SYS_getsid, .aim = 1},
    {"scheduler_target", "how a process outside is scheduled",
     .number = SYS_sched_getscheduler, .aim = 1},
    {"ioprio_target", "the disk priority of a process outside", .number = SYS_ioprio_get,
     .args = {1, 0}, .aim = 2},
    {"priority_lower", "a better priority for itself", .number = SYS_setpriority,
     .args = {PRIO_PROCESS, 0, -5}},
    {"ioprio_realtime", "real-time disk priority", .number = SYS_ioprio_set,
     .args = {1, 0, 1L << 13}},
    {"scheduler_realtime", "real-time scheduling", .number = SYS_sched_setscheduler,
     .args = {0, SCHED_FIFO, (long)&(const struct sched_param){1}}},

    {"setuid_root", "to be root", .number = SYS_setuid, .args = {0}},
    {"setuid_other", "another uid", .number = SYS_setuid, .args = {12345}},
    {"setgid_other", "another gid", .number = SYS_setgid, .args = {12345}},
    {"setresuid_other", "another uid", .number = SYS_setresuid,
     .args = {12345, 12345, 12345}},
    {"setgroups", "root's group", .run = run_setgroups},
    {"capset", "CAP_SYS_ADMIN", .run = run_capset},
    {"prctl_no_new_privs_off", "no_new_privs taken back", PRCTL(PR_SET_NO_NEW_PRIVS, 0)},
    {"prctl_set_mm", "where its own memory lies", PRCTL(PR_SET_MM, PR_SET_MM_BRK, 0)},
    {"prctl_dumpable", "to be dumpable again", PRCTL(PR_SET_DUMPABLE, 1)},
    {"prctl_ptracer", "any process as its tracer", PRCTL(PR_SET_PTRACER, -1)},
    {"prctl_securebits", "secure bits", PRCTL(PR_SET_SECUREBITS, 0)},
    {"prctl_ambient", "an ambient capability",
     PRCTL(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN)},
    {"prctl_bounding", "the bounding set", PRCTL(PR_CAPBSET_DROP, CAP_BPF)},
    {"prctl_seccomp_strict", "strict mode instead of the filter",
     PRCTL(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)},
    {"prctl_seccomp_bad", "a filter with a bad pointer",
     PRCTL(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0)},
    {"seccomp_listener", "a listener of its own", .run = run_filter,
     .args = {SECCOMP_FILTER_FLAG_NEW_LISTENER}},
    {"seccomp_filter", "a filter that allows everything", .run = run_filter, .args = {0}},
    {"landlock_relax", "a ruleset that grants everything", .run = run_landlock_relax},
    {"personality_exec", "READ_IMPLIES_EXEC", .number = SYS_personality,
     .args = {0x0400000}},
    {"personality_aslr", "no address randomisation", .number = SYS_personality,
     .args = {0x0040000}},

    {"raise_files", "a higher limit of open files", RAISE(RLIMIT_NOFILE)},
    {"raise_processes", "a higher limit of processes", RAISE(RLIMIT_NPROC)},
    {"raise_file_size", "a higher limit of file size", RAISE(RLIMIT_FSIZE)},
    {"raise_core", "a higher limit of core size", RAISE(RLIMIT_CORE)},
    {"raise_locked", "a higher limit of locked memory", RAISE(RLIMIT_MEMLOCK)},
    {"many_files", "4,096 descriptors", .run = run_many_files, .args = {4096}},
    {"large_file", "a file of a tebibyte", .run = run_large_file},
    {"core_file", "a core file", .run = run_core},
    {"lock_memory", "64 MiB of locked memory", .run = run_lock_memory},

    {"exec_self", "to execute the interpreter", .run = run_exec_self},
    {"exec_memfd", "a program out of a memfd", .run = run_exec_memfd},
    {"exec_tmp", "a program out of /tmp", .run = run_exec_tmp},
    {"exec_null", "to execute nothing", .number = SYS_execve},
    {"execveat_bad", "to execute a bad descriptor", .number = SYS_execveat,
     .args = {-1, (long)"", 0, 0, AT_EMPTY_PATH}},
};
/* clang-format on */
const size_t verbs_process_n = COUNT(verbs_process);
