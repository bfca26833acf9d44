/*
 * A zygote: an interpreter in a factory's jail that imports what programs want and then does one
 * thing, again and again: fork. Each child joins the namespaces of a cell that the factory has
 * made, becomes its user, seals itself, waits for a job from the supervisor, and turns into
 * the submitted program. The zygote itself never sees a job, and has exactly one thread: what a
 * lock held elsewhere would do to a forked child is the reason.
 *
 * Forked heap pages are shared until written: gc.freeze keeps the collector from touching them.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "guest/boot.h"
#include "guest/display.h"
#include "guest/guest.h"
#include "guest/job.h"
#include "guest/threads.h"
#include "jail/cgroup.h"
#include "kernel/kernel.h"

enum { CLAIMS_FD = 5, JOINS_FD, FIRST_FREE_FD = JOINS_FD + CGROUP_SLOTS };
enum { REHEARSAL_MS = 2 }; /* no job by then: the cell is one for later */
enum { KEPT_FDS = 6 };     /* and the groups' */
enum { FDS_MAX = ZYGOTE_JOINS + CGROUP_SLOTS };

struct zygote {
    const struct guest_setup *setup;
    struct ending ending;
    struct threads threads; /* of libraries that compute */
};

static NORETURN void
fail(const char *what)
{
    struct err err = {0};
    err_set(&err, -ECHILD, "the zygote %s", what);
    cell_give_up(&err);
}

/* sys.argv[1:] are module names; one that is not installed, or fails, is left out. */
static void
import_modules(void)
{
    PyObject *argv = PySys_GetObject("argv");
    for (Py_ssize_t i = 1; argv && i < PyList_Size(argv); i++) {
        PyObject *module = PyImport_Import(PyList_GetItem(argv, i));
        PyErr_Clear();
        Py_XDECREF(module);
    }
}

static void
freeze_heap(void)
{
    static const char *const calls[] = {"collect", "freeze"};
    PyObject *gc = PyImport_ImportModule("gc");
    for (size_t i = 0; gc && i < sizeof(calls) / sizeof(*calls); i++) {
        PyObject *done = PyObject_CallMethod(gc, calls[i], NULL);
        Py_XDECREF(done);
    }
    PyErr_Clear();
    Py_XDECREF(gc);
}

/* Huge pages for the heap: a fork copies one entry of the page table where it would copy 512,
 * and the child's end frees as few. What the child writes to is split then, for itself. A
 * kernel that cannot leaves small pages, and slower forks. */
static void
collapse_heap(void)
{
    enum { LINE_BYTES = 512 };
    const unsigned long huge_bytes = 2UL << 20;
    char line[LINE_BYTES], access[8], path[LINE_BYTES];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long start, end, inode;
        path[0] = '\0';
        int n = sscanf(line, "%lx-%lx %7s %*x %*s %lu %511s", &start, &end, access,
                       &inode, path);
        bool heap = n >= 4 && inode == 0 && strcmp(access, "rw-p") == 0 &&
                    (path[0] == '\0' || strcmp(path, "[heap]") == 0);
        start = (start + huge_bytes - 1) & ~(huge_bytes - 1);
        end &= ~(huge_bytes - 1);
        if (heap && end > start)
            (void)madvise((void *)start, end - start, K_MADV_COLLAPSE);
    }
    if (maps)
        fclose(maps);
}

/* A link of /proc/self/task for each thread, and two for the folder itself. */
static bool
has_one_thread(void)
{
    struct stat is;
    return stat("/proc/self/task", &is) == 0 && is.st_nlink == 3;
}

/* A zygote has one thread, and its libraries have read that they may start no other; programs
 * find in their environment what they would find in a cold cell. */
static void
tell_threads(uint32_t threads)
{
    static const char *const names[] = {GUEST_THREAD_VARIABLES};
    PyObject *os = PyImport_ImportModule("os");
    PyObject *variables = os ? PyObject_GetAttrString(os, "environ") : NULL;
    PyObject *text = PyUnicode_FromFormat("%u", threads);
    for (size_t i = 0; variables && text && i < sizeof(names) / sizeof(*names); i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (name && PyObject_SetItem(variables, name, text) < 0)
            PyErr_Clear();
        Py_XDECREF(name);
    }
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(variables);
    Py_XDECREF(os);
}

/* --- the child --- */

/* numpy's legacy generator is seeded at import: every child would draw the same numbers. The
 * standard library's own reseeds itself after a fork. */
static void
reseed(void)
{
    PyObject *modules = PySys_GetObject("modules");
    PyObject *random = modules ? PyDict_GetItemString(modules, "numpy.random") : NULL;
    PyObject *done = random ? PyObject_CallMethod(random, "seed", NULL) : NULL;
    PyErr_Clear();
    Py_XDECREF(done);
}

/* Before anything else: the init waits for it, and hides from all of us afterwards. */
static int
join_namespaces(const int *fds, struct err *err)
{
    if (setns(fds[ZYGOTE_INIT], CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET |
                                    CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
        return err_sys(err, "join the cell's namespaces");
    int r = fd_write_all(fds[ZYGOTE_JOINED], "j", 1);
    return r < 0 ? err_set(err, r, "the cell's init is gone") : 0;
}

/* A network namespace is lent to cells one after another (warm/factory_net.c): ours must not
 * have a socket of the last one. The first line of the list is its heading. */
static int
check_sockets(struct err *err)
{
    enum { LIST_BYTES = 512 };
    char list[LIST_BYTES];
    AUTO_CLOSE int fd = open("/proc/self/net/unix", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, list, sizeof(list));
    if (n < 0)
        return err_sys(err, "look for sockets in the cell's network namespace");
    const char *line_end = memchr(list, '\n', (size_t)n);
    return line_end && line_end + 1 == list + n
               ? 0
               : err_set(err, -EBUSY, "a socket of an earlier cell is still there");
}

static int
become_user(const struct zygote_request *request, struct err *err)
{
    const uid_t id = JAIL_UID;
    if (request->drop_groups && syscall(SYS_setgroups, 0, NULL) < 0)
        return err_sys(err, "drop the supplementary groups");
    if (syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0)
        return err_sys(err, "become the cell's user");
    return 0;
}

static int
join_cell(const struct zygote_request *request, int *fds, size_t fds_n, struct err *err)
{
    struct process_fd kept[FDS_MAX] = {
        {fds[ZYGOTE_GUEST], GUEST_FD},   {fds[ZYGOTE_STDIN], 0},
        {fds[ZYGOTE_STDOUT], 1},         {fds[ZYGOTE_STDERR], 2},
        {fds[ZYGOTE_CLAIMS], CLAIMS_FD}, {fds[ZYGOTE_LANDLOCK], GUEST_LANDLOCK_FD}};
    int joins[CGROUP_SLOTS] = {-1, -1, -1}, reach;
    size_t kept_n = KEPT_FDS;
    for (size_t i = ZYGOTE_JOINS; i < fds_n; i++, kept_n++) {
        kept[kept_n] = (struct process_fd){fds[i], JOINS_FD + (int)(i - ZYGOTE_JOINS)};
        joins[i - ZYGOTE_JOINS] = kept[kept_n].number;
    }
    int joined = join_namespaces(fds, err);
    int r = process_keep_fds(kept, kept_n, FIRST_FREE_FD, &reach, err);
    if (joined < 0)
        return joined; /* GUEST_FD is where it belongs by now, and can be told */
    /* Then into its group: what is copied from now on is the cell's memory. */
    if (r == 0)
        r = cgroup_join(joins, err);
    if (r == 0)
        r = become_user(request, err);
    if (r < 0)
        return r;
    close_range(JOINS_FD, FIRST_FREE_FD, 0);
    r = check_sockets(err);
    if (r < 0)
        return r;
    setsid(); /* the supervisor's session may have a terminal */
    umask(022);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* as after an execve: its own /proc/self */
    (void)!file_write(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
    return chdir("/tmp") < 0 ? err_sys(err, "enter the cell's /tmp") : 0;
}

/* sys.argv as boot.h leaves it in a cold cell. */
static void
set_boot_arguments(const struct job_view *job)
{
    PyObject *argv = Py_BuildValue("[s, O, s]", "-c", Py_None, "/tmp");
    PyObject *name = argv ? PyUnicode_DecodeFSDefault(job->name) : NULL;
    if (!name || PyList_SetItem(argv, 1, name) < 0)
        fail("has no memory for a job's name");
    const char *argument = job->arguments;
    for (uint32_t i = 0; i < job->head.args_n; i++, argument += strlen(argument) + 1) {
        PyObject *text = PyUnicode_DecodeFSDefault(argument);
        if (!text || PyList_Append(argv, text) < 0)
            fail("has no memory for a job's arguments");
        Py_DECREF(text);
    }
    PySys_SetObject("argv", argv);
    Py_DECREF(argv);
}

/* The first job of a process would pay for every page that it is the first to touch: a copy of
 * the zygote's, a page of code that a fork does not map. So an idle cell judges and runs a few
 * lines of ours first, which leave nothing behind. Where a job waits for the cell that would be
 * time lost. */
static void
rehearse(const struct ending *ending, struct validator **ret)
{
    static const char text[] = "import math\n"
                               "def area(side):\n"
                               "    return side ** 2\n"
                               "values = [area(i) for i in range(3)]\n"
                               "mean = sum(values) / len(values)\n"
                               "table = {'mean': mean, 'root': math.sqrt(mean)}\n"
                               "try:\n"
                               "    text = f\"{table['mean']:.2f} {values!r}\"\n"
                               "except KeyError as error:\n"
                               "    text = str(error)\n"
                               "parts = [part.strip() for part in text.split(',')]\n";
    PyObject *globals = PyDict_New();
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *code = validate_rehearse(text, "/tmp/main.py", ret);
    bool whole = globals && builtins && code &&
                 PyDict_SetItemString(globals, "__builtins__", builtins) == 0;
    PyObject *done = whole ? PyEval_EvalCode(code, globals, globals) : NULL;
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(code);
    Py_XDECREF(builtins);
    Py_XDECREF(globals);
    done = PyObject_CallObject(ending->collect, NULL);
    PyErr_Clear();
    Py_XDECREF(done);
}

static NORETURN void
be_cell(const struct zygote *zygote, const struct zygote_request *request, int *fds,
        size_t fds_n)
{
    struct err err = {0};
    struct job_view job;
    if (join_cell(request, fds, fds_n, &err) < 0)
        cell_give_up(&err);
    PyOS_AfterFork_Child();
    reseed();
    struct program program;
    program_prepare(&program, zygote->setup->flags, &zygote->ending);
    struct claims_memory *memory = cell_seal(&zygote->setup->seal, CLAIMS_FD);
    if (!job_comes(GUEST_FD, REHEARSAL_MS))
        rehearse(&zygote->ending, &program.validator);
    int r = job_receive(GUEST_FD, &job, &err);
    if (r == -EPIPE)
        _exit(EXIT_SUCCESS); /* the pool has shrunk: there will be no job */
    bool stays = r == 0 && (job.head.flags & GUEST_SESSION);
    if (r == 0)
        r = stays ? job_narrow(&job, &err) : job_place(&job, &err);
    if (r < 0)
        cell_give_up(&err);
    if (job.head.threads != zygote->setup->threads)
        tell_threads(job.head.threads);
    threads_allow(&zygote->threads, job.head.threads, job.code, (size_t)job.head.code_n);
    set_boot_arguments(&job);
    uint32_t flags = job.head.flags | GUEST_WARM;
    if (stays)
        session_run(&program, memory, &job);
    job_done(&job);
    if (!(flags & GUEST_CHECK))
        close(GUEST_FD);
    program_run(&program, memory, flags);
}

/* --- the loop --- */

static void
fork_cell(const struct zygote *zygote, const struct zygote_request *request, int *fds,
          size_t fds_n, struct zygote_reply *reply)
{
    if (!has_one_thread()) {
        reply->pid = -1;
        err_set(&reply->err, -EDEADLK,
                "the zygote has more than one thread: a module of "
                "the preload list has started one");
        return;
    }
    /* The child's pid namespace; the others it joins itself. */
    if (setns(fds[ZYGOTE_INIT], CLONE_NEWPID) < 0) {
        reply->pid = err_sys(&reply->err, "enter the cell's pid namespace");
        return;
    }
    PyOS_BeforeFork();
    /* A child of the factory, which reaps it: what it reports is a wait status. */
    pid_t pid = k_clone(CLONE_PARENT, SIGCHLD, NULL);
    if (pid == 0)
        be_cell(zygote, request, fds, fds_n);
    int saved = errno;
    PyOS_AfterFork_Parent();
    errno = saved;
    reply->pid = pid > 0 ? pid : err_sys(&reply->err, "fork the zygote");
}

static NORETURN void
serve(const struct zygote *zygote)
{
    for (;;) {
        struct zygote_request request;
        struct zygote_reply reply = {0};
        int fds[FDS_MAX];
        ssize_t n =
            fd_receive(ZYGOTE_FACTORY_FD, &request, sizeof(request), fds, FDS_MAX);
        if (n != (ssize_t)sizeof(request) || request.magic != GUEST_MAGIC)
            _exit(EXIT_SUCCESS); /* the factory is gone */
        size_t fds_n = 0;
        while (fds_n < FDS_MAX && fds[fds_n] >= 0)
            fds_n++;
        if (fds_n < ZYGOTE_JOINS)
            reply.pid = err_set(&reply.err, -EBADF, "a request without its descriptors");
        else
            fork_cell(zygote, &request, fds, fds_n, &reply);
        for (size_t i = 0; i < fds_n; i++)
            close(fds[i]);
        if (fd_send(ZYGOTE_FACTORY_FD, &reply, sizeof(reply), NULL, 0) < 0)
            _exit(EXIT_SUCCESS);
    }
}

void
zygote_run(void)
{
    struct err err = {0};
    int claims_fd;
    struct guest_setup *setup = malloc(sizeof(*setup));
    struct zygote zygote = {.setup = setup};
    if (!setup)
        fail("has no memory for its setup");
    if (cell_receive_setup(setup, &claims_fd, &err) < 0)
        cell_give_up(&err);
    threads_expect();
    import_modules();
    tell_threads(setup->threads);
    threads_prepare(&zygote.threads);
    validate_prepare();
    display_prepare();
    ending_prepare(&zygote.ending);
    freeze_heap();
    collapse_heap();
    if (!has_one_thread())
        fail("has more than one thread after its imports: a module of the preload list "
             "has started one");
    struct guest_ready ready = {.magic = GUEST_MAGIC};
    if (fd_send(GUEST_FD, &ready, sizeof(ready), NULL, 0) < 0)
        _exit(EXIT_FAILURE);
    serve(&zygote);
}
