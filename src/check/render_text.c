/* Findings for people: a line, the source beneath it, a caret, and what to do instead. */
#include "check/render.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

struct colours {
    const char *severity[CHECK_SEVERITIES];
    const char *strong, *faint, *none;
};
static const struct colours coloured_ones = {
    {"\x1b[31m", "\x1b[33m", "\x1b[36m", ""}, "\x1b[1m", "\x1b[2m", "\x1b[0m"};
static const struct colours plain_ones = {{"", "", "", ""}, "", "", ""};

enum { NAME_BYTES = 256, GUTTER = 6 };

static int
characters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* "      | ^~~~": as wide as the finding, on one line, within the excerpt. */
static int
append_caret(const struct finding *finding, const struct colours *colours,
             struct buf *out)
{
    const struct place *at = &finding->at;
    int width = characters(finding->excerpt);
    int from = at->column - finding->excerpt_from;
    if (at->column < 1 || from < 0 || from > width)
        return 0;
    int to = at->end_line == at->line && at->end_column > at->column
                 ? at->end_column - finding->excerpt_from
             : at->end_line > at->line ? width
                                       : from + 1;
    to = to > width ? width : to;
    int r = buf_printf(out, "%*s %s| %s%*s%s^", GUTTER, "", colours->faint, colours->none,
                       from, "", colours->severity[finding->severity]);
    for (int i = from + 1; r == 0 && i < to; i++)
        r = buf_append(out, "~", 1);
    return r < 0 ? r : buf_printf(out, "%s\n", colours->none);
}

static int
append_finding(const char *name, const struct finding *finding,
               const struct colours *colours, struct buf *out)
{
    const struct check_rule *rule = &check_rules[finding->rule];
    int r = buf_printf(out, "%s%s:", colours->strong, name);
    if (r == 0 && finding->at.line > 0)
        r = buf_printf(out, "%d:", finding->at.line);
    if (r == 0 && finding->at.column > 0)
        r = buf_printf(out, "%d:", finding->at.column);
    if (r == 0)
        r = buf_printf(out, "%s %s%s%s: %s %s[%s]%s\n", colours->none,
                       colours->severity[finding->severity],
                       check_severity_names[finding->severity], colours->none,
                       finding->text, colours->faint, rule->id, colours->none);
    if (r == 0 && finding->at.line > 0 && finding->excerpt[0] != '\0') {
        r = buf_printf(out, "%s%*d |%s %s\n", colours->faint, GUTTER, finding->at.line,
                       colours->none, finding->excerpt);
        if (r == 0)
            r = append_caret(finding, colours, out);
    }
    return r < 0 ? r : buf_printf(out, "%*s hint: %s\n", GUTTER, "", rule->hint);
}

static int
append_verdict(const char *name, const struct checked *file, struct buf *out)
{
    static const char *const plural[] = {"", "s"};
    uint64_t by_severity[CHECK_SEVERITIES] = {0};
    for (size_t i = 0; i < file->findings.n; i++)
        by_severity[file->findings.list[i].severity]++;
    int r = buf_printf(out, "%s: %s", name, file->rejected ? "rejected" : "accepted");
    for (size_t i = 0; r == 0 && i < CHECK_OFF; i++)
        if (by_severity[i] > 0)
            r = buf_printf(out, ", %llu %s%s", (unsigned long long)by_severity[i],
                           check_severity_names[i], plural[by_severity[i] > 1]);
    if (r == 0 && file->findings.dropped > 0)
        r = buf_printf(out, ", and %llu more that are not shown",
                       (unsigned long long)file->findings.dropped);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

int
check_render_findings(const char *name, const struct findings *findings, size_t most,
                      bool coloured, struct buf *out)
{
    const struct colours *colours = coloured ? &coloured_ones : &plain_ones;
    char shown[NAME_BYTES];
    int r = 0;
    check_printable(span_of(name), shown, sizeof(shown));
    for (size_t i = 0; r == 0 && i < findings->n && i < most; i++)
        r = append_finding(shown, &findings->list[i], colours, out);
    return r;
}

int
check_render_text(const struct checked *files, size_t n, bool coloured, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        char name[NAME_BYTES];
        check_printable(span_of(files[i].name), name, sizeof(name));
        if (files[i].failure[0] != '\0') {
            r = buf_printf(out, "%s: not checked: %s\n", name, files[i].failure);
            continue;
        }
        r = check_render_findings(files[i].name, &files[i].findings, SIZE_MAX, coloured,
                                  out);
        if (r == 0)
            r = append_verdict(name, &files[i], out);
    }
    return r;
}

static int
append_row(const struct check_rule *rule, struct buf *out)
{
    int r = buf_printf(out, "| `%s` |", rule->id);
    for (size_t i = 0; r == 0 && i < CHECK_PROFILES; i++)
        r = buf_printf(out, " %s |", check_severity_names[rule->severity[i]]);
    return r < 0
               ? r
               : buf_printf(out, " %s | %s | %s |\n", rule->finds, rule->why, rule->hint);
}

int
check_markdown(struct buf *out)
{
    int r = buf_printf(
        out, "| rule | strict | standard | open | finds | why it matters | what "
             "the author is told |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; r == 0 && i < CHECK_RULES; i++)
        r = append_row(&check_rules[i], out);
    return r;
}
