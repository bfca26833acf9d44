/* The keeper: see keeper.h. A fork of the supervisor that waits for one byte or the
 * end. */
#include "cell/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum { TREE_DESCRIPTORS = 16, LIFELINE_FD = 3 };

static int
remove_entry(const char *path, const struct stat *is, int kind, struct FTW *walk)
{
    (void)is;
    (void)kind;
    (void)walk;
    (void)!remove(path);
    return 0;
}

static int
open_folder(const char *path, const struct stat *is, int kind, struct FTW *walk)
{
    (void)walk;
    /* A folder that its owner closed to himself cannot be listed. */
    if ((kind == FTW_DNR || kind == FTW_D) && (is->st_mode & S_IRWXU) != S_IRWXU)
        (void)!chmod(path, S_IRWXU);
    return 0;
}

void
keeper_remove_tree(const char *path)
{
    nftw(path, open_folder, TREE_DESCRIPTORS, FTW_PHYS | FTW_MOUNT);
    nftw(path, remove_entry, TREE_DESCRIPTORS, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
}

static NORETURN void
keep(struct cgroup *cgroup, const char *scratch_dir, int lifeline)
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
    (void)cgroup_remove(cgroup);
    if (scratch_dir[0] != '\0')
        keeper_remove_tree(scratch_dir);
    _exit(EXIT_SUCCESS);
}

int
keeper_start(const struct cgroup *cgroup, const char *scratch_dir, struct keeper *ret,
             struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "make the keeper's pipe");
    pid_t pid = _Fork();
    if (pid == 0) {
        struct cgroup own = *cgroup;
        close(ends[1]);
        keep(&own, scratch_dir, ends[0]);
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
