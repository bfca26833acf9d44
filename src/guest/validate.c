/*
 * Validation in the sealed cell: CPython parses and compiles the source, which executes nothing
 * of it, the tree is looked at, and what was found goes to the supervisor, who says go or ends
 * the cell. The parser meets hostile text here and nowhere else.
 *
 * Nothing may be imported on the way: the folder of the job stands first on sys.path. CPython
 * imports `warnings` to show one, so warnings are kept from being shown until the program runs.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "check/source.h"
#include "guest/guest.h"
#include "guest/validate_parts.h"

enum { ONLY_AST = 0x400 /* PyCF_ONLY_AST */, EXCEPTION_BYTES = 48, NOBODY = -1 };

/* In the stable ABI since 3.10; where it is not, the collector runs and costs some time. */
int PyGC_Disable(void) __attribute__((weak));
int PyGC_Enable(void) __attribute__((weak));

/* --- warnings --- */

/* ("ignore", None, Warning, None, 0) before all other filters; its list, or NULL. */
static PyObject *
filter_warnings(const char *action)
{
    PyObject *module = PyImport_ImportModule("_warnings"); /* in memory since the start */
    PyObject *filters = module ? PyObject_GetAttrString(module, "filters") : NULL;
    PyObject *filter =
        Py_BuildValue("(sOOOi)", action, Py_None, PyExc_Warning, Py_None, 0);
    bool done = filters && filter && PyList_Check(filters) &&
                PyList_Insert(filters, 0, filter) == 0;
    PyErr_Clear();
    Py_XDECREF(filter);
    Py_XDECREF(module);
    if (!done)
        Py_CLEAR(filters);
    return filters;
}

static void
unfilter_warnings(PyObject *filters)
{
    if (filters && PyList_Size(filters) > 0)
        PyList_SetSlice(filters, 0, 1, NULL);
    PyErr_Clear();
    Py_XDECREF(filters);
}

static PyObject *
compile_quietly(struct validator *v, PyObject *source, const char *path, int flags,
                const char *action)
{
    PyObject *filters = filter_warnings(action);
    PyObject *name = PyUnicode_DecodeFSDefault(path);
    PyObject *made = name && filters ? PyObject_CallFunction(v->compile, "OOsii", source,
                                                             name, "exec", flags, 1)
                                     : NULL;
    Py_XDECREF(name);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    unfilter_warnings(filters);
    PyErr_Restore(type, value, traceback);
    return made;
}

/* --- what the compiler says --- */

static int
attribute_number(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    long number = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    PyErr_Clear();
    Py_XDECREF(value);
    return number > 0 && number <= INT32_MAX ? (int)number : 0;
}

static void
find_syntax(struct validator *v, PyObject *value, const char *class_name)
{
    struct guest_finding finding = {.magic = GUEST_MAGIC,
                                    .rule = RULE_SYNTAX_ERROR,
                                    .columns = COLUMNS_ARE_CHARACTERS};
    bool placed = PyErr_GivenExceptionMatches(value, PyExc_SyntaxError);
    PyObject *message =
        placed ? PyObject_GetAttrString(value, "msg") : PyObject_Str(value);
    size_t n = 0;
    if (strcmp(class_name, "SyntaxError") != 0)
        n = (size_t)snprintf(finding.text, sizeof(finding.text), "%s: ", class_name);
    text_utf8(message, finding.text + n, sizeof(finding.text) - n);
    if (placed) {
        finding.line = attribute_number(value, "lineno");
        finding.column = attribute_number(value, "offset");
        finding.end_line = attribute_number(value, "end_lineno");
        finding.end_column = attribute_number(value, "end_offset");
    }
    PyErr_Clear();
    Py_XDECREF(message);
    finding_send(v, &finding, RULE_SYNTAX_ERROR);
}

/* Takes the exception that compile() has left. */
static void
find_failure(struct validator *v)
{
    char class_name[EXCEPTION_BYTES];
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    text_utf8(name, class_name, sizeof(class_name));
    PyErr_Clear();
    bool exhausted = !value || PyErr_GivenExceptionMatches(value, PyExc_RecursionError) ||
                     PyErr_GivenExceptionMatches(value, PyExc_MemoryError);
    if (exhausted) {
        struct guest_finding finding = {.magic = GUEST_MAGIC,
                                        .rule = RULE_PARSER_EXHAUSTED};
        snprintf(finding.text, sizeof(finding.text),
                 "CPython's compiler gave up: %s (nested too deeply, or too large)",
                 class_name);
        finding_send(v, &finding, RULE_PARSER_EXHAUSTED);
    } else {
        find_syntax(v, value, class_name);
    }
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* --- the walk --- */

void
run_later(struct validator *v)
{
    while (v->later_at < v->later_n) {
        struct later later = v->later[v->later_at++];
        struct text text = v->text;
        v->scope = later.scope;
        v->branch = later.branch;
        v->loop = later.loop;
        v->outer = later.outer;
        v->depth = 0;
        if (later.outer) /* its lines are not those of the file */
            v->text = (struct text){0};
        if (later.is_list)
            visit_list(v, later.node);
        else
            visit_statement(v, later.node);
        if (later.outer)
            v->text = text;
        scope_release(later.scope);
    }
    v->outer = NULL;
}

void
look_at_text(struct validator *v, PyObject *call, PyObject *text, bool expression)
{
    Py_ssize_t n = PyObject_Size(text);
    if (v->texts_depth >= TEXTS_DEPTH_MAX || v->quiet > 0 || n <= 0 ||
        v->fold_bytes + (size_t)n > FOLD_BUDGET_BYTES) {
        PyErr_Clear();
        return;
    }
    v->fold_bytes += (size_t)n;
    PyObject *stripped = expression ? PyObject_CallMethod(text, "lstrip", NULL) : NULL;
    PyErr_Clear();
    PyObject *tree =
        compile_quietly(v, stripped ? stripped : text, "<text>", ONLY_AST, "ignore");
    PyErr_Clear(); /* where it is run it will raise */
    Py_XDECREF(stripped);
    struct scope *inner = tree ? scope_new(v->scope, SCOPE_INNER) : NULL;
    if (inner && PyList_Append(v->owned, tree) == 0) {
        struct scope *scope = v->scope;
        struct text outer_text = v->text;
        PyObject *outer = v->outer;
        v->scope = inner;
        v->outer = outer ? outer : call;
        v->text = (struct text){0};
        v->texts_depth++;
        visit_list(v, node_get(v, tree, AT_BODY));
        v->texts_depth--;
        v->scope = scope;
        v->outer = outer;
        v->text = outer_text;
    }
    PyErr_Clear();
    scope_release(inner);
    Py_XDECREF(tree);
}

static void
walk(struct validator *v, PyObject *tree)
{
    struct scope *module = scope_new(NULL, SCOPE_MODULE);
    if (!module) {
        v->no_memory = true;
        return;
    }
    v->scope = module;
    visit_list(v, node_get(v, tree, AT_BODY));
    run_later(v);
    scope_release(module);
}

/* --- beginning and end --- */

static void
take_words(struct validator *v)
{
    const struct guest_check *check = v->check;
    const char *word = check->words, *end = check->words + check->words_n;
    for (uint32_t i = 0; i < check->imports_n + check->reads_n && word < end; i++) {
        if (i < check->imports_n && v->denied_n < POLICY_LIST_MAX)
            v->denied[v->denied_n++] = word;
        if (i >= check->imports_n && v->folders.reads_n < FOLDERS_MAX)
            v->reads[v->folders.reads_n++] = word;
        word += strnlen(word, (size_t)(end - word)) + 1;
    }
    v->folders.reads = v->reads;
}

/* What the interpreter itself reads: the library may be looked at. */
static void
take_search_path(struct validator *v)
{
    PyObject *path = PySys_GetObject("path");
    for (Py_ssize_t i = 1; i < list_size(path); i++) {
        char text[CHECK_PATH_BYTES];
        text_utf8(PyList_GetItem(path, i), text, sizeof(text));
        char *copy = text[0] == '/' ? arena_take(v, strlen(text) + 1) : NULL;
        if (!copy || v->folders.reads_n == FOLDERS_MAX)
            continue;
        memcpy(copy, text, strlen(text) + 1);
        v->reads[v->folders.reads_n++] = copy;
    }
}

/* Findings spell what is written, where the text is UTF-8 with ordinary line ends. */
static void
take_text(struct validator *v, PyObject *source)
{
    static const size_t bom_bytes = 3;
    struct source text;
    struct span bytes = {PyBytes_AsString(source), (size_t)PyBytes_Size(source)};
    source_init(&text, bytes);
    const char *bare = bytes.n > 0 ? memchr(bytes.p, '\r', bytes.n) : NULL;
    for (; bare && bare + 1 < bytes.p + bytes.n && bare[1] == '\n';)
        bare = memchr(bare + 1, '\r', (size_t)(bytes.p + bytes.n - bare - 1));
    if (text.encoding != SOURCE_UTF8 || bare || bytes.n > UINT32_MAX)
        return;
    size_t skip = text.bom ? bom_bytes : 0;
    v->text = (struct text){.p = bytes.p + skip, .n = bytes.n - skip};
}

static const struct guest_check *
receive_check(int socket)
{
    struct guest_check *check = calloc(1, sizeof(*check));
    ssize_t n = check ? fd_receive(socket, check, sizeof(*check), NULL, 0) : -ENOMEM;
    const size_t head = offsetof(struct guest_check, words);
    if (n < (ssize_t)head || check->magic != GUEST_MAGIC ||
        check->words_n > (size_t)n - head || check->words_n >= GUEST_WORDS_BYTES)
        _exit(EXIT_FAILURE); /* not of this build: the supervisor says that we died */
    return check;
}

/* What every validation needs of the interpreter. */
static struct validator *
validator_new(void)
{
    struct validator *v = calloc(1, sizeof(*v));
    PyObject *builtins = PyImport_ImportModule("builtins");
    if (!v || !builtins)
        _exit(EXIT_FAILURE);
    v->compile = PyObject_GetAttrString(builtins, "compile");
    v->owned = PyList_New(0);
    Py_DECREF(builtins);
    if (!v->compile || !v->owned || nodes_init(v) < 0)
        _exit(EXIT_FAILURE);
    return v;
}

static void
validator_begin(struct validator *v, const struct guest_check *check, int fd,
                PyObject *source, const char *path)
{
    v->check = check;
    v->fd = fd;
    const char *slash = strrchr(path, '/');
    snprintf(v->work, sizeof(v->work), "%.*s", slash ? (int)(slash - path) : 0, path);
    v->folders.work = v->work;
    v->folders.workspace = check->has_workspace ? job_workspace_place : NULL;
    take_words(v);
    take_search_path(v);
    take_text(v, source);
}

/* Ready for another text: what belongs to the last one is gone. */
static void
validator_clear(struct validator *v)
{
    struct validator kept = {.compile = v->compile, .owned = v->owned};
    while (v->later_at < v->later_n)
        scope_release(v->later[v->later_at++].scope);
    free(v->later);
    text_done(&v->text);
    arena_done(v);
    free((void *)(uintptr_t)v->check);
    PyList_SetSlice(v->owned, 0, PyList_Size(v->owned), NULL);
    memcpy(kept.names, v->names, sizeof(kept.names));
    memcpy(kept.types, v->types, sizeof(kept.types));
    *v = kept;
}

void
validate_done(struct validator **kept)
{
    struct validator *v = *kept;
    if (!v)
        return;
    *kept = NULL;
    validator_clear(v);
    nodes_done(v);
    Py_XDECREF(v->compile);
    Py_XDECREF(v->owned);
    free(v);
}

/* The code object when compiling it warns of nothing; else the caller compiles, and warns, when
 * the program runs. What fails is found either way. From the tree that is cheaper than from the
 * text; what the compiler has to say, it says of the text. */
static PyObject *
compile_whole(struct validator *v, PyObject *tree, PyObject *source, const char *path)
{
    PyObject *code = compile_quietly(v, tree, path, 0, "error");
    if (code)
        return code;
    PyErr_Clear();
    code = compile_quietly(v, source, path, 0, "ignore");
    if (!code)
        find_failure(v);
    Py_XDECREF(code);
    return NULL;
}

/* What was found is told; true when nothing was, and nobody's word is waited for. */
static bool
send_end(struct validator *v)
{
    struct guest_checked end = {.magic = GUEST_MAGIC, .rule = CHECK_RULES};
    if (v->no_memory) {
        struct guest_finding finding = {.magic = GUEST_MAGIC,
                                        .rule = RULE_PARSER_EXHAUSTED};
        snprintf(finding.text, sizeof(finding.text),
                 "there was not memory enough to look at all of the code");
        finding_send(v, &finding, RULE_PARSER_EXHAUSTED);
    }
    memcpy(end.more, v->more_of, sizeof(end.more));
    end.goes = v->sent == 0 && !v->check->waits;
    for (size_t i = 0; i < CHECK_RULES; i++)
        if (v->more_of[i] > 0)
            end.goes = 0;
    return fd_send(v->fd, &end, sizeof(end), NULL, 0) == 0 && end.goes == 1;
}

/* Nothing of the program runs before this byte: without it, never. */
static int
wait_for_go(int socket)
{
    char go;
    ssize_t n;
    do
        n = read(socket, &go, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(EXIT_FAILURE);
    return go == 'g' ? 0 : -1;
}

/* The code object, or NULL without an exception. */
static PyObject *
judge(struct validator *v, PyObject *source, const char *path)
{
    PyObject *code = NULL;
    PyObject *tree = compile_quietly(v, source, path, ONLY_AST, "ignore");
    if (tree) {
        walk(v, tree);
        code = compile_whole(v, tree, source, path);
        Py_DECREF(tree);
    } else {
        find_failure(v);
    }
    PyErr_Clear();
    return code;
}

void
validate_prepare(void)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *compile = builtins ? PyObject_GetAttrString(builtins, "compile") : NULL;
    PyObject *tree =
        compile ? PyObject_CallFunction(compile, "sssii", "0", "", "exec", ONLY_AST, 1)
                : NULL;
    PyErr_Clear(); /* a cell that lacks the memory for it will say so */
    Py_XDECREF(tree);
    Py_XDECREF(compile);
    Py_XDECREF(builtins);
}

PyObject *
validate_rehearse(const char *text, const char *path, struct validator **ret)
{
    struct guest_check *check = calloc(1, sizeof(*check));
    PyObject *source = PyBytes_FromString(text);
    struct validator *v = validator_new();
    if (!check || !source)
        _exit(EXIT_FAILURE);
    validator_begin(v, check, NOBODY, source, path);
    PyObject *code = judge(v, source, path);
    validator_clear(v);
    Py_DECREF(source);
    *ret = v;
    return code;
}

int
validate(PyObject *source, const char *path, struct validator **kept, int socket,
         PyObject **ret_code)
{
    bool collects = PyGC_Disable && PyGC_Disable() == 1;
    struct validator *v = *kept ? *kept : validator_new();
    validator_begin(v, receive_check(socket), socket, source, path);
    PyObject *code = judge(v, source, path);
    bool goes = send_end(v);
    validator_clear(v);
    *kept = v;
    if (collects)
        PyGC_Enable();
    int r = goes ? 0 : wait_for_go(socket);
    *ret_code = code;
    return r;
}
