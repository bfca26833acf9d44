/* The job room: names in a job, the status table, incidents, streams, ids and the JSON
 * form. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "job/job.h"
#include "job/outcome.h"

enum { STREAM_BYTES = 1 << 20, DOCUMENT_BYTES = 1 << 24 };

/* ---- job ---- */

static int
add_named(struct job *job, const char *name)
{
    struct err err = {0};
    struct buf data;
    buf_init(&data, 16);
    assert_int_equal(buf_append(&data, "x", 1), 0);
    int r = job_add_file(job, name, &data, &err);
    if (r < 0)
        assert_true(err.text[0] != '\0' && err.code == r);
    else
        assert_null(data.p); /* taken over */
    buf_done(&data);
    return r;
}

static void
test_file_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int result;
    } rows[] = {
        {"a.csv", 0},         {"deep/er/b.csv", 0},   {"a b\n\x80.txt", 0},
        {"..c", 0},           {"", -EINVAL},          {"/etc/x", -EINVAL},
        {"a/../b", -EINVAL},  {"..", -EINVAL},        {".", -EINVAL},
        {"a//b", -EINVAL},    {"d/", -EINVAL},        {"./a", -EINVAL},
        {"a.csv", -EEXIST},   {"a.csv/b", -EEXIST},   {"deep", -EEXIST},
        {"main.py", -EEXIST}, {"main.py/x", -EEXIST},
    };
    struct job job;
    job_init(&job);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (add_named(&job, rows[i].name) != rows[i].result)
            fail_msg("%s: not %d", rows[i].name, rows[i].result);
    assert_int_equal(job.files_n, 4);
    assert_int_equal(job.files[0].data.n, 1);
    job_done(&job);
    job_done(&job);
    job_done(NULL);
}

static void
test_file_name_lengths(void **state)
{
    (void)state;
    struct job job;
    job_init(&job);
    char name[JOB_PATH_BYTES + 1];
    memset(name, 'n', sizeof(name));
    name[JOB_NAME_BYTES - 1] = '\0'; /* 255, the longest that Linux takes */
    assert_int_equal(add_named(&job, name), 0);
    name[JOB_NAME_BYTES - 1] = 'n';
    name[JOB_NAME_BYTES] = '\0';
    assert_int_equal(add_named(&job, name), -EINVAL);
    memset(name, 'n', sizeof(name));
    for (size_t i = 1; i < sizeof(name); i += 2)
        name[i] = '/';
    name[JOB_PATH_BYTES - 1] = '\0';
    assert_int_equal(add_named(&job, name), 0);
    name[JOB_PATH_BYTES - 1] = 'n';
    name[JOB_PATH_BYTES] = '\0';
    assert_int_equal(add_named(&job, name), -ENAMETOOLONG);
    job_done(&job);
}

static void
test_file_count(void **state)
{
    (void)state;
    struct job job;
    job_init(&job);
    char name[16];
    for (int i = 0; i < JOB_FILES_MAX; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        assert_int_equal(add_named(&job, name), 0);
    }
    assert_int_equal(add_named(&job, "one-more"), -E2BIG);
    job_done(&job);
}

static void
test_script_name(void **state)
{
    (void)state;
    struct job job;
    struct err err = {0};
    job_init(&job);
    assert_string_equal(job.name, "main.py");
    assert_int_equal(add_named(&job, "taken.py"), 0);
    static const char *const bad[] = {"", ".", "..", "a/b", "/a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(job_set_name(&job, bad[i], &err), -EINVAL);
    assert_int_equal(job_set_name(&job, "taken.py", &err), -EEXIST);
    assert_string_equal(job.name, "main.py");
    assert_int_equal(job_set_name(&job, "my script", &err), 0);
    assert_string_equal(job.name, "my script");
    job_done(&job);
}

static void
test_args(void **state)
{
    (void)state;
    struct job job;
    struct err err = {0};
    job_init(&job);
    for (int i = 0; i < JOB_ARGS_MAX; i++)
        assert_int_equal(job_add_arg(&job, i % 2 ? "" : "--x=1", &err), 0);
    assert_int_equal(job_add_arg(&job, "", &err), -E2BIG);
    assert_string_equal(job.args[2], "--x=1");
    job_done(&job);

    job_init(&job);
    char *big = malloc(JOB_ARGS_BYTES + 1);
    assert_non_null(big);
    memset(big, 'a', JOB_ARGS_BYTES);
    big[JOB_ARGS_BYTES] = '\0';
    assert_int_equal(job_add_arg(&job, big, &err), -E2BIG);
    big[JOB_ARGS_BYTES - 1] = '\0';
    assert_int_equal(job_add_arg(&job, big, &err), 0);
    assert_int_equal(job_add_arg(&job, "", &err), -E2BIG);
    free(big);
    job_done(&job);
}

/* ---- status table ---- */

static void
test_status_table(void **state)
{
    (void)state;
    static const struct {
        enum status status;
        const char *name;
        int exit_status;
    } rows[] = {
        {STATUS_OK, "ok", 0},
        {STATUS_EXCEPTION, "exception", 1},
        {STATUS_EXIT, "exit", 7},
        {STATUS_REJECTED, "rejected", 126},
        {STATUS_TIMEOUT, "timeout", 124},
        {STATUS_VIOLATION, "violation", 126},
        {STATUS_MEMORY, "memory", 137},
        {STATUS_OUTPUT, "output", 137},
        {STATUS_DISK, "disk", 137},
        {STATUS_PIDS, "pids", 137},
        {STATUS_CRASHED, "crashed", 139},
        {STATUS_FAILED, "failed", 125},
    };
    assert_int_equal(sizeof(rows) / sizeof(*rows), STATUS_COUNT);
    struct outcome o;
    outcome_init(&o);
    assert_int_equal(o.status, STATUS_FAILED);
    o.exit_code = 7;
    o.signal = SIGSEGV;
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        o.status = rows[i].status;
        assert_string_equal(status_name(o.status), rows[i].name);
        assert_true(strlen(status_meaning(o.status)) > 10);
        assert_int_equal(outcome_exit_status(&o), rows[i].exit_status);
    }
    outcome_done(&o);
}

/* The kernel keeps 8 bits: what is left must never look like success. */
static void
test_exit_codes(void **state)
{
    (void)state;
    static const int codes[][2] = {{1, 1},    {255, 255}, {256, 1},
                                   {-1, 255}, {0, 1},     {300, 44}};
    struct outcome o;
    outcome_init(&o);
    o.status = STATUS_EXIT;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        o.exit_code = codes[i][0];
        assert_int_equal(outcome_exit_status(&o), codes[i][1]);
    }
    outcome_done(&o);
}

static void
test_fail(void **state)
{
    (void)state;
    struct outcome o;
    struct err err;
    outcome_init(&o);
    o.status = STATUS_OK;
    err_set(&err, -ENOMEM, "no memory for a cell");
    outcome_fail(&o, &err);
    assert_int_equal(o.status, STATUS_FAILED);
    assert_string_equal(o.message, "no memory for a cell");
    outcome_done(&o);
}

/* ---- ids ---- */

static void
test_ids(void **state)
{
    (void)state;
    enum { IDS = 200 };
    static struct outcome o;
    char ids[IDS][OUTCOME_ID_BYTES];
    for (size_t i = 0; i < IDS; i++) {
        outcome_init(&o);
        memcpy(ids[i], o.id, sizeof(o.id));
        outcome_done(&o);
        assert_int_equal(strlen(ids[i]), 28);
        assert_memory_equal(ids[i], "r_", 2);
        assert_int_equal(strspn(ids[i] + 2, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(ids[i], ids[j]);
            /* The first ten characters are the time, and never go back. */
            assert_true(memcmp(ids[j] + 2, ids[i] + 2, 10) <= 0);
        }
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    outcome_init(&o);
    assert_true(strcmp(ids[IDS - 1], o.id) < 0);
    outcome_done(&o);
}

/* ---- incidents and layers ---- */

static void
test_incidents_are_counted(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    struct incident act = {
        .rule = "system-call", .layer = "seccomp", .action = "refused", .act = "ptrace"};
    outcome_add_incident(&o, &act);
    outcome_add_incident(&o, &act);
    act.count = 5;
    outcome_add_incident(&o, &act);
    assert_int_equal(o.incidents_n, 1);
    assert_int_equal(o.incidents[0].count, 7);
    snprintf(act.act, sizeof(act.act), "bpf");
    act.count = UINT64_MAX;
    outcome_add_incident(&o, &act);
    outcome_add_incident(&o, &act);
    assert_int_equal(o.incidents_n, 2);
    assert_true(o.incidents[1].count == UINT64_MAX);
    snprintf(act.layer, sizeof(act.layer), "hook");
    outcome_add_incident(&o, &act);
    assert_int_equal(o.incidents_n, 3);
    outcome_done(&o);
}

static void
test_incidents_are_bounded(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    struct incident act = {.rule = "path", .layer = "landlock", .action = "refused"};
    for (int i = 0; i < OUTCOME_INCIDENTS_MAX + 10; i++) {
        snprintf(act.act, sizeof(act.act), "open(/secret/%d)", i);
        outcome_add_incident(&o, &act);
    }
    assert_int_equal(o.incidents_n, OUTCOME_INCIDENTS_MAX);
    assert_int_equal(o.incidents_dropped, 10);
    snprintf(act.act, sizeof(act.act), "open(/secret/0)");
    outcome_add_incident(&o, &act); /* a known one is still counted */
    assert_int_equal(o.incidents[0].count, 2);
    assert_int_equal(o.incidents_dropped, 10);
    outcome_done(&o);
}

static void
test_incident_without_terminator(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    struct incident act = {.action = "refused"};
    memset(act.rule, 'r', sizeof(act.rule));
    memset(act.act, 'a', sizeof(act.act));
    outcome_add_incident(&o, &act);
    assert_int_equal(strlen(o.incidents[0].rule), sizeof(act.rule) - 1);
    assert_int_equal(strlen(o.incidents[0].act), sizeof(act.act) - 1);
    outcome_done(&o);
}

static void
test_layers(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    for (int i = 0; i < OUTCOME_LAYERS_MAX + 3; i++)
        outcome_add_layer(&o, "landlock:%d", i);
    assert_int_equal(o.isolation_n, OUTCOME_LAYERS_MAX);
    assert_string_equal(o.isolation[7], "landlock:7");
    outcome_done(&o);
}

/* ---- streams ---- */

static void
fill(struct stream *s, const char *head, const char *tail, uint64_t dropped)
{
    *s = (struct stream){.dropped_bytes = dropped};
    buf_init(&s->head, STREAM_BYTES);
    buf_init(&s->tail, STREAM_BYTES);
    assert_int_equal(buf_append(&s->head, head, strlen(head)), 0);
    assert_int_equal(buf_append(&s->tail, tail, strlen(tail)), 0);
    s->total_bytes = s->head.n + s->tail.n + dropped;
}

static void
test_stream_text(void **state)
{
    (void)state;
    static const struct {
        const char *head, *tail;
        uint64_t dropped;
        const char *text;
        uint64_t replaced;
        const char *rest;
    } rows[] = {
        {"", "", 0, "", 0, ""},
        {"all\n", "", 0, "all\n", 0, ""},
        {"all\n", "of it\n", 0, "all\nof it\n", 0, "of it\n"},
        /* A character over the seam of head and tail is whole while nothing is missing.
         */
        {"\xE2\x82", "\xAC", 0, "\xE2\x82\xAC", 0, "\xAC"},
        {"a\xE2\x82", "", 0, "a\xEF\xBF\xBD", 1, ""},
        {"head\n", "tail\n", 9, "head\n[adyton: 9 bytes of output dropped here]\ntail\n",
         0, "[adyton: 9 bytes of output dropped here]\ntail\n"},
        {"head", "tail", 9, "head\n[adyton: 9 bytes of output dropped here]\ntail", 0,
         "\n[adyton: 9 bytes of output dropped here]\ntail"},
        /* The cut goes through a character on both sides: its bytes count as missing. */
        {"h\xE2\x82", "\x82\xACt", 9, "h\n[adyton: 13 bytes of output dropped here]\nt",
         0, "\n[adyton: 11 bytes of output dropped here]\nt"},
        {"h\xFF", "\xC0t", 1,
         "h\xEF\xBF\xBD\n[adyton: 1 bytes of output dropped here]\n"
         "\xEF\xBF\xBDt",
         2, "\n[adyton: 1 bytes of output dropped here]\n\xC0t"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stream s;
        struct buf text, rest;
        uint64_t replaced = 99;
        fill(&s, rows[i].head, rows[i].tail, rows[i].dropped);
        buf_init(&text, STREAM_BYTES);
        buf_init(&rest, STREAM_BYTES);
        assert_int_equal(stream_text(&s, &text, &replaced), 0);
        assert_int_equal(stream_rest(&s, &rest), 0);
        assert_string_equal(text.p ? text.p : "", rows[i].text);
        assert_string_equal(rest.p ? rest.p : "", rows[i].rest);
        assert_int_equal(replaced, rows[i].replaced);
        assert_int_equal(stream_is_truncated(&s), rows[i].dropped > 0);
        buf_done(&text);
        buf_done(&rest);
        buf_done(&s.head);
        buf_done(&s.tail);
    }
}

static void
test_stream_text_into_a_small_buffer(void **state)
{
    (void)state;
    struct stream s;
    struct buf text;
    uint64_t replaced = 99;
    fill(&s, "head", "tail", 9);
    buf_init(&text, 8);
    assert_int_equal(stream_text(&s, &text, &replaced), -ENOSPC);
    assert_int_equal(replaced, 99); /* written on success only */
    buf_done(&text);
    buf_done(&s.head);
    buf_done(&s.tail);
}

/* ---- JSON ---- */

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
        "results",   "error",     "findings",      "incidents",       "files",
        "usage",     "limits",    "isolation",     "engine",
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
        cmocka_unit_test(test_file_names),
        cmocka_unit_test(test_file_name_lengths),
        cmocka_unit_test(test_file_count),
        cmocka_unit_test(test_script_name),
        cmocka_unit_test(test_args),
        cmocka_unit_test(test_status_table),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_incidents_are_counted),
        cmocka_unit_test(test_incidents_are_bounded),
        cmocka_unit_test(test_incident_without_terminator),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_stream_text),
        cmocka_unit_test(test_stream_text_into_a_small_buffer),
        cmocka_unit_test(test_json_keys_and_order),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_fields_without_terminator),
        cmocka_unit_test(test_json_layout),
        cmocka_unit_test(test_json_over_hostile_bytes),
        cmocka_unit_test(test_json_base64_and_paths),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
