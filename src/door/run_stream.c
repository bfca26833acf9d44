/*
 * Lines of JSON from three sources: the cell that we watch ourselves, the messages of a supervisor,
 * and the outcome. They have one form, that of the protocol's messages without their id, so that a
 * reader need not know which it was. A character that was cut by a read is held back until the rest
 * of it is there, so that text stays text.
 */
#include "door/run_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "engine/protocol.h"

enum { LINE_BYTES_MAX = 1 << 30, REAL_DIGITS = 15 };

void
run_stream_init(struct run_stream *stream, struct run_output *output)
{
    *stream = (struct run_stream){.output = output};
}

/* A line is written whole or, without memory, not at all. */
static void
put_line(struct run_stream *stream, struct buf *line, int r)
{
    if (r == 0)
        r = buf_append(line, "\n", 1);
    run_output_line(stream->output, r == 0 ? buf_span(line) : (struct span){NULL, 0}, r);
}

static void
put_json(struct run_stream *stream, const json_t *message)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES_MAX);
    AUTO_FREE char *text =
        message ? json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS))
                : NULL;
    put_line(stream, &line, text ? buf_append(&line, text, strlen(text)) : -ENOMEM);
}

static void
put_data(struct run_stream *stream, int number, const char *time, struct span bytes)
{
    AUTO_BUF struct buf line = {0};
    if (bytes.n == 0)
        return;
    buf_init(&line, LINE_BYTES_MAX);
    int r = buf_printf(&line, "{\"type\":\"%s\",\"time\":\"%s\",",
                       number == STDOUT_FILENO ? "stdout" : "stderr", time);
    if (r == 0)
        r = protocol_put_data(&line, "data", bytes);
    put_line(stream, &line, r < 0 ? r : buf_append(&line, "}", 1));
}

/* What was held back comes first; what ends inside a character waits. */
static void
put_output(struct run_stream *stream, int number, const char *time, struct span bytes)
{
    AUTO_BUF struct buf all = {0};
    buf_init(&all, LINE_BYTES_MAX);
    int r = buf_append(&all, stream->held[number].bytes, stream->held[number].n);
    if (r == 0)
        r = buf_append(&all, bytes.p, bytes.n);
    if (r < 0) {
        put_line(stream, &all, r);
        return;
    }
    struct span whole = buf_span(&all);
    size_t tail = utf8_unfinished_tail(whole);
    whole.n -= tail;
    memcpy(stream->held[number].bytes, whole.p + whole.n, tail);
    stream->held[number].n = tail;
    put_data(stream, number, time, whole);
}

void
run_stream_output(void *context, int number, struct span bytes)
{
    char time[RUN_EVENT_TIME_BYTES];
    put_output(context, number, run_event_time(run_event_now_us(), time), bytes);
}

void
run_stream_display(void *context, const struct display_item *item)
{
    struct run_stream *stream = context;
    char time[RUN_EVENT_TIME_BYTES];
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES_MAX);
    int r = buf_printf(&line, "{\"type\":\"display\",\"time\":\"%s\",\"item\":",
                       run_event_time(run_event_now_us(), time));
    if (r == 0)
        r = display_item_write(item, &line);
    put_line(stream, &line, r < 0 ? r : buf_append(&line, "}", 1));
}

void
run_stream_event(void *context, const struct run_event *event)
{
    struct run_stream *stream = context;
    json_t *message = run_event_json(event, NULL);
    stream->incidents_n += event->kind == RUN_INCIDENT;
    put_json(stream, message);
    json_decref(message);
}

static const char *
text_of(const json_t *message, const char *name)
{
    const char *text = json_string_value(json_object_get(message, name));
    return text ? text : "";
}

static void
put_message(struct run_stream *stream, const json_t *message)
{
    json_t *own = json_copy((json_t *)(uintptr_t)message); /* it takes no const */
    if (own)
        (void)json_object_del(own, "id");
    put_json(stream, own);
    json_decref(own);
}

void
run_stream_message(void *context, const json_t *message)
{
    struct run_stream *stream = context;
    const char *type = text_of(message, "type");
    bool out = strcmp(type, "stdout") == 0;
    if (!out && strcmp(type, "stderr") != 0) {
        stream->incidents_n += strcmp(type, "incident") == 0;
        put_message(stream, message);
        return;
    }
    bool given;
    struct err err;
    AUTO_BUF struct buf bytes = {0};
    buf_init(&bytes, LINE_BYTES_MAX);
    if (protocol_get_data(message, "data", &bytes, &given, &err) == 0)
        put_output(stream, out ? STDOUT_FILENO : STDERR_FILENO, text_of(message, "time"),
                   buf_span(&bytes));
}

/* What was learned only when the cell was dead, or got no turn before. */
static void
put_rest(struct run_stream *stream, const struct outcome *outcome, const char *time)
{
    for (int number = STDOUT_FILENO; number <= STDERR_FILENO; number++) {
        put_data(stream, number, time,
                 (struct span){stream->held[number].bytes, stream->held[number].n});
        stream->held[number].n = 0;
    }
    while (stream->incidents_n < outcome->incidents_n) {
        const struct run_event event = {.kind = RUN_INCIDENT,
                                        .time_us = run_event_now_us(),
                                        .incident =
                                            &outcome->incidents[stream->incidents_n]};
        run_stream_event(stream, &event);
    }
}

int
run_stream_finish(struct run_stream *stream, const struct run_options *options,
                  const struct outcome *outcome, struct err *err)
{
    char time[RUN_EVENT_TIME_BYTES];
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES_MAX);
    run_event_time(run_event_now_us(), time);
    put_rest(stream, outcome, time);
    int flags = OUTCOME_JSON_COMPACT | (options->base64 ? OUTCOME_JSON_BASE64 : 0);
    int r =
        buf_printf(&line, "{\"type\":\"finished\",\"time\":\"%s\",\"outcome\":", time);
    if (r == 0)
        r = outcome_json(outcome, flags, &line);
    put_line(stream, &line, r < 0 ? r : buf_append(&line, "}", 1));
    return run_output_flush(stream->output, err);
}
