/*
 * What an expression of constants is, worked out on CPython's own objects of exact builtin types:
 * no code of the program runs. Sizes are looked at before anything is made.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>

#include "guest/validate_parts.h"

enum {
    POWER_BITS_MAX = 1 << 26, /* an int of 8 MiB takes CPython seconds to make */
    FORMAT_BYTES_MAX = 4096,
    FORMAT_DIGITS_MAX = 4, /* "%99999d" is no format that we make */
    POINTER_BYTES = 8,
    SIZE_BYTES = 40,
};

static size_t
length_of(PyObject *object)
{
    Py_ssize_t n = object ? PyObject_Size(object) : 0;
    PyErr_Clear();
    return n > 0 ? (size_t)n : 0;
}

/* A str, whole or its beginning. */
static PyObject *
text_or_prefix(const struct value *value)
{
    bool is = value->kind == VALUE_CONSTANT && PyUnicode_Check(value->object);
    return is ? value->object : NULL;
}

const struct value *
fold_concat(struct validator *v, const struct value *left, const struct value *right)
{
    PyObject *a = text_or_prefix(left), *b = text_or_prefix(right);
    if (left->prefix && a)
        return left;
    if (a && b && length_of(a) + length_of(b) <= FOLD_BYTES_MAX)
        return value_made(v, PyUnicode_Concat(a, b), VALUE_CONSTANT, right->prefix);
    if (a && length_of(a) > 0) {
        Py_INCREF(a);
        return value_made(v, a, VALUE_CONSTANT, true);
    }
    return &value_unknown;
}

static const struct value *
fold_add(struct validator *v, const struct value *left, const struct value *right)
{
    PyObject *a = value_string(left), *b = value_string(right);
    long long x, y, sum;
    if (value_int(left, &x) && value_int(right, &y) &&
        !__builtin_add_overflow(x, y, &sum))
        return value_made(v, PyLong_FromLongLong(sum), VALUE_CONSTANT, false);
    if (a && b && PyBytes_Check(a) && PyBytes_Check(b) &&
        length_of(a) + length_of(b) <= FOLD_BYTES_MAX)
        return value_made(v, PySequence_Concat(a, b), VALUE_CONSTANT, false);
    if (left->kind == VALUE_ITEMS && right->kind != VALUE_ITEMS)
        return value_more(v, left);
    if (left->kind == VALUE_ITEMS && left->prefix)
        return left;
    if (left->kind == VALUE_ITEMS && left->n + right->n <= ARGUMENTS_MAX) {
        const struct value *items[ARGUMENTS_MAX];
        for (uint32_t i = 0; i < left->n + right->n; i++)
            items[i] = i < left->n ? left->items[i] : right->items[i - left->n];
        const struct value *both = value_items(v, VALUE_ITEMS, items, left->n + right->n);
        return right->prefix ? value_more(v, both) : both;
    }
    return text_or_prefix(left) ? fold_concat(v, left, right) : &value_unknown;
}

/* Digits in a row ask for a width: few make little. */
static bool
is_small_format(PyObject *format)
{
    char text[FORMAT_BYTES_MAX];
    size_t digits = 0;
    if (length_of(format) >= FORMAT_BYTES_MAX / 4)
        return false;
    text_utf8(format, text, sizeof(text));
    for (const char *p = text; *p; p++) {
        digits = *p >= '0' && *p <= '9' ? digits + 1 : 0;
        if (digits > FORMAT_DIGITS_MAX || *p == '*')
            return false;
    }
    return true;
}

static bool
is_plain(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && !value->prefix &&
           (PyUnicode_Check(value->object) || PyLong_Check(value->object)) &&
           length_of(PyUnicode_Check(value->object) ? value->object : NULL) <=
               FORMAT_BYTES_MAX;
}

/* The arguments as a tuple, when all are known. */
static PyObject *
tuple_of(const struct value *const *items, size_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple && i < n; i++) {
        if (!is_plain(items[i])) {
            Py_DECREF(tuple);
            return NULL;
        }
        Py_INCREF(items[i]->object);
        PyTuple_SetItem(tuple, (Py_ssize_t)i, items[i]->object);
    }
    return tuple;
}

/* What stands before the first % or { is known, whatever follows. */
static const struct value *
prefix_before(struct validator *v, PyObject *format, Py_UCS4 mark)
{
    Py_ssize_t end = PyUnicode_FindChar(format, mark, 0, PyUnicode_GetLength(format), 1);
    PyErr_Clear();
    return end > 0
               ? value_made(v, PyUnicode_Substring(format, 0, end), VALUE_CONSTANT, true)
               : &value_unknown;
}

static const struct value *
fold_percent(struct validator *v, const struct value *left, const struct value *right)
{
    PyObject *format = value_text(left);
    long long x, y;
    if (value_int(left, &x) && value_int(right, &y) && x >= 0 && y > 0)
        return value_made(v, PyLong_FromLongLong(x % y), VALUE_CONSTANT, false);
    if (!format || !is_small_format(format))
        return &value_unknown;
    bool whole = right->kind == VALUE_ITEMS && !right->prefix;
    PyObject *arguments = whole ? tuple_of(right->items, right->n) : tuple_of(&right, 1);
    if (!arguments)
        return prefix_before(v, format, '%');
    PyObject *text = PyUnicode_Format(format, arguments);
    Py_DECREF(arguments);
    return value_made(v, text, VALUE_CONSTANT, false);
}

/* "3.5 GiB" */
static void
size_text(double bytes, char text[SIZE_BYTES])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB",
                                        "TiB",   "PiB", "EiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(*units)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, SIZE_BYTES, "%.3g %s", bytes, units[unit]);
}

static void
find_large_number(struct validator *v, PyObject *node, double bits)
{
    char size[SIZE_BYTES];
    size_text(bits / 8, size);
    find(v, node, RULE_RESOURCE_BOMB,
         "a number of at least %s, which takes CPython longer than a run may", size);
}

static void
find_large(struct validator *v, PyObject *node, const char *what, double bytes)
{
    char size[SIZE_BYTES];
    size_text(bytes, size);
    find(v, node, RULE_RESOURCE_BOMB, "%s of %s; the memory limit is %llu MiB", what,
         size, (unsigned long long)(v->check->memory_bytes >> 20));
}

/* [0] * n, "x" * n: made only when small, judged when larger than the cell's memory. */
static const struct value *
fold_repeat(struct validator *v, PyObject *node, const struct value *sequence,
            long long times)
{
    PyObject *string = value_string(sequence);
    bool items = sequence->kind == VALUE_ITEMS;
    size_t n = items ? sequence->n : length_of(string);
    if (times <= 0 || n == 0)
        return &value_unknown;
    double bytes = (double)n * (double)times * (items ? POINTER_BYTES : 1);
    if (bytes > (double)v->check->memory_bytes)
        find_large(v, node, items ? "a list or tuple" : "a text", bytes);
    if (string && bytes <= FOLD_BYTES_MAX)
        return value_made(v, PySequence_Repeat(string, (Py_ssize_t)times), VALUE_CONSTANT,
                          false);
    return &value_unknown;
}

static const struct value *
fold_multiply(struct validator *v, PyObject *node, const struct value *left,
              const struct value *right)
{
    long long x, y, product;
    bool left_int = value_int(left, &x), right_int = value_int(right, &y);
    if (left_int && right_int)
        return !__builtin_mul_overflow(x, y, &product)
                   ? value_made(v, PyLong_FromLongLong(product), VALUE_CONSTANT, false)
                   : &value_unknown;
    if (left_int)
        return fold_repeat(v, node, right, x);
    return right_int ? fold_repeat(v, node, left, y) : &value_unknown;
}

static const struct value *
fold_power(struct validator *v, PyObject *node, const struct value *left,
           const struct value *right)
{
    enum { SAFE_BITS = 62 };
    long long base, exponent, power = 1;
    if (!value_int(left, &base) || !value_int(right, &exponent) || exponent < 0)
        return &value_unknown;
    unsigned long long size =
        base < 0 ? 0ULL - (unsigned long long)base : (unsigned long long)base;
    int width = size > 1 ? 64 - __builtin_clzll(size) : 0; /* bits of the base */
    if ((double)(width - 1) * (double)exponent > POWER_BITS_MAX)
        find_large_number(v, node, (double)(width - 1) * (double)exponent);
    if ((double)width * (double)exponent >= SAFE_BITS)
        return &value_unknown;
    bool small = base >= -1 && base <= 1; /* whose exponent has no end */
    for (long long i = 0; i < (small ? exponent % 2 + (exponent > 0 ? 2 : 0) : exponent);
         i++)
        power *= base;
    return value_made(v, PyLong_FromLongLong(power), VALUE_CONSTANT, false);
}

static const struct value *
fold_shift(struct validator *v, PyObject *node, const struct value *left,
           const struct value *right)
{
    enum { SAFE_SHIFT = 40, SAFE_BASE = 1 << 20 };
    long long base, shift;
    if (!value_int(left, &base) || !value_int(right, &shift) || shift < 0 || base == 0)
        return &value_unknown;
    if (shift > POWER_BITS_MAX)
        find_large_number(v, node, (double)shift);
    if (base > 0 && base <= SAFE_BASE && shift <= SAFE_SHIFT)
        return value_made(v, PyLong_FromLongLong(base << shift), VALUE_CONSTANT, false);
    return &value_unknown;
}

static const struct value *
fold_minus(struct validator *v, const struct value *left, const struct value *right)
{
    long long x, y, difference;
    if (value_int(left, &x) && value_int(right, &y) &&
        !__builtin_sub_overflow(x, y, &difference))
        return value_made(v, PyLong_FromLongLong(difference), VALUE_CONSTANT, false);
    return &value_unknown;
}

static const struct value *
fold_bits(struct validator *v, const char *op, const struct value *left,
          const struct value *right)
{
    static const char flags[] = "os.O_";
    long long x, y;
    const char *a = value_dotted(left), *b = value_dotted(right);
    if (a && b &&
        strncmp(a, flags, sizeof(flags) - 1) == 0) /* the one that writes stays */
        return flag_writes(a) ? left : right;
    if (!value_int(left, &x) || !value_int(right, &y))
        return &value_unknown;
    bool exclusive = strcmp(op, "BitXor") == 0;
    return value_made(v, PyLong_FromLongLong(exclusive ? x ^ y : x | y), VALUE_CONSTANT,
                      false);
}

const struct value *
fold_binary(struct validator *v, PyObject *node, const char *op, const struct value *left,
            const struct value *right)
{
    if (strcmp(op, "Add") == 0)
        return fold_add(v, left, right);
    if (strcmp(op, "Sub") == 0)
        return fold_minus(v, left, right);
    if (strcmp(op, "Mod") == 0)
        return fold_percent(v, left, right);
    if (strcmp(op, "Mult") == 0)
        return fold_multiply(v, node, left, right);
    if (strcmp(op, "Pow") == 0)
        return fold_power(v, node, left, right);
    if (strcmp(op, "LShift") == 0)
        return fold_shift(v, node, left, right);
    if (strcmp(op, "BitXor") == 0 || strcmp(op, "BitOr") == 0)
        return fold_bits(v, op, left, right);
    if (strcmp(op, "Div") == 0 && left->kind == VALUE_PATH)
        return path_join(v, left, right);
    return &value_unknown;
}

/* --- parts of sequences --- */

const struct value *
fold_slice(struct validator *v, const struct value *base, const struct value *lower,
           const struct value *upper, const struct value *step)
{
    const struct value *const ends[] = {lower, upper, step};
    PyObject *objects[3] = {NULL, NULL, NULL};
    PyObject *string = value_string(base);
    long long number;
    if (!string || length_of(string) > FOLD_BYTES_MAX)
        return &value_unknown;
    for (size_t i = 0; i < 3; i++) {
        if (ends[i] && !value_int(ends[i], &number))
            return &value_unknown;
        objects[i] = ends[i] ? ends[i]->object : Py_None;
    }
    PyObject *slice = PySlice_New(objects[0], objects[1], objects[2]);
    PyObject *part = slice ? PyObject_GetItem(string, slice) : NULL;
    Py_XDECREF(slice);
    return value_made(v, part, VALUE_CONSTANT, false);
}

static const struct value *
item_of(struct validator *v, const struct value *base, const struct value *index)
{
    long long at;
    if (!value_int(index, &at))
        return &value_unknown;
    if (base->kind == VALUE_ITEMS) {
        at = at < 0 && !base->prefix ? at + base->n : at;
        return at >= 0 && at < base->n ? base->items[at] : &value_unknown;
    }
    PyObject *string = value_string(base);
    return string ? value_made(v, PySequence_GetItem(string, (Py_ssize_t)at),
                               VALUE_CONSTANT, false)
                  : &value_unknown;
}

/* X.__dict__["name"], vars(X)["name"], sys.modules["os"], globals()["name"]. */
static const struct value *
entry_of(struct validator *v, PyObject *node, const char *dotted, PyObject *key)
{
    static const char dict[] = ".__dict__";
    char text[NAME_BYTES_MAX], owner[NAME_BYTES_MAX];
    text_utf8(key, text, sizeof(text));
    size_t n = strlen(dotted), end = sizeof(dict) - 1;
    if (strcmp(dotted, "sys.modules") == 0)
        return value_name(v, text);
    if (strcmp(dotted, "builtins") == 0) /* __builtins__ is a dict in most modules */
        return apply_attribute(v, node, value_name(v, "builtins"), text, false);
    if (n > end && strcmp(dotted + n - end, dict) == 0) {
        snprintf(owner, sizeof(owner), "%.*s", (int)(n - end), dotted);
        const struct value *module =
            strcmp(owner, "globals()") == 0 ? NULL : value_name(v, owner);
        return module ? apply_attribute(v, node, module, text, false) : scope_get(v, key);
    }
    return &value_unknown;
}

const struct value *
fold_subscript(struct validator *v, PyObject *node, const struct value *base,
               const struct value *index)
{
    const char *dotted = value_dotted(base);
    PyObject *key = value_text(index);
    if (dotted && key)
        return entry_of(v, node, dotted, key);
    if (base->kind == VALUE_TYPE) /* "".__class__.__mro__[1] */
        return value_name(v, "builtins.object");
    if (key) {
        char text[NAME_BYTES_MAX];
        text_utf8(key, text, sizeof(text));
        bool builtins = strcmp(text, "__builtins__") == 0;
        const struct check_attribute *row = check_attribute_by_name(text);
        if (row && !builtins)
            find_act(v, node, text, row->rule, row->does);
        return builtins ? value_name(v, "builtins") : &value_unknown;
    }
    return item_of(v, base, index);
}

/* --- methods of constants --- */

const struct value *
call_argument(const struct call *call, size_t position, const char *keyword)
{
    if (position < call->args_n && position < ARGUMENTS_MAX)
        return call->args[position];
    for (size_t i = 0; keyword && i < call->keywords_n; i++)
        if (PyUnicode_CompareWithASCIIString(call->keywords[i].name, keyword) == 0)
            return call->keywords[i].value;
    return NULL;
}

const struct value *
fold_join(struct validator *v, const struct value *separator, const struct value *items)
{
    PyObject *between = value_string(separator);
    if (between && value_string(items) && PyUnicode_Check(value_string(items)) &&
        length_of(between) == 0)
        return items; /* "".join("text") */
    if (!between || !PyUnicode_Check(between) || items->kind != VALUE_ITEMS)
        return &value_unknown;
    size_t total = 0;
    PyObject *list = PyList_New(0);
    bool whole = list != NULL;
    for (uint32_t i = 0; i < items->n && whole; i++) {
        PyObject *text = text_or_prefix(items->items[i]);
        total += text ? length_of(text) + length_of(between) : 0;
        whole = text && total <= FOLD_BYTES_MAX && PyList_Append(list, text) == 0;
        if (text && items->items[i]->prefix)
            whole = false;
    }
    whole = whole && !items->prefix;
    const struct value *joined = &value_unknown;
    if (list && (whole || PyList_Size(list) > 0))
        joined = value_made(v, PyUnicode_Join(between, list), VALUE_CONSTANT, !whole);
    Py_XDECREF(list);
    return joined;
}

/* "{0.__class__}": format strings walk attributes in C, where no node of the tree shows it. */
static void
judge_format(struct validator *v, PyObject *node, PyObject *format)
{
    char text[FORMAT_BYTES_MAX];
    text_utf8(format, text, sizeof(text));
    static const char *const walks[] = {"__subclasses__", "__globals__", "__builtins__",
                                        "f_globals",      "f_builtins",  "gi_frame"};
    for (size_t i = 0; strchr(text, '{') && i < sizeof(walks) / sizeof(*walks); i++)
        if (strstr(text, walks[i])) {
            find(v, node, RULE_INTROSPECTION_ESCAPE,
                 "a format string reaches %s through the fields it names", walks[i]);
            return;
        }
}

static const struct value *
fold_format(struct validator *v, const struct call *call, PyObject *format)
{
    judge_format(v, call->node, format);
    if (!is_small_format(format) || call->args_n > ARGUMENTS_MAX || call->keywords_n > 0)
        return prefix_before(v, format, '{');
    char text[FORMAT_BYTES_MAX];
    text_utf8(format, text, sizeof(text));
    PyObject *arguments = tuple_of(call->args, call->args_n);
    /* A field that names attributes or items would call into objects. */
    bool simple = arguments && !strchr(text, '.') && !strchr(text, '[');
    PyObject *method = simple ? PyObject_GetAttrString(format, "format") : NULL;
    PyObject *made = method ? PyObject_CallObject(method, arguments) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(arguments);
    return simple ? value_made(v, made, VALUE_CONSTANT, false)
                  : prefix_before(v, format, '{');
}

static bool
is_safe_codec(const struct call *call)
{
    static const char *const names[] = {"utf-8", "utf8", "ascii", "latin-1", "latin1"};
    const struct value *codec = call_argument(call, 0, "encoding");
    if (!codec)
        return true;
    PyObject *text = value_text(codec);
    for (size_t i = 0; text && i < sizeof(names) / sizeof(*names); i++)
        if (PyUnicode_CompareWithASCIIString(text, names[i]) == 0)
            return true;
    return false;
}

static const struct value *
fold_plain_method(struct validator *v, const struct call *call, PyObject *self,
                  const char *name)
{
    enum { MOST = 4096 };
    static const char *const methods[] = {
        "lower",   "upper",      "strip",        "lstrip",      "rstrip",
        "title",   "swapcase",   "hex",          "encode",      "decode",
        "replace", "capitalize", "removeprefix", "removesuffix"};
    bool known =
        length_of(self) <= MOST && call->keywords_n == 0 && call->args_n <= ARGUMENTS_MAX;
    size_t i = 0;
    while (i < sizeof(methods) / sizeof(*methods) && strcmp(name, methods[i]) != 0)
        i++;
    bool codec = strcmp(name, "encode") == 0 || strcmp(name, "decode") == 0;
    if (!known || i == sizeof(methods) / sizeof(*methods) ||
        (codec && !is_safe_codec(call)))
        return &value_unknown;
    PyObject *arguments = tuple_of(call->args, call->args_n);
    if (!arguments)
        return &value_unknown;
    PyObject *method = PyObject_GetAttrString(self, name);
    PyObject *made = method ? PyObject_CallObject(method, arguments) : NULL;
    Py_XDECREF(method);
    Py_DECREF(arguments);
    return value_made(v, made, VALUE_CONSTANT, false);
}

const struct value *
fold_method(struct validator *v, const struct call *call)
{
    const struct value *self = call->func->items[0];
    const char *name = call->func->name;
    PyObject *string = value_string(self);
    if (!string)
        return &value_unknown;
    if (strcmp(name, "join") == 0 && call->args_n == 1)
        return fold_join(v, self, call->args[0]);
    if (PyUnicode_Check(string) &&
        (strcmp(name, "format") == 0 || strcmp(name, "format_map") == 0))
        return fold_format(v, call, string);
    return fold_plain_method(v, call, string, name);
}
