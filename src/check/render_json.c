/* Findings for programs: the JSON of `adyton check`, and of every outcome. */
#include "check/render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static json_t *
number_or_null(int number)
{
    return number > 0 ? json_integer(number) : json_null();
}

static json_t *
finding_json(const struct finding *f)
{
    static const char *const layers[] = {[LAYER_BYTES] = "bytes", [LAYER_AST] = "ast"};
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:s}", "rule",
                     check_rules[f->rule].id, "severity",
                     check_severity_names[f->severity], "layer", layers[f->layer], "line",
                     number_or_null(f->at.line), "column", number_or_null(f->at.column),
                     "end_line", number_or_null(f->at.end_line), "end_column",
                     number_or_null(f->at.end_column), "message", f->text, "source",
                     f->excerpt, "hint", check_rules[f->rule].hint);
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

static int
dump_piece(const char *bytes, size_t n, void *context)
{
    return buf_append(context, bytes, n) < 0 ? -1 : 0;
}

int
check_append_json(json_t *document, struct buf *out)
{
    int r = document ? json_dump_callback(document, dump_piece, out, JSON_INDENT(2)) : -1;
    json_decref(document);
    return r < 0 ? -ENOMEM : buf_append(out, "\n", 1);
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
