/* The one JSON form of an outcome: keys and order, values, hostile bytes, base64. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "job/job.h"
#include "job/outcome.h"

enum { STREAM_BYTES = 1 << 20, DOCUMENT_BYTES = 1 << 24 };

static json_t *
document(const struct outcome *o, int flags)
{
    AUTO_BUF struct buf out;
    buf_init(&out, DOCUMENT_BYTES);
    assert_int_equal(outcome_json(o, flags, &out), 0);
    AUTO_BUF struct buf again;
    buf_init(&again, DOCUMENT_BYTES);
    uint64_t replaced = 0;
    assert_int_equal(utf8_append_valid(&again, buf_span(&out), &replaced), 0);
    assert_int_equal(replaced, 0);
    json_error_t error;
    json_t *doc =
        json_loadb(out.p, out.n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!doc)
        fail_msg("%s at %d:%d", error.text, error.line, error.column);
    return doc;
}

static void
test_json_keys_and_order(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "schema",    "id",        "session_id",    "execution_count", "status",
        "exit_code", "signal",    "limit",         "message",         "stdout",
        "stderr",    "truncated", "dropped_bytes", "invalid_utf8",    "result",
        "results",   "events",    "error",         "findings",        "incidents",
        "files",     "usage",     "limits",        "isolation",       "engine",
    };
    struct outcome o;
    outcome_init(&o);
    json_t *doc = document(&o, 0);
    assert_int_equal(json_object_size(doc), sizeof(keys) / sizeof(*keys));
    void *at = json_object_iter(doc);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        assert_non_null(at);
        assert_string_equal(json_object_iter_key(at), keys[i]);
        at = json_object_iter_next(doc, at);
    }
    assert_string_equal(json_string_value(json_object_get(doc, "schema")),
                        "adyton.outcome/1");
    assert_string_equal(json_string_value(json_object_get(doc, "id")), o.id);
    static const char *const nulls[] = {"session_id", "exit_code", "signal",
                                        "limit",      "result",    "error"};
    for (size_t i = 0; i < sizeof(nulls) / sizeof(*nulls); i++)
        assert_true(json_is_null(json_object_get(doc, nulls[i])));
    json_decref(doc);
    outcome_done(&o);
}

static void
test_json_values(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    o.status = STATUS_TIMEOUT;
    o.signal = SIGKILL;
    snprintf(o.limit_name, sizeof(o.limit_name), "timeout");
    o.limit_value = 5000;
    o.wall_us = 1400;
    o.memory_limit_bytes = UINT64_MAX;
    snprintf(o.interpreter, sizeof(o.interpreter), "cpython 3.11.2");
    outcome_add_layer(&o, "seccomp");
    o.has_error = true;
    o.error_line = 3;
    o.files_skipped = 2;
    snprintf(o.files_note, sizeof(o.files_note), "2 were links");
    json_t *doc = document(&o, OUTCOME_JSON_COMPACT);
    const char *status, *signal, *limit, *interpreter, *layer, *note;
    json_int_t value, line, memory, skipped;
    double wall;
    assert_int_equal(
        json_unpack(doc,
                    "{s:s, s:s, s:{s:s, s:I}, s:{s:I}, s:{s:F}, s:{s:I}, s:{s:s}, s:[s],"
                    " s:I, s:s}",
                    "status", &status, "signal", &signal, "limit", "name", &limit,
                    "value", &value, "error", "line", &line, "usage", "wall_ms", &wall,
                    "limits", "memory_bytes", &memory, "engine", "interpreter",
                    &interpreter, "isolation", &layer, "files_skipped", &skipped,
                    "files_note", &note),
        0);
    assert_string_equal(status, "timeout");
    assert_string_equal(signal, "SIGKILL");
    assert_string_equal(limit, "timeout");
    assert_int_equal(value, 5000);
    assert_int_equal(line, 3);
    assert_true(wall > 1.39 && wall < 1.41);
    assert_true(memory ==
                INT64_MAX); /* signed in JSON: held at the end, never negative */
    assert_string_equal(interpreter, "cpython 3.11.2");
    assert_string_equal(layer, "seccomp");
    assert_int_equal(skipped, 2);
    assert_string_equal(note, "2 were links");
    json_decref(doc);
    outcome_done(&o);
}

/* A field filled to its last byte does not run on into the next one. */
static void
test_json_fields_without_terminator(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    memset(o.interpreter, 'i', sizeof(o.interpreter));
    memset(o.isolation_name, 'n', sizeof(o.isolation_name));
    json_t *doc = document(&o, 0);
    json_t *engine = json_object_get(doc, "engine");
    assert_int_equal(json_string_length(json_object_get(engine, "interpreter")),
                     sizeof(o.interpreter));
    assert_int_equal(json_string_length(json_object_get(engine, "isolation")),
                     sizeof(o.isolation_name));
    json_decref(doc);
    outcome_done(&o);
}

static void
test_json_layout(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    o.wall_us = 1400;
    AUTO_BUF struct buf out;
    buf_init(&out, DOCUMENT_BYTES);
    assert_int_equal(outcome_json(&o, OUTCOME_JSON_COMPACT, &out), 0);
    assert_null(memchr(out.p, '\n', out.n));
    assert_non_null(strstr(out.p, "\"wall_ms\":1.4,"));
    out.n = 0;
    assert_int_equal(outcome_json(&o, 0, &out), 0);
    assert_non_null(memchr(out.p, '\n', out.n));

    /* Too small a buffer is an error that leaves what was there. */
    AUTO_BUF struct buf small;
    buf_init(&small, 64);
    assert_int_equal(buf_append(&small, "kept", 4), 0);
    assert_true(outcome_json(&o, 0, &small) < 0);
    assert_int_equal(small.n, 4);
    assert_string_equal(small.p, "kept");
    outcome_done(&o);
}

static void
put_bytes(struct buf *buf, const unsigned char *bytes, size_t n)
{
    buf_init(buf, STREAM_BYTES);
    assert_int_equal(buf_append(buf, bytes, n), 0);
}

/* Every text of an outcome full of the bytes that parsers trip over. */
static void
fill_with(struct outcome *o, const unsigned char *bytes, size_t n)
{
    put_bytes(&o->out.head, bytes, n);
    put_bytes(&o->out.tail, bytes, n);
    o->out.dropped_bytes = 7;
    put_bytes(&o->err.head, bytes, n);
    assert_int_equal(buf_append(&o->traceback, bytes, n), 0);
    o->has_error = true;
    memcpy(o->error_name, bytes, sizeof(o->error_name)); /* no terminator, on purpose */
    memcpy(o->error_value, bytes + 1, sizeof(o->error_name));
    memcpy(o->message, bytes + 2, sizeof(o->message));
    memcpy(o->files_note, bytes + 3, sizeof(o->files_note));
    memcpy(o->interpreter, bytes + 4, sizeof(o->interpreter));
    o->incidents_n = 1;
    memcpy(o->incidents[0].act, bytes + 5, sizeof(o->incidents[0].act));
    memcpy(o->incidents[0].rule, bytes + 6, sizeof(o->incidents[0].rule));
    o->incidents_dropped = 1;
    o->files = calloc(1, sizeof(*o->files));
    assert_non_null(o->files);
    o->files_n = 1;
    memcpy(o->files[0].path, bytes + 7, 300);
    o->isolation_n = 1;
    memcpy(o->isolation[0], bytes, OUTCOME_LAYER_BYTES);
}

static void
test_json_over_hostile_bytes(void **state)
{
    (void)state;
    enum { BYTES = 4096, ROUNDS = 40 };
    static const char *const pieces[] = {
        "\"",           "\\",       "\xED\xA0\x80", "\xC0\x80",     "\xF4\x90\x80\x80",
        "\xE2\x80\xA8", "\x1b[2J",  "\xEF\xBB\xBF", "\xF0\x9F\x98", "\x7F",
        "\x01",         "\xC2\x9B", "</script>",    "\xFF\xFE",     "x",
    };
    unsigned char bytes[BYTES];
    unsigned seed = 12345;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t n = 0; n < BYTES;) {
            seed = seed * 1103515245U + 12345U;
            const char *piece = pieces[(seed >> 16) % (sizeof(pieces) / sizeof(*pieces))];
            size_t take = strlen(piece) < BYTES - n ? strlen(piece) : BYTES - n;
            /* Now and then a byte of any value, NUL too. */
            if ((seed >> 8) % 8 == 0)
                bytes[n++] = (unsigned char)(seed >> 24);
            else
                memcpy(bytes + n, piece, take), n += take;
        }
        struct outcome o;
        outcome_init(&o);
        fill_with(&o, bytes, sizeof(bytes));
        json_t *doc = document(&o, round % 2 ? OUTCOME_JSON_BASE64 : 0);
        assert_true(
            json_is_true(json_object_get(json_object_get(doc, "truncated"), "stdout")));
        assert_true(
            json_is_false(json_object_get(json_object_get(doc, "truncated"), "stderr")));
        assert_true(json_integer_value(json_object_get(
                        json_object_get(doc, "invalid_utf8"), "stderr")) > 0);
        json_decref(doc);
        outcome_done(&o);
    }
}

static void
test_json_base64_and_paths(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    put_bytes(&o.out.head, (const unsigned char *)"\x00\xFF", 2);
    put_bytes(&o.out.tail, (const unsigned char *)"\x01", 1);
    o.files = calloc(2, sizeof(*o.files));
    assert_non_null(o.files);
    o.files_n = 2;
    snprintf(o.files[0].path, sizeof(o.files[0].path), "a\xFF.csv");
    snprintf(o.files[1].path, sizeof(o.files[1].path), "b.csv");
    json_t *doc = document(&o, OUTCOME_JSON_BASE64);
    const char *out, *err, *path, *path_base64;
    assert_int_equal(json_unpack(doc, "{s:s, s:s, s:[{s:s, s:s}, o]}", "stdout_base64",
                                 &out, "stderr_base64", &err, "files", "path", &path,
                                 "path_base64", &path_base64, &(json_t *){NULL}),
                     0);
    assert_string_equal(out, "AP8B");
    assert_string_equal(err, "");
    assert_string_equal(path, "a\xEF\xBF\xBD.csv");
    assert_string_equal(path_base64, "Yf8uY3N2");
    json_t *plain = json_array_get(json_object_get(doc, "files"), 1);
    assert_null(json_object_get(plain, "path_base64"));
    json_t *text = json_object_get(doc, "stdout");
    assert_int_equal(json_string_length(text), 5); /* NUL, U+FFFD, 0x01 */
    json_decref(doc);
    outcome_done(&o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_keys_and_order),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_fields_without_terminator),
        cmocka_unit_test(test_json_layout),
        cmocka_unit_test(test_json_over_hostile_bytes),
        cmocka_unit_test(test_json_base64_and_paths),
    };
    return cmocka_run_group_tests_name("outcome_json", tests, NULL, NULL);
}
