/* Statements: bindings, bodies, and what only a statement can do. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>

#include "guest/validate_parts.h"

void
visit_list(struct validator *v, PyObject *list)
{
    for (Py_ssize_t i = 0; i < list_size(list); i++)
        visit_any(v, PyList_GetItem(list, i));
}

/* A body that may not run, or run again. */
static void
visit_branch(struct validator *v, PyObject *list, bool loop)
{
    enum { MOST = 200 };
    uint8_t branch = v->branch, in_loop = v->loop;
    v->branch = branch < MOST ? (uint8_t)(branch + 1) : branch;
    v->loop = loop && in_loop < MOST ? (uint8_t)(in_loop + 1) : in_loop;
    visit_list(v, list);
    v->branch = branch;
    v->loop = in_loop;
}

/* --- imports --- */

static void
import_as(struct validator *v, PyObject *alias, const char *full, bool whole)
{
    char top[NAME_BYTES_MAX];
    PyObject *name = node_get(v, alias, AT_ASNAME);
    if (name || whole) {
        scope_set(v, name ? name : node_get(v, alias, AT_NAME),
                  value_name(v, canonical_module(full)));
        return;
    }
    /* `import a.b` binds a. */
    snprintf(top, sizeof(top), "%.*s", (int)strcspn(full, "."), full);
    PyObject *first = PyUnicode_FromString(top);
    if (first && PyList_Append(v->owned, first) == 0)
        scope_set(v, first, value_name(v, canonical_module(top)));
    PyErr_Clear();
    Py_XDECREF(first);
}

static void
visit_import(struct validator *v, PyObject *node)
{
    char full[NAME_BYTES_MAX];
    PyObject *names = node_get(v, node, AT_NAMES);
    for (Py_ssize_t i = 0; i < list_size(names); i++) {
        PyObject *alias = PyList_GetItem(names, i);
        text_utf8(node_get(v, alias, AT_NAME), full, sizeof(full));
        find_import(v, node, full);
        import_as(v, alias, full, false);
    }
}

/* Names of one import statement, from a module. */
static void
import_from(struct validator *v, PyObject *node, PyObject *alias, const char *module)
{
    char name[NAME_BYTES_MAX], full[2 * NAME_BYTES_MAX];
    text_utf8(node_get(v, alias, AT_NAME), name, sizeof(name));
    if (strcmp(name, "*") == 0) {
        scope_star(v, canonical_module(module));
        return;
    }
    snprintf(full, sizeof(full), "%s.%s", canonical_module(module), name);
    const char *known = canonical_module(full);
    import_as(v, alias, known, true);
    const struct check_act *act = check_act_by_name(known);
    if (act && act->when == ACT_NAMED)
        find(v, node, act->rule, "imports %s, which %s", known, act->does);
}

static void
visit_import_from(struct validator *v, PyObject *node)
{
    char module[NAME_BYTES_MAX], full[2 * NAME_BYTES_MAX], name[NAME_BYTES_MAX];
    PyObject *names = node_get(v, node, AT_NAMES);
    text_utf8(node_get(v, node, AT_MODULE), module, sizeof(module));
    bool relative = node_int(v, node, AT_LEVEL) > 0; /* files of the job's own */
    bool denied = relative;
    for (Py_ssize_t i = 0; i < list_size(names); i++) {
        PyObject *alias = PyList_GetItem(names, i);
        text_utf8(node_get(v, alias, AT_NAME), name, sizeof(name));
        snprintf(full, sizeof(full), "%s.%s", module, name);
        uint32_t before = v->sent_of[RULE_IMPORT_DENIED] + v->more_of[RULE_IMPORT_DENIED];
        if (!denied)
            find_import(v, node, module);
        denied = denied || before != v->sent_of[RULE_IMPORT_DENIED] +
                                         v->more_of[RULE_IMPORT_DENIED];
        if (!denied)
            find_import(v, node, full);
        if (relative)
            import_as(v, alias, "(relative)", true);
        else
            import_from(v, node, alias, module);
    }
}

/* --- bindings --- */

static void
visit_assign(struct validator *v, PyObject *node)
{
    const struct value *value = eval(v, node_get(v, node, AT_VALUE));
    PyObject *targets = node_get(v, node, AT_TARGETS);
    for (Py_ssize_t i = 0; i < list_size(targets); i++)
        bind(v, PyList_GetItem(targets, i), value);
}

static void
visit_annotated(struct validator *v, PyObject *node)
{
    PyObject *value = node_get(v, node, AT_VALUE);
    eval(v, node_get(v, node, AT_ANNOTATION));
    if (value)
        bind(v, node_get(v, node, AT_TARGET), eval(v, value));
}

/* In a loop it grows in ways that one look does not tell. */
static void
visit_augmented(struct validator *v, PyObject *node)
{
    PyObject *target = node_get(v, node, AT_TARGET);
    const struct value *value = eval(v, node_get(v, node, AT_VALUE));
    if (node_kind(v, target) != NODE_NAME) {
        eval(v, target);
        return;
    }
    const struct value *old = scope_get(v, node_get(v, target, AT_ID));
    const struct value *made =
        fold_binary(v, node, node_class(v, node_get(v, node, AT_OP)), old, value);
    bind(v, target, v->loop > 0 ? &value_unknown : made);
}

static void
visit_delete(struct validator *v, PyObject *node)
{
    PyObject *targets = node_get(v, node, AT_TARGETS);
    for (Py_ssize_t i = 0; i < list_size(targets); i++)
        bind(v, PyList_GetItem(targets, i), &value_unknown);
}

static void
visit_global(struct validator *v, PyObject *node)
{
    PyObject *names = node_get(v, node, AT_NAMES);
    for (Py_ssize_t i = 0; i < list_size(names); i++)
        scope_mark_global(v, PyList_GetItem(names, i));
}

/* --- functions and classes --- */

static void
bind_parameters(struct validator *v, struct scope *scope, PyObject *arguments,
                const struct value *const *defaults, size_t defaults_n)
{
    static const enum node_attribute lists[] = {AT_POSONLYARGS, AT_ARGS};
    struct scope *outer = v->scope;
    size_t n = 0, at = 0;
    v->scope = scope;
    for (size_t i = 0; i < 2; i++)
        n += (size_t)list_size(node_get(v, arguments, lists[i]));
    for (size_t i = 0; i < 2; i++) {
        PyObject *list = node_get(v, arguments, lists[i]);
        for (Py_ssize_t j = 0; j < list_size(list); j++, at++) {
            /* Defaults belong to the last parameters. */
            size_t from_end = n - at;
            PyObject *name = node_get(v, PyList_GetItem(list, j), AT_ARG);
            if (name)
                scope_set(v, name,
                          from_end <= defaults_n ? defaults[defaults_n - from_end]
                                                 : &value_unknown);
        }
    }
    PyObject *rest[] = {node_get(v, arguments, AT_VARARG),
                        node_get(v, arguments, AT_KWARG)};
    for (size_t i = 0; i < 2; i++)
        if (rest[i] && node_get(v, rest[i], AT_ARG))
            scope_set(v, node_get(v, rest[i], AT_ARG), &value_unknown);
    PyObject *keywords = node_get(v, arguments, AT_KWONLYARGS);
    for (Py_ssize_t i = 0; i < list_size(keywords); i++)
        if (node_get(v, PyList_GetItem(keywords, i), AT_ARG))
            scope_set(v, node_get(v, PyList_GetItem(keywords, i), AT_ARG),
                      &value_unknown);
    v->scope = outer;
}

/* Annotations and defaults are evaluated where the function is made. */
static size_t
visit_arguments(struct validator *v, PyObject *arguments,
                const struct value *defaults[ARGUMENTS_MAX])
{
    static const enum node_attribute lists[] = {AT_POSONLYARGS, AT_ARGS, AT_KWONLYARGS};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        PyObject *list = node_get(v, arguments, lists[i]);
        for (Py_ssize_t j = 0; j < list_size(list); j++)
            eval(v, node_get(v, PyList_GetItem(list, j), AT_ANNOTATION));
    }
    PyObject *list = node_get(v, arguments, AT_DEFAULTS);
    Py_ssize_t n = list_size(list);
    for (Py_ssize_t i = 0; i < n; i++) {
        const struct value *value = eval(v, PyList_GetItem(list, i));
        if (i < ARGUMENTS_MAX)
            defaults[i] = value;
    }
    visit_any(v, node_get(v, arguments, AT_KW_DEFAULTS));
    return n <= ARGUMENTS_MAX ? (size_t)n : 0;
}

static void
visit_decorators(struct validator *v, PyObject *node)
{
    PyObject *list = node_get(v, node, AT_DECORATORS);
    for (Py_ssize_t i = 0; i < list_size(list); i++) {
        PyObject *decorator = PyList_GetItem(list, i);
        judge_decorator(v, decorator, eval(v, decorator));
    }
}

void
visit_function(struct validator *v, PyObject *node, bool is_lambda)
{
    const struct value *defaults[ARGUMENTS_MAX];
    PyObject *arguments = node_get(v, node, AT_ARGS), *body = node_get(v, node, AT_BODY);
    if (!is_lambda)
        visit_decorators(v, node);
    size_t defaults_n = arguments ? visit_arguments(v, arguments, defaults) : 0;
    if (!is_lambda)
        eval(v, node_get(v, node, AT_RETURNS));
    struct scope *scope = scope_new(v->scope, SCOPE_FUNCTION);
    if (!scope) {
        v->no_memory = true;
        return;
    }
    if (arguments)
        bind_parameters(v, scope, arguments, defaults, defaults_n);
    if (is_lambda) {
        struct scope *outer = v->scope;
        v->scope = scope;
        eval(v, body);
        v->scope = outer;
    } else {
        PyObject *name = node_get(v, node, AT_NAME);
        if (name)
            scope_set(v, name, &value_unknown);
        if (body)
            later_add(v, body, scope, true);
    }
    scope_release(scope);
}

static void
visit_class(struct validator *v, PyObject *node)
{
    visit_decorators(v, node);
    visit_any(v, node_get(v, node, AT_BASES));
    visit_any(v, node_get(v, node, AT_KEYWORDS));
    struct scope *scope = scope_new(v->scope, SCOPE_CLASS), *outer = v->scope;
    if (!scope) {
        v->no_memory = true;
        return;
    }
    PyObject *name = node_get(v, node, AT_NAME);
    if (name)
        scope_set(v, name, value_of_kind(VALUE_CLASS));
    v->scope = scope;
    visit_list(v, node_get(v, node, AT_BODY));
    v->scope = outer;
    scope_release(scope);
}

/* --- loops and conditions --- */

static void
visit_for(struct validator *v, PyObject *node)
{
    const struct value *list = eval(v, node_get(v, node, AT_ITER));
    const struct value *item = &value_unknown;
    if (list->kind == VALUE_ITEMS && list->n <= ONE_OF_MAX)
        for (uint32_t i = 0; i < list->n; i++)
            item = value_either(v, item, list->items[i]);
    bind(v, node_get(v, node, AT_TARGET), item);
    visit_branch(v, node_get(v, node, AT_BODY), true);
    visit_branch(v, node_get(v, node, AT_ORELSE), false);
}

/* One statement that only allocates: list.append(constant), text += constant. */
static bool
only_allocates(struct validator *v, PyObject *statement)
{
    static const char *const methods[] = {"append", "extend", "add", "write"};
    enum node_kind kind = node_kind(v, statement);
    PyObject *value = node_get(v, statement, AT_VALUE);
    if (kind == NODE_AUG_ASSIGN) {
        bool grows = strcmp(node_class(v, node_get(v, statement, AT_OP)), "Add") == 0 ||
                     strcmp(node_class(v, node_get(v, statement, AT_OP)), "Mult") == 0;
        const struct value *what = eval(v, value);
        return grows && (value_string(what) || what->kind == VALUE_ITEMS);
    }
    if (kind != NODE_EXPR || node_kind(v, value) != NODE_CALL)
        return false;
    PyObject *func = node_get(v, value, AT_FUNC), *args = node_get(v, value, AT_ARGS);
    PyObject *name =
        node_kind(v, func) == NODE_ATTRIBUTE ? node_get(v, func, AT_ATTR) : NULL;
    bool known = false;
    for (size_t i = 0; name && i < sizeof(methods) / sizeof(*methods); i++)
        known = known || PyUnicode_CompareWithASCIIString(name, methods[i]) == 0;
    if (!known || list_size(args) != 1)
        return false;
    const struct value *what = eval(v, PyList_GetItem(args, 0));
    enum node_kind shape = node_kind(v, PyList_GetItem(args, 0));
    return what->kind == VALUE_CONSTANT || what->kind == VALUE_ITEMS ||
           shape == NODE_CONSTANT || shape == NODE_BIN_OP;
}

static bool
is_fork(struct validator *v, PyObject *statement)
{
    PyObject *value =
        node_kind(v, statement) == NODE_EXPR ? node_get(v, statement, AT_VALUE) : NULL;
    PyObject *func =
        node_kind(v, value) == NODE_CALL ? node_get(v, value, AT_FUNC) : NULL;
    return func && value_is(eval(v, func), "os.fork");
}

static bool
is_true(struct validator *v, PyObject *test)
{
    PyObject *value =
        node_kind(v, test) == NODE_CONSTANT ? node_get(v, test, AT_VALUE) : NULL;
    return value &&
           (value == Py_True || (PyLong_Check(value) && PyObject_IsTrue(value) == 1));
}

/* while True: nothing but growing, or forking. */
static void
judge_endless(struct validator *v, PyObject *node, PyObject *body)
{
    enum { STATEMENTS = 8 };
    Py_ssize_t n = list_size(body), grows = 0, forks = 0, passes = 0;
    if (n > STATEMENTS || !is_true(v, node_get(v, node, AT_TEST)))
        return;
    v->quiet++; /* the statements are visited again, as any */
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *statement = PyList_GetItem(body, i);
        grows += only_allocates(v, statement);
        forks += is_fork(v, statement);
        passes += node_kind(v, statement) == NODE_PASS;
    }
    v->quiet--;
    if (n > 0 && grows + forks + passes == n && grows + forks > 0)
        find(v, node, RULE_RESOURCE_BOMB, "a loop without an end that only %s",
             grows > 0 ? "allocates memory" : "forks");
}

static void
visit_while(struct validator *v, PyObject *node)
{
    PyObject *body = node_get(v, node, AT_BODY);
    eval(v, node_get(v, node, AT_TEST));
    judge_endless(v, node, body);
    visit_branch(v, body, true);
    visit_branch(v, node_get(v, node, AT_ORELSE), false);
}

static void
visit_if(struct validator *v, PyObject *node)
{
    eval(v, node_get(v, node, AT_TEST));
    visit_branch(v, node_get(v, node, AT_BODY), false);
    visit_branch(v, node_get(v, node, AT_ORELSE), false);
}

static void
visit_try(struct validator *v, PyObject *node)
{
    visit_list(v, node_get(v, node, AT_BODY));
    visit_branch(v, node_get(v, node, AT_HANDLERS), false);
    visit_branch(v, node_get(v, node, AT_ORELSE), false);
    visit_list(v, node_get(v, node, AT_FINALBODY));
}

static void
visit_definition(struct validator *v, PyObject *node)
{
    visit_function(v, node, false);
}

static void
visit_with_item(struct validator *v, PyObject *node)
{
    eval(v, node_get(v, node, AT_CONTEXT_EXPR));
    bind(v, node_get(v, node, AT_OPTIONAL_VARS), &value_unknown);
}

static void
visit_handler(struct validator *v, PyObject *node)
{
    if (node_get(v, node, AT_NAME))
        scope_set(v, node_get(v, node, AT_NAME), &value_unknown);
    visit_children(v, node);
}

/* What is not here is an expression. */
static void (*const visits[NODE_KINDS])(struct validator *v, PyObject *node) = {
    [NODE_OTHER] = visit_children, /* with, match, operators… */
    [NODE_ANN_ASSIGN] = visit_annotated,
    [NODE_ASSIGN] = visit_assign,
    [NODE_ASYNC_FOR] = visit_for,
    [NODE_ASYNC_FUNCTION_DEF] = visit_definition,
    [NODE_AUG_ASSIGN] = visit_augmented,
    [NODE_CLASS_DEF] = visit_class,
    [NODE_DELETE] = visit_delete,
    [NODE_EXCEPT_HANDLER] = visit_handler,
    [NODE_EXPR] = visit_children,
    [NODE_FOR] = visit_for,
    [NODE_FUNCTION_DEF] = visit_definition,
    [NODE_GLOBAL] = visit_global,
    [NODE_IF] = visit_if,
    [NODE_IMPORT] = visit_import,
    [NODE_IMPORT_FROM] = visit_import_from,
    [NODE_RETURN] = visit_children,
    [NODE_TRY] = visit_try,
    [NODE_TRY_STAR] = visit_try,
    [NODE_WHILE] = visit_while,
    [NODE_WITH_ITEM] = visit_with_item,
};

void
visit_statement(struct validator *v, PyObject *node)
{
    if (v->depth >= DEPTH_MAX) {
        if (v->quiet == 0)
            later_add(v, node, v->scope, false);
        return;
    }
    void (*visit)(struct validator *, PyObject *) = visits[node_kind(v, node)];
    v->depth++;
    if (visit)
        visit(v, node);
    else
        eval(v, node);
    v->depth--;
}
