/*
 * How a program's process ends. A cold cell lets CPython finalise. In a warm one that would walk
 * through every module that the zygote has imported (a hundred milliseconds with pandas) to free
 * memory which the kernel takes back anyway; so it does what a program can notice of it, in
 * CPython's order: threads are joined, atexit functions run, the streams are flushed, the
 * program's own modules go and with them its objects (open files are flushed, finalizers run),
 * and the streams are flushed again.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/guest.h"

enum { FLUSH_FAILED = 120 }; /* CPython's own exit code for it */

/* Calls a function of a module that is loaded already; what it raises is printed. */
static void
call_loaded(const char *module_name, const char *function, const char *format,
            double value)
{
    PyObject *modules = PySys_GetObject("modules");
    PyObject *module = modules ? PyDict_GetItemString(modules, module_name) : NULL;
    if (!module)
        return;
    PyObject *done = PyObject_CallMethod(module, function, format, value);
    if (!done)
        PyErr_WriteUnraisable(module);
    Py_XDECREF(done);
}

/* False when what was written is lost. CPython tells of that for stdout alone. */
static bool
flush(const char *stream_name, bool is_told)
{
    PyObject *stream = PySys_GetObject(stream_name);
    if (!stream || stream == Py_None)
        return true;
    PyObject *closed = PyObject_GetAttrString(stream, "closed");
    bool is_open = !closed || !PyObject_IsTrue(closed);
    PyErr_Clear();
    Py_XDECREF(closed);
    PyObject *done = is_open ? PyObject_CallMethod(stream, "flush", NULL) : Py_None;
    bool flushed = done != NULL;
    if (!flushed && is_told)
        PyErr_WriteUnraisable(stream);
    PyErr_Clear();
    if (is_open)
        Py_XDECREF(done);
    return flushed;
}

bool
ending_flush(void)
{
    bool out = flush("stdout", true);
    return flush("stderr", false) && out;
}

/* What sys.exit was given, as CPython writes it. */
static void
write_exit_text(PyObject *object)
{
    PyObject *stream = PySys_GetObject("stderr");
    PyObject *bytes = NULL;
    if (stream && stream != Py_None) {
        (void)!PyFile_WriteObject(object, stream, Py_PRINT_RAW);
    } else {
        PyObject *text = PyObject_Str(object);
        bytes =
            text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
        if (bytes)
            fputs(PyBytes_AsString(bytes), stderr);
        Py_XDECREF(text);
    }
    PySys_WriteStderr("\n");
    PyErr_Clear();
    Py_XDECREF(bytes);
}

/* sys.exit's argument as an exit code: None is 0, what is no number is printed and is 1. One
 * that cannot be had is the exception itself. */
int
ending_exit_code(PyObject *value)
{
    PyObject *code = PyObject_GetAttrString(value, "code");
    int number = 1;
    if (!code) {
        PyErr_Clear();
        code = Py_BuildValue("O", value);
    }
    if (code == Py_None)
        number = 0;
    else if (PyLong_Check(code))
        number = (int)PyLong_AsLong(code);
    else
        write_exit_text(code);
    PyErr_Clear();
    Py_XDECREF(code);
    return number;
}

static PyObject *
function_of(const char *module_name, const char *name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    PyErr_Clear();
    Py_XDECREF(module);
    return function;
}

void
ending_prepare(struct ending *ret)
{
    PyObject *modules = PySys_GetObject("modules");
    *ret = (struct ending){.run_atexit = function_of("atexit", "_run_exitfuncs"),
                           .collect = function_of("gc", "collect")};
    ret->modules = modules ? PyDict_Copy(modules) : NULL;
    if (!ret->run_atexit || !ret->collect || !ret->modules)
        Py_FatalError("no memory for the end");
}

static void
call(PyObject *function)
{
    PyObject *done = PyObject_CallObject(function, NULL);
    PyErr_Clear();
    Py_XDECREF(done);
}

/* --- modules --- */

/* CPython takes these from sys first. Those that a zygote has made stay in memory: freeing them
 * would copy their pages, and no program can tell. */
static void
empty_sys(void)
{
    static const char *const gone[] = {
        "path",      "path_hooks",          "path_importer_cache",
        "meta_path", "__interactivehook__", "argv"};
    static const char *const freed[] = {"last_type", "last_value", "last_traceback",
                                        "last_exc",  "ps1",        "ps2"};
    static const char *const streams[] = {"stdin", "stdout", "stderr"};
    char original[16];
    for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++) {
        Py_XINCREF(PySys_GetObject(gone[i]));
        (void)!PySys_SetObject(gone[i], Py_None);
    }
    for (size_t i = 0; i < sizeof(freed) / sizeof(*freed); i++)
        (void)!PySys_SetObject(freed[i], Py_None);
    for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
        snprintf(original, sizeof(original), "__%s__", streams[i]);
        PyObject *stream = PySys_GetObject(original);
        (void)!PySys_SetObject(streams[i], stream ? stream : Py_None);
    }
    PyErr_Clear();
}

/* Names with one underscore first, then the others: as CPython empties a module that somebody
 * still holds. */
static void
empty_module(PyObject *module)
{
    PyObject *names = PyModule_GetDict(module);
    PyObject *keys = PyDict_Keys(names);
    for (int pass = 0; keys && pass < 2; pass++)
        for (Py_ssize_t i = 0; i < PyList_Size(keys); i++) {
            PyObject *bytes = PyUnicode_AsUTF8String(PyList_GetItem(keys, i));
            const char *name = bytes ? PyBytes_AsString(bytes) : "";
            bool private_name = name[0] == '_' && name[1] != '_';
            if (private_name == (pass == 0) && strcmp(name, "__builtins__") != 0)
                (void)!PyDict_SetItem(names, PyList_GetItem(keys, i), Py_None);
            PyErr_Clear();
            Py_XDECREF(bytes);
        }
    PyErr_Clear();
    Py_XDECREF(keys);
}

/* The names of the program's modules in sys.modules; weak references to them in *ret_refs. */
static PyObject *
own_modules(const struct ending *ending, PyObject *modules, PyObject **ret_refs)
{
    PyObject *names = PyList_New(0), *refs = PyList_New(0), *name, *module;
    Py_ssize_t at = 0;
    while (names && refs && PyDict_Next(modules, &at, &name, &module)) {
        if (module == Py_None || PyDict_GetItem(ending->modules, name) == module)
            continue;
        PyObject *ref = PyWeakref_NewRef(module, NULL);
        if (ref)
            (void)!PyList_Append(refs, ref);
        (void)!PyList_Append(names, name);
        PyErr_Clear();
        Py_XDECREF(ref);
    }
    *ret_refs = refs;
    return names;
}

static void
drop_modules(const struct ending *ending)
{
    PyObject *modules = PySys_GetObject("modules"), *refs = NULL;
    if (!modules || !PyDict_Check(modules))
        return;
    PyObject *names = own_modules(ending, modules, &refs);
    for (Py_ssize_t i = 0; names && i < PyList_Size(names); i++)
        (void)!PyDict_SetItem(modules, PyList_GetItem(names, i), Py_None);
    call(ending->collect); /* the zygote's objects are frozen: not walked */
    for (Py_ssize_t i = refs ? PyList_Size(refs) : 0; i > 0; i--) {
        PyObject *module = PyWeakref_GetObject(PyList_GetItem(refs, i - 1));
        Py_XINCREF(module);
        if (module && PyModule_Check(module))
            empty_module(module);
        Py_XDECREF(module);
    }
    call(ending->collect);
    PyErr_Clear();
    Py_XDECREF(names);
    Py_XDECREF(refs);
}

/* --- the end --- */

static NORETURN void
end_warm(const struct ending *ending, int code)
{
    enum { NO_SWITCHES_S = 1000000 };
    call_loaded("threading", "_shutdown", NULL, 0);
    call(ending->run_atexit);
    /* A daemon thread must not run on in a namespace that is being emptied; CPython stops
     * them here, too. */
    call_loaded("sys", "setswitchinterval", "d", NO_SWITCHES_S);
    bool flushed = ending_flush();
    call(ending->collect);
    empty_sys();
    drop_modules(ending);
    flushed = ending_flush() && flushed;
    fflush(NULL);
    _exit(flushed ? code : FLUSH_FAILED);
}

/* From 3.13 on CPython's finalisation comes back to the thread state that it began with, which
 * is gone (program.c, hide_frames): there a cold cell ends as a warm one does. */
bool
ending_is_ours(void)
{
    enum { LAST_THAT_FINALISES = 12 };
    const char *version = Py_GetVersion(); /* "3.13.0 (main, …" */
    return version[0] != '3' || strtol(version + 2, NULL, 10) > LAST_THAT_FINALISES;
}

void
ending_normal(const struct ending *ending, PyObject *main_module)
{
    Py_DECREF(main_module);
    if (ending)
        end_warm(ending, 0);
    Py_Exit(0);
    abort(); /* Py_Exit does not return; its prototype does not say so */
}

/* As CPython's own main: SystemExit ends with its code (PyErr_Print does that in a cold cell),
 * anything else is printed and ends with 1. */
void
ending_exception(const struct ending *ending, PyObject *main_module)
{
    Py_DECREF(main_module);
    if (ending && PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        int code = ending_exit_code(value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        end_warm(ending, code);
    }
    PyErr_Print();
    if (ending)
        end_warm(ending, 1);
    Py_Exit(1);
    abort();
}
