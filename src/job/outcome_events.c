/*
 * The order of what a run wrote and showed: turns, each a range of a stream's kept bytes or the
 * number of a display. Between the two streams the order is that in which the supervisor read
 * them; at a display it is exact, for both are drained before it is taken.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "job/outcome.h"
#include "job/outcome_parts.h"

void
events_done(struct events *events)
{
    free(events->rows);
    *events = (struct events){0};
}

static bool
grow(struct events *events)
{
    enum { FIRST = 16 };
    if (events->n < events->capacity)
        return true;
    size_t capacity = events->capacity > 0 ? 2 * events->capacity : FIRST;
    struct event_row *rows = reallocarray(events->rows, capacity, sizeof(*rows));
    if (!rows)
        return false;
    events->rows = rows;
    events->capacity = capacity;
    return true;
}

void
events_add(struct events *events, enum event_kind kind, uint64_t at, uint64_t n)
{
    struct event_row *last = events->n > 0 ? &events->rows[events->n - 1] : NULL;
    if (last && last->kind == kind && kind != EVENT_DISPLAY && last->at + last->n == at)
        last->n += n;
    else if (events->n == EVENTS_MAX || !grow(events))
        events->dropped++;
    else
        events->rows[events->n++] =
            (struct event_row){.kind = (uint8_t)kind, .at = at, .n = n};
}

void
events_close(struct outcome *outcome)
{
    const struct stream *const streams[] = {&outcome->out, &outcome->err};
    for (uint8_t i = 0; i < 2; i++) {
        uint64_t head_n = streams[i]->head.n;
        if (streams[i]->tail.n == 0 && streams[i]->dropped_bytes == 0)
            continue;
        /* A row of its own, even behind the head's: bytes may be missing between them. */
        if (outcome->events.n == EVENTS_MAX || !grow(&outcome->events))
            outcome->events.dropped++;
        else
            outcome->events.rows[outcome->events.n++] = (struct event_row){
                .kind = (uint8_t)(i + 1), .at = head_n, .n = streams[i]->tail.n};
    }
}

/* --- to JSON --- */

/* Of one stream: bytes of a character whose end is in a later turn. */
struct carry {
    char bytes[4];
    size_t n;
};

static struct span
kept_bytes(const struct stream *stream, const struct event_row *row)
{
    struct span head = buf_span(&stream->head), tail = buf_span(&stream->tail);
    if (row->at < head.n)
        return row->n <= head.n - row->at
                   ? (struct span){head.p + row->at, (size_t)row->n}
                   : (struct span){NULL, 0};
    uint64_t at = row->at - head.n;
    return at <= tail.n && row->n <= tail.n - at
               ? (struct span){tail.p + at, (size_t)row->n}
               : (struct span){NULL, 0};
}

/* Whether another turn of that stream follows: if none does, what is unfinished stays so. */
static bool
is_last(const struct events *events, size_t i)
{
    for (size_t j = i + 1; j < events->n; j++)
        if (events->rows[j].kind == events->rows[i].kind)
            return false;
    return true;
}

static json_t *
turn_text(struct carry *carry, struct span bytes, bool last)
{
    AUTO_BUF struct buf whole = {0}, valid = {0};
    uint64_t replaced;
    buf_init(&whole, bytes.n + sizeof(carry->bytes));
    buf_init(&valid, 3 * (bytes.n + sizeof(carry->bytes)) + 1);
    if (buf_append(&whole, carry->bytes, carry->n) < 0 ||
        buf_append(&whole, bytes.p, bytes.n) < 0)
        return NULL;
    struct span text = buf_span(&whole);
    carry->n = last ? 0 : utf8_unfinished_tail(text);
    text.n -= carry->n;
    memcpy(carry->bytes, text.p + text.n, carry->n);
    if (utf8_append_valid(&valid, text, &replaced) < 0)
        return NULL;
    text = buf_span(&valid);
    return json_stringn_nocheck(text.p, text.n);
}

static json_t *
turn_json(const struct outcome *o, size_t i, struct carry *carry, size_t *text_left)
{
    static const char *const names[] = {"", "stdout", "stderr"};
    const struct event_row *row = &o->events.rows[i];
    const struct stream *stream = row->kind == EVENT_STDOUT ? &o->out : &o->err;
    struct span bytes = kept_bytes(stream, row);
    json_t *object = json_pack("{s:s, s:o, s:o}", "type", names[row->kind], "at",
                               json_u64(row->at), "bytes", json_u64(row->n));
    bool whole = object != NULL;
    if (bytes.p && bytes.n <= *text_left) {
        *text_left -= bytes.n;
        whole = json_object_set_new(object, "text",
                                    turn_text(carry, bytes, is_last(&o->events, i))) == 0;
    } else {
        carry->n = 0;
    }
    if (whole && row->at == stream->head.n && stream->dropped_bytes > 0)
        whole =
            json_object_set_new(object, "dropped", json_u64(stream->dropped_bytes)) == 0;
    if (whole)
        return object;
    json_decref(object);
    return NULL;
}

json_t *
events_json(const struct outcome *outcome)
{
    struct carry carries[3] = {{{0}, 0}, {{0}, 0}, {{0}, 0}};
    size_t text_left = EVENT_TEXT_BYTES_MAX;
    json_t *list = json_array();
    for (size_t i = 0; list && i < outcome->events.n; i++) {
        const struct event_row *row = &outcome->events.rows[i];
        json_t *turn =
            row->kind == EVENT_DISPLAY
                ? json_pack("{s:s, s:o}", "type", "display", "index", json_u64(row->at))
                : turn_json(outcome, i, &carries[row->kind], &text_left);
        if (json_array_append_new(list, turn) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* --- and back --- */

static bool
take_count(const json_t *value, uint64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static bool
take_turn(const json_t *value, struct event_row *ret)
{
    const char *type = json_string_value(json_object_get(value, "type"));
    *ret = (struct event_row){0};
    if (!type)
        return false;
    if (strcmp(type, "display") == 0) {
        ret->kind = EVENT_DISPLAY;
        return take_count(json_object_get(value, "index"), &ret->at);
    }
    ret->kind = strcmp(type, "stdout") == 0   ? EVENT_STDOUT
                : strcmp(type, "stderr") == 0 ? EVENT_STDERR
                                              : 0;
    return ret->kind != 0 && take_count(json_object_get(value, "at"), &ret->at) &&
           take_count(json_object_get(value, "bytes"), &ret->n);
}

bool
events_take(const json_t *list, struct events *ret)
{
    if (!json_is_array(list) || json_array_size(list) > EVENTS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct event_row row;
        if (!take_turn(json_array_get(list, i), &row) || !grow(ret))
            return false;
        ret->rows[ret->n++] = row;
    }
    return true;
}
