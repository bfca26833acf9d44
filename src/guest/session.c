/*
 * A program that stays: it receives runs over its socket, one after another, and evaluates each in
 * the same __main__. How a run has ended it claims over that socket; what the kernel holds does not
 * depend on it.
 *
 * The socket lives above every number that the code can ask for: the limit of open files is lowered
 * beneath it, so that "close all descriptors" of ordinary programs leaves it alone. Who closes it by
 * its number ends the session, which the supervisor notices.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/background.h"
#include "guest/display.h"
#include "guest/guest.h"
#include "guest/job.h"

struct session {
    struct program *program;
    struct claims_memory *memory;
    PyObject *globals;
    int socket;
    bool has_stdin; /* the last run had one of its own */
};

static void
drop(PyObject *object)
{
    PyErr_Clear();
    Py_XDECREF(object);
}

static PyObject *
function_of(const char *module_name, const char *name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return function;
}

/* Nobody is left to hear of it. */
static NORETURN void
leave(void)
{
    _exit(GUEST_LEFT);
}

static int
move_socket(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 1)
        leave();
    int fd = fcntl(GUEST_FD, F_DUPFD_CLOEXEC, (int)limit.rlim_cur - 1);
    limit.rlim_cur = limit.rlim_max = limit.rlim_cur - 1;
    if (fd < 0 || setrlimit(RLIMIT_NOFILE, &limit) < 0)
        leave();
    close(GUEST_FD);
    return fd;
}

/* --- the beginning of a run --- */

/* An interrupt that came too late for the last run is nobody's; and one for this run must arrive,
 * whatever was inherited or set. */
static void
arm_interrupt(void)
{
    (void)!PyErr_CheckSignals();
    PyErr_Clear();
    PyObject *set = function_of("signal", "signal");
    PyObject *handler = function_of("signal", "default_int_handler");
    PyObject *number = function_of("signal", "SIGINT");
    PyObject *done = set && handler && number
                         ? PyObject_CallFunctionObjArgs(set, number, handler, NULL)
                         : NULL;
    drop(done);
    drop(number);
    drop(handler);
    drop(set);
}

/* traceback and inspect find its lines here; an entry without a time is never thrown out. */
static void
keep_lines(const char *path, PyObject *source)
{
    PyObject *cache = function_of("linecache", "cache");
    PyObject *text = PyUnicode_FromEncodedObject(source, "utf-8", "replace");
    PyObject *lines = text ? PyObject_CallMethod(text, "splitlines", "i", 1) : NULL;
    PyObject *entry =
        lines ? Py_BuildValue("(nOOs)", PyBytes_Size(source), Py_None, lines, path)
              : NULL;
    if (cache && entry && PyDict_Check(cache))
        (void)!PyDict_SetItemString(cache, path, entry);
    drop(entry);
    drop(lines);
    drop(text);
    drop(cache);
}

static void
set_arguments(const struct job_view *job)
{
    PyObject *argv = PyList_New(0);
    PyObject *name = PyUnicode_DecodeFSDefault(job->name);
    if (argv && name)
        (void)!PyList_Append(argv, name);
    drop(name);
    const char *argument = job->arguments;
    for (uint32_t i = 0; argv && i < job->head.args_n;
         i++, argument += strlen(argument) + 1) {
        PyObject *text = PyUnicode_DecodeFSDefault(argument);
        if (text)
            (void)!PyList_Append(argv, text);
        drop(text);
    }
    if (argv)
        (void)!PySys_SetObject("argv", argv);
    drop(argv);
}

static void
name_run(struct session *session, uint32_t number)
{
    struct program *program = session->program;
    snprintf(program->path, sizeof(program->path), "<run %u>", number);
    PyObject *path = PyUnicode_FromString(program->path);
    if (path)
        (void)!PyDict_SetItemString(session->globals, "__file__", path);
    drop(path);
}

static void
clear_claims(struct claims *claims)
{
    claims->kind = CLAIM_NONE;
    claims->line = claims->os_error = 0;
    claims->security = 0;
    claims->name_n = claims->value_n = claims->traceback_n = 0;
    claims->acts_n = claims->acts_dropped = 0;
}

/* What another one has read ahead is not this one's; encoding and errors stay as they are. */
static int
open_stdin(void)
{
    PyObject *before = PySys_GetObject("__stdin__");
    PyObject *encoding = before ? PyObject_GetAttrString(before, "encoding") : NULL;
    PyObject *errors = before ? PyObject_GetAttrString(before, "errors") : NULL;
    PyErr_Clear();
    PyObject *open = function_of("io", "open");
    PyObject *file = open ? PyObject_CallFunction(open, "isiOOOi", 0, "r", -1,
                                                  encoding ? encoding : Py_None,
                                                  errors ? errors : Py_None, Py_None, 0)
                          : NULL;
    int r = file ? PySys_SetObject("stdin", file) : -1;
    if (r == 0)
        r = PySys_SetObject("__stdin__", file);
    Py_XDECREF(file);
    Py_XDECREF(open);
    Py_XDECREF(errors);
    Py_XDECREF(encoding);
    return r;
}

/* Its files, and its stdin if this run or the last one has any: with an exception on failure. */
static int
place(struct session *session, const struct job_view *job)
{
    struct err err = {0};
    bool has_stdin = job->head.has_stdin == 1;
    int r = job_place_again(job, &err);
    if (r == 0 && (has_stdin || session->has_stdin))
        r = job_place_stdin(job, &err);
    if (r < 0) {
        PyErr_Format(PyExc_OSError, "%s", err.text);
        return -1;
    }
    if (!has_stdin && !session->has_stdin)
        return 0;
    session->has_stdin = has_stdin;
    return open_stdin();
}

/* --- the end of a run --- */

/* sys.excepthook is the program's to set. CPython's own reads lines from files, which a run has
 * none of (until 3.13): the traceback module knows of linecache. */
static void
print_exception(PyObject *type, PyObject *value, PyObject *traceback)
{
    PyObject *hook = PySys_GetObject("excepthook");
    PyObject *original = PySys_GetObject("__excepthook__");
    bool own = hook && hook != original;
    PyObject *print =
        own ? Py_BuildValue("O", hook) : function_of("traceback", "print_exception");
    PyObject *done =
        print ? PyObject_CallFunctionObjArgs(print, type, value ? value : Py_None,
                                             traceback ? traceback : Py_None, NULL)
              : NULL;
    if (!done)
        PyErr_Print();
    drop(done);
    drop(print);
}

/* What was raised, told and printed; sys.exit ends the run, not the session. */
static void
take_exception(struct session *session, struct guest_ended *end)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback && value)
        PyException_SetTraceback(value, traceback);
    if (PyErr_GivenExceptionMatches(type, PyExc_SystemExit)) {
        end->exit_code = ending_exit_code(value);
        session->memory->claims.kind = CLAIM_EXIT;
    } else {
        program_claim_exception(session->program, type, value, traceback);
        end->exit_code = 1;
        print_exception(type, value, traceback);
    }
    end->kind = session->memory->claims.kind;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* A child that the code has forked came out of the code: it ends as a program would. */
static void
end_child(const struct program *program, bool raised)
{
    if (getpid() == program->pid)
        return;
    if (raised)
        ending_exception(&program->ending, program->main_module);
    ending_normal(&program->ending, program->main_module);
}

/* --- a run --- */

/* false: it was refused, and nothing of it has run. */
static bool
may_run(struct session *session, PyObject *source, uint32_t flags, PyObject **ret_code)
{
    struct program *program = session->program;
    *ret_code = NULL;
    if (!(flags & GUEST_CHECK))
        return true;
    return validate(source, program->path, &program->validator, session->socket,
                    ret_code) == 0;
}

static PyObject *
place_and_evaluate(struct session *session, const struct job_view *job, PyObject *source,
                   PyObject *code, uint32_t flags)
{
    if (place(session, job) < 0)
        return NULL;
    display_start(session->memory, flags, source);
    PyObject *result =
        program_evaluate(session->program, source, code, session->globals, flags);
    if (getpid() == session->program->pid && result && display_end() < 0)
        Py_CLEAR(result);
    else if (getpid() == session->program->pid && !result)
        (void)!display_end(); /* keeps the exception */
    return result;
}

static void
finish(const struct session *session, PyObject *source, const struct guest_ended *end)
{
    drop(source);
    (void)!ending_flush();
    fflush(NULL);
    if (fd_send(session->socket, end, sizeof(*end), NULL, 0) < 0)
        leave();
}

/* Nothing of the code runs but what its objects do when their names are asked for. */
static void
answer(struct session *session, const struct job_view *job, PyObject *source,
       uint32_t flags)
{
    display_start(session->memory, flags, NULL);
    display_complete(source, job->head.args_n > 0 ? job->arguments : "",
                     session->globals);
    PyErr_Clear();
}

static void
run(struct session *session, struct job_view *job)
{
    uint32_t flags = job->head.flags | GUEST_WARM;
    struct guest_ended end = {.magic = GUEST_MAGIC, .run = job->head.run};
    PyObject *source = PyBytes_FromStringAndSize(job->code, (Py_ssize_t)job->head.code_n);
    PyObject *code;
    if (!source)
        leave();
    clear_claims(&session->memory->claims);
    arm_interrupt();
    if (flags & GUEST_COMPLETE) {
        answer(session, job, source, flags);
        finish(session, source, &end);
        return;
    }
    name_run(session, job->head.run);
    keep_lines(session->program->path, source);
    set_arguments(job);
    end.how = may_run(session, source, flags, &code) ? GUEST_RAN : GUEST_REFUSED;
    if (end.how == GUEST_RAN) {
        PyObject *result = place_and_evaluate(session, job, source, code, flags);
        end_child(session->program, !result);
        if (!result)
            take_exception(session, &end);
        drop(result);
        if ((flags & GUEST_END_THREADS) && !background_end(job->head.grace_ms))
            end.how = GUEST_THREADS_STAY;
    }
    drop(code);
    finish(session, source, &end);
}

static void
await_job(const struct session *session, struct job_view *job)
{
    struct err err = {0};
    int r;
    Py_BEGIN_ALLOW_THREADS while (
        !job_comes(session->socket, -1)) continue; /* a signal */
    r = job_receive(session->socket, job, &err);
    Py_END_ALLOW_THREADS if (r < 0) leave();
}

void
session_run(struct program *prepared, struct claims_memory *memory, struct job_view *job)
{
    static struct program program; /* the audit hook keeps the path */
    struct session session = {.program = &program, .memory = memory};
    program = *prepared;
    program.has_file = false;
    session.globals = program_open(&program, memory, job->head.flags | GUEST_WARM);
    session.socket = move_socket();
    for (;;) {
        run(&session, job);
        job_done(job);
        await_job(&session, job);
    }
}
