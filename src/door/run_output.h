/* What `adyton run` prints: the streams as they come, and how the run ended. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "door/results.h"
#include "door/run_options.h"
#include "door/run_progress.h"
#include "door/terminal.h"
#include "job/outcome.h"
#include "job/run_event.h"

/* One of our two streams, on its way out. */
struct run_sink {
    int fd;
    bool is_terminal;
    char last;   /* byte put in last: whether a line of ours may begin */
    int failure; /* negative errno of a write; nothing is written after it */
    struct terminal terminal;
    struct buf pending;
};

struct run_output {
    struct run_sink out, err;
    struct run_progress progress; /* on stderr, when that is a terminal */
};

void run_output_init(struct run_output *output);
void run_output_done(struct run_output *output);

/* For run_request.on_output; the context is a struct run_output. Never waits for a
 * reader. */
void run_output_stream(void *context, int stream, struct span bytes);
/* Whether events and messages are wanted: somebody looks at stderr. Only then: */
bool run_output_watches(struct run_output *output, const struct run_options *options);
/* for run_request.on_event, and for call_request.on_message, which brings the streams too. */
void run_output_event(void *context, const struct run_event *event);
void run_output_message(void *context, const json_t *message);
/* One thing that the run has shown, a message's `item`, in its place among the streams. What is
 * in results stays from one to the next: its folder, its count. */
void run_output_result(struct run_output *output, struct results *results,
                       const json_t *item);
/* Prints all that is left: what was kept back of the streams, the tails, results, the ending. */
int run_output_finish(struct run_output *output, const struct run_options *options,
                      const struct outcome *outcome, struct err *err) MUST_USE;
/* One line of ours on stdout, now as far as its reader takes it; a negative r fails it. */
void run_output_line(struct run_output *output, struct span line, int r);
/* Waits until everything is written. */
int run_output_flush(struct run_output *output, struct err *err) MUST_USE;
/* The outcome as one JSON document on stdout. */
int run_output_json(struct run_output *output, const struct run_options *options,
                    const struct outcome *outcome, struct err *err) MUST_USE;
