/*
 * Whether memory is short. The measure is one table (pressure.c) and one function over what is
 * left of the host and of each control group around us; the rest is when to look. What is done
 * about it is not known here.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/memory.h"

enum pressure_level {
    PRESSURE_NONE,
    PRESSURE_LOW,  /* what only makes us faster is given back */
    PRESSURE_HIGH, /* what can be made again, or asked for again, too */
    PRESSURE_LEVELS
};
extern const char *const pressure_names[PRESSURE_LEVELS];

/* The highest level that any of the rooms is at, *ret_tightest being that room (the tightest of
 * all where there is none). A level that was reached is left only when there is clearly more than
 * what it begins at. n is at least 1. */
enum pressure_level pressure_judge(const struct memory_room *rooms, size_t n,
                                   enum pressure_level before, size_t *ret_tightest);
/* How much must come free until nothing is short. */
uint64_t pressure_need_bytes(const struct memory_room *room);

struct pressure {
    enum pressure_level level;
    struct memory_room room; /* the tightest; total_bytes 0: nothing is known */
    bool told_by_kernel; /* that tasks wait for memory: else we look by the clock alone */
    struct memory_watch watch;
    struct memory_psi psi;
    struct event *on_time, *on_psi;
    /* After each look. True: something was done, look again soon. */
    bool (*on_look)(void *context, enum pressure_level before);
    void *context;
};

/* Looks at once, and from then on by itself. */
int pressure_start(struct pressure *pressure, struct event_base *base,
                   bool (*on_look)(void *, enum pressure_level), void *context,
                   struct err *err) MUST_USE;
void pressure_done(struct pressure *pressure);
