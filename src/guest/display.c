/*
 * Loads display.py where it is needed, and rings for each item that it makes: see wire.h. Only
 * the process that became the program shows anything; what it forks shares the memory and must not
 * write there.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/display.h"
#include "guest/display_sources.h"
#include "guest/guest.h"

enum { ELSEWHERE = 2, TEXT_BYTES_MAX = 64 << 10 };

/* Libraries that are changed when they have been loaded: that member of the module is there. */
static const struct library {
    const char *package, *module, *member, *hook;
} libraries[] = {
    {"matplotlib", "matplotlib.backend_bases", "FigureManagerBase", "hook_matplotlib"},
    {"plotly", "plotly.basedatatypes", "BaseFigure", "hook_plotly"},
    {"IPython", "IPython.core.display_functions", "display", "hook_ipython"},
};
enum { LIBRARIES = sizeof(libraries) / sizeof(*libraries) };

static const struct part {
    const char *name, *source;
} parts[] = {
    {"display", display_source},
    {"chart", display_chart_source},
    {"table", display_table_source},
    {"complete", display_complete_source},
};
enum { PARTS = sizeof(parts) / sizeof(*parts) };

struct display {
    struct display_frame *frame;
    PyObject *names; /* the namespace of display.py; NULL until it is loaded */
    pid_t pid;
    uint32_t flags, turn;
    bool full, loaded[PARTS], hooked[LIBRARIES];
};

/* The interpreter is one, and so is this. */
static struct display *
this_display(void)
{
    static struct display display;
    return &display;
}

static bool
is_here(const struct display *display)
{
    return display->frame && getpid() == display->pid;
}

/* --- what display.py calls --- */

static long
ring(struct display *display, const char *bytes, size_t n)
{
    long answer;
    display->frame->n = (uint32_t)n;
    memcpy(display->frame->bytes, bytes, n);
    __atomic_store_n(&display->frame->turn, ++display->turn, __ATOMIC_RELEASE);
    do /* a signal may interrupt us after it was taken: its turn tells */
        answer = syscall(SYS_nfsservctl, (unsigned long)JAIL_BELL, 0UL, 0UL);
    while (answer < 0 && errno == EINTR);
    return answer;
}

/* _ring(None): whether there is room, and whether this is the place. _ring(item): shows it. */
static PyObject *
py_ring(PyObject *self, PyObject *item)
{
    (void)self;
    struct display *display = this_display();
    char *bytes;
    Py_ssize_t n;
    if (!is_here(display))
        return PyLong_FromLong(ELSEWHERE);
    if (item == Py_None)
        return PyLong_FromLong(display->full ? DISPLAY_FULL : DISPLAY_KEPT);
    if (PyBytes_AsStringAndSize(item, &bytes, &n) < 0)
        return NULL;
    if (n > DISPLAY_FRAME_BYTES)
        return PyErr_Format(PyExc_ValueError, "an item of %zd bytes", n);
    long answer = ring(display, bytes, (size_t)n);
    display->full = display->full || answer == DISPLAY_FULL;
    return PyLong_FromLong(answer);
}

static PyObject *run_part(struct display *display, size_t i);

/* _part(name): loads another part of it, once. */
static PyObject *
py_part(PyObject *self, PyObject *name)
{
    (void)self;
    struct display *display = this_display();
    for (size_t i = 0; i < PARTS; i++)
        if (PyUnicode_CompareWithASCIIString(name, parts[i].name) == 0)
            return run_part(display, i);
    return PyErr_Format(PyExc_KeyError, "%U", name);
}

/* --- loading --- */

static PyMethodDef functions[] = {
    {"_ring", py_ring, METH_O, NULL},
    {"_part", py_part, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *
compile_part(size_t i)
{
    PyObject *builtins = PyImport_ImportModule("builtins"), *code = NULL;
    PyObject *path = PyUnicode_FromFormat("<adyton %s>", parts[i].name);
    if (builtins && path)
        code = PyObject_CallMethod(builtins, "compile", "sOsii", parts[i].source, path,
                                   "exec", 0, 1);
    Py_XDECREF(path);
    Py_XDECREF(builtins);
    return code;
}

static PyObject *
run_part(struct display *display, size_t i)
{
    if (display->loaded[i])
        Py_RETURN_NONE;
    display->loaded[i] = true;
    PyObject *code = compile_part(i);
    PyObject *done = code ? PyEval_EvalCode(code, display->names, display->names) : NULL;
    Py_XDECREF(code);
    return done;
}

static int
put_number(PyObject *names, const char *name, long value)
{
    PyObject *number = PyLong_FromLong(value);
    int r = number ? PyDict_SetItemString(names, name, number) : -1;
    Py_XDECREF(number);
    return r;
}

static int
put_names(PyObject *names)
{
    static const struct {
        const char *name;
        long value;
    } numbers[] = {
        {"ITEM_BYTES", DISPLAY_ITEM_BYTES_MAX},
        {"JSON_BYTES", DISPLAY_JSON_BYTES_MAX},
        {"METADATA_BYTES", DISPLAY_METADATA_BYTES_MAX},
        {"PARTS", DISPLAY_PARTS_MAX},
        {"TEXT_BYTES", TEXT_BYTES_MAX},
    };
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *name = PyUnicode_FromString("adyton");
    int r = builtins && name ? PyDict_SetItemString(names, "__builtins__", builtins) : -1;
    if (r == 0)
        r = PyDict_SetItemString(names, "__name__", name);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && r == 0; i++)
        r = put_number(names, numbers[i].name, numbers[i].value);
    for (PyMethodDef *def = functions; def->ml_name && r == 0; def++) {
        PyObject *function = PyCFunction_NewEx(def, NULL, NULL);
        r = function ? PyDict_SetItemString(names, def->ml_name, function) : -1;
        Py_XDECREF(function);
    }
    Py_XDECREF(name);
    Py_XDECREF(builtins);
    return r;
}

static int
tell_svg(struct display *display)
{
    return put_number(display->names, "SVG", (display->flags & GUEST_SVG) != 0);
}

static bool
load(struct display *display)
{
    if (display->names)
        return true;
    display->names = PyDict_New();
    PyObject *done = NULL;
    if (display->names && put_names(display->names) == 0 && tell_svg(display) == 0)
        done = run_part(display, 0);
    if (!done) {
        Py_CLEAR(display->names);
        display->loaded[0] = false; /* it may go better the next time */
    }
    Py_XDECREF(done);
    return done != NULL;
}

/* A function of display.py: new reference, or NULL with an exception set. */
static PyObject *
call(const char *name, PyObject *argument)
{
    struct display *display = this_display();
    if (!load(display))
        return NULL;
    PyObject *function = PyDict_GetItemString(display->names, name);
    return PyObject_CallFunctionObjArgs(function, argument, NULL);
}

/* --- libraries --- */

static PyObject *
loaded_module(const char *name)
{
    PyObject *modules = PySys_GetObject("modules");
    return modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, name) : NULL;
}

static void
hook(struct display *display, size_t i)
{
    PyObject *module = display->hooked[i] ? NULL : loaded_module(libraries[i].module);
    if (!module || !PyObject_HasAttrString(module, libraries[i].member))
        return;
    display->hooked[i] = true; /* first: loading display.py asks again */
    PyObject *done = call(libraries[i].hook, module);
    PyErr_Clear();
    Py_XDECREF(done);
}

void
display_on_import(PyObject *arguments)
{
    struct display *display = this_display();
    PyObject *name = PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0) : NULL;
    PyObject *bytes = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : NULL;
    const char *text = bytes ? PyBytes_AsString(bytes) : NULL;
    PyErr_Clear();
    for (size_t i = 0; text && i < LIBRARIES; i++)
        if (!display->hooked[i] &&
            strncmp(text, libraries[i].package, strlen(libraries[i].package)) == 0)
            hook(display, i);
    Py_XDECREF(bytes);
}

void
display_prepare(void)
{
    struct display *display = this_display();
    bool loaded = load(display);
    for (size_t i = 1; i < PARTS && loaded; i++) {
        PyObject *done = run_part(display, i);
        Py_XDECREF(done);
    }
    PyErr_Clear();
    for (size_t i = 0; i < LIBRARIES; i++)
        hook(display, i);
}

/* --- the program --- */

static bool
is_of_a_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || (unsigned char)c >= 0x80;
}

/* As a word: sys.displayhook is none. */
static bool
names_display(PyObject *source)
{
    static const char name[] = "display";
    enum { NAME_N = sizeof(name) - 1 };
    char *bytes;
    Py_ssize_t n;
    if (!source || PyBytes_AsStringAndSize(source, &bytes, &n) < 0)
        return false;
    const char *end = bytes + n, *at = bytes;
    while ((at = memmem(at, (size_t)(end - at), name, NAME_N))) {
        bool begins = at == bytes || !is_of_a_word(at[-1]);
        at += NAME_N;
        if (begins && (at == end || !is_of_a_word(*at)))
            return true;
    }
    return false;
}

static void
add_builtin(struct display *display)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    if (builtins && !PyObject_HasAttrString(builtins, "display") && load(display)) {
        PyObject *function = PyDict_GetItemString(display->names, "display");
        if (function)
            (void)!PyObject_SetAttrString(builtins, "display", function);
    }
    PyErr_Clear();
    Py_XDECREF(builtins);
}

void
display_start(struct claims_memory *memory, uint32_t flags, PyObject *source)
{
    struct display *display = this_display();
    display->frame = &memory->display;
    display->pid = getpid();
    display->flags = flags;
    display->full = false;
    if (display->names) /* a zygote has loaded it, and knew no flags */
        (void)!tell_svg(display);
    for (size_t i = 0; i < LIBRARIES; i++) /* the site packages may have loaded one */
        hook(display, i);
    if (names_display(source))
        add_builtin(display);
    PyErr_Clear();
}

/* It is compiled by a function of ours, which has no place in the program's traceback. */
static void
hide_traceback(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(traceback);
    if (value)
        PyException_SetTraceback(value, Py_None);
    PyErr_Restore(type, value, NULL);
}

int
display_split(PyObject *source, const char *path, PyObject **ret_body,
              PyObject **ret_last)
{
    struct display *display = this_display();
    PyObject *split =
        load(display) ? PyDict_GetItemString(display->names, "split") : NULL;
    PyObject *file = split ? PyUnicode_DecodeFSDefault(path) : NULL;
    PyObject *pair =
        file ? PyObject_CallFunctionObjArgs(split, source, file, NULL) : NULL;
    Py_XDECREF(file);
    if (!pair) {
        hide_traceback();
        return -1;
    }
    PyObject *last = PyTuple_GetItem(pair, 1);
    *ret_body = Py_BuildValue("O", PyTuple_GetItem(pair, 0));
    *ret_last = last == Py_None ? NULL : Py_BuildValue("O", last);
    Py_DECREF(pair);
    return 0;
}

/* An interrupt or an exit is the program's, wherever it comes in; its traceback would be ours. */
static int
keep_interrupts(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) {
        hide_traceback();
        return -1;
    }
    PyErr_Clear();
    return 0;
}

int
display_last(PyObject *value)
{
    PyObject *done = value == Py_None ? NULL : call("show_last", value);
    Py_XDECREF(done);
    return keep_interrupts();
}

static bool
has_figures(void)
{
    PyObject *helpers = loaded_module("matplotlib._pylab_helpers");
    PyObject *open = helpers ? PyObject_GetAttrString(helpers, "Gcf") : NULL;
    PyObject *figures = open ? PyObject_GetAttrString(open, "figs") : NULL;
    bool has = figures && PyObject_Size(figures) > 0;
    PyErr_Clear();
    Py_XDECREF(figures);
    Py_XDECREF(open);
    return has;
}

int
display_end(void)
{
    struct display *display = this_display();
    PyObject *type, *value, *traceback, *done = NULL, *unused = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    if (is_here(display) && has_figures() && load(display)) {
        unused = run_part(display, 1);
        PyObject *function = PyDict_GetItemString(display->names, "show_figures");
        done = function ? PyObject_CallObject(function, NULL) : NULL;
    }
    int r = keep_interrupts();
    Py_XDECREF(unused);
    Py_XDECREF(done);
    if (type || r == 0) /* what was there before comes first */
        PyErr_Restore(type, value, traceback);
    return type ? 0 : r;
}

void
display_complete(PyObject *source, const char *kind, PyObject *names)
{
    struct display *display = this_display();
    size_t last = PARTS - 1; /* of parts */
    PyObject *loaded = load(display) ? run_part(display, last) : NULL;
    PyObject *function = loaded ? PyDict_GetItemString(display->names, "complete") : NULL;
    PyObject *done =
        function ? PyObject_CallFunction(function, "OsO", source, kind, names) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(loaded);
}
