/*
 * The table of what a host may offer, and what each row is found by. The order is that of
 * the layers: walls, then limits, then the system calls that making a cell takes, then
 * notes.
 */
#include "jail/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/cgroup.h"
#include "jail/host_parts.h"
#include "kernel/kernel.h"
#include "policy/policy.h"

enum { SETTING_BYTES = 256 };
enum {
    SLOT_OF_MEMORY,
    SLOT_OF_PIDS,
    SLOT_OF_CPU
}; /* of cgroup v1, as in struct cgroup */

/* What the probes of one call share. */
struct probing {
    struct host *host;
    struct cgroup cgroup; /* the trial's, while its rows are filled */
    int cgroup_error;
    struct err cgroup_err;
    bool cgroup_kill, cgroup_cpu; /* what the trial's group has */
};

struct probe {
    const char *name;
    void (*run)(struct probing *p, const struct probe *probe, struct host_row *row);
    int flag;            /* of clone(2), or the slot of a controller */
    const char *setting; /* the file whose 0 would explain a refusal */
    unsigned needed_for;
    const char *cost;
};

static const char landlock_instead[] = "adyton run --isolation landlock …";

PRINTF(3, 4)
static void
tell(struct host_row *row, enum host_state state, const char *format, ...)
{
    va_list arguments;
    row->state = state;
    va_start(arguments, format);
    vsnprintf(row->detail, sizeof(row->detail), format, arguments);
    va_end(arguments);
}

static void
mend(struct host_row *row, const char *remedy)
{
    bool as_root = strncmp(remedy, "sysctl ", 7) == 0 && geteuid() != 0;
    snprintf(row->remedy, sizeof(row->remedy), "%s%s", as_root ? "sudo " : "", remedy);
}

/* A small kernel file without its line end; false when it cannot be read. */
static bool
setting(const char *path, char text[SETTING_BYTES])
{
    if (file_read(AT_FDCWD, path, text, SETTING_BYTES) < 0)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* The settings that close user namespaces to ordinary users, and what opens them again.
 */
static const struct {
    const char *file, *closed_by, *name, *remedy;
} closers[] = {
    {"/proc/sys/kernel/unprivileged_userns_clone", "0",
     "kernel.unprivileged_userns_clone", "sysctl -w kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces",
     "sysctl -w user.max_user_namespaces=15000"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "kernel.apparmor_restrict_unprivileged_userns",
     "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
};

/* Why: the first setting that stands in the way, the container, or nothing that we know.
 */
static void
explain_refusal(const struct probing *p, const char *limit, struct host_row *row)
{
    char text[SETTING_BYTES];
    size_t n = strlen(row->detail);
    for (size_t i = 0; i < sizeof(closers) / sizeof(closers[0]); i++) {
        if (!setting(closers[i].file, text) || strcmp(text, closers[i].closed_by) != 0)
            continue;
        snprintf(row->detail + n, sizeof(row->detail) - n, " (%s is %s)", closers[i].name,
                 text);
        mend(row, closers[i].remedy);
        return;
    }
    if (limit && setting(limit, text) && strcmp(text, "0") == 0) {
        const char *name = strrchr(limit, '/') + 1;
        snprintf(row->detail + n, sizeof(row->detail) - n, " (user.%s is 0)", name);
        char remedy[HOST_REMEDY_BYTES];
        snprintf(remedy, sizeof(remedy), "sysctl -w user.%.40s=15000", name);
        mend(row, remedy);
        return;
    }
    if (p->host->in_container)
        snprintf(row->detail + n, sizeof(row->detail) - n,
                 " (by this container's profile)");
    mend(row, landlock_instead);
}

static void
probe_namespace(struct probing *p, const struct probe *probe, struct host_row *row)
{
    struct err err = {0};
    if (host_try_namespace(probe->flag, &err) == 0) {
        tell(row, HOST_YES, "made one");
        return;
    }
    tell(row, HOST_NO, "%s", err.text);
    explain_refusal(p, probe->setting, row);
}

static void
probe_mounts(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)probe;
    struct err err = {0};
    if (host_try_mounts(&err) == 0) {
        tell(row, HOST_YES, "tmpfs, proc and read-only copies in new namespaces");
        return;
    }
    tell(row, HOST_NO, "%s", err.text);
    explain_refusal(p, NULL, row);
}

static void
probe_landlock(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    struct err err = {0};
    int abi = k_landlock_abi();
    if (abi > 0 && host_try_landlock(&err) == 0) {
        tell(row, HOST_YES, "ABI %d", abi);
        return;
    }
    tell(row, HOST_NO, "%s",
         abi > 0 ? err.text : "absent, or not in the list of boot option lsm=");
    char active[SETTING_BYTES];
    if (!setting("/sys/kernel/security/lsm", active))
        snprintf(active, sizeof(active), "lockdown,yama,integrity,apparmor");
    snprintf(row->remedy, sizeof(row->remedy), "boot with lsm=landlock,%.100s", active);
}

static void
probe_attempt(struct host_row *row, const char *yes, int (*attempt)(struct err *err))
{
    struct err err = {0};
    if (attempt(&err) == 0)
        tell(row, HOST_YES, "%s", yes);
    else
        tell(row, HOST_NO, "%s", err.text);
}

static void
probe_filter(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    probe_attempt(row, "a filter holds", host_try_filter);
}

static void
probe_notification(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    probe_attempt(row, "a listener can be had", host_try_notification);
    if (row->state == HOST_NO)
        mend(row, "start adyton outside of the supervisor that watches this process");
}

static void
probe_clone3(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    probe_attempt(row, "works", host_try_clone3);
}

/* Slot of a controller: v2 has one for all. */
static const char *
slot_path(const struct cgroup *cgroup, size_t slot)
{
    return cgroup->slots[cgroup->version == 2 ? 0 : slot].parent;
}

static void
probe_controller(struct probing *p, const struct probe *probe, struct host_row *row)
{
    if (p->cgroup_error < 0) {
        tell(row, HOST_NO, "%s", p->cgroup_err.text);
        /* Only v2 is ever given into a user's hands, by systemd. */
        bool v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
        mend(row, p->host->uid == 0 ? "adyton run --cgroup optional …"
                  : v2 ? "systemd-run --user --scope -p Delegate=yes adyton run …"
                       : "sudo adyton run …");
        return;
    }
    tell(row, HOST_YES, "%s, made a group in %s", cgroup_label(&p->cgroup),
         slot_path(&p->cgroup, (size_t)probe->flag));
    if (probe->flag == SLOT_OF_CPU && !p->cgroup_cpu)
        tell(row, HOST_NO, "%s, which does not count it", cgroup_label(&p->cgroup));
}

static void
probe_cgroup_kill(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)probe;
    if (p->cgroup_error < 0)
        tell(row, HOST_NO, "no control group to try it in");
    else if (p->cgroup_kill)
        tell(row, HOST_YES, "present");
    else if (p->cgroup.version == 1)
        tell(row, HOST_NOTE, "cgroup v1 has none: members are killed one by one");
    else
        tell(row, HOST_NOTE, "this kernel has none: members are killed one by one");
}

static void
probe_openat2(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    AUTO_CLOSE int fd = k_openat2(AT_FDCWD, "/", &how);
    if (fd < 0)
        tell(row, HOST_NO, "refused: %s", strerrordesc_np(errno));
    else
        tell(row, HOST_YES, "works");
}

static void
probe_pidfd(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    AUTO_CLOSE int fd = pidfd_open(getpid(), 0);
    if (fd < 0 || pidfd_send_signal(fd, 0, NULL, 0) < 0)
        tell(row, HOST_NO, "refused: %s", strerrordesc_np(errno));
    else
        tell(row, HOST_YES, "works");
}

static void
probe_close_range(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    /* A range that holds nothing. */
    if (close_range(~0U, ~0U, 0) < 0)
        tell(row, HOST_NO, "refused: %s", strerrordesc_np(errno));
    else
        tell(row, HOST_YES, "works");
}

static void
probe_overcommit(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    char text[SETTING_BYTES];
    if (!setting("/proc/sys/vm/overcommit_memory", text))
        tell(row, HOST_NOTE, "unknown");
    else if (strcmp(text, "2") == 0)
        tell(row, HOST_NOTE,
             "mode 2: large reservations (numpy, thread stacks) may be refused");
    else
        tell(row, HOST_YES, "mode %s", text);
}

static void
probe_core_pattern(struct probing *p, const struct probe *probe, struct host_row *row)
{
    (void)p, (void)probe;
    char text[SETTING_BYTES];
    if (!setting("/proc/sys/kernel/core_pattern", text))
        tell(row, HOST_NOTE, "unknown");
    else if (text[0] == '|')
        tell(row, HOST_NOTE, "handled by a program of the host: %.200s", text + 1);
    else
        tell(row, HOST_YES, "a file, which the cell's limit forbids");
}

/* clang-format off */
static const struct probe probes[] = {
    {"user namespace",   probe_namespace, CLONE_NEWUSER,   "/proc/sys/user/max_user_namespaces",
     HOST_FOR_NAMESPACES, "no walls of namespaces at all"},
    {"mount namespace",  probe_namespace, CLONE_NEWNS,     "/proc/sys/user/max_mnt_namespaces",
     HOST_FOR_NAMESPACES, "no file system of its own"},
    {"pid namespace",    probe_namespace, CLONE_NEWPID,    "/proc/sys/user/max_pid_namespaces",
     HOST_FOR_NAMESPACES, "the host's processes would be in sight"},
    {"net namespace",    probe_namespace, CLONE_NEWNET,    "/proc/sys/user/max_net_namespaces",
     HOST_FOR_NAMESPACES, "the host's network would be in reach"},
    {"ipc namespace",    probe_namespace, CLONE_NEWIPC,    "/proc/sys/user/max_ipc_namespaces",
     HOST_FOR_NAMESPACES, "the host's shared memory would be in reach"},
    {"uts namespace",    probe_namespace, CLONE_NEWUTS,    "/proc/sys/user/max_uts_namespaces",
     HOST_FOR_NAMESPACES, "the host's name would be in sight"},
    {"cgroup namespace", probe_namespace, CLONE_NEWCGROUP, "/proc/sys/user/max_cgroup_namespaces",
     HOST_FOR_NAMESPACES, "the host's control groups would be in sight"},
    {"mounts",           probe_mounts, 0, NULL,
     HOST_FOR_NAMESPACES, "no root, /tmp and /proc of its own"},
    {"landlock",         probe_landlock, 0, NULL,
     HOST_FOR_NAMESPACES | HOST_FOR_LANDLOCK, "no second wall around files"},
    {"seccomp",          probe_filter, 0, NULL,
     HOST_FOR_NAMESPACES | HOST_FOR_LANDLOCK, "no filter of system calls"},
    {"seccomp notify",   probe_notification, 0, NULL,
     HOST_FOR_NAMESPACES | HOST_FOR_LANDLOCK, "forbidden acts could not be told"},
    {"cgroup memory",    probe_controller, SLOT_OF_MEMORY, NULL,
     HOST_FOR_CGROUP, "memory is only watched, not limited by the kernel"},
    {"cgroup pids",      probe_controller, SLOT_OF_PIDS, NULL,
     HOST_FOR_CGROUP, "processes are limited by rlimit alone"},
    {"cgroup cpu",       probe_controller, SLOT_OF_CPU, NULL,
     0, "CPU time is summed from the processes that are alive"},
    {"cgroup.kill",      probe_cgroup_kill, 0, NULL,
     0, "a cell's end takes a moment longer"},
    {"clone3",           probe_clone3, 0, NULL,
     HOST_FOR_NAMESPACES | HOST_FOR_LANDLOCK, "no cell can be made (Linux 5.3; some containers refuse it)"},
    {"openat2",          probe_openat2, 0, NULL,
     HOST_FOR_NAMESPACES | HOST_FOR_LANDLOCK, "files could not be opened safely (Linux 5.6)"},
    {"pidfd",            probe_pidfd, 0, NULL,
     HOST_FOR_NAMESPACES | HOST_FOR_LANDLOCK, "a cell could not be watched safely (Linux 5.3)"},
    {"close_range",      probe_close_range, 0, NULL,
     HOST_FOR_NAMESPACES | HOST_FOR_LANDLOCK, "descriptors of ours could reach a cell (Linux 5.9)"},
    {"memory overcommit", probe_overcommit, 0, NULL,
     0, "numeric libraries may fail to reserve memory"},
    {"core dumps",       probe_core_pattern, 0, NULL,
     0, "a crash in a cell may start that program, unless the cell turns dumps off"},
};
/* clang-format on */

static bool
is_in_container(void)
{
    static const char *const signs[] = {"/.dockerenv", "/run/.containerenv",
                                        "/run/systemd/container"};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (access(signs[i], F_OK) == 0)
            return true;
    return getenv("KUBERNETES_SERVICE_HOST") != NULL;
}

/* A group as a cell of the default policy gets it; made, looked at, removed. */
static void
try_cgroup(struct probing *p, const struct policy *policy)
{
    cgroup_init(&p->cgroup);
    p->cgroup_error = cgroup_find(&p->cgroup, &p->cgroup_err);
    if (p->cgroup_error < 0)
        return;
    p->cgroup_error = cgroup_make(&p->cgroup, policy, &p->cgroup_err);
    bool v1 = p->cgroup.version == 1;
    int dir = p->cgroup.slots[0].dir, cpu = v1 ? p->cgroup.slots[SLOT_OF_CPU].dir : dir;
    p->cgroup_kill = dir >= 0 && faccessat(dir, "cgroup.kill", F_OK, 0) == 0;
    p->cgroup_cpu =
        cpu >= 0 && faccessat(cpu, v1 ? "cpuacct.usage" : "cpu.stat", F_OK, 0) == 0;
    int r = cgroup_remove(&p->cgroup);
    if (p->cgroup_error == 0 && r < 0)
        p->cgroup_error = err_set(&p->cgroup_err, r, "cannot remove a control group: %s",
                                  strerrordesc_np(-r));
}

static bool
has_all(const struct host *host, unsigned need)
{
    for (size_t i = 0; i < host->rows_n; i++)
        if ((host->rows[i].needed_for & need) && host->rows[i].state == HOST_NO)
            return false;
    return true;
}

int
host_probe(struct host *ret, struct err *err)
{
    _Static_assert(sizeof(probes) / sizeof(probes[0]) <= HOST_ROWS_MAX, "a row for each");
    struct policy policy = {0};
    int r = policy_load(policy_default, &policy, err);
    if (r < 0)
        return r;
    *ret = (struct host){.uid = geteuid(), .in_container = is_in_container()};
    struct probing p = {.host = ret};
    try_cgroup(&p, &policy);
    policy_done(&policy);

    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        struct host_row *row = &ret->rows[ret->rows_n++];
        row->name = probes[i].name;
        row->needed_for = probes[i].needed_for;
        row->cost = probes[i].cost;
        probes[i].run(&p, &probes[i], row);
    }
    ret->namespaces = has_all(ret, HOST_FOR_NAMESPACES);
    ret->landlock = has_all(ret, HOST_FOR_LANDLOCK);
    ret->cgroup = has_all(ret, HOST_FOR_CGROUP);
    return 0;
}

const char *
host_state_name(enum host_state state)
{
    static const char *const names[] = {
        [HOST_YES] = "yes", [HOST_NO] = "no", [HOST_NOTE] = "note"};
    return names[state];
}
