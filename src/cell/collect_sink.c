/*
 * Writes one collected file into the output folder. The names come from the cell and the
 * folder belongs to the caller: every step stays beneath it and follows no link, and
 * nothing of the caller's is changed but a regular file of the very same name, replaced
 * in one rename.
 *
 * The file has no name while it grows (O_TMPFILE): when this process is killed, nothing
 * of it is left. Where the file system cannot do that, it has a name of its own until it
 * is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/collect_parts.h"
#include "kernel/kernel.h"

enum { FOLDER_MODE = 0755, FILE_MODE = 0644, BLOCK_BYTES = 4096, NAME_TRIES = 8 };

static const struct {
    int error;
    enum collect_skip skip;
} skips[] = {
    {EEXIST, SKIP_TAKEN},      {ELOOP, SKIP_TAKEN},       {ENOTDIR, SKIP_TAKEN},
    {EISDIR, SKIP_TAKEN},      {EXDEV, SKIP_TAKEN},       {ENAMETOOLONG, SKIP_UNNAMEABLE},
    {EINVAL, SKIP_UNNAMEABLE}, {EILSEQ, SKIP_UNNAMEABLE},
};

bool
sink_is_skip(int error, enum collect_skip *ret)
{
    for (size_t i = 0; i < sizeof(skips) / sizeof(skips[0]); i++)
        if (error == -skips[i].error) {
            *ret = skips[i].skip;
            return true;
        }
    return false;
}

bool
sink_has_no_place(int error)
{
    enum collect_skip skip;
    return sink_is_skip(error, &skip);
}

/* Makes the folder when it is missing, and opens it; a link in its place is refused
 * (ELOOP). */
static int
enter(int parent, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    if (mkdirat(parent, name, FOLDER_MODE) < 0 && errno != EEXIST)
        return -errno;
    int fd = k_openat2(parent, name, &how);
    return fd < 0 ? -errno : fd;
}

static int
enter_all(int out_dir, const char *path, const char **ret_name)
{
    AUTO_CLOSE int dir = fcntl(out_dir, F_DUPFD_CLOEXEC, 3);
    if (dir < 0)
        return -errno;
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        char name[COLLECT_PATH_BYTES];
        snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
        int next = enter(dir, name);
        if (next < 0)
            return next;
        close(dir);
        dir = next;
    }
    *ret_name = path;
    return fd_take(&dir);
}

/* A name that is free there. */
static int
open_beside(struct sink *sink)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        snprintf(sink->beside, sizeof(sink->beside), ".adyton-%08x%08x",
                 randombytes_random(), randombytes_random());
        int fd = openat(sink->dir, sink->beside,
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
        if (fd >= 0) {
            sink->named = true;
            return fd;
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -EBUSY;
}

int
sink_open(int out_dir, const char *path, struct sink *ret)
{
    *ret = (struct sink){.dir = -1, .fd = -1};
    if (out_dir < 0)
        return 0;
    int dir = enter_all(out_dir, path, &ret->name);
    if (dir < 0)
        return dir;
    ret->dir = dir;
    struct stat st;
    if (fstatat(ret->dir, ret->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(st.st_mode))
        return -EEXIST;
    ret->fd = openat(ret->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, FILE_MODE);
    if (ret->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT))
        ret->fd = open_beside(ret);
    else if (ret->fd < 0)
        return -errno;
    return ret->fd < 0 ? ret->fd : 0;
}

static bool
is_hole(const char *bytes, size_t n)
{
    return n > 0 && bytes[0] == '\0' && memcmp(bytes, bytes + 1, n - 1) == 0;
}

static int
write_at(int fd, const char *bytes, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t done = pwrite(fd, bytes, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        bytes += done;
        n -= (size_t)done;
        at += (uint64_t)done;
    }
    return 0;
}

/* Blocks of zeros become holes, so that a sparse file takes no more room than it did. */
int
sink_write(struct sink *sink, const char *bytes, size_t n)
{
    uint64_t begin = sink->length;
    sink->length += n;
    if (sink->fd < 0)
        return 0;
    size_t from = 0; /* of what is to be written in one go */
    for (size_t at = 0; at < n; at += BLOCK_BYTES) {
        size_t block = n - at < BLOCK_BYTES ? n - at : BLOCK_BYTES;
        bool hole = is_hole(bytes + at, block);
        size_t upto = hole ? at : at + block;
        if (!hole && upto < n)
            continue;
        int r =
            upto > from ? write_at(sink->fd, bytes + from, upto - from, begin + from) : 0;
        if (r < 0)
            return r;
        from = at + block;
    }
    return 0;
}

/* Gives the file a name of its own; -EEXIST when that is taken. */
static int
give_name(const struct sink *sink, const char *name)
{
    char by_descriptor[40];
    snprintf(by_descriptor, sizeof(by_descriptor), "/proc/self/fd/%d", sink->fd);
    if (linkat(AT_FDCWD, by_descriptor, sink->dir, name, AT_SYMLINK_FOLLOW) < 0)
        return -errno;
    return 0;
}

int
sink_finish(struct sink *sink)
{
    if (sink->fd < 0)
        return 0;
    if (ftruncate(sink->fd, (off_t)sink->length) < 0)
        return -errno;
    if (!sink->named) {
        int r = give_name(sink, sink->name);
        if (r != -EEXIST)
            return r;
        snprintf(sink->beside, sizeof(sink->beside), ".adyton-%08x%08x",
                 randombytes_random(), randombytes_random());
        r = give_name(sink, sink->beside);
        if (r < 0)
            return r == -EEXIST ? -EBUSY : r;
        sink->named = true;
    }
    if (renameat(sink->dir, sink->beside, sink->dir, sink->name) < 0)
        return -errno;
    sink->named = false;
    return 0;
}

void
sink_done(struct sink *sink)
{
    if (sink->named)
        (void)unlinkat(sink->dir, sink->beside, 0);
    fd_close(&sink->fd);
    fd_close(&sink->dir);
    sink->fd = sink->dir = -1;
    sink->named = false;
}
