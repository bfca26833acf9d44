/* Between the two files of the guest; nobody else's. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "guest/cell.h"
#include "guest/wire.h"

/* What the end of a warm cell needs, taken before a program can spoil it. */
struct ending {
    PyObject *modules; /* a copy of sys.modules: what is not in it is the program's */
    PyObject *run_atexit, *collect;
};
void ending_prepare(struct ending *ret);

/* Runs the submitted file as __main__ and ends the process as `python3 FILE` would have
 * ended. sys.argv is ['-c', FILE NAME, FOLDER, ARGUMENTS…] as boot.h left it. */
NORETURN void program_run(struct claims_memory *memory, uint32_t flags,
                          const struct ending *ending);

/* The loop of a zygote; returns in no process. See zygote.c. */
NORETURN void zygote_run(void);

/* Validates the source (bytes) of the file at path, tells the supervisor, and waits for its
 * go. The code object (new), or NULL without an exception: then the caller compiles, and
 * has the warnings or the error that this brings. */
PyObject *validate(PyObject *source, const char *path);
/* What CPython makes once, the classes of its tree, before it is forked: 1 ms a cell. */
void validate_prepare(void);

/* The same for a text of ours, told to nobody: what a validation touches in memory is this
 * process's own afterwards. */
PyObject *validate_rehearse(const char *text, const char *path);

/* End the process; with the exception that is set. main_module (stolen): the last reference
 * to it beside sys.modules. See ending.c. */
NORETURN void ending_normal(const struct ending *ending, PyObject *main_module);
NORETURN void ending_exception(const struct ending *ending, PyObject *main_module);
/* Whether a process of this interpreter, when it is not warm, ends by ending.c's means. */
bool ending_is_ours(void);

/* Where nothing may be executed: see programs.c. */
void programs_stand_in(void);
/* True when the arguments start a program that libraries only ask for facts. */
bool programs_is_probe(PyObject *list);

/* Installs the audit hook and the module adyton; returns adyton.SecurityError (owned by
 * the hook), or NULL with an exception set. program: the submitted file, kept. */
PyObject *audit_start(struct claims *claims, uint32_t flags, const char *program);
