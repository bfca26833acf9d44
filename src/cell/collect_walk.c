/*
 * Walks the tree that a cell left. Each folder is opened by its path from the root, in
 * one openat2 that cannot leave the tree; so no stack of descriptors grows with the
 * depth, and a tree too deep to be named in an outcome is counted and not entered.
 * Breadth first, from a queue.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/collect_parts.h"
#include "kernel/kernel.h"

static int
open_beneath(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags =
            (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
                   RESOLVE_NO_XDEV,
    };
    if (flags & O_PATH)
        how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
    int fd = k_openat2(root, path, &how);
    return fd < 0 ? -errno : fd;
}

/* A file that its own code made unreadable. Root reads it anyway; an ordinary user owns
 * it (the cell's ids lead to the caller's) and may give the mode back. The cell is dead:
 * no race. */
static int
give_back_mode(int root, const char *path)
{
    AUTO_CLOSE int fd = open_beneath(root, path, O_PATH);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return -EACCES;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return -EACCES;
    char by_descriptor[40];
    snprintf(by_descriptor, sizeof(by_descriptor), "/proc/self/fd/%d", fd);
    mode_t mode = (st.st_mode & 0777) | (S_ISDIR(st.st_mode) ? 0700U : 0600U);
    return chmod(by_descriptor, mode) < 0 ? -errno : 0;
}

int
collect_open_alive(int root, const char *path, int flags)
{
    return open_beneath(root, path, flags);
}

int
collect_open(int root, const char *path, int flags)
{
    int fd = open_beneath(root, path, flags);
    if (fd == -EACCES && give_back_mode(root, path) == 0)
        fd = open_beneath(root, path, flags);
    return fd;
}

static int
names_add(struct collect_names *names, const char *path)
{
    if (names->n == names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 64;
        char **list = reallocarray(names->list, capacity, sizeof(*list));
        if (!list)
            return -ENOMEM;
        names->list = list;
        names->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    names->list[names->n++] = copy;
    return 0;
}

static void
names_done(struct collect_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
    *names = (struct collect_names){0};
}

static bool
is_own_folder(const struct collect_walk *walk, const char *path)
{
    for (const char *const *own = walk->limits->own_folders; own && *own; own++)
        if (strcmp(*own, path) == 0)
            return true;
    return false;
}

static size_t
depth(const char *path)
{
    size_t n = 1;
    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* Whatever is neither a folder nor a regular file is only counted, never opened: opening
 * a fifo waits, opening a device acts. */
static enum collect_skip
skip_of(mode_t mode)
{
    static const struct {
        mode_t type;
        enum collect_skip skip;
    } rows[] = {
        {S_IFLNK, SKIP_LINK},   {S_IFIFO, SKIP_FIFO},   {S_IFSOCK, SKIP_SOCKET},
        {S_IFCHR, SKIP_DEVICE}, {S_IFBLK, SKIP_DEVICE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((mode & S_IFMT) == rows[i].type)
            return rows[i].skip;
    return SKIP_UNREADABLE;
}

static int
walk_name(struct collect_walk *walk, int dir, const char *folder, const char *name)
{
    struct stat st;
    char path[COLLECT_PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        walk->skipped[SKIP_DEEP]++;
        return 0;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        walk->skipped[SKIP_UNREADABLE]++;
        return 0;
    }
    walk->names_bytes += (size_t)n + 1;
    if (S_ISREG(st.st_mode))
        return names_add(&walk->files, path);
    if (!S_ISDIR(st.st_mode)) {
        walk->skipped[skip_of(st.st_mode)]++;
        return 0;
    }
    if (is_own_folder(walk, path))
        return 0;
    if (depth(path) > COLLECT_DEPTH_MAX) {
        walk->skipped[SKIP_DEEP]++;
        return 0;
    }
    return names_add(&walk->folders, path);
}

static int
walk_open(struct collect_walk *walk, const char *folder, DIR **ret)
{
    bool alive = walk->limits->alive;
    const char *path = folder[0] ? folder : ".";
    int fd = alive ? collect_open_alive(walk->root, path, O_RDONLY | O_DIRECTORY)
                   : collect_open(walk->root, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && collect_is_ours(fd))
        return fd;
    if (fd < 0) {
        walk->skipped[fd == -EXDEV ? SKIP_ELSEWHERE : SKIP_UNREADABLE]++;
        return fd;
    }
    /* Names can be listed with r alone; to look at them takes x. */
    struct stat st;
    if (!alive && fstat(fd, &st) == 0 && (st.st_mode & 0500) != 0500 &&
        st.st_uid == geteuid())
        (void)fchmod(fd, (st.st_mode & 0777) | 0700);
    *ret = fdopendir(fd);
    if (!*ret) {
        close(fd);
        return -ENOMEM;
    }
    return 0;
}

static int
walk_folder(struct collect_walk *walk, const char *folder)
{
    DIR *dir;
    int r = walk_open(walk, folder, &dir);
    if (r < 0)
        return collect_is_ours(r) ? r : 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (++walk->names_n > COLLECT_NAMES_MAX ||
            walk->names_bytes > COLLECT_NAMES_BYTES) {
            walk->stopped = true;
            break;
        }
        r = walk_name(walk, dirfd(dir), folder, entry->d_name);
    }
    closedir(dir);
    return r;
}

static int
by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool
collect_is_ours(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

int
collect_walk_run(struct collect_walk *walk, struct err *err)
{
    int r = walk_folder(walk, "");
    for (size_t i = 0; r == 0 && !walk->stopped && i < walk->folders.n; i++)
        r = walk_folder(walk, walk->folders.list[i]);
    if (r < 0)
        return err_set(err, r, "list what the code left in /tmp: %s",
                       strerrordesc_np(-r));
    if (walk->files.n > 0)
        qsort(walk->files.list, walk->files.n, sizeof(walk->files.list[0]), by_bytes);
    return 0;
}

void
collect_walk_done(struct collect_walk *walk)
{
    names_done(&walk->folders);
    names_done(&walk->files);
}
