/*
 * The rows: what each verb meets in a cell of the default profile. Kept beside the system
 * call table of the jail on purpose and written apart from it: two people must be wrong
 * in the same way before a hole goes unseen.
 */
#include "expect.h"

#define S LAYER_SECCOMP
#define N LAYER_NAMESPACES
#define L LAYER_LANDLOCK
#define C LAYER_CAPABILITIES
#define R LAYER_RLIMITS

#define HIDDEN "ENOENT EACCES"
#define LOCKED "EROFS EACCES EPERM ENOENT"
#define GONE   "ESRCH EPERM"

static const char no_resource[] = "the caller has no CAP_SYS_RESOURCE";
static const char no_device[] = "this host has no such device, or no driver for it";
static const char no_file[] = "this host has no such file";
static const char init[] = "the host's init holds a capability that the caller lacks";
static const char realtime[] = "the caller's control group has no real-time share";
static const char ping[] = "net.ipv4.ping_group_range keeps root out";

/* clang-format off */
const struct expect expects[] = {
    /* Namespaces. A user namespace needs no capability: there seccomp stands alone. */
    {"unshare_user*", "unshare", REFUSED, NULL, S, S, NULL},
    {"unshare_*", "unshare", REFUSED, NULL, S, S | C, NULL},
    {"clone_user*", "clone", REFUSED, NULL, S, S, NULL},
    {"clone_*", "clone", REFUSED, NULL, S, S | C, NULL},
    {"clone3_user", NULL, UNKNOWN, NULL, S, S, NULL},
    {"clone3_plain", NULL, UNKNOWN, NULL, S, S, NULL},
    {"clone3_*", NULL, UNKNOWN, NULL, S, S | C, NULL},
    {"setns_target", "setns", REFUSED, NULL, S, S | N | L | C, NULL},
    {"setns_*", "setns", REFUSED, NULL, S, S, NULL},

    /* Mounts. Landlock refuses every change of the tree, capabilities most of them. */
    {"mount_null", "mount", REFUSED, NULL, S, S, NULL},
    {"mount_setattr", "mount_setattr", REFUSED, NULL, S, S | C, NULL},
    {"mount_*", "mount", REFUSED, NULL, S, S | L | C, NULL},
    {"umount_root", "umount2", REFUSED, NULL, S, S, NULL},
    {"umount_*", "umount2", REFUSED, NULL, S, S | L | C, NULL},
    {"pivot_root", "pivot_root", REFUSED, NULL, S, S | L | C, NULL},
    {"chroot", "chroot", REFUSED, NULL, S, S | C, NULL},
    {"chroot_escape", "chroot", REFUSED, NULL, S, S | C, NULL},
    {"open_tree", "open_tree", REFUSED, NULL, S, S | C, NULL},
    {"move_mount", "move_mount", REFUSED, NULL, S, S | C, NULL},
    {"fsopen", "fsopen", REFUSED, NULL, S, S | C, NULL},
    {"fsconfig", "fsconfig", REFUSED, NULL, S, S, NULL},
    {"fsmount", "fsmount", REFUSED, NULL, S, S | C, NULL},
    {"fspick", "fspick", REFUSED, NULL, S, S | C, NULL},
    {"statmount", NULL, UNKNOWN, NULL, S, S, NULL},
    {"listmount", NULL, UNKNOWN, NULL, S, S, NULL},
    {"open_tree_attr", NULL, UNKNOWN, NULL, S, S | C, NULL},

    /* Other processes. */
    {"ptrace_traceme", "ptrace", REFUSED, NULL, S, S, NULL},
    {"ptrace_seize", "ptrace", ENDED, NULL, S, S | N | L | C, NULL},
    {"ptrace_*", "ptrace", ENDED, NULL, S, S, NULL},
    {"process_vm_readv", "process_vm_readv", REFUSED, NULL, S, S | N | L | C, NULL},
    {"process_vm_writev", "process_vm_writev", ENDED, NULL, S, S | N | L | C, NULL},
    {"process_madvise", "process_madvise", REFUSED, NULL, S, S, NULL},
    {"process_mrelease", NULL, UNKNOWN, NULL, S, S, NULL},
    {"pidfd_getfd", "pidfd_getfd", REFUSED, NULL, S, S | N | L | C, NULL},
    {"kcmp", "kcmp", REFUSED, NULL, S, S | N | L | C, NULL},
    {"get_robust_list", NULL, PASSES, GONE, N, N | L | C, NULL},
    {"move_pages", NULL, UNKNOWN, NULL, S, S | N | L | C, NULL},
    {"migrate_pages", NULL, UNKNOWN, NULL, S, S | N | L | C, NULL},
    {"kill_target", NULL, PASSES, GONE, N, N | L, NULL},
    {"kill_all", NULL, PASSES, "ok ESRCH EPERM", LAYER_OWN, 0, NULL},
    {"tkill_target", NULL, PASSES, GONE, N, N | L, NULL},
    {"sigqueue_target", NULL, PASSES, GONE, N, N | L, NULL},
    {"tgsigqueue_target", NULL, PASSES, GONE, N, N | L, NULL},
    {"pidfd_signal_target", NULL, PASSES, "ESRCH EPERM EINVAL", N, N | L, NULL},
    {"fcntl_setown_target", NULL, PASSES, GONE, N, N, NULL},
    {"prlimit_target", NULL, PASSES, GONE, N, N, NULL},
    {"affinity_target", NULL, PASSES, GONE, N, N | C, NULL},
    {"priority_target", NULL, PASSES, GONE, N, N | C, NULL},
    {"getpgid_target", NULL, PASSES, GONE, N, N, NULL},
    {"getsid_target", NULL, PASSES, GONE, N, N, NULL},
    {"scheduler_target", NULL, PASSES, GONE, N, N, NULL},
    {"ioprio_target", NULL, QUIET, NULL, S, S | N, NULL},
    {"priority_lower", NULL, PASSES, "EACCES EPERM", C, N | C, NULL},
    {"ioprio_realtime", NULL, QUIET, NULL, S, S | N | C, NULL},
    {"scheduler_realtime", NULL, QUIET, NULL, S, S | N | C, realtime},

    /* Identity, and what holds it. */
    {"setuid_root", NULL, QUIET, NULL, S, S, NULL},
    {"setuid_other", NULL, QUIET, NULL, S, S | C, NULL},
    {"setgid_other", NULL, QUIET, NULL, S, S | C, NULL},
    {"setresuid_other", NULL, QUIET, NULL, S, S | C, NULL},
    {"setgroups", NULL, QUIET, NULL, S, S | C, NULL},
    {"capset", NULL, QUIET, NULL, S, S | C, NULL},
    {"prctl_no_new_privs_off", NULL, PASSES, "EINVAL ENOSYS", LAYER_OWN, 0, NULL},
    {"prctl_set_mm", "prctl", REFUSED, NULL, S, S, no_resource},
    {"prctl_dumpable", NULL, PASSES, "ok", LAYER_OWN, 0, NULL},
    {"prctl_ptracer", NULL, UNKNOWN, NULL, S, S, NULL},
    {"prctl_securebits", NULL, UNKNOWN, NULL, S, S | C, NULL},
    {"prctl_ambient", NULL, UNKNOWN, NULL, S, S | C, "the inheritable set is empty"},
    {"prctl_bounding", NULL, UNKNOWN, NULL, S, S | C, NULL},
    {"prctl_seccomp_strict", "prctl", REFUSED, NULL, S, S, NULL},
    {"prctl_seccomp_bad", "prctl", REFUSED, NULL, S, S, NULL},
    {"seccomp_listener", "seccomp", REFUSED, NULL, S, S, NULL},
    {"seccomp_filter", "seccomp", REFUSED, NULL, S, S, NULL},
    {"landlock_relax", NULL, UNKNOWN, NULL, S, S | L, NULL},
    {"personality_*", NULL, UNKNOWN, NULL, S, S, NULL},

    /* Limits. */
    {"raise_*", NULL, PASSES, "EPERM", R, 0, no_resource},
    {"many_files", NULL, PASSES, "EMFILE", R, R, NULL},
    {"large_file", NULL, PASSES, "EFBIG", R, R, NULL},
    {"core_file", NULL, PASSES, "EPERM", R, R, NULL},
    {"lock_memory", NULL, PASSES, "ENOMEM EPERM EAGAIN", R, 0, NULL},

    /* Programs. */
    {"exec_memfd", "execveat", REFUSED, NULL, S, S, NULL},
    {"exec_tmp", "execveat", REFUSED, NULL, S, S | N | L, NULL},
    {"exec_self", "execve", REFUSED, NULL, S, S | L, NULL},
    {"exec_null", "execve", REFUSED, NULL, S, S, NULL},
    {"execveat_bad", "execveat", REFUSED, NULL, S, S, NULL},

    /* Sockets and other meeting places. */
    {"socket_ping", "socket", REFUSED, "EACCES", S, S, ping},
    {"socket_raw", "socket", REFUSED, "EACCES", S, S | C, NULL},
    {"socket_packet*", "socket", REFUSED, "EACCES", S, S | C, NULL},
    {"socket_xdp", "socket", REFUSED, "EACCES", S, S | C, NULL},
    {"socket_*", "socket", REFUSED, "EACCES", S, S, NULL},
    {"socketpair_*", "socketpair", REFUSED, "EACCES", S, S, NULL},
    {"connect_loopback", "socket", REFUSED, "EACCES", S, S | N | L, NULL},
    {"abstract_*", NULL, PASSES, "ECONNREFUSED EPERM", N, N | L, NULL},
    {"unix_path", NULL, PASSES, "ENOENT", N, N, NULL},
    {"credentials", NULL, PASSES, GONE, N, N | C, NULL},
    {"shmget", NULL, PASSES, "ENOENT", N, N, NULL},
    {"semget", NULL, PASSES, "ENOENT", N, N, NULL},
    {"msgget", NULL, PASSES, "ENOENT", N, N, NULL},
    {"mq_open", NULL, UNKNOWN, NULL, S, S | N, NULL},

    /* The host's files. */
    {"open_*", NULL, PASSES, HIDDEN, N, N | L, NULL},
    {"open_by_handle", "open_by_handle_at", ENDED, NULL, S, S | N | C, NULL},
    {"write_shared*", NULL, PASSES, "EROFS EACCES", N, N | L, NULL},
    {"write_probe", NULL, PASSES, LOCKED, N, 0, NULL},
    {"write_*", NULL, PASSES, LOCKED, N, N | L, NULL},
    {"climb_*", NULL, PASSES, HIDDEN, N, N | L, NULL},
    {"openat2_climb", NULL, PASSES, HIDDEN, N, N | L, NULL},
    {"symlink_*", NULL, PASSES, HIDDEN, N, N | L, NULL},
    {"hardlink_*", NULL, PASSES, "ENOENT EACCES EXDEV EPERM", N, N | L, NULL},
    {"self_exe_write", NULL, PASSES, "EROFS EACCES", N, N, NULL},
    {"init_mem", NULL, PASSES, "EACCES EPERM", L, 0, init},
    {"init_environ", NULL, PASSES, "EACCES EPERM", L, 0, init},
    {"init_root", NULL, PASSES, "EACCES EPERM", L, 0, init},
    {"init_fds", NULL, PASSES, "EACCES EPERM", L, 0, init},
    {"target_fds", NULL, PASSES, HIDDEN, N, N | L, NULL},
    {"target_status", NULL, PASSES, HIDDEN, N, N | L, NULL},
    {"target_*", NULL, PASSES, HIDDEN, N, N | L | C, NULL},
    {"own_memory", NULL, PASSES, "ok EACCES", LAYER_OWN, 0, NULL},
    {"proc_*", NULL, PASSES, "ENOENT", N, N | L, NULL},
    {"kcore", NULL, PASSES, LOCKED, N, N | L | C, no_file},
    {"kmsg_proc", NULL, PASSES, LOCKED, N, N | L | C, no_file},
    {"kpageflags", NULL, PASSES, LOCKED, N, N | L, no_file},
    {"uid_map", NULL, PASSES, LOCKED, L, L, NULL},
    {"timens_offsets", NULL, PASSES, LOCKED, L, L, NULL},
    {"core_pattern", NULL, PASSES, LOCKED, L, N | L, no_file},
    {"modprobe_path", NULL, PASSES, LOCKED, L, N | L, no_file},
    {"sysctl_vm", NULL, PASSES, LOCKED, L, N | L, no_file},
    {"sysrq", NULL, PASSES, LOCKED, L, N | L, no_file},
    {"sys_*", NULL, PASSES, HIDDEN, N, N | L, no_file},
    {"dev_tty", NULL, PASSES, "ENOENT EACCES ENXIO", N, 0, "the test has no terminal"},
    {"dev_kmsg", NULL, PASSES, HIDDEN, N, N | L | C, no_device},
    {"dev_*", NULL, PASSES, HIDDEN, N, N | L, no_device},
    {"mknod_fifo", NULL, PASSES, "ok", LAYER_OWN, 0, NULL},
    {"mknod_*", "mknodat", REFUSED, NULL, S, S | N | L | C, NULL},
    {"name_to_handle", "name_to_handle_at", REFUSED, NULL, S, S, NULL},
    {"chown", NULL, PASSES, "EPERM EINVAL", C, C, NULL},
    {"file_capability", NULL, PASSES, "EPERM EOPNOTSUPP", C, C, "/tmp here keeps none"},
    {"immutable", NULL, UNKNOWN, NULL, S, S | N | C, "/tmp here knows no such flag"},
    {"watch_inotify", NULL, UNKNOWN, NULL, S, S, NULL},
    {"watch_dnotify", NULL, QUIET, NULL, S, S, NULL},
    {"lease", NULL, QUIET, NULL, S, S, NULL},
    {"ioctl_tiocsti*", "ioctl", REFUSED, NULL, S, S, NULL},
    {"ioctl_tioclinux*", "ioctl", REFUSED, NULL, S, S, NULL},
    {"ioctl_*", NULL, UNKNOWN, NULL, S, S, NULL},

    /* The kernel. */
    {"kexec_load", "kexec_load", ENDED, NULL, S, S | C, NULL},
    {"kexec_file_load", "kexec_file_load", ENDED, NULL, S, S | C, NULL},
    {"init_module", "init_module", ENDED, NULL, S, S | C, NULL},
    {"finit_module", "finit_module", ENDED, NULL, S, S | C, NULL},
    {"delete_module", "delete_module", ENDED, NULL, S, S | C, NULL},
    {"reboot", "reboot", ENDED, NULL, S, S | C, NULL},
    {"swapon", "swapon", ENDED, NULL, S, S | N | C, NULL},
    {"swapoff", "swapoff", ENDED, NULL, S, S | N | C, NULL},
    {"bpf_*", "bpf", ENDED, NULL, S, S, NULL},
    {"acct", "acct", REFUSED, NULL, S, S | N | C, NULL},
    {"sethostname", "sethostname", REFUSED, NULL, S, S | C, NULL},
    {"setdomainname", "setdomainname", REFUSED, NULL, S, S | C, NULL},
    {"settimeofday", "settimeofday", REFUSED, NULL, S, S, NULL},
    {"clock_settime", "clock_settime", REFUSED, NULL, S, S, NULL},
    {"adjtimex", "adjtimex", REFUSED, NULL, S, S | N | C, NULL},
    {"clock_adjtime", "clock_adjtime", REFUSED, NULL, S, S | N | C, NULL},
    {"timerfd_alarm", NULL, PASSES, "EPERM", C, N | C, NULL},
    {"syslog", "syslog", REFUSED, NULL, S, S | N | C, NULL},
    {"quotactl", "quotactl", REFUSED, NULL, S, S, NULL},
    {"quotactl_fd", NULL, UNKNOWN, NULL, S, S, NULL},
    {"vhangup", "vhangup", REFUSED, NULL, S, S | N | C, NULL},
    {"nfsservctl", NULL, UNKNOWN, NULL, S, S, NULL},
    {"lookup_dcookie", NULL, UNKNOWN, NULL, S, S, NULL},
    {"perf_event_kernel", "perf_event_open", REFUSED, NULL, S, S | N | C, NULL},
    {"perf_event_open", "perf_event_open", REFUSED, NULL, S, S, NULL},
    {"keyctl*", "keyctl", REFUSED, NULL, S, S, NULL},
    {"add_key", "add_key", REFUSED, NULL, S, S, NULL},
    {"request_key", "request_key", REFUSED, NULL, S, S, NULL},
    {"io_uring_*", NULL, UNKNOWN, NULL, S, S, NULL},
    {"userfaultfd", "userfaultfd", REFUSED, NULL, S, S, NULL},
    {"fanotify_init", "fanotify_init", REFUSED, NULL, S, S | N | C, NULL},
    {"fanotify_mark", NULL, UNKNOWN, NULL, S, S, NULL},
    {"memfd_secret", NULL, UNKNOWN, NULL, S, S, NULL},
    {"pkey_alloc", NULL, UNKNOWN, NULL, S, S, NULL},
    {"set_mempolicy", NULL, UNKNOWN, NULL, S, S, NULL},
    {"remap_file_pages", NULL, UNKNOWN, NULL, S, S, NULL},
    {"vmsplice", NULL, UNKNOWN, NULL, S, S, NULL},
    {"cachestat", NULL, UNKNOWN, NULL, S, S, NULL},
    {"map_shadow_stack", NULL, UNKNOWN, NULL, S, S, NULL},
    {"futex_requeue", NULL, UNKNOWN, NULL, S, S, NULL},
    {"lsm_*", NULL, UNKNOWN, NULL, S, S, NULL},
    {"setxattrat", NULL, UNKNOWN, NULL, S, S, NULL},
    {"file_setattr", NULL, UNKNOWN, NULL, S, S, NULL},
    {"unknown_*", NULL, UNKNOWN, NULL, S, S, NULL},

    /* The machine: x86-64. */
    {"x32_*", NULL, KILLED, "SIGSYS", S, S, NULL},
    {"i386_*", NULL, KILLED, "SIGSYS", S, S, NULL},
    {"iopl", "iopl", ENDED, NULL, S, S, NULL},
    {"ioperm", "ioperm", ENDED, NULL, S, S, NULL},
    {"modify_ldt", "modify_ldt", REFUSED, NULL, S, S, NULL},
    {"set_thread_area", NULL, UNKNOWN, NULL, S, S, NULL},
    {"uselib", NULL, UNKNOWN, NULL, S, S, NULL},
    {"sysctl_old", NULL, UNKNOWN, NULL, S, S, NULL},
};
/* clang-format on */
const size_t expects_n = sizeof(expects) / sizeof(expects[0]);
