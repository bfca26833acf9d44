/*
 * Findings on their way to the supervisor. A text says what is written here, what it is, and what
 * it does: never more than is known.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "guest/validate_parts.h"

enum { SPELLED_BYTES = 100, SHOWN_BYTES = 160 };

void
finding_send(struct validator *v, const struct guest_finding *finding, unsigned rule)
{
    /* As findings_add keeps them: each rule has its room, whatever floods the list. */
    bool room = v->sent < FINDINGS_MAX - FINDINGS_RESERVED * CHECK_RULES ||
                v->sent_of[rule] < FINDINGS_RESERVED;
    if (!room || v->gone) {
        v->more_of[rule]++;
        return;
    }
    v->gone = fd_send(v->fd, finding, sizeof(*finding), NULL, 0) < 0;
    v->sent++;
    v->sent_of[rule]++;
}

static bool
is_off(const struct validator *v, unsigned rule)
{
    return v->check->rules_off & 1U << rule;
}

void
find(struct validator *v, PyObject *node, unsigned rule, const char *format, ...)
{
    if (is_off(v, rule) || v->quiet > 0)
        return;
    struct guest_finding finding = {.magic = GUEST_MAGIC, .rule = rule};
    PyObject *at = v->outer ? v->outer : node;
    size_t n = 0;
    if (v->outer)
        n = (size_t)snprintf(finding.text, sizeof(finding.text),
                             "in the text that is run here: ");
    va_list args;
    va_start(args, format);
    vsnprintf(finding.text + n, sizeof(finding.text) - n, format, args);
    va_end(args);
    finding.line = node_int(v, at, AT_LINENO);
    finding.column = node_int(v, at, AT_COL_OFFSET);
    finding.end_line = node_int(v, at, AT_END_LINENO);
    finding.end_column = node_int(v, at, AT_END_COL_OFFSET);
    finding_send(v, &finding, rule);
}

void
text_done(struct text *text)
{
    free(text->starts);
    *text = (struct text){0};
}

/* Where the lines begin, made when the first finding asks. */
static bool
index_lines(struct text *text)
{
    if (text->starts || !text->p)
        return text->starts != NULL;
    size_t lines = 1;
    for (size_t i = 0; i < text->n; i++)
        lines += text->p[i] == '\n';
    text->starts = calloc(lines, sizeof(*text->starts));
    if (!text->starts)
        return false;
    text->lines_n = 1;
    for (size_t i = 0; i < text->n && text->lines_n < lines; i++)
        if (text->p[i] == '\n')
            text->starts[text->lines_n++] = (uint32_t)(i + 1);
    return true;
}

/* The node as it is written, when it stands on one line; "" when not. */
static void
spell(struct validator *v, PyObject *node, char ret[SPELLED_BYTES])
{
    size_t line = (size_t)node_int(v, node, AT_LINENO);
    size_t from = (size_t)node_int(v, node, AT_COL_OFFSET);
    size_t to = (size_t)node_int(v, node, AT_END_COL_OFFSET);
    ret[0] = '\0';
    if (line < 1 || (int)line != node_int(v, node, AT_END_LINENO) ||
        !index_lines(&v->text) || line > v->text.lines_n)
        return;
    from += v->text.starts[line - 1];
    to += v->text.starts[line - 1];
    if (from >= to || to > v->text.n || to - from >= SPELLED_BYTES)
        return;
    memcpy(ret, v->text.p + from, to - from);
    ret[to - from] = '\0';
}

/* "eval", not "builtins.eval": as it would be written. */
static const char *
plain(const char *dotted)
{
    static const char builtins[] = "builtins.";
    bool is = strncmp(dotted, builtins, sizeof(builtins) - 1) == 0;
    return is ? dotted + sizeof(builtins) - 1 : dotted;
}

void
find_act(struct validator *v, PyObject *node, const char *dotted, unsigned rule,
         const char *does)
{
    char spelled[SPELLED_BYTES];
    spell(v, node, spelled);
    if (spelled[0] == '\0' || strcmp(spelled, plain(dotted)) == 0)
        find(v, node, rule, "%s %s", plain(dotted), does);
    else
        find(v, node, rule, "'%s' is %s, which %s", spelled, plain(dotted), does);
}

/* A module is denied with everything in it. */
static bool
is_denied(const struct validator *v, const char *module, const char **ret_by)
{
    for (size_t i = 0; i < v->denied_n; i++) {
        size_t n = strlen(v->denied[i]);
        if (strncmp(module, v->denied[i], n) == 0 &&
            (module[n] == '\0' || module[n] == '.')) {
            *ret_by = v->denied[i];
            return true;
        }
    }
    return false;
}

void
find_import(struct validator *v, PyObject *node, const char *module)
{
    const char *by;
    if (!is_denied(v, module, &by))
        return;
    if (strcmp(by, module) == 0)
        find(v, node, RULE_IMPORT_DENIED, "import of %s, which the policy denies",
             module);
    else
        find(v, node, RULE_IMPORT_DENIED, "import of %s: the policy denies %s", module,
             by);
}

/* Of several only the first that leads outside: one finding is enough to act on. */
bool
find_path(struct validator *v, PyObject *node, const char *who, const struct value *value,
          bool write)
{
    char where[CHECK_PATH_BYTES], shown[SHOWN_BYTES], bytes[CHECK_PATH_BYTES];
    for (uint32_t i = 0; value->kind == VALUE_ONE_OF && i < value->n; i++)
        if (find_path(v, node, who, value->items[i], write))
            return true;
    bool known = value->kind == VALUE_PATH || value->kind == VALUE_CONSTANT;
    if (!known || !(PyUnicode_Check(value->object) || PyBytes_Check(value->object)))
        return false;
    text_utf8(value->object, bytes, sizeof(bytes));
    struct span path = {bytes, strlen(bytes)};
    snprintf(shown, sizeof(shown), "%.*s", SHOWN_BYTES - 1, bytes);
    if (check_path_is_url(&path)) {
        find(v, node, RULE_NETWORK_USE, "%s: '%s' is on the network", plain(who), shown);
        return true;
    }
    if (v->moved && path.n > 0 && path.p[0] != '/')
        return false;
    if (!check_path_is_outside(&v->folders, path, value->prefix, write, where))
        return false;
    const char *outside = write ? "is outside of the folder that may be written"
                                : "is outside of the folders that may be read";
    if (value->prefix)
        find(v, node, RULE_FILE_OUTSIDE, "%s: a path that begins with '%s' %s (%s)",
             plain(who), shown, outside, v->folders.work);
    else if (path.n == strlen(where) && memcmp(path.p, where, path.n) == 0)
        find(v, node, RULE_FILE_OUTSIDE, "%s: '%s' %s (%s)", plain(who), shown, outside,
             v->folders.work);
    else
        find(v, node, RULE_FILE_OUTSIDE, "%s: '%s' is %.160s, which %s (%s)", plain(who),
             shown, where, outside, v->folders.work);
    return true;
}
