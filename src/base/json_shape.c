/* Looks at structure alone, in one pass, and keeps nothing. */
#include "base/json_shape.h"

#include <string.h>

/* The end of the string whose text begins at p: its closing quote, or NULL. */
static const char *
string_end(const char *p, const char *end)
{
    for (const char *from = p;;) {
        const char *quote = memchr(from, '"', (size_t)(end - from));
        if (!quote)
            return NULL;
        size_t slashes = 0;
        while (quote - slashes > p && quote[-1 - (ptrdiff_t)slashes] == '\\')
            slashes++;
        if (slashes % 2 == 0)
            return quote;
        from = quote + 1;
    }
}

enum json_shape
json_shape(struct span text, size_t depth_max, size_t marks_max, size_t *ret_marks)
{
    size_t depth = 0, marks = 0;
    const char *end = text.p + text.n;
    for (const char *p = text.p; p < end; p++) {
        switch (*p) {
        case '"':
            p = string_end(p + 1, end);
            if (!p)
                return JSON_SHAPE_OPEN_STRING;
            continue;
        case '[':
        case '{':
            depth++;
            break;
        case ']':
        case '}':
            depth -= depth > 0;
            continue;
        case ',':
        case ':':
            break;
        default:
            continue;
        }
        if (depth > depth_max)
            return JSON_SHAPE_DEEP;
        if (++marks > marks_max)
            return JSON_SHAPE_MANY;
    }
    if (ret_marks)
        *ret_marks = marks;
    return JSON_SHAPE_FITS;
}
