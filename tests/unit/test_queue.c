/* Turns: fairness, bounds, memory, and whatever leaves early. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/queue.h"

enum { ITEMS = 64 };

struct client {
    struct queue_lane lane;
    struct queue_item items[ITEMS];
    size_t pushed;
};

static int
push(struct queue *queue, struct client *client, uint64_t memory_bytes,
     struct queue_item **evicted)
{
    struct queue_item *item = &client->items[client->pushed];
    *item = (struct queue_item){.memory_bytes = memory_bytes};
    int r = queue_push(queue, &client->lane, item, evicted);
    client->pushed += r == 0;
    return r;
}

static void
push_many(struct queue *queue, struct client *client, size_t n)
{
    struct queue_item *evicted;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(push(queue, client, 1, &evicted), 0);
        assert_null(evicted);
    }
}

static bool
is_of(const struct queue_item *item, const struct client *client)
{
    return item >= client->items && item < client->items + ITEMS;
}

static void
test_one_lane_is_first_in_first_out(void **state)
{
    (void)state;
    struct queue queue = {.waiting_max = 8, .running_max = 8, .memory_max_bytes = 100};
    struct client a = {0};
    push_many(&queue, &a, 3);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(queue_next(&queue), &a.items[i]);
    assert_null(queue_next(&queue));
    assert_int_equal(queue.running, 3);
    assert_int_equal(queue.memory_bytes, 3);
    for (size_t i = 0; i < 3; i++) {
        queue_remove(&queue, &a.items[i]);
        queue_remove(&queue, &a.items[i]); /* a second time is nothing */
    }
    assert_int_equal(queue.running, 0);
    assert_int_equal(queue.memory_bytes, 0);
}

static void
test_a_flood_gets_every_other_turn(void **state)
{
    (void)state;
    struct queue queue = {.waiting_max = 100, .running_max = 1, .memory_max_bytes = 100};
    struct client flood = {0}, one = {0}, two = {0};
    push_many(&queue, &flood, 50);
    push_many(&queue, &one, 3);
    push_many(&queue, &two, 1);
    size_t turns[3] = {0}, at_two = 0;
    for (size_t i = 0; i < 9; i++) {
        struct queue_item *item = queue_next(&queue);
        assert_non_null(item);
        assert_null(queue_next(&queue)); /* one at a time */
        turns[0] += is_of(item, &flood);
        turns[1] += is_of(item, &one);
        turns[2] += is_of(item, &two);
        if (is_of(item, &two))
            at_two = i;
        queue_remove(&queue, item);
    }
    assert_int_equal(turns[1], 3);
    assert_int_equal(turns[2], 1);
    assert_int_equal(turns[0], 5);
    assert_true(at_two < 3);
}

static void
test_a_full_queue(void **state)
{
    (void)state;
    struct queue queue = {.waiting_max = 4, .running_max = 1, .memory_max_bytes = 100};
    struct client flood = {0}, other = {0}, third = {0};
    struct queue_item *evicted;
    push_many(&queue, &flood, 4);
    assert_int_equal(push(&queue, &flood, 1, &evicted), -EBUSY);
    /* The flood gives way, newest first, until the two have as many. */
    assert_int_equal(push(&queue, &other, 1, &evicted), 0);
    assert_ptr_equal(evicted, &flood.items[3]);
    assert_false(evicted->waits);
    assert_int_equal(push(&queue, &other, 1, &evicted), 0);
    assert_ptr_equal(evicted, &flood.items[2]);
    assert_int_equal(push(&queue, &other, 1, &evicted), -EBUSY);
    assert_int_equal(push(&queue, &third, 1, &evicted), 0);
    assert_non_null(evicted);
    assert_int_equal(queue.waiting, 4);
}

static void
test_nothing_need_wait_where_nothing_may(void **state)
{
    (void)state;
    struct queue queue = {.waiting_max = 0, .running_max = 1, .memory_max_bytes = 10};
    struct client a = {0};
    struct queue_item *evicted;
    assert_int_equal(push(&queue, &a, 1, &evicted), 0);
    assert_ptr_equal(queue_next(&queue), &a.items[0]);
    assert_int_equal(push(&queue, &a, 1, &evicted), -EBUSY);
    queue_remove(&queue, &a.items[0]);
    assert_int_equal(push(&queue, &a, 1, &evicted), 0);
}

static void
test_memory(void **state)
{
    (void)state;
    struct queue queue = {.waiting_max = 9, .running_max = 9, .memory_max_bytes = 10};
    struct client a = {0}, b = {0};
    struct queue_item *evicted;
    assert_int_equal(push(&queue, &a, 11, &evicted), -EFBIG);
    assert_int_equal(push(&queue, &a, 6, &evicted), 0);
    assert_int_equal(push(&queue, &a, 6, &evicted), 0);
    assert_int_equal(push(&queue, &b, 1, &evicted), 0);
    assert_ptr_equal(queue_next(&queue), &a.items[0]);
    assert_ptr_equal(queue_next(&queue), &b.items[0]); /* its turn, and it fits */
    assert_int_equal(push(&queue, &b, 1, &evicted), 0);
    /* Now the large one has its turn, and nobody passes it. */
    assert_null(queue_next(&queue));
    queue_remove(&queue, &a.items[0]);
    assert_ptr_equal(queue_next(&queue), &a.items[1]);
    assert_ptr_equal(queue_next(&queue), &b.items[1]);
    assert_int_equal(queue.memory_bytes, 8);
}

static void
test_a_client_that_leaves(void **state)
{
    (void)state;
    struct queue queue = {.waiting_max = 99, .running_max = 1, .memory_max_bytes = 100};
    struct client clients[3] = {0};
    for (size_t i = 0; i < 3; i++)
        push_many(&queue, &clients[i], 4);
    /* From the middle, the front and the end, and then all of it. */
    static const size_t order[] = {1, 0, 3, 2};
    for (size_t i = 0; i < 4; i++)
        queue_remove(&queue, &clients[0].items[order[i]]);
    assert_int_equal(queue.waiting, 8);
    for (size_t i = 0; i < 8; i++) {
        struct queue_item *item = queue_next(&queue);
        assert_true(is_of(item, &clients[1 + i % 2]));
        queue_remove(&queue, item);
    }
    assert_null(queue_next(&queue));
    assert_null(queue.turn);
}

/* Whatever is done in whatever order, the counts are those of what is there. */
static void
test_counts_hold(void **state)
{
    (void)state;
    struct queue queue = {.waiting_max = 20, .running_max = 5, .memory_max_bytes = 60};
    static struct client clients[4];
    memset(clients, 0, sizeof(clients));
    unsigned seed = 7;
    for (size_t step = 0; step < 20000; step++) {
        seed = seed * 1103515245 + 12345;
        struct client *client = &clients[seed >> 16 & 3];
        struct queue_item *item = &client->items[seed >> 18 & (ITEMS - 1)], *evicted;
        if (item->waits || item->runs) {
            queue_remove(&queue, item);
        } else if (seed >> 24 & 1) {
            *item = (struct queue_item){.memory_bytes = seed >> 25 & 31};
            (void)!queue_push(&queue, &client->lane, item, &evicted);
        } else {
            queue_next(&queue);
        }
        size_t waiting = 0, running = 0;
        uint64_t memory = 0;
        for (size_t c = 0; c < 4; c++)
            for (size_t i = 0; i < ITEMS; i++) {
                waiting += clients[c].items[i].waits;
                running += clients[c].items[i].runs;
                memory += clients[c].items[i].runs ? clients[c].items[i].memory_bytes : 0;
            }
        assert_int_equal(queue.waiting, waiting);
        assert_int_equal(queue.running, running);
        assert_int_equal(queue.memory_bytes, memory);
        assert_true(waiting <= 20 && running <= 5 && memory <= 60);
    }
}

/* What is held beside runs leaves them less room, and never none. */
static void
test_memory_that_is_held(void **state)
{
    (void)state;
    struct queue queue = {
        .waiting_max = 8, .running_max = 8, .memory_max_bytes = 100, .held_bytes = 50};
    struct client a = {0};
    struct queue_item *evicted;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(push(&queue, &a, 40, &evicted), 0);
    assert_ptr_equal(queue_next(&queue), &a.items[0]);
    assert_null(queue_next(&queue)); /* 40 and 50 leave 10 */
    queue.held_bytes = 150;
    assert_null(queue_next(&queue));
    queue_remove(&queue, &a.items[0]);
    assert_ptr_equal(queue_next(&queue), &a.items[1]); /* nothing runs */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_lane_is_first_in_first_out),
        cmocka_unit_test(test_a_flood_gets_every_other_turn),
        cmocka_unit_test(test_a_full_queue),
        cmocka_unit_test(test_nothing_need_wait_where_nothing_may),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_that_is_held),
        cmocka_unit_test(test_a_client_that_leaves),
        cmocka_unit_test(test_counts_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
