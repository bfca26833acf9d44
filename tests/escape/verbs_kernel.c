/*
 * Verbs against the kernel itself. Every one is harmless where it is let through: the
 * pointer is bad, the descriptor is none, the magic number is wrong, or the flag does not
 * exist.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static long
result(long r)
{
    return r < 0 ? -errno : r;
}

/* Hangs up the controlling terminal, so the process first gets rid of it. */
static long
run_vhangup(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    setsid();
    return result(syscall(SYS_vhangup));
}

/* Modes and a tick that no kernel accepts: the permission is checked before the value. */
static long
run_tick(const struct verb *verb, pid_t target)
{
    (void)target;
    struct timex wrong = {.modes = ADJ_TICK, .tick = 1};
    if (verb->number == SYS_clock_adjtime)
        return result(syscall(verb->number, CLOCK_REALTIME, &wrong));
    return result(syscall(verb->number, &wrong));
}

static long
run_uring(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    struct io_uring_params params = {.flags = 0};
    return result(syscall(SYS_io_uring_setup, 1, &params));
}

/* Takes its arguments from the row, but with a structure the kernel writes into. */
static long
run_timerfd_alarm(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    /* A clock that wakes a sleeping machine: CAP_WAKE_ALARM. */
    return result(syscall(SYS_timerfd_create, CLOCK_REALTIME_ALARM, 0));
}

static const struct perf_event_attr counter = {
    .type = PERF_TYPE_SOFTWARE,
    .size = sizeof(struct perf_event_attr),
    .config = PERF_COUNT_SW_CPU_CLOCK,
};
static const union bpf_attr map = {
    .map_type = BPF_MAP_TYPE_ARRAY,
    .key_size = 4,
    .value_size = 4,
    .max_entries = 1,
};

#define BAD_POINTER 1
#define BAD_FLAGS   0xffff

/* clang-format off */
const struct verb verbs_kernel[] = {
    {"kexec_load", "another kernel", .number = SYS_kexec_load,
     .args = {0, 1, 0, BAD_FLAGS}},
    {"kexec_file_load", "another kernel", .number = SYS_kexec_file_load,
     .args = {-1, -1, 0, 0, BAD_FLAGS}},
    {"init_module", "a module", .number = SYS_init_module},
    {"finit_module", "a module", .number = SYS_finit_module, .args = {-1, (long)"", 0}},
    {"delete_module", "a module gone", .number = SYS_delete_module,
     .args = {BAD_POINTER, O_NONBLOCK}},
    {"reboot", "a reboot, with the wrong magic number", .number = SYS_reboot},
    {"swapon", "a swap file", .number = SYS_swapon},
    {"swapoff", "no swap file", .number = SYS_swapoff},
    {"acct", "process accounting", .number = SYS_acct, .args = {BAD_POINTER}},
    {"sethostname", "another host name", .number = SYS_sethostname,
     .args = {(long)"adyton", 6}},
    {"setdomainname", "another domain name", .number = SYS_setdomainname,
     .args = {(long)"adyton", 6}},
    {"settimeofday", "another time", .number = SYS_settimeofday, .args = {BAD_POINTER}},
    {"clock_settime", "another time", .number = SYS_clock_settime,
     .args = {CLOCK_REALTIME, BAD_POINTER}},
    {"adjtimex", "another tick", .number = SYS_adjtimex, .run = run_tick},
    {"clock_adjtime", "another tick", .number = SYS_clock_adjtime, .run = run_tick},
    {"timerfd_alarm", "a timer that wakes the machine", .run = run_timerfd_alarm},
    {"syslog", "the kernel's log", .number = SYS_syslog, .args = {2, 0, 0}},
    {"quotactl", "a quota", .number = SYS_quotactl, .args = {0x80000400, BAD_POINTER}},
    {"quotactl_fd", "a quota", .number = SYS_quotactl_fd, .args = {-1, 0x80000400}},
    {"vhangup", "the terminal hung up", .run = run_vhangup},
    {"nfsservctl", "a call that is gone", .number = SYS_nfsservctl},
    {"lookup_dcookie", "a path by its cookie", .number = SYS_lookup_dcookie},

    {"bpf_map", "a BPF map", .number = SYS_bpf,
     .args = {BPF_MAP_CREATE, (long)&map, sizeof(map)}},
    {"bpf_program", "a BPF program with a bad pointer", .number = SYS_bpf,
     .args = {BPF_PROG_LOAD, BAD_POINTER, 48}},
    {"perf_event_open", "a performance counter", .number = SYS_perf_event_open,
     .args = {(long)&counter, 0, -1, -1, PERF_FLAG_FD_CLOEXEC}},
    {"perf_event_kernel", "all of a processor", .number = SYS_perf_event_open,
     .args = {(long)&counter, -1, 0, -1, PERF_FLAG_FD_CLOEXEC}},
    {"keyctl", "its session's keyring", .number = SYS_keyctl,
     .args = {KEYCTL_GET_KEYRING_ID, KEY_SPEC_THREAD_KEYRING, 1}},
    {"keyctl_session", "the keyring of its user", .number = SYS_keyctl,
     .args = {KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0}},
    {"add_key", "a key", .number = SYS_add_key,
     .args = {(long)"user", (long)"adyton", (long)"x", 1, KEY_SPEC_THREAD_KEYRING}},
    {"request_key", "a key that does not exist", .number = SYS_request_key,
     .args = {(long)"user", (long)"adyton-none", 0, 0}},
    {"io_uring_setup", "a ring", .run = run_uring},
    {"io_uring_enter", "a ring", .number = SYS_io_uring_enter, .args = {-1, 1}},
    {"io_uring_register", "a ring", .number = SYS_io_uring_register, .args = {-1}},
    {"userfaultfd", "faults in user space", .number = SYS_userfaultfd,
     .args = {O_CLOEXEC | 1}}, /* UFFD_USER_MODE_ONLY */
    {"fanotify_init", "everybody's file events", .number = SYS_fanotify_init},
    {"fanotify_mark", "everybody's file events", .number = SYS_fanotify_mark,
     .args = {-1, 1, 1, AT_FDCWD, (long)"/"}},
    {"memfd_secret", "memory that the kernel cannot see", .number = SYS_memfd_secret,
     .args = {O_CLOEXEC}},
    {"pkey_alloc", "a protection key", .number = SYS_pkey_alloc},
    {"set_mempolicy", "a memory policy", .number = SYS_set_mempolicy, .args = {0, 0, 0}},
    {"remap_file_pages", "a nonlinear mapping", .number = SYS_remap_file_pages},
    {"vmsplice", "pages into a pipe", .number = SYS_vmsplice, .args = {-1}},

    /* Newer than the headers of the oldest host; the numbers are the same everywhere. */
    {"cachestat", "the page cache", .number = 451, .args = {-1}},
    {"map_shadow_stack", "a shadow stack", .number = 453},
    {"futex_requeue", "futexes of the new kind", .number = 456},
    {"lsm_get_self_attr", "its security attributes", .number = 459},
    {"lsm_set_self_attr", "other security attributes", .number = 460},
    {"lsm_list_modules", "the security modules", .number = 461},
    {"setxattrat", "attributes by the new call", .number = 463, .args = {-1}},
    {"file_setattr", "file attributes by the new call", .number = 469, .args = {-1}},
    {"unknown_500", "a call not yet made", .number = 500},
    {"unknown_9999", "a call that does not exist", .number = 9999},
};
/* clang-format on */
const size_t verbs_kernel_n = COUNT(verbs_kernel);
