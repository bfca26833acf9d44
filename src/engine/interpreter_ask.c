/*
 * Runs an interpreter once and reads its answer. Bounded in time and size, since what is
 * named by
 * --python may be anything: a program that hangs, floods, or is no Python at all. It runs
 * with the rights of whoever named it, as `python3` on their command line would.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "engine/interpreter_parts.h"

enum {
    ANSWER_BYTES = 256 * 1024,
    COMPLAINT_BYTES = 8 * 1024,
    READ_BYTES = 16 * 1024,
    VARIABLES_MAX = 7, /* those that pass, the locale, one of the question, the end */
};

/* The only variables that pass: they choose which interpreter a launcher (pyenv's shims)
 * starts, and say nothing to Python itself, which also runs with -E. */
static const char *const passed[] = {"PATH", "HOME", "PYENV_ROOT", "PYENV_VERSION"};

struct child {
    pid_t pid;
    int out, err;
};

/* The entries of our own environment that pass, as they are. */
static void
environment_fill(char *variable, char *ret[VARIABLES_MAX])
{
    static char locale[] = "LC_ALL=C.UTF-8";
    size_t n = 0;
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        for (char **entry = environ; entry && *entry; entry++) {
            size_t name_n = strlen(passed[i]);
            if (strncmp(*entry, passed[i], name_n) != 0 || (*entry)[name_n] != '=')
                continue;
            ret[n++] = *entry;
            break;
        }
    ret[n++] = locale;
    if (variable)
        ret[n++] = variable;
    ret[n] = NULL;
}

static int
spawn_files(posix_spawn_file_actions_t *files, int out, int err)
{
    int r = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, out, 1);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, err, 2);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(files, 3);
    return r;
}

/* A process group of its own, so that what a launcher started ends with it. */
static int
spawn_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int r = posix_spawnattr_setpgroup(attributes, 0);
    if (r == 0)
        r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP |
                                                     POSIX_SPAWN_SETSIGMASK |
                                                     POSIX_SPAWN_SETSIGDEF);
    return r;
}

static int
spawn(const char *executable, const struct question *question, int out, int err,
      pid_t *ret)
{
    AUTO_FREE char *name = strdup(executable);
    AUTO_FREE char *program = strdup(question->program);
    AUTO_FREE char *variable = question->variable ? strdup(question->variable) : NULL;
    if (!name || !program || (question->variable && !variable))
        return ENOMEM;
    char *environment[VARIABLES_MAX];
    environment_fill(variable, environment);
    char bytecode[] = "-B", bare[] = "-E", no_user_site[] = "-s", code[] = "-c";
    char *argv[] = {name, bytecode, bare, no_user_site, code, program, NULL};

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    int r = spawn_files(&files, out, err);
    if (r == 0)
        r = spawn_attributes(&attributes);
    if (r == 0)
        r = posix_spawn(ret, executable, &files, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return r;
}

static int
child_start(const char *executable, const struct question *question, struct child *ret,
            struct err *err)
{
    int out[2], complaint[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys(err, "cannot make a pipe to ask %s", executable);
    AUTO_CLOSE int out_read = out[0];
    AUTO_CLOSE int out_write = out[1];
    if (pipe2(complaint, O_CLOEXEC) < 0)
        return err_sys(err, "cannot make a pipe to ask %s", executable);
    AUTO_CLOSE int complaint_read = complaint[0];
    AUTO_CLOSE int complaint_write = complaint[1];

    pid_t pid = -1;
    int r = spawn(executable, question, out_write, complaint_write, &pid);
    if (r != 0)
        return err_set(err, -r, "%s cannot be executed: %s", executable, strerror(r));
    *ret = (struct child){pid, fd_take(&out_read), fd_take(&complaint_read)};
    return 0;
}

/* Ends the whole group: the answer is complete or will not come, and a launcher's
 * leftovers are of no use. The leader is not reaped before, so the group's number is
 * still its own. */
static void
child_end(struct child *child)
{
    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(fd_take(&child->out));
    close(fd_take(&child->err));
}

/* Reads what is there: 1 more may come, 0 the end, or a negative errno. What exceeds a
 * full buffer is dropped when `lossy`. */
static int
read_some(int fd, struct buf *into, bool lossy)
{
    char bytes[READ_BYTES];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 1 : -errno;
    if (n == 0)
        return 0;
    int r = buf_append(into, bytes, (size_t)n);
    return r < 0 && !(lossy && r == -ENOSPC) ? r : 1;
}

static int
read_answer(struct child *child, const char *executable, int limit_ms, struct buf *answer,
            struct buf *complaint, struct err *err)
{
    uint64_t deadline_us = clock_now_us() + (uint64_t)limit_ms * 1000;
    struct pollfd wait[2] = {{.fd = child->out, .events = POLLIN},
                             {.fd = child->err, .events = POLLIN}};
    for (;;) {
        uint64_t now_us = clock_now_us();
        if (now_us >= deadline_us)
            return err_set(err, -ETIMEDOUT, "%s gave no answer in %.3g s", executable,
                           limit_ms / 1000.0);
        int left_ms = (int)((deadline_us - now_us + 999) / 1000);
        if (poll(wait, 2, left_ms) < 0) {
            if (errno == EINTR)
                continue;
            return err_sys(err, "cannot wait for %s", executable);
        }
        if (wait[1].revents && read_some(child->err, complaint, true) <= 0)
            wait[1].fd = -1;
        if (!wait[0].revents)
            continue;
        int r = read_some(child->out, answer, false);
        if (r == 0)
            return 0;
        if (r < 0)
            return err_set(err, r, "%s answered with more than %d bytes: is it a Python?",
                           executable, ANSWER_BYTES);
    }
}

/* The last line of what it wrote to its error stream, for the sentence. */
static const char *
last_line(struct buf *complaint)
{
    while (complaint->n > 0 && (unsigned char)complaint->p[complaint->n - 1] <= ' ')
        complaint->p[--complaint->n] = '\0';
    if (complaint->n == 0)
        return "it wrote nothing";
    char *line = memrchr(complaint->p, '\n', complaint->n);
    line = line ? line + 1 : complaint->p;
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return line;
}

int
interpreter_ask(const char *executable, const struct question *question, int limit_ms,
                json_t **ret, struct err *err)
{
    AUTO_BUF struct buf answer = {0};
    AUTO_BUF struct buf complaint = {0};
    buf_init(&answer, ANSWER_BYTES);
    buf_init(&complaint, COMPLAINT_BYTES);

    struct child child;
    int r = child_start(executable, question, &child, err);
    if (r < 0)
        return r;
    r = read_answer(&child, executable, limit_ms, &answer, &complaint, err);
    /* Its traceback was written before its output ended, and may still lie in the
     * pipe. */
    if (r == 0 && fd_set_nonblocking(child.err) == 0)
        (void)read_some(child.err, &complaint, true);
    child_end(&child);
    if (r < 0)
        return r;

    json_error_t why;
    json_t *json = json_loadb(answer.n > 0 ? answer.p : "", answer.n, 0, &why);
    if (!json_is_object(json)) {
        json_decref(json);
        return err_set(err, -EINVAL,
                       "%s did not say what it is (%.120s): is it a Python?", executable,
                       last_line(&complaint));
    }
    *ret = json;
    return 0;
}
