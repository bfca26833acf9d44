/*
 * What a program has left running: children, and orphans, which are init's. The kernel's lists of
 * children are walked and each is killed by a descriptor, because a number may be another process's
 * by then. Whoever forks faster than we kill ends with its cell.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/kernel.h"
#include "warm/factory_parts.h"

enum {
    ROUNDS_MAX = 500, /* a large process takes its time to be taken down */
    PAUSE_NS = 1000 * 1000,
    CHILDREN_BYTES = 16 * 1024, /* more of them are met in the next round */
    STAT_BYTES = 512,
    THREADS_MAX = 4096,
};

/* Of the process that has the number now. */
static bool
lives_below(const struct factory *factory, pid_t pid, pid_t parent)
{
    char path[32], text[STAT_BYTES], state;
    int its_parent;
    snprintf(path, sizeof(path), "%d/stat", pid);
    if (file_read(factory->proc_fd, path, text, sizeof(text)) < 0)
        return false;
    const char *at = strrchr(text, ')');
    return at && sscanf(at + 1, " %c %d", &state, &its_parent) == 2 &&
           its_parent == parent && state != 'Z' && state != 'X';
}

/* How many were there to be killed: 0 or 1. A program of ours is no child of another's. */
static size_t
kill_child(struct factory *factory, pid_t pid, pid_t parent)
{
    if (factory_find(factory, pid))
        return 0;
    AUTO_CLOSE int pidfd = k_pidfd_open(pid);
    if (pidfd < 0 || !lives_below(factory, pid, parent))
        return 0;
    (void)!k_pidfd_kill(pidfd, SIGKILL);
    return 1;
}

static size_t
kill_children_of_thread(struct factory *factory, pid_t pid, const char *thread)
{
    UNCLEARED char text[CHILDREN_BYTES];
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof(path), "%d/task/%.16s/children", pid, thread);
    if (file_read(factory->proc_fd, path, text, sizeof(text)) <= 0)
        return 0;
    char *end;
    for (const char *at = text; *at != '\0'; at = end) {
        long child = strtol(at, &end, 10);
        if (end == at || *end == '\0') /* the last one may be cut */
            break;
        n += kill_child(factory, (pid_t)child, pid);
    }
    return n;
}

/* A child is in the list of the thread that forked it. */
static size_t
kill_children(struct factory *factory, pid_t pid)
{
    char path[32];
    size_t n = 0;
    snprintf(path, sizeof(path), "%d/task", pid);
    AUTO_CLOSE int folder =
        openat(factory->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = folder < 0 ? NULL : fdopendir(folder);
    if (!list)
        return 0;
    (void)fd_take(&folder);
    const struct dirent *entry;
    for (size_t i = 0; i < THREADS_MAX && (entry = readdir(list)) != NULL; i++)
        if (entry->d_name[0] != '.')
            n += kill_children_of_thread(factory, pid, entry->d_name);
    closedir(list);
    return n;
}

void
factory_clear(struct factory *factory, uint32_t id)
{
    struct factory_report report = {.kind = FACTORY_CLEARED, .id = id};
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const struct factory_cell *cell = factory_find_id(factory, id);
    for (int i = 0;; i++) {
        size_t n = cell && cell->program > 0 ? kill_children(factory, cell->program) +
                                                   kill_children(factory, cell->init)
                                             : 0;
        if (n == 0)
            break;
        if (i == ROUNDS_MAX) {
            err_set(&report.err, -EBUSY, "%zu processes that it left do not end", n);
            break;
        }
        nanosleep(&pause, NULL);
    }
    factory_report(&report, NULL, 0);
}
