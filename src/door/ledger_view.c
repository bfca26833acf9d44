/* How rows of the ledger are written: table cells, CSV, JSON, code with its line numbers.
 * All of it may come from hostile code. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "door/ledger_command.h"
#include "door/terminal.h"

enum {
    FIELD_COLUMNS = 10,
    LINES_AROUND = 2,
    LINES_AT_FIRST = 12,
    LINE_BYTES_SHOWN = 160,
    TAB_COLUMNS = 4,
    TEXT_BYTES_MAX = 512 * 1024 * 1024,
};

const char *
view_time(int64_t time_us, bool exact, char text[VIEW_TIME_BYTES])
{
    struct tm tm;
    time_t seconds = (time_t)(time_us / 1000000);
    text[0] = '\0';
    if (!gmtime_r(&seconds, &tm))
        return text;
    size_t n =
        strftime(text, VIEW_TIME_BYTES, exact ? "%Y-%m-%dT%H:%M:%S" : "%F %T", &tm);
    if (exact)
        snprintf(text + n, VIEW_TIME_BYTES - n, ".%06dZ", (int)(time_us % 1000000));
    else
        snprintf(text + n, VIEW_TIME_BYTES - n, "Z");
    return text;
}

int
view_cell(struct buf *out, const char *text, size_t width)
{
    size_t before = out->n;
    int r = terminal_append_line(text && text[0] != '\0' ? text : "-", out);
    if (r < 0 || width == 0)
        return r;
    size_t columns = 0; /* a character is one column wide, more or less */
    for (size_t i = before; i < out->n; i++)
        columns += ((unsigned char)out->p[i] & 0xC0) != 0x80;
    return buf_printf(out, "%*s", columns < width ? (int)(width - columns) + 2 : 2, "");
}

int
view_csv(struct buf *out, bool first, const char *text)
{
    int r = first ? 0 : buf_append(out, ",", 1);
    if (r < 0 || !text)
        return r;
    bool formula = text[0] != '\0' && strchr("=+-@\t\r", text[0]);
    if (!formula && !strpbrk(text, ",\"\r\n"))
        return buf_append(out, text, strlen(text));
    r = buf_append(out, "\"'", formula ? 2 : 1);
    for (const char *p = text; *p && r == 0; p++)
        r = *p == '"' ? buf_append(out, "\"\"", 2) : buf_append(out, p, 1);
    return r < 0 ? r : buf_append(out, "\"", 1);
}

int
view_csv_number(struct buf *out, bool first, int64_t number)
{
    return buf_printf(out, "%s%lld", first ? "" : ",", (long long)number);
}

int
view_field(struct buf *out, const char *name, const char *text)
{
    if (!text || text[0] == '\0')
        return 0;
    int r = buf_printf(out, "%-*s ", FIELD_COLUMNS, name);
    if (r == 0)
        r = terminal_append_line(text, out);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

int
view_json_line(struct buf *out, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    int r = text ? buf_printf(out, "%s\n", text) : -ENOMEM;
    free(text);
    return r;
}

static json_t *
json_span(struct span text)
{
    AUTO_BUF struct buf valid = {0};
    uint64_t replaced;
    buf_init(&valid, TEXT_BYTES_MAX);
    if (utf8_append_valid(&valid, text, &replaced) < 0)
        return NULL;
    struct span s = buf_span(&valid);
    return json_stringn_nocheck(s.p ? s.p : "", s.n);
}

json_t *
view_json_text(const char *text)
{
    return text ? json_span(span_of(text)) : json_null();
}

json_t *
view_json_hash(const unsigned char hash[LEDGER_HASH_BYTES])
{
    char text[2 * LEDGER_HASH_BYTES + 1];
    return json_string(sodium_bin2hex(text, sizeof(text), hash, LEDGER_HASH_BYTES));
}

json_t *
view_json_code(struct ledger *ledger, const unsigned char hash[LEDGER_HASH_BYTES])
{
    AUTO_BUF struct buf code = {0};
    struct err err;
    buf_init(&code, TEXT_BYTES_MAX);
    return ledger_code(ledger, hash, &code, &err) < 0 ? json_null()
                                                      : json_span(buf_span(&code));
}

/* Tabs widened, the rest harmless, cut short. `ret_caret`: columns before character
 * `column`, counted from 1. */
static int
append_line_of_code(struct buf *out, struct span line, int64_t column, size_t *ret_caret)
{
    char text[LINE_BYTES_SHOWN * TAB_COLUMNS + 8];
    size_t n = 0, characters = 0, caret = 0;
    bool cut = line.n > LINE_BYTES_SHOWN;
    size_t shown = cut ? LINE_BYTES_SHOWN : line.n;
    for (size_t i = 0; i < shown; i++) {
        bool begins = ((unsigned char)line.p[i] & 0xC0) != 0x80;
        characters += begins;
        if (begins && (int64_t)characters < column)
            caret += line.p[i] == '\t' ? TAB_COLUMNS : 1;
        if (line.p[i] == '\t')
            for (int tab = 0; tab < TAB_COLUMNS; tab++)
                text[n++] = ' ';
        else if (line.p[i] != '\0' && line.p[i] != '\r')
            text[n++] = line.p[i];
    }
    snprintf(text + n, sizeof(text) - n, "%s", cut ? "…" : "");
    *ret_caret = caret;
    return terminal_append_line(text, out);
}

static int
append_numbered(struct buf *out, struct span line, int64_t number, bool marked,
                int64_t column)
{
    size_t caret;
    int r = buf_printf(out, "%c%6lld | ", marked ? '>' : ' ', (long long)number);
    if (r == 0)
        r = append_line_of_code(out, line, column, &caret);
    if (r == 0)
        r = buf_append(out, "\n", 1);
    if (r == 0 && marked && column > 0)
        r = buf_printf(out, "%*s^\n", (int)caret + 10, "");
    return r;
}

int
view_excerpt(struct buf *out, struct span code, int64_t line, int64_t column)
{
    int64_t first = line > LINES_AROUND ? line - LINES_AROUND : 1;
    int64_t last = line > 0 ? line + LINES_AROUND : LINES_AT_FIRST;
    int r = 0;
    for (int64_t number = 1; code.n > 0 && number <= last && r == 0; number++) {
        const char *end = memchr(code.p, '\n', code.n);
        size_t n = end ? (size_t)(end - code.p) : code.n;
        if (number >= first)
            r = append_numbered(out, (struct span){code.p, n}, number, number == line,
                                column);
        code.p += end ? n + 1 : n;
        code.n -= end ? n + 1 : n;
    }
    if (r == 0 && line == 0 && code.n > 0)
        r = buf_printf(out, "       | …\n");
    return r;
}
