/* Lists of host paths that a cell may read; what is no sound path is not kept. */
#include "policy/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/utf8.h"

/* The cell has these of its own: a host path there would hide the cell's, or show the
 * host's processes, devices and settings. */
static const struct {
    const char *path;
    const char *why;
    bool hides_only; /* no harm but at the same place */
} own[] = {
    {"/dev", "is in the cell's own /dev", false},
    {"/proc", "is in the cell's own /proc", false},
    {"/sys", "is in /sys, which no cell has", false},
    {"/tmp", "is in the cell's own /tmp", true},
};

struct policy_list *
list_of(struct policy *policy, const struct policy_field *field)
{
    assert(field->kind == FIELD_PATHS || field->kind == FIELD_NAMES);
    return (struct policy_list *)(void *)((char *)policy + field->offset);
}

const struct policy_list *
list_peek(const struct policy *policy, const struct policy_field *field)
{
    assert(field->kind == FIELD_PATHS || field->kind == FIELD_NAMES);
    return (const struct policy_list *)(const void *)((const char *)policy +
                                                      field->offset);
}

static bool
is_beneath(struct span path, const char *folder)
{
    size_t n = strlen(folder);
    return path.n >= n && memcmp(path.p, folder, n) == 0 &&
           (path.n == n || path.p[n] == '/');
}

/* Printable text: the path goes into errors, listings and the ledger as it is. */
static bool
is_plain(struct span path)
{
    while (path.n > 0) {
        int length = utf8_next(path);
        if (length <= 0 || (unsigned char)path.p[0] < 0x20 || path.p[0] == 0x7f)
            return false;
        path.p += length;
        path.n -= (size_t)length;
    }
    return true;
}

/* Every component a name: no "", "." or "..", so that a check of the text is one of the
 * place. */
static bool
is_normal(struct span path)
{
    if (path.n < 2 || path.p[0] != '/')
        return false;
    size_t at = 1;
    while (at <= path.n) {
        const char *p = path.p + at;
        const char *slash = memchr(p, '/', path.n - at);
        struct span part = {p, slash ? (size_t)(slash - p) : path.n - at};
        if (part.n == 0 || span_is(part, ".") || span_is(part, ".."))
            return false;
        at += part.n + 1;
    }
    return true;
}

static const char *
path_fault(const struct policy_list *list, const struct policy_field *field,
           struct span path)
{
    if (path.n >= POLICY_PATH_BYTES)
        return "is too long";
    if (!is_plain(path))
        return "is not printable UTF-8";
    if (span_is(path, "/"))
        return "would show the whole host: name what the code needs";
    if (!is_normal(path))
        return "is not an absolute path without '.', '..', '//' or a '/' at the end";
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (is_beneath(path, own[i].path) && !(field->elsewhere && own[i].hides_only))
            return own[i].why;
    for (size_t i = 0; i < list->n; i++)
        if (span_is(path, list->items[i]))
            return "is there twice";
    return NULL;
}

int
list_add(struct policy_list *list, const struct policy_field *field, const char *who,
         struct span item, struct err *err)
{
    char shown[QUOTE_BYTES];
    bool paths = field->kind == FIELD_PATHS;
    const char *fault = paths ? path_fault(list, field, item) : name_fault(list, item);
    if (fault)
        return err_set(err, -EINVAL, "%s: '%s' %s", who, quote(item, shown), fault);
    if (list->n == POLICY_LIST_MAX)
        return err_set(err, -ERANGE, "%s: more than %d %s", who, POLICY_LIST_MAX,
                       paths ? "paths" : "names");
    char *copy = strndup(item.p, item.n);
    if (!copy)
        return err_set(err, -ENOMEM, "%s: out of memory", who);
    list->items[list->n++] = copy;
    return 0;
}

void
list_done(struct policy_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i]);
    *list = (struct policy_list){0};
}
