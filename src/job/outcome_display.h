/*
 * What a run has shown: items, each in one or more forms (MIME types), and the order in which they
 * stood among the bytes of its streams. All of it is claimed by the cell: bounded here, made valid
 * here, and unable to change a fact.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

struct json_t; /* jansson's */

enum {
    DISPLAY_ITEMS_MAX = 256,
    DISPLAY_PARTS_MAX = 16, /* forms of one item */
    DISPLAY_MIME_BYTES = 96,
    DISPLAY_ITEM_BYTES_MAX = 4 << 20,
    DISPLAY_BYTES_MAX = 32 << 20, /* of all items of a run */
    DISPLAY_JSON_BYTES_MAX = 1 << 20,
    DISPLAY_METADATA_BYTES_MAX = 16 << 10,
    DISPLAY_JSON_DEPTH_MAX = 20,
    DISPLAY_MARKS_MAX = 256 << 10, /* commas, colons and brackets of all JSON of a run */
    EVENTS_MAX = 4096,
    EVENT_TEXT_BYTES_MAX = 256 << 10, /* of all events: beyond it they name bytes only */
};

/* How the bytes of a MIME type are written: as text, as base64, as what they say. */
enum display_form { DISPLAY_TEXT, DISPLAY_BINARY, DISPLAY_JSON };
enum display_form display_form_of(const char *mime);
/* type/subtype of plain ASCII, lower case in its type: what may stand as a key. */
bool display_mime_is_sound(const char *mime);

struct display_part {
    char mime[DISPLAY_MIME_BYTES];
    struct buf bytes;    /* of a text or binary form */
    struct json_t *json; /* of a JSON form; owned */
    uint64_t
        omitted_bytes; /* its size, when it was too large or not what it said: no data */
};

struct display_item {
    bool is_main; /* the value of the last expression */
    struct display_part parts[DISPLAY_PARTS_MAX];
    size_t parts_n;
    struct json_t *metadata; /* an object, or NULL; owned */
};

struct displays {
    struct display_item *items[DISPLAY_ITEMS_MAX]; /* owned */
    size_t items_n;
    uint64_t dropped; /* items that no longer fitted, or that made no sense */
    uint64_t bytes;   /* of all that is kept */
    uint64_t marks;
};

void displays_done(struct displays *displays);
bool displays_are_full(const struct displays *displays);

/* Forms are put into an item first; then it is added, which takes it over. */
struct display_item *display_item_new(bool is_main);
void display_item_free(struct display_item *item);
/* A form that has no room, or is not valid JSON where it should be, is kept as omitted. An unsound
 * or repeated MIME type is left out. omitted_bytes: the cell itself has left the data out. */
int display_item_put(struct displays *displays, struct display_item *item,
                     const char *mime, struct span bytes,
                     uint64_t omitted_bytes) MUST_USE;
/* One JSON object; anything else is no metadata. */
void display_item_describe(struct displays *displays, struct display_item *item,
                           struct span json);
/* Full, or nothing in it: it is counted as dropped, freed, and this is false. */
bool displays_add(struct displays *displays, struct display_item *item);

/* The text of the last expression's value; NULL when there was none, or it has no text. */
const struct buf *displays_result(const struct displays *displays);
/* The first form of an item with that MIME type that has data, or NULL. */
const struct display_part *display_item_part(const struct display_item *item,
                                             const char *mime);

struct json_t *display_item_json(const struct display_item *item);
/* The item as JSON text, on one line. */
int display_item_write(const struct display_item *item, struct buf *out) MUST_USE;
struct json_t *displays_json(const struct displays *displays);
/* The inverse; false when it is not what displays_json writes. */
bool displays_take(const struct json_t *list, struct displays *ret);
struct display_item *display_item_take(struct displays *displays,
                                       const struct json_t *value);

/* --- outcome_events.c: the order --- */

enum event_kind { EVENT_STDOUT = 1, EVENT_STDERR = 2, EVENT_DISPLAY = 3 };

struct event_row {
    uint8_t kind;
    uint64_t at; /* of a stream: the first of its kept bytes; of a display: its number */
    uint64_t n;  /* bytes */
};

struct events {
    struct event_row *rows; /* owned */
    size_t n, capacity;
    uint64_t dropped; /* turns that no longer fitted */
};

struct outcome;

void events_done(struct events *events);
/* n bytes of a stream, which follow those that were added last; or one more display. */
void events_add(struct events *events, enum event_kind kind, uint64_t at, uint64_t n);
/* What the streams hold behind their heads has no place among the others: it comes last. */
void events_close(struct outcome *outcome);
struct json_t *events_json(const struct outcome *outcome);
bool events_take(const struct json_t *list, struct events *ret);
