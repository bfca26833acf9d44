/*
 * libFuzzer: items as a hostile cell may write them before it rings, any number of them. What
 * reaches the outcome is bounded, its JSON is whole, and reads the same when it is read again.
 * The input is frames, each a length of two bytes (little-endian) and so many bytes.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "cell/cell_parts.h"
#include "job/outcome_parse.h"

enum { JSON_BYTES_MAX = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
ring(struct outcome *outcome, const uint8_t *bytes, size_t n)
{
    struct displays *displays = &outcome->displays;
    struct display_item *item;
    /* Of its exact size: what is read behind it is seen. */
    AUTO_FREE char *frame = malloc(n + 1);
    if (!frame)
        abort();
    memcpy(frame, bytes, n);
    int r = display_parse((struct span){frame, n}, displays, &item);
    if (r < 0)
        abort();
    if (r > 0 && displays_add(displays, item))
        events_add(&outcome->events, EVENT_DISPLAY, displays->items_n - 1, 0);
}

static void
read_again(const struct outcome *outcome)
{
    struct outcome back;
    struct err err;
    AUTO_BUF struct buf first = {0}, second = {0};
    buf_init(&first, JSON_BYTES_MAX);
    buf_init(&second, JSON_BYTES_MAX);
    if (outcome_json(outcome, OUTCOME_JSON_COMPACT | OUTCOME_JSON_EXACT, &first) < 0)
        abort();
    json_t *doc = json_loadb(first.p, first.n, JSON_ALLOW_NUL, NULL);
    if (!doc || outcome_from_json(doc, &back, &err) < 0 ||
        outcome_json(&back, OUTCOME_JSON_COMPACT | OUTCOME_JSON_EXACT, &second) < 0 ||
        first.n != second.n || memcmp(first.p, second.p, first.n) != 0)
        abort();
    outcome_done(&back);
    json_decref(doc);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct outcome outcome;
    outcome_init(&outcome);
    while (n >= 2) {
        size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8;
        bytes += 2;
        n -= 2;
        length = length < n ? length : n;
        ring(&outcome, bytes, length);
        bytes += length;
        n -= length;
    }
    if (outcome.displays.items_n > DISPLAY_ITEMS_MAX ||
        outcome.displays.bytes > DISPLAY_BYTES_MAX ||
        outcome.displays.marks > DISPLAY_MARKS_MAX)
        abort();
    read_again(&outcome);
    outcome_done(&outcome);
    return 0;
}
