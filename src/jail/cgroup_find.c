/*
 * Where cells may have their control groups: beneath our own group in each hierarchy, as
 * /proc/self/cgroup and /proc/self/mountinfo tell it, when we may write there.
 *
 * cgroup v2 gives controllers only to groups whose parent holds no process. So in a
 * delegated group (systemd: Delegate=yes) we step down into a child called `supervisor`
 * first; root, for whom the whole tree is open, uses /adyton at the top.
 */
#include "jail/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "jail/cgroup_parts.h"

enum {
    GROUPS_BYTES = 16 * 1024,
    MOUNTS_BYTES_MAX = 8 << 20,
    LINE_BYTES = 8 * 1024,
    MOUNTS_MAX = 4096,
    STALE_MAX = 4096,
};

/* What /proc/self says, read once. */
struct tables {
    char groups[GROUPS_BYTES]; /* cgroup */
    struct buf mounts;         /* mountinfo, with a NUL at its end */
};

static const char supervisor_group[] = "supervisor";
static const char *const v1_controllers[CGROUP_SLOTS] = {
    [SLOT_MEMORY] = "memory", [SLOT_PIDS] = "pids", [SLOT_CPU] = "cpuacct"};

/* True when `word` is one of the comma- or blank-separated words of `list`. */
static bool
has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += n) {
        bool starts = p == list || strchr(", \n", p[-1]);
        if (starts && strchr(", \n", p[n]))
            return true;
    }
    return false;
}

/* Our group in the hierarchy of `controller` (NULL: v2), from /proc/self/cgroup's
 * text. */
static int
own_group(char *table, const char *controller, char path[CGROUP_PATH_BYTES])
{
    for (char *line = table, *end; *line; line = end + (*end != '\0')) {
        end = strchrnul(line, '\n');
        int length = (int)(end - line);
        char controllers[256], group[CGROUP_PATH_BYTES];
        char text[CGROUP_PATH_BYTES + 300];
        snprintf(text, sizeof(text), "%.*s", length, line);
        const char *first = strchr(text, ':');
        const char *second = first ? strchr(first + 1, ':') : NULL;
        if (!second)
            continue;
        snprintf(controllers, sizeof(controllers), "%.*s", (int)(second - first - 1),
                 first + 1);
        snprintf(group, sizeof(group), "%s", second + 1);
        bool found =
            controller ? has_word(controllers, controller) : controllers[0] == '\0';
        if (found) {
            snprintf(path, CGROUP_PATH_BYTES, "%s", group);
            return 0;
        }
    }
    return -ENOENT;
}

/* Mount point and root of the hierarchy, from one line of mountinfo (proc(5)). */
static bool
mount_matches(const char *line, const char *controller, char *root, char *point)
{
    char type[32], options[256];
    const char *dash = strstr(line, " - ");
    if (!dash || sscanf(dash, " - %31s %*s %255s", type, options) != 2)
        return false;
    bool is = controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
                         : strcmp(type, "cgroup2") == 0;
    /* 511: CGROUP_PATH_BYTES less the terminator. */
    return is && sscanf(line, "%*s %*s %*s %511s %511s", root, point) == 2;
}

static int
find_mount(const struct tables *tables, const char *controller,
           char root[CGROUP_PATH_BYTES], char point[CGROUP_PATH_BYTES])
{
    UNCLEARED char line[LINE_BYTES];
    const char *at = tables->mounts.p;
    for (int i = 0; i < MOUNTS_MAX && *at != '\0'; i++) {
        const char *end = strchrnul(at, '\n');
        snprintf(line, sizeof(line), "%.*s", (int)(end - at), at);
        if (mount_matches(line, controller, root, point))
            return 0;
        at = end + (*end != '\0');
    }
    return -ENOENT;
}

static int
read_tables(struct tables *tables, struct err *err)
{
    ssize_t n =
        file_read(AT_FDCWD, "/proc/self/cgroup", tables->groups, sizeof(tables->groups));
    if (n < 0)
        return err_set(err, (int)n, "read /proc/self/cgroup: %s",
                       strerrordesc_np((int)-n));
    AUTO_CLOSE int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : fd_read_all(fd, &tables->mounts);
    if (r == 0)
        r = buf_append(&tables->mounts, "", 1);
    return r < 0 ? err_set(err, r, "read /proc/self/mountinfo: %s", strerrordesc_np(-r))
                 : 0;
}

/* Our own group's folder in a hierarchy, as a path in this mount namespace. */
static int
own_folder(struct tables *tables, const char *controller, char path[CGROUP_PATH_BYTES])
{
    char group[CGROUP_PATH_BYTES], root[CGROUP_PATH_BYTES], point[CGROUP_PATH_BYTES];
    int r = own_group(tables->groups, controller, group);
    if (r == 0)
        r = find_mount(tables, controller, root, point);
    if (r < 0)
        return r;
    /* In a container the mount may begin at our group: its path counts from there. */
    const char *below = group;
    size_t root_n = strlen(root);
    if (strcmp(root, "/") != 0 && strncmp(group, root, root_n) == 0)
        below = group + root_n;
    int length = snprintf(path, CGROUP_PATH_BYTES, "%s%s", point,
                          strcmp(below, "/") == 0 ? "" : below);
    if (length < 0 || length >= CGROUP_PATH_BYTES)
        return -ENAMETOOLONG;
    return access(path, F_OK) < 0 ? -errno : 0;
}

static bool
folder_controllers_include(const char *path, const char *file)
{
    char text[512];
    AUTO_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || file_read(dir, file, text, sizeof(text)) < 0)
        return false;
    return has_word(text, "memory") && has_word(text, "pids");
}

/* Gives the children of `path` the controllers; it must hold no process itself. */
static int
enable_controllers(const char *path)
{
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    if (folder_controllers_include(path, "cgroup.subtree_control"))
        return 0;
    int r = file_write(dir, "cgroup.subtree_control", "+memory +pids");
    if (r == 0)
        /* Usage is in cpu.stat without it on most kernels; a quota would need it. */
        (void)!file_write(dir, "cgroup.subtree_control", "+cpu");
    return r;
}

/* Steps out of the way, so that `path` can give its controllers to its children. */
static int
step_down(const char *path)
{
    char below[CGROUP_PATH_BYTES + 16];
    snprintf(below, sizeof(below), "%s/%s", path, supervisor_group);
    if (mkdir(below, 0755) < 0 && errno != EEXIST)
        return -errno;
    AUTO_CLOSE int dir = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -errno : file_write_u64(dir, "cgroup.procs", (uint64_t)getpid());
}

static int
find_v2(struct tables *tables, struct cgroup *cgroup)
{
    char own[CGROUP_PATH_BYTES], root[CGROUP_PATH_BYTES], point[CGROUP_PATH_BYTES];
    int r = own_folder(tables, NULL, own);
    if (r < 0)
        return r;
    char *last = strrchr(own, '/');
    if (last && strcmp(last + 1, supervisor_group) == 0)
        *last = '\0'; /* an earlier adyton has stepped down already, or somebody for it */
    if (find_mount(tables, NULL, root, point) < 0 ||
        !folder_controllers_include(point, "cgroup.controllers"))
        return -ENOENT; /* a hybrid host: the controllers are bound to v1 */

    char *parent = cgroup->slots[0].parent;
    bool at_top = strcmp(own, point) == 0;
    if (!at_top && access(own, W_OK) == 0 &&
        folder_controllers_include(own, "cgroup.controllers")) {
        snprintf(parent, CGROUP_PATH_BYTES, "%s", own);
        r = enable_controllers(own);
        if (r == -EBUSY && (r = step_down(own)) == 0)
            r = enable_controllers(own);
        if (r == 0)
            return 0;
    }
    if (geteuid() != 0)
        return at_top || r == 0 ? -EACCES : r;
    r = enable_controllers(point);
    /* In a container's cgroup namespace the top is no real root and holds our
     * processes. */
    if (r == -EBUSY && (r = step_down(point)) == 0)
        r = enable_controllers(point);
    if (r < 0)
        return r;
    int length = snprintf(parent, CGROUP_PATH_BYTES, "%s/adyton", point);
    if (length < 0 || length >= CGROUP_PATH_BYTES)
        return -ENAMETOOLONG;
    if (mkdir(parent, 0755) < 0 && errno != EEXIST)
        return -errno;
    return enable_controllers(parent);
}

static int
find_v1(struct tables *tables, struct cgroup *cgroup)
{
    for (size_t i = 0; i < CGROUP_SLOTS; i++) {
        char *parent = cgroup->slots[i].parent;
        int r = own_folder(tables, v1_controllers[i], parent);
        if (r == 0 && access(parent, W_OK) < 0)
            r = -errno;
        if (r < 0)
            return r;
    }
    return 0;
}

/* Field 22 of /proc/PID/stat, in clock ticks since boot: with the pid it names one
 * process. -ENOENT or -ESRCH: there is no such process; any other error tells nothing of
 * it. */
static int
start_time(pid_t pid, unsigned long long *ret)
{
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    ssize_t n = file_read(AT_FDCWD, path, text, sizeof(text));
    if (n < 0)
        return (int)n;
    const char *p = strrchr(text, ')');
    if (!p || sscanf(p + 2,
                     "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                     "%*s %*s %*s %llu",
                     ret) != 1)
        return -EINVAL;
    return 0;
}

/* Only what is known to be dead: whoever cannot look (no descriptor left, say) must not
 * take a living supervisor's cell for an orphan. */
static bool
is_orphan(const char *name)
{
    int pid;
    unsigned long long named, now = 0;
    if (sscanf(name, "adyton-%d-%llu-", &pid, &named) != 2)
        return false;
    int r = start_time((pid_t)pid, &now);
    return r == -ENOENT || r == -ESRCH || (r == 0 && now != named);
}

/* Removes groups whose supervisor is gone: it died together with its keeper. */
static void
sweep(const char *parent)
{
    DIR *dir = opendir(parent);
    if (!dir)
        return;
    struct dirent *entry;
    for (int i = 0; i < STALE_MAX && (entry = readdir(dir)) != NULL; i++)
        if (is_orphan(entry->d_name))
            (void)!cgroup_slot_remove(parent, entry->d_name);
    closedir(dir);
}

static int
refusal(int r, struct err *err)
{
    static const char mend[] =
        "start it with 'systemd-run --user --scope -p Delegate=yes adyton run …', as "
        "root, or "
        "accept a supervisor that only watches memory with --cgroup optional";
    return err_set(err, r, "no control group to limit the cell with (%s): %s",
                   strerrordesc_np(-r), mend);
}

static void
name_group(struct cgroup *cgroup, unsigned long long started)
{
    snprintf(cgroup->name, sizeof(cgroup->name), "adyton-%d-%llu-%llu", getpid(), started,
             (unsigned long long)clock_now_us());
}

void
cgroup_like(const struct cgroup *other, struct cgroup *ret)
{
    *ret = *other;
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        ret->slots[i].dir = -1;
    /* The family name stays, up to the last dash: cgroup_remove_family goes by it. */
    char *dash = strrchr(ret->name, '-');
    size_t n = dash ? (size_t)(dash - ret->name) + 1 : 0;
    if (dash)
        snprintf(dash + 1, sizeof(ret->name) - n, "%llu",
                 (unsigned long long)clock_now_us());
}

/* Names differ after the last dash alone: see name_group. */
static void
remove_family(const char *parent, const char *name)
{
    const char *dash = strrchr(name, '-');
    DIR *dir = opendir(parent);
    if (!dir || !dash) {
        if (dir)
            closedir(dir);
        return;
    }
    size_t n = (size_t)(dash - name) + 1;
    struct dirent *entry;
    for (int i = 0; i < STALE_MAX && (entry = readdir(dir)) != NULL; i++)
        if (strncmp(entry->d_name, name, n) == 0)
            (void)!cgroup_slot_remove(parent, entry->d_name);
    closedir(dir);
}

void
cgroup_remove_family(const struct cgroup *cgroup)
{
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        if (cgroup->slots[i].parent[0] != '\0')
            remove_family(cgroup->slots[i].parent, cgroup->name);
}

int
cgroup_find_own_memory(char ret_folder[CGROUP_PATH_BYTES],
                       char ret_top[CGROUP_PATH_BYTES])
{
    static const char *const controllers[] = {"memory", NULL}; /* v1, v2 */
    UNCLEARED struct tables tables;
    char root[CGROUP_PATH_BYTES];
    struct err ignored;
    buf_init(&tables.mounts, MOUNTS_BYTES_MAX);
    int r = read_tables(&tables, &ignored);
    for (size_t i = 0; i < 2 && r == 0; i++) {
        r = own_folder(&tables, controllers[i], ret_folder);
        if (r == 0)
            r = find_mount(&tables, controllers[i], root, ret_top);
        if (r == 0)
            break;
        r = i == 0 ? 0 : r;
    }
    buf_done(&tables.mounts);
    return r;
}

int
cgroup_find(struct cgroup *ret, struct err *err)
{
    UNCLEARED struct tables tables;
    cgroup_init(ret);
    buf_init(&tables.mounts, MOUNTS_BYTES_MAX);
    int r = read_tables(&tables, err);
    if (r < 0) {
        buf_done(&tables.mounts);
        return r;
    }
    r = find_v2(&tables, ret);
    ret->version = 2;
    if (r == -ENOENT) {
        cgroup_init(ret);
        r = find_v1(&tables, ret);
        ret->version = 1;
    }
    buf_done(&tables.mounts);
    if (r < 0) {
        cgroup_init(ret);
        return refusal(r, err);
    }
    unsigned long long started;
    r = start_time(getpid(), &started);
    if (r < 0) { /* under a wrong name another supervisor would take it for an orphan */
        cgroup_init(ret);
        return err_set(err, r, "name the control group: read our start time: %s",
                       strerrordesc_np(-r));
    }
    name_group(ret, started);
    return 0;
}

void
cgroup_sweep(const struct cgroup *cgroup)
{
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        if (cgroup->slots[i].parent[0] != '\0')
            sweep(cgroup->slots[i].parent);
}
