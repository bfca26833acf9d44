/*
 * What came of a run, twice: text and images that stand alone, for a model and for hosts that know
 * nothing else; and the structured form that the tool's schema promises, in success and error
 * alike. Both are bounded, so that the whole message stays below what clients take.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask/result.h"
#include "base/utf8.h"
#include "job/outcome_parse.h"
#include "mcp/mcp_parts.h"

enum {
    STREAM_BYTES_MAX = 128 * 1024, /* of each, in the structured form */
    STREAM_TAIL_BYTES = 32 * 1024,
    VALUE_BYTES_MAX = 64 * 1024, /* of one form of one result */
    VALUES_BYTES_MAX = 512 * 1024,
    IMAGES_MAX = 20,
    IMAGES_BYTES_MAX = 3 * 1024 * 1024, /* as base64 */
    NOTE_BYTES = 512,
};

json_t *
result_text_block(const char *text, size_t n, json_t *structured, bool is_error)
{
    uint64_t replaced;
    AUTO_BUF struct buf clean = {0};
    buf_init(&clean, 4 * n + 4);
    json_t *result = NULL;
    if (utf8_append_valid(&clean, (struct span){text, n}, &replaced) == 0)
        result = json_pack("{s:[{s:s, s:o}]}", "content", "type", "text", "text",
                           json_stringn(clean.p ? clean.p : "", clean.n));
    if (result && structured)
        (void)json_object_set(result, "structuredContent", structured);
    if (result && is_error)
        (void)json_object_set_new(result, "isError", json_true());
    json_decref(structured);
    return result;
}

/* --- the structured form --- */

struct budget {
    size_t values, images, image_bytes;
    bool is_cut;
};

static const char *
text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Head and tail of a text that is long; characters stay whole. */
static json_t *
bounded(const json_t *text, size_t most, size_t tail, struct budget *budget)
{
    const char *p = json_string_value(text);
    size_t n = p ? json_string_length(text) : 0;
    AUTO_BUF struct buf out = {0};
    buf_init(&out, most + NOTE_BYTES);
    if (n <= most)
        return json_stringn(p ? p : "", n);
    budget->is_cut = true;
    size_t head = most - tail;
    head -= utf8_unfinished_tail((struct span){p, head});
    const char *rest = p + n - tail;
    while (((unsigned char)*rest & 0xc0) == 0x80)
        rest++;
    size_t rest_n = (size_t)(p + n - rest);
    if (buf_append(&out, p, head) < 0 ||
        buf_printf(&out, "\n[... %zu bytes omitted ...]\n", n - head - rest_n) < 0 ||
        buf_append(&out, rest, rest_n) < 0)
        return json_string("");
    return json_stringn(out.p, out.n);
}

/* One form of a result, where there is room for it. */
static void
take_form(json_t *forms, const char *name, const json_t *value, struct budget *budget)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t n = text ? strlen(text) : 0;
    free(text);
    if (n == 0 || n > VALUE_BYTES_MAX || budget->values + n > VALUES_BYTES_MAX) {
        budget->is_cut = true;
        return;
    }
    budget->values += n;
    (void)json_object_set_new(forms, name, json_deep_copy(value));
}

static json_t *
shown(const json_t *item, struct budget *budget)
{
    static const struct {
        const char *mime, *name;
    } named[] = {{"text/plain", "text"}, {"text/html", "html"}};
    const char *mime;
    const json_t *value;
    json_t *result = json_object(), *other = json_object();
    if (json_is_true(json_object_get(item, "main")))
        (void)json_object_set_new(result, "is_main_result", json_true());
    json_object_foreach(json_object_get(item, "data"), mime, value)
    {
        const char *name = NULL;
        for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
            if (strcmp(named[i].mime, mime) == 0)
                name = named[i].name;
        if (strcmp(mime, "image/png") == 0) /* a block of its own has it */
            (void)json_object_set_new(result, "png", json_true());
        else if (name)
            take_form(result, name, value, budget);
        else if (json_is_object(value) || json_is_array(value))
            take_form(other, mime, value, budget);
    }
    if (json_object_size(other) > 0)
        (void)json_object_set(result, "data", other);
    json_decref(other);
    return result;
}

static json_t *
all_shown(const json_t *outcome, struct budget *budget)
{
    size_t i;
    const json_t *item;
    json_t *list = json_array();
    json_array_foreach(json_object_get(outcome, "results"), i, item)(void)
        json_array_append_new(list, shown(item, budget));
    return list;
}

/* The exception; or what was refused, in the same form. */
static json_t *
error_of(const json_t *outcome, struct budget *budget)
{
    const json_t *error = json_object_get(outcome, "error");
    const json_t *first = json_array_get(json_object_get(outcome, "findings"), 0);
    bool is_rejected = strcmp(text_of(outcome, "status"), "rejected") == 0;
    bool is_syntax = is_rejected && strcmp(text_of(first, "rule"), "syntax-error") == 0;
    if (json_is_object(error))
        return json_pack(
            "{s:s, s:o, s:o}", "name", text_of(error, "name"), "value",
            bounded(json_object_get(error, "value"), VALUE_BYTES_MAX, 0, budget),
            "traceback",
            bounded(json_object_get(error, "traceback"), VALUE_BYTES_MAX,
                    VALUE_BYTES_MAX / 4, budget));
    return json_pack("{s:s, s:s, s:s}", "name",
                     is_syntax     ? "SyntaxError"
                     : is_rejected ? "SecurityError"
                                   : text_of(outcome, "status"),
                     "value",
                     is_syntax ? text_of(first, "message") : text_of(outcome, "message"),
                     "traceback", "");
}

static json_t *
structured_of(const char *session_id, const json_t *outcome, struct budget *budget)
{
    const json_t *usage = json_object_get(outcome, "usage");
    const json_t *cut = json_object_get(outcome, "truncated");
    bool is_ok = strcmp(text_of(outcome, "status"), "ok") == 0;
    budget->is_cut = json_is_true(json_object_get(cut, "stdout")) ||
                     json_is_true(json_object_get(cut, "stderr"));
    json_t *form =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:f}", "session_id", session_id,
                  "status", text_of(outcome, "status"), "stdout",
                  bounded(json_object_get(outcome, "stdout"), STREAM_BYTES_MAX,
                          STREAM_TAIL_BYTES, budget),
                  "stderr",
                  bounded(json_object_get(outcome, "stderr"), STREAM_BYTES_MAX,
                          STREAM_TAIL_BYTES, budget),
                  "results", all_shown(outcome, budget), "execution_count",
                  json_integer_value(json_object_get(outcome, "execution_count")),
                  "duration_ms", json_number_value(json_object_get(usage, "wall_ms")));
    const json_t *value = json_object_get(outcome, "result");
    if (form && json_is_string(value))
        (void)json_object_set_new(form, "result",
                                  bounded(value, VALUE_BYTES_MAX, 0, budget));
    if (form && !is_ok)
        (void)json_object_set_new(form, "error", error_of(outcome, budget));
    const json_t *findings = json_object_get(outcome, "findings");
    if (form && json_array_size(findings) > 0)
        take_form(form, "findings", findings, budget);
    return form;
}

json_t *
output_execute(void)
{
    json_t *statuses = json_array();
    for (int i = 0; i < STATUS_COUNT; i++)
        (void)json_array_append_new(statuses, json_string(status_name((enum status)i)));
    json_t *properties = json_pack(
        "{s:{s:s}, s:{s:s, s:o}, s:{s:s}, s:{s:s}, s:{s:s, s:s}, s:{s:s, s:{s:s}, s:s},"
        " s:{s:s, s:{s:s}}, s:{s:s}, s:{s:s}, s:{s:s}}",
        "session_id", "type", "string", "status", "type", "string", "enum", statuses,
        "stdout", "type", "string", "stderr", "type", "string", "result", "type",
        "string", "description", "The value of the last expression.", "results", "type",
        "array", "items", "type", "object", "description",
        "Everything shown: text, html, data; png: the image is among "
        "the content.",
        "findings", "type", "array", "items", "type", "object", "execution_count", "type",
        "integer", "duration_ms", "type", "number", "truncated", "type", "boolean");
    return json_pack("{s:s, s:o, s:[s, s, s, s]}", "type", "object", "properties",
                     properties, "required", "session_id", "status", "stdout", "stderr");
}

/* --- the text and the images --- */

/* As ask tells a model. A text that has no more room ends there. */
static int
put_text(const json_t *outcome, const char *session_id, struct buf *out)
{
    struct outcome parsed;
    struct err err;
    const struct program alone = {0};
    bool is_lost = strcmp(text_of(outcome, "session"), "lost") == 0;
    int r = outcome_from_json(outcome, &parsed, &err);
    if (r < 0)
        return r;
    r = result_text(&parsed, &alone, out);
    outcome_done(&parsed);
    if (r == -ENOSPC) {
        out->n -= out->n < NOTE_BYTES ? out->n : NOTE_BYTES;
        out->n -= utf8_unfinished_tail(buf_span(out));
        r = buf_printf(out, "\n[... the rest is omitted ...]\n");
    }
    if (r == 0 && session_id && !is_lost)
        r = buf_printf(out, "[session_id: %s]\n", session_id);
    return r;
}

static void
add_images(json_t *content, const json_t *outcome, struct budget *budget)
{
    size_t i;
    const json_t *item;
    json_array_foreach(json_object_get(outcome, "results"), i, item)
    {
        const json_t *png = json_object_get(json_object_get(item, "data"), "image/png");
        size_t n = json_string_length(png);
        if (!json_is_string(png))
            continue;
        if (budget->images == IMAGES_MAX || budget->image_bytes + n > IMAGES_BYTES_MAX) {
            budget->is_cut = true;
            continue;
        }
        budget->images++;
        budget->image_bytes += n;
        (void)json_array_append_new(content,
                                    json_pack("{s:s, s:O, s:s}", "type", "image", "data",
                                              png, "mimeType", "image/png"));
    }
}

json_t *
result_of_run(const char *session_id, const json_t *outcome)
{
    struct budget budget = {0};
    bool is_ok = strcmp(text_of(outcome, "status"), "ok") == 0;
    AUTO_BUF struct buf text = {0};
    buf_init(&text, RESULT_BYTES_MAX);
    json_t *form = structured_of(session_id, outcome, &budget);
    if (!form || put_text(outcome, session_id, &text) < 0) {
        json_decref(form);
        return NULL;
    }
    json_t *result = result_text_block(text.p, text.n, form, !is_ok);
    json_t *content = json_object_get(result, "content");
    add_images(content, outcome, &budget);
    form = json_object_get(result, "structuredContent");
    (void)json_object_set_new(form, "truncated", json_boolean(budget.is_cut));
    return result;
}

/* --- check_python --- */

json_t *
result_of_check(const json_t *outcome)
{
    static const char fine[] = "The code would be accepted.\n";
    bool accepted = strcmp(text_of(outcome, "status"), "ok") == 0;
    const json_t *findings = json_object_get(outcome, "findings");
    struct budget budget = {0};
    AUTO_BUF struct buf text = {0};
    buf_init(&text, RESULT_BYTES_MAX);
    json_t *form = json_pack("{s:b, s:s}", "accepted", accepted, "message",
                             text_of(outcome, "message"));
    if (form)
        (void)json_object_set_new(form, "findings", json_array());
    if (form && json_array_size(findings) > 0)
        take_form(form, "findings", findings, &budget);
    int r = accepted ? buf_append(&text, fine, sizeof(fine) - 1)
                     : put_text(outcome, NULL, &text);
    if (!form || r < 0) {
        json_decref(form);
        return NULL;
    }
    return result_text_block(text.p, text.n, form, false);
}

json_t *
output_check(void)
{
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s, s:{s:s}}}, s:[s, s]}", "type",
                     "object", "properties", "accepted", "type", "boolean", "message",
                     "type", "string", "findings", "type", "array", "items", "type",
                     "object", "required", "accepted", "findings");
}
