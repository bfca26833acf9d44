/*
 * What libraries expect of programs, in a cell that runs none. execve is the kernel's to refuse,
 * and stays so; this file only keeps ordinary code from noticing, by standing in for the one
 * function through which the standard library starts programs, _posixsubprocess.fork_exec:
 *
 *   - multiprocessing's resource tracker is the interpreter itself with a line of Python: it is
 *     forked instead, so that shared memory and semaphores work;
 *   - programs that libraries ask for facts about the machine (platform: uname -p; matplotlib:
 *     fc-list; ctypes.util: ldconfig, gcc) are not there, as in any small container: they get
 *     FileNotFoundError and no incident, for nothing was attempted;
 *   - everything else goes on to the kernel, which refuses it and tells the supervisor.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/guest.h"

static const char tracker_line[] =
    "from multiprocessing.resource_tracker import main;main(";

static const struct probe {
    const char *program;
    const char *first_argument; /* NULL: whatever it is */
    const char *who;
} probes[] = {
    {"uname", "-p", "platform.processor, which pandas and scikit-learn ask at import"},
    {"fc-list", NULL, "matplotlib.font_manager"},
    {"ldconfig", NULL, "ctypes.util.find_library"},
    {"gcc", NULL, "ctypes.util.find_library"},
    {"cc", NULL, "ctypes.util.find_library"},
    {"objdump", NULL, "ctypes.util.find_library"},
    {"ld", NULL, "ctypes.util.find_library"},
    {"lscpu", NULL, "joblib and numpy.testing count physical cores"},
};

enum { FORK_EXEC_ARGUMENTS = 0, TEXT_BYTES = 512 };

/* Item i of a list of arguments as text; "" when it is none that could match. */
static void
item_text(PyObject *list, Py_ssize_t i, char text[TEXT_BYTES])
{
    PyObject *item = PySequence_GetItem(list, i < 0 ? PySequence_Size(list) + i : i);
    PyObject *bytes = NULL;
    text[0] = '\0';
    if (item && PyUnicode_Check(item))
        bytes = PyUnicode_EncodeFSDefault(item);
    else if (item && PyBytes_Check(item))
        bytes = Py_BuildValue("O", item);
    if (bytes && PyBytes_Size(bytes) < TEXT_BYTES)
        snprintf(text, TEXT_BYTES, "%s", PyBytes_AsString(bytes));
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(item);
}

static const struct probe *
find_probe(PyObject *list)
{
    char program[TEXT_BYTES], argument[TEXT_BYTES] = "";
    item_text(list, 0, program);
    if (PySequence_Size(list) > 1)
        item_text(list, 1, argument);
    const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
    for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++)
        if (strcmp(name, probes[i].program) == 0 &&
            (!probes[i].first_argument ||
             strcmp(argument, probes[i].first_argument) == 0))
            return &probes[i];
    return NULL;
}

bool
programs_is_probe(PyObject *list)
{
    bool is = PySequence_Check(list) && PySequence_Size(list) > 0 && find_probe(list);
    PyErr_Clear();
    return is;
}

/* In the forked child: what fork_exec would have left open, and then the tracker's own
 * loop. */
static NORETURN void
run_tracker(int fd)
{
    if (fd > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
    PyObject *module = PyImport_ImportModule("multiprocessing.resource_tracker");
    PyObject *done = module ? PyObject_CallMethod(module, "main", "i", fd) : NULL;
    _exit(done ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* os.fork runs the handlers that modules have registered for it. */
static PyObject *
fork_tracker(int fd)
{
    PyObject *os = PyImport_ImportModule("os");
    PyObject *pid = os ? PyObject_CallMethod(os, "fork", NULL) : NULL;
    Py_XDECREF(os);
    if (pid && PyLong_AsLong(pid) == 0)
        run_tracker(fd);
    return pid;
}

/* self is the original function: the stand-in holds no state of its own. */
static PyObject *
fork_exec(PyObject *self, PyObject *arguments)
{
    PyObject *list = PyTuple_GetItem(arguments, FORK_EXEC_ARGUMENTS);
    if (!list || !PySequence_Check(list) || PySequence_Size(list) < 1) {
        PyErr_Clear();
        return PyObject_CallObject(self, arguments);
    }
    char last[TEXT_BYTES];
    item_text(list, -1, last);
    if (strncmp(last, tracker_line, sizeof(tracker_line) - 1) == 0) {
        int fd = (int)strtol(last + sizeof(tracker_line) - 1, NULL, 10);
        if (fd > STDERR_FILENO)
            return fork_tracker(fd);
    }
    if (find_probe(list)) {
        char program[TEXT_BYTES];
        item_text(list, 0, program);
        errno = ENOENT;
        return PyErr_SetFromErrnoWithFilename(PyExc_FileNotFoundError, program);
    }
    return PyObject_CallObject(self, arguments);
}

static PyMethodDef definition = {
    "fork_exec", fork_exec, METH_VARARGS,
    "Spawn a fresh new child process. In this cell no program can be executed."};

void
programs_stand_in(void)
{
    PyObject *module = PyImport_ImportModule("_posixsubprocess");
    PyObject *original = module ? PyObject_GetAttrString(module, "fork_exec") : NULL;
    PyObject *ours = original ? PyCFunction_New(&definition, original) : NULL;
    if (ours)
        (void)PyObject_SetAttrString(module, "fork_exec", ours);
    PyErr_Clear(); /* an interpreter without it starts no programs that way */
    Py_XDECREF(ours);
    Py_XDECREF(original);
    Py_XDECREF(module);
}
