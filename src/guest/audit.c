/*
 * Makes refusals legible. A PEP 578 audit hook sees what the program is about to do in
 * words (os.remove, '/home/u/f.txt') where the kernel sees a number and a pointer; what
 * this cell forbids anyway it turns into adyton.SecurityError, a PermissionError that
 * names the act, the rule and the allowed folder, and notes it as a claim.
 *
 * Nothing rests on it: whatever slips past (ctypes, raw system calls, events that CPython
 * does not raise) meets the mounts, Landlock and seccomp. Reading is not its business:
 * what is not in the cell is not there, and ordinary code looks for files that do not
 * exist all the time.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/display.h"
#include "guest/guest.h"

/* Exported by every CPython since 3.8, but not part of the limited API. */
typedef int (*audit_function)(const char *event, PyObject *arguments, void *context);
extern int PySys_AddAuditHook(audit_function hook, void *context);

enum { NO_ARGUMENT = -1, MESSAGE_BYTES = 512, FRAMES_MAX = 1000 };

struct hook {
    struct claims *claims;
    uint32_t flags;        /* enum guest_flag */
    const char *program;   /* path of the submitted file */
    char folder[PATH_MAX]; /* the allowed one */
    PyObject *error;       /* adyton.SecurityError */
};

struct act {
    const char *event;
    int path, other_path;    /* arguments that must lie inside the allowed folder */
    int folder_fd, other_fd; /* arguments that make a relative path mean something else */
};

/* Acts that change a file system. Where the fd argument is given and not -1, the path is
 * relative to a folder that only the kernel can tell: it decides. */
static const struct act file_acts[] = {
    {"os.chflags", 0, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
    {"os.chmod", 0, NO_ARGUMENT, 2, NO_ARGUMENT},
    {"os.chown", 0, NO_ARGUMENT, 3, NO_ARGUMENT},
    {"os.link", 1, NO_ARGUMENT, 3, NO_ARGUMENT},
    {"os.mkdir", 0, NO_ARGUMENT, 2, NO_ARGUMENT},
    {"os.remove", 0, NO_ARGUMENT, 1, NO_ARGUMENT},
    {"os.removexattr", 0, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
    {"os.rename", 0, 1, 2, 3},
    {"os.rmdir", 0, NO_ARGUMENT, 1, NO_ARGUMENT},
    {"os.setxattr", 0, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
    {"os.symlink", 1, NO_ARGUMENT, 2, NO_ARGUMENT},
    {"os.truncate", 0, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
    {"os.utime", 0, NO_ARGUMENT, 3, NO_ARGUMENT},
    {"shutil.chown", 0, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
    {"shutil.copyfile", 1, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
    {"shutil.copytree", 1, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
    {"shutil.move", 0, 1, NO_ARGUMENT, NO_ARGUMENT},
    {"shutil.rmtree", 0, NO_ARGUMENT, 1, NO_ARGUMENT},
    {"shutil.unpack_archive", 1, NO_ARGUMENT, NO_ARGUMENT, NO_ARGUMENT},
};

static const char *const program_acts[] = {"os.exec",   "os.posix_spawn",   "os.spawn",
                                           "os.system", "subprocess.Popen", "pty.spawn"};
static const char *const fork_acts[] = {"os.fork", "os.forkpty"};
static const char *const network_acts[] = {"socket.getaddrinfo", "socket.gethostbyaddr",
                                           "socket.gethostbyname", "socket.getnameinfo"};

/* What lies outside the folder and may be written all the same. */
static const char *const writable[] = {"/dev/shm/", "/dev/null",   "/dev/zero",
                                       "/dev/full", "/dev/stdout", "/dev/stderr",
                                       "/dev/fd/",  "/proc/self/"};

static bool
begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "/a/./b/../c" -> "/a/c", by text alone: a link may still lead elsewhere, and the kernel
 * will see where. In place. */
static void
normalise(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        while (*from == '/')
            from++;
        size_t n = strcspn(from, "/");
        if (n == 2 && from[0] == '.' && from[1] == '.') {
            while (to > path && *--to != '/')
                continue;
        } else if (n > 0 && !(n == 1 && from[0] == '.')) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        from += n;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

/* The absolute path of an argument; false when it is none (a descriptor, an odd object,
 * too long): then there is nothing to say about it here. */
static bool
absolute_path(PyObject *argument, char path[PATH_MAX])
{
    PyObject *bytes = NULL;
    if (PyUnicode_Check(argument))
        bytes = PyUnicode_EncodeFSDefault(argument);
    else if (PyBytes_Check(argument))
        bytes = Py_BuildValue("O", argument);
    else if (PyObject_HasAttrString(argument, "__fspath__")) {
        /* shutil hands the caller's own object on. */
        PyObject *given = PyObject_CallMethod(argument, "__fspath__", NULL);
        bytes = given && PyUnicode_Check(given) ? PyUnicode_EncodeFSDefault(given) : NULL;
        Py_XDECREF(given);
    }
    if (!bytes) {
        PyErr_Clear();
        return false;
    }
    const char *text = PyBytes_AsString(bytes);
    char here[PATH_MAX] = "";
    bool whole = text[0] == '/' || getcwd(here, sizeof(here));
    int n =
        whole ? snprintf(path, PATH_MAX, "%s/%s", text[0] == '/' ? "" : here, text) : -1;
    Py_DECREF(bytes);
    if (n < 0 || n >= PATH_MAX)
        return false;
    normalise(path);
    return true;
}

static bool
is_allowed(const struct hook *hook, const char *path)
{
    size_t n = strlen(hook->folder);
    if (begins(path, hook->folder) && (path[n] == '/' || path[n] == '\0'))
        return true;
    n = strlen(job_workspace_place);
    if ((hook->flags & GUEST_WORKSPACE) && begins(path, job_workspace_place) &&
        (path[n] == '/' || path[n] == '\0'))
        return true;
    for (size_t i = 0; i < sizeof(writable) / sizeof(*writable); i++)
        if (begins(path, writable[i]))
            return true;
    return false;
}

/* The line of the submitted file that led here. */
static int
current_line(const struct hook *hook)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    int line = 0;
    Py_XINCREF(frame);
    for (int i = 0; frame && frame != Py_None && i < FRAMES_MAX && line == 0; i++) {
        PyObject *code = PyObject_GetAttrString(frame, "f_code");
        PyObject *name = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
        if (name && PyUnicode_Check(name) &&
            PyUnicode_CompareWithASCIIString(name, hook->program) == 0) {
            PyObject *number = PyObject_GetAttrString(frame, "f_lineno");
            line = number && PyLong_Check(number) ? (int)PyLong_AsLong(number) : 0;
            Py_XDECREF(number);
        }
        PyObject *back = PyObject_GetAttrString(frame, "f_back");
        Py_XDECREF(name);
        Py_XDECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    PyErr_Clear();
    Py_XDECREF(frame);
    return line;
}

/* One row for each distinct act: a loop over a thousand attempts is one row with a
 * count. */
static void
note(struct hook *hook, const char *rule, const char *call, const char *object)
{
    struct claims *claims = hook->claims;
    /* Forked children share this memory and note their acts too: rows are taken
     * atomically. */
    for (uint32_t i = 0; i < claims->acts_n && i < CLAIM_ACTS_MAX; i++) {
        struct claim_act *act = &claims->acts[i];
        if (strncmp(act->call, call, sizeof(act->call) - 1) == 0 &&
            strncmp(act->object, object, sizeof(act->object) - 1) == 0) {
            __atomic_fetch_add(&act->count, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    uint32_t row = __atomic_fetch_add(&claims->acts_n, 1, __ATOMIC_RELAXED);
    if (row >= CLAIM_ACTS_MAX) {
        __atomic_store_n(&claims->acts_n, CLAIM_ACTS_MAX, __ATOMIC_RELAXED);
        __atomic_fetch_add(&claims->acts_dropped, 1, __ATOMIC_RELAXED);
        return;
    }
    struct claim_act *act = &claims->acts[row];
    *act = (struct claim_act){.count = 1, .line = current_line(hook)};
    snprintf(act->rule, sizeof(act->rule), "%s", rule);
    snprintf(act->call, sizeof(act->call), "%s", call);
    snprintf(act->object, sizeof(act->object), "%s", object);
}

/* Raises adyton.SecurityError(EPERM, text, object). */
static int PRINTF(5, 6) refuse(struct hook *hook, const char *rule, const char *call,
                               const char *object, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    note(hook, rule, call, object);
    PyObject *name = PyUnicode_DecodeFSDefault(object);
    PyObject *error =
        name ? PyObject_CallFunction(hook->error, "isO", EPERM, text, name) : NULL;
    if (error)
        PyErr_SetObject(hook->error, error);
    Py_XDECREF(error);
    Py_XDECREF(name);
    return -1;
}

static int
refuse_path(struct hook *hook, const char *call, const char *path)
{
    return refuse(hook, "file-outside", call, path,
                  "%s is blocked outside the allowed folder %s (rule file-outside)", call,
                  hook->folder);
}

static int
check_path(struct hook *hook, const char *call, PyObject *arguments, int path,
           int folder_fd)
{
    char text[PATH_MAX];
    if (path == NO_ARGUMENT || path >= PyTuple_Size(arguments))
        return 0;
    if (folder_fd != NO_ARGUMENT && folder_fd < PyTuple_Size(arguments)) {
        PyObject *fd = PyTuple_GetItem(arguments, folder_fd);
        if (fd && PyLong_Check(fd) && PyLong_AsLong(fd) >= 0)
            return 0;
    }
    if (!absolute_path(PyTuple_GetItem(arguments, path), text) || is_allowed(hook, text))
        return 0;
    return refuse_path(hook, call, text);
}

static int
on_file(struct hook *hook, const char *event, PyObject *arguments)
{
    for (size_t i = 0; i < sizeof(file_acts) / sizeof(*file_acts); i++) {
        const struct act *act = &file_acts[i];
        if (strcmp(event, act->event) != 0)
            continue;
        int r = check_path(hook, event, arguments, act->path, act->folder_fd);
        return r < 0 ? r
                     : check_path(hook, event, arguments, act->other_path, act->other_fd);
    }
    return 0;
}

/* open(path, mode, flags): by far the most frequent; reading goes by at once. */
static int
on_open(struct hook *hook, PyObject *arguments)
{
    PyObject *flags = PyTuple_Size(arguments) > 2 ? PyTuple_GetItem(arguments, 2) : NULL;
    long value = flags && PyLong_Check(flags) ? PyLong_AsLong(flags) : 0;
    if ((value & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)) == 0)
        return 0;
    return check_path(hook, "open for writing", arguments, 0, NO_ARGUMENT);
}

static bool
is_one_of(const char *event, const char *const *acts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(event, acts[i]) == 0)
            return true;
    return false;
}

/* The name of the program in the arguments of a starting event, for the sentence. */
static void
program_name(const char *event, PyObject *arguments, char text[PATH_MAX])
{
    PyObject *first = PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0) : NULL;
    PyObject *string = first ? PyObject_Str(first) : NULL;
    PyObject *bytes =
        string ? PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace") : NULL;
    snprintf(text, PATH_MAX, "%s", bytes ? PyBytes_AsString(bytes) : event);
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(string);
}

static int
on_program(struct hook *hook, const char *event, PyObject *arguments)
{
    char name[PATH_MAX];
    PyObject *list = PyTuple_Size(arguments) > 1 ? PyTuple_GetItem(arguments, 1) : NULL;
    if (strcmp(event, "subprocess.Popen") == 0 && list && programs_is_probe(list))
        return 0; /* it will be told that there is no such program */
    program_name(event, arguments, name);
    return refuse(hook, "process-start", event, name,
                  "%s is blocked: this policy runs no programs (rule process-start)",
                  event);
}

static int
on_socket(struct hook *hook, const char *event, PyObject *arguments)
{
    /* socket.__new__(self, family, type, protocol) */
    if (strcmp(event, "socket.__new__") == 0) {
        PyObject *family =
            PyTuple_Size(arguments) > 1 ? PyTuple_GetItem(arguments, 1) : NULL;
        long value = family && PyLong_Check(family) ? PyLong_AsLong(family) : AF_UNIX;
        if (value == AF_UNIX || value == -1)
            return 0;
        return refuse(hook, "network-use", "socket.socket",
                      value == AF_INET    ? "AF_INET"
                      : value == AF_INET6 ? "AF_INET6"
                                          : "another family",
                      "socket.socket is blocked: this policy has no network (rule "
                      "network-use)");
    }
    char name[PATH_MAX];
    if (!is_one_of(event, network_acts, sizeof(network_acts) / sizeof(*network_acts)))
        return 0;
    program_name(event, arguments, name);
    return refuse(hook, "network-use", event, name,
                  "%s is blocked: this policy has no network (rule network-use)", event);
}

static int
on_event(const char *event, PyObject *arguments, void *context)
{
    struct hook *hook = context;
    if (event[0] == 'o' && strcmp(event, "open") == 0)
        return on_open(hook, arguments);
    if (event[0] == 'i' && strcmp(event, "import") == 0) {
        display_on_import(arguments); /* nothing is refused here */
        return 0;
    }
    if (event[0] != 'o' && event[0] != 's' && event[0] != 'p')
        return 0;
    if ((hook->flags & GUEST_NO_PROGRAMS) &&
        is_one_of(event, program_acts, sizeof(program_acts) / sizeof(*program_acts)))
        return on_program(hook, event, arguments);
    if ((hook->flags & GUEST_NO_FORK) &&
        is_one_of(event, fork_acts, sizeof(fork_acts) / sizeof(*fork_acts)))
        return refuse(hook, "process-start", event, event,
                      "%s is blocked: this policy has one process (rule process-start)",
                      event);
    if ((hook->flags & GUEST_NO_NETWORK) && begins(event, "socket."))
        return on_socket(hook, event, arguments);
    if (begins(event, "os.") || begins(event, "shutil."))
        return on_file(hook, event, arguments);
    return 0;
}

/* `import adyton` gives the program the class to catch; it is a PermissionError
 * anyway. */
PyObject *
audit_prepare(void)
{
    PyObject *error = PyErr_NewExceptionWithDoc(
        "adyton.SecurityError",
        "A forbidden act was stopped. errno is EPERM; filename is what it was about.",
        PyExc_PermissionError, NULL);
    PyObject *module = error ? PyModule_New("adyton") : NULL;
    PyObject *modules = PySys_GetObject("modules");
    if (!module || !modules ||
        PyObject_SetAttrString(module, "SecurityError", error) < 0 ||
        PyDict_SetItemString(modules, "adyton", module) < 0)
        return NULL;
    Py_DECREF(module);
    return error;
}

int
audit_start(struct claims *claims, uint32_t flags, const char *program, PyObject *error)
{
    static struct hook hook; /* CPython keeps its address until the process ends */
    hook.claims = claims;
    hook.flags = flags;
    hook.program = program;
    snprintf(hook.folder, sizeof(hook.folder), "%s", program);
    char *slash = strrchr(hook.folder, '/');
    if (slash)
        *slash = '\0';
    hook.error = error;
    return PySys_AddAuditHook(on_event, &hook);
}
