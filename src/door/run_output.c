/*
 * The streams of a run on the way to ours. on_output is called from the loop that also
 * watches the deadline, so it must not wait: a pager that nobody scrolls would keep a run
 * alive past its limit. What cannot be written at once is kept (the output limit bounds
 * it) until the next piece, or the end, when nothing is running any more and waiting is
 * right.
 */
#include "door/run_output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "door/run_ending.h"

enum {
    /* A pipe that is ready takes PIPE_BUF bytes without waiting, and a terminal these
       few. */
    PIPE_PIECE_BYTES = PIPE_BUF,
    TERMINAL_PIECE_BYTES = 256,
    PENDING_BYTES_MAX = 1 << 30,
};

static void
sink_init(struct run_sink *sink, int fd)
{
    *sink = (struct run_sink){.fd = fd, .is_terminal = isatty(fd) == 1, .last = '\n'};
    buf_init(&sink->pending, PENDING_BYTES_MAX);
}

void
run_output_init(struct run_output *output)
{
    sink_init(&output->out, STDOUT_FILENO);
    sink_init(&output->err, STDERR_FILENO);
}

void
run_output_done(struct run_output *output)
{
    buf_done(&output->out.pending);
    buf_done(&output->err.pending);
}

/*
 * Nobody reads us any more: end as programs end whose pipe is gone. The cell ends with
 * us, because the engine's lifeline breaks; nothing is cleaned up here, for a kill would
 * not ask us either.
 */
static void
die_of_broken_pipe(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

static void
sink_fail(struct run_sink *sink, int failure)
{
    if (failure == -EPIPE)
        die_of_broken_pipe();
    sink->failure = failure;
    buf_consume(&sink->pending, sink->pending.n);
}

/* Files take everything at once; they never keep a writer waiting for a reader. */
static size_t
piece_bytes(const struct run_sink *sink, size_t left)
{
    struct stat st;
    size_t most = sink->is_terminal ? TERMINAL_PIECE_BYTES : PIPE_PIECE_BYTES;
    if (fstat(sink->fd, &st) == 0 && S_ISREG(st.st_mode))
        most = left;
    return left < most ? left : most;
}

/* Writes what is pending; without `wait` only as much as the other end takes now. */
static void
sink_pump(struct run_sink *sink, bool wait)
{
    size_t done = 0;
    while (done < sink->pending.n) {
        struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
        int n = poll(&ready, 1, wait ? -1 : 0);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR) {
            sink_fail(sink, -errno);
            return;
        }
        ssize_t written = write(sink->fd, sink->pending.p + done,
                                piece_bytes(sink, sink->pending.n - done));
        if (written >= 0) {
            done += (size_t)written;
        } else if (errno == EAGAIN && !wait) {
            break;
        } else if (errno != EINTR && errno != EAGAIN) {
            sink_fail(sink, -errno);
            return;
        }
    }
    buf_consume(&sink->pending, done);
}

static void
sink_put(struct run_sink *sink, struct span bytes)
{
    if (sink->failure < 0 || bytes.n == 0)
        return;
    int r = sink->is_terminal ? terminal_append(&sink->terminal, bytes, &sink->pending)
                              : buf_append(&sink->pending, bytes.p, bytes.n);
    sink->last = bytes.p[bytes.n - 1];
    if (r < 0)
        sink_fail(sink, r);
}

void
run_output_stream(void *context, int stream, struct span bytes)
{
    struct run_output *output = context;
    struct run_sink *sink = stream == STDOUT_FILENO ? &output->out : &output->err;
    sink_put(sink, bytes);
    sink_pump(sink, false);
}

/* The rest of a stream of the cell, after which the sink holds nothing back. */
static int
sink_end(struct run_sink *sink, const struct stream *stream, struct err *err)
{
    AUTO_BUF struct buf rest = {0};
    buf_init(&rest, PENDING_BYTES_MAX);
    int r = stream_rest(stream, &rest);
    if (r < 0)
        return err_set(err, r, "no memory for the end of the output");
    sink_put(sink, buf_span(&rest));
    if (sink->is_terminal && terminal_finish(&sink->terminal, &sink->pending) < 0)
        return err_set(err, -ENOMEM, "no memory for the end of the output");
    sink_pump(sink, true);
    return 0;
}

static int
sink_check(const struct run_sink *sink, const char *name, struct err *err)
{
    if (sink->failure == 0)
        return 0;
    errno = -sink->failure;
    return err_sys(err, "cannot write to %s", name);
}

int
run_output_finish(struct run_output *output, const struct run_options *options,
                  const struct outcome *outcome, struct err *err)
{
    int r = sink_end(&output->out, &outcome->out, err);
    if (r == 0)
        r = sink_end(&output->err, &outcome->err, err);
    if (r < 0)
        return r;

    AUTO_BUF struct buf lines = {0};
    buf_init(&lines, PENDING_BYTES_MAX);
    r = run_ending_lines(options, outcome, &lines);
    if (r < 0)
        return err_set(err, r, "no memory for the ending");
    bool both_here = output->out.is_terminal && output->err.is_terminal;
    bool mid_line = output->err.last != '\n' || (both_here && output->out.last != '\n');
    if (lines.n > 0 && mid_line)
        sink_put(&output->err, span_of("\n"));
    sink_put(&output->err, buf_span(&lines));
    sink_pump(&output->err, true);
    r = sink_check(&output->out, "stdout", err);
    return r < 0 ? r : sink_check(&output->err, "stderr", err);
}

int
run_output_json(struct run_output *output, const struct run_options *options,
                const struct outcome *outcome, struct err *err)
{
    AUTO_BUF struct buf document = {0};
    buf_init(&document, PENDING_BYTES_MAX);
    /* A person gets it indented, a program gets it on one line. */
    int flags = (options->base64 ? OUTCOME_JSON_BASE64 : 0) |
                (output->out.is_terminal ? 0 : OUTCOME_JSON_COMPACT);
    int r = outcome_json(outcome, flags, &document);
    if (r == 0)
        r = buf_append(&document, "\n", 1);
    if (r < 0)
        return err_set(err, r, "no memory for the JSON document");
    sink_put(&output->out, buf_span(&document));
    sink_pump(&output->out, true);
    return sink_check(&output->out, "stdout", err);
}

void
run_output_line(struct run_output *output, struct span line, int r)
{
    if (r < 0)
        sink_fail(&output->out, r);
    sink_put(&output->out, line);
    sink_pump(&output->out, false);
}

int
run_output_flush(struct run_output *output, struct err *err)
{
    sink_pump(&output->out, true);
    return sink_check(&output->out, "stdout", err);
}
