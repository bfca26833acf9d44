/* Frames and requests: every split, hostile lengths, depth, numbers of values, fields. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/protocol.h"

enum { OUT_BYTES = 1 << 20 };

static struct span
frame_of(struct buf *out, const char *text)
{
    size_t at;
    assert_int_equal(protocol_begin(out, &at), 0);
    assert_int_equal(protocol_end(out, at, buf_append(out, text, strlen(text))), 0);
    return buf_span(out);
}

static void
test_frames_at_every_split(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{\"adyton\":1}", "{\"type\":\"ping\"}"};
    AUTO_BUF struct buf out;
    buf_init(&out, OUT_BYTES);
    for (size_t i = 0; i < 3; i++)
        frame_of(&out, texts[i]);
    /* Two pieces, cut anywhere: the same three frames come out. */
    for (size_t cut = 0; cut <= out.n; cut++) {
        size_t at = 0, seen = 0;
        for (size_t end = cut;; end = out.n) {
            struct span payload;
            struct err err;
            int r;
            while ((r = protocol_frame((struct span){out.p + at, end - at}, 64, &payload,
                                       &err)) == 1) {
                assert_int_equal(payload.n, strlen(texts[seen]));
                assert_memory_equal(payload.p, texts[seen], payload.n);
                at += PROTOCOL_HEADER_BYTES + payload.n;
                seen++;
            }
            assert_int_equal(r, 0);
            size_t left = end - at;
            assert_int_equal(payload.n,
                             left >= PROTOCOL_HEADER_BYTES ? strlen(texts[seen]) : 0);
            if (end == out.n)
                break;
        }
        assert_int_equal(seen, 3);
        assert_int_equal(at, out.n);
    }
}

static void
test_hostile_lengths(void **state)
{
    (void)state;
    struct span payload;
    struct err err;
    const struct {
        const char bytes[5];
        int wanted;
    } rows[] = {
        {{0, 0, 0, 0}, -EBADMSG},
        {{(char)0xff, (char)0xff, (char)0xff, (char)0xff}, -EMSGSIZE},
        {{(char)0x80, 0, 0, 0}, -EMSGSIZE},
        {{0, 0, 1, 1}, -EMSGSIZE},
        {{0, 0, 1, 0}, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        err = (struct err){0};
        struct span header = {rows[i].bytes, PROTOCOL_HEADER_BYTES};
        assert_int_equal(protocol_frame(header, 256, &payload, &err), rows[i].wanted);
        assert_int_equal(err.code, rows[i].wanted);
    }
}

static void
test_a_failed_frame_leaves_no_trace(void **state)
{
    (void)state;
    size_t at;
    AUTO_BUF struct buf out;
    buf_init(&out, OUT_BYTES);
    frame_of(&out, "{}");
    size_t before = out.n;
    assert_int_equal(protocol_begin(&out, &at), 0);
    assert_int_equal(buf_append(&out, "half", 4), 0);
    assert_int_equal(protocol_end(&out, at, -ENOSPC), -ENOSPC);
    assert_int_equal(out.n, before);
}

/* ---- JSON ---- */

static int
load(const char *text, size_t marks, struct err *err)
{
    json_t *root = NULL;
    int r = protocol_load(span_of(text), marks, &root, err);
    json_decref(root);
    return r;
}

static void
test_depth_and_numbers_of_values(void **state)
{
    (void)state;
    struct err err;
    char text[4 * PROTOCOL_DEPTH_MAX + 16];
    for (size_t depth = PROTOCOL_DEPTH_MAX - 1; depth <= PROTOCOL_DEPTH_MAX + 1;
         depth++) {
        char *p = text;
        p += snprintf(p, 8, "{\"a\":");
        memset(p, '[', depth - 1);
        memset(p + depth - 1, ']', depth - 1);
        snprintf(p + 2 * (depth - 1), 8, "}");
        assert_int_equal(load(text, 1000, &err),
                         depth <= PROTOCOL_DEPTH_MAX ? 0 : -EBADMSG);
    }
    assert_int_equal(load("{\"a\":[1,2,3]}", 5, &err), 0);
    assert_int_equal(load("{\"a\":[1,2,3]}", 4, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "too many"));
    /* What stands in a string counts for nothing, whatever is escaped in it. */
    assert_int_equal(load("{\"a\":\"[[[[,,,,::::\\\"]]]{{{\\\\\"}", 2, &err), 0);
    assert_int_equal(load("{\"a\":\"\\\\\\\"[[[\"}", 2, &err), 0);
}

static void
test_what_is_no_object_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "1",
        "null",
        "{",
        "{\"a\":\"b",
        "{\"a\":1}x",
        "{'a':1}",
        "{\"a\":1,\"a\":2}",
        "{\"a\":\"\xff\"}",
        "\xef\xbb\xbf{}",
        "{\"a\":\"\\\"}",
        "}{",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct err err = {0};
        assert_int_equal(load(texts[i], 100, &err), -EBADMSG);
        assert_int_equal(err.code, -EBADMSG);
    }
}

/* ---- writing ---- */

static void
test_text_survives(void **state)
{
    (void)state;
    char all[256 + 16];
    size_t n = 0;
    for (int c = 0; c < 0x80; c++)
        all[n++] = (char)c;
    n += (size_t)snprintf(all + n, 16, "é€𝄞");
    AUTO_BUF struct buf out;
    buf_init(&out, OUT_BYTES);
    assert_int_equal(buf_append(&out, "{", 1), 0);
    assert_int_equal(protocol_put_data(&out, "data", (struct span){all, n}), 0);
    assert_int_equal(buf_append(&out, "}", 1), 0);
    json_t *root;
    struct err err;
    assert_int_equal(protocol_load(buf_span(&out), 100, &root, &err), 0);
    const json_t *data = json_object_get(root, "data");
    assert_int_equal(json_string_length(data), n);
    assert_memory_equal(json_string_value(data), all, n);
    json_decref(root);
}

static void
test_bytes_survive(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80z",
                                        "\x80"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        AUTO_BUF struct buf out, back;
        buf_init(&out, OUT_BYTES);
        buf_init(&back, OUT_BYTES);
        assert_int_equal(protocol_put_text(&out, span_of(texts[i])), -EILSEQ);
        assert_int_equal(out.n, 0);
        assert_int_equal(buf_append(&out, "{", 1), 0);
        assert_int_equal(protocol_put_data(&out, "data", span_of(texts[i])), 0);
        assert_int_equal(buf_append(&out, "}", 1), 0);
        assert_non_null(strstr(out.p, "data_base64"));
        json_t *root;
        struct err err;
        bool given;
        assert_int_equal(protocol_load(buf_span(&out), 100, &root, &err), 0);
        assert_int_equal(protocol_get_data(root, "data", &back, &given, &err), 0);
        assert_true(given);
        assert_string_equal(back.p, texts[i]);
        json_decref(root);
    }
}

/* ---- requests ---- */

static int
parse(const char *text, struct protocol_request *request, struct err *err)
{
    *err = (struct err){0};
    return protocol_request_parse(span_of(text), request, err);
}

static void
test_a_whole_run(void **state)
{
    (void)state;
    struct protocol_request q;
    struct err err;
    assert_int_equal(
        parse("{\"type\":\"run\",\"id\":\"a.b_c:d-1\",\"policy\":\"strict\","
              "\"limits\":{\"timeout\":\"2s\",\"memory\":\"64M\"},\"code\":\"print(1)\","
              "\"name\":\"x.py\",\"args\":[\"a\",\"\"],\"stdin_base64\":\"/wA=\","
              "\"files\":[{\"name\":\"d/a\",\"data\":\"1\"},"
              "{\"name\":\"b\",\"data_base64\":\"AAE=\"}],"
              "\"data\":[{\"path\":\"/srv\"},{\"path\":\"/b/../c\",\"name\":\"é\"}],"
              "\"workspace\":\"w\","
              "\"python\":\"/usr/bin/python3\",\"collect\":true,\"stream\":true}",
              &q, &err),
        0);
    const struct job *job = &q.run->job;
    assert_int_equal(q.kind, PROTOCOL_RUN);
    assert_string_equal(q.id, "a.b_c:d-1");
    assert_string_equal(q.run->policy, "strict");
    assert_string_equal(q.run->python, "/usr/bin/python3");
    assert_int_equal(q.run->limits_n, 2);
    assert_string_equal(job->code.p, "print(1)");
    assert_string_equal(job->name, "x.py");
    assert_int_equal(job->args_n, 2);
    assert_true(job->has_stdin);
    assert_int_equal(job->stdin_bytes.n, 2);
    assert_memory_equal(job->stdin_bytes.p, "\xff\0", 2);
    assert_int_equal(job->files_n, 2);
    assert_string_equal(job->files[0].name, "d/a");
    assert_memory_equal(job->files[1].data.p, "\0\1", 2);
    assert_int_equal(q.run->data_n, 2);
    assert_string_equal(q.run->data[0].path, "/srv");
    assert_string_equal(q.run->data[0].name, "");
    assert_string_equal(q.run->data[1].name, "é");
    assert_int_equal(job->folders.n, 0); /* nobody has allowed any yet */
    assert_string_equal(q.run->workspace, "w");
    assert_true(job->collect && q.run->stream);
    protocol_request_done(&q);
}

static void
test_a_small_run(void **state)
{
    (void)state;
    struct protocol_request q;
    struct err err;
    assert_int_equal(
        parse("{\"type\":\"run\",\"id\":\"1\",\"code\":\"\\u0000\"}", &q, &err), 0);
    assert_string_equal(q.run->policy, policy_default);
    assert_string_equal(q.run->python, "");
    assert_int_equal(q.run->job.code.n, 1);
    assert_false(q.run->job.has_stdin || q.run->job.collect || q.run->stream);
    protocol_request_done(&q);
    /* An empty stdin is one, too. */
    assert_int_equal(
        parse("{\"type\":\"run\",\"id\":\"1\",\"code\":\"\",\"stdin\":\"\"}", &q, &err),
        0);
    assert_true(q.run->job.has_stdin);
    protocol_request_done(&q);
}

static void
test_sessions(void **state)
{
    static const struct {
        const char *type;
        enum protocol_kind kind;
        bool has_run;
    } kinds[] = {
        {"session_restart", PROTOCOL_SESSION_RESTART, true},
        {"session_show", PROTOCOL_SESSION_SHOW, false},
        {"session_interrupt", PROTOCOL_SESSION_INTERRUPT, false},
        {"session_close", PROTOCOL_SESSION_CLOSE, false},
        {"session_get", PROTOCOL_SESSION_GET, false},
        {"session_files", PROTOCOL_SESSION_FILES, false},
    };
    (void)state;
    struct protocol_request q;
    struct err err;
    char text[256];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        snprintf(text, sizeof(text), "{\"type\":\"%s\",\"id\":\"1\",\"session\":\"s_1\"}",
                 kinds[i].type);
        assert_int_equal(parse(text, &q, &err), 0);
        assert_int_equal(q.kind, kinds[i].kind);
        assert_string_equal(q.session, "s_1");
        assert_int_equal(q.run != NULL, kinds[i].has_run);
        protocol_request_done(&q);
        snprintf(text, sizeof(text), "{\"type\":\"%s\",\"id\":\"1\"}", kinds[i].type);
        assert_int_equal(parse(text, &q, &err), -EINVAL);
        assert_non_null(strstr(err.text, "without a 'session'"));
        protocol_request_done(&q);
    }
    assert_int_equal(parse("{\"type\":\"session_new\",\"id\":\"1\",\"policy\":\"strict\","
                           "\"limits\":{\"session_idle\":\"5min\"}}",
                           &q, &err),
                     0);
    assert_string_equal(q.run->policy, "strict");
    assert_int_equal(q.run->limits_n, 1);
    protocol_request_done(&q);
}

#define OF_S "\"id\":\"7\",\"session\":\"s\","

static void
test_session_files(void **state)
{
    (void)state;
    struct protocol_request q;
    struct err err;
    assert_int_equal(
        parse("{\"type\":\"session_put\"," OF_S "\"files\":[{\"name\":\"main.py\","
              "\"data\":\"1\"},{\"name\":\"d\\nd/b\",\"data_base64\":\"AAE=\"}]}",
              &q, &err),
        0);
    assert_int_equal(q.kind, PROTOCOL_SESSION_PUT);
    assert_int_equal(q.run->job.files_n, 2);
    assert_string_equal(q.run->job.files[0].name, "main.py");
    assert_string_equal(q.run->job.files[1].name, "d\nd/b");
    assert_memory_equal(q.run->job.files[1].data.p, "\0\1", 2);
    protocol_request_done(&q);
    assert_int_equal(
        parse("{\"type\":\"session_get\"," OF_S "\"name\":\"d/\u00e9\"}", &q, &err), 0);
    assert_string_equal(q.path, "d/\xc3\xa9");
    protocol_request_done(&q);
    assert_int_equal(
        parse("{\"type\":\"session_get\"," OF_S "\"name_base64\":\"/wo=\"}", &q, &err),
        0);
    assert_string_equal(q.path, "\xff\n");
    protocol_request_done(&q);
}

/* A question about code is no run: it must not be taken for one. */
static void
test_session_complete(void **state)
{
    (void)state;
    struct protocol_request q;
    struct err err;
    assert_int_equal(parse("{\"type\":\"session_complete\"," OF_S
                           "\"code\":\"x.a\",\"cursor\":2}",
                           &q, &err),
                     0);
    assert_int_equal(q.kind, PROTOCOL_SESSION_COMPLETE);
    assert_true(q.run->job.completes);
    assert_true(q.run->has_cursor);
    assert_int_equal(q.run->cursor, 2);
    assert_int_equal(q.run->job.code.n, 3);
    protocol_request_done(&q);
    assert_int_equal(parse("{\"type\":\"session_complete\"," OF_S
                           "\"code_base64\":\"eAo=\"}",
                           &q, &err),
                     0);
    assert_true(q.run->job.completes);
    assert_false(q.run->has_cursor);
    protocol_request_done(&q);
}

#define RUN "{\"type\":\"run\",\"id\":\"7\",\"code\":\"\","

/* The request, what must be said of it, and whether it can be told under its id. */
static const struct {
    const char *text;
    const char *says;
    bool has_id;
} wrong[] = {
    {RUN "\"session\":1}", "'session' is not a string", true},
    {"{\"type\":\"session_put\"," OF_S "\"files\":[]}", "without 'files'", true},
    {"{\"type\":\"session_put\"," OF_S "\"files\":[{\"name\":\"../a\",\"data\":\"\"}]}",
     "not a plain path", true},
    {"{\"type\":\"session_put\"," OF_S "\"code\":\"\"}", "unknown field 'code'", true},
    {"{\"type\":\"session_get\"," OF_S "\"name\":\"\"}", "'name' is empty", true},
    {"{\"type\":\"session_get\"," OF_S "\"name\":\"a\\u0000b\"}", "a NUL in it", true},
    {"{\"type\":\"session_get\"," OF_S "\"name\":\"a\",\"name_base64\":\"YQ==\"}",
     "both given", true},
    {"{\"type\":\"session_complete\"," OF_S "\"cursor\":-1}", "'cursor' is not", true},
    {"{\"type\":\"session_complete\"," OF_S "\"cursor\":1.5}", "'cursor' is not", true},
    {"{\"type\":\"session_complete\"," OF_S "\"stream\":true}", "'stream'", true},
    {"{\"type\":\"session_complete\",\"id\":\"7\",\"code\":\"\"}", "a 'session'", true},
    {"{\"type\":\"session_files\"," OF_S "\"name\":\"a\"}", "unknown field 'name'", true},
    {RUN "\"session\":\"s\",\"policy\":\"open\"}", "no 'policy' of its own", true},
    {RUN "\"session\":\"s\",\"data\":[]}", "no 'data' of its own", true},
    {RUN "\"session\":\"s\",\"collect\":true}", "no 'collect' of its own", true},
    {RUN "\"colour\":1}", "unknown field 'colour'", true},
    {RUN "\"\\u001b[2J\":1}", "unknown field '?[2J'", true},
    {RUN "\"limits\":{\"memry\":\"1\"}}", "unknown field 'memry'", true},
    {RUN "\"limits\":{\"isolation\":\"landlock\"}}", "not a job's", true},
    {RUN "\"limits\":{\"read_paths\":\"/etc\"}}", "not a job's", true},
    {RUN "\"limits\":{\"cgroup\":\"optional\"}}", "not a job's", true},
    {RUN "\"limits\":{\"memory\":64}}", "'memory' is not a string", true},
    {RUN "\"limits\":[]}", "'limits' is not an object", true},
    {RUN "\"policy\":1}", "'policy' is not a string", true},
    {RUN "\"policy\":\"a\\u0000b\"}", "'policy' has a NUL", true},
    {RUN "\"python\":\"python3\"}", "not an absolute path", true},
    {RUN "\"code_base64\":\"\"}", "both given", true},
    {RUN "\"stdin\":7}", "'stdin' is not a string", true},
    {RUN "\"stdin_base64\":\"?\"}", "not base64", true},
    {RUN "\"args\":\"a\"}", "'args' is not an array", true},
    {RUN "\"args\":[1]}", "'args' is not a string", true},
    {RUN "\"name\":\"../x\"}", "not a plain file name", true},
    {RUN "\"files\":[{\"name\":\"../x\",\"data\":\"\"}]}", "not a plain path", true},
    {RUN "\"files\":[{\"name\":\"/x\",\"data\":\"\"}]}", "not a plain path", true},
    {RUN "\"files\":[{\"name\":\"x\",\"data\":\"\"},{\"name\":\"x\",\"data\":\"\"}]}",
     "two files", true},
    {RUN "\"files\":[{\"name\":\"x\"}]}", "'files'", true},
    {RUN "\"files\":[{\"name\":\"x\",\"data\":\"\",\"mode\":\"\"}]}", "'files'", true},
    {RUN "\"files\":[1]}", "'files'", true},
    {RUN "\"data\":{}}", "'data' is not an array", true},
    {RUN "\"data\":[1]}", "other than {path, name}", true},
    {RUN "\"data\":[{\"name\":\"x\"}]}", "other than {path, name}", true},
    {RUN "\"data\":[{\"path\":\"/x\",\"mode\":\"rw\"}]}", "other than", true},
    {RUN "\"data\":[{\"path\":\"x\"}]}", "not absolute", true},
    {RUN "\"data\":[{\"path\":\"/a\\u0000b\"}]}", "NUL", true},
    {RUN "\"data\":[{\"path\":\"/x\",\"name\":\"\"}]}", "is empty", true},
    {RUN "\"workspace\":\"\"}", "an empty name", true},
    {RUN "\"workspace\":1}", "'workspace' is not a string", true},
    {RUN "\"collect\":1}", "'collect' is not true or false", true},
    {"{\"type\":\"run\",\"id\":\"7\"}", "without 'code'", true},
    {"{\"type\":\"run\",\"code\":\"\"}", "without an 'id'", false},
    {"{\"type\":\"run\",\"code\":\"\",\"id\":\"\"}", "'id'", false},
    {"{\"type\":\"run\",\"code\":\"\",\"id\":\"a\\\"b\"}", "'id'", false},
    {"{\"type\":\"run\",\"code\":\"\",\"id\":7}", "'id'", false},
    {"{\"type\":\"fly\",\"id\":\"7\"}", "'fly'", true},
    {"{\"id\":\"7\"}", "without a 'type'", true},
    {"{\"type\":\"ping\",\"id\":\"7\"}", "unknown field 'id'", true},
    {"{\"type\":\"cancel\"}", "without an 'id'", false},
    {"{\"type\":\"status\",\"x\":1}", "unknown field 'x'", false},
    {"{\"adyton\":1,\"x\":1}", "unknown field 'x'", false},
};

static void
test_wrong_requests_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct protocol_request q;
        struct err err;
        int r = parse(wrong[i].text, &q, &err);
        if (r != -EINVAL || !strstr(err.text, wrong[i].says))
            fail_msg("%s gave %d, %s", wrong[i].text, r, err.text);
        assert_string_equal(q.id, wrong[i].has_id ? "7" : "");
        protocol_request_done(&q);
    }
}

static void
test_hello(void **state)
{
    (void)state;
    struct protocol_request q;
    struct err err;
    assert_int_equal(parse("{\"adyton\":1}", &q, &err), 0);
    assert_int_equal(q.kind, PROTOCOL_HELLO);
    assert_int_equal(parse("{\"adyton\":2}", &q, &err), -EPROTONOSUPPORT);
    assert_int_equal(parse("{\"adyton\":\"1\"}", &q, &err), -EBADMSG);
}

static void
test_long_ids_and_many_args(void **state)
{
    (void)state;
    struct protocol_request q;
    struct err err;
    char text[16 * 1024], id[PROTOCOL_ID_BYTES + 1];
    for (size_t n = PROTOCOL_ID_BYTES - 1; n <= PROTOCOL_ID_BYTES; n++) {
        memset(id, 'x', n);
        id[n] = '\0';
        snprintf(text, sizeof(text), "{\"type\":\"cancel\",\"id\":\"%s\"}", id);
        assert_int_equal(parse(text, &q, &err), n < PROTOCOL_ID_BYTES ? 0 : -EINVAL);
    }
    size_t at = (size_t)snprintf(text, sizeof(text), RUN "\"args\":[\"\"");
    for (size_t i = 0; i < JOB_ARGS_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, ",\"\"");
    snprintf(text + at, sizeof(text) - at, "]}");
    assert_int_equal(parse(text, &q, &err), -EINVAL);
    protocol_request_done(&q);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_at_every_split),
        cmocka_unit_test(test_hostile_lengths),
        cmocka_unit_test(test_a_failed_frame_leaves_no_trace),
        cmocka_unit_test(test_depth_and_numbers_of_values),
        cmocka_unit_test(test_what_is_no_object_is_refused),
        cmocka_unit_test(test_text_survives),
        cmocka_unit_test(test_bytes_survive),
        cmocka_unit_test(test_a_whole_run),
        cmocka_unit_test(test_a_small_run),
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_session_files),
        cmocka_unit_test(test_session_complete),
        cmocka_unit_test(test_wrong_requests_are_told),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_long_ids_and_many_args),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
