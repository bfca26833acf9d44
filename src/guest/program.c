/*
 * Becomes `python3 FILE ARGS…`: the submitted file is the real __main__, there is no
 * frame of ours beneath it, and the process ends the way CPython's own main would end it.
 *
 * The boot program's frame is hidden by running the file in a fresh thread state of the
 * same thread. Two are made in turn, so that the second one is what PyGILState_Ensure
 * finds for this thread: it keeps the first state it meets until that one is deleted.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/display.h"
#include "guest/guest.h"

enum { SOURCE_MAX_BYTES = 64 << 20, TRACEBACK_DEPTH_MAX = 100000 };

static void
drop_thread_state(PyThreadState *state)
{
    PyThreadState_Clear(state);
    PyThreadState_Delete(state);
}

static void
hide_frames(void)
{
    PyThreadState *boot = PyThreadState_Get();
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    PyThreadState *between = PyThreadState_New(interpreter);
    if (!between)
        Py_FatalError("no memory for a thread state");
    PyThreadState_Swap(between);
    drop_thread_state(boot);
    PyThreadState *clean = PyThreadState_New(interpreter);
    if (!clean)
        Py_FatalError("no memory for a thread state");
    PyThreadState_Swap(clean);
    drop_thread_state(between);
}

/* Every setup call below fails only for want of memory: then there is no program to
 * run. */
static PyObject *
must(PyObject *object)
{
    if (!object) {
        PyErr_Print();
        _exit(EXIT_FAILURE);
    }
    return object;
}

static void
must_be_zero(int result)
{
    if (result != 0)
        must(NULL);
}

static PyObject *
module_attribute(const char *module_name, const char *name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    if (!module)
        return NULL;
    PyObject *value = PyObject_GetAttrString(module, name);
    Py_DECREF(module);
    return value;
}

/* When the site packages have imported threading before us, its main thread must be bound
 * to the new thread state: shutdown waits for the others through it (until CPython
 * 3.12). */
static void
rebind_threading(void)
{
    PyObject *modules = PySys_GetObject("modules");
    PyObject *threading = modules ? PyDict_GetItemString(modules, "threading") : NULL;
    if (!threading)
        return;
    PyObject *thread = PyObject_GetAttrString(threading, "_main_thread");
    PyObject *done =
        thread ? PyObject_CallMethod(thread, "_set_tstate_lock", NULL) : NULL;
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(thread);
}

/* sys.argv, sys.orig_argv and sys.path[0] as `cd FOLDER && python3 NAME ARGS…` sets
 * them. */
static void
set_arguments(struct program *program)
{
    enum { BOOT_ITEMS = 3 }; /* '-c', the name, the folder */
    PyObject *argv = PySys_GetObject("argv");
    Py_ssize_t n = argv ? PyList_Size(argv) : 0;
    if (n < BOOT_ITEMS)
        Py_FatalError("the boot program was started without a name");
    PyObject *name = PyList_GetItem(argv, 1);
    PyObject *folder = must(Py_BuildValue("O", PyList_GetItem(argv, 2)));
    PyObject *arguments = must(PyList_GetSlice(argv, BOOT_ITEMS, n));
    must_be_zero(PyList_Insert(arguments, 0, name));

    PyObject *path = must(PyUnicode_FromFormat("%U/%U", folder, name));
    PyObject *path_bytes = must(PyUnicode_EncodeFSDefault(path));
    snprintf(program->path, sizeof(program->path), "%s", PyBytes_AsString(path_bytes));

    PyObject *executable = PySys_GetObject("executable");
    PyObject *original = must(PyList_GetSlice(arguments, 0, n));
    must_be_zero(PyList_Insert(original, 0, executable ? executable : name));
    must_be_zero(PySys_SetObject("argv", arguments));
    must_be_zero(PySys_SetObject("orig_argv", original));
    PyObject *search = PySys_GetObject("path");
    if (search && PyList_Size(search) > 0)
        must_be_zero(PyList_SetItem(search, 0, Py_BuildValue("O", folder)));
    Py_DECREF(original);
    Py_DECREF(path_bytes);
    Py_DECREF(path);
    Py_DECREF(arguments);
    Py_DECREF(folder);
}

/* A fresh __main__, whose file is not known yet. The boot program's frame is never left and
 * holds the namespace of the old one: objects in it would outlive the finalisation that should
 * free them. */
static void
fresh_main(struct program *program)
{
    PyObject *modules = PySys_GetObject("modules");
    PyDict_Clear(PyModule_GetDict(must(PyImport_AddModule("__main__"))));
    program->main_module = must(PyModule_New("__main__"));
    must_be_zero(PyDict_SetItemString(modules, "__main__", program->main_module));
    PyObject *builtins = must(PyImport_ImportModule("builtins"));
    PyObject *fresh = must(Py_BuildValue(
        "{s:s, s:O, s:O, s:O, s:O, s:{}, s:O, s:O, s:O}", "__name__", "__main__",
        "__doc__", Py_None, "__package__", Py_None, "__loader__", Py_None, "__spec__",
        Py_None, "__annotations__", "__builtins__", builtins, "__file__", Py_None,
        "__cached__", Py_None));
    must_be_zero(PyDict_Update(PyModule_GetDict(program->main_module), fresh));
    Py_DECREF(fresh);
    Py_DECREF(builtins);
}

/* Says in __main__ which file it is; its namespace. */
static PyObject *
name_main(const struct program *program)
{
    PyObject *globals = PyModule_GetDict(program->main_module);
    PyObject *loader_class =
        must(module_attribute("_frozen_importlib_external", "SourceFileLoader"));
    PyObject *path = must(PyUnicode_DecodeFSDefault(program->path));
    PyObject *loader = must(PyObject_CallFunction(loader_class, "sO", "__main__", path));
    must_be_zero(PyDict_SetItemString(globals, "__loader__", loader));
    must_be_zero(PyDict_SetItemString(globals, "__file__", path));
    Py_DECREF(loader);
    Py_DECREF(path);
    Py_DECREF(loader_class);
    return globals;
}

static PyObject *
read_source(const struct program *program)
{
    AUTO_CLOSE int fd = open(program->path, O_RDONLY | O_CLOEXEC);
    AUTO_BUF struct buf source = {0};
    buf_init(&source, SOURCE_MAX_BYTES);
    int r = fd < 0 ? -errno : fd_read_all(fd, &source);
    if (r < 0) {
        errno = -r;
        return PyErr_SetFromErrnoWithFilename(PyExc_OSError, program->path);
    }
    return PyBytes_FromStringAndSize(buf_span(&source).p, (Py_ssize_t)source.n);
}

/* compile() of the bytes: it honours an encoding cookie and a BOM as running the file
 * does. */
static PyObject *
compile_source(const struct program *program, PyObject *source)
{
    PyObject *compile = module_attribute("builtins", "compile");
    PyObject *path = compile ? PyUnicode_DecodeFSDefault(program->path) : NULL;
    PyObject *code = NULL;
    if (path)
        code = PyObject_CallFunction(compile, "OOsii", source, path, "exec", 0, 1);
    Py_XDECREF(path);
    Py_XDECREF(compile);
    return code;
}

/* Text of any object as bytes that fit: a claim may hold anything but may not
 * overflow. */
static uint32_t
claim_text(PyObject *object, char *text, size_t n)
{
    PyObject *string = object ? PyObject_Str(object) : NULL;
    PyObject *bytes =
        string ? PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace") : NULL;
    size_t length = 0;
    if (bytes) {
        length = (size_t)PyBytes_Size(bytes);
        length = length < n ? length : n;
        memcpy(text, PyBytes_AsString(bytes), length);
    }
    PyErr_Clear(); /* a __str__ that raises has nothing to say */
    Py_XDECREF(bytes);
    Py_XDECREF(string);
    return (uint32_t)length;
}

static int
attribute_int(PyObject *object, const char *name)
{
    PyObject *value = object ? PyObject_GetAttrString(object, name) : NULL;
    long number = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    PyErr_Clear();
    Py_XDECREF(value);
    return number > 0 && number <= INT32_MAX ? (int)number : 0;
}

static bool
frame_is_ours(const struct program *program, PyObject *traceback)
{
    PyObject *frame = PyObject_GetAttrString(traceback, "tb_frame");
    PyObject *code = frame ? PyObject_GetAttrString(frame, "f_code") : NULL;
    PyObject *name = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
    bool is = name && PyUnicode_Check(name) &&
              PyUnicode_CompareWithASCIIString(name, program->path) == 0;
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(code);
    Py_XDECREF(frame);
    return is;
}

/* The innermost line of the submitted file; of a syntax error, the line it names. */
static int
error_line(const struct program *program, PyObject *type, PyObject *value,
           PyObject *traceback)
{
    int line = 0;
    if (PyErr_GivenExceptionMatches(type, PyExc_SyntaxError))
        line = attribute_int(value, "lineno");
    Py_XINCREF(traceback);
    for (int depth = 0; traceback && traceback != Py_None && depth < TRACEBACK_DEPTH_MAX;
         depth++) {
        if (frame_is_ours(program, traceback))
            line = attribute_int(traceback, "tb_lineno");
        PyObject *next = PyObject_GetAttrString(traceback, "tb_next");
        Py_DECREF(traceback);
        traceback = next;
    }
    PyErr_Clear();
    Py_XDECREF(traceback);
    return line;
}

/* The traceback as CPython prints it (its own hook reads lines from files only), caught in a StringIO in place of sys.stderr. */
static PyObject *
printed_traceback(const struct program *program, PyObject *type, PyObject *value,
                  PyObject *traceback)
{
    PyObject *hook = program->has_file
                         ? Py_BuildValue("O", PySys_GetObject("__excepthook__"))
                         : module_attribute("traceback", "print_exception");
    PyObject *stderr_now = PySys_GetObject("stderr");
    PyObject *string_io = module_attribute("io", "StringIO");
    PyObject *sink = string_io ? PyObject_CallObject(string_io, NULL) : NULL;
    PyObject *text = NULL;
    if (hook && sink) {
        Py_XINCREF(stderr_now);
        PySys_SetObject("stderr", sink);
        PyObject *done = PyObject_CallFunctionObjArgs(
            hook, type, value ? value : Py_None, traceback ? traceback : Py_None, NULL);
        PyErr_Clear();
        PySys_SetObject("stderr", stderr_now);
        text = PyObject_CallMethod(sink, "getvalue", NULL);
        Py_XDECREF(done);
        Py_XDECREF(stderr_now);
    }
    PyErr_Clear();
    Py_XDECREF(hook);
    Py_XDECREF(sink);
    Py_XDECREF(string_io);
    return text;
}

void
program_claim_exception(const struct program *program, PyObject *type, PyObject *value,
                        PyObject *traceback)
{
    struct claims *claims = program->claims;
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    PyErr_Clear();
    PyObject *text = printed_traceback(program, type, value, traceback);
    claims->name_n = claim_text(name, claims->name, sizeof(claims->name));
    claims->value_n = claim_text(value, claims->value, sizeof(claims->value));
    claims->traceback_n = claim_text(text, claims->traceback, sizeof(claims->traceback));
    claims->line = error_line(program, type, value, traceback);
    if (PyErr_GivenExceptionMatches(type, PyExc_OSError))
        claims->os_error = attribute_int(value, "errno");
    claims->security = PyErr_GivenExceptionMatches(type, program->security_error) ? 1 : 0;
    claims->kind = CLAIM_EXCEPTION;
    Py_XDECREF(text);
    Py_XDECREF(name);
}

/* Notes what it was before the ending prints it. */
static NORETURN void
end_with_exception(const struct program *program)
{
    PyObject *type, *value, *traceback;
    bool first_process = getpid() == program->pid;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback && value)
        PyException_SetTraceback(value, traceback);
    if (PyErr_GivenExceptionMatches(type, PyExc_SystemExit)) {
        if (first_process)
            program->claims->kind = CLAIM_EXIT;
    } else if (first_process) {
        program_claim_exception(program, type, value, traceback);
    }
    PyErr_Restore(type, value, traceback);
    if (first_process)
        (void)!display_end(); /* keeps the exception */
    ending_exception(program->ending.modules ? &program->ending : NULL,
                     program->main_module);
}

/* Before the audit hook and anything else of ours stands: validation executes nothing. */
static PyObject *
validated_code(struct program *program, PyObject *source, uint32_t flags)
{
    PyObject *code = NULL;
    if (!(flags & GUEST_CHECK))
        return NULL;
    if (validate(source, program->path, &program->validator, GUEST_FD, &code) < 0)
        _exit(EXIT_FAILURE);
    validate_done(&program->validator);
    close(GUEST_FD);
    return code;
}

/* Runs the code, and what its last expression is for itself. */
static PyObject *
run_split(const struct program *program, PyObject *source, PyObject *globals)
{
    PyObject *body, *last;
    if (display_split(source, program->path, &body, &last) < 0)
        return NULL;
    PyObject *result = PyEval_EvalCode(body, globals, globals);
    if (result && last) {
        Py_DECREF(result);
        result = PyEval_EvalCode(last, globals, globals);
        if (result && display_last(result) < 0)
            Py_CLEAR(result);
    }
    Py_DECREF(body);
    Py_XDECREF(last);
    return result;
}

PyObject *
program_evaluate(const struct program *program, PyObject *source, PyObject *code,
                 PyObject *globals, uint32_t flags)
{
    if (flags & GUEST_SHOW_LAST)
        return run_split(program, source, globals);
    Py_XINCREF(code);
    if (!code)
        code = compile_source(program, source);
    PyObject *result = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    Py_XDECREF(code);
    return result;
}

void
program_prepare(struct program *program, uint32_t flags, const struct ending *ending)
{
    *program = (struct program){.pid = getpid(), .has_file = true};
    if (ending)
        program->ending = *ending;
    else if (ending_is_ours())
        ending_prepare(&program->ending);
    hide_frames();
    rebind_threading();
    fresh_main(program);
    if (flags & GUEST_NO_PROGRAMS)
        programs_stand_in();
    program->security_error = must(audit_prepare());
}

PyObject *
program_open(struct program *program, struct claims_memory *memory, uint32_t flags)
{
    program->claims = &memory->claims;
    program->claims->magic = GUEST_MAGIC;
    set_arguments(program);
    PyObject *globals = name_main(program);
    must_be_zero(
        audit_start(program->claims, flags, program->path, program->security_error));
    return globals;
}

void
program_run(struct program *prepared, struct claims_memory *memory, uint32_t flags)
{
    static struct program program; /* the audit hook keeps the path */
    struct claims *claims = &memory->claims;
    program = *prepared;
    program.claims = claims;
    claims->magic = GUEST_MAGIC;
    set_arguments(&program);
    PyObject *globals = name_main(&program);
    PyObject *source = must(read_source(&program));
    PyObject *code = validated_code(&program, source, flags);
    must_be_zero(audit_start(claims, flags, program.path, program.security_error));
    display_start(memory, flags, source);
    PyObject *result = program_evaluate(&program, source, code, globals, flags);
    Py_XDECREF(code);
    Py_DECREF(source);
    if (!result || display_end() < 0)
        end_with_exception(&program);
    Py_DECREF(result);
    ending_normal(program.ending.modules ? &program.ending : NULL, program.main_module);
}
