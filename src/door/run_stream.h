/* `adyton run --stream`: what happens in a run as JSON, a line each, when it happens. */
#pragma once

#include <jansson.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "door/run_options.h"
#include "door/run_output.h"
#include "job/outcome.h"
#include "job/run_event.h"

enum { RUN_STREAM_HELD_BYTES = 4 };

struct run_stream {
    struct run_output *output; /* borrowed */
    struct {
        char bytes[RUN_STREAM_HELD_BYTES]; /* the beginning of a character */
        size_t n;
    } held[3];          /* by stream */
    size_t incidents_n; /* told so far */
};

void run_stream_init(struct run_stream *stream, struct run_output *output);

/* Of a run of our own; the context is a struct run_stream. They wait for no reader. */
void run_stream_output(void *context, int number, struct span bytes);
void run_stream_display(void *context, const struct display_item *item);
void run_stream_event(void *context, const struct run_event *event);
/* Of a supervisor's run: its message, without the id. */
void run_stream_message(void *context, const json_t *message);
/* What is left to tell, and the outcome as the last line. */
int run_stream_finish(struct run_stream *stream, const struct run_options *options,
                      const struct outcome *outcome, struct err *err) MUST_USE;
