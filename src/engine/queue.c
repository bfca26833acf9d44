/* Lanes in a ring, items in a list: every step takes the same time, whatever waits. Only
 * a full queue looks at all lanes. */
#include "engine/queue.h"

#include <assert.h>
#include <errno.h>

static void
link_lane(struct queue *queue, struct queue_lane *lane)
{
    if (!queue->turn) {
        lane->before = lane->after = lane;
        queue->turn = lane;
        return;
    }
    /* Just behind the one whose turn it is, seen from the back: the last to come. */
    lane->after = queue->turn;
    lane->before = queue->turn->before;
    lane->before->after = lane;
    lane->after->before = lane;
}

static void
unlink_lane(struct queue *queue, struct queue_lane *lane)
{
    if (queue->turn == lane)
        queue->turn = lane->after == lane ? NULL : lane->after;
    lane->before->after = lane->after;
    lane->after->before = lane->before;
    lane->before = lane->after = NULL;
}

static void
take_out(struct queue *queue, struct queue_item *item)
{
    struct queue_lane *lane = item->lane;
    *(item->before ? &item->before->after : &lane->first) = item->after;
    *(item->after ? &item->after->before : &lane->last) = item->before;
    item->before = item->after = NULL;
    item->waits = false;
    queue->waiting--;
    if (--lane->waiting == 0)
        unlink_lane(queue, lane);
}

static struct queue_lane *
longest_lane(const struct queue *queue)
{
    struct queue_lane *longest = queue->turn;
    if (!longest)
        return NULL;
    for (struct queue_lane *lane = longest->after; lane != queue->turn;
         lane = lane->after)
        if (lane->waiting > longest->waiting)
            longest = lane;
    return longest;
}

static bool
fits(const struct queue *queue, const struct queue_item *item)
{
    uint64_t used = queue->memory_bytes + queue->held_bytes;
    return queue->running < queue->running_max &&
           (queue->running == 0 ||
            (used <= queue->memory_max_bytes &&
             item->memory_bytes <= queue->memory_max_bytes - used));
}

/* What can run at once takes no place of those that wait. */
static bool
is_full(const struct queue *queue, const struct queue_item *item)
{
    return queue->waiting >= queue->waiting_max &&
           !(queue->waiting == 0 && fits(queue, item));
}

int
queue_push(struct queue *queue, struct queue_lane *lane, struct queue_item *item,
           struct queue_item **ret_evicted)
{
    assert(!item->waits && !item->runs);
    *ret_evicted = NULL;
    if (item->memory_bytes > queue->memory_max_bytes)
        return -EFBIG;
    if (is_full(queue, item)) {
        struct queue_lane *longest = longest_lane(queue);
        if (!longest || longest->waiting < lane->waiting + 2)
            return -EBUSY;
        *ret_evicted = longest->last;
        take_out(queue, longest->last);
    }
    item->lane = lane;
    item->waits = true;
    item->after = NULL;
    item->before = lane->last;
    *(lane->last ? &lane->last->after : &lane->first) = item;
    lane->last = item;
    queue->waiting++;
    if (lane->waiting++ == 0)
        link_lane(queue, lane);
    return 0;
}

struct queue_item *
queue_next(struct queue *queue)
{
    struct queue_lane *lane = queue->turn;
    if (!lane || !fits(queue, lane->first))
        return NULL;
    struct queue_item *item = lane->first;
    queue->turn = lane->after;
    take_out(queue, item);
    item->runs = true;
    queue->running++;
    queue->memory_bytes += item->memory_bytes;
    return item;
}

void
queue_remove(struct queue *queue, struct queue_item *item)
{
    if (item->waits)
        take_out(queue, item);
    if (!item->runs)
        return;
    item->runs = false;
    queue->running--;
    queue->memory_bytes -= item->memory_bytes;
}
