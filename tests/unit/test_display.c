/* Items that a guest shows: frames as it may write them, bounds, forms, order, and JSON there and
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "cell/cell_parts.h"
#include "job/outcome_parse.h"

enum { FRAME_MAX = 8 << 20 };

struct stage {
    struct outcome outcome;
    struct buf frame;
};

static int
setup(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    assert_non_null(stage);
    outcome_init(&stage->outcome);
    buf_init(&stage->frame, FRAME_MAX);
    buf_init(&stage->outcome.out.head, FRAME_MAX);
    buf_init(&stage->outcome.out.tail, FRAME_MAX);
    *state = stage;
    return 0;
}

static int
teardown(void **state)
{
    struct stage *stage = *state;
    outcome_done(&stage->outcome);
    buf_done(&stage->frame);
    free(stage);
    return 0;
}

static void
begin(struct stage *stage, uint32_t flags, uint32_t parts_n)
{
    const struct display_head head = {flags, parts_n};
    buf_consume(&stage->frame, stage->frame.n);
    assert_int_equal(buf_append(&stage->frame, &head, sizeof(head)), 0);
}

static void
put(struct stage *stage, const char *mime, const char *data, size_t n, uint32_t omitted)
{
    const struct display_part_head head = {(uint32_t)strlen(mime), (uint32_t)n, omitted};
    assert_int_equal(buf_append(&stage->frame, &head, sizeof(head)), 0);
    assert_int_equal(buf_append(&stage->frame, mime, head.mime_n), 0);
    assert_int_equal(buf_append(&stage->frame, data, n), 0);
}

static int
parse(struct stage *stage)
{
    struct display_item *item;
    int r = display_parse(buf_span(&stage->frame), &stage->outcome.displays, &item);
    if (r == 1)
        displays_add(&stage->outcome.displays, item);
    return r;
}

/* One item of one form; the form as it was kept. */
static const struct display_part *
show(struct stage *stage, const char *mime, const char *data, size_t n)
{
    size_t before = stage->outcome.displays.items_n;
    begin(stage, 0, 1);
    put(stage, mime, data, n, 0);
    assert_int_equal(parse(stage), 1);
    if (stage->outcome.displays.items_n == before)
        return NULL;
    assert_int_equal(stage->outcome.displays.items[before]->parts_n, 1);
    return &stage->outcome.displays.items[before]->parts[0];
}

static void
test_forms(void **state)
{
    (void)state;
    static const struct {
        const char *mime;
        enum display_form form;
        bool sound;
    } rows[] = {
        {"text/plain", DISPLAY_TEXT, true},
        {"text/html", DISPLAY_TEXT, true},
        {"image/png", DISPLAY_BINARY, true},
        {"image/svg+xml", DISPLAY_TEXT, true},
        {"application/pdf", DISPLAY_BINARY, true},
        {"application/json", DISPLAY_JSON, true},
        {"application/vnd.plotly.v1+json", DISPLAY_JSON, true},
        {"application/javascript", DISPLAY_TEXT, true},
        {"image/x+json", DISPLAY_JSON, true},
        {"", DISPLAY_TEXT, false},
        {"text", DISPLAY_TEXT, false},
        {"/plain", DISPLAY_TEXT, false},
        {"text/", DISPLAY_TEXT, false},
        {"text/pl ain", DISPLAY_TEXT, false},
        {"text/pl\nain", DISPLAY_TEXT, false},
        {"text/\xc3\xa9", DISPLAY_TEXT, false},
        {"TEXT/plain", DISPLAY_TEXT, false},
        {"a/b/c", DISPLAY_TEXT, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (display_form_of(rows[i].mime) != rows[i].form ||
            display_mime_is_sound(rows[i].mime) != rows[i].sound)
            fail_msg("%s", rows[i].mime);
    }
}

static void
test_item_is_kept(void **state)
{
    struct stage *stage = *state;
    begin(stage, DISPLAY_IS_MAIN, 5);
    put(stage, "text/plain", "a\xff\0b", 4, 0);
    put(stage, "image/png", "\x89PNG\0", 5, 0);
    put(stage, "application/json", "{\"a\": [1, null]}", 16, 0);
    put(stage, "text/html", "", 0, 77);
    put(stage, "", "{\"k\": \"v\"}", 10, 0);
    assert_int_equal(parse(stage), 1);
    const struct display_item *item = stage->outcome.displays.items[0];
    assert_true(item->is_main);
    assert_int_equal(item->parts_n, 4);
    assert_memory_equal(item->parts[0].bytes.p, "a\xef\xbf\xbd\0b", 6);
    assert_memory_equal(item->parts[1].bytes.p, "\x89PNG\0", 5);
    assert_int_equal(json_array_size(json_object_get(item->parts[2].json, "a")), 2);
    assert_int_equal(item->parts[3].omitted_bytes, 77);
    assert_string_equal(json_string_value(json_object_get(item->metadata, "k")), "v");
    assert_memory_equal(displays_result(&stage->outcome.displays)->p, "a\xef\xbf\xbd\0b",
                        6);
}

/* Each wrong length, each cut, and bytes beyond the end: no item, and nothing is read that is
 * not there (the sanitizers look). */
static void
test_wrong_frames(void **state)
{
    struct stage *stage = *state;
    struct display_item *item;
    begin(stage, 0, 2);
    put(stage, "text/plain", "abc", 3, 0);
    put(stage, "text/html", "def", 3, 0);
    size_t n = stage->frame.n;
    for (size_t cut = 0; cut < n; cut++) {
        AUTO_FREE char *exact = malloc(cut + 1);
        memcpy(exact, stage->frame.p, cut);
        struct span bytes = {exact, cut};
        assert_int_equal(display_parse(bytes, &stage->outcome.displays, &item), 0);
    }
    assert_int_equal(buf_append(&stage->frame, "x", 1), 0);
    assert_int_equal(parse(stage), 0);
    stage->frame.n--;
    static const uint32_t wrong[] = {0, 1, 3, 17, 18, 1U << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        begin(stage, 0, wrong[i]);
        put(stage, "text/plain", "abc", 3, 0);
        put(stage, "text/html", "def", 3, 0);
        assert_int_equal(parse(stage), 0);
    }
    for (size_t field = 0; field < 2; field++)
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
            begin(stage, 0, 1);
            put(stage, "text/plain", "abc", 3, 0);
            memcpy(stage->frame.p + sizeof(struct display_head) + 4 * field, &wrong[i],
                   4);
            if (wrong[i] != 3 || field == 0)
                assert_int_equal(parse(stage), 0);
        }
    begin(stage, 0, 1);
    put(stage, "text/plain", "abc", 3, 9); /* left out, and there */
    assert_int_equal(parse(stage), 0);
    assert_int_equal(stage->outcome.displays.items_n, 0);
}

static void
test_json_is_bounded(void **state)
{
    struct stage *stage = *state;
    static const char *const wrong[] = {
        "", "{", "[1,]", "{\"a\":NaN}", "\"\\ud800\"", "\"a", "'a'", "[1] 2"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const struct display_part *part =
            show(stage, "application/json", wrong[i], strlen(wrong[i]));
        if (part->json || part->omitted_bytes == 0)
            fail_msg("%s was taken", wrong[i]);
    }
    char deep[2 * DISPLAY_JSON_DEPTH_MAX + 4];
    size_t depth = DISPLAY_JSON_DEPTH_MAX;
    memset(deep, '[', depth);
    memset(deep + depth, ']', depth);
    assert_non_null(show(stage, "application/json", deep, 2 * depth)->json);
    depth++;
    memset(deep, '[', depth);
    memset(deep + depth, ']', depth);
    assert_null(show(stage, "application/json", deep, 2 * depth)->json);
    /* Brackets inside of strings are none. */
    static const char quoted[] = "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[\"";
    assert_non_null(show(stage, "application/json", quoted, sizeof(quoted) - 1)->json);
}

static void
test_values_of_json_are_counted(void **state)
{
    struct stage *stage = *state;
    enum { VALUES = 100 * 1024 };
    AUTO_BUF struct buf text = {0};
    buf_init(&text, DISPLAY_JSON_BYTES_MAX);
    assert_int_equal(buf_append(&text, "[1", 2), 0);
    for (size_t i = 1; i < VALUES; i++)
        assert_int_equal(buf_append(&text, ",1", 2), 0);
    assert_int_equal(buf_append(&text, "]", 1), 0);
    size_t taken = 0;
    for (size_t i = 0; i < 5; i++)
        taken += show(stage, "application/json", text.p, text.n)->json != NULL;
    assert_int_equal(taken, DISPLAY_MARKS_MAX / VALUES);
}

static void
test_bytes_are_counted(void **state)
{
    struct stage *stage = *state;
    enum { MOST = DISPLAY_BYTES_MAX / DISPLAY_ITEM_BYTES_MAX };
    AUTO_FREE char *bytes = calloc(1, DISPLAY_ITEM_BYTES_MAX + 1);
    assert_int_equal(
        show(stage, "image/png", bytes, DISPLAY_ITEM_BYTES_MAX + 1)->omitted_bytes,
        DISPLAY_ITEM_BYTES_MAX + 1);
    for (size_t i = 0; i < MOST; i++) {
        assert_false(displays_are_full(&stage->outcome.displays));
        assert_int_equal(
            show(stage, "image/png", bytes, DISPLAY_ITEM_BYTES_MAX)->omitted_bytes, 0);
    }
    assert_true(displays_are_full(&stage->outcome.displays));
    assert_int_equal(show(stage, "text/plain", "a", 1)->omitted_bytes, 1);
}

static void
test_items_are_counted(void **state)
{
    struct stage *stage = *state;
    for (size_t i = 0; i < DISPLAY_ITEMS_MAX; i++)
        assert_non_null(show(stage, "text/plain", "a", 1));
    assert_true(displays_are_full(&stage->outcome.displays));
    assert_null(show(stage, "text/plain", "a", 1));
    assert_int_equal(stage->outcome.displays.dropped, 1);
}

static void
test_a_run_has_one_main_value(void **state)
{
    struct stage *stage = *state;
    for (int i = 0; i < 2; i++) {
        begin(stage, DISPLAY_IS_MAIN, 1);
        put(stage, "text/plain", i == 0 ? "first" : "other", 5, 0);
        assert_int_equal(parse(stage), 1);
    }
    assert_true(stage->outcome.displays.items[0]->is_main);
    assert_false(stage->outcome.displays.items[1]->is_main);
    assert_string_equal(displays_result(&stage->outcome.displays)->p, "first");
}

static void
test_unsound_names_are_left_out(void **state)
{
    struct stage *stage = *state;
    begin(stage, 0, 3);
    put(stage, "no mime", "a", 1, 0);
    put(stage, "text/plain", "a", 1, 0);
    put(stage, "text/plain", "again", 5, 0);
    assert_int_equal(parse(stage), 1);
    assert_int_equal(stage->outcome.displays.items[0]->parts_n, 1);
    begin(stage, 0, 1);
    put(stage, "no mime", "a", 1, 0);
    assert_int_equal(parse(stage), 1);
    assert_int_equal(stage->outcome.displays.items_n, 1); /* without a form it is none */
    assert_int_equal(stage->outcome.displays.dropped, 1);
}

/* --- the order --- */

static void
write_out(struct stage *stage, const char *text, size_t n)
{
    struct outcome *o = &stage->outcome;
    events_add(&o->events, EVENT_STDOUT, o->out.head.n, n);
    assert_int_equal(buf_append(&o->out.head, text, n), 0);
}

static json_t *
document(const struct outcome *outcome, int flags)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, 64 << 20);
    assert_int_equal(outcome_json(outcome, flags, &text), 0);
    json_t *doc = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);
    assert_non_null(doc);
    return doc;
}

static const char *
event_text(const json_t *doc, size_t i)
{
    return json_string_value(
        json_object_get(json_array_get(json_object_get(doc, "events"), i), "text"));
}

static void
test_turns(void **state)
{
    struct stage *stage = *state;
    write_out(stage, "one", 3);
    write_out(stage, " more", 5); /* the same turn */
    show(stage, "text/plain", "a", 1);
    events_add(&stage->outcome.events, EVENT_DISPLAY, 0, 0);
    write_out(stage, "\xe2\x82", 2); /* half of a character */
    events_add(&stage->outcome.events, EVENT_DISPLAY, 0, 0);
    write_out(stage, "\xac!", 2);
    json_t *doc = document(&stage->outcome, 0);
    assert_int_equal(json_array_size(json_object_get(doc, "events")), 5);
    assert_string_equal(event_text(doc, 0), "one more");
    assert_string_equal(event_text(doc, 2), "");
    assert_string_equal(event_text(doc, 4), "\xe2\x82\xac!");
    json_decref(doc);
}

static void
test_turns_of_a_cut_stream(void **state)
{
    struct stage *stage = *state;
    struct outcome *o = &stage->outcome;
    write_out(stage, "head", 4);
    assert_int_equal(buf_append(&o->out.tail, "tail", 4), 0);
    o->out.dropped_bytes = 1000;
    events_close(o);
    json_t *doc = document(o, 0);
    const json_t *last = json_array_get(json_object_get(doc, "events"), 1);
    assert_string_equal(event_text(doc, 0), "head");
    assert_string_equal(event_text(doc, 1), "tail");
    assert_int_equal(json_integer_value(json_object_get(last, "dropped")), 1000);
    json_decref(doc);
}

static void
test_turns_are_bounded(void **state)
{
    struct stage *stage = *state;
    struct outcome *o = &stage->outcome;
    for (size_t i = 0; i < 2 * EVENTS_MAX; i++)
        events_add(&o->events, i % 2 ? EVENT_STDERR : EVENT_STDOUT, 10 * i, 1);
    assert_int_equal(o->events.n, EVENTS_MAX);
    assert_int_equal(o->events.dropped, EVENTS_MAX);
    /* Ranges that are not there (an outcome from elsewhere) have no text. */
    o->events.n = 1;
    o->events.rows[0] = (struct event_row){EVENT_STDOUT, 5, UINT64_MAX};
    json_t *doc = document(o, 0);
    assert_null(event_text(doc, 0));
    json_decref(doc);
}

static void
test_there_and_back(void **state)
{
    struct stage *stage = *state;
    write_out(stage, "one\n", 4);
    begin(stage, DISPLAY_IS_MAIN, 4);
    put(stage, "text/plain", "\xf0\x9f\x98\x80", 4, 0);
    put(stage, "image/png", "\x89PNG\0\xff", 6, 0);
    put(stage, "application/x+json", "{\"a\": [0.1, 1e300, \"\\u0000\"]}", 30, 0);
    put(stage, "text/html", "", 0, 1 << 20);
    assert_int_equal(parse(stage), 1);
    events_add(&stage->outcome.events, EVENT_DISPLAY, 0, 0);
    stage->outcome.displays.dropped = 3;
    stage->outcome.events.dropped = 4;
    json_t *doc = document(&stage->outcome, OUTCOME_JSON_EXACT);
    struct err err = {0};
    struct outcome back;
    if (outcome_from_json(doc, &back, &err) < 0)
        fail_msg("%s", err.text);
    json_t *again = document(&back, OUTCOME_JSON_EXACT);
    assert_true(json_equal(doc, again));
    assert_true(back.displays.items[0]->is_main);
    assert_int_equal(back.displays.dropped, 3);
    json_decref(again);
    outcome_done(&back);
    json_decref(doc);
}

static void
test_wrong_results_are_refused(void **state)
{
    struct stage *stage = *state;
    static const char *const wrong[] = {
        "{}",
        "[1]",
        "[{\"type\": \"display\"}]",
        "[{\"type\": \"display\", \"data\": 1}]",
        "[{\"type\": \"display\", \"data\": {}}]",
        "[{\"type\": \"display\", \"data\": {\"text/plain\": 1}}]",
        "[{\"type\": \"display\", \"data\": {\"no mime\": \"a\"}}]",
        "[{\"type\": \"display\", \"data\": {\"image/png\": \"?\"}}]",
        "[{\"type\": \"display\", \"data\": {\"text/plain\": \"\"}, \"x\": 1}]",
        "[{\"type\": \"display\", \"data\": {\"text/plain\": \"\"}, \"metadata\": 1}]",
        "[{\"type\": \"display\", \"data\": {}, \"omitted\": {\"text/plain\": -1}}]",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct outcome back;
        struct err err = {0};
        json_t *doc = document(&stage->outcome, OUTCOME_JSON_EXACT);
        json_object_set_new(doc, "results", json_loads(wrong[i], 0, NULL));
        if (outcome_from_json(doc, &back, &err) == 0)
            fail_msg("%s was taken", wrong[i]);
        json_decref(doc);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test_setup_teardown(test_item_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_frames, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_of_json_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_items_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_run_has_one_main_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unsound_names_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns_of_a_cut_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_results_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
