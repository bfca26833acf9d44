/*
 * What names, attributes and calls mean. A row of check_acts that is NAMED counts wherever its
 * name is read, because a function can be passed on; one that is CALLED only when it is called.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>

#include "guest/validate_parts.h"

/* Implementation modules, and the public one that they stand behind. */
static const struct {
    const char *inner, *outer;
} module_names[] = {
    {"_frozen_importlib", "importlib._bootstrap"},
    {"_io", "io"},
    {"_pyio", "io"},
    {"importlib._bootstrap_external", "importlib.machinery"},
    {"nt", "os"},
    {"ntpath", "os.path"},
    {"posix", "os"},
    {"posixpath", "os.path"},
    {"shutil.os", "os"},
};

const char *
canonical_module(const char *name)
{
    for (size_t i = 0; i < sizeof(module_names) / sizeof(*module_names); i++)
        if (strcmp(name, module_names[i].inner) == 0)
            return module_names[i].outer;
    return name;
}

/* tempfile._os, pandas.io.common.os: modules hand out what they have imported themselves. */
static const char *
handed_out(const char *base, const char *attribute)
{
    static const char *const modules[] = {"os",        "sys",    "shutil",   "subprocess",
                                          "importlib", "ctypes", "builtins", "posix"};
    const char *bare =
        attribute[0] == '_' && attribute[1] != '_' ? attribute + 1 : attribute;
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++)
        if (strcmp(bare, modules[i]) == 0 && strcmp(base, modules[i]) != 0 &&
            strcmp(base, "builtins") != 0)
            return canonical_module(modules[i]);
    return NULL;
}

void
judge_name(struct validator *v, PyObject *node, const struct value *value)
{
    for (uint32_t i = 0; value->kind == VALUE_ONE_OF && i < value->n; i++)
        judge_name(v, node, value->items[i]);
    const char *dotted = value_dotted(value);
    const struct check_act *act = dotted ? check_act_by_name(dotted) : NULL;
    if (act && act->when == ACT_NAMED)
        find_act(v, node, dotted, act->rule, act->does);
}

/* An attribute that leads out, of whatever object. */
static const struct value *
apply_special(struct validator *v, PyObject *node, const struct value *base,
              const char *attribute)
{
    static const char *const classes[] = {"__base__", "__bases__", "__mro__", "mro"};
    const struct check_attribute *row = check_attribute_by_name(attribute);
    bool subclasses = strcmp(attribute, "__subclasses__") == 0;
    bool walks = base->kind == VALUE_TYPE || value_is(base, "builtins.object") ||
                 value_is(base, "builtins.type");
    if (row && (!subclasses || walks))
        find_act(v, node, attribute, row->rule, row->does);
    if (strcmp(attribute, "f_builtins") == 0 || strcmp(attribute, "__builtins__") == 0)
        return value_name(v, "builtins");
    /* The classes of a class of the code's own may still be its own. */
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
        if (strcmp(attribute, classes[i]) == 0)
            return base->kind == VALUE_CLASS ? base : value_of_kind(VALUE_TYPE);
    return NULL;
}

static const struct value *
apply_to_name(struct validator *v, PyObject *node, const struct value *base,
              const char *attribute)
{
    char dotted[2 * NAME_BYTES_MAX];
    if (strcmp(attribute, "__self__") == 0 && strncmp(base->name, "builtins.", 9) == 0)
        return value_name(v, "builtins");
    if (strcmp(attribute, "__class__") == 0)
        return &value_unknown;
    const char *module = handed_out(base->name, attribute);
    if (module)
        return value_name(v, module);
    snprintf(dotted, sizeof(dotted), "%s.%s", base->name, attribute);
    const struct value *made = value_name(v, canonical_module(dotted));
    judge_name(v, node, made);
    return made;
}

static const struct value *
apply_one(struct validator *v, PyObject *node, const struct value *base,
          const char *attribute)
{
    const struct value *special = apply_special(v, node, base, attribute);
    if (special)
        return special;
    switch (base->kind) {
    case VALUE_NAME:
        return apply_to_name(v, node, base, attribute);
    case VALUE_CONSTANT:
    case VALUE_ITEMS:
        return strcmp(attribute, "__class__") == 0 ? value_of_kind(VALUE_TYPE)
                                                   : value_method(v, base, attribute);
    case VALUE_PATH:
        if (strcmp(attribute, "parent") == 0 && !base->prefix)
            return value_made(v, PyUnicode_FromFormat("%U/..", base->object), VALUE_PATH,
                              false);
        return value_method(v, base, attribute);
    case VALUE_DECODED:
    case VALUE_TYPE:
        return value_method(v, base, attribute);
    default:
        return &value_unknown;
    }
}

const struct value *
apply_attribute(struct validator *v, PyObject *node, const struct value *base,
                const char *attribute, bool plain_name)
{
    (void)plain_name;
    if (base->kind != VALUE_ONE_OF)
        return apply_one(v, node, base, attribute);
    const struct value *made = &value_unknown;
    for (uint32_t i = 0; i < base->n; i++)
        made = value_either(v, made, apply_one(v, node, base->items[i], attribute));
    return made;
}

/* --- calls --- */

/* The last attribute of what is called: of df.to_csv, "to_csv". */
static void
method_name(struct validator *v, const struct call *call, char *ret, size_t n)
{
    PyObject *func = node_get(v, call->node, AT_FUNC);
    ret[0] = '\0';
    if (node_kind(v, func) == NODE_ATTRIBUTE)
        text_utf8(node_get(v, func, AT_ATTR), ret, n);
}

/* Methods of whatever object that are acts by their name alone. */
static const struct value *
judge_any_method(struct validator *v, const struct call *call)
{
    char name[NAME_BYTES_MAX] = ".", text[NAME_BYTES_MAX];
    method_name(v, call, name + 1, sizeof(name) - 1);
    if (name[1] == '\0')
        return &value_unknown;
    const struct check_act *act = check_act_by_name(name);
    if (act)
        judge_paths(v, call, act, &value_unknown);
    bool getattribute = strcmp(name, ".__getattribute__") == 0;
    bool loads = strcmp(name, ".load_module") == 0;
    PyObject *given = call->args_n > 0 ? value_text(call->args[0]) : NULL;
    if (!given || !(getattribute || loads))
        return &value_unknown;
    text_utf8(given, text, sizeof(text));
    if (getattribute)
        return apply_attribute(v, call->node, &value_unknown, text, false);
    find_import(v, call->node, text);
    find(v, call->node, RULE_DYNAMIC_CODE, "loads the module %s past an import statement",
         text);
    return value_name(v, canonical_module(text));
}

/* os.__getattribute__("system") */
static const struct value *
call_getattribute(struct validator *v, const struct call *call)
{
    static const char end[] = ".__getattribute__";
    char owner[NAME_BYTES_MAX], name[NAME_BYTES_MAX];
    size_t n = strlen(call->func->name);
    PyObject *given = call->args_n == 1 ? value_text(call->args[0]) : NULL;
    if (!given || n < sizeof(end) ||
        strcmp(call->func->name + n - sizeof(end) + 1, end) != 0)
        return NULL;
    snprintf(owner, sizeof(owner), "%.*s", (int)(n - sizeof(end) + 1), call->func->name);
    text_utf8(given, name, sizeof(name));
    return apply_attribute(v, call->node, value_name(v, owner), name, false);
}

static const struct value *
call_name(struct validator *v, const struct call *call)
{
    const char *dotted = call->func->name;
    const struct value *attribute = call_getattribute(v, call);
    if (attribute)
        return attribute;
    const struct check_act *act = check_act_by_name(dotted);
    if (act && act->when == ACT_CALLED && act->paths[0].access == ACCESS_NONE)
        find_act(v, node_get(v, call->node, AT_FUNC), dotted, act->rule, act->does);
    if (act && act->paths[0].access != ACCESS_NONE)
        judge_paths(v, call, act, &value_unknown);
    if (strcmp(dotted, "os.chdir") == 0 || strcmp(dotted, "os.fchdir") == 0 ||
        strcmp(dotted, "contextlib.chdir") == 0)
        v->moved = true;
    const struct fold *fold = fold_by_name(dotted);
    if (fold)
        return fold->make(v, call);
    const struct value *path = fold_os_path(v, dotted, call);
    if (path)
        return path;
    return act ? &value_unknown : judge_any_method(v, call);
}

/* attrgetter("a.b")(x), methodcaller("a")(x) */
static const struct value *
call_getter(struct validator *v, const struct call *call)
{
    char text[NAME_BYTES_MAX];
    const struct value *made = call->args_n > 0 ? call->args[0] : &value_unknown;
    text_utf8(value_text(call->func->items[0]), text, sizeof(text));
    for (char *part = text; part;) {
        char *dot = strchr(part, '.');
        if (dot)
            *dot = '\0';
        made = apply_attribute(v, call->node, made, part, false);
        part = dot ? dot + 1 : NULL;
    }
    return made;
}

static const struct value *
call_method(struct validator *v, const struct call *call)
{
    char dotted[2 * NAME_BYTES_MAX];
    const struct value *self = call->func->items[0];
    if (strcmp(call->func->name, "attrgetter") == 0)
        return call_getter(v, call);
    if (self->kind == VALUE_DECODED)
        return self;
    if (self->kind == VALUE_TYPE)
        return strcmp(call->func->name, "mro") == 0 ? self : &value_unknown;
    if (self->kind == VALUE_PATH) {
        snprintf(dotted, sizeof(dotted), "Path.%s", call->func->name);
        const struct check_act *act = check_act_by_name(dotted);
        if (act)
            judge_paths(v, call, act, self);
        return fold_os_path(v, call->func->name, call);
    }
    return self->kind == VALUE_CONSTANT ? fold_method(v, call) : &value_unknown;
}

const struct value *
call_judge(struct validator *v, const struct call *call)
{
    switch (call->func->kind) {
    case VALUE_NAME:
        return call_name(v, call);
    case VALUE_METHOD:
        return call_method(v, call);
    case VALUE_ONE_OF: {
        const struct value *made = &value_unknown;
        struct call one = *call;
        for (uint32_t i = 0; i < call->func->n; i++) {
            one.func = call->func->items[i];
            made = value_either(v, made, call_judge(v, &one));
        }
        return made;
    }
    case VALUE_CLASS:
        return &value_unknown;
    default:
        return judge_any_method(v, call);
    }
}

/* --- what changes the interpreter --- */

static bool
is_core(const char *module)
{
    static const char *const modules[] = {"os",         "sys",    "builtins",
                                          "subprocess", "io",     "socket",
                                          "importlib",  "ctypes", "shutil"};
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++)
        if (strcmp(module, modules[i]) == 0)
            return true;
    return false;
}

static bool
is_machinery(const char *dotted)
{
    static const char *const names[] = {"sys.modules", "sys.meta_path", "sys.path_hooks",
                                        "sys.path_importer_cache"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(dotted, names[i]) == 0)
            return true;
    return false;
}

void
judge_store(struct validator *v, PyObject *node, const struct value *base,
            const char *attribute)
{
    static const char dict[] = "builtins.__dict__";
    char dotted[2 * NAME_BYTES_MAX];
    if (strcmp(attribute, "__code__") == 0) {
        find(v, node, RULE_INTERPRETER_TAMPERING, "replaces the code of a function");
        return;
    }
    if (base->kind != VALUE_NAME)
        return;
    snprintf(dotted, sizeof(dotted), "%s.%s", base->name, attribute);
    if (strcmp(base->name, "builtins") == 0 || strcmp(base->name, dict) == 0)
        find(v, node, RULE_INTERPRETER_TAMPERING, "replaces the builtin %s for all code",
             attribute);
    else if (strcmp(base->name, "sys.modules") == 0 && is_core(attribute))
        find(v, node, RULE_INTERPRETER_TAMPERING, "replaces the module %s for all code",
             attribute);
    else if (is_machinery(dotted) || (is_core(base->name) && check_act_by_name(dotted)))
        find(v, node, RULE_INTERPRETER_TAMPERING, "replaces %s for all code", dotted);
}

void
judge_decorator(struct validator *v, PyObject *node, const struct value *value)
{
    static const char *const runners[] = {"builtins.exec",    "builtins.eval",
                                          "builtins.compile", "builtins.__import__",
                                          "os.system",        "os.popen"};
    for (size_t i = 0; i < sizeof(runners) / sizeof(*runners); i++)
        if (value_is(value, runners[i]))
            find(v, node, RULE_OBFUSCATION,
                 "a decorator that calls %s, without a call to read",
                 strchr(runners[i], '.') + 1);
}
