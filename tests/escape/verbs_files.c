/*
 * Verbs against files: the host's, the kernel's, devices, and descriptors that could be
 * more than they look. Opening is the whole attempt; nothing is written but in /tmp and
 * in the process's own memory.
 */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static long
result(long r)
{
    return r < 0 ? -errno : r;
}

/* A file of /proc/<target>; the name stands in arg 0 and the flags in arg 1. */
static long
run_proc_target(const struct verb *verb, pid_t target)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)target, (const char *)verb->args[0]);
    int fd = open(path, (int)verb->args[1] | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    char c;
    /* Some are opened by anybody and refuse to be read. */
    return (verb->args[1] & O_DIRECTORY) ? 0 : result(read(fd, &c, 1));
}

/* The own memory: harmless, and debuggers of one's own process need it. */
static long
run_own_memory(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    volatile char c = 1;
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : result(pwrite(fd, "\2", 1, (off_t)(intptr_t)&c));
}

static long
run_handle(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    union {
        struct file_handle head;
        char bytes[sizeof(struct file_handle) + 8];
    } handle = {.head = {.handle_bytes = 8, .handle_type = 1}};
    int root = open("/", O_DIRECTORY | O_CLOEXEC);
    return result(open_by_handle_at(root, &handle.head, O_RDONLY | O_CLOEXEC));
}

static long
run_name_to_handle(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    union {
        struct file_handle head;
        char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
    int mount;
    return result(name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount, 0));
}

/* The name of a temporary file that does not exist any more. */
static int
free_name(char name[PROBE_PATH_BYTES])
{
    int fd = probe_temp(name);
    if (fd < 0)
        return fd;
    close(fd);
    return unlink(name) < 0 ? -errno : 0;
}

/* A node in /tmp, and whether it opens: the row's args are mode, major, minor. */
static long
run_mknod(const struct verb *verb, pid_t target)
{
    (void)target;
    char name[PROBE_PATH_BYTES];
    int r = free_name(name);
    if (r < 0)
        return r;
    dev_t device = makedev((unsigned)verb->args[1], (unsigned)verb->args[2]);
    if (mknod(name, (mode_t)verb->args[0] | 0600, device) < 0)
        return -errno;
    int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    long answer = fd < 0 ? -errno : 0;
    unlink(name);
    return answer;
}

/* A link in /tmp to a file outside, and through it. */
static long
run_symlink(const struct verb *verb, pid_t target)
{
    (void)target;
    char name[PROBE_PATH_BYTES];
    int r = free_name(name);
    if (r < 0)
        return r;
    if (symlink((const char *)verb->args[0], name) < 0)
        return -errno;
    int fd = open(name, (int)verb->args[1] | O_CLOEXEC);
    long answer = fd < 0 ? -errno : 0;
    unlink(name);
    return answer;
}

static long
run_hardlink(const struct verb *verb, pid_t target)
{
    (void)target;
    char name[PROBE_PATH_BYTES];
    int r = free_name(name);
    if (r < 0)
        return r;
    if (link((const char *)verb->args[0], name) < 0)
        return -errno;
    unlink(name);
    return 0;
}

/* On a file of its own in /tmp: what privilege it could be given. */
static int
own_file(void)
{
    char name[PROBE_PATH_BYTES];
    int fd = probe_temp(name);
    if (fd >= 0)
        unlink(name);
    return fd;
}

static long
run_chown(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    int fd = own_file();
    return fd < 0 ? fd : result(fchown(fd, 12345, 12345));
}

static long
run_file_capability(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    /* struct vfs_cap_data, revision 2, effective, CAP_SYS_ADMIN. */
    static const uint32_t data[5] = {0x02000001, 1U << 21, 0, 0, 0};
    int fd = own_file();
    return fd < 0 ? fd
                  : result(fsetxattr(fd, "security.capability", data, sizeof(data), 0));
}

static long
run_immutable(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    int fd = own_file();
    if (fd < 0)
        return fd;
    int flags = FS_IMMUTABLE_FL;
    long r = result(ioctl(fd, FS_IOC_SETFLAGS, &flags));
    flags = 0;
    if (r >= 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0)
        return -errno;
    return r;
}

/* The whole 64-bit request, past libc: a pipe is no terminal and answers ENOTTY. */
static long
run_ioctl(const struct verb *verb, pid_t target)
{
    (void)target;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    return result(syscall(SYS_ioctl, fds[0], verb->args[0], ""));
}

/* Up from a folder descriptor by more ".." than any root is deep, then into the host. */
static long
run_climb(const struct verb *verb, pid_t target)
{
    (void)target;
    int fd = open("/proc/self/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return result(openat(fd, (const char *)verb->args[0], O_RDONLY | O_CLOEXEC));
}

/* The file that libc, or this very code, was loaded from: the cell has it read-only. */
static long
run_library(const struct verb *verb, pid_t target)
{
    (void)target;
    Dl_info info;
    const void *inside = verb->args[0] ? (const void *)verbs_files : (const void *)stdout;
    if (!dladdr(inside, &info) || !info.dli_fname || info.dli_fname[0] != '/')
        return -ENOENT;
    return result(open(info.dli_fname, O_WRONLY | O_CLOEXEC));
}

/* The terminal that the parent may have had; a new session is how one asks for another.
 */
static long
run_terminal(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    return result(open("/dev/tty", O_RDWR | O_CLOEXEC));
}

/* The tree is the host's and every cell's: who watches it is told what all of them read. */
static long
run_inotify(const struct verb *verb, pid_t target)
{
    (void)target;
    int fd = inotify_init1(IN_CLOEXEC);
    return fd < 0 ? -errno
                  : result(inotify_add_watch(fd, (const char *)verb->args[0], IN_OPEN));
}

/* A file or folder, a command, and its argument. */
static long
run_fcntl(const struct verb *verb, pid_t target)
{
    (void)target;
    int fd = open((const char *)verb->args[0], (int)verb->args[3] | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : result(fcntl(fd, (int)verb->args[1], (int)verb->args[2]));
}

static const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};

#define UP "../../../../../../../.."
#define OPEN(path, flags)                                                                \
    .number = SYS_openat, .args = {AT_FDCWD, (long)(path), (flags) | O_CLOEXEC, 0600}
#define TARGET(name, flags)                                                              \
    .run = run_proc_target, .args = {(long)(name), flags}, .aim = AIM_OWN
#define IOCTL(request) .run = run_ioctl, .args = {request}
#define FOLDER         O_RDONLY | O_DIRECTORY

/* clang-format off */
const struct verb verbs_files[] = {
    {"open_host_file", "a file in the host's /tmp", OPEN(HOST_FILE, O_RDONLY)},
    {"open_shadow", "the host's passwords", OPEN("/etc/shadow", O_RDONLY)},
    {"open_home", "the homes of the host", OPEN("/home", FOLDER)},
    {"open_var", "the host's /var", OPEN("/var/lib", FOLDER)},
    {"open_boot", "the host's /boot", OPEN("/boot", FOLDER)},
    {"open_run", "the host's /run", OPEN("/run/lock", FOLDER)},
    {"write_root", "a new file in the root", OPEN("/", O_WRONLY | O_TMPFILE)},
    {"write_etc", "a new file in /etc", OPEN("/etc", O_WRONLY | O_TMPFILE)},
    {"write_usr", "a new file in /usr", OPEN("/usr", O_WRONLY | O_TMPFILE)},
    {"write_library", "the C library", .run = run_library, .args = {0}},
    {"write_probe", "a file of read_paths", .run = run_library, .args = {1}},
    {"write_shared", "a file of read_paths that all may write",
     OPEN(HOST_SHARED "/file", O_WRONLY)},
    {"write_shared_new", "a new file in read_paths",
     OPEN(HOST_SHARED, O_WRONLY | O_TMPFILE)},
    {"write_dev", "a new file in /dev", OPEN("/dev", O_WRONLY | O_TMPFILE)},
    {"climb_root", "up out of the root", .run = run_climb, .args = {(long)UP HOST_FILE}},
    {"climb_shadow", "up out of the root", .run = run_climb,
     .args = {(long)UP "/etc/shadow"}},
    {"openat2_climb", "up out of the root by openat2", .number = SYS_openat2,
     .args = {AT_FDCWD, (long)UP HOST_FILE, (long)&how, sizeof(how)}},
    {"symlink_outside", "a link in /tmp to the host's passwords", .run = run_symlink,
     .args = {(long)"/etc/shadow", O_RDONLY}},
    {"symlink_host_file", "a link in /tmp to the host's /tmp", .run = run_symlink,
     .args = {(long)HOST_FILE, O_RDWR}},
    {"symlink_setting", "a link in /tmp to a setting of the kernel", .run = run_symlink,
     .args = {(long)"/proc/sys/kernel/core_pattern", O_WRONLY}},
    {"hardlink_outside", "a hard link to the host's passwords", .run = run_hardlink,
     .args = {(long)"/etc/shadow"}},
    {"hardlink_host_file", "a hard link to a file of the host", .run = run_hardlink,
     .args = {(long)HOST_FILE}},

    {"self_exe_write", "the interpreter, by /proc/self/exe",
     OPEN("/proc/self/exe", O_WRONLY)},
    {"watch_inotify", "what others read of the C library's folder", .run = run_inotify,
     .args = {(long)"/usr/lib"}},
    {"watch_dnotify", "what others read of the C library's folder", .run = run_fcntl,
     .args = {(long)"/usr/lib", F_NOTIFY, DN_ACCESS, FOLDER}},
    {"lease", "holding up whoever opens a file", .run = run_fcntl,
     .args = {(long)"/tmp", F_SETLEASE, F_WRLCK, O_TMPFILE | O_RDWR}},
    {"init_mem", "the memory of its init", OPEN("/proc/1/mem", O_RDWR)},
    {"init_environ", "the environment of its init", OPEN("/proc/1/environ", O_RDONLY)},
    {"init_root", "the root of its init", OPEN("/proc/1/root/", FOLDER)},
    {"init_fds", "the descriptors of its init", OPEN("/proc/1/fd", FOLDER)},
    {"target_mem", "the memory of a process outside", TARGET("mem", O_RDWR)},
    {"target_environ", "the environment of a process outside",
     TARGET("environ", O_RDONLY)},
    {"target_root", "the root of a process outside", TARGET("root/", FOLDER)},
    {"target_fds", "the descriptors of a process outside", TARGET("fd", FOLDER)},
    {"target_status", "that there is a process outside", TARGET("status", O_RDONLY)},
    {"own_memory", "its own memory: allowed", .run = run_own_memory},
    {"core_pattern", "what runs at a crash, outside",
     OPEN("/proc/sys/kernel/core_pattern", O_WRONLY)},
    {"modprobe_path", "what loads modules, outside",
     OPEN("/proc/sys/kernel/modprobe", O_WRONLY)},
    {"sysctl_vm", "the host's memory settings",
     OPEN("/proc/sys/vm/overcommit_memory", O_WRONLY)},
    {"sysrq", "the magic key", OPEN("/proc/sysrq-trigger", O_WRONLY)},
    {"proc_cmdline", "how the host was booted", OPEN("/proc/cmdline", O_RDONLY)},
    {"proc_meminfo", "what the host has of memory", OPEN("/proc/meminfo", O_RDONLY)},
    {"kcore", "the kernel's memory", OPEN("/proc/kcore", O_RDONLY)},
    {"kmsg_proc", "the kernel's log", OPEN("/proc/kmsg", O_RDONLY | O_NONBLOCK)},
    {"kpageflags", "the host's pages", OPEN("/proc/kpageflags", O_RDONLY)},
    {"uid_map", "another uid map", OPEN("/proc/self/uid_map", O_WRONLY)},
    {"timens_offsets", "another clock", OPEN("/proc/self/timens_offsets", O_WRONLY)},
    {"sys_kernel", "the host's /sys", OPEN("/sys/kernel", FOLDER)},
    {"sys_net", "the host's interfaces", OPEN("/sys/class/net", FOLDER)},
    {"sys_cgroup", "the host's cgroups", OPEN("/sys/fs/cgroup", FOLDER)},
    {"sys_power", "the host's power state", OPEN("/sys/power/state", O_WRONLY)},

    {"dev_mem", "physical memory", OPEN("/dev/mem", O_RDONLY)},
    {"dev_port", "I/O ports", OPEN("/dev/port", O_RDONLY)},
    {"dev_kmsg", "the kernel's log", OPEN("/dev/kmsg", O_RDONLY | O_NONBLOCK)},
    {"dev_kvm", "virtual machines", OPEN("/dev/kvm", O_RDWR)},
    {"dev_fuse", "a file system of its own", OPEN("/dev/fuse", O_RDWR)},
    {"dev_tun", "a network interface", OPEN("/dev/net/tun", O_RDWR)},
    {"dev_loop", "loop devices", OPEN("/dev/loop-control", O_RDWR)},
    {"dev_disk", "a disk", OPEN("/dev/loop0", O_RDONLY)},
    {"dev_console", "the console",
     OPEN("/dev/console", O_RDONLY | O_NOCTTY | O_NONBLOCK)},
    {"dev_ptmx", "a terminal", OPEN("/dev/ptmx", O_RDWR | O_NOCTTY)},
    {"dev_tty", "the caller's terminal", .run = run_terminal},
    {"mknod_null", "a character device", .run = run_mknod, .args = {S_IFCHR, 1, 3}},
    {"mknod_disk", "a block device", .run = run_mknod, .args = {S_IFBLK, 7, 0}},
    {"mknod_fifo", "a named pipe: allowed", .run = run_mknod, .args = {S_IFIFO, 0, 0}},

    {"name_to_handle", "a handle of the root", .run = run_name_to_handle},
    {"open_by_handle", "a file by its handle", .run = run_handle},
    {"chown", "a file of its own to another", .run = run_chown},
    {"file_capability", "a capability on a file of its own", .run = run_file_capability},
    {"immutable", "a file of its own that nobody can remove", .run = run_immutable},

    {"ioctl_tiocsti", "typing into a terminal", IOCTL(TIOCSTI)},
    {"ioctl_tiocsti_high", "the same, with high bits", IOCTL(0x100000000L | TIOCSTI)},
    {"ioctl_tiocsti_sign", "the same, sign-extended", IOCTL(~0xffffffffL | TIOCSTI)},
    {"ioctl_tioclinux", "pasting into a console", IOCTL(TIOCLINUX)},
    {"ioctl_tioclinux_high", "the same, with high bits", IOCTL(0x100000000L | TIOCLINUX)},
    {"ioctl_tiocsctty", "a terminal to control", IOCTL(TIOCSCTTY)},
    {"ioctl_tiocsetd", "another line discipline", IOCTL(TIOCSETD)},
};
/* clang-format on */
const size_t verbs_files_n = COUNT(verbs_files);
