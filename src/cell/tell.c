/*
 * What is told of a living cell beside its output: that the code has begun, what it was refused
 * first, what it uses. Whoever listens gets a bounded number of these, however the code behaves:
 * each kind of act once, usage at a steady pace.
 */
#include "base/clock.h"
#include "cell/cell_parts.h"

enum { USAGE_EVERY_MS = 500 };

static void
tell(struct cell *cell, struct run_event *event)
{
    event->time_us = run_event_now_us();
    cell->request.on_event(cell->request.context, event);
}

static void
on_usage(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct cell *cell = context;
    struct meter now;
    cell_meter(cell, &now);
    struct run_event event = {.kind = RUN_USAGE,
                              .wall_us = clock_now_us() - cell->started_us,
                              .cpu_us = now.cpu_us,
                              .memory_bytes = cell->cgroup.version != 0
                                                  ? cgroup_memory_bytes(&cell->cgroup)
                                                  : now.memory_bytes};
    tell(cell, &event);
}

void
cell_tell_started(struct cell *cell)
{
    struct run_event event = {.kind = RUN_STARTED, .start = cell->start};
    struct timeval period = {.tv_usec = USAGE_EVERY_MS * 1000};
    if (!cell->request.on_event)
        return;
    tell(cell, &event);
    /* Without it nothing but news is missing. */
    cell->on_usage = event_new(cell->base, -1, EV_PERSIST, on_usage, cell);
    if (cell->on_usage)
        event_add(cell->on_usage, &period);
}

void
cell_tell_incidents(struct cell *cell)
{
    const struct outcome *outcome = cell->outcome;
    if (!cell->request.on_event)
        return;
    for (; cell->told_n < outcome->incidents_n; cell->told_n++) {
        struct run_event event = {.kind = RUN_INCIDENT,
                                  .incident = &outcome->incidents[cell->told_n]};
        tell(cell, &event);
    }
}
