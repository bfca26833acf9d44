/*
 * The parts of the validator: nodes of CPython's tree, values that are known without running
 * anything, scopes, findings. For its own files.
 *
 * Two bounds hold everywhere. Depth: below DEPTH_MAX levels a node is put into a queue and
 * visited later on its own, so that no tree overflows the C stack. Work: each node is visited
 * once, and what folding makes is paid from a budget.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "check/acts.h"
#include "check/path.h"
#include "check/rules.h"
#include "guest/wire.h"

enum {
    DEPTH_MAX = 120,
    FOLD_BYTES_MAX = 64 * 1024,          /* of one folded text */
    FOLD_BUDGET_BYTES = 4 * 1024 * 1024, /* of all of them */
    ITEMS_MAX = 4096,                    /* of a list whose items are remembered */
    ONE_OF_MAX = 32,
    ARENA_BYTES_MAX = 64 * 1024 * 1024,
    TEXTS_DEPTH_MAX = 3, /* text in text given to exec */
    NAME_BYTES_MAX = 256,
    ARGUMENTS_MAX = 16, /* of a call that are looked at; all are visited */
    TYPES_MAX = 512,    /* a power of two, more than twice as many as CPython has */
    FOLDERS_MAX = POLICY_LIST_MAX + 64,
    REPEATS_MAX = 100 * 1000, /* expressions looked at again to fold comprehensions */
    REPEAT_ITEMS_MAX = 512,
};

/* --- nodes --- */
/* The order of node_names in validate_node.c. */
enum node_kind {
    NODE_NONE, /* no node at all */
    NODE_OTHER,
    NODE_ANN_ASSIGN,
    NODE_ASSIGN,
    NODE_ASYNC_FOR,
    NODE_ASYNC_FUNCTION_DEF,
    NODE_ATTRIBUTE,
    NODE_AUG_ASSIGN,
    NODE_BIN_OP,
    NODE_BOOL_OP,
    NODE_BREAK,
    NODE_CALL,
    NODE_CLASS_DEF,
    NODE_CONSTANT,
    NODE_DELETE,
    NODE_DICT_COMP,
    NODE_EXCEPT_HANDLER,
    NODE_EXPR,
    NODE_FOR,
    NODE_FUNCTION_DEF,
    NODE_GENERATOR_EXP,
    NODE_GLOBAL,
    NODE_IF,
    NODE_IF_EXP,
    NODE_IMPORT,
    NODE_IMPORT_FROM,
    NODE_JOINED_STR,
    NODE_LAMBDA,
    NODE_LIST,
    NODE_LIST_COMP,
    NODE_NAME,
    NODE_NAMED_EXPR,
    NODE_PASS,
    NODE_RETURN,
    NODE_SET,
    NODE_SET_COMP,
    NODE_SLICE,
    NODE_STARRED,
    NODE_SUBSCRIPT,
    NODE_TRY,
    NODE_TRY_STAR,
    NODE_TUPLE,
    NODE_UNARY_OP,
    NODE_WHILE,
    NODE_WITH_ITEM,
    NODE_KINDS,
};

/* The order of attribute_names in validate_node.c. */
enum node_attribute {
    AT_ANNOTATION,
    AT_ARG,
    AT_ARGS,
    AT_ASNAME,
    AT_ATTR,
    AT_BASES,
    AT_BODY,
    AT_COL_OFFSET,
    AT_CONTEXT,
    AT_CONTEXT_EXPR,
    AT_CONVERSION,
    AT_DECORATORS,
    AT_DEFAULTS,
    AT_ELT,
    AT_ELTS,
    AT_END_COL_OFFSET,
    AT_END_LINENO,
    AT_FINALBODY,
    AT_FORMAT_SPEC,
    AT_FUNC,
    AT_GENERATORS,
    AT_HANDLERS,
    AT_ID,
    AT_IFS,
    AT_ITER,
    AT_KEY,
    AT_KEYWORDS,
    AT_KWARG,
    AT_KWONLYARGS,
    AT_KW_DEFAULTS,
    AT_LEFT,
    AT_LEVEL,
    AT_LINENO,
    AT_LOWER,
    AT_MODULE,
    AT_NAME,
    AT_NAMES,
    AT_OP,
    AT_OPERAND,
    AT_OPTIONAL_VARS,
    AT_ORELSE,
    AT_POSONLYARGS,
    AT_RETURNS,
    AT_RIGHT,
    AT_SLICE,
    AT_STEP,
    AT_TARGET,
    AT_TARGETS,
    AT_TEST,
    AT_UPPER,
    AT_VALUE,
    AT_VALUES,
    AT_VARARG,
    NODE_ATTRIBUTES,
};

struct node_type {
    PyTypeObject *type; /* borrowed: CPython keeps them */
    PyObject *fields;   /* owned; NULL when it is no node's type */
    uint8_t kind;
    char name[24];
};

/* --- values --- */
enum value_kind {
    VALUE_UNKNOWN,
    VALUE_CONSTANT, /* str, bytes, int…; a str with `prefix` is only its beginning */
    VALUE_NAME,     /* a dotted name: "os.system", "builtins.open" */
    VALUE_PATH,     /* pathlib's path of this text; `prefix` as above */
    VALUE_ITEMS,    /* a tuple or list; with `prefix` more follow */
    VALUE_ONE_OF,
    VALUE_METHOD,  /* `name` of the value items[0] */
    VALUE_CLASS,   /* defined by the code itself */
    VALUE_TYPE,    /* the class of a constant: a builtin one */
    VALUE_DECODED, /* bytes or text out of base64, zlib, marshal… */
    VALUE_GLOBAL,  /* of a scope's name: look in the module's scope */
};

struct value {
    uint8_t kind;
    bool prefix;
    uint32_t n;
    PyObject *object; /* of a constant or path; lives as long as the validator */
    const char *name;
    const struct value *const *items;
};

extern const struct value value_unknown;

struct binding {
    PyObject *name; /* interned: compared by address; NULL: free */
    const struct value *value;
};

enum scope_kind { SCOPE_MODULE, SCOPE_FUNCTION, SCOPE_CLASS, SCOPE_INNER };

struct scope {
    struct scope *parent; /* counted */
    uint32_t users;
    uint8_t kind;
    uint32_t n, capacity;
    struct binding *table;
    const char *stars[8]; /* modules whose names were all imported */
    size_t stars_n;
};

struct later {
    PyObject *node; /* a statement, an expression, or a function's list of statements */
    struct scope *scope; /* counted */
    PyObject *outer;     /* as the validator's */
    bool is_list;
    uint8_t branch, loop;
};

/* A text with its lines, for spelling what a finding is about. */
struct text {
    const char *p;
    size_t n;
    uint32_t *starts; /* made when first asked for; owned */
    size_t lines_n;
};

struct arena_block;

struct validator {
    const struct guest_check *check;
    int fd;
    struct check_folders folders;
    char work[CHECK_PATH_BYTES]; /* where the program runs */
    const char *reads[FOLDERS_MAX];
    const char *denied[POLICY_LIST_MAX];
    size_t denied_n;

    PyObject *names[NODE_ATTRIBUTES];
    struct node_type types[TYPES_MAX];
    PyObject *compile; /* the builtin */
    PyObject *owned;   /* a list of what folding made, and of trees */

    struct arena_block *arena;
    size_t arena_bytes, fold_bytes;
    struct later *later;
    size_t later_n, later_at, later_capacity;
    struct scope *scope;
    int depth;
    uint8_t branch; /* how many conditions the statement stands under */
    uint8_t loop;
    bool moved; /* relative paths begin elsewhere since */
    struct text text;
    int texts_depth;
    int quiet;          /* looked at once already: nothing is found twice */
    uint32_t repeats_n; /* of what comprehensions repeat */
    PyObject *outer;    /* the call whose text is being looked at: findings are there */

    uint32_t sent, sent_of[CHECK_RULES], more_of[CHECK_RULES];
    bool gone;      /* the supervisor takes no more */
    bool no_memory; /* something was not looked at */
};

/* --- validate_node.c --- */
int nodes_init(struct validator *v) MUST_USE;
void nodes_done(struct validator *v);
const struct node_type *node_type(struct validator *v, PyObject *node);
enum node_kind node_kind(struct validator *v, PyObject *node);
/* The class of an operator or a context: "Add", "Store". */
const char *node_class(struct validator *v, PyObject *node);
/* Borrowed from the node, which nobody changes; NULL when it has none or it is None. */
PyObject *node_get(struct validator *v, PyObject *node, enum node_attribute attribute);
int node_int(struct validator *v, PyObject *node, enum node_attribute attribute);
/* Of a list attribute; 0 when it is none. Items are borrowed. */
Py_ssize_t list_size(PyObject *list);

/* --- validate_value.c --- */
void *arena_take(struct validator *v, size_t bytes);
void arena_done(struct validator *v);
/* All give value_unknown when memory or the budget is at its end. */
const struct value *value_constant(struct validator *v, PyObject *borrowed);
const struct value *value_made(struct validator *v, PyObject *owned, uint8_t kind,
                               bool prefix);
const struct value *value_name(struct validator *v, const char *name);
const struct value *value_items(struct validator *v, uint8_t kind,
                                const struct value *const *items, size_t n);
const struct value *value_method(struct validator *v, const struct value *self,
                                 const char *name);
/* These items, and then some that are not known. */
const struct value *value_more(struct validator *v, const struct value *items);
const struct value *value_either(struct validator *v, const struct value *a,
                                 const struct value *b);
const struct value *value_of_kind(uint8_t kind);
/* A whole str, or NULL. */
PyObject *value_text(const struct value *value);
/* A whole str or bytes, or NULL. */
PyObject *value_string(const struct value *value);
bool value_int(const struct value *value, long long *ret);
/* The dotted name, or NULL. */
const char *value_dotted(const struct value *value);
bool value_is(const struct value *value, const char *dotted);
/* Text of a str as UTF-8, cut; "" when it is none. */
void text_utf8(PyObject *text, char *ret, size_t n);

/* --- validate_scope.c --- */
struct scope *scope_new(struct scope *parent, enum scope_kind kind);
void scope_release(struct scope *scope);
void scope_set(struct validator *v, PyObject *name, const struct value *value);
void scope_mark_global(struct validator *v, PyObject *name);
const struct value *scope_get(struct validator *v, PyObject *name);
void scope_star(struct validator *v, const char *module);
void later_add(struct validator *v, PyObject *node, struct scope *scope, bool is_list);

/* --- validate_find.c --- */
void find(struct validator *v, PyObject *node, unsigned rule, const char *format, ...)
    PRINTF(4, 5);
/* Names an act: how it is spelled here, what it is, what it does. */
void find_act(struct validator *v, PyObject *node, const char *dotted, unsigned rule,
              const char *does);
void find_import(struct validator *v, PyObject *node, const char *module);
bool find_path(struct validator *v, PyObject *node, const char *who,
               const struct value *value, bool write);
void finding_send(struct validator *v, const struct guest_finding *finding,
                  unsigned rule);
void text_done(struct text *text);

/* --- validate_fold.c --- */
const struct value *fold_binary(struct validator *v, PyObject *node, const char *op,
                                const struct value *left, const struct value *right);
const struct value *fold_subscript(struct validator *v, PyObject *node,
                                   const struct value *base, const struct value *index);
const struct value *fold_slice(struct validator *v, const struct value *base,
                               const struct value *lower, const struct value *upper,
                               const struct value *step);
const struct value *fold_join(struct validator *v, const struct value *separator,
                              const struct value *items);
const struct value *fold_concat(struct validator *v, const struct value *left,
                                const struct value *right);

struct call {
    PyObject *node;
    const struct value *func;
    const struct value *args[ARGUMENTS_MAX];
    size_t args_n; /* all of them, kept or not */
    struct {
        PyObject *name;
        const struct value *value;
    } keywords[ARGUMENTS_MAX];
    size_t keywords_n;
};
const struct value *call_argument(const struct call *call, size_t position,
                                  const char *keyword);
const struct value *fold_method(struct validator *v, const struct call *call);

/* --- validate_call.c --- */
/* What a call is, as a finding and as a value. */
const struct value *call_judge(struct validator *v, const struct call *call);
/* Assigning to an attribute or an entry. */
void judge_store(struct validator *v, PyObject *node, const struct value *base,
                 const char *attribute);
void judge_decorator(struct validator *v, PyObject *node, const struct value *value);
/* As import does: "posix" is os. */
const char *canonical_module(const char *name);
const struct value *apply_attribute(struct validator *v, PyObject *node,
                                    const struct value *base, const char *attribute,
                                    bool plain_name);
/* Naming it may be an act already. */
void judge_name(struct validator *v, PyObject *node, const struct value *value);

/* --- validate_builtins.c --- */
struct fold {
    const char *name;
    const struct value *(*make)(struct validator *v, const struct call *call);
};
/* Calls whose value is known when their arguments are; NULL when it is none of them. */
const struct fold *fold_by_name(const char *name);
/* How many items range() of a constant has. */
bool range_count(const struct value *value, long long *ret);
void judge_count(struct validator *v, PyObject *node, const char *what, double count,
                 double bytes_each);

/* --- validate_paths.c --- */
void judge_paths(struct validator *v, const struct call *call,
                 const struct check_act *act, const struct value *self);
const struct value *fold_os_path(struct validator *v, const char *name,
                                 const struct call *call);
bool flag_writes(const char *dotted);
const struct value *path_join(struct validator *v, const struct value *base,
                              const struct value *part);

/* --- validate_expr.c --- */
const struct value *eval(struct validator *v, PyObject *node);
void bind(struct validator *v, PyObject *target, const struct value *value);
/* Every child of a node of no special kind. */
void visit_children(struct validator *v, PyObject *node);
void visit_any(struct validator *v, PyObject *object);

/* --- validate_stmt.c --- */
void visit_statement(struct validator *v, PyObject *node);
void visit_list(struct validator *v, PyObject *list);
void visit_function(struct validator *v, PyObject *node, bool is_lambda);

/* --- validate.c --- */
/* Looks at text that is to be run as code; `expression`: for eval. */
void look_at_text(struct validator *v, PyObject *call, PyObject *text, bool expression);
void run_later(struct validator *v);
