/* Expressions: each node once, its value from those of its parts. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>

#include "guest/validate_parts.h"

void
visit_any(struct validator *v, PyObject *object)
{
    if (!object)
        return;
    if (PyList_Check(object)) {
        visit_list(v, object);
        return;
    }
    enum node_kind kind = node_kind(v, object);
    if (kind != NODE_NONE)
        visit_statement(v, object);
}

void
visit_children(struct validator *v, PyObject *node)
{
    PyObject *fields = node_type(v, node)->fields;
    Py_ssize_t n = fields ? PyTuple_Size(fields) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *child = PyObject_GetAttr(node, PyTuple_GetItem(fields, i));
        if (!child) {
            PyErr_Clear();
            continue;
        }
        Py_DECREF(child); /* the node keeps it */
        if (child != Py_None)
            visit_any(v, child);
    }
}

static const struct value *
eval_name(struct validator *v, PyObject *node)
{
    PyObject *name = node_get(v, node, AT_ID);
    if (!name || strcmp(node_class(v, node_get(v, node, AT_CONTEXT)), "Load") != 0)
        return &value_unknown;
    const struct value *value = scope_get(v, name);
    judge_name(v, node, value);
    if (value_is(value, "builtins") &&
        PyUnicode_CompareWithASCIIString(name, "__builtins__") == 0)
        find_act(v, node, "__builtins__", RULE_INTROSPECTION, "holds all builtins");
    return value;
}

static const struct value *
eval_attribute(struct validator *v, PyObject *node)
{
    char attribute[NAME_BYTES_MAX];
    PyObject *object = node_get(v, node, AT_VALUE);
    const struct value *base = eval(v, object);
    text_utf8(node_get(v, node, AT_ATTR), attribute, sizeof(attribute));
    if (strcmp(node_class(v, node_get(v, node, AT_CONTEXT)), "Load") != 0) {
        judge_store(v, node, base, attribute);
        return &value_unknown;
    }
    return apply_attribute(v, node, base, attribute, node_kind(v, object) == NODE_NAME);
}

static const struct value *
eval_subscript(struct validator *v, PyObject *node)
{
    char key[NAME_BYTES_MAX];
    const struct value *base = eval(v, node_get(v, node, AT_VALUE));
    PyObject *slice = node_get(v, node, AT_SLICE);
    bool load = strcmp(node_class(v, node_get(v, node, AT_CONTEXT)), "Load") == 0;
    if (node_kind(v, slice) == NODE_SLICE) {
        static const enum node_attribute ends[] = {AT_LOWER, AT_UPPER, AT_STEP};
        const struct value *values[3] = {NULL, NULL, NULL};
        for (size_t i = 0; i < 3; i++)
            if (node_get(v, slice, ends[i]))
                values[i] = eval(v, node_get(v, slice, ends[i]));
        return load ? fold_slice(v, base, values[0], values[1], values[2])
                    : &value_unknown;
    }
    const struct value *index = eval(v, slice);
    if (load)
        return fold_subscript(v, node, base, index);
    text_utf8(value_text(index), key, sizeof(key));
    if (key[0] != '\0')
        judge_store(v, node, base, key);
    return &value_unknown;
}

static void
gather_keywords(struct validator *v, PyObject *node, struct call *call)
{
    PyObject *keywords = node_get(v, node, AT_KEYWORDS);
    for (Py_ssize_t i = 0; i < list_size(keywords); i++) {
        PyObject *keyword = PyList_GetItem(keywords, i);
        PyObject *name = node_get(v, keyword, AT_ARG);
        const struct value *value = eval(v, node_get(v, keyword, AT_VALUE));
        if (!name || call->keywords_n == ARGUMENTS_MAX)
            continue;
        call->keywords[call->keywords_n].name = name;
        call->keywords[call->keywords_n++].value = value;
    }
}

static const struct value *
eval_call(struct validator *v, PyObject *node)
{
    struct call call = {.node = node, .func = eval(v, node_get(v, node, AT_FUNC))};
    PyObject *args = node_get(v, node, AT_ARGS);
    bool starred = false;
    for (Py_ssize_t i = 0; i < list_size(args); i++) {
        PyObject *arg = PyList_GetItem(args, i);
        const struct value *value = eval(v, arg);
        starred = starred || node_kind(v, arg) == NODE_STARRED;
        if (i < ARGUMENTS_MAX) /* behind a star nobody knows which argument it is */
            call.args[i] = starred ? &value_unknown : value;
        call.args_n++;
    }
    gather_keywords(v, node, &call);
    return call_judge(v, &call);
}

static const struct value *
eval_items(struct validator *v, PyObject *node)
{
    PyObject *list = node_get(v, node, AT_ELTS);
    Py_ssize_t n = list_size(list);
    bool kept = n <= ITEMS_MAX;
    const struct value **items =
        kept ? arena_take(v, ((size_t)n + 1) * sizeof(*items)) : NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyList_GetItem(list, i);
        /* A long list of numbers is data: its items need no values. */
        if (!items && node_kind(v, item) == NODE_CONSTANT)
            continue;
        const struct value *value = eval(v, item);
        kept = kept && node_kind(v, item) != NODE_STARRED;
        if (items)
            items[i] = value;
    }
    return items && kept ? value_items(v, VALUE_ITEMS, items, (size_t)n) : &value_unknown;
}

/* f"…": the beginning is known as far as its parts are. */
static const struct value *
eval_joined(struct validator *v, PyObject *node)
{
    PyObject *values = node_get(v, node, AT_VALUES);
    const struct value *joined = NULL;
    for (Py_ssize_t i = 0; i < list_size(values); i++) {
        PyObject *part = PyList_GetItem(values, i);
        bool constant = node_kind(v, part) == NODE_CONSTANT;
        const struct value *value =
            eval(v, constant ? part : node_get(v, part, AT_VALUE));
        PyObject *spec = constant ? NULL : node_get(v, part, AT_FORMAT_SPEC);
        if (spec)
            visit_any(v, spec);
        long long number;
        bool converted = !constant && node_int(v, part, AT_CONVERSION) > 0 &&
                         node_int(v, part, AT_CONVERSION) != 's';
        if (value_int(value, &number) && !spec)
            value = value_made(v, PyUnicode_FromFormat("%lld", number), VALUE_CONSTANT,
                               false);
        if (value->kind == VALUE_PATH)
            value = value_made(v, Py_BuildValue("O", value->object), VALUE_CONSTANT,
                               value->prefix);
        if (spec || converted)
            value = &value_unknown;
        joined = joined ? fold_concat(v, joined, value)
                 : value->kind == VALUE_CONSTANT && PyUnicode_Check(value->object)
                     ? value
                     : &value_unknown;
    }
    return joined ? joined : &value_unknown;
}

static const struct value *
eval_either(struct validator *v, PyObject *node)
{
    PyObject *values = node_get(v, node, AT_VALUES);
    const struct value *made = &value_unknown;
    for (Py_ssize_t i = 0; i < list_size(values); i++)
        made = value_either(v, made, eval(v, PyList_GetItem(values, i)));
    return made;
}

static const struct value *
eval_if(struct validator *v, PyObject *node)
{
    eval(v, node_get(v, node, AT_TEST));
    const struct value *body = eval(v, node_get(v, node, AT_BODY));
    return value_either(v, body, eval(v, node_get(v, node, AT_ORELSE)));
}

static const struct value *
eval_binary(struct validator *v, PyObject *node)
{
    const struct value *left = eval(v, node_get(v, node, AT_LEFT));
    const struct value *right = eval(v, node_get(v, node, AT_RIGHT));
    return fold_binary(v, node, node_class(v, node_get(v, node, AT_OP)), left, right);
}

static const struct value *
eval_unary(struct validator *v, PyObject *node)
{
    long long number;
    const struct value *value = eval(v, node_get(v, node, AT_OPERAND));
    bool minus = strcmp(node_class(v, node_get(v, node, AT_OP)), "USub") == 0;
    if (minus && value_int(value, &number) && number != INT64_MIN)
        return value_made(v, PyLong_FromLongLong(-number), VALUE_CONSTANT, false);
    return &value_unknown;
}

/* --- names that are given values --- */

/* One of the items of what is iterated over. */
static const struct value *
any_item(struct validator *v, const struct value *list)
{
    const struct value *made = &value_unknown;
    if (list->kind == VALUE_ITEMS && list->n <= ONE_OF_MAX)
        for (uint32_t i = 0; i < list->n; i++)
            made = value_either(v, made, list->items[i]);
    return made;
}

/* Part i of a value that is taken apart; of one of several, one of their parts. */
static const struct value *
part_of(struct validator *v, const struct value *value, Py_ssize_t i)
{
    if (value->kind == VALUE_ITEMS)
        return i < (Py_ssize_t)value->n ? value->items[i] : &value_unknown;
    const struct value *made = &value_unknown;
    for (uint32_t j = 0; value->kind == VALUE_ONE_OF && j < value->n; j++)
        if (value->items[j]->kind == VALUE_ITEMS)
            made = value_either(v, made, part_of(v, value->items[j], i));
    return made;
}

void
bind(struct validator *v, PyObject *target, const struct value *value)
{
    PyObject *list, *name;
    bool straight = true;
    if (v->depth >= DEPTH_MAX || !target)
        return;
    v->depth++;
    switch (node_kind(v, target)) {
    case NODE_NAME:
        name = node_get(v, target, AT_ID);
        if (name)
            scope_set(v, name, value);
        break;
    case NODE_TUPLE:
    case NODE_LIST:
        list = node_get(v, target, AT_ELTS);
        for (Py_ssize_t i = 0; i < list_size(list); i++) {
            PyObject *item = PyList_GetItem(list, i);
            straight = straight && node_kind(v, item) != NODE_STARRED;
            bind(v, item, straight ? part_of(v, value, i) : &value_unknown);
        }
        break;
    case NODE_STARRED:
        bind(v, node_get(v, target, AT_VALUE), &value_unknown);
        break;
    default:
        eval(v, target);
        break;
    }
    v->depth--;
}

/* --- comprehensions --- */

/* Numbers that become characters: the expression again for each item, within a budget. */
static const struct value *
repeat(struct validator *v, PyObject *element, PyObject *target, const struct value *list)
{
    bool fits = list->kind == VALUE_ITEMS && !list->prefix && list->n > 0 &&
                list->n <= REPEAT_ITEMS_MAX && v->quiet == 0 &&
                v->repeats_n < REPEATS_MAX;
    const struct value **items =
        fits ? arena_take(v, (list->n + 1) * sizeof(*items)) : NULL;
    if (!items)
        return &value_unknown;
    bool useful = true;
    uint32_t n = 0;
    v->quiet++;
    for (; n < list->n && useful && v->repeats_n < REPEATS_MAX; n++) {
        bind(v, target, list->items[n]);
        items[n] = eval(v, element);
        useful = items[n]->kind != VALUE_UNKNOWN;
    }
    v->quiet--;
    bind(v, target, any_item(v, list));
    return useful && n == list->n ? value_items(v, VALUE_ITEMS, items, n)
                                  : &value_unknown;
}

static const struct value *
eval_comprehension(struct validator *v, PyObject *node, PyObject *element)
{
    enum { ITEM_BYTES = 8 };
    struct scope *inner = scope_new(v->scope, SCOPE_INNER), *outer = v->scope;
    uint8_t branch = v->branch;
    const struct value *first = &value_unknown, *made = &value_unknown;
    PyObject *generators = node_get(v, node, AT_GENERATORS), *target = NULL;
    Py_ssize_t n = list_size(generators), filters = 0;
    long long count;
    if (!inner) {
        v->no_memory = true;
        return &value_unknown;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *generator = PyList_GetItem(generators, i);
        const struct value *list = eval(v, node_get(v, generator, AT_ITER));
        v->scope = inner; /* only the first list is made outside */
        v->branch = 0;
        target = node_get(v, generator, AT_TARGET);
        bind(v, target, any_item(v, list));
        first = i == 0 ? list : first;
        filters += list_size(node_get(v, generator, AT_IFS));
        visit_any(v, node_get(v, generator, AT_IFS));
    }
    if (element) {
        eval(v, element);
        if (n == 1 && filters == 0)
            made = repeat(v, element, target, first);
    } else {
        eval(v, node_get(v, node, AT_KEY));
        eval(v, node_get(v, node, AT_VALUE));
    }
    if (filters == 0 && node_kind(v, node) == NODE_LIST_COMP &&
        range_count(first, &count))
        judge_count(v, node, "a list", (double)count, ITEM_BYTES);
    v->scope = outer;
    v->branch = branch;
    scope_release(inner);
    return made;
}

static const struct value *
eval_named(struct validator *v, PyObject *node)
{
    const struct value *value = eval(v, node_get(v, node, AT_VALUE));
    bind(v, node_get(v, node, AT_TARGET), value);
    return value;
}

static const struct value *
eval_constant(struct validator *v, PyObject *node)
{
    PyObject *object = node_get(v, node, AT_VALUE);
    bool kept = object && (PyUnicode_Check(object) || PyBytes_Check(object) ||
                           (PyLong_Check(object) && !PyBool_Check(object)));
    return kept ? value_constant(v, object) : &value_unknown;
}

static const struct value *
eval_kind(struct validator *v, PyObject *node)
{
    switch (node_kind(v, node)) {
    case NODE_CONSTANT:
        return eval_constant(v, node);
    case NODE_NAME:
        return eval_name(v, node);
    case NODE_ATTRIBUTE:
        return eval_attribute(v, node);
    case NODE_CALL:
        return eval_call(v, node);
    case NODE_BIN_OP:
        return eval_binary(v, node);
    case NODE_UNARY_OP:
        return eval_unary(v, node);
    case NODE_SUBSCRIPT:
        return eval_subscript(v, node);
    case NODE_JOINED_STR:
        return eval_joined(v, node);
    case NODE_TUPLE:
    case NODE_LIST:
    case NODE_SET:
        return eval_items(v, node);
    case NODE_BOOL_OP:
        return eval_either(v, node);
    case NODE_IF_EXP:
        return eval_if(v, node);
    case NODE_NAMED_EXPR:
        return eval_named(v, node);
    case NODE_STARRED:
        eval(v, node_get(v, node, AT_VALUE));
        return &value_unknown;
    case NODE_LAMBDA:
        visit_function(v, node, true);
        return &value_unknown;
    case NODE_LIST_COMP:
    case NODE_SET_COMP:
    case NODE_GENERATOR_EXP:
        return eval_comprehension(v, node, node_get(v, node, AT_ELT));
    case NODE_DICT_COMP:
        return eval_comprehension(v, node, NULL);
    default:
        visit_children(v, node);
        return &value_unknown;
    }
}

const struct value *
eval(struct validator *v, PyObject *node)
{
    if (!node)
        return &value_unknown;
    if (v->depth >= DEPTH_MAX) {
        if (v->quiet == 0)
            later_add(v, node, v->scope, false);
        return &value_unknown;
    }
    if (v->quiet > 0 && ++v->repeats_n > REPEATS_MAX)
        return &value_unknown;
    v->depth++;
    const struct value *value = eval_kind(v, node);
    v->depth--;
    return value;
}
