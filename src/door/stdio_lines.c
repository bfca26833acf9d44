/* Lines on standard streams: see stdio_lines.h. */
#include "door/stdio_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

enum {
    READ_BYTES = 64 * 1024,
    PIPE_BYTES = 4096, /* PIPE_BUF: what a pipe that is ready takes without waiting */
    OUT_BYTES_MAX = 64 * 1024 * 1024,
    OUT_HIGH_BYTES = 16 * 1024 * 1024,
    OUT_LOW_BYTES = 1024 * 1024,
    LAST_MS = 500,
};

struct stdio_lines {
    struct stdio_options options;
    int in, out;
    struct event *on_read, *on_write;
    struct buf read, written;
    size_t written_done;
    bool is_skipping; /* a line that is too long */
    bool is_paused, has_ended, is_file;
};

static void
end(struct stdio_lines *lines)
{
    if (lines->has_ended)
        return;
    lines->has_ended = true;
    event_del(lines->on_read);
    lines->options.on_end(lines->options.context);
}

/* --- in --- */

static void
take_line(struct stdio_lines *lines, struct span line)
{
    bool skipped = lines->is_skipping;
    lines->is_skipping = false;
    if (skipped || lines->has_ended)
        return;
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    lines->options.on_line(lines->options.context, line);
}

static void
take_lines(struct stdio_lines *lines, size_t from)
{
    size_t done = 0;
    const char *newline;
    while ((newline = memchr(lines->read.p + from, '\n', lines->read.n - from))) {
        size_t at = (size_t)(newline - lines->read.p);
        take_line(lines, (struct span){lines->read.p + done, at - done});
        from = done = at + 1;
    }
    buf_consume(&lines->read, done);
    if (lines->read.n <= lines->options.line_max)
        return;
    if (!lines->is_skipping)
        lines->options.on_long(lines->options.context);
    lines->is_skipping = true;
    lines->read.n = 0;
}

static void
on_read(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct stdio_lines *lines = context;
    size_t from = lines->read.n;
    ssize_t n = buf_reserve(&lines->read, READ_BYTES) < 0
                    ? 0
                    : read(lines->in, lines->read.p + from, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) { /* a last line without an end counts */
        if (lines->read.n > 0)
            take_line(lines, buf_span(&lines->read));
        end(lines);
        return;
    }
    lines->read.n += (size_t)n;
    take_lines(lines, from);
    if (lines->is_file && !lines->has_ended && !lines->is_paused)
        event_active(lines->on_read, EV_READ, 0);
}

/* --- out --- */

static size_t
pending(const struct stdio_lines *lines)
{
    return lines->written.n - lines->written_done;
}

static void
set_pause(struct stdio_lines *lines, bool pause)
{
    if (lines->is_paused == pause || lines->has_ended)
        return;
    lines->is_paused = pause;
    if (pause)
        event_del(lines->on_read);
    else if (lines->is_file)
        event_active(lines->on_read, EV_READ, 0);
    else
        event_add(lines->on_read, NULL);
    lines->options.on_pause(lines->options.context, pause);
}

/* The stream is not ours alone, so it is not made non-blocking: a pipe that is ready takes a small
 * piece at once, and of a socket one can ask for that. */
static ssize_t
write_some(const struct stdio_lines *lines)
{
    struct pollfd ready = {.fd = lines->out, .events = POLLOUT};
    const char *p = lines->written.p + lines->written_done;
    size_t n = pending(lines);
    ssize_t sent = send(lines->out, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno != ENOTSOCK)
        return sent;
    if (poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(lines->out, p, n < PIPE_BYTES ? n : PIPE_BYTES);
}

/* False: nobody reads any more. */
static bool
flush(struct stdio_lines *lines)
{
    while (pending(lines) > 0) {
        ssize_t n = write_some(lines);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return false;
        lines->written_done += (size_t)n;
    }
    if (pending(lines) == 0)
        lines->written.n = lines->written_done = 0;
    return true;
}

static void
on_write(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct stdio_lines *lines = context;
    if (!flush(lines)) {
        event_del(lines->on_write);
        end(lines);
        return;
    }
    if (pending(lines) == 0)
        event_del(lines->on_write);
    if (pending(lines) < OUT_LOW_BYTES)
        set_pause(lines, false);
}

void
stdio_lines_send(struct stdio_lines *lines, struct span line)
{
    if (lines->written_done > OUT_LOW_BYTES) {
        buf_consume(&lines->written, lines->written_done);
        lines->written_done = 0;
    }
    if (buf_append(&lines->written, line.p, line.n) < 0 ||
        buf_append(&lines->written, "\n", 1) < 0 || !flush(lines)) {
        end(lines); /* what was lost cannot be told */
        return;
    }
    if (pending(lines) == 0 || lines->has_ended)
        return;
    if (event_add(lines->on_write, NULL) < 0)
        end(lines);
    if (pending(lines) > OUT_HIGH_BYTES)
        set_pause(lines, true);
}

/* --- the beginning and the end --- */

static int
take_streams(struct stdio_lines *lines, struct err *err)
{
    lines->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    lines->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    AUTO_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (lines->in < 0 || lines->out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return err_sys(err, "take standard input and output");
    return 0;
}

static int
watch(struct stdio_lines *lines, struct err *err)
{
    struct event_base *base = lines->options.base;
    lines->on_read = event_new(base, lines->in, EV_READ | EV_PERSIST, on_read, lines);
    lines->on_write = event_new(base, lines->out, EV_WRITE | EV_PERSIST, on_write, lines);
    if (!lines->on_read || !lines->on_write)
        return err_set(err, -ENOMEM, "no memory for the streams' events");
    if (event_add(lines->on_read, NULL) == 0)
        return 0;
    /* A plain file is always ready, and epoll takes none. */
    event_free(lines->on_read);
    lines->is_file = true;
    lines->on_read = event_new(base, -1, EV_PERSIST, on_read, lines);
    if (!lines->on_read)
        return err_set(err, -ENOMEM, "no memory for the streams' events");
    event_active(lines->on_read, EV_READ, 0);
    return 0;
}

int
stdio_lines_open(const struct stdio_options *options, struct stdio_lines **ret,
                 struct err *err)
{
    struct stdio_lines *lines = calloc(1, sizeof(*lines));
    if (!lines)
        return err_set(err, -ENOMEM, "no memory for the streams");
    *lines = (struct stdio_lines){.options = *options, .in = -1, .out = -1};
    buf_init(&lines->read, options->line_max + 2 * (size_t)READ_BYTES);
    buf_init(&lines->written, OUT_BYTES_MAX);
    int r = take_streams(lines, err);
    if (r == 0)
        r = watch(lines, err);
    if (r < 0) {
        stdio_lines_close(lines);
        return r;
    }
    *ret = lines;
    return 0;
}

void
stdio_lines_close(struct stdio_lines *lines)
{
    if (!lines)
        return;
    struct pollfd ready = {.fd = lines->out, .events = POLLOUT};
    while (pending(lines) > 0 && poll(&ready, 1, LAST_MS) > 0 && flush(lines))
        continue;
    if (lines->on_read)
        event_free(lines->on_read);
    if (lines->on_write)
        event_free(lines->on_write);
    fd_close(&lines->in);
    fd_close(&lines->out);
    buf_done(&lines->read);
    buf_done(&lines->written);
    free(lines);
}
