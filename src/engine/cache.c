/* The cache folder: see cache.h. */
#include "engine/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static bool
is_ours_alone(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type &&
           st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void
cache_path(char path[IMAGE_PATH_BYTES])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(path, IMAGE_PATH_BYTES, "%s/adyton", cache);
    else if (home && home[0] == '/')
        n = snprintf(path, IMAGE_PATH_BYTES, "%s/.cache/adyton", home);
    if (n < 0 || n >= IMAGE_PATH_BYTES)
        path[0] = '\0';
}

static int
open_folder(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !is_ours_alone(fd, S_IFDIR))
        return -1;
    return fd_take(&fd);
}

int
cache_make(void)
{
    char path[IMAGE_PATH_BYTES];
    cache_path(path);
    if (path[0] == '\0')
        return -1;
    char *last = strrchr(path, '/');
    *last = '\0';
    (void)mkdir(path, 0700);
    *last = '/';
    (void)mkdir(path, 0700);
    return open_folder(path);
}

bool
cache_read(const char *name, struct buf *ret)
{
    char path[IMAGE_PATH_BYTES];
    cache_path(path);
    AUTO_CLOSE int dir = path[0] != '\0' ? open_folder(path) : -1;
    AUTO_CLOSE int fd =
        dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && is_ours_alone(fd, S_IFREG) && fd_read_all(fd, ret) == 0 &&
           ret->n > 0;
}

/* Written beside, then renamed over. */
void
cache_write(const char *name, struct span bytes)
{
    char beside[CACHE_NAME_BYTES + 32];
    AUTO_CLOSE int dir = cache_make();
    if (dir < 0)
        return;
    snprintf(beside, sizeof(beside), "%s.%ld", name, (long)getpid());
    AUTO_CLOSE int fd =
        openat(dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        /* Left by a process of the same number that was killed here; the next one
         * succeeds. */
        if (errno == EEXIST)
            (void)unlinkat(dir, beside, 0);
        return;
    }
    if (fd_write_all(fd, bytes.p, bytes.n) < 0 || renameat(dir, beside, dir, name) < 0)
        (void)unlinkat(dir, beside, 0);
}
