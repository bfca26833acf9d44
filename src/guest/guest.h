/* Between the two files of the guest; nobody else's. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "guest/cell.h"
#include "guest/wire.h"

enum { PROGRAM_PATH_BYTES = 1024 };

/* What the end of a warm cell needs, taken before a program can spoil it. */
struct ending {
    PyObject *modules; /* a copy of sys.modules: what is not in it is the program's */
    PyObject *run_atexit, *collect;
};
void ending_prepare(struct ending *ret);

struct job_view;
struct validator;
struct program {
    char path[PROGRAM_PATH_BYTES];
    struct claims *claims;
    PyObject *security_error;
    PyObject *main_module;
    bool has_file;               /* its source is at path; else in linecache */
    struct validator *validator; /* from a rehearsal, or NULL */
    struct ending ending;
    pid_t pid; /* children of a fork share the claims memory: only this one writes */
};
/* What can be done before the file is there: an empty __main__, and no frame beneath it.
 * ending: NULL in a cold cell. */
void program_prepare(struct program *program, uint32_t flags,
                     const struct ending *ending);
/* Runs the submitted file as __main__ and ends the process as `python3 FILE` would have
 * ended. sys.argv is ['-c', FILE NAME, FOLDER, ARGUMENTS…] as boot.h left it. */
NORETURN void program_run(struct program *prepared, struct claims_memory *memory,
                          uint32_t flags);

/* The first half of program_run: names and the audit hook. The namespace of __main__. */
PyObject *program_open(struct program *program, struct claims_memory *memory,
                       uint32_t flags);
/* Its second half: runs the source. code: from validation, or NULL. */
PyObject *program_evaluate(const struct program *program, PyObject *source,
                           PyObject *code, PyObject *globals, uint32_t flags);
void program_claim_exception(const struct program *program, PyObject *type,
                             PyObject *value, PyObject *traceback);

/* Runs the job and those that come after it, until nobody is there: see session.c. */
NORETURN void session_run(struct program *prepared, struct claims_memory *memory,
                          struct job_view *job);

/* The loop of a zygote; returns in no process. See zygote.c. */
NORETURN void zygote_run(void);

/* Validates the source (bytes) of the file at path, tells the supervisor over the socket, and
 * waits for its go where there is something to judge; -1: it does not get it. The code object
 * (new), or NULL without an exception: then the caller compiles, and has the warnings or the error
 * that this brings. *kept is from a rehearsal or the last validation, or NULL; it is for the
 * next. */
int validate(PyObject *source, const char *path, struct validator **kept, int socket,
             PyObject **ret_code) MUST_USE;
/* Nothing of ours stays in the interpreter that the program gets. */
void validate_done(struct validator **kept);
/* What CPython makes once, the classes of its tree, before it is forked: 1 ms a cell. */
void validate_prepare(void);

/* The same for a text of ours, told to nobody: what a validation touches in memory is this
 * process's own afterwards. *ret is for the validation that follows. */
PyObject *validate_rehearse(const char *text, const char *path, struct validator **ret);

/* End the process; with the exception that is set. main_module (stolen): the last reference
 * to it beside sys.modules. See ending.c. */
NORETURN void ending_normal(const struct ending *ending, PyObject *main_module);
NORETURN void ending_exception(const struct ending *ending, PyObject *main_module);
/* What sys.exit was given, as an exit code; text is printed. */
int ending_exit_code(PyObject *value);
/* false: what was written to sys.stdout cannot be. */
bool ending_flush(void);
/* Whether a process of this interpreter, when it is not warm, ends by ending.c's means. */
bool ending_is_ours(void);

/* Where nothing may be executed: see programs.c. */
void programs_stand_in(void);
/* True when the arguments start a program that libraries only ask for facts. */
bool programs_is_probe(PyObject *list);

/* Makes the module adyton; its SecurityError (new), or NULL with an exception set. */
PyObject *audit_prepare(void);
/* Installs the audit hook, which keeps the error and the name of the submitted file; -1 with an
 * exception set. */
int audit_start(struct claims *claims, uint32_t flags, const char *program,
                PyObject *error);
