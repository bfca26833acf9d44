/*
 * Where a ledger is, and that nobody but its user can put another one there or write to
 * it.
 *
 * The file of owners says who is alive: each writer holds a lock on one byte of it, at a
 * place that its intents carry. The kernel drops the lock when the writer dies, however
 * it dies. A process number would be taken by another program one day, means something
 * else in another container, and nothing after a restart of the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/ledger_parts.h"

static const char file_name[] = "ledger.db", owners_suffix[] = "-owners";

/* What is wrong with who owns it or may write it, or NULL. */
static const char *
why_not_ours(const struct stat *st, mode_t type)
{
    if ((st->st_mode & S_IFMT) != type)
        return type == S_IFDIR ? "is not a folder" : "is not a regular file";
    if (st->st_uid != geteuid())
        return "belongs to another user";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "may be written by others";
    if (type == S_IFREG && st->st_nlink > 1)
        return "has a second name (a hard link)";
    return NULL;
}

/* The folder of `path`, opened, and the name in it. */
static int
open_folder(const char *path, const char **ret_name, int *ret_dir, struct err *err)
{
    char folder[LEDGER_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    const char *name = slash ? slash + 1 : path;
    if (strlen(path) >= LEDGER_PATH_BYTES - sizeof(owners_suffix))
        return err_set(err, -ENAMETOOLONG, "the path of the ledger is too long");
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(err, -EISDIR, "the ledger %.140s is a folder: give a file", path);
    snprintf(folder, sizeof(folder), "%.*s", (int)n, path);
    AUTO_CLOSE int dir =
        open(slash ? (n > 0 ? folder : "/") : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, "cannot open the ledger's folder %.140s",
                       slash ? folder : ".");
    struct stat st;
    if (fstat(dir, &st) < 0)
        return err_sys(err, "cannot examine the ledger's folder %.140s", folder);
    const char *why = why_not_ours(&st, S_IFDIR);
    if (why)
        return err_set(err, -EPERM,
                       "the ledger's folder %.120s %s: nothing in it can be "
                       "trusted; choose another with --ledger",
                       slash ? (n > 0 ? folder : "/") : ".", why);
    *ret_name = name;
    *ret_dir = fd_take(&dir);
    return 0;
}

/*
 * Only O_PATH descriptors of an existing file: closing any other would drop the locks
 * that SQLite holds on it elsewhere in this process.
 */
int
place_check(const char *path, enum ledger_mode mode, bool *ret_is_new, struct err *err)
{
    AUTO_CLOSE int dir = -1;
    const char *name;
    int r = open_folder(path, &name, &dir, err);
    if (r < 0)
        return r;
    AUTO_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is_new = false;
    if (fd < 0 && errno == ENOENT && mode == LEDGER_WRITE) {
        fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        is_new = fd >= 0;
        if (fd < 0 && errno == EEXIST) /* another process was faster */
            fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0 && errno == ENOENT)
        return err_set(err, -ENOENT, "there is no ledger %.160s", path);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, "cannot open the ledger %.160s", path);
    const char *why = why_not_ours(&st, S_IFREG);
    if (why)
        return err_set(err, -EPERM,
                       "the ledger %.140s %s: it cannot be trusted; choose "
                       "another with --ledger",
                       path, why);
    *ret_is_new = is_new;
    return 0;
}

/* What the user's folder of states lacks; a home that is not there is not made. */
static int
make_folders(char *path, size_t there_n, struct err *err)
{
    for (char *p = path + there_n; (p = strchr(p + 1, '/'));) {
        *p = '\0';
        int r = mkdir(path, 0700);
        if (r < 0 && errno != EEXIST)
            r = err_set(
                err, -errno,
                "cannot make %.120s for the ledger (%s): choose another place with "
                "--ledger",
                path, strerror(errno));
        else
            r = 0;
        *p = '/';
        if (r < 0)
            return r;
    }
    return 0;
}

int
place_make_default(char path[LEDGER_PATH_BYTES], bool make, struct err *err)
{
    static const char below_home[] = "/.local/state";
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool has_state = state && state[0] == '/', has_home = home && home[0] == '/';
    if (!has_state && !has_home)
        return err_set(
            err, -ENOENT,
            "there is no place for the ledger: neither XDG_STATE_HOME nor HOME "
            "is set; give one with --ledger");
    const char *base = has_state ? state : home;
    int n = snprintf(path, LEDGER_PATH_BYTES, "%s%s/adyton/%s", base,
                     has_state ? "" : below_home, file_name);
    if (n < 0 || n >= LEDGER_PATH_BYTES - (int)sizeof(owners_suffix))
        return err_set(err, -ENAMETOOLONG, "the path of the ledger is too long");
    size_t there_n = has_state ? (size_t)(strrchr(state, '/') - state) : strlen(home);
    return make ? make_folders(path, there_n, err) : 0;
}

int
ledger_default_path(char path[LEDGER_PATH_BYTES], struct err *err)
{
    return place_make_default(path, false, err);
}

static struct flock
byte_lock(int64_t at)
{
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

static int
open_owners(const char *path, struct err *err)
{
    char owners[LEDGER_PATH_BYTES + sizeof(owners_suffix)];
    snprintf(owners, sizeof(owners), "%s%s", path, owners_suffix);
    int fd = open(owners, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? err_sys(err, "cannot open %.160s", owners) : fd;
}

/* SQLite's own locks do not do here: of two that turn a file into one with a journal beside it,
 * each can hold what the other waits for. Owners begin at 1, so byte 0 is free for this. */
int
place_lock_making(const char *path, int *ret_fd, struct err *err)
{
    enum { STEP_US = 2000, STEPS = 2500 };
    AUTO_CLOSE int fd = open_owners(path, err);
    if (fd < 0)
        return fd;
    for (int i = 0; i < STEPS; i++) {
        struct flock lock = byte_lock(0);
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
            *ret_fd = fd_take(&fd);
            return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
            return err_sys(err, "cannot lock what is beside the ledger %.140s", path);
        usleep(STEP_US);
    }
    return err_set(err, -EBUSY,
                   "the ledger %.140s: another program has been making it for more than "
                   "5 s",
                   path);
}

/* Locks of the open file description, not of the process: a second handle in this process
 * has its own, and closing one does not release the other. */
int
place_open_owners(const char *path, int *ret_fd, int64_t *ret_owner, struct err *err)
{
    AUTO_CLOSE int fd = open_owners(path, err);
    if (fd < 0)
        return fd;
    for (;;) {
        uint64_t random;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return err_sys(err, "cannot choose a place among the owners of the ledger");
        int64_t owner = (int64_t)(random >> 2) + 1;
        struct flock lock = byte_lock(owner);
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
            *ret_owner = owner;
            *ret_fd = fd_take(&fd);
            return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
            return err_sys(err, "cannot lock what is beside the ledger %.140s", path);
    }
}

/* When it cannot be told, it lives: nothing is closed on a guess. */
bool
place_owner_lives(const struct ledger *ledger, int64_t owner)
{
    if (owner == ledger->owner)
        return true;
    if (owner <= 0)
        return false;
    struct flock lock = byte_lock(owner);
    if (fcntl(ledger->owners_fd, F_OFD_GETLK, &lock) < 0)
        return true;
    return lock.l_type != F_UNLCK;
}
