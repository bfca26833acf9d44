/*
 * The system calls of a cell, as data. What is not here is answered ENOSYS, so that libc
 * falls back to an older call (clone3, io_uring, and whatever the kernel learns next
 * year).
 *
 * A call may stand in several rows: each row's `when` names the policy under which it
 * counts, and rows with a test on an argument cover that argument's values without
 * overlap (libseccomp drops argument rows beside an unconditional one). Tests are on all
 * 64 bits; where the kernel itself looks at 32, TEST_MASKED keeps a caller from hiding a
 * value behind high bits.
 */
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define CALL(name) SCMP_SYS(name), #name
#define ANY                                                                              \
    {                                                                                    \
        0, TEST_NONE, 0, 0                                                               \
    }
#define EQ(argument, v)                                                                  \
    {                                                                                    \
        argument, TEST_EQ, 0, v                                                          \
    }
#define NE(argument, v)                                                                  \
    {                                                                                    \
        argument, TEST_NE, 0, v                                                          \
    }
#define LT(argument, v)                                                                  \
    {                                                                                    \
        argument, TEST_LT, 0, v                                                          \
    }
#define GT(argument, v)                                                                  \
    {                                                                                    \
        argument, TEST_GT, 0, v                                                          \
    }
#define BITS(arg, mask, v)                                                               \
    {                                                                                    \
        arg, TEST_MASKED, mask, v                                                        \
    }
#define ALONE ANY

#define LOW32             0xffffffffULL
#define PERSONALITY_QUERY 0xffffffffULL

enum {
    NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                     CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
    IOCTL_FICLONE = 0x40049409,
};

/* clang-format off */
const struct syscall_row jail_syscalls[] = {
    /* Memory. PROT_EXEC stays possible: importing numpy maps its code after the seal. */
    {CALL(brk),               CALL_ALLOW, 0, 0, ANY, "malloc", ALONE},
    {CALL(madvise),           CALL_ALLOW, 0, 0, ANY, "malloc gives pages back", ALONE},
    {CALL(memfd_create),      CALL_ALLOW, 0, 0, ANY, "os.memfd_create; counted as the cell's memory", ALONE},
    {CALL(membarrier),        CALL_ALLOW, 0, 0, ANY, "runtimes of extension modules", ALONE},
    {CALL(mincore),           CALL_ALLOW, 0, 0, ANY, "reads its own residency only", ALONE},
    {CALL(mlock),             CALL_ALLOW, 0, 0, ANY, "bounded by RLIMIT_MEMLOCK", ALONE},
    {CALL(mlock2),            CALL_ALLOW, 0, 0, ANY, "bounded by RLIMIT_MEMLOCK", ALONE},
    {CALL(mmap),              CALL_ALLOW, 0, 0, ANY, "obmalloc arenas, shared libraries", ALONE},
    {CALL(mprotect),          CALL_ALLOW, 0, 0, ANY, "the loader's RELRO, ctypes closures", ALONE},
    {CALL(mremap),            CALL_ALLOW, 0, 0, ANY, "realloc of large blocks, mmap.resize", ALONE},
    {CALL(msync),             CALL_ALLOW, 0, 0, ANY, "mmap.flush", ALONE},
    {CALL(munlock),           CALL_ALLOW, 0, 0, ANY, "undoes mlock", ALONE},
    {CALL(munmap),            CALL_ALLOW, 0, 0, ANY, "free", ALONE},

    /* Files: what may be reached is the mount tree's and Landlock's business. */
    {CALL(access),            CALL_ALLOW, 0, 0, ANY, "os.access", ALONE},
    {CALL(chdir),             CALL_ALLOW, 0, 0, ANY, "os.chdir", ALONE},
    {CALL(chmod),             CALL_ALLOW, 0, 0, ANY, "its own files in /tmp", ALONE},
    {CALL(chown),             CALL_ALLOW, 0, 0, ANY, "only to itself: no capability", ALONE},
    {CALL(close),             CALL_ALLOW, 0, 0, ANY, "files", ALONE},
    {CALL(close_range),       CALL_ALLOW, 0, 0, ANY, "subprocess closes descriptors with it", ALONE},
    {CALL(copy_file_range),   CALL_ALLOW, 0, 0, ANY, "shutil.copyfile", ALONE},
    {CALL(creat),             CALL_ALLOW, 0, 0, ANY, "open's elder", ALONE},
    {CALL(dup),               CALL_ALLOW, 0, 0, ANY, "os.dup", ALONE},
    {CALL(dup2),              CALL_ALLOW, 0, 0, ANY, "os.dup2", ALONE},
    {CALL(dup3),              CALL_ALLOW, 0, 0, ANY, "os.dup2", ALONE},
    {CALL(faccessat),         CALL_ALLOW, 0, 0, ANY, "os.access", ALONE},
    {CALL(faccessat2),        CALL_ALLOW, 0, 0, ANY, "os.access", ALONE},
    {CALL(fadvise64),         CALL_ALLOW, 0, 0, ANY, "os.posix_fadvise", ALONE},
    {CALL(fallocate),         CALL_ALLOW, 0, 0, ANY, "bounded by the size of /tmp", ALONE},
    {CALL(fchdir),            CALL_ALLOW, 0, 0, ANY, "os.fchdir", ALONE},
    {CALL(fchmod),            CALL_ALLOW, 0, 0, ANY, "its own files in /tmp", ALONE},
    {CALL(fchmodat),          CALL_ALLOW, 0, 0, ANY, "its own files in /tmp", ALONE},
    {CALL(fchown),            CALL_ALLOW, 0, 0, ANY, "only to itself: no capability", ALONE},
    {CALL(fchownat),          CALL_ALLOW, 0, 0, ANY, "only to itself: no capability", ALONE},
    {CALL(fdatasync),         CALL_ALLOW, 0, 0, ANY, "sqlite3", ALONE},
    {CALL(fgetxattr),         CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(flistxattr),        CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(flock),             CALL_ALLOW, 0, 0, ANY, "fcntl.flock", ALONE},
    {CALL(fremovexattr),      CALL_ALLOW, 0, 0, ANY, "its own files in /tmp", ALONE},
    {CALL(fsetxattr),         CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(fstat),             CALL_ALLOW, 0, 0, ANY, "open", ALONE},
    {CALL(fstatfs),           CALL_ALLOW, 0, 0, ANY, "shutil.disk_usage", ALONE},
    {CALL(fsync),             CALL_ALLOW, 0, 0, ANY, "sqlite3; /tmp is memory", ALONE},
    {CALL(ftruncate),         CALL_ALLOW, 0, 0, ANY, "bounded by the size of /tmp", ALONE},
    {CALL(futimesat),         CALL_ALLOW, 0, 0, ANY, "os.utime", ALONE},
    {CALL(getcwd),            CALL_ALLOW, 0, 0, ANY, "os.getcwd", ALONE},
    {CALL(getdents),          CALL_ALLOW, 0, 0, ANY, "os.listdir", ALONE},
    {CALL(getdents64),        CALL_ALLOW, 0, 0, ANY, "os.listdir", ALONE},
    {CALL(getxattr),          CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(lchown),            CALL_ALLOW, 0, 0, ANY, "only to itself: no capability", ALONE},
    {CALL(lgetxattr),         CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(link),              CALL_ALLOW, 0, 0, ANY, "within /tmp: other mounts are EXDEV", ALONE},
    {CALL(linkat),            CALL_ALLOW, 0, 0, ANY, "within /tmp: other mounts are EXDEV", ALONE},
    {CALL(listxattr),         CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(llistxattr),        CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(lremovexattr),      CALL_ALLOW, 0, 0, ANY, "its own files in /tmp", ALONE},
    {CALL(lseek),             CALL_ALLOW, 0, 0, ANY, "file.seek", ALONE},
    {CALL(lsetxattr),         CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(lstat),             CALL_ALLOW, 0, 0, ANY, "os.lstat", ALONE},
    {CALL(mkdir),             CALL_ALLOW, 0, 0, ANY, "os.mkdir", ALONE},
    {CALL(mkdirat),           CALL_ALLOW, 0, 0, ANY, "os.mkdir", ALONE},
    {CALL(newfstatat),        CALL_ALLOW, 0, 0, ANY, "os.stat", ALONE},
    {CALL(open),              CALL_ALLOW, 0, 0, ANY, "open", ALONE},
    {CALL(openat),            CALL_ALLOW, 0, 0, ANY, "open", ALONE},
    {CALL(openat2),           CALL_ALLOW, 0, 0, ANY, "open, with more rules", ALONE},
    {CALL(pipe),              CALL_ALLOW, 0, 0, ANY, "os.pipe", ALONE},
    {CALL(pipe2),             CALL_ALLOW, 0, 0, ANY, "os.pipe", ALONE},
    {CALL(pread64),           CALL_ALLOW, 0, 0, ANY, "sqlite3", ALONE},
    {CALL(preadv),            CALL_ALLOW, 0, 0, ANY, "os.preadv", ALONE},
    {CALL(preadv2),           CALL_ALLOW, 0, 0, ANY, "os.preadv", ALONE},
    {CALL(pwrite64),          CALL_ALLOW, 0, 0, ANY, "sqlite3", ALONE},
    {CALL(pwritev),           CALL_ALLOW, 0, 0, ANY, "os.pwritev", ALONE},
    {CALL(pwritev2),          CALL_ALLOW, 0, 0, ANY, "os.pwritev", ALONE},
    {CALL(read),              CALL_ALLOW, 0, 0, ANY, "files", ALONE},
    {CALL(readahead),         CALL_ALLOW, 0, 0, ANY, "a hint", ALONE},
    {CALL(readlink),          CALL_ALLOW, 0, 0, ANY, "os.readlink", ALONE},
    {CALL(readlinkat),        CALL_ALLOW, 0, 0, ANY, "os.readlink", ALONE},
    {CALL(readv),             CALL_ALLOW, 0, 0, ANY, "files", ALONE},
    {CALL(removexattr),       CALL_ALLOW, 0, 0, ANY, "its own files in /tmp", ALONE},
    {CALL(rename),            CALL_ALLOW, 0, 0, ANY, "os.rename", ALONE},
    {CALL(renameat),          CALL_ALLOW, 0, 0, ANY, "os.rename", ALONE},
    {CALL(renameat2),         CALL_ALLOW, 0, 0, ANY, "os.rename", ALONE},
    {CALL(rmdir),             CALL_ALLOW, 0, 0, ANY, "os.rmdir", ALONE},
    {CALL(sendfile),          CALL_ALLOW, 0, 0, ANY, "shutil.copyfile", ALONE},
    {CALL(setxattr),          CALL_ALLOW, 0, 0, ANY, "shutil.copystat", ALONE},
    {CALL(splice),            CALL_ALLOW, 0, 0, ANY, "os.splice", ALONE},
    {CALL(stat),              CALL_ALLOW, 0, 0, ANY, "os.stat", ALONE},
    {CALL(statfs),            CALL_ALLOW, 0, 0, ANY, "shutil.disk_usage", ALONE},
    {CALL(statx),             CALL_ALLOW, 0, 0, ANY, "os.stat of newer libcs", ALONE},
    {CALL(symlink),           CALL_ALLOW, 0, 0, ANY, "os.symlink", ALONE},
    {CALL(symlinkat),         CALL_ALLOW, 0, 0, ANY, "os.symlink", ALONE},
    {CALL(sync),              CALL_QUIET, 0, 0, ANY, "answered 0 and not done: it would flush the host's disks", ALONE},
    {CALL(sync_file_range),   CALL_ALLOW, 0, 0, ANY, "sqlite3", ALONE},
    {CALL(syncfs),            CALL_QUIET, 0, 0, ANY, "answered 0 and not done: it would flush the host's disks", ALONE},
    {CALL(tee),               CALL_ALLOW, 0, 0, ANY, "pipes", ALONE},
    {CALL(truncate),          CALL_ALLOW, 0, 0, ANY, "bounded by the size of /tmp", ALONE},
    {CALL(umask),             CALL_ALLOW, 0, 0, ANY, "os.umask", ALONE},
    {CALL(unlink),            CALL_ALLOW, 0, 0, ANY, "os.remove", ALONE},
    {CALL(unlinkat),          CALL_ALLOW, 0, 0, ANY, "os.remove", ALONE},
    {CALL(utime),             CALL_ALLOW, 0, 0, ANY, "os.utime", ALONE},
    {CALL(utimensat),         CALL_ALLOW, 0, 0, ANY, "os.utime", ALONE},
    {CALL(utimes),            CALL_ALLOW, 0, 0, ANY, "os.utime", ALONE},
    {CALL(write),             CALL_ALLOW, 0, 0, ANY, "files", ALONE},
    {CALL(writev),            CALL_ALLOW, 0, 0, ANY, "files", ALONE},

    /* fcntl can also aim signals at any process of the user (F_SETOWN, F_SETSIG): where those
     * could leave the cell, a list without them. */
    {CALL(fcntl),             CALL_ALLOW,  0,     WHEN_SCOPED,   LT(1, F_SETLEASE), "flags, locks, owners", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     WHEN_UNSCOPED, LT(1, F_SETOWN), "flags and POSIX locks", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     WHEN_UNSCOPED, EQ(1, F_OFD_GETLK), "locks", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     WHEN_UNSCOPED, EQ(1, F_OFD_SETLK), "locks", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     WHEN_UNSCOPED, EQ(1, F_OFD_SETLKW), "locks", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     0, EQ(1, F_DUPFD_CLOEXEC), "os.dup", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     0, EQ(1, F_SETPIPE_SZ), "fcntl.F_SETPIPE_SZ", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     0, EQ(1, F_GETPIPE_SZ), "fcntl.F_GETPIPE_SZ", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     0, EQ(1, F_ADD_SEALS), "memory files", ALONE},
    {CALL(fcntl),             CALL_ALLOW,  0,     0, EQ(1, F_GET_SEALS), "memory files", ALONE},
    {CALL(fcntl),             CALL_REFUSE, EPERM, WHEN_UNSCOPED, BITS(1, LOW32, F_SETOWN), "could signal processes outside", ALONE},
    {CALL(fcntl),             CALL_REFUSE, EPERM, WHEN_UNSCOPED, BITS(1, LOW32, F_SETOWN_EX), "could signal processes outside", ALONE},
    {CALL(fcntl),             CALL_REFUSE, EPERM, WHEN_UNSCOPED, BITS(1, LOW32, F_SETSIG), "could signal processes outside", ALONE},

    /* The files of the read-only tree are the host's and every other cell's. Who watches them is
     * told what all of those read; who has a lease on one holds up its writers. inotify is absent
     * for that reason: libraries that miss it look by themselves. */
    {CALL(fcntl),             CALL_QUIET,  EPERM,  0, BITS(1, LOW32, F_NOTIFY), "tells what others read", ALONE},
    {CALL(fcntl),             CALL_QUIET,  EPERM,  0, BITS(1, LOW32, F_SETLEASE), "holds others up", ALONE},

    /* A fifo is a file; a device is a way to the host's drivers. */
    {CALL(mknod),             CALL_ALLOW,  0,     0, BITS(1, S_IFMT, S_IFIFO),  "os.mkfifo", ALONE},
    {CALL(mknod),             CALL_ALLOW,  0,     0, BITS(1, S_IFMT, S_IFREG),  "os.mknod", ALONE},
    {CALL(mknod),             CALL_REFUSE, EPERM, 0, BITS(1, S_IFMT, S_IFCHR),  "a device", ALONE},
    {CALL(mknod),             CALL_REFUSE, EPERM, 0, BITS(1, S_IFMT, S_IFBLK),  "a device", ALONE},
    {CALL(mknodat),           CALL_ALLOW,  0,     0, BITS(2, S_IFMT, S_IFIFO),  "os.mkfifo", ALONE},
    {CALL(mknodat),           CALL_ALLOW,  0,     0, BITS(2, S_IFMT, S_IFREG),  "os.mknod", ALONE},
    {CALL(mknodat),           CALL_REFUSE, EPERM, 0, BITS(2, S_IFMT, S_IFCHR),  "a device", ALONE},
    {CALL(mknodat),           CALL_REFUSE, EPERM, 0, BITS(2, S_IFMT, S_IFBLK),  "a device", ALONE},

    /* ioctl reaches every driver: a list of harmless requests, and two that type into a terminal. */
    {CALL(ioctl),             CALL_ALLOW,  0,          0, EQ(1, TCGETS),     "isatty", ALONE},
    {CALL(ioctl),             CALL_ALLOW,  0,          0, EQ(1, TIOCGWINSZ), "os.get_terminal_size", ALONE},
    {CALL(ioctl),             CALL_ALLOW,  0,          0, EQ(1, TIOCGPGRP),  "os.tcgetpgrp", ALONE},
    {CALL(ioctl),             CALL_ALLOW,  0,          0, EQ(1, FIONREAD),   "bytes waiting in a pipe", ALONE},
    {CALL(ioctl),             CALL_ALLOW,  0,          0, EQ(1, FIONBIO),    "socket.setblocking", ALONE},
    {CALL(ioctl),             CALL_ALLOW,  0,          0, EQ(1, FIOCLEX),    "CPython makes descriptors close-on-exec", ALONE},
    {CALL(ioctl),             CALL_ALLOW,  0,          0, EQ(1, FIONCLEX),   "os.set_inheritable", ALONE},
    {CALL(ioctl),             CALL_QUIET,  EOPNOTSUPP, 0, EQ(1, IOCTL_FICLONE), "shutil falls back to copying", ALONE},
    {CALL(ioctl),             CALL_REFUSE, EPERM,      0, BITS(1, LOW32, TIOCSTI),   "types into a terminal", ALONE},
    {CALL(ioctl),             CALL_REFUSE, EPERM,      0, BITS(1, LOW32, TIOCLINUX), "types into a console", ALONE},

    /* Waiting and events. */
    {CALL(epoll_create),      CALL_ALLOW, 0, 0, ANY, "asyncio", ALONE},
    {CALL(epoll_create1),     CALL_ALLOW, 0, 0, ANY, "asyncio", ALONE},
    {CALL(epoll_ctl),         CALL_ALLOW, 0, 0, ANY, "asyncio", ALONE},
    {CALL(epoll_pwait),       CALL_ALLOW, 0, 0, ANY, "asyncio", ALONE},
    {CALL(epoll_pwait2),      CALL_ALLOW, 0, 0, ANY, "asyncio", ALONE},
    {CALL(epoll_wait),        CALL_ALLOW, 0, 0, ANY, "asyncio", ALONE},
    {CALL(eventfd),           CALL_ALLOW, 0, 0, ANY, "os.eventfd", ALONE},
    {CALL(eventfd2),          CALL_ALLOW, 0, 0, ANY, "os.eventfd", ALONE},
    {CALL(poll),              CALL_ALLOW, 0, 0, ANY, "select.poll", ALONE},
    {CALL(ppoll),             CALL_ALLOW, 0, 0, ANY, "select.poll", ALONE},
    {CALL(pselect6),          CALL_ALLOW, 0, 0, ANY, "time.sleep, select.select", ALONE},
    {CALL(select),            CALL_ALLOW, 0, 0, ANY, "select.select", ALONE},
    {CALL(signalfd),          CALL_ALLOW, 0, 0, ANY, "its own signals", ALONE},
    {CALL(signalfd4),         CALL_ALLOW, 0, 0, ANY, "its own signals", ALONE},
    {CALL(timerfd_create),    CALL_ALLOW, 0, 0, ANY, "os.timerfd_create", ALONE},
    {CALL(timerfd_gettime),   CALL_ALLOW, 0, 0, ANY, "os.timerfd_gettime", ALONE},
    {CALL(timerfd_settime),   CALL_ALLOW, 0, 0, ANY, "os.timerfd_settime", ALONE},

    /* Sockets. Unix sockets reach only the cell's own files in namespaces; without them a path
     * leads to the host's services and Landlock does not stop connect, so only connected pairs
     * of streams exist there (a datagram pair could still be sent to an address). */
    {CALL(socket),            CALL_ALLOW,  0,      WHEN_NAMESPACES | WHEN_NO_NETWORK, EQ(0, AF_UNIX), "multiprocessing, asyncio", ALONE},
    {CALL(socket),            CALL_REFUSE, EACCES, WHEN_NAMESPACES | WHEN_NO_NETWORK, NE(0, AF_UNIX), "no network", ALONE},
    {CALL(socket),            CALL_REFUSE, EACCES, WHEN_NAMESPACES | WHEN_LOOPBACK,   EQ(0, AF_UNSPEC), "no such family", ALONE},
    {CALL(socket),            CALL_ALLOW,  0,      WHEN_NAMESPACES | WHEN_LOOPBACK,   EQ(0, AF_UNIX), "multiprocessing, asyncio", ALONE},
    {CALL(socket),            CALL_ALLOW,  0,      WHEN_NAMESPACES | WHEN_LOOPBACK,   EQ(0, AF_INET), "the cell's own loopback", ALONE},
    {CALL(socket),            CALL_ALLOW,  0,      WHEN_NAMESPACES | WHEN_LOOPBACK,   EQ(0, AF_INET6), "the cell's own loopback", ALONE},
    {CALL(socket),            CALL_REFUSE, EACCES, WHEN_NAMESPACES | WHEN_LOOPBACK,   GT(0, AF_INET6), "netlink, packet, vsock and kin", ALONE},
    {CALL(socket),            CALL_REFUSE, EACCES, WHEN_LANDLOCK, ANY, "no socket that can be given an address", ALONE},
    {CALL(socketpair),        CALL_ALLOW,  0,      WHEN_NAMESPACES, EQ(0, AF_UNIX), "asyncio wakes itself with one", ALONE},
    {CALL(socketpair),        CALL_REFUSE, EACCES, WHEN_NAMESPACES, NE(0, AF_UNIX), "no such family", ALONE},
    {CALL(socketpair),        CALL_ALLOW,  0,      WHEN_LANDLOCK, EQ(0, AF_UNIX), "asyncio wakes itself with one", BITS(1, 0xf, SOCK_STREAM)},
    {CALL(socketpair),        CALL_REFUSE, EACCES, WHEN_LANDLOCK, EQ(0, AF_UNIX), "its ends can be given an address", BITS(1, 0xf, SOCK_DGRAM)},
    {CALL(socketpair),        CALL_REFUSE, EACCES, WHEN_LANDLOCK, NE(0, AF_UNIX), "no such family", ALONE},
    {CALL(accept),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "multiprocessing.connection", ALONE},
    {CALL(accept4),           CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "multiprocessing.connection", ALONE},
    {CALL(bind),              CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "multiprocessing.connection", ALONE},
    {CALL(connect),           CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "multiprocessing.connection", ALONE},
    {CALL(listen),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "multiprocessing.connection", ALONE},
    {CALL(getpeername),       CALL_ALLOW, 0, 0, ANY, "socket", ALONE},
    {CALL(getsockname),       CALL_ALLOW, 0, 0, ANY, "socket", ALONE},
    {CALL(getsockopt),        CALL_ALLOW, 0, 0, ANY, "socket", ALONE},
    {CALL(recvfrom),          CALL_ALLOW, 0, 0, ANY, "socket.recv", ALONE},
    {CALL(recvmmsg),          CALL_ALLOW, 0, 0, ANY, "socket", ALONE},
    {CALL(recvmsg),           CALL_ALLOW, 0, 0, ANY, "multiprocessing hands descriptors over", ALONE},
    {CALL(sendmmsg),          CALL_ALLOW, 0, 0, ANY, "socket", ALONE},
    {CALL(sendmsg),           CALL_ALLOW, 0, 0, ANY, "multiprocessing hands descriptors over", ALONE},
    {CALL(sendto),            CALL_ALLOW, 0, 0, ANY, "socket.send", ALONE},
    {CALL(setsockopt),        CALL_ALLOW, 0, 0, ANY, "socket", ALONE},
    {CALL(shutdown),          CALL_ALLOW, 0, 0, ANY, "socket", ALONE},

    /* Time: reading and waiting, never setting. */
    {CALL(alarm),             CALL_ALLOW, 0, 0, ANY, "signal.alarm", ALONE},
    {CALL(clock_getres),      CALL_ALLOW, 0, 0, ANY, "time.get_clock_info", ALONE},
    {CALL(clock_gettime),     CALL_ALLOW, 0, 0, ANY, "time.time where there is no vDSO", ALONE},
    {CALL(clock_nanosleep),   CALL_ALLOW, 0, 0, ANY, "time.sleep", ALONE},
    {CALL(getitimer),         CALL_ALLOW, 0, 0, ANY, "signal.getitimer", ALONE},
    {CALL(gettimeofday),      CALL_ALLOW, 0, 0, ANY, "time.time where there is no vDSO", ALONE},
    {CALL(nanosleep),         CALL_ALLOW, 0, 0, ANY, "time.sleep", ALONE},
    {CALL(setitimer),         CALL_ALLOW, 0, 0, ANY, "signal.setitimer", ALONE},
    {CALL(time),              CALL_ALLOW, 0, 0, ANY, "time.time where there is no vDSO", ALONE},
    {CALL(timer_create),      CALL_ALLOW, 0, 0, ANY, "bounded by RLIMIT_SIGPENDING", ALONE},
    {CALL(timer_delete),      CALL_ALLOW, 0, 0, ANY, "undoes timer_create", ALONE},
    {CALL(timer_getoverrun),  CALL_ALLOW, 0, 0, ANY, "timers", ALONE},
    {CALL(timer_gettime),     CALL_ALLOW, 0, 0, ANY, "timers", ALONE},
    {CALL(timer_settime),     CALL_ALLOW, 0, 0, ANY, "timers", ALONE},
    {CALL(times),             CALL_ALLOW, 0, 0, ANY, "os.times", ALONE},
    {CALL(adjtimex),          CALL_REFUSE, EPERM, 0, ANY, "the host's clock", ALONE},
    {CALL(clock_adjtime),     CALL_REFUSE, EPERM, 0, ANY, "the host's clock", ALONE},
    {CALL(clock_settime),     CALL_REFUSE, EPERM, 0, ANY, "the host's clock", ALONE},
    {CALL(settimeofday),      CALL_REFUSE, EPERM, 0, ANY, "the host's clock", ALONE},

    /* Who and where it is. */
    {CALL(capget),            CALL_ALLOW, 0, 0, ANY, "reads sets that are empty", ALONE},
    {CALL(getcpu),            CALL_ALLOW, 0, 0, ANY, "os.sched_getcpu", ALONE},
    {CALL(getegid),           CALL_ALLOW, 0, 0, ANY, "os.getegid", ALONE},
    {CALL(geteuid),           CALL_ALLOW, 0, 0, ANY, "os.geteuid", ALONE},
    {CALL(getgid),            CALL_ALLOW, 0, 0, ANY, "os.getgid", ALONE},
    {CALL(getgroups),         CALL_ALLOW, 0, 0, ANY, "os.getgroups", ALONE},
    {CALL(getpgid),           CALL_ALLOW, 0, 0, ANY, "os.getpgid", ALONE},
    {CALL(getpgrp),           CALL_ALLOW, 0, 0, ANY, "os.getpgrp", ALONE},
    {CALL(getpid),            CALL_ALLOW, 0, 0, ANY, "os.getpid", ALONE},
    {CALL(getppid),           CALL_ALLOW, 0, 0, ANY, "os.getppid", ALONE},
    {CALL(getpriority),       CALL_ALLOW, 0, 0, ANY, "os.getpriority", ALONE},
    {CALL(getrandom),         CALL_ALLOW, 0, 0, ANY, "os.urandom", ALONE},
    {CALL(getresgid),         CALL_ALLOW, 0, 0, ANY, "os.getresgid", ALONE},
    {CALL(getresuid),         CALL_ALLOW, 0, 0, ANY, "os.getresuid", ALONE},
    {CALL(getrlimit),         CALL_ALLOW, 0, 0, ANY, "resource.getrlimit", ALONE},
    {CALL(getrusage),         CALL_ALLOW, 0, 0, ANY, "resource.getrusage", ALONE},
    {CALL(getsid),            CALL_ALLOW, 0, 0, ANY, "os.getsid", ALONE},
    {CALL(gettid),            CALL_ALLOW, 0, 0, ANY, "threading.get_native_id", ALONE},
    {CALL(getuid),            CALL_ALLOW, 0, 0, ANY, "os.getuid", ALONE},
    {CALL(sched_get_priority_max), CALL_ALLOW, 0, 0, ANY, "a constant", ALONE},
    {CALL(sched_get_priority_min), CALL_ALLOW, 0, 0, ANY, "a constant", ALONE},
    {CALL(sched_getaffinity), CALL_ALLOW, 0, 0, ANY, "os.cpu_count of libraries", ALONE},
    {CALL(sched_getattr),     CALL_ALLOW, 0, 0, ANY, "reads", ALONE},
    {CALL(sched_getparam),    CALL_ALLOW, 0, 0, ANY, "reads", ALONE},
    {CALL(sched_getscheduler), CALL_ALLOW, 0, 0, ANY, "reads", ALONE},
    {CALL(sched_rr_get_interval), CALL_ALLOW, 0, 0, ANY, "reads", ALONE},
    {CALL(sched_yield),       CALL_ALLOW, 0, 0, ANY, "OpenBLAS spins with it", ALONE},
    {CALL(sysinfo),           CALL_ALLOW, 0, 0, ANY, "os.sysconf('SC_PHYS_PAGES')", ALONE},
    {CALL(uname),             CALL_ALLOW, 0, 0, ANY, "platform; the name is the cell's", ALONE},
    /* On itself alone where others can be seen: pid 0 is the caller. */
    {CALL(prlimit64),         CALL_ALLOW, 0,     WHEN_NAMESPACES, ANY, "resource.prlimit, within the cell", ALONE},
    {CALL(prlimit64),         CALL_ALLOW, 0,     WHEN_LANDLOCK, EQ(0, 0), "resource.setrlimit", ALONE},
    {CALL(prlimit64),         CALL_QUIET, EPERM, WHEN_LANDLOCK, NE(0, 0), "limits of another process", ALONE},
    {CALL(sched_setaffinity), CALL_ALLOW, 0,     WHEN_NAMESPACES, ANY, "os.sched_setaffinity, within the cell", ALONE},
    {CALL(sched_setaffinity), CALL_ALLOW, 0,     WHEN_LANDLOCK, EQ(0, 0), "os.sched_setaffinity(0, …)", ALONE},
    {CALL(sched_setaffinity), CALL_QUIET, EPERM, WHEN_LANDLOCK, NE(0, 0), "another process", ALONE},
    {CALL(setrlimit),         CALL_ALLOW, 0, 0, ANY, "lowers: raising needs a capability", ALONE},
    {CALL(setpgid),           CALL_ALLOW, 0, 0, ANY, "os.setpgid", ALONE},
    {CALL(setsid),            CALL_ALLOW, 0, 0, ANY, "daemons of its own; they die with the cell", ALONE},
    {CALL(setpriority),       CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "os.nice", ALONE},
    {CALL(setpriority),       CALL_QUIET, EPERM, WHEN_LANDLOCK, ANY, "could reach processes outside", ALONE},
    {CALL(ioprio_get),        CALL_QUIET, EPERM, 0, ANY, "no use", ALONE},
    {CALL(ioprio_set),        CALL_QUIET, EPERM, 0, ANY, "could slow others", ALONE},
    {CALL(sched_setattr),     CALL_QUIET, EPERM, 0, ANY, "real-time scheduling starves the host", ALONE},
    {CALL(sched_setparam),    CALL_QUIET, EPERM, 0, ANY, "real-time scheduling starves the host", ALONE},
    {CALL(sched_setscheduler), CALL_QUIET, EPERM, 0, ANY, "real-time scheduling starves the host", ALONE},
    {CALL(setfsgid),          CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setfsuid),          CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setgid),            CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setgroups),         CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setregid),          CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setresgid),         CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setresuid),         CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setreuid),          CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(setuid),            CALL_QUIET, EPERM, 0, ANY, "one identity", ALONE},
    {CALL(capset),            CALL_QUIET, EPERM, 0, ANY, "none to set", ALONE},

    /* Signals. Where they could leave the cell, none is sent. */
    {CALL(pause),             CALL_ALLOW, 0, 0, ANY, "signal.pause", ALONE},
    {CALL(restart_syscall),   CALL_ALLOW, 0, 0, ANY, "the kernel's own, after SIGCONT", ALONE},
    {CALL(rt_sigaction),      CALL_ALLOW, 0, 0, ANY, "signal.signal", ALONE},
    {CALL(rt_sigpending),     CALL_ALLOW, 0, 0, ANY, "signal.sigpending", ALONE},
    {CALL(rt_sigprocmask),    CALL_ALLOW, 0, 0, ANY, "signal.pthread_sigmask", ALONE},
    {CALL(rt_sigreturn),      CALL_ALLOW, 0, 0, ANY, "the end of every handler", ALONE},
    {CALL(rt_sigsuspend),     CALL_ALLOW, 0, 0, ANY, "waits", ALONE},
    {CALL(rt_sigtimedwait),   CALL_ALLOW, 0, 0, ANY, "signal.sigtimedwait", ALONE},
    {CALL(sigaltstack),       CALL_ALLOW, 0, 0, ANY, "faulthandler", ALONE},
    {CALL(kill),              CALL_ALLOW, 0, WHEN_SCOPED, ANY, "os.kill", ALONE},
    {CALL(pidfd_send_signal), CALL_ALLOW, 0, WHEN_SCOPED, ANY, "asyncio", ALONE},
    {CALL(rt_sigqueueinfo),   CALL_ALLOW, 0, WHEN_SCOPED, ANY, "sigqueue", ALONE},
    {CALL(rt_tgsigqueueinfo), CALL_ALLOW, 0, WHEN_SCOPED, ANY, "pthread_sigqueue", ALONE},
    {CALL(tgkill),            CALL_ALLOW, 0, WHEN_SCOPED, ANY, "abort, signal.raise_signal", ALONE},
    {CALL(tkill),             CALL_ALLOW, 0, WHEN_SCOPED, ANY, "old libcs' raise", ALONE},
    {CALL(kill),              CALL_REFUSE, EPERM, WHEN_UNSCOPED, ANY, "could reach processes outside", ALONE},
    {CALL(pidfd_send_signal), CALL_REFUSE, EPERM, WHEN_UNSCOPED, ANY, "could reach processes outside", ALONE},
    {CALL(rt_sigqueueinfo),   CALL_REFUSE, EPERM, WHEN_UNSCOPED, ANY, "could reach processes outside", ALONE},
    {CALL(rt_tgsigqueueinfo), CALL_REFUSE, EPERM, WHEN_UNSCOPED, ANY, "could reach processes outside", ALONE},
    {CALL(tgkill),            CALL_REFUSE, EPERM, WHEN_UNSCOPED, ANY, "could reach processes outside", ALONE},
    {CALL(tkill),             CALL_REFUSE, EPERM, WHEN_UNSCOPED, ANY, "could reach processes outside", ALONE},

    /* Threads and processes. */
    {CALL(arch_prctl),        CALL_ALLOW, 0, 0, ANY, "thread-local storage", ALONE},
    {CALL(exit),              CALL_ALLOW, 0, 0, ANY, "a thread ends", ALONE},
    {CALL(exit_group),        CALL_ALLOW, 0, 0, ANY, "the process ends", ALONE},
    {CALL(futex),             CALL_ALLOW, 0, 0, ANY, "every lock", ALONE},
    {CALL(futex_waitv),       CALL_ALLOW, 0, 0, ANY, "every lock", ALONE},
    {CALL(get_robust_list),   CALL_ALLOW, 0, 0, ANY, "threads", ALONE},
    {CALL(pidfd_open),        CALL_ALLOW, 0, 0, ANY, "asyncio waits for children with it", ALONE},
    {CALL(rseq),              CALL_ALLOW, 0, 0, ANY, "glibc registers each thread", ALONE},
    {CALL(set_robust_list),   CALL_ALLOW, 0, 0, ANY, "threads", ALONE},
    {CALL(set_tid_address),   CALL_ALLOW, 0, 0, ANY, "threads", ALONE},
    {CALL(wait4),             CALL_ALLOW, 0, 0, ANY, "os.waitpid", ALONE},
    {CALL(waitid),            CALL_ALLOW, 0, 0, ANY, "os.waitid", ALONE},
    /* clone3 is absent on purpose: its flags lie in memory, where no filter can look. */
    {CALL(clone),             CALL_ALLOW,  0,     WHEN_FORK,    BITS(0, NEW_NAMESPACES, 0), "os.fork and threads", ALONE},
    {CALL(clone),             CALL_ALLOW,  0,     WHEN_NO_FORK, BITS(0, NEW_NAMESPACES | CLONE_THREAD, CLONE_THREAD), "threads", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_NO_FORK, BITS(0, CLONE_THREAD, 0), "the policy allows no processes", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_FORK, BITS(0, CLONE_NEWNS, CLONE_NEWNS), "a namespace", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_FORK, BITS(0, CLONE_NEWCGROUP, CLONE_NEWCGROUP), "a namespace", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_FORK, BITS(0, CLONE_NEWUTS, CLONE_NEWUTS), "a namespace", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_FORK, BITS(0, CLONE_NEWIPC, CLONE_NEWIPC), "a namespace", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_FORK, BITS(0, CLONE_NEWUSER, CLONE_NEWUSER), "a namespace", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_FORK, BITS(0, CLONE_NEWPID, CLONE_NEWPID), "a namespace", ALONE},
    {CALL(clone),             CALL_REFUSE, EPERM, WHEN_FORK, BITS(0, CLONE_NEWNET, CLONE_NEWNET), "a namespace", ALONE},
    {CALL(fork),              CALL_ALLOW,  0,     WHEN_FORK,    ANY, "os.fork of old libcs", ALONE},
    {CALL(fork),              CALL_REFUSE, EPERM, WHEN_NO_FORK, ANY, "the policy allows no processes", ALONE},
    {CALL(vfork),             CALL_ALLOW,  0,     WHEN_FORK,    ANY, "subprocess", ALONE},
    {CALL(vfork),             CALL_REFUSE, EPERM, WHEN_NO_FORK, ANY, "the policy allows no processes", ALONE},
    {CALL(execve),            CALL_ALLOW,  0,     WHEN_EXEC,    ANY, "the policy allows programs", ALONE},
    {CALL(execve),            CALL_REFUSE, EPERM, WHEN_NO_EXEC, ANY, "the policy allows no programs", ALONE},
    {CALL(execveat),          CALL_ALLOW,  0,     WHEN_EXEC,    ANY, "the policy allows programs", ALONE},
    {CALL(execveat),          CALL_REFUSE, EPERM, WHEN_NO_EXEC, ANY, "the policy allows no programs", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_SET_PDEATHSIG), "multiprocessing libraries", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_GET_PDEATHSIG), "reads", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_GET_DUMPABLE), "reads", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_SET_DUMPABLE), "itself alone", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_SET_NAME), "threads are named with it", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_GET_NAME), "reads", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_GET_SECCOMP), "reads", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_CAPBSET_READ), "reads", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_GET_TIMERSLACK), "reads", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_SET_NO_NEW_PRIVS), "is set already", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_GET_NO_NEW_PRIVS), "reads", ALONE},
    {CALL(prctl),             CALL_ALLOW,  0,     0, EQ(0, PR_SET_VMA), "malloc names its mappings", ALONE},
    {CALL(prctl),             CALL_REFUSE, EPERM, 0, BITS(0, LOW32, PR_SET_SECCOMP), "filters are ours to set", ALONE},
    {CALL(prctl),             CALL_REFUSE, EPERM, 0, BITS(0, LOW32, PR_SET_MM), "rewrites what /proc says of it", ALONE},
    {CALL(personality),       CALL_ALLOW,  0,     0, BITS(0, LOW32, PERSONALITY_QUERY), "reads", ALONE},

    /* Gone since Linux 3.1, and ENOSYS to everybody else. */
    {CALL(nfsservctl),        CALL_BELL,  0,     0, EQ(0, JAIL_BELL), "the guest's doorbell: something to show", ALONE},

    /* System V IPC lives in a namespace of its own, or not at all. */
    {CALL(msgctl),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(msgget),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(msgrcv),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(msgsnd),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(semctl),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(semget),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(semop),             CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(semtimedop),        CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(shmat),             CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(shmctl),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(shmdt),             CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},
    {CALL(shmget),            CALL_ALLOW, 0, WHEN_NAMESPACES, ANY, "own IPC namespace", ALONE},

    /* Known, refused, recorded: no program of this kind needs them, and each has been a way out. */
    {CALL(acct),              CALL_REFUSE, EPERM, 0, ANY, "accounting of the host", ALONE},
    {CALL(add_key),           CALL_REFUSE, EPERM, 0, ANY, "keyrings are not namespaced", ALONE},
    {CALL(chroot),            CALL_REFUSE, EPERM, 0, ANY, "its root is what it is", ALONE},
    {CALL(fanotify_init),     CALL_REFUSE, EPERM, 0, ANY, "watches file systems", ALONE},
    {CALL(fsconfig),          CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(fsmount),           CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(fsopen),            CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(fspick),            CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(kcmp),              CALL_REFUSE, EPERM, 0, ANY, "compares kernel pointers", ALONE},
    {CALL(keyctl),            CALL_REFUSE, EPERM, 0, ANY, "keyrings are not namespaced", ALONE},
    {CALL(modify_ldt),        CALL_REFUSE, EPERM, 0, ANY, "16-bit segments", ALONE},
    {CALL(mount),             CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(mount_setattr),     CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(move_mount),        CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(name_to_handle_at), CALL_REFUSE, EPERM, 0, ANY, "half of open_by_handle_at", ALONE},
    {CALL(open_tree),         CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(perf_event_open),   CALL_REFUSE, EPERM, 0, ANY, "a large attack surface", ALONE},
    {CALL(pidfd_getfd),       CALL_REFUSE, EPERM, 0, ANY, "takes descriptors of others", ALONE},
    {CALL(pivot_root),        CALL_REFUSE, EPERM, 0, ANY, "its root is what it is", ALONE},
    {CALL(process_madvise),   CALL_REFUSE, EPERM, 0, ANY, "acts on others' memory", ALONE},
    {CALL(process_vm_readv),  CALL_REFUSE, EPERM, 0, ANY, "reads others' memory", ALONE},
    {CALL(quotactl),          CALL_REFUSE, EPERM, 0, ANY, "the host's disks", ALONE},
    {CALL(request_key),       CALL_REFUSE, EPERM, 0, ANY, "keyrings are not namespaced", ALONE},
    {CALL(seccomp),           CALL_REFUSE, EPERM, 0, ANY, "filters are ours to set", ALONE},
    {CALL(setdomainname),     CALL_REFUSE, EPERM, 0, ANY, "names the machine", ALONE},
    {CALL(sethostname),       CALL_REFUSE, EPERM, 0, ANY, "names the machine", ALONE},
    {CALL(setns),             CALL_REFUSE, EPERM, 0, ANY, "joins namespaces", ALONE},
    {CALL(syslog),            CALL_REFUSE, EPERM, 0, ANY, "the kernel's log", ALONE},
    {CALL(umount2),           CALL_REFUSE, EPERM, 0, ANY, "mounting", ALONE},
    {CALL(unshare),           CALL_REFUSE, EPERM, 0, ANY, "makes namespaces", ALONE},
    {CALL(userfaultfd),       CALL_REFUSE, EPERM, 0, ANY, "stops the kernel at a chosen point", ALONE},
    {CALL(vhangup),           CALL_REFUSE, EPERM, 0, ANY, "the host's terminal", ALONE},
    {CALL(ptrace),            CALL_REFUSE, EPERM, 0, EQ(0, PTRACE_TRACEME), "debugging", ALONE},

    /* Attack-only: an innocent program has no reason to try, so the cell is ended. */
    {CALL(ptrace),            CALL_END, EPERM, 0, NE(0, PTRACE_TRACEME), "takes another process over", ALONE},
    {CALL(bpf),               CALL_END, EPERM, 0, ANY, "code in the kernel", ALONE},
    {CALL(delete_module),     CALL_END, EPERM, 0, ANY, "code in the kernel", ALONE},
    {CALL(finit_module),      CALL_END, EPERM, 0, ANY, "code in the kernel", ALONE},
    {CALL(init_module),       CALL_END, EPERM, 0, ANY, "code in the kernel", ALONE},
    {CALL(ioperm),            CALL_END, EPERM, 0, ANY, "hardware ports", ALONE},
    {CALL(iopl),              CALL_END, EPERM, 0, ANY, "hardware ports", ALONE},
    {CALL(kexec_file_load),   CALL_END, EPERM, 0, ANY, "another kernel", ALONE},
    {CALL(kexec_load),        CALL_END, EPERM, 0, ANY, "another kernel", ALONE},
    {CALL(open_by_handle_at), CALL_END, EPERM, 0, ANY, "opens files past every mount (the shocker escape)", ALONE},
    {CALL(process_vm_writev), CALL_END, EPERM, 0, ANY, "writes others' memory", ALONE},
    {CALL(reboot),            CALL_END, EPERM, 0, ANY, "the host", ALONE},
    {CALL(swapoff),           CALL_END, EPERM, 0, ANY, "the host", ALONE},
    {CALL(swapon),            CALL_END, EPERM, 0, ANY, "the host", ALONE},
};
/* clang-format on */

const size_t jail_syscalls_n = sizeof(jail_syscalls) / sizeof(*jail_syscalls);
