/* Makes, fills, reads and removes the cell's control group. Finding a parent is
 * cgroup_find.c. */
#include "jail/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/span.h"
#include "base/units.h"
#include "jail/cgroup_parts.h"

enum {
    INIT_PIDS = 1, /* the cell's init is in the group too */
    REMOVE_TRIES = 400,
    REMOVE_PAUSE_US = 2500,
    PROCS_BYTES = 16 * 1024,
};

struct setting {
    int version;
    unsigned slot;
    const char *file;
    size_t field;  /* offset into struct policy, or SIZE_MAX: constant */
    uint64_t add;  /* added to the field, or the constant */
    bool optional; /* not on every kernel: swap accounting, group kill */
};

static const struct setting settings[] = {
    {2, 0, "memory.max", offsetof(struct policy, memory_bytes), 0, false},
    {2, 0, "memory.swap.max", SIZE_MAX, 0, true},
    /* One process dead of memory and the others alive is no state to go on from. */
    {2, 0, "memory.oom.group", SIZE_MAX, 1, true},
    {2, 0, "pids.max", offsetof(struct policy, pids), INIT_PIDS, false},
    {1, SLOT_MEMORY, "memory.limit_in_bytes", offsetof(struct policy, memory_bytes), 0,
     false},
    {1, SLOT_MEMORY, "memory.memsw.limit_in_bytes", offsetof(struct policy, memory_bytes),
     0, true},
    {1, SLOT_PIDS, "pids.max", offsetof(struct policy, pids), INIT_PIDS, false},
};

void
cgroup_init(struct cgroup *cgroup)
{
    *cgroup = (struct cgroup){0};
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        cgroup->slots[i].dir = -1;
}

static int
make_slot(struct cgroup *cgroup, struct cgroup_slot *slot, struct err *err)
{
    AUTO_CLOSE int parent = open(slot->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return err_sys(err, "open cgroup %s", slot->parent);
    if (mkdirat(parent, cgroup->name, 0755) < 0)
        return err_sys(err, "make cgroup %s/%s", slot->parent, cgroup->name);
    slot->dir = openat(parent, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slot->dir < 0)
        return err_sys(err, "open cgroup %s/%s", slot->parent, cgroup->name);
    return 0;
}

static int
apply_setting(const struct cgroup *cgroup, const struct setting *setting,
              const struct policy *policy, struct err *err)
{
    uint64_t value = setting->add;
    if (setting->field != SIZE_MAX) {
        uint64_t field;
        memcpy(&field, (const char *)policy + setting->field, sizeof(field));
        value += field;
    }
    int r = file_write_u64(cgroup->slots[setting->slot].dir, setting->file, value);
    if (r == 0 ||
        (setting->optional && (r == -ENOENT || r == -EACCES || r == -EOPNOTSUPP)))
        return 0;
    return err_set(err, r, "set %s=%llu in cgroup %s: %s", setting->file,
                   (unsigned long long)value, cgroup->name, strerrordesc_np(-r));
}

static int
apply_settings(const struct cgroup *cgroup, const struct policy *policy, bool backward,
               struct err *err)
{
    enum { SETTINGS = sizeof(settings) / sizeof(*settings) };
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *setting = &settings[backward ? SETTINGS - 1 - i : i];
        if (setting->version != cgroup->version)
            continue;
        int r = apply_setting(cgroup, setting, policy, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* With v1 the limit with swap is never below the one without: wider ones are set from the other
 * end. */
int
cgroup_limit(const struct cgroup *cgroup, const struct policy *policy, struct err *err)
{
    struct err ignored;
    int r = apply_settings(cgroup, policy, false, &ignored);
    if (r == -EINVAL)
        return apply_settings(cgroup, policy, true, err);
    if (r < 0)
        *err = ignored;
    return r;
}

bool
cgroup_limits_alike(const struct policy *a, const struct policy *b)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        size_t at = settings[i].field;
        if (at != SIZE_MAX &&
            memcmp((const char *)a + at, (const char *)b + at, sizeof(uint64_t)) != 0)
            return false;
    }
    return true;
}

uint64_t
cgroup_population(const struct cgroup *cgroup)
{
    int dir = cgroup->slots[cgroup->version == 1 ? SLOT_PIDS : 0].dir;
    uint64_t n;
    return cgroup->version != 0 && file_read_u64(dir, "pids.current", &n) == 0 ? n : 0;
}

bool
cgroup_tells_peak(const struct cgroup *cgroup)
{
    return cgroup->version == 1 ||
           (cgroup->version == 2 &&
            faccessat(cgroup->slots[0].dir, "memory.peak", R_OK, 0) == 0);
}

int
cgroup_make(struct cgroup *cgroup, const struct policy *policy, struct err *err)
{
    for (size_t i = 0; i < CGROUP_SLOTS; i++) {
        if (cgroup->slots[i].parent[0] == '\0')
            continue;
        int r = make_slot(cgroup, &cgroup->slots[i], err);
        if (r < 0)
            return r;
    }
    return cgroup_limit(cgroup, policy, err);
}

int
cgroup_open_joins(const struct cgroup *cgroup, int ret_fds[CGROUP_SLOTS], struct err *err)
{
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        ret_fds[i] = -1;
    const char *file = cgroup->version == 1 ? "tasks" : "cgroup.procs";
    for (size_t i = 0; i < CGROUP_SLOTS; i++) {
        if (cgroup->slots[i].dir < 0)
            continue;
        ret_fds[i] = openat(cgroup->slots[i].dir, file, O_WRONLY | O_CLOEXEC);
        if (ret_fds[i] < 0)
            return err_sys(err, "open %s of cgroup %s/%s", file, cgroup->slots[i].parent,
                           cgroup->name);
    }
    return 0;
}

int
cgroup_join(const int fds[CGROUP_SLOTS], struct err *err)
{
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        if (fds[i] >= 0 && write(fds[i], "0", 1) != 1)
            return err_sys(err, "join the cell's control group");
    return 0;
}

int
cgroup_clone_fd(const struct cgroup *cgroup)
{
    return cgroup->version == 2 ? cgroup->slots[0].dir : -1;
}

/* v1 tells an eventfd; the registration lives as long as the group. */
static int
watch_oom_v1(const struct cgroup *cgroup)
{
    int dir = cgroup->slots[SLOT_MEMORY].dir;
    AUTO_CLOSE int control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    AUTO_CLOSE int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    char text[32];
    if (control < 0 || event < 0)
        return -1;
    snprintf(text, sizeof(text), "%d %d", event, control);
    return file_write(dir, "cgroup.event_control", text) < 0 ? -1 : fd_take(&event);
}

/* v2 modifies memory.events, which inotify sees. */
static int
watch_oom_v2(const struct cgroup *cgroup)
{
    AUTO_CLOSE int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    char path[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES + 16];
    snprintf(path, sizeof(path), "%s/%s/memory.events", cgroup->slots[0].parent,
             cgroup->name);
    return watch < 0 || inotify_add_watch(watch, path, IN_MODIFY) < 0 ? -1
                                                                      : fd_take(&watch);
}

int
cgroup_watch_oom(const struct cgroup *cgroup)
{
    if (cgroup->version == 1)
        return watch_oom_v1(cgroup);
    return cgroup->version == 2 ? watch_oom_v2(cgroup) : -1;
}

/* A counter that a kernel lacks stays 0: the caller treats 0 as "not told". */
static void
read_counter(int dir, const char *file, const char *key, uint64_t *value)
{
    uint64_t read;
    int r = key ? file_read_keyed_u64(dir, file, key, &read)
                : file_read_u64(dir, file, &read);
    if (r == 0)
        *value = read;
}

void
cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *ret)
{
    *ret = (struct cgroup_usage){.cpu_us = cgroup_cpu_us(cgroup)};
    if (cgroup->version == 2) {
        int dir = cgroup->slots[0].dir;
        read_counter(dir, "memory.peak", NULL, &ret->memory_peak_bytes);
        read_counter(dir, "memory.events", "oom_kill", &ret->oom_kills);
        read_counter(dir, "pids.events", "max", &ret->pids_refused);
        read_counter(dir, "pids.peak", NULL, &ret->pids_peak);
    } else if (cgroup->version == 1) {
        int memory = cgroup->slots[SLOT_MEMORY].dir;
        int pids = cgroup->slots[SLOT_PIDS].dir;
        read_counter(memory, "memory.max_usage_in_bytes", NULL, &ret->memory_peak_bytes);
        read_counter(memory, "memory.oom_control", "oom_kill", &ret->oom_kills);
        read_counter(pids, "pids.events", "max", &ret->pids_refused);
        read_counter(pids, "pids.peak", NULL, &ret->pids_peak);
    }
}

uint64_t
cgroup_cpu_us(const struct cgroup *cgroup)
{
    enum { NS_PER_US = 1000 };
    uint64_t us = 0, ns = 0;
    if (cgroup->version == 2)
        read_counter(cgroup->slots[0].dir, "cpu.stat", "usage_usec", &us);
    else if (cgroup->version == 1)
        read_counter(cgroup->slots[SLOT_CPU].dir, "cpuacct.usage", NULL, &ns);
    return cgroup->version == 1 ? ns / NS_PER_US : us;
}

uint64_t
cgroup_memory_bytes(const struct cgroup *cgroup)
{
    uint64_t bytes = 0;
    if (cgroup->version == 2)
        read_counter(cgroup->slots[0].dir, "memory.current", NULL, &bytes);
    else if (cgroup->version == 1)
        read_counter(cgroup->slots[SLOT_MEMORY].dir, "memory.usage_in_bytes", NULL,
                     &bytes);
    return bytes;
}

/* v1, and v2 before 5.14, have no cgroup.kill: its members one by one. */
static void
kill_members(int dir)
{
    char text[PROCS_BYTES];
    if (file_write(dir, "cgroup.kill", "1") == 0)
        return;
    if (file_read(dir, "cgroup.procs", text, sizeof(text)) <= 0)
        return;
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchrnul(line, '\n');
        uint64_t pid;
        if (parse_u64((struct span){line, (size_t)(end - line)}, &pid) == 0 && pid > 1)
            kill((pid_t)pid, SIGKILL);
        if (*end == '\0')
            break;
    }
}

int
cgroup_slot_remove(const char *parent, const char *name)
{
    AUTO_CLOSE int dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? 0 : -errno;
    /* A dead process leaves its group a moment after it was reaped. */
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            return -errno;
        AUTO_CLOSE int group = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (group >= 0)
            kill_members(group);
        struct timespec pause = {0, REMOVE_PAUSE_US * 1000L};
        nanosleep(&pause, NULL);
    }
    return -EBUSY;
}

int
cgroup_remove(struct cgroup *cgroup)
{
    int result = 0;
    for (size_t i = 0; i < CGROUP_SLOTS; i++) {
        struct cgroup_slot *slot = &cgroup->slots[i];
        if (slot->dir >= 0)
            close(fd_take(&slot->dir));
        if (slot->parent[0] == '\0')
            continue;
        int r = cgroup_slot_remove(slot->parent, cgroup->name);
        if (r < 0)
            result = r;
    }
    return result;
}

const char *
cgroup_label(const struct cgroup *cgroup)
{
    return cgroup->version == 2 ? "v2" : "v1";
}
