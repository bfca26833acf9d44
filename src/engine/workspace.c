/*
 * Finding and making workspaces. What is in one was written by code that nobody trusts: here only
 * the folder itself is looked at, by name beneath a folder of ours, and no link is followed.
 *
 * As root a cell has a user of its own, a different one each time. One with a workspace has the
 * workspace's: the folder is given to a user from a range beyond those of cells when it is made,
 * under another name, so that nobody ever finds it half made.
 */
#include "engine/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/jail.h"

enum { MODE = 0700, TEMPORARY_BYTES = 40 };

static bool
name_is_plain(const char *name)
{
    size_t n = strlen(name);
    bool sound = n > 0 && n < JOB_FOLDER_NAME_BYTES && name[0] != '.';
    for (const char *p = name; *p && sound; p++)
        sound = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                (*p >= '0' && *p <= '9') || strchr("._-", *p);
    return sound;
}

/* One folder below another, made if need be; in it nobody else may put anything. */
static int
enter_folder(int dir, const char *name, int *ret_fd, struct err *err)
{
    struct stat is;
    if (mkdirat(dir, name, MODE) < 0 && errno != EEXIST)
        return err_sys(err, "make the folder %.80s for workspaces", name);
    AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) < 0)
        return err_sys(err, "open the folder %.80s for workspaces", name);
    if (is.st_uid != geteuid() || (is.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(
            err, -EPERM,
            "the folder %.80s for workspaces belongs to another user, or others "
            "may write to it",
            name);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* $XDG_STATE_HOME/adyton/workspaces; a home that is not there is not made. */
static int
open_place(char path[PATH_MAX], int *ret_fd, struct err *err)
{
    static const char *const below_home[] = {".local", "state", "adyton", "workspaces"};
    enum { PARTS = sizeof(below_home) / sizeof(*below_home), BELOW_STATE = 2 };
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool has_state = state && state[0] == '/';
    if (!has_state && (!home || home[0] != '/'))
        return err_set(err, -ENOENT,
                       "there is no place for workspaces: neither "
                       "XDG_STATE_HOME nor HOME is set");
    if (has_state && mkdir(state, MODE) < 0 && errno != EEXIST)
        return err_sys(err, "make %.120s for workspaces", state);
    AUTO_FREE char *base = realpath(has_state ? state : home, NULL);
    int dir = base ? open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0)
        return err_sys(err, "open %.120s for workspaces", has_state ? state : home);
    size_t n = (size_t)snprintf(path, PATH_MAX, "%s", base);
    int r = 0;
    for (size_t i = has_state ? BELOW_STATE : 0; i < PARTS && r == 0; i++) {
        AUTO_CLOSE int above = dir;
        dir = -1;
        r = enter_folder(above, below_home[i], &dir, err);
        if (n < PATH_MAX)
            n += (size_t)snprintf(path + n, PATH_MAX - n, "/%s", below_home[i]);
    }
    if (r == 0 && n >= JOB_FOLDER_PATH_BYTES - JOB_FOLDER_NAME_BYTES)
        r = err_set(err, -ENAMETOOLONG, "the path of the workspaces is too long");
    if (r == 0)
        *ret_fd = dir;
    else
        fd_close(&dir);
    return r;
}

static int
random_number(uint32_t *ret, struct err *err)
{
    return getrandom(ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret)
               ? 0
               : err_sys(err, "choose a number at random");
}

/* Whole before it has its name: whoever is faster has made the one that counts. */
static int
make(int place, const char *name, struct err *err)
{
    char temporary[TEMPORARY_BYTES];
    uint32_t number = 0, user = 0;
    int r = random_number(&number, err);
    if (r == 0)
        r = random_number(&user, err);
    if (r < 0)
        return r;
    uid_t owner = JAIL_WORKSPACE_UID_BASE + (uid_t)(user % JAIL_WORKSPACE_UIDS);
    snprintf(temporary, sizeof(temporary), ".new-%08x-%d", number, getpid());
    if (mkdirat(place, temporary, MODE) < 0)
        return err_sys(err, "make the workspace %s", name);
    if (geteuid() == 0 &&
        fchownat(place, temporary, owner, (gid_t)owner, AT_SYMLINK_NOFOLLOW) < 0)
        r = err_sys(err, "give the workspace %s to its user", name);
    if (r == 0 && renameat2(place, temporary, place, name, RENAME_NOREPLACE) < 0 &&
        errno != EEXIST)
        r = err_sys(err, "name the workspace %s", name);
    (void)unlinkat(place, temporary, AT_REMOVEDIR); /* when it has no other name now */
    return r;
}

static bool
is_owned_well(const struct stat *is)
{
    return geteuid() != 0
               ? is->st_uid == geteuid()
               : is->st_uid >= JAIL_WORKSPACE_UID_BASE &&
                     is->st_uid < JAIL_WORKSPACE_UID_BASE + JAIL_WORKSPACE_UIDS;
}

static int
open_workspace(int place, const char *name, struct stat *ret, struct err *err)
{
    for (int i = 0; i < 2; i++) {
        AUTO_CLOSE int fd =
            openat(place, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && i == 0) {
            int r = make(place, name, err);
            if (r < 0)
                return r;
            continue;
        }
        if (fd < 0 || fstat(fd, ret) < 0)
            return err_sys(err, "open the workspace %s", name);
        return is_owned_well(ret)
                   ? 0
                   : err_set(
                         err, -EPERM,
                         "the workspace %s belongs to user %u, who is none of adyton's "
                         "for workspaces: remove it, or choose another name",
                         name, ret->st_uid);
    }
    return err_set(err, -ENOENT, "the workspace %s was removed as it was made", name);
}

static int
check_policy(const char *name, const struct policy *policy, struct err *err)
{
    if (policy->workspaces != WORKSPACES_NAMED)
        return err_set(
            err, -EPERM,
            "policy '%s' has no workspaces: choose one with 'workspaces: named'",
            policy->name);
    if (policy->isolation != ISOLATION_NAMESPACES)
        return err_set(err, -EINVAL,
                       "a workspace needs mounts, which --isolation landlock "
                       "does not have");
    if (!name_is_plain(name))
        return err_set(
            err, -EINVAL,
            "'%.80s' is no name for a workspace: 1 to %d letters, digits, '.', "
            "'_' and '-', no '.' first",
            name, JOB_FOLDER_NAME_BYTES - 1);
    return 0;
}

int
workspace_take(const char *name, const struct policy *policy, struct job *job,
               struct err *err)
{
    char path[PATH_MAX];
    AUTO_CLOSE int place = -1;
    struct stat is = {0};
    struct job_folder folder = {.writable = true};
    int r = check_policy(name, policy, err);
    if (r == 0)
        r = open_place(path, &place, err);
    if (r == 0)
        r = open_workspace(place, name, &is, err);
    if (r < 0)
        return r;
    snprintf(folder.path, sizeof(folder.path), "%.*s/%s",
             JOB_FOLDER_PATH_BYTES - JOB_FOLDER_NAME_BYTES, path, name);
    folder.device = is.st_dev;
    folder.inode = is.st_ino;
    folder.user = geteuid() == 0 ? is.st_uid : 0;
    return job_add_workspace(job, &folder, err);
}
