/*
 * The threads that a run leaves, where they are not to go on. A thread cannot be killed without its
 * process: it is told, as Ctrl-C tells the main thread, by an exception that comes between two
 * instructions of Python. Threads of libraries that run no Python (OpenBLAS) are not among them.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pythread.h>
#include <time.h>

#include "base/clock.h"
#include "guest/background.h"

enum { PAUSE_NS = 1000 * 1000, US_PER_MS = 1000 };

/* How many there are beside us, each told once more. -1: that cannot be found out. */
static Py_ssize_t
tell_threads(void)
{
    unsigned long own = PyThread_get_thread_ident();
    PyObject *find = PySys_GetObject("_current_frames"); /* borrowed */
    PyObject *frames = find ? PyObject_CallObject(find, NULL) : NULL;
    PyObject *key, *value;
    Py_ssize_t n = 0, at = 0;
    if (!frames || !PyDict_Check(frames))
        n = -1;
    while (n >= 0 && PyDict_Next(frames, &at, &key, &value)) {
        unsigned long id = PyLong_AsUnsignedLong(key);
        if (id == own || PyErr_Occurred())
            continue;
        n++;
        (void)PyThreadState_SetAsyncExc(id, PyExc_SystemExit);
    }
    PyErr_Clear();
    Py_XDECREF(frames);
    return n;
}

bool
background_end(uint32_t grace_ms)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t end_us = clock_now_us() + (uint64_t)grace_ms * US_PER_MS;
    for (;;) {
        Py_ssize_t n = tell_threads();
        if (n <= 0 || clock_now_us() >= end_us)
            return n == 0;
        PyThreadState *state = PyEval_SaveThread();
        nanosleep(&pause, NULL);
        PyEval_RestoreThread(state);
    }
}
