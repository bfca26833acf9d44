/* The measure of memory pressure, and the clock by which it is taken: see pressure.h. */
#include "engine/pressure.h"

#include <errno.h>

/*
 * A level holds from where less than `share` of a room is left, or less than `most`: an eighth of
 * a terabyte is no shortage. It is left when there is a quarter more than that.
 *
 * That tasks wait for memory (PSI) is no level by itself, it makes us look: a program that
 * thrashes at its own cell's limit waits as well, and must not cost others their sessions.
 */
static const struct threshold {
    enum pressure_level level;
    uint64_t share, most_bytes;
} thresholds[] = {
    {PRESSURE_HIGH, 16, 1ULL << 30},
    {PRESSURE_LOW, 8, 2ULL << 30},
};
enum { THRESHOLDS = sizeof(thresholds) / sizeof(*thresholds), SLACK_SHARE = 4 };

/* Under pressure what was given back takes a moment to be free. */
static const struct timeval calm_pause = {.tv_sec = 5}, short_pause = {.tv_sec = 1};

const char *const pressure_names[PRESSURE_LEVELS] = {"none", "low", "high"};

static uint64_t
begins_at(const struct threshold *threshold, const struct memory_room *room)
{
    uint64_t bytes = room->total_bytes / threshold->share;
    return bytes < threshold->most_bytes ? bytes : threshold->most_bytes;
}

static enum pressure_level
level_of(const struct memory_room *room, enum pressure_level before)
{
    for (size_t i = 0; i < THRESHOLDS; i++) {
        uint64_t bytes = begins_at(&thresholds[i], room);
        if (before >= thresholds[i].level)
            bytes += bytes / SLACK_SHARE;
        if (room->available_bytes < bytes)
            return thresholds[i].level;
    }
    return PRESSURE_NONE;
}

static double
left(const struct memory_room *room)
{
    return (double)room->available_bytes / (double)room->total_bytes;
}

enum pressure_level
pressure_judge(const struct memory_room *rooms, size_t n, enum pressure_level before,
               size_t *ret_tightest)
{
    enum pressure_level level = PRESSURE_NONE;
    size_t tightest = 0;
    for (size_t i = 0; i < n; i++) {
        enum pressure_level own = level_of(&rooms[i], before);
        if (own > level || (own == level && left(&rooms[i]) < left(&rooms[tightest])))
            tightest = i;
        level = own > level ? own : level;
    }
    *ret_tightest = tightest;
    return level;
}

uint64_t
pressure_need_bytes(const struct memory_room *room)
{
    uint64_t bytes = begins_at(&thresholds[THRESHOLDS - 1], room);
    bytes += bytes / SLACK_SHARE;
    return bytes > room->available_bytes ? bytes - room->available_bytes : 0;
}

static void
look(struct pressure *pressure)
{
    UNCLEARED struct memory_room rooms[MEMORY_ROOMS_MAX];
    enum pressure_level before = pressure->level;
    size_t tightest, n = memory_look(&pressure->watch, rooms);
    if (n > 0) {
        pressure->level = pressure_judge(rooms, n, before, &tightest);
        pressure->room = rooms[tightest];
    }
    bool busy = pressure->on_look(pressure->context, before);
    event_add(pressure->on_time,
              busy || pressure->level != PRESSURE_NONE ? &short_pause : &calm_pause);
}

static void
on_time(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    look(context);
}

static void
on_psi(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct pressure *pressure = context;
    memory_psi_take(&pressure->psi);
    look(pressure);
}

int
pressure_start(struct pressure *pressure, struct event_base *base,
               bool (*on_look)(void *, enum pressure_level), void *context,
               struct err *err)
{
    *pressure = (struct pressure){.on_look = on_look, .context = context};
    memory_watch_init(&pressure->watch);
    memory_psi_open(&pressure->psi);
    pressure->on_time = event_new(base, -1, 0, on_time, pressure);
    if (!pressure->on_time)
        return err_set(err, -ENOMEM, "no memory to watch memory");
    /* Without it we are slower to see it, that is all. */
    if (pressure->psi.poll >= 0)
        pressure->on_psi =
            event_new(base, pressure->psi.poll, EV_READ | EV_PERSIST, on_psi, pressure);
    pressure->told_by_kernel = pressure->on_psi && event_add(pressure->on_psi, NULL) == 0;
    look(pressure);
    return 0;
}

void
pressure_done(struct pressure *pressure)
{
    if (pressure->on_time)
        event_free(pressure->on_time);
    if (pressure->on_psi)
        event_free(pressure->on_psi);
    if (pressure->context) /* it was started: before that, 0 is no descriptor of ours */
        memory_psi_close(&pressure->psi);
    *pressure = (struct pressure){0};
}
