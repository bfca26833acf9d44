/* Values that are known without running anything, in memory that goes at once in the end. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/validate_parts.h"

enum { BLOCK_BYTES = 32 * 1024, ALIGNMENT = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ALIGNMENT) char bytes[];
};

const struct value value_unknown = {.kind = VALUE_UNKNOWN};
static const struct value bare_kinds[] = {
    [VALUE_UNKNOWN] = {.kind = VALUE_UNKNOWN}, [VALUE_CLASS] = {.kind = VALUE_CLASS},
    [VALUE_TYPE] = {.kind = VALUE_TYPE},       [VALUE_DECODED] = {.kind = VALUE_DECODED},
    [VALUE_GLOBAL] = {.kind = VALUE_GLOBAL},
};

const struct value *
value_of_kind(uint8_t kind)
{
    return &bare_kinds[kind];
}

void *
arena_take(struct validator *v, size_t bytes)
{
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct arena_block *block = v->arena;
    if (!block || block->size - block->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        if (v->arena_bytes + size > ARENA_BYTES_MAX)
            return NULL;
        block = malloc(sizeof(*block) + size);
        if (!block)
            return NULL;
        *block = (struct arena_block){.next = v->arena, .size = size};
        v->arena = block;
        v->arena_bytes += size;
    }
    void *taken = block->bytes + block->used;
    block->used += bytes;
    return taken;
}

void
arena_done(struct validator *v)
{
    while (v->arena) {
        struct arena_block *next = v->arena->next;
        free(v->arena);
        v->arena = next;
    }
}

static const struct value *
keep(struct validator *v, const struct value *value)
{
    struct value *kept = arena_take(v, sizeof(*kept));
    if (!kept)
        return &value_unknown;
    *kept = *value;
    return kept;
}

const struct value *
value_constant(struct validator *v, PyObject *borrowed)
{
    return borrowed ? keep(v, &(struct value){.kind = VALUE_CONSTANT, .object = borrowed})
                    : &value_unknown;
}

/* The size that memory knows; of a str, its characters. */
static size_t
size_of(PyObject *object)
{
    Py_ssize_t n = 0;
    if (PyUnicode_Check(object) || PyBytes_Check(object))
        n = PyObject_Size(object);
    return n > 0 ? (size_t)n : 0;
}

const struct value *
value_made(struct validator *v, PyObject *owned, uint8_t kind, bool prefix)
{
    if (!owned) {
        PyErr_Clear(); /* what cannot be folded raises where it is run */
        return &value_unknown;
    }
    size_t n = size_of(owned);
    bool fits = n <= FOLD_BYTES_MAX && v->fold_bytes + n <= FOLD_BUDGET_BYTES &&
                PyList_Append(v->owned, owned) == 0;
    Py_DECREF(owned);
    if (!fits) {
        PyErr_Clear();
        return &value_unknown;
    }
    v->fold_bytes += n;
    return keep(v, &(struct value){.kind = kind, .object = owned, .prefix = prefix});
}

const struct value *
value_name(struct validator *v, const char *name)
{
    size_t n = strlen(name);
    char *copy = n < NAME_BYTES_MAX ? arena_take(v, n + 1) : NULL;
    if (!copy)
        return &value_unknown;
    memcpy(copy, name, n + 1);
    return keep(v, &(struct value){.kind = VALUE_NAME, .name = copy});
}

const struct value *
value_items(struct validator *v, uint8_t kind, const struct value *const *items, size_t n)
{
    const struct value **copy = arena_take(v, (n > 0 ? n : 1) * sizeof(*copy));
    if (!copy)
        return &value_unknown;
    for (size_t i = 0; i < n; i++)
        copy[i] = items[i];
    return keep(v, &(struct value){.kind = kind, .items = copy, .n = (uint32_t)n});
}

const struct value *
value_method(struct validator *v, const struct value *self, const char *name)
{
    const struct value *method = value_items(v, VALUE_METHOD, &self, 1);
    size_t n = strlen(name);
    char *copy = n < NAME_BYTES_MAX ? arena_take(v, n + 1) : NULL;
    if (!copy || method->kind != VALUE_METHOD)
        return &value_unknown;
    memcpy(copy, name, n + 1);
    struct value named = *method;
    named.name = copy;
    return keep(v, &named);
}

const struct value *
value_more(struct validator *v, const struct value *items)
{
    struct value more = *items;
    more.prefix = true;
    return items->kind == VALUE_ITEMS ? keep(v, &more) : &value_unknown;
}

static bool
same(const struct value *a, const struct value *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->prefix != b->prefix)
        return false;
    if (a->kind == VALUE_NAME)
        return strcmp(a->name, b->name) == 0;
    return a->object && a->object == b->object;
}

static size_t
add_all(const struct value *value, const struct value **list, size_t n)
{
    size_t many = value->kind == VALUE_ONE_OF ? value->n : 1;
    for (size_t i = 0; i < many && n < ONE_OF_MAX; i++) {
        const struct value *item = value->kind == VALUE_ONE_OF ? value->items[i] : value;
        bool known = item->kind == VALUE_UNKNOWN || item->kind == VALUE_GLOBAL;
        for (size_t j = 0; j < n && !known; j++)
            known = same(list[j], item);
        if (!known)
            list[n++] = item;
    }
    return n;
}

/* What may be either: the unknown is left out, for nothing can be said of it. */
const struct value *
value_either(struct validator *v, const struct value *a, const struct value *b)
{
    const struct value *list[ONE_OF_MAX];
    size_t n = add_all(b, list, add_all(a, list, 0));
    if (n == 0)
        return &value_unknown;
    return n == 1 ? list[0] : value_items(v, VALUE_ONE_OF, list, n);
}

PyObject *
value_text(const struct value *value)
{
    bool is =
        value->kind == VALUE_CONSTANT && !value->prefix && PyUnicode_Check(value->object);
    return is ? value->object : NULL;
}

PyObject *
value_string(const struct value *value)
{
    bool is = value->kind == VALUE_CONSTANT && !value->prefix &&
              (PyUnicode_Check(value->object) || PyBytes_Check(value->object));
    return is ? value->object : NULL;
}

bool
value_int(const struct value *value, long long *ret)
{
    if (value->kind != VALUE_CONSTANT || !PyLong_Check(value->object))
        return false;
    int overflow;
    *ret = PyLong_AsLongLongAndOverflow(value->object, &overflow);
    PyErr_Clear();
    return overflow == 0;
}

const char *
value_dotted(const struct value *value)
{
    return value->kind == VALUE_NAME ? value->name : NULL;
}

bool
value_is(const struct value *value, const char *dotted)
{
    return value->kind == VALUE_NAME && strcmp(value->name, dotted) == 0;
}

void
text_utf8(PyObject *text, char *ret, size_t n)
{
    PyObject *bytes = NULL;
    ret[0] = '\0';
    if (text && PyUnicode_Check(text))
        bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    else if (text && PyBytes_Check(text))
        bytes = Py_BuildValue("O", text);
    if (bytes) {
        size_t length = (size_t)PyBytes_Size(bytes);
        length = length < n - 1 ? length : n - 1;
        memcpy(ret, PyBytes_AsString(bytes), length);
        ret[length] = '\0';
    }
    PyErr_Clear();
    Py_XDECREF(bytes);
}
