/* An outcome as JSON and back: nothing is lost, and nothing else is taken. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/outcome_parse.h"

enum { BYTES = 1 << 24, STREAM_BYTES = 1 << 20 };

static json_t *
document(const struct outcome *o, int flags, struct buf *text)
{
    buf_init(text, BYTES);
    assert_int_equal(outcome_json(o, flags, text), 0);
    json_error_t why;
    json_t *doc =
        json_loadb(text->p, text->n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    assert_non_null(doc);
    return doc;
}

static void
stream_set(struct stream *stream, struct span head, struct span tail, uint64_t dropped)
{
    buf_init(&stream->head, STREAM_BYTES);
    buf_init(&stream->tail, STREAM_BYTES);
    assert_int_equal(buf_append(&stream->head, head.p, head.n), 0);
    assert_int_equal(buf_append(&stream->tail, tail.p, tail.n), 0);
    stream->dropped_bytes = dropped;
    stream->total_bytes = head.n + tail.n + dropped;
}

/* Every field has a value of its own, and streams that text cannot hold. */
static void
fill(struct outcome *o)
{
    outcome_init(o);
    o->status = STATUS_CRASHED;
    o->has_exit_code = true;
    o->exit_code = -3;
    o->signal = SIGSEGV;
    snprintf(o->limit_name, sizeof(o->limit_name), "memory");
    o->limit_value = 12345;
    snprintf(o->message, sizeof(o->message), "ended by \"SIGSEGV\"");
    stream_set(&o->out, (struct span){"a\0b\xff\n", 5}, span_of("t\xc3\xa9"), 99);
    stream_set(&o->err, span_of("plain\n"), span_of("whole"), 0);
    o->has_error = true;
    snprintf(o->error_name, sizeof(o->error_name), "ValueError");
    snprintf(o->error_value, sizeof(o->error_value), "é");
    o->error_line = 7;
    assert_int_equal(buf_append(&o->traceback, "Traceback\n", 10), 0);
    outcome_add_incident(o, &(struct incident){.rule = "system-call",
                                               .layer = "seccomp",
                                               .fact = true,
                                               .action = "refused",
                                               .act = "ptrace",
                                               .reason = "no",
                                               .count = 3,
                                               .line = 4,
                                               .column = 5});
    o->incidents_dropped = 6;
    o->files = calloc(2, sizeof(*o->files));
    o->files_n = 2;
    snprintf(o->files[0].path, sizeof(o->files[0].path), "out.csv");
    snprintf(o->files[1].path, sizeof(o->files[1].path), "b\xff");
    o->files[0].bytes = 120;
    snprintf(o->files[0].mime, sizeof(o->files[0].mime), "text/csv");
    snprintf(o->files[0].sha256, sizeof(o->files[0].sha256), "00ff");
    o->files_skipped = 8;
    snprintf(o->files_note, sizeof(o->files_note), "8 links skipped");
    o->wall_us = 1401;
    o->cpu_us = 999999;
    o->peak_memory_bytes = 1 << 20;
    o->processes = 2;
    o->wall_limit_ms = 5000;
    o->cpu_limit_ms = 4000;
    o->memory_limit_bytes = 268435456;
    outcome_add_layer(o, "seccomp");
    outcome_add_layer(o, "landlock:7");
    snprintf(o->interpreter, sizeof(o->interpreter), "cpython 3.11.2");
    snprintf(o->isolation_name, sizeof(o->isolation_name), "namespaces");
    snprintf(o->start, sizeof(o->start), "warm");
    o->session = SESSION_LOST;
    o->execution_count = 7;
    snprintf(o->session_id, sizeof(o->session_id), "s_1");
    snprintf(o->session_note, sizeof(o->session_note), "it crashed");
}

static void
assert_same(const struct outcome *a, const struct outcome *b, int flags)
{
    AUTO_BUF struct buf one, two;
    json_decref(document(a, flags, &one));
    json_decref(document(b, flags, &two));
    assert_string_equal(one.p, two.p);
}

static void
test_everything_comes_back(void **state)
{
    (void)state;
    struct outcome o, back;
    struct err err;
    AUTO_BUF struct buf text;
    fill(&o);
    json_t *doc = document(&o, OUTCOME_JSON_EXACT | OUTCOME_JSON_COMPACT, &text);
    assert_int_equal(outcome_from_json(doc, &back, &err), 0);
    json_decref(doc);
    assert_same(&o, &back, OUTCOME_JSON_BASE64);
    assert_same(&o, &back, OUTCOME_JSON_EXACT);
    assert_int_equal(back.session, SESSION_LOST);
    assert_int_equal(back.execution_count, 7);
    assert_string_equal(back.session_id, "s_1");
    assert_string_equal(back.session_note, "it crashed");
    /* Where the gap is decides what is printed after the head. */
    assert_int_equal(back.out.head.n, 5);
    assert_memory_equal(back.out.head.p, "a\0b\xff\n", 5);
    assert_string_equal(back.out.tail.p, "t\xc3\xa9");
    assert_int_equal(back.out.total_bytes, 5 + 3 + 99);
    assert_int_equal(outcome_exit_status(&back), outcome_exit_status(&o));
    outcome_done(&o);
    outcome_done(&back);
}

static void
test_an_empty_one_comes_back(void **state)
{
    (void)state;
    struct outcome o, back;
    struct err err;
    AUTO_BUF struct buf text;
    outcome_init(&o);
    json_t *doc = document(&o, OUTCOME_JSON_EXACT, &text);
    assert_null(json_object_get(doc, "kept"));
    assert_int_equal(outcome_from_json(doc, &back, &err), 0);
    json_decref(doc);
    assert_same(&o, &back, 0);
    outcome_done(&o);
    outcome_done(&back);
}

static void
test_every_status_and_signal(void **state)
{
    (void)state;
    for (int i = 0; i < 65; i++) {
        struct outcome o, back;
        struct err err;
        AUTO_BUF struct buf text;
        outcome_init(&o);
        o.status = (enum status)(i % STATUS_COUNT);
        o.signal = i;
        json_t *doc = document(&o, OUTCOME_JSON_EXACT, &text);
        assert_int_equal(outcome_from_json(doc, &back, &err), 0);
        json_decref(doc);
        assert_int_equal(back.status, o.status);
        assert_int_equal(back.signal, i);
        outcome_done(&o);
        outcome_done(&back);
    }
}

/* Each key in turn is left out, or is of a type that it cannot have. */
static void
test_what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const char *const may_lack[] = {
        "kept",    "incidents_dropped", "files_skipped", "files_note", "findings_dropped",
        "session", "session_note"};
    struct outcome o, back;
    struct err err;
    AUTO_BUF struct buf text;
    fill(&o);
    json_t *doc = document(&o, OUTCOME_JSON_EXACT, &text);
    for (void *at = json_object_iter(doc); at; at = json_object_iter_next(doc, at)) {
        const char *name = json_object_iter_key(at);
        bool needed = true;
        for (size_t i = 0; i < sizeof(may_lack) / sizeof(*may_lack); i++)
            needed = needed && strcmp(name, may_lack[i]) != 0;
        json_t *copy = json_deep_copy(doc);
        json_object_set_new(copy, name, json_true());
        err = (struct err){0};
        if (outcome_from_json(copy, &back, &err) != -EINVAL || !strstr(err.text, name))
            fail_msg("'%s': true is taken: %s", name, err.text);
        json_object_del(copy, name);
        if (needed)
            assert_int_equal(outcome_from_json(copy, &back, &err), -EINVAL);
        json_decref(copy);
    }
    json_object_set_new(doc, "mood", json_string("fine"));
    assert_int_equal(outcome_from_json(doc, &back, &err), -EINVAL);
    json_decref(doc);
    outcome_done(&o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_comes_back),
        cmocka_unit_test(test_an_empty_one_comes_back),
        cmocka_unit_test(test_every_status_and_signal),
        cmocka_unit_test(test_what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
