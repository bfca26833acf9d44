/* The core of the MCP server without a supervisor: which era answers what, and that whatever comes of
 * a call has the form that the tool's schema promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "job/outcome.h"
#include "mcp/mcp_parts.h"

static struct {
    struct event_base *base;
    struct mcp *mcp;
    json_t *said; /* the last message */
    size_t said_n;
} at;

static void
hear(void *context, struct span message)
{
    (void)context;
    json_decref(at.said);
    at.said = json_loadb(message.p, message.n, 0, NULL);
    at.said_n++;
    assert_non_null(at.said);
}

static int
set_up(void **state)
{
    (void)state;
    struct err err;
    at.base = event_base_new();
    const struct mcp_options options = {
        .base = at.base, .client = {.socket = "/nonexistent/socket"}, .send = hear};
    return at.base ? mcp_new(&options, &at.mcp, &err) : -1;
}

static int
tear_down(void **state)
{
    (void)state;
    mcp_free(at.mcp);
    event_base_free(at.base);
    json_decref(at.said);
    memset(&at, 0, sizeof(at));
    return 0;
}

/* What is said to a message, or NULL. Borrowed. */
static const json_t *
ask(const char *text)
{
    size_t before = at.said_n;
    mcp_take(at.mcp, span_of(text));
    assert_true(at.said_n <= before + 1);
    return at.said_n > before ? at.said : NULL;
}

/* --- a schema, as far as ours say anything --- */

static bool
is_of_type(const json_t *value, const char *type)
{
    return strcmp(type, "string") == 0    ? json_is_string(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "integer") == 0 ? json_is_integer(value)
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
                                          : json_is_object(value);
}

static bool
fits(const json_t *value, const json_t *schema)
{
    size_t i;
    const char *name;
    const json_t *one, *properties = json_object_get(schema, "properties");
    const json_t *named = json_object_get(schema, "enum");
    bool found = named == NULL;
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (!type || !is_of_type(value, type))
        return false;
    json_array_foreach(named, i, one) found |= json_equal(one, value);
    json_array_foreach(json_object_get(schema, "required"), i, one) found &=
        json_object_get(value, json_string_value(one)) != NULL;
    json_object_foreach((json_t *)(uintptr_t)properties, name, one)
    {
        const json_t *member = json_object_get(value, name);
        found &= !member || fits(member, one);
    }
    json_array_foreach(value, i, one) if (json_object_get(schema, "items")) found &=
        fits(one, json_object_get(schema, "items"));
    return found;
}

static json_t *
schema_of(const char *tool)
{
    size_t i;
    const json_t *one;
    json_t *list = tools_list(), *schema = NULL;
    json_array_foreach(
        list, i, one) if (strcmp(json_string_value(json_object_get(one, "name")), tool) ==
                          0) schema = json_incref(json_object_get(one, "outputSchema"));
    json_decref(list);
    assert_non_null(schema);
    return schema;
}

static void
the_validator_of_this_test_finds_misfits(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "[]",
        "{\"session_id\":1,\"status\":\"ok\",\"stdout\":\"\",\"stderr\":\"\"}",
        "{\"session_id\":\"\",\"status\":\"odd\",\"stdout\":\"\",\"stderr\":\"\"}",
        "{\"session_id\":\"\",\"status\":\"ok\",\"stdout\":\"\",\"stderr\":\"\","
        "\"error\":{\"name\":\"x\"}}",
        "{\"session_id\":\"\",\"status\":\"ok\",\"stdout\":\"\",\"stderr\":\"\","
        "\"results\":[1]}"};
    json_t *schema = schema_of("execute_python");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        json_t *value = json_loads(wrong[i], 0, NULL);
        assert_false(fits(value, schema));
        json_decref(value);
    }
    json_decref(schema);
}

/* --- requests --- */

#define META(version)                                                                    \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version                  \
    "\",\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define REQUEST(method, params)                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

static void
each_request_is_answered_in_its_own_era(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code; /* 0: a result */
        bool modern;
    } rows[] = {
        {REQUEST("ping", ""), 0, false},
        {REQUEST("ping", META("2026-07-28")), RPC_METHOD, false},
        {REQUEST("tools/list", ""), 0, false},
        {REQUEST("tools/list", META("2026-07-28")), 0, true},
        {REQUEST("tools/list", META("2026-01-01")), RPC_VERSION, false},
        {REQUEST("server/discover", META("2026-07-28")), 0, true},
        {REQUEST("server/discover", ""), RPC_PARAMS, false},
        {REQUEST("initialize", "\"protocolVersion\":\"2025-11-25\""), 0, false},
        {REQUEST("initialize", META("2026-07-28")), RPC_METHOD, false},
        {REQUEST("resources/subscribe", ""), RPC_METHOD, false},
        {REQUEST("resources/list", ""), 0, false},
        {REQUEST("resources/list", META("2026-07-28")), 0, true},
        {REQUEST("resources/templates/list", META("2026-07-28")), 0, true},
        {REQUEST("resources/read", ""), RPC_PARAMS, false},
        {REQUEST("resources/read", "\"uri\":\"file:///etc/passwd\""), RPC_NO_RESOURCE,
         false},
        {REQUEST("resources/read", "\"uri\":\"x\"," META("2026-07-28")), RPC_PARAMS,
         false},
        {REQUEST("resources/read", "\"uri\":\"adyton://s_1/a\""), RPC_INTERNAL, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const json_t *answer = ask(rows[i].text);
        const json_t *result = json_object_get(answer, "result");
        const json_t *code = json_object_get(json_object_get(answer, "error"), "code");
        assert_int_equal(json_integer_value(code), rows[i].code);
        assert_int_equal(json_object_get(result, "resultType") != NULL, rows[i].modern);
        assert_int_equal(json_integer_value(json_object_get(answer, "id")), 1);
    }
}

/* --- forms --- */

static void
assert_failed_in_form(const json_t *answer, const char *tool, const char *code)
{
    const json_t *result = json_object_get(answer, "result");
    const json_t *form = json_object_get(result, "structuredContent");
    const json_t *block = json_array_get(json_object_get(result, "content"), 0);
    const json_t *error = json_object_get(form, "error");
    json_t *schema = schema_of(tool);
    assert_true(json_is_true(json_object_get(result, "isError")));
    assert_true(fits(form, schema));
    assert_string_equal(json_string_value(json_object_get(error, "name")), code);
    assert_true(
        json_equal(json_object_get(error, "value"), json_object_get(block, "text")));
    json_decref(schema);
}

static const json_t *
call(const char *tool, json_t *arguments)
{
    json_t *request =
        json_pack("{s:s, s:i, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "id", 1, "method",
                  "tools/call", "params", "name", tool, "arguments", arguments);
    AUTO_FREE char *text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    assert_non_null(text);
    return ask(text);
}

static json_t *
all_arguments(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "code", "1", "session_id",
                     "s_00000000000000000000000000000000", "path", "a b.txt", "data",
                     "x");
}

/* Those that the tool takes. */
static json_t *
good_arguments(const struct tool *tool)
{
    json_t *all = all_arguments(), *some = json_object();
    for (const struct tool_field *field = tool->fields; field->name; field++) {
        json_t *value = json_object_get(all, field->name);
        if (value)
            (void)json_object_set(some, field->name, value);
    }
    json_decref(all);
    return some;
}

static void
what_fails_has_the_form_of_its_tool(void **state)
{
    (void)state;
    for (size_t i = 0; i < tools_n; i++) {
        const char *name = tools[i].name;
        json_t *extra = good_arguments(&tools[i]);
        (void)json_object_set_new(extra, "no_such", json_true());
        assert_failed_in_form(call(name, json_object()), name, "arguments");
        assert_failed_in_form(call(name, extra), name, "arguments");
        assert_failed_in_form(call(name, good_arguments(&tools[i])), name, "supervisor");
    }
}

static void
what_a_failure_says_again_is_bounded_and_whole(void **state)
{
    (void)state;
    enum { LONG = 100 * 1000 };
    AUTO_FREE char *text = malloc(LONG + 1);
    assert_non_null(text);
    for (size_t i = 0; i < LONG; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[LONG] = '\0';
    json_t *arguments = json_pack("{s:s, s:s}", "session_id", text, "path", text);
    const json_t *answer = call("read_file", arguments);
    AUTO_FREE char *whole = json_dumps(answer, 0);
    assert_true(whole && strlen(whole) < 4096);
    assert_failed_in_form(answer, "read_file", "arguments");
    arguments = json_pack("{s:i}", text, 1);
    assert_failed_in_form(call("read_file", arguments), "read_file", "arguments");
}

static void
an_address_leads_to_its_file_alone(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "adyton://",
        "adyton://s_1",
        "adyton://s_1/",
        "adyton:///a",
        "adyton:/",
        "http://s_1/a",
        "adyton://s_1/%",
        "adyton://s_1/%2",
        "adyton://s_1/%zz",
        "adyton://s_1/%00",
        "adyton://s_1/a%ff",
        "adyton://s_0123456789012345678901234567890123456789/a"};
    json_t *uri = resource_uri("s_1", "d/\xc3\xa4 b?#%.txt");
    assert_string_equal(json_string_value(uri), "adyton://s_1/d/%C3%A4%20b%3F%23%25.txt");
    json_decref(uri);
    json_t *file = json_pack("{s:s, s:s}", "path", "a?b", "path_base64", "Yf9i");
    assert_null(resource_link("s_1", file));
    json_decref(file);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char text[256];
        snprintf(text, sizeof(text), REQUEST("resources/read", "\"uri\":\"%s\""),
                 wrong[i]);
        const json_t *error = json_object_get(ask(text), "error");
        assert_int_equal(json_integer_value(json_object_get(error, "code")),
                         RPC_NO_RESOURCE);
    }
}

static void
a_notification_is_not_answered(void **state)
{
    (void)state;
    assert_null(ask("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":"
                    "{\"name\":\"execute_python\",\"arguments\":{\"code\":\"1\"}}}"));
}

/* --- results --- */

static json_t *
outcome(const char *status, json_t *out, json_t *results)
{
    static const char text[] =
        "{'schema':'adyton.outcome/"
        "1','id':'r_01M8S2TBH3JN7JTA9XBX0Q115V','session_id':null,"
        "'execution_count':1,'exit_code':1,'signal':null,'limit':null,'message':'ended',"
        "'stderr':'','truncated':{'stdout':false,'stderr':false},"
        "'dropped_bytes':{'stdout':0,'stderr':0},'invalid_utf8':{'stdout':0,'stderr':0},"
        "'result':null,'events':[],'error':null,'findings':[],'incidents':[],'files':[],"
        "'usage':{'wall_ms':7.05,'cpu_ms':1.0,'peak_memory_bytes':4931584,'processes':1},"
        "'limits':{'wall_ms':5000,'cpu_ms':5000,'memory_bytes':268435456},'isolation':[],"
        "'engine':{'interpreter':'cpython "
        "3.11.2','isolation':'namespaces','start':'cold'}}";
    char json[sizeof(text)];
    for (size_t i = 0; i < sizeof(text); i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    json_t *root = json_loads(json, 0, NULL);
    assert_non_null(root);
    (void)json_object_set_new(root, "status", json_string(status));
    (void)json_object_set_new(root, "stdout", out);
    (void)json_object_set_new(root, "results", results);
    return root;
}

static void
a_run_has_its_form_whatever_came_of_it(void **state)
{
    (void)state;
    json_t *schema = schema_of("execute_python"), *check = schema_of("check_python");
    for (int i = 0; i < STATUS_COUNT; i++) {
        const char *status = status_name((enum status)i);
        json_t *of = outcome(status, json_string("x\n"), json_array());
        json_t *result = result_of_run("s_1", of), *checked = result_of_check(of);
        assert_true(fits(json_object_get(result, "structuredContent"), schema));
        assert_true(fits(json_object_get(checked, "structuredContent"), check));
        assert_int_equal(json_is_true(json_object_get(result, "isError")),
                         strcmp(status, "ok") != 0);
        json_decref(result);
        json_decref(checked);
        json_decref(of);
    }
    json_decref(schema);
    json_decref(check);
}

static void
long_output_is_cut_between_characters(void **state)
{
    (void)state;
    enum { LONG = 3 * 500 * 1000 };
    AUTO_FREE char *text = malloc(LONG + 2);
    assert_non_null(text);
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 <= LONG; i += 3)
            memcpy(text + i, "\xe2\x82\xac", 3);
        json_t *out = json_stringn(text, LONG - LONG % 3 + shift - (shift ? 3 : 0));
        assert_non_null(out); /* it was UTF-8 */
        json_t *of = outcome("ok", out, json_array());
        json_t *result = result_of_run("s_1", of);
        const json_t *form = json_object_get(result, "structuredContent");
        const char *cut = json_string_value(json_object_get(form, "stdout"));
        assert_true(cut && strlen(cut) < 200 * 1000 && strstr(cut, "bytes omitted"));
        assert_null(strstr(cut, "\xef\xbf\xbd"));
        assert_true(json_is_true(json_object_get(form, "truncated")));
        json_decref(result);
        json_decref(of);
    }
}

static void
images_are_blocks_and_counted(void **state)
{
    (void)state;
    enum { IMAGES = 25, MOST = 20 };
    json_t *results = json_array();
    for (int i = 0; i < IMAGES; i++)
        (void)json_array_append_new(results,
                                    json_pack("{s:s, s:{s:s}}", "type", "display", "data",
                                              "image/png", "iVBORw0KGgo="));
    json_t *of = outcome("ok", json_string(""), results);
    json_t *result = result_of_run("s_1", of);
    const json_t *form = json_object_get(result, "structuredContent");
    assert_int_equal(json_array_size(json_object_get(result, "content")), 1 + MOST);
    assert_int_equal(json_array_size(json_object_get(form, "results")), IMAGES);
    assert_true(json_is_true(json_object_get(form, "truncated")));
    json_decref(result);
    json_decref(of);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_validator_of_this_test_finds_misfits),
        cmocka_unit_test_setup_teardown(each_request_is_answered_in_its_own_era, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_fails_has_the_form_of_its_tool, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_failure_says_again_is_bounded_and_whole,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_address_leads_to_its_file_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_notification_is_not_answered, set_up,
                                        tear_down),
        cmocka_unit_test(a_run_has_its_form_whatever_came_of_it),
        cmocka_unit_test(long_output_is_cut_between_characters),
        cmocka_unit_test(images_are_blocks_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
