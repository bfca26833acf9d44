/*
 * A look at a cell now and then: CPU time, which no kernel limit counts for all of its processes;
 * and memory and disk, where no group and no file system of its own hold them.
 */
#include <errno.h>

#include "base/process.h"
#include "cell/cell_parts.h"

enum {
    MS_US = 1000,
    TICK_MIN_US = 5 * MS_US,
    TICK_MAX_US = 2000 * MS_US,
    TICK_REST_US = 60 * 1000000, /* of a session between runs */
    /* Without a cgroup memory must be looked at often; without a tmpfs, the disk. */
    TICK_WATCHED_US = 20 * MS_US,
    QUIET_US = 10 * MS_US, /* of CPU time between two looks: as good as none */
    QUIET_MOST = 5,        /* doublings */
};

/* A thousand sessions that do nothing are not looked at every other second. */
static unsigned
doublings(struct cell *cell, uint64_t cpu_us)
{
    if (!cell->rests)
        return 0;
    bool quiet = cpu_us < cell->rest_cpu_us + QUIET_US;
    unsigned n = quiet ? cell->quiet_n : 0;
    cell->rest_cpu_us = cpu_us;
    cell->quiet_n = quiet && n < QUIET_MOST ? n + 1 : n;
    return n;
}

/* CPU time cannot grow faster than all cores together: the next look can wait that
 * long. */
static void
schedule_tick(struct cell *cell, uint64_t cpu_us)
{
    uint64_t limit_us = cell->request.policy->cpu_ms * MS_US;
    uint64_t left_us = limit_us > cpu_us ? limit_us - cpu_us : 0;
    uint64_t wait_us = (left_us / process_cpus()) << doublings(cell, cpu_us);
    bool by_kernel = cell->cgroup.version != 0 && cell->workspace_fd < 0 &&
                     cell->request.policy->isolation == ISOLATION_NAMESPACES;
    uint64_t most_us = !by_kernel    ? TICK_WATCHED_US
                       : cell->rests ? TICK_REST_US
                                     : TICK_MAX_US;
    wait_us = wait_us < TICK_MIN_US ? TICK_MIN_US : wait_us;
    wait_us = wait_us > most_us ? most_us : wait_us;
    struct timeval wait = cell_time_of(wait_us);
    if (event_add(cell->on_tick, &wait) < 0)
        cell_fail(cell, -ENOMEM, "watch the cell's CPU time");
}

/* Of earlier runs in the same cell. */
static uint64_t
base_cpu_us(const struct cell *cell)
{
    return cell->cgroup.version != 0 ? cell->earlier.cpu_us : cell->base_meter_cpu_us;
}

static void
on_tick(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct cell *cell = context;
    const struct policy *policy = cell->request.policy;
    struct meter now;
    cell_meter(cell, &now);
    now.cpu_us -= base_cpu_us(cell) < now.cpu_us ? base_cpu_us(cell) : now.cpu_us;
    if (now.cpu_us >= policy->cpu_ms * MS_US) {
        if (!session_interrupt(cell, CAUSE_CPU))
            cell_end(cell, CAUSE_CPU);
    } else if (now.memory_bytes > policy->memory_bytes)
        cell_end(cell, CAUSE_MEMORY);
    else if (cell_disk_over(cell))
        cell_end(cell, CAUSE_DISK);
    else
        schedule_tick(cell, now.cpu_us);
}

void
cell_tick_start(struct cell *cell)
{
    cell->on_tick = event_new(cell->base, -1, 0, on_tick, cell);
    cell->rest_cpu_us = cell->quiet_n = 0;
    if (cell->on_tick)
        schedule_tick(cell, 0);
    else
        cell_fail(cell, -ENOMEM, "watch the cell's CPU time");
}

void
cell_watch_rest(struct cell *cell)
{
    cell_forget(&cell->on_tick);
    cell_tick_start(cell);
}
