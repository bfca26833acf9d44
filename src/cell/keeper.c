/* The keeper: see keeper.h. A fork of the supervisor that waits for one byte or the
 * end. */
#include "cell/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum { LIFELINE_FD = 3 };

struct removal {
    int top;
    unsigned serial; /* of the names that folders get at the top */
    size_t done;
};

/* Calls `act` for each name in a folder until it fails. */
static int
each_name(int folder, int (*act)(struct removal *, int folder, const char *name),
          struct removal *removal)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        fd_close(&fd);
        return -errno;
    }
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = act(removal, folder, entry->d_name);
    closedir(list);
    return r;
}

/* A file goes; a folder moves up to the top, to be emptied there. */
static int
raise_entry(struct removal *removal, int folder, const char *name)
{
    char raised[32];
    if (unlinkat(folder, name, 0) == 0)
        return 0;
    if (errno != EISDIR)
        return -errno;
    /* Its owner may have closed it to himself: moving takes w, and listing r and x. */
    (void)!fchmodat(folder, name, S_IRWXU, 0);
    int r;
    do {
        snprintf(raised, sizeof(raised), "%u", removal->serial++);
        r = renameat2(folder, name, removal->top, raised, RENAME_NOREPLACE);
    } while (r < 0 && errno == EEXIST);
    return r < 0 ? -errno : 0;
}

static int
remove_entry(struct removal *removal, int top, const char *name)
{
    if (unlinkat(top, name, 0) < 0) {
        if (errno != EISDIR)
            return -errno;
        (void)!fchmodat(top, name, S_IRWXU, 0);
        AUTO_CLOSE int folder =
            openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = folder < 0 ? -errno : each_name(folder, raise_entry, removal);
        if (r < 0)
            return r;
        if (unlinkat(top, name, AT_REMOVEDIR) < 0)
            return -errno;
    }
    removal->done++;
    return 0;
}

/* Folder by folder at the top: a tree may be deeper than a path can be long. */
int
keeper_remove_tree(const char *path)
{
    (void)!chmod(path, S_IRWXU);
    AUTO_CLOSE int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0)
        return errno == ENOENT ? 0 : -errno;
    struct removal removal = {.top = top};
    int r;
    do {
        removal.done = 0;
        r = each_name(top, remove_entry, &removal);
    } while (r == 0 && removal.done > 0);
    if (r < 0)
        return r;
    return rmdir(path) < 0 ? -errno : 0;
}

static NORETURN void
keep(struct cgroup *cgroup, const char *scratch_dir, bool family, int lifeline)
{
    char done;
    /* Not of the terminal's foreground group: Ctrl-C is for the supervisor. And none of
     * its descriptors: a keeper must not hold a pipe of the caller's open. */
    setsid();
    prctl(PR_SET_NAME, "adyton-keeper", 0, 0, 0);
    if (lifeline != LIFELINE_FD)
        dup2(lifeline, LIFELINE_FD);
    close_range(LIFELINE_FD + 1, ~0U, 0);
    close(0);
    close(1);
    close(2);
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        cgroup->slots[i].dir = -1;

    ssize_t n;
    do
        n = read(LIFELINE_FD, &done, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        _exit(EXIT_SUCCESS);
    if (family)
        cgroup_remove_family(cgroup);
    else
        (void)cgroup_remove(cgroup);
    if (scratch_dir[0] != '\0')
        (void)!keeper_remove_tree(scratch_dir);
    _exit(EXIT_SUCCESS);
}

int
keeper_start(const struct cgroup *cgroup, const char *scratch_dir, bool family,
             struct keeper *ret, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "make the keeper's pipe");
    pid_t pid = _Fork();
    if (pid == 0) {
        struct cgroup own = *cgroup;
        close(ends[1]);
        keep(&own, scratch_dir, family, ends[0]);
    }
    int saved = errno;
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        errno = saved;
        return err_sys(err, "start the keeper");
    }
    *ret = (struct keeper){.pid = pid, .lifeline = ends[1]};
    return 0;
}

void
keeper_done(struct keeper *keeper)
{
    if (keeper->pid <= 0)
        return;
    (void)!write(keeper->lifeline, "d", 1);
    close(fd_take(&keeper->lifeline));
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    keeper->pid = 0;
}
