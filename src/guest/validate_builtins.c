/* Calls whose value is known when their arguments are: builtins, importing, decoding. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/validate_parts.h"

static const struct value *
argument(const struct call *call, size_t i)
{
    return i < call->args_n && i < ARGUMENTS_MAX ? call->args[i] : &value_unknown;
}

/* Modules of which an attribute of an unknown name may be anything. */
static bool
is_powerful(const char *module)
{
    static const char *const modules[] = {"os",     "subprocess", "builtins",  "shutil",
                                          "socket", "ctypes",     "importlib", "pty"};
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++)
        if (strcmp(module, modules[i]) == 0)
            return true;
    return false;
}

static const struct value *
make_getattr(struct validator *v, const struct call *call)
{
    const struct value *base = argument(call, 0), *name = argument(call, 1);
    const struct value *made = &value_unknown;
    char text[NAME_BYTES_MAX];
    size_t n = name->kind == VALUE_ONE_OF ? name->n : 1;
    for (size_t i = 0; i < n; i++) {
        const struct value *one = name->kind == VALUE_ONE_OF ? name->items[i] : name;
        if (!value_text(one))
            continue;
        text_utf8(value_text(one), text, sizeof(text));
        made = value_either(v, made, apply_attribute(v, call->node, base, text, false));
    }
    const char *module = value_dotted(base);
    if (name->kind == VALUE_UNKNOWN && module && is_powerful(module))
        find(v, call->node, RULE_DYNAMIC_CODE,
             "an attribute of %s whose name is made at run time", module);
    return call->args_n > 2 ? value_either(v, made, argument(call, 2)) : made;
}

static const struct value *
make_setattr(struct validator *v, const struct call *call)
{
    char text[NAME_BYTES_MAX];
    text_utf8(value_text(argument(call, 1)), text, sizeof(text));
    if (text[0] != '\0')
        judge_store(v, call->node, argument(call, 0), text);
    return &value_unknown;
}

static const struct value *
import_named(struct validator *v, const struct call *call, bool top)
{
    char text[NAME_BYTES_MAX];
    const struct value *name = call_argument(call, 0, "name");
    text_utf8(name ? value_text(name) : NULL, text, sizeof(text));
    if (text[0] == '\0' || text[0] == '.')
        return &value_unknown;
    find_import(v, call->node, text);
    char *dot = top ? strchr(text, '.') : NULL;
    if (dot)
        *dot = '\0';
    return value_name(v, canonical_module(text));
}

static const struct value *
make_import(struct validator *v, const struct call *call)
{
    return import_named(v, call, true);
}

static const struct value *
make_import_module(struct validator *v, const struct call *call)
{
    return import_named(v, call, false);
}

static const struct value *
make_vars(struct validator *v, const struct call *call)
{
    char dotted[2 * NAME_BYTES_MAX];
    const char *owner = call->args_n == 0 ? "globals()" : value_dotted(argument(call, 0));
    if (!owner)
        return &value_unknown;
    snprintf(dotted, sizeof(dotted), "%s.__dict__", owner);
    return value_name(v, dotted);
}

static const struct value *
make_chr(struct validator *v, const struct call *call)
{
    long long point;
    if (!value_int(argument(call, 0), &point) || point < 0 || point > 0x10ffff)
        return &value_unknown;
    return value_made(v, PyUnicode_FromFormat("%c", (int)point), VALUE_CONSTANT, false);
}

static const struct value *
make_ord(struct validator *v, const struct call *call)
{
    PyObject *text = value_text(argument(call, 0));
    if (!text || PyUnicode_GetLength(text) != 1)
        return &value_unknown;
    return value_made(v, PyLong_FromLong((long)PyUnicode_ReadChar(text, 0)),
                      VALUE_CONSTANT, false);
}

static const struct value *
make_str(struct validator *v, const struct call *call)
{
    const struct value *value = argument(call, 0);
    long long number;
    if (value_text(value) || value->kind == VALUE_PATH || value->kind == VALUE_DECODED)
        return value->kind == VALUE_PATH
                   ? value_made(v, Py_BuildValue("O", value->object), VALUE_CONSTANT,
                                value->prefix)
                   : value;
    return value_int(value, &number) ? value_made(v, PyUnicode_FromFormat("%lld", number),
                                                  VALUE_CONSTANT, false)
                                     : &value_unknown;
}

void
judge_count(struct validator *v, PyObject *node, const char *what, double count,
            double bytes_each)
{
    if (count * bytes_each > (double)v->check->memory_bytes)
        find(v, node, RULE_RESOURCE_BOMB,
             "%s of %.3g items takes at least %.3g MiB; the memory limit is %llu MiB",
             what, count, count * bytes_each / (1 << 20),
             (unsigned long long)(v->check->memory_bytes >> 20));
}

static const struct value *
make_bytes(struct validator *v, const struct call *call)
{
    const struct value *value = argument(call, 0);
    long long number;
    if (value_int(value, &number))
        judge_count(v, call->node, "bytes", (double)number, 1);
    PyObject *string = value_string(value);
    if (string && PyBytes_Check(string))
        return value;
    if (string && PyUnicode_Check(string) &&
        PyUnicode_GetLength(string) <= FOLD_BYTES_MAX / 4)
        return value_made(v, PyUnicode_AsUTF8String(string), VALUE_CONSTANT, false);
    if (value->kind != VALUE_ITEMS || value->prefix)
        return value->kind == VALUE_DECODED ? value : &value_unknown;
    char *bytes = malloc(value->n > 0 ? value->n : 1);
    bool whole = bytes != NULL;
    for (uint32_t i = 0; i < value->n && whole; i++) {
        whole = value_int(value->items[i], &number) && number >= 0 && number <= 255;
        bytes[i] = (char)number;
    }
    PyObject *made = whole ? PyBytes_FromStringAndSize(bytes, value->n) : NULL;
    free(bytes);
    return whole ? value_made(v, made, VALUE_CONSTANT, false) : &value_unknown;
}

bool
range_count(const struct value *value, long long *ret)
{
    return value->kind == VALUE_METHOD && strcmp(value->name, "range") == 0 &&
           value_int(value->items[0], ret);
}

static const struct value *
make_range(struct validator *v, const struct call *call)
{
    long long from = 0, to;
    bool two = call->args_n == 2 && value_int(argument(call, 0), &from);
    if (!(call->args_n == 1 || two) || !value_int(argument(call, two ? 1 : 0), &to) ||
        to < from || from < 0)
        return &value_unknown;
    const struct value *count =
        value_made(v, PyLong_FromLongLong(to - from), VALUE_CONSTANT, false);
    return count->kind == VALUE_CONSTANT ? value_method(v, count, "range")
                                         : &value_unknown;
}

static const struct value *
make_list(struct validator *v, const struct call *call)
{
    enum { ITEM_BYTES = 8 };
    long long count;
    const struct value *value = argument(call, 0);
    if (range_count(value, &count)) {
        judge_count(v, call->node, "a list or tuple", (double)count, ITEM_BYTES);
        return &value_unknown;
    }
    return value->kind == VALUE_ITEMS || value_text(value) ? value : &value_unknown;
}

static const struct value *
make_sorted(struct validator *v, const struct call *call)
{
    long long count;
    if (range_count(argument(call, 0), &count))
        make_list(v, call);
    return &value_unknown;
}

static const struct value *
make_reversed(struct validator *v, const struct call *call)
{
    const struct value *value = argument(call, 0);
    if (value_text(value)) {
        const struct value *back =
            value_made(v, PyLong_FromLong(-1), VALUE_CONSTANT, false);
        return fold_slice(v, value, NULL, NULL, back);
    }
    if (value->kind != VALUE_ITEMS || value->prefix)
        return &value_unknown;
    const struct value **items = arena_take(v, (value->n + 1) * sizeof(*items));
    for (uint32_t i = 0; items && i < value->n; i++)
        items[i] = value->items[value->n - 1 - i];
    return items ? value_items(v, VALUE_ITEMS, items, value->n) : &value_unknown;
}

/* map(chr, (115, 121)) */
static const struct value *
make_map(struct validator *v, const struct call *call)
{
    const struct value *list = argument(call, 1);
    const struct fold *fold = value_dotted(argument(call, 0))
                                  ? fold_by_name(value_dotted(argument(call, 0)))
                                  : NULL;
    if (!fold || (fold->make != make_chr && fold->make != make_str) ||
        list->kind != VALUE_ITEMS || list->prefix || list->n > ITEMS_MAX)
        return &value_unknown;
    const struct value **items = arena_take(v, (list->n + 1) * sizeof(*items));
    for (uint32_t i = 0; items && i < list->n; i++) {
        struct call one = {.node = call->node, .args = {list->items[i]}, .args_n = 1};
        items[i] = fold->make(v, &one);
    }
    return items ? value_items(v, VALUE_ITEMS, items, list->n) : &value_unknown;
}

/* --- text as code --- */

static const struct value *
run_text(struct validator *v, const struct call *call, bool expression)
{
    const struct value *text = argument(call, 0);
    size_t n = text->kind == VALUE_ONE_OF ? text->n : 1;
    for (size_t i = 0; i < n; i++) {
        const struct value *one = text->kind == VALUE_ONE_OF ? text->items[i] : text;
        if (value_string(one))
            look_at_text(v, call->node, value_string(one), expression);
        if (one->kind == VALUE_DECODED)
            find(v, call->node, RULE_OBFUSCATION, "what is run here was decoded first");
    }
    return text->kind == VALUE_DECODED ? text : &value_unknown;
}

static const struct value *
make_exec(struct validator *v, const struct call *call)
{
    return run_text(v, call, false);
}

static const struct value *
make_eval(struct validator *v, const struct call *call)
{
    return run_text(v, call, true);
}

/* --- decoding --- */

static int
sextet(char c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c == '-'   ? alphabet + 62
                     : c == '_' ? alphabet + 63
                                : strchr(alphabet, c);
    return c != '\0' && at ? (int)(at - alphabet) : -1;
}

static int
nibble(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at =
        c >= 'A' && c <= 'F' ? strchr(digits, c - 'A' + 'a') : strchr(digits, c);
    return c != '\0' && at ? (int)(at - digits) : -1;
}

/* Digits of `bits` bits each, what is none is skipped. */
static const struct value *
decode_digits(struct validator *v, const struct value *value, int (*digit)(char),
              unsigned bits)
{
    PyObject *string = value_string(value);
    char *text = string ? malloc(FOLD_BYTES_MAX) : NULL;
    if (!text)
        return value_of_kind(VALUE_DECODED);
    text_utf8(string, text, FOLD_BYTES_MAX);
    unsigned held = 0, held_n = 0;
    size_t n = 0;
    for (const char *p = text; *p && *p != '='; p++) {
        int d = digit(*p);
        if (d < 0)
            continue;
        held = (held << bits | (unsigned)d) & 0xffff;
        held_n += bits;
        if (held_n >= 8) {
            held_n -= 8;
            text[n++] = (char)(held >> held_n & 0xff); /* never past what was read */
        }
    }
    PyObject *bytes = PyBytes_FromStringAndSize(text, (Py_ssize_t)n);
    free(text);
    return value_made(v, bytes, VALUE_CONSTANT, false);
}

static const struct value *
make_base64(struct validator *v, const struct call *call)
{
    return decode_digits(v, argument(call, 0), sextet, 6);
}

static const struct value *
make_hex(struct validator *v, const struct call *call)
{
    return decode_digits(v, argument(call, 0), nibble, 4);
}

static const struct value *
make_rot13(struct validator *v, PyObject *string)
{
    char *text = malloc(FOLD_BYTES_MAX);
    if (!text)
        return &value_unknown;
    text_utf8(string, text, FOLD_BYTES_MAX);
    for (char *p = text; *p; p++) {
        char base = *p >= 'a' && *p <= 'z' ? 'a' : *p >= 'A' && *p <= 'Z' ? 'A' : '\0';
        if (base)
            *p = (char)(base + (*p - base + 13) % 26);
    }
    PyObject *made = PyUnicode_FromString(text);
    free(text);
    return value_made(v, made, VALUE_CONSTANT, false);
}

static const struct value *
make_codec(struct validator *v, const struct call *call)
{
    char name[NAME_BYTES_MAX];
    const struct value *codec = call_argument(call, 1, "encoding");
    text_utf8(codec ? value_text(codec) : NULL, name, sizeof(name));
    PyObject *string = value_string(argument(call, 0));
    if (string && strncmp(name, "rot", 3) == 0)
        return make_rot13(v, string);
    if (strcmp(name, "hex") == 0)
        return make_hex(v, call);
    if (strcmp(name, "base64") == 0)
        return make_base64(v, call);
    return value_of_kind(VALUE_DECODED);
}

static const struct value *
make_decoded(struct validator *v, const struct call *call)
{
    (void)v, (void)call;
    return value_of_kind(VALUE_DECODED);
}

/* operator.attrgetter("system") and methodcaller wait for their object. */
static const struct value *
make_getter(struct validator *v, const struct call *call)
{
    return value_text(argument(call, 0))
               ? value_method(v, argument(call, 0), "attrgetter")
               : &value_unknown;
}

static const struct value *
make_object_getattribute(struct validator *v, const struct call *call)
{
    return make_getattr(v, call);
}

static const struct fold folds[] = {
    {"base64.a85decode", make_decoded},
    {"base64.b16decode", make_hex},
    {"base64.b32decode", make_decoded},
    {"base64.b64decode", make_base64},
    {"base64.b85decode", make_decoded},
    {"base64.decodebytes", make_base64},
    {"base64.standard_b64decode", make_base64},
    {"base64.urlsafe_b64decode", make_base64},
    {"binascii.a2b_base64", make_base64},
    {"binascii.a2b_hex", make_hex},
    {"binascii.unhexlify", make_hex},
    {"builtins.__import__", make_import},
    {"builtins.bytearray", make_bytes},
    {"builtins.bytearray.fromhex", make_hex},
    {"builtins.bytes", make_bytes},
    {"builtins.bytes.fromhex", make_hex},
    {"builtins.chr", make_chr},
    {"builtins.compile", make_exec},
    {"builtins.delattr", make_setattr},
    {"builtins.eval", make_eval},
    {"builtins.exec", make_exec},
    {"builtins.getattr", make_getattr},
    {"builtins.globals", make_vars},
    {"builtins.list", make_list},
    {"builtins.locals", make_vars},
    {"builtins.map", make_map},
    {"builtins.object.__getattribute__", make_object_getattribute},
    {"builtins.ord", make_ord},
    {"builtins.range", make_range},
    {"builtins.reversed", make_reversed},
    {"builtins.setattr", make_setattr},
    {"builtins.sorted", make_sorted},
    {"builtins.str", make_str},
    {"builtins.tuple", make_list},
    {"builtins.type.__getattribute__", make_object_getattribute},
    {"builtins.vars", make_vars},
    {"bz2.decompress", make_decoded},
    {"codecs.decode", make_codec},
    {"gzip.decompress", make_decoded},
    {"importlib.__import__", make_import},
    {"importlib.import_module", make_import_module},
    {"lzma.decompress", make_decoded},
    {"marshal.load", make_decoded},
    {"marshal.loads", make_decoded},
    {"operator.attrgetter", make_getter},
    {"operator.methodcaller", make_getter},
    {"pickle.loads", make_decoded},
    {"zlib.decompress", make_decoded},
};

const struct fold *
fold_by_name(const char *name)
{
    size_t low = 0, high = sizeof(folds) / sizeof(*folds);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, folds[middle].name);
        if (order == 0)
            return &folds[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
