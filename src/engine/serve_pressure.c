/*
 * When memory is short, the supervisor gives back what it only keeps to be fast, then what can be
 * made again, then what may be closed: a ladder of steps, one a look, so that what one has freed is
 * seen before the next is tried. What runs, or waits for its turn, is left alone.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "engine/serve_parts.h"

enum {
    /* A kind that was used a moment ago will be again. */
    ZYGOTE_UNUSED_MS = 10 * 1000,
    SESSIONS_A_LOOK = 32, /* closed at once */
    MEASURED_A_LOOK = 64, /* sessions at rest whose memory is read again */
    NEED_BYTES = 200,
};

/* Idle cells of each kind that are kept at a level. */
static const uint64_t idle_most[PRESSURE_LEVELS] = {
    [PRESSURE_NONE] = UINT64_MAX, [PRESSURE_LOW] = 1, [PRESSURE_HIGH] = 0};

static uint64_t
give_idle_cells(struct serve *serve)
{
    return pool_hold_idle(serve->pool, idle_most[serve->pressure.level]);
}

static uint64_t
give_zygotes(struct serve *serve)
{
    return pool_give_zygote(serve->pool, ZYGOTE_UNUSED_MS) ? 1 : 0;
}

static uint64_t
give_sessions(struct serve *serve)
{
    uint64_t need = pressure_need_bytes(&serve->pressure.room);
    return serve_session_close_idle(
        serve, need, SESSIONS_A_LOOK,
        "closed: the host ran short of memory, and it was the "
        "one that had been idle for longest "
        "(session_pressure)");
}

/* clang-format off */
static const struct step {
    const char *what;
    enum pressure_level from; /* at this level and above */
    uint64_t (*give)(struct serve *serve);
} steps[SERVE_GIVEN] = {
    [SERVE_GIVEN_CELLS]    = {"idle cells", PRESSURE_LOW, give_idle_cells},
    [SERVE_GIVEN_ZYGOTES]  = {"zygotes", PRESSURE_HIGH, give_zygotes},
    [SERVE_GIVEN_SESSIONS] = {"idle sessions", PRESSURE_HIGH, give_sessions},
};
/* clang-format on */

static const char *
describe_room(const struct memory_room *room, char text[NEED_BYTES])
{
    static const double mib = 1024.0 * 1024.0;
    snprintf(text, NEED_BYTES, "%.0f MiB of %.0f MiB are left (%.120s)",
             (double)room->available_bytes / mib, (double)room->total_bytes / mib,
             room->where);
    return text;
}

static bool
give(struct serve *serve)
{
    char room[NEED_BYTES];
    for (size_t i = 0; i < SERVE_GIVEN; i++) {
        if (serve->pressure.level < steps[i].from)
            continue;
        uint64_t n = steps[i].give(serve);
        if (n == 0)
            continue;
        serve->given[i] += n;
        serve_note(serve, "memory is short, %s: %" PRIu64 " %s given back",
                   describe_room(&serve->pressure.room, room), n, steps[i].what);
        return true;
    }
    return false;
}

static bool
grow_again(struct serve *serve)
{
    (void)pool_hold_idle(serve->pool, idle_most[PRESSURE_NONE]);
    return pool_wake_zygote(serve->pool);
}

/* Sessions at rest may hold so much of what is meant for runs, and no more. */
static bool
hold_budget(struct serve *serve)
{
    uint64_t most = serve->queue.memory_max_bytes / SERVE_SESSIONS_SHARE;
    uint64_t held = serve->queue.held_bytes;
    if (held <= most)
        return false;
    uint64_t n = serve_session_close_idle(
        serve, held - most, SESSIONS_A_LOOK,
        "closed: idle sessions held more than their part of the supervisor's memory "
        "budget, and it was the one that had been idle for longest (session_pressure)");
    serve->given[SERVE_GIVEN_SESSIONS] += n;
    if (n > 0)
        serve_note(serve,
                   "idle sessions hold more than half of --memory-budget: %" PRIu64
                   " of them are closed",
                   n);
    return n > 0;
}

static bool
on_look(void *context, enum pressure_level before)
{
    struct serve *serve = context;
    char room[NEED_BYTES];
    serve_session_measure(serve, MEASURED_A_LOOK);
    bool busy = hold_budget(serve);
    if (serve->pressure.level != PRESSURE_NONE)
        return give(serve) || busy;
    if (before != PRESSURE_NONE)
        serve_note(serve, "memory is there again: %s",
                   describe_room(&serve->pressure.room, room));
    return grow_again(serve) || busy;
}

int
serve_pressure_open(struct serve *serve, struct err *err)
{
    return pressure_start(&serve->pressure, serve->base, on_look, serve, err);
}
