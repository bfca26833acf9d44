/*
 * The guest: a CPython extension (limited API, one build for 3.9 and newer) that is the
 * first thing an interpreter in a cell runs. main() takes the setup from the supervisor,
 * seals the process, and becomes the submitted program; zygote() imports what programs want
 * and forks processes that do the rest. Neither returns.
 *
 * Must not know: policies, limits, what the supervisor does with claims.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/guest.h"
#include "guest/wire.h"
#include "jail/jail.h"

/* The program's __main__ takes the place of ours, which holds the last reference; and gc, which
 * would show all that it tracks, forgets the module and its functions. */
static void
hide(PyObject *module)
{
    static const char *const functions[] = {"main", "zygote"};
    PyObject *names = PyModule_GetDict(module);
    Py_INCREF(module);
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        PyObject *function = PyDict_GetItemString(names, functions[i]);
        if (!function)
            continue;
        Py_INCREF(function);
        PyObject_GC_UnTrack(function);
    }
    PyDict_Clear(names);
    PyObject_GC_UnTrack(names);
    PyObject_GC_UnTrack(module);
}

static PyObject *
guest_main(PyObject *module, PyObject *unused)
{
    (void)unused;
    hide(module);
    struct err err = {0};
    int claims_fd = -1;
    struct guest_setup *setup = malloc(sizeof(*setup));
    if (!setup) {
        err_set(&err, -ENOMEM, "no memory for the setup");
        cell_give_up(&err);
    }
    if (cell_receive_setup(setup, &claims_fd, &err) < 0)
        cell_give_up(&err);
    uint32_t flags = setup->flags;
    struct claims_memory *memory = cell_seal(&setup->seal, claims_fd);
    if (!(flags & GUEST_CHECK)) /* what follows is validation, which closes it */
        close(GUEST_FD);
    explicit_bzero(setup, sizeof(*setup));
    free(setup);
    struct program program;
    program_prepare(&program, flags, NULL);
    program_run(&program, memory, flags); /* does not return */
    return NULL;
}

static PyObject *
guest_zygote(PyObject *module, PyObject *unused)
{
    (void)unused;
    hide(module);
    zygote_run(); /* does not return */
    return NULL;
}

static PyMethodDef methods[] = {
    {"main", guest_main, METH_NOARGS,
     "main()\n--\n\nSeal this process and become the submitted program. Does not "
     "return."},
    {"zygote", guest_zygote, METH_NOARGS,
     "zygote()\n--\n\nImport the modules in sys.argv[1:] and fork cells on request. "
     "Does not return."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_adyton", .m_doc = "The guest of an adyton cell.",
    .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__adyton(void);

PyMODINIT_FUNC
PyInit__adyton(void)
{
    return PyModuleDef_Init(&definition);
}
