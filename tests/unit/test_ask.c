/* What a model says, cut into events, answers and code. Nothing here asks anybody. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ask/extract.h"
#include "ask/form.h"
#include "ask/key.h"
#include "ask/program.h"
#include "ask/sse.h"

/* ---- events ---- */

enum { LOG_BYTES = 4096 };

static int
log_event(void *context, const char *name, struct span data, struct err *err)
{
    (void)err;
    struct buf *log = context;
    return buf_printf(log, "%s<%.*s>", name, (int)data.n, data.p);
}

/* The events of `text` when it comes in pieces of n bytes, as "name<data>name<data>". */
static void
assert_events(const char *text, size_t n, const char *wanted)
{
    AUTO_BUF struct buf log = {0};
    struct err err;
    struct sse sse;
    size_t length = strlen(text);
    buf_init(&log, LOG_BYTES);
    assert_int_equal(buf_append(&log, "", 0), 0);
    sse_init(&sse, log_event, &log);
    for (size_t at = 0; at < length; at += n)
        assert_int_equal(
            sse_feed(&sse, (struct span){text + at, at + n < length ? n : length - at},
                     &err),
            0);
    assert_int_equal(sse_finish(&sse, &err), 0);
    assert_string_equal(log.p, wanted);
    sse_done(&sse);
}

static void
test_events_whatever_the_line_ends_and_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"", ""},
        {"data: a\n\n", "<a>"},
        {"data:a\r\n\r\ndata: b\r\r", "<a><b>"},
        {"\xEF\xBB\xBF"
         "data: a\n\n",
         "<a>"},
        {"data: \xEF\xBB\xBF\n\n", "<\xEF\xBB\xBF>"},
        {": comment\n:\n\nevent: x\ndata: a\ndata\ndata: c\n\n", "x<a\n\nc>"},
        {"event: x\n\ndata: y\n\n", "<y>"},
        {"id: 1\nretry: 5\nunknown: z\ndata:  two\n\n", "< two>"},
        {"data: cut off", "<cut off>"},
        {"data: one\n\ndata: [DONE]\n", "<one><[DONE]>"},
        {"\n\n\r\n\r\r", ""},
        {"data", "<>"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t n = 1; n <= 7; n++)
            assert_events(rows[i].text, n, rows[i].wanted);
}

static void
test_streams_have_bounds(void **state)
{
    (void)state;
    static const char *const lines[] = {"x", "data: x\n"};
    char *block = malloc(1 << 20);
    assert_non_null(block);
    for (size_t k = 0; k < 2; k++) {
        struct buf log = {0};
        struct err err = {0};
        struct sse sse;
        int r = 0;
        size_t n = strlen(lines[k]), fed = 0;
        for (size_t i = 0; i < (1 << 20) / n; i++)
            memcpy(block + i * n, lines[k], n);
        sse_init(&sse, log_event, &log);
        while (r == 0 && fed < SSE_STREAM_BYTES_MAX) {
            r = sse_feed(&sse, (struct span){block, 1 << 20}, &err);
            fed += 1 << 20;
        }
        assert_int_equal(r, -ENOSPC);
        assert_non_null(strstr(err.text, "more than"));
        assert_true(sse.line.n <= SSE_LINE_BYTES_MAX);
        assert_true(sse.data.n <= SSE_DATA_BYTES_MAX);
        sse_done(&sse);
        buf_done(&log);
    }
    free(block);
}

static int
stop(void *context, const char *name, struct span data, struct err *err)
{
    (void)name, (void)data;
    (*(int *)context)++;
    return err_set(err, -ECANCELED, "enough");
}

static void
test_whoever_listens_can_end_it(void **state)
{
    (void)state;
    int seen = 0;
    struct err err;
    struct sse sse;
    sse_init(&sse, stop, &seen);
    assert_int_equal(sse_feed(&sse, span_of("data: a\n\ndata: b\n\n"), &err), -ECANCELED);
    assert_int_equal(seen, 1);
    sse_done(&sse);
}

/* ---- code ---- */

static void
assert_text(const char *text, bool cut, enum extract_kind kind, const char *wanted)
{
    struct extract found;
    struct err err;
    extract_init(&found);
    assert_int_equal(extract_text(span_of(text), cut, &found, &err), 0);
    assert_int_equal(found.kind, kind);
    if (kind == EXTRACT_CODE)
        assert_string_equal(found.code.p, wanted);
    if (kind == EXTRACT_PROBLEM && !strstr(found.problem, wanted))
        assert_string_equal(found.problem, wanted);
    extract_done(&found);
}

static void
test_code_in_fences(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool cut;
        enum extract_kind kind;
        const char *wanted;
    } rows[] = {
        {"no code at all", false, EXTRACT_NOTHING, ""},
        {"", false, EXTRACT_NOTHING, ""},
        {"```python\nx\n```", false, EXTRACT_CODE, "x\n"},
        {"a\n```Python\nx\n```\nb\n```py\ny\n```\n", false, EXTRACT_CODE, "x\ny\n"},
        {"~~~python3 title=\"a\"\nx\n~~~", false, EXTRACT_CODE, "x\n"},
        {"```{.python .numberLines}\nx\n```", false, EXTRACT_CODE, "x\n"},
        {"````python\n```\nx\n```\n````", false, EXTRACT_CODE, "```\nx\n```\n"},
        {"```python\n~~~\n```", false, EXTRACT_CODE, "~~~\n"},
        {"  ```python\n  if x:\n      y\n  ```", false, EXTRACT_CODE, "if x:\n    y\n"},
        {"    ```python\n    x\n    ```", false, EXTRACT_NOTHING, ""},
        {"say ```python x``` and more", false, EXTRACT_NOTHING, ""},
        {"```\nx\n```", false, EXTRACT_CODE, "x\n"},
        {"```\nout\n```\n```python\nx\n```", false, EXTRACT_CODE, "x\n"},
        {"```text\nout\n```", false, EXTRACT_NOTHING, ""},
        {"```python\nx\n```\n```bash\npip\n```", false, EXTRACT_CODE, "x\n"},
        {"```bash\npip install x\n```", false, EXTRACT_PROBLEM, "bash"},
        {"```JavaScript\n1\n```", false, EXTRACT_PROBLEM, "JavaScript"},
        {"```python\nx = 1", false, EXTRACT_CODE, "x = 1"},
        {"```python\nx = 1", true, EXTRACT_PROBLEM, "cut off"},
        {"```python\nx\n```\nand then", true, EXTRACT_CODE, "x\n"},
        {"```python\nx\n```\n```python\ny", true, EXTRACT_PROBLEM, "cut off"},
        {"```python", false, EXTRACT_PROBLEM, "no code"},
        {"```python\n```", false, EXTRACT_PROBLEM, "no code"},
        {"```python\r\nx\r\n```\r\n", false, EXTRACT_CODE, "x\r\n"},
        {"```python\nx\n```python\ny\n```", false, EXTRACT_CODE, "x\n```python\ny\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_text(rows[i].text, rows[i].cut, rows[i].kind, rows[i].wanted);
}

static void
test_too_many_blocks_are_a_problem(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = {0};
    buf_init(&text, 1 << 20);
    for (int i = 0; i <= EXTRACT_BLOCKS_MAX; i++)
        assert_int_equal(buf_printf(&text, "```python\nx\n```\n"), 0);
    assert_text(text.p, false, EXTRACT_PROBLEM, "too many");
}

static void
test_code_in_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool cut;
        enum extract_kind kind;
        const char *wanted;
    } rows[] = {
        {"{\"code\": \"x\"}", false, EXTRACT_CODE, "x"},
        {"{\"code\": \"x\", \"other\": [1]}", false, EXTRACT_CODE, "x"},
        {"\"{\\\"code\\\": \\\"x\\\"}\"", false, EXTRACT_CODE, "x"},
        {"{\"code\": \"```python\\nx\\n```\"}", false, EXTRACT_CODE, "x\n"},
        {"{\"code\": \"```python\\nx\\n```\\n\"}", false, EXTRACT_CODE, "x\n"},
        {"{\"code\": \"s = '''\\n```python\\nx\\n```\\n'''\"}", false, EXTRACT_CODE,
         "s = '''\n```python\nx\n```\n'''"},
        {"{\"code\": \"\"}", false, EXTRACT_PROBLEM, "no text in 'code'"},
        {"{\"code\": 1}", false, EXTRACT_PROBLEM, "no text in 'code'"},
        {"{}", false, EXTRACT_PROBLEM, "no text in 'code'"},
        {"{\"code\": \"x", false, EXTRACT_PROBLEM, "no JSON object"},
        {"{\"code\": \"x", true, EXTRACT_PROBLEM, "cut off"},
        {"print(1)", false, EXTRACT_PROBLEM, "no JSON object"},
        {"", false, EXTRACT_PROBLEM, "no JSON object"},
        {"[\"x\"]", false, EXTRACT_PROBLEM, "no JSON object"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct extract found;
        struct err err;
        extract_init(&found);
        assert_int_equal(
            extract_arguments(span_of(rows[i].text), rows[i].cut, &found, &err), 0);
        assert_int_equal(found.kind, rows[i].kind);
        if (found.kind == EXTRACT_CODE)
            assert_string_equal(found.code.p, rows[i].wanted);
        else
            assert_non_null(strstr(found.problem, rows[i].wanted));
        extract_done(&found);
    }
}

/* ---- answers ---- */

static void
test_ids_are_made_where_they_are_missing_or_twice(void **state)
{
    (void)state;
    static const char answer[] =
        "{\"choices\": [{\"message\": {\"tool_calls\": ["
        "{\"id\": \"call_1\", \"function\": {\"name\": \"a\"}},"
        "{\"id\": \"call_1\", \"function\": {\"name\": \"b\\u0007\"}},"
        "{\"function\": {\"name\": \"c\", \"arguments\": {\"code\": 1}}}, 7]}}]}";
    struct reply reply;
    struct err err;
    unsigned made = 0;
    json_t *root = json_loads(answer, 0, NULL);
    assert_non_null(root);
    reply_init(&reply);
    assert_int_equal(form_openai.take_answer(root, &reply, &err), 0);
    reply_name_calls(&reply, &made);
    assert_int_equal(reply.calls_n, 4);
    assert_string_equal(reply.calls[0].id, "call_1");
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(reply.calls[i].id, reply.calls[k].id);
    assert_string_equal(reply.calls[1].name, "");
    assert_string_equal(reply.calls[2].arguments.p, "{\"code\":1}");
    reply_done(&reply);
    json_decref(root);
}

static void
test_strange_answers_are_no_crash(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{\"choices\": 7}",
        "{\"choices\": []}",
        "{\"choices\": [[]]}",
        "{\"choices\": [{\"message\": []}]}",
        "{\"choices\": [{\"message\": {\"content\": 5, \"tool_calls\": {}}}]}",
        "{\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": -1}]}}]}",
        "{\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": "
        "9223372036854775807}]}}]}",
        "{\"content\": [[], 1, {\"type\": \"tool_use\", \"input\": []}]}",
        "{\"type\": \"content_block_delta\", \"delta\": {\"type\": "
        "\"input_json_delta\"}}",
        "{\"usage\": {\"prompt_tokens\": -5, \"completion_tokens\": 1e300}}",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t k = 0; forms[k]; k++) {
            struct reply reply;
            struct err err;
            json_t *root = json_loads(rows[i], 0, NULL);
            assert_non_null(root);
            reply_init(&reply);
            (void)!forms[k]->take_answer(root, &reply, &err);
            (void)!forms[k]->take_event("", root, &reply, &err);
            assert_true(reply.calls_n <= REPLY_CALLS_MAX);
            assert_true(reply.input_tokens < UINT32_MAX);
            reply_done(&reply);
            json_decref(root);
        }
}

/* ---- the rest ---- */

static void
test_a_program_grows_by_what_is_kept(void **state)
{
    (void)state;
    AUTO_BUF struct buf first = {0}, second = {0};
    struct program program;
    struct err err;
    buf_init(&first, LOG_BYTES);
    buf_init(&second, LOG_BYTES);
    program_init(&program);
    assert_int_equal(program_source(&program, span_of("x = 1"), &first, &err), 0);
    assert_string_equal(first.p, "x = 1");
    assert_int_equal(program_first_line(&program), 1);
    assert_int_equal(program_keep(&program, span_of("x = 1\ny = 2"), &err), 0);
    assert_int_equal(program_source(&program, span_of("z"), &second, &err), 0);
    assert_memory_equal(second.p, "x = 1\ny = 2\nimport sys as _adyton;", 33);
    assert_non_null(strstr(second.p, program.mark));
    assert_int_equal(program_first_line(&program), 4);
    assert_string_equal(second.p + second.n - 2, "z\n");
    program_done(&program);
}

static void
test_a_key_is_hidden_wherever_it_stands(void **state)
{
    (void)state;
    struct buf key = {0}, none = {0};
    char text[] = "sk-abc, and sk-abcsk-abc; sk-ab";
    buf_init(&key, 64);
    assert_int_equal(buf_append(&key, "sk-abc", 6), 0);
    key_hide(&none, text);
    key_hide(&key, text);
    assert_string_equal(text, "******, and ************; sk-ab");
    key_done(&key);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_whatever_the_line_ends_and_pieces),
        cmocka_unit_test(test_streams_have_bounds),
        cmocka_unit_test(test_whoever_listens_can_end_it),
        cmocka_unit_test(test_code_in_fences),
        cmocka_unit_test(test_too_many_blocks_are_a_problem),
        cmocka_unit_test(test_code_in_arguments),
        cmocka_unit_test(test_ids_are_made_where_they_are_missing_or_twice),
        cmocka_unit_test(test_strange_answers_are_no_crash),
        cmocka_unit_test(test_a_program_grows_by_what_is_kept),
        cmocka_unit_test(test_a_key_is_hidden_wherever_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
