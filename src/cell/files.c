/*
 * The supervisor's half of work on a living cell's files: starts the child, reads its messages a few
 * at a time, and ends it when it is silent for too long. Whatever a message says is checked before
 * anybody hears of it.
 */
#include "cell/files.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/files_parts.h"

enum { SILENCE_S = 30, AT_ONCE = 16, HEX_BYTES = 64 };

struct files_work {
    struct files_task task; /* of which only the calls are still good */
    pid_t child;
    int socket;
    struct event *on_message;
    bool paused;
    bool busy, cancelled; /* cancelled from within one of its own calls */
    struct files_message message;
};

/* --- what the child says --- */

static bool
is_terminated(const char *text, size_t n)
{
    return memchr(text, '\0', n) != NULL;
}

static bool
is_hash(const char *text)
{
    size_t n = strlen(text);
    return n == 0 || (n == HEX_BYTES && strspn(text, "0123456789abcdef") == n);
}

static bool
is_mime(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text >= 0x7f)
            return false;
    return true;
}

static bool
is_entry(const struct collected_file *file)
{
    return is_terminated(file->path, sizeof(file->path)) && file->path[0] != '\0' &&
           is_terminated(file->mime, sizeof(file->mime)) && is_mime(file->mime) &&
           is_terminated(file->sha256, sizeof(file->sha256)) && is_hash(file->sha256);
}

enum files_word
files_take(const void *bytes, size_t n, struct files_message *ret)
{
    enum { BODY = offsetof(struct files_message, data) };
    if (n < sizeof(ret->head) || n > sizeof(*ret))
        return 0;
    memmove(ret, bytes, n);
    const struct files_head *head = &ret->head;
    size_t body = n - BODY;
    if (head->word == FILES_ENTRY && head->n == 0 && body == sizeof(ret->entry))
        return is_entry(&ret->entry) ? FILES_ENTRY : 0;
    if (head->word == FILES_DATA && head->n > 0 && head->n == body)
        return FILES_DATA;
    if (head->word != FILES_END || head->n != 0 || body != sizeof(ret->end) ||
        !is_terminated(ret->end.sha256, sizeof(ret->end.sha256)) ||
        !is_hash(ret->end.sha256) || ret->end.err.code > 0)
        return 0;
    ret->end.note[sizeof(ret->end.note) - 1] = '\0';
    ret->end.err.text[sizeof(ret->end.err.text) - 1] = '\0';
    return FILES_END;
}

/* --- its life --- */

static void
end_child(pid_t child)
{
    if (child <= 0)
        return;
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void
work_free(struct files_work *work)
{
    if (work->on_message)
        event_free(work->on_message);
    fd_close(&work->socket);
    end_child(work->child);
    free(work);
}

void
files_cancel(struct files_work *work)
{
    if (!work)
        return;
    work->cancelled = true;
    if (!work->busy)
        work_free(work);
}

static void
finish(struct files_work *work, const struct files_end *end)
{
    work->cancelled = true;
    work->task.on_end(work->task.context, &end->err, end->skipped, end->note,
                      end->sha256);
}

static void
fail(struct files_work *work, int code, const char *why)
{
    struct files_end end = {0};
    err_set(&end.err, code, "%s", why);
    finish(work, &end);
}

static void
hear(struct files_work *work, size_t n)
{
    const struct files_task *task = &work->task;
    struct files_message *message = &work->message;
    switch (files_take(message, n, message)) {
    case FILES_ENTRY:
        if (task->on_entry)
            task->on_entry(task->context, &message->entry);
        break;
    case FILES_DATA:
        if (task->on_data)
            task->on_data(task->context, (struct span){message->data, message->head.n});
        break;
    case FILES_END:
        finish(work, &message->end);
        break;
    default:
        fail(work, -EPROTO, "the process that reads the cell's files makes no sense");
    }
}

static void
hear_some(struct files_work *work)
{
    for (int i = 0; i < AT_ONCE && !work->paused && !work->cancelled; i++) {
        ssize_t n = recv(work->socket, &work->message, sizeof(work->message),
                         MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0)
            fail(work, -EIO, "the process that reads the cell's files has ended early");
        else
            hear(work, (size_t)n);
    }
}

static void
on_message(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    struct files_work *work = context;
    work->busy = true;
    if (what & EV_TIMEOUT)
        fail(work, -ETIMEDOUT, "reading the cell's files takes too long");
    else
        hear_some(work);
    work->busy = false;
    if (work->cancelled)
        work_free(work);
}

void
files_pause(struct files_work *work, bool pause)
{
    static const struct timeval silence = {.tv_sec = SILENCE_S};
    if (work->paused == pause)
        return;
    work->paused = pause;
    if (pause)
        event_del(work->on_message);
    else
        event_add(work->on_message, &silence);
}

int
files_follow(struct event_base *base, const struct files_task *task, int socket,
             pid_t child, struct files_work **ret, struct err *err)
{
    static const struct timeval silence = {.tv_sec = SILENCE_S};
    struct files_work *work = calloc(1, sizeof(*work));
    if (!work) {
        fd_close(&socket);
        end_child(child);
        return err_set(err, -ENOMEM, "no memory for the cell's files");
    }
    work->task = *task;
    work->socket = socket;
    work->child = child;
    work->on_message = event_new(base, socket, EV_READ | EV_PERSIST, on_message, work);
    if (!work->on_message || event_add(work->on_message, &silence) < 0) {
        work_free(work);
        return err_set(err, -ENOMEM, "no memory to watch the cell's files");
    }
    *ret = work;
    return 0;
}

int
files_start(struct event_base *base, const struct files_task *task,
            struct files_work **ret, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket for the cell's files");
    pid_t child = fork();
    if (child == 0)
        files_child(task, ends[1]);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return err_set(err, -errno, "start a process for the cell's files: %s",
                       strerrordesc_np(errno));
    }
    return files_follow(base, task, ends[0], child, ret, err);
}
