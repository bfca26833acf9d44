/*
 * Who runs next: jobs wait in lanes, one a client, and lanes take turns, so that a client
 * that sends a thousand jobs has as many turns as one that sends one. Bounded in jobs
 * that wait, jobs that run, and memory that those may use together. Nothing but lists and
 * numbers: no cells, no clients, no clock. Nothing is allocated here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* Embedded in whatever waits; zero it before the first use. */
struct queue_item {
    struct queue_item *before, *after;
    struct queue_lane *lane;
    uint64_t memory_bytes; /* what it may use while it runs */
    bool waits, runs;
};

/* Embedded in a client; zero it before the first use. */
struct queue_lane {
    struct queue_lane *before, *after; /* in the ring of lanes in which something waits */
    struct queue_item *first, *last;
    size_t waiting;
};

struct queue {
    struct queue_lane *turn; /* whose turn it is */
    size_t waiting, waiting_max;
    size_t running, running_max;
    uint64_t memory_bytes, memory_max_bytes; /* of those that run */
    uint64_t
        held_bytes; /* by what is no item and stays: where nothing runs, no hindrance */
};

/* Lets an item wait. 0: it does. When the queue is full, the lane with the most gives way
 * if it has at least two more than this one has: *ret_evicted is its newest item, which
 * waits no more. -EBUSY: full, and nobody has more. -EFBIG: it would never fit. */
int queue_push(struct queue *queue, struct queue_lane *lane, struct queue_item *item,
               struct queue_item **ret_evicted) MUST_USE;
/* The next item that may run, which counts as running from here; NULL: none. An item that
 * must wait for memory holds up those behind it: otherwise small jobs would keep a large
 * one waiting for ever. */
struct queue_item *queue_next(struct queue *queue);
/* It waits or runs no more; nothing happens when it does neither. */
void queue_remove(struct queue *queue, struct queue_item *item);
