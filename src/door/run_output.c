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
#include "engine/protocol.h"

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
    run_progress_hide(&output->progress);
    struct run_sink *sink = stream == STDOUT_FILENO ? &output->out : &output->err;
    sink_put(sink, bytes);
    sink_pump(sink, false);
}

/* ---- while it runs ---- */

bool
run_output_watches(struct run_output *output, const struct run_options *options)
{
    output->progress.on = output->err.is_terminal && options->verbosity != RUN_QUIET &&
                          !options->json && !options->stream;
    return output->progress.on;
}

/* A line that is being written is not ours to erase. */
static bool
is_mid_line(const struct run_output *output)
{
    bool out = output->out.is_terminal &&
               (output->out.last != '\n' || output->out.pending.n > 0);
    return out || output->err.last != '\n' || output->err.pending.n > 0;
}

void
run_output_event(void *context, const struct run_event *event)
{
    struct run_output *output = context;
    if (event->kind == RUN_USAGE && !is_mid_line(output))
        run_progress_show(&output->progress, event->wall_us, event->cpu_us,
                          event->memory_bytes);
}

static uint64_t
number_of(const json_t *message, const char *name, double unit)
{
    double value = json_number_value(json_object_get(message, name)) * unit;
    return value > 0 && value < 1e18 ? (uint64_t)value : 0;
}

void
run_output_message(void *context, const json_t *message)
{
    enum { US_PER_MS = 1000 };
    const char *type = json_string_value(json_object_get(message, "type"));
    const json_t *now = json_object_get(message, "usage");
    struct run_event usage = {.kind = RUN_USAGE,
                              .wall_us = number_of(now, "wall_ms", US_PER_MS),
                              .cpu_us = number_of(now, "cpu_ms", US_PER_MS),
                              .memory_bytes = number_of(now, "memory_bytes", 1)};
    if (now)
        run_output_event(context, &usage);
    if (!type || (strcmp(type, "stdout") != 0 && strcmp(type, "stderr") != 0))
        return;
    bool given;
    struct err err;
    AUTO_BUF struct buf bytes = {0};
    buf_init(&bytes, PENDING_BYTES_MAX);
    if (protocol_get_data(message, "data", &bytes, &given, &err) == 0)
        run_output_stream(context,
                          strcmp(type, "stdout") == 0 ? STDOUT_FILENO : STDERR_FILENO,
                          buf_span(&bytes));
}

/* ---- at its end ---- */

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

/* What is ours already, or was made harmless. */
static void
sink_put_own(struct run_sink *sink, struct span bytes)
{
    if (sink->failure < 0 || bytes.n == 0)
        return;
    int r = sink->last == '\n' ? 0 : buf_append(&sink->pending, "\n", 1);
    if (r == 0)
        r = buf_append(&sink->pending, bytes.p, bytes.n);
    sink->last = bytes.p[bytes.n - 1];
    if (r < 0)
        sink_fail(sink, r);
    sink_pump(sink, true);
}

void
run_output_result(struct run_output *output, struct results *results, const json_t *item)
{
    struct displays none = {.items_n = 0};
    AUTO_BUF struct buf text = {0};
    AUTO_BUF struct buf lines = {0};
    buf_init(&text, PENDING_BYTES_MAX);
    buf_init(&lines, PENDING_BYTES_MAX);
    struct display_item *shown = display_item_take(&none, item);
    if (!shown)
        return;
    run_progress_hide(&output->progress);
    int r = results_show(results, shown, &text, &lines);
    display_item_free(shown);
    sink_pump(&output->out, true);
    sink_put_own(&output->out, buf_span(&text));
    sink_put_own(&output->err, buf_span(&lines));
    if (r < 0)
        sink_fail(&output->out, r);
}

static bool
has_png(const struct displays *displays)
{
    for (size_t i = 0; i < displays->items_n; i++)
        if (display_item_part(displays->items[i], "image/png"))
            return true;
    return false;
}

/* lines: for stderr. */
static int
put_results(struct run_output *output, const struct run_options *options,
            const struct outcome *outcome, struct buf *lines)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, PENDING_BYTES_MAX);
    struct results results = {.folder = options->out_dir,
                              .is_terminal = output->out.is_terminal,
                              .may_make = output->err.is_terminal &&
                                          options->verbosity != RUN_QUIET,
                              .tells_unsaved = options->verbosity == RUN_VERBOSE};
    if (output->out.is_terminal && !options->no_images && has_png(&outcome->displays))
        results.protocol = images_ask(output->out.fd);
    int r = results_show_all(&results, &outcome->displays, &text, lines);
    sink_put_own(&output->out, buf_span(&text));
    if (options->verbosity == RUN_QUIET)
        buf_consume(lines, lines->n);
    return r;
}

int
run_output_finish(struct run_output *output, const struct run_options *options,
                  const struct outcome *outcome, struct err *err)
{
    run_progress_hide(&output->progress);
    int r = sink_end(&output->out, &outcome->out, err);
    if (r == 0)
        r = sink_end(&output->err, &outcome->err, err);
    if (r < 0)
        return r;

    AUTO_BUF struct buf lines = {0};
    buf_init(&lines, PENDING_BYTES_MAX);
    r = put_results(output, options, outcome, &lines);
    if (r == 0)
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
