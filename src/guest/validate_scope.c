/*
 * Which value a name has where it is used. Straight-line code overwrites; under a condition or in
 * a loop a name may have either value. Bodies of functions are looked at when the scope around
 * them is whole, as they run later than it.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/validate_parts.h"

struct scope *
scope_new(struct scope *parent, enum scope_kind kind)
{
    struct scope *scope = calloc(1, sizeof(*scope));
    if (!scope)
        return NULL;
    *scope = (struct scope){.parent = parent, .users = 1, .kind = (uint8_t)kind};
    if (parent)
        parent->users++;
    return scope;
}

void
scope_release(struct scope *scope)
{
    while (scope && --scope->users == 0) {
        struct scope *parent = scope->parent;
        free(scope->table);
        free(scope);
        scope = parent;
    }
}

static struct binding *
slot(struct binding *table, uint32_t capacity, PyObject *name)
{
    size_t at = ((uintptr_t)name >> 4) * 2654435761U;
    while (table[at & (capacity - 1)].name && table[at & (capacity - 1)].name != name)
        at++;
    return &table[at & (capacity - 1)];
}

static bool
make_room(struct scope *scope)
{
    enum { FIRST = 8 };
    if (scope->capacity > 0 && scope->n * 4 < scope->capacity * 3)
        return true;
    uint32_t capacity = scope->capacity > 0 ? scope->capacity * 2 : FIRST;
    struct binding *table = calloc(capacity, sizeof(*table));
    if (!table)
        return false;
    for (uint32_t i = 0; i < scope->capacity; i++)
        if (scope->table[i].name)
            *slot(table, capacity, scope->table[i].name) = scope->table[i];
    free(scope->table);
    scope->table = table;
    scope->capacity = capacity;
    return true;
}

static struct scope *
module_of(struct scope *scope)
{
    while (scope->parent)
        scope = scope->parent;
    return scope;
}

static const struct value *
find_in(const struct scope *scope, PyObject *name)
{
    return scope->capacity > 0 ? slot(scope->table, scope->capacity, name)->value : NULL;
}

/* The parser interns identifiers; so do we with what comes from elsewhere. The tree, or the list
 * of what we made, keeps them. */
static PyObject *
interned(PyObject *name)
{
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    Py_DECREF(name);
    return name;
}

static void
put(struct validator *v, struct scope *scope, PyObject *name, const struct value *value,
    bool may_be_old)
{
    if (!make_room(scope)) {
        v->no_memory = true;
        return;
    }
    struct binding *binding = slot(scope->table, scope->capacity, name);
    if (!binding->name) {
        scope->n++;
        *binding = (struct binding){name, value};
        return;
    }
    binding->value = may_be_old ? value_either(v, binding->value, value) : value;
}

void
scope_set(struct validator *v, PyObject *name, const struct value *value)
{
    name = interned(name);
    struct scope *scope = v->scope;
    const struct value *old = find_in(scope, name);
    if (old && old->kind == VALUE_GLOBAL) {
        put(v, module_of(scope), name, value, true);
        return;
    }
    put(v, scope, name, value, v->branch > 0);
}

void
scope_mark_global(struct validator *v, PyObject *name)
{
    if (v->scope->parent)
        put(v, v->scope, interned(name), value_of_kind(VALUE_GLOBAL), false);
}

void
scope_star(struct validator *v, const char *module)
{
    enum { MOST = sizeof(v->scope->stars) / sizeof(*v->scope->stars) };
    const struct value *name = value_name(v, module);
    if (v->scope->stars_n < MOST && name->name)
        v->scope->stars[v->scope->stars_n++] = name->name;
}

/* `from os import *`: whatever os is known to hold. */
static const struct value *
from_stars(struct validator *v, const struct scope *scope, const char *name)
{
    char dotted[2 * NAME_BYTES_MAX];
    for (size_t i = 0; i < scope->stars_n; i++) {
        snprintf(dotted, sizeof(dotted), "%s.%s", scope->stars[i], name);
        if (check_act_by_name(dotted))
            return value_name(v, dotted);
    }
    return NULL;
}

const struct value *
scope_get(struct validator *v, PyObject *name)
{
    char text[NAME_BYTES_MAX], dotted[NAME_BYTES_MAX + sizeof("builtins.")];
    const struct value *value = NULL;
    struct scope *scope = v->scope;
    name = interned(name);
    for (; scope && !value; scope = scope->parent) {
        /* The names of a class body are not those of the functions in it. */
        if (scope->kind == SCOPE_CLASS && scope != v->scope)
            continue;
        value = find_in(scope, name);
        if (value && value->kind == VALUE_GLOBAL)
            value = find_in(module_of(scope), name);
    }
    if (value)
        return value;
    text_utf8(name, text, sizeof(text));
    for (scope = v->scope; scope && !value; scope = scope->parent)
        value = from_stars(v, scope, text);
    if (value)
        return value;
    if (strcmp(text, "__builtins__") == 0)
        return value_name(v, "builtins");
    snprintf(dotted, sizeof(dotted), "builtins.%s", text);
    return value_name(v, dotted);
}

void
later_add(struct validator *v, PyObject *node, struct scope *scope, bool is_list)
{
    enum { FIRST = 64 };
    if (v->later_n == v->later_capacity) {
        size_t capacity = v->later_capacity > 0 ? v->later_capacity * 2 : FIRST;
        struct later *list = realloc(v->later, capacity * sizeof(*list));
        if (!list) {
            v->no_memory = true;
            return;
        }
        v->later = list;
        v->later_capacity = capacity;
    }
    scope->users++;
    v->later[v->later_n++] = (struct later){
        node, scope, v->outer, is_list, is_list ? 0 : v->branch, is_list ? 0 : v->loop};
}
