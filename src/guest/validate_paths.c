/* Paths that calls are given: which argument is one, whether it is written, and where it leads. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>

#include "guest/validate_parts.h"

bool
flag_writes(const char *dotted)
{
    static const char *const flags[] = {"os.O_WRONLY", "os.O_RDWR", "os.O_CREAT",
                                        "os.O_TRUNC", "os.O_APPEND"};
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (strcmp(dotted, flags[i]) == 0)
            return true;
    return false;
}

static bool
mode_writes(const struct value *mode)
{
    enum { MODE_BYTES = 16 };
    char text[MODE_BYTES];
    if (!mode || !value_text(mode))
        return false;
    text_utf8(value_text(mode), text, sizeof(text));
    return strpbrk(text, "wax+") != NULL;
}

static bool
flags_write(const struct value *flags)
{
    enum { ACCESS_BITS = 3 };
    long long number;
    if (flags && value_int(flags, &number))
        return number & ACCESS_BITS;
    return flags && value_dotted(flags) && flag_writes(value_dotted(flags));
}

static bool
writes(const struct call *call, const struct act_path *path)
{
    switch (path->access) {
    case ACCESS_WRITE:
        return true;
    case ACCESS_MODE:
        return mode_writes(
            call_argument(call, path->position == ACT_SELF ? 0 : 1, "mode"));
    case ACCESS_FLAGS:
        return flags_write(call_argument(call, 1, "flags"));
    default:
        return false;
    }
}

/* SQLite's names for databases that are no files. */
static bool
is_no_file(const struct check_act *act, const struct value *value)
{
    static const char *const names[] = {":memory:", ""};
    bool database =
        act->paths[0].keyword && strcmp(act->paths[0].keyword, "database") == 0;
    PyObject *text = value_text(value);
    for (size_t i = 0; database && text && i < sizeof(names) / sizeof(*names); i++)
        if (PyUnicode_CompareWithASCIIString(text, names[i]) == 0)
            return true;
    return false;
}

/* glob's patterns: what stands before the first wildcard is certain. */
static const struct value *
before_wildcard(struct validator *v, const struct value *value)
{
    PyObject *text = value_text(value);
    Py_ssize_t n = text ? PyUnicode_GetLength(text) : 0, end = -1;
    for (const char *mark = "*?["; text && *mark; mark++) {
        Py_ssize_t at = PyUnicode_FindChar(text, (Py_UCS4)*mark, 0, n, 1);
        end = at >= 0 && (end < 0 || at < end) ? at : end;
    }
    PyErr_Clear();
    if (end < 0)
        return value;
    return value_made(v, PyUnicode_Substring(text, 0, end), VALUE_CONSTANT, true);
}

void
judge_paths(struct validator *v, const struct call *call, const struct check_act *act,
            const struct value *self)
{
    const char *who = act->name[0] == '.' ? act->name + 1 : act->name;
    for (size_t i = 0; i < ACT_PATHS; i++) {
        const struct act_path *path = &act->paths[i];
        if (path->access == ACCESS_NONE)
            continue;
        const struct value *value =
            path->position == ACT_SELF
                ? self
                : call_argument(call, (size_t)path->position, path->keyword);
        if (!value || is_no_file(act, value))
            continue;
        if (strncmp(act->name, "glob.", sizeof("glob.") - 1) == 0)
            value = before_wildcard(v, value);
        find_path(v, call->node, who, value, writes(call, path));
    }
}

/* base / part: of texts, paths and what only begins to be known. */
const struct value *
path_join(struct validator *v, const struct value *base, const struct value *part)
{
    bool base_known = (base->kind == VALUE_CONSTANT || base->kind == VALUE_PATH) &&
                      PyUnicode_Check(base->object);
    bool part_known = (part->kind == VALUE_CONSTANT || part->kind == VALUE_PATH) &&
                      PyUnicode_Check(part->object);
    if (part_known && PyUnicode_GetLength(part->object) > 0 &&
        PyUnicode_ReadChar(part->object, 0) == '/')
        return value_made(v, Py_BuildValue("O", part->object), base->kind, part->prefix);
    if (!base_known)
        return &value_unknown;
    if (base->prefix)
        return base;
    if (PyUnicode_GetLength(base->object) > FOLD_BYTES_MAX / 2 ||
        (part_known && PyUnicode_GetLength(part->object) > FOLD_BYTES_MAX / 2))
        return &value_unknown;
    PyObject *joined = PyUnicode_FromFormat("%U/%U", base->object,
                                            part_known ? part->object : base->object);
    if (!part_known) { /* the folder is known, what is in it is not */
        Py_XDECREF(joined);
        joined = PyUnicode_FromFormat("%U/", base->object);
    }
    return value_made(v, joined, base->kind, part_known ? part->prefix : true);
}

static const struct value *
join_all(struct validator *v, const struct call *call, uint8_t kind,
         const struct value *first)
{
    const struct value *joined = first;
    size_t n = call->args_n < ARGUMENTS_MAX ? call->args_n : ARGUMENTS_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct value *part = call->args[i];
        if (!joined)
            joined = part;
        else
            joined = path_join(v, joined, part);
    }
    bool known = joined &&
                 (joined->kind == VALUE_CONSTANT || joined->kind == VALUE_PATH) &&
                 PyUnicode_Check(joined->object);
    if (joined && joined->kind == VALUE_ONE_OF && kind == VALUE_CONSTANT)
        return joined;
    return known ? value_made(v, Py_BuildValue("O", joined->object), kind, joined->prefix)
                 : &value_unknown;
}

/* "~" is the cell's own folder; "~somebody" is nobody there. */
static const struct value *
expand_user(struct validator *v, const struct value *value, uint8_t kind)
{
    bool known = (value->kind == VALUE_CONSTANT || value->kind == VALUE_PATH) &&
                 PyUnicode_Check(value->object);
    if (!known)
        return &value_unknown;
    Py_ssize_t n = PyUnicode_GetLength(value->object);
    if (n == 0 || PyUnicode_ReadChar(value->object, 0) != '~')
        return value;
    if (n > 1 && PyUnicode_ReadChar(value->object, 1) != '/')
        return &value_unknown;
    PyObject *rest = PyUnicode_Substring(value->object, 1, n);
    PyObject *whole = rest ? PyUnicode_FromFormat("%s%U", v->folders.work, rest) : NULL;
    Py_XDECREF(rest);
    return value_made(v, whole, kind, value->prefix);
}

static const struct value *
make_work_folder(struct validator *v, uint8_t kind)
{
    return value_made(v, PyUnicode_FromString(v->folders.work), kind, false);
}

static bool
is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* Methods of a path that give a path. */
static const struct value *
path_method(struct validator *v, const struct call *call, const char *name)
{
    static const char *const same[] = {"resolve", "absolute", "as_posix", "__fspath__",
                                       NULL};
    const struct value *self = call->func->items[0];
    if (is_one_of(name, same))
        return self;
    if (strcmp(name, "joinpath") == 0)
        return join_all(v, call, VALUE_PATH, self);
    return strcmp(name, "expanduser") == 0 ? expand_user(v, self, VALUE_PATH)
                                           : &value_unknown;
}

const struct value *
fold_os_path(struct validator *v, const char *name, const struct call *call)
{
    static const char *const paths[] = {"pathlib.Path",        "pathlib.PosixPath",
                                        "pathlib.PurePath",    "pathlib.PurePosixPath",
                                        "pathlib._local.Path", NULL};
    static const char *const same[] = {"os.path.abspath",  "os.path.normpath",
                                       "os.path.realpath", "os.fspath",
                                       "os.fsdecode",      NULL};
    static const char *const here[] = {"os.getcwd", "tempfile.gettempdir", NULL};
    static const char *const here_paths[] = {"pathlib.Path.home", "pathlib.Path.cwd",
                                             NULL};
    if (call->func->kind == VALUE_METHOD)
        return path_method(v, call, name);
    if (is_one_of(name, paths))
        return join_all(v, call, VALUE_PATH, NULL);
    if (is_one_of(name, here) || is_one_of(name, here_paths))
        return make_work_folder(v, is_one_of(name, here) ? VALUE_CONSTANT : VALUE_PATH);
    if (call->args_n == 0)
        return NULL;
    if (strcmp(name, "os.path.join") == 0)
        return join_all(v, call, VALUE_CONSTANT, NULL);
    if (strcmp(name, "os.path.expanduser") == 0)
        return expand_user(v, call->args[0], VALUE_CONSTANT);
    return is_one_of(name, same) ? call->args[0] : NULL;
}
