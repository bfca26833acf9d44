/*
 * How a program's process ends. A cold cell lets CPython finalise. In a warm one that would walk
 * through every module that the zygote has imported (a hundred milliseconds with pandas) to free
 * memory which the kernel takes back anyway; so it does what a program can notice of it, in
 * CPython's order: threads are joined, atexit functions run, the program's own objects are
 * freed (open files are flushed, finalizers run), the standard streams are flushed.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
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

static bool
flush(const char *stream_name)
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
    PyErr_Clear();
    if (is_open)
        Py_XDECREF(done);
    return flushed;
}

/* sys.exit's argument as an exit code: None is 0, what is no number is printed and is 1. */
static int
system_exit_code(PyObject *value)
{
    PyObject *code = value ? PyObject_GetAttrString(value, "code") : NULL;
    int number = 0;
    if (!code) {
        PyErr_Clear();
        number = 1;
    } else if (PyLong_Check(code)) {
        number = (int)PyLong_AsLong(code);
        PyErr_Clear();
    } else if (code != Py_None) {
        PyObject *stream = PySys_GetObject("stderr");
        if (stream && (PyFile_WriteObject(code, stream, Py_PRINT_RAW) < 0 ||
                       PyFile_WriteString("\n", stream) < 0))
            PyErr_Clear();
        number = 1;
    }
    Py_XDECREF(code);
    return number;
}

static NORETURN void
end_warm(int code)
{
    enum { NO_SWITCHES_S = 1000000 };
    call_loaded("threading", "_shutdown", NULL, 0);
    call_loaded("atexit", "_run_exitfuncs", NULL, 0);
    /* A daemon thread must not run on in a namespace that is being emptied; CPython stops
     * them here, too. */
    call_loaded("sys", "setswitchinterval", "d", NO_SWITCHES_S);
    PyObject *main_module = PyImport_AddModule("__main__");
    if (main_module)
        PyDict_Clear(PyModule_GetDict(main_module));
    call_loaded("gc", "collect", NULL,
                0); /* the zygote's objects are frozen: not walked */
    bool flushed = flush("stdout");
    flushed = flush("stderr") && flushed;
    fflush(NULL);
    _exit(flushed || code != 0 ? code : FLUSH_FAILED);
}

/* From 3.13 on CPython's finalisation comes back to the thread state that it began with, which
 * is gone (program.c, hide_frames): there a cold cell ends as a warm one does. */
static bool
ends_without_finalising(bool warm)
{
    enum { LAST_THAT_FINALISES = 12 };
    const char *version = Py_GetVersion(); /* "3.13.0 (main, …" */
    return warm || version[0] != '3' ||
           strtol(version + 2, NULL, 10) > LAST_THAT_FINALISES;
}

void
ending_normal(bool warm)
{
    if (ends_without_finalising(warm))
        end_warm(0);
    Py_Exit(0);
    abort(); /* Py_Exit does not return; its prototype does not say so */
}

/* As CPython's own main: SystemExit ends with its code (PyErr_Print does that in a cold cell),
 * anything else is printed and ends with 1. */
void
ending_exception(bool warm)
{
    warm = ends_without_finalising(warm);
    if (warm && PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        int code = system_exit_code(value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        end_warm(code);
    }
    PyErr_Print();
    if (warm)
        end_warm(1);
    Py_Exit(1);
    abort();
}
