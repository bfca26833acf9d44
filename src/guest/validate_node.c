/*
 * Nodes of CPython's tree through the limited API: by the names of their classes and attributes,
 * which are the ast module's documented interface. What a newer CPython adds is NODE_OTHER, and
 * its children are visited like any others.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "guest/validate_parts.h"

/* Sorted. */
static const char *const node_names[NODE_KINDS] = {
    [NODE_NONE] = "",
    [NODE_OTHER] = "",
    [NODE_ANN_ASSIGN] = "AnnAssign",
    [NODE_ASSIGN] = "Assign",
    [NODE_ASYNC_FOR] = "AsyncFor",
    [NODE_ASYNC_FUNCTION_DEF] = "AsyncFunctionDef",
    [NODE_ATTRIBUTE] = "Attribute",
    [NODE_AUG_ASSIGN] = "AugAssign",
    [NODE_BIN_OP] = "BinOp",
    [NODE_BOOL_OP] = "BoolOp",
    [NODE_BREAK] = "Break",
    [NODE_CALL] = "Call",
    [NODE_CLASS_DEF] = "ClassDef",
    [NODE_CONSTANT] = "Constant",
    [NODE_DELETE] = "Delete",
    [NODE_DICT_COMP] = "DictComp",
    [NODE_EXCEPT_HANDLER] = "ExceptHandler",
    [NODE_EXPR] = "Expr",
    [NODE_FOR] = "For",
    [NODE_FUNCTION_DEF] = "FunctionDef",
    [NODE_GENERATOR_EXP] = "GeneratorExp",
    [NODE_GLOBAL] = "Global",
    [NODE_IF] = "If",
    [NODE_IF_EXP] = "IfExp",
    [NODE_IMPORT] = "Import",
    [NODE_IMPORT_FROM] = "ImportFrom",
    [NODE_JOINED_STR] = "JoinedStr",
    [NODE_LAMBDA] = "Lambda",
    [NODE_LIST] = "List",
    [NODE_LIST_COMP] = "ListComp",
    [NODE_NAME] = "Name",
    [NODE_NAMED_EXPR] = "NamedExpr",
    [NODE_PASS] = "Pass",
    [NODE_RETURN] = "Return",
    [NODE_SET] = "Set",
    [NODE_SET_COMP] = "SetComp",
    [NODE_SLICE] = "Slice",
    [NODE_STARRED] = "Starred",
    [NODE_SUBSCRIPT] = "Subscript",
    [NODE_TRY] = "Try",
    [NODE_TRY_STAR] = "TryStar",
    [NODE_TUPLE] = "Tuple",
    [NODE_UNARY_OP] = "UnaryOp",
    [NODE_WHILE] = "While",
    [NODE_WITH_ITEM] = "withitem",
};

static const char *const attribute_names[NODE_ATTRIBUTES] = {
    [AT_ANNOTATION] = "annotation",
    [AT_ARG] = "arg",
    [AT_ARGS] = "args",
    [AT_ASNAME] = "asname",
    [AT_ATTR] = "attr",
    [AT_BASES] = "bases",
    [AT_BODY] = "body",
    [AT_COL_OFFSET] = "col_offset",
    [AT_CONTEXT] = "ctx",
    [AT_CONTEXT_EXPR] = "context_expr",
    [AT_CONVERSION] = "conversion",
    [AT_DECORATORS] = "decorator_list",
    [AT_DEFAULTS] = "defaults",
    [AT_ELT] = "elt",
    [AT_ELTS] = "elts",
    [AT_END_COL_OFFSET] = "end_col_offset",
    [AT_END_LINENO] = "end_lineno",
    [AT_FINALBODY] = "finalbody",
    [AT_FORMAT_SPEC] = "format_spec",
    [AT_FUNC] = "func",
    [AT_GENERATORS] = "generators",
    [AT_HANDLERS] = "handlers",
    [AT_ID] = "id",
    [AT_IFS] = "ifs",
    [AT_ITER] = "iter",
    [AT_KEY] = "key",
    [AT_KEYWORDS] = "keywords",
    [AT_KWARG] = "kwarg",
    [AT_KWONLYARGS] = "kwonlyargs",
    [AT_KW_DEFAULTS] = "kw_defaults",
    [AT_LEFT] = "left",
    [AT_LEVEL] = "level",
    [AT_LINENO] = "lineno",
    [AT_LOWER] = "lower",
    [AT_MODULE] = "module",
    [AT_NAME] = "name",
    [AT_NAMES] = "names",
    [AT_OP] = "op",
    [AT_OPERAND] = "operand",
    [AT_OPTIONAL_VARS] = "optional_vars",
    [AT_ORELSE] = "orelse",
    [AT_POSONLYARGS] = "posonlyargs",
    [AT_RETURNS] = "returns",
    [AT_RIGHT] = "right",
    [AT_SLICE] = "slice",
    [AT_STEP] = "step",
    [AT_TARGET] = "target",
    [AT_TARGETS] = "targets",
    [AT_TEST] = "test",
    [AT_UPPER] = "upper",
    [AT_VALUE] = "value",
    [AT_VALUES] = "values",
    [AT_VARARG] = "vararg",
};

int
nodes_init(struct validator *v)
{
    for (size_t i = 0; i < NODE_ATTRIBUTES; i++) {
        v->names[i] = PyUnicode_InternFromString(attribute_names[i]);
        if (!v->names[i])
            return -ENOMEM;
    }
    return 0;
}

void
nodes_done(struct validator *v)
{
    for (size_t i = 0; i < NODE_ATTRIBUTES; i++)
        Py_CLEAR(v->names[i]);
    for (size_t i = 0; i < TYPES_MAX; i++)
        Py_CLEAR(v->types[i].fields);
}

static uint8_t
kind_of_name(const char *name)
{
    size_t low = NODE_OTHER + 1, high = NODE_KINDS;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, node_names[middle]);
        if (order == 0)
            return (uint8_t)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NODE_OTHER;
}

static void
learn_type(struct node_type *row, PyTypeObject *type)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)type, "__name__");
    PyObject *fields = PyObject_GetAttrString((PyObject *)type, "_fields");
    row->type = type;
    text_utf8(name, row->name, sizeof(row->name));
    if (fields && PyTuple_Check(fields)) {
        row->kind = kind_of_name(row->name);
        Py_INCREF(fields);
        row->fields = fields;
    }
    PyErr_Clear(); /* str and int have no _fields */
    Py_XDECREF(fields);
    Py_XDECREF(name);
}

const struct node_type *
node_type(struct validator *v, PyObject *node)
{
    PyTypeObject *type = Py_TYPE(node);
    size_t at = ((uintptr_t)type >> 4) * 2654435761U;
    for (size_t tries = 0; tries < TYPES_MAX; tries++, at++) {
        struct node_type *row = &v->types[at & (TYPES_MAX - 1)];
        if (!row->type)
            learn_type(row, type);
        if (row->type == type)
            return row;
    }
    return &v->types[at &
                     (TYPES_MAX - 1)]; /* no interpreter has so many types of nodes */
}

enum node_kind
node_kind(struct validator *v, PyObject *node)
{
    return node ? (enum node_kind)node_type(v, node)->kind : NODE_NONE;
}

const char *
node_class(struct validator *v, PyObject *node)
{
    return node ? node_type(v, node)->name : "";
}

PyObject *
node_get(struct validator *v, PyObject *node, enum node_attribute attribute)
{
    PyObject *value = PyObject_GetAttr(node, v->names[attribute]);
    if (!value) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(value); /* the node keeps it */
    return value == Py_None ? NULL : value;
}

int
node_int(struct validator *v, PyObject *node, enum node_attribute attribute)
{
    PyObject *value = node_get(v, node, attribute);
    long number = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    PyErr_Clear();
    return number > 0 && number <= INT32_MAX ? (int)number : 0;
}

Py_ssize_t
list_size(PyObject *list)
{
    return list && PyList_Check(list) ? PyList_Size(list) : 0;
}
