/*
 * The cell's standard streams on our side: drained as they come, so that a flood never
 * blocks anybody, into a head and the last bytes of the rest, so that it never grows
 * memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cell_parts.h"

enum { READ_BYTES = 64 * 1024, READS_AT_ONCE = 16 };

/* What did not fit into the head: the last tail_max bytes of it stay. */
static int
keep_tail(struct output *output, struct span bytes)
{
    struct stream *stream = output->stream;
    if (bytes.n > output->tail_max) {
        size_t skip = bytes.n - output->tail_max;
        stream->dropped_bytes += stream->tail.n + skip;
        stream->tail.n = 0;
        bytes = (struct span){bytes.p + skip, output->tail_max};
    } else if (stream->tail.n + bytes.n > output->tail_max) {
        size_t over = stream->tail.n + bytes.n - output->tail_max;
        stream->dropped_bytes += over;
        buf_consume(&stream->tail, over);
    }
    return buf_append(&stream->tail, bytes.p, bytes.n);
}

static int
keep(struct output *output, struct span bytes)
{
    struct stream *stream = output->stream;
    const struct cell_request *request = &output->cell->request;
    stream->total_bytes += bytes.n;
    size_t room = output->head_max - stream->head.n;
    size_t head_n = bytes.n < room ? bytes.n : room;
    if (head_n > 0) {
        events_add(&output->cell->outcome->events, (enum event_kind)output->number,
                   stream->head.n, head_n);
        int r = buf_append(&stream->head, bytes.p, head_n);
        if (r < 0)
            return r;
        if (request->on_output)
            request->on_output(request->context, output->number,
                               (struct span){bytes.p, head_n});
    }
    return head_n == bytes.n
               ? 0
               : keep_tail(output, (struct span){bytes.p + head_n, bytes.n - head_n});
}

void
output_done(struct output *output)
{
    if (output->event)
        event_free(output->event);
    output->event = NULL;
    fd_close(&output->fd);
    output->fd = -1;
}

/* Reads what is there, `rounds` times at most: false when the stream has ended. */
static bool
read_some(struct output *output, int rounds)
{
    UNCLEARED char bytes[READ_BYTES];
    for (int i = 0; i < rounds; i++) {
        ssize_t n = read(output->fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n == 0)
            return false;
        int r = n < 0 ? -errno : keep(output, (struct span){bytes, (size_t)n});
        if (r < 0) { /* the code must not be told that its reader is gone: it is ours */
            cell_fail(output->cell, r, "keep the cell's output");
            return false;
        }
    }
    return true;
}

void
output_take(struct output *output)
{
    if (output->fd < 0)
        return;
    if (!read_some(output, READS_AT_ONCE)) {
        output_done(output);
        return;
    }
    uint64_t flood = output->cell->request.policy->output_bytes * FLOOD_FACTOR;
    if (output->stream->total_bytes > flood)
        cell_end(output->cell, CAUSE_OUTPUT);
}

static void
on_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct output *output = context;
    cell_catch_up(output->cell);
    output_take(output);
}

void
output_into(struct output *output, struct stream *stream)
{
    uint64_t limit = output->cell->request.policy->output_bytes;
    uint64_t tail =
        limit / TAIL_SHARE < TAIL_MAX_BYTES ? limit / TAIL_SHARE : TAIL_MAX_BYTES;
    output->stream = stream;
    output->head_max = limit - tail;
    output->tail_max = tail;
    buf_init(&stream->head, output->head_max);
    /* Consuming from the front and appending never holds more than both at once. */
    buf_init(&stream->tail, output->tail_max);
}

int
output_start(struct cell *cell, struct output *output, int number, int fd,
             struct stream *stream, struct err *err)
{
    *output = (struct output){.fd = fd, .number = number, .cell = cell};
    output_into(output, stream);
    int r = fd_set_nonblocking(fd);
    output->event = event_new(cell->base, fd, EV_READ | EV_PERSIST, on_readable, output);
    if (r < 0 || !output->event || event_add(output->event, NULL) < 0)
        return err_set(err, r < 0 ? r : -ENOMEM, "watch the cell's output: %s",
                       strerrordesc_np(r < 0 ? -r : ENOMEM));
    return 0;
}

void
output_pause(struct output *output)
{
    if (output->event)
        event_del(output->event);
}

int
output_resume(struct output *output, struct err *err)
{
    return output->event && event_add(output->event, NULL) < 0
               ? err_set(err, -ENOMEM, "watch the session's output")
               : 0;
}

void
output_drain(struct output *output)
{
    enum { ALL = 4096 }; /* a pipe holds 16 reads at most */
    if (output->fd >= 0)
        (void)read_some(output, ALL);
    output_done(output);
}

void
cell_feed_stdin(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct cell *cell = context;
    const struct buf *bytes = &cell->request.job->stdin_bytes;
    while (cell->stdin_done < bytes->n) {
        ssize_t n = write(fd, bytes->p + cell->stdin_done, bytes->n - cell->stdin_done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno == EPIPE)
            break; /* the program reads no more */
        if (n < 0) {
            cell_fail(cell, -errno, "write the cell's stdin");
            break;
        }
        cell->stdin_done += (size_t)n;
    }
    if (cell->on_stdin)
        event_free(cell->on_stdin);
    cell->on_stdin = NULL;
    close(fd_take(&cell->stdin_fd));
}
