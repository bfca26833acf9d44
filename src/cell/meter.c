/*
 * What the cell uses right now. With a control group the kernel has counted; without one
 * (the policy's `cgroup: optional`) we add up the processes that the cell's own /proc
 * shows. That is a sample, not a wall: the layer is named "watched" in the outcome.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "cell/cell_parts.h"

enum { PROCESSES_SEEN_MAX = 8192, ENTRIES_MAX = 65536, KIB = 1024 };

struct process {
    int parent;
    uint64_t cpu_ticks; /* its own and that of children it has waited for */
};

/* Fields of /proc/PID/stat (proc(5)): 4 is the parent, 14-17 user and system time of the
 * process and of its reaped children, in clock ticks. */
static int
read_process(int proc, const char *name, struct process *ret)
{
    char path[32], text[1024];
    snprintf(path, sizeof(path), "%.16s/stat", name);
    ssize_t n = file_read(proc, path, text, sizeof(text));
    const char *p = n > 0 ? strrchr(text, ')') : NULL;
    unsigned long user, system;
    long user_children, system_children;
    if (!p || sscanf(p + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
                     &ret->parent, &user, &system, &user_children, &system_children) != 5)
        return -ESRCH;
    ret->cpu_ticks = user + system + (uint64_t)user_children + (uint64_t)system_children;
    return 0;
}

/* Proportional share of memory where it may be read, else resident memory: forked
 * children share pages with their parent and must not be charged for them twice. */
static uint64_t
read_memory(int proc, const char *name)
{
    char path[40], text[2048];
    snprintf(path, sizeof(path), "%.16s/smaps_rollup", name);
    unsigned long long pages = 0, kib = 0;
    if (file_read(proc, path, text, sizeof(text)) > 0) {
        const char *p = strstr(text, "\nPss:");
        if (p && sscanf(p, "\nPss: %llu", &kib) == 1)
            return kib * KIB;
    }
    snprintf(path, sizeof(path), "%.16s/statm", name);
    if (file_read(proc, path, text, sizeof(text)) > 0 &&
        sscanf(text, "%*u %llu", &pages) == 1)
        return pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

/* In a /proc of the cell's own every process counts. In the host's (landlock isolation)
 * those whose chain of parents leads to init. */
static bool
descends(int proc, int pid, int ancestor)
{
    enum { DEPTH_MAX = 256 };
    for (int i = 0; i < DEPTH_MAX && pid > 1; i++) {
        char name[16];
        struct process process;
        if (pid == ancestor)
            return true;
        snprintf(name, sizeof(name), "%d", pid);
        if (read_process(proc, name, &process) < 0)
            return false;
        pid = process.parent;
    }
    return false;
}

static void
add_process(struct cell *cell, int proc, const char *name, struct meter *sum)
{
    struct process process;
    uint64_t pid;
    bool own_proc = cell->proc_fd >= 0;
    if (parse_u64(span_of(name), &pid) < 0 || read_process(proc, name, &process) < 0)
        return;
    if (!own_proc && !descends(proc, (int)pid, cell->init))
        return;
    enum { US_PER_S = 1000000 };
    uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
    sum->cpu_us += process.cpu_ticks * US_PER_S / ticks_per_s;
    sum->memory_bytes += read_memory(proc, name);
    sum->processes++;
}

static void
meter_by_proc(struct cell *cell, struct meter *sum)
{
    AUTO_CLOSE int proc =
        cell->proc_fd >= 0
            ? openat(cell->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            : open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int listed = proc < 0 ? -1 : fcntl(proc, F_DUPFD_CLOEXEC, 0);
    DIR *dir = listed < 0 ? NULL : fdopendir(listed);
    if (!dir) {
        fd_close(&listed);
        return;
    }
    struct dirent *entry;
    for (int i = 0; i < ENTRIES_MAX && sum->processes < PROCESSES_SEEN_MAX; i++) {
        entry = readdir(dir);
        if (!entry)
            break;
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            add_process(cell, proc, entry->d_name, sum);
    }
    closedir(dir);
}

void
cell_meter(struct cell *cell, struct meter *ret)
{
    *ret = (struct meter){0};
    if (cell->cgroup.version != 0) {
        ret->cpu_us = cgroup_cpu_us(&cell->cgroup);
        return;
    }
    meter_by_proc(cell, ret);
    if (ret->memory_bytes > cell->meter_peak_bytes)
        cell->meter_peak_bytes = ret->memory_bytes;
    if (ret->cpu_us > cell->meter_cpu_us)
        cell->meter_cpu_us = ret->cpu_us;
    if (ret->processes > cell->meter_processes)
        cell->meter_processes = ret->processes;
}
