/* Findings for programs: the JSON of `adyton check`, and of every outcome. */
#include "check/render.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static json_t *
number_or_null(int number)
{
    return number > 0 ? json_integer(number) : json_null();
}

static const char *const layers[] = {[LAYER_BYTES] = "bytes", [LAYER_AST] = "ast"};

static json_t *
finding_json(const struct finding *f)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:i, s:s}", "rule",
        check_rules[f->rule].id, "severity", check_severity_names[f->severity], "layer",
        layers[f->layer], "line", number_or_null(f->at.line), "column",
        number_or_null(f->at.column), "end_line", number_or_null(f->at.end_line),
        "end_column", number_or_null(f->at.end_column), "message", f->text, "source",
        f->excerpt, "source_column", f->excerpt_from, "hint", check_rules[f->rule].hint);
}

json_t *
check_findings_json(const struct findings *findings)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < findings->n; i++)
        if (json_array_append_new(list, finding_json(&findings->list[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static bool
take_text(const json_t *object, const char *key, char *ret, size_t n)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text)
        check_printable(span_of(text), ret, n);
    return text != NULL;
}

/* null stands for 0: unknown. */
static bool
take_number(const json_t *object, const char *key, int *ret)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_is_null(value) ? 0 : json_integer_value(value);
    *ret = (int)number;
    return (json_is_null(value) || json_is_integer(value)) && number >= 0 &&
           number <= INT_MAX;
}

static bool
take_finding(const json_t *object, struct finding *ret, uint8_t *ret_severity)
{
    enum { KEYS = 11 };
    char rule[64], severity[16], layer[16], hint[4];
    *ret = (struct finding){0};
    bool texts = json_object_size(object) == KEYS &&
                 take_text(object, "rule", rule, sizeof(rule)) &&
                 take_text(object, "severity", severity, sizeof(severity)) &&
                 take_text(object, "layer", layer, sizeof(layer)) &&
                 take_text(object, "message", ret->text, sizeof(ret->text)) &&
                 take_text(object, "source", ret->excerpt, sizeof(ret->excerpt)) &&
                 take_text(object, "hint", hint, sizeof(hint));
    if (!texts || !take_number(object, "line", &ret->at.line) ||
        !take_number(object, "column", &ret->at.column) ||
        !take_number(object, "end_line", &ret->at.end_line) ||
        !take_number(object, "end_column", &ret->at.end_column) ||
        !take_number(object, "source_column", &ret->excerpt_from))
        return false;
    size_t i = check_rule_by_id(span_of(rule)),
           j = check_severity_by_name(span_of(severity));
    ret->rule = (uint8_t)i;
    ret->layer = strcmp(layer, layers[LAYER_BYTES]) == 0 ? LAYER_BYTES : LAYER_AST;
    *ret_severity = (uint8_t)j;
    return i < CHECK_RULES && j < CHECK_OFF && strcmp(layer, layers[ret->layer]) == 0;
}

bool
check_findings_take(const json_t *list, struct findings *ret)
{
    if (!json_is_array(list) || json_array_size(list) > FINDINGS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct check_settings settings = {.mode = CHECK_WARN};
        struct finding finding;
        uint8_t severity;
        if (!take_finding(json_array_get(list, i), &finding, &severity))
            return false;
        settings.severity[finding.rule] = severity;
        if (findings_add(ret, &settings, &finding) < 0)
            return false;
    }
    return true;
}

static json_t *
checked_json(const struct checked *file)
{
    char name[4096];
    check_printable(span_of(file->name), name, sizeof(name));
    const char *verdict = file->failure[0] != '\0' ? "failed"
                          : file->rejected         ? "rejected"
                                                   : "accepted";
    return json_pack("{s:s, s:s, s:s*, s:o, s:I}", "file", name, "verdict", verdict,
                     "message", file->failure[0] != '\0' ? file->failure : NULL,
                     "findings", check_findings_json(&file->findings), "findings_dropped",
                     (json_int_t)file->findings.dropped);
}

/* jansson goes on after a key that could not be written: the first failure is kept here. */
struct sink {
    struct buf *out;
    bool failed;
};

static int
dump_piece(const char *bytes, size_t n, void *context)
{
    struct sink *sink = context;
    sink->failed = sink->failed || buf_append(sink->out, bytes, n) < 0;
    return sink->failed ? -1 : 0;
}

int
check_append_json(json_t *document, struct buf *out)
{
    struct sink sink = {.out = out};
    int r =
        document ? json_dump_callback(document, dump_piece, &sink, JSON_INDENT(2)) : -1;
    json_decref(document);
    return r < 0 || sink.failed ? -ENOMEM : buf_append(out, "\n", 1);
}

int
check_render_json(const struct checked *files, size_t n, struct buf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, checked_json(&files[i])) < 0) {
            json_decref(list);
            return -ENOMEM;
        }
    return check_append_json(
        json_pack("{s:s, s:o}", "schema", "adyton.check/1", "files", list), out);
}
