/*
 * Messages as lines on standard input and output, in an event loop: for protocols that run over
 * pipes. Standard output belongs to the messages from here on: whatever else in this process writes
 * there, writes to stderr. Never waits for a reader that is slow.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"

struct stdio_lines;

struct stdio_options {
    struct event_base *base;
    size_t line_max; /* of one that comes; a longer one is told and skipped */
    void (*on_line)(void *context, struct span line); /* without its end */
    void (*on_long)(void *context);
    /* The reader is slow, or has caught up. */
    void (*on_pause)(void *context, bool pause);
    /* Input has ended, or nobody reads output any more. */
    void (*on_end)(void *context);
    void *context;
};

int stdio_lines_open(const struct stdio_options *options, struct stdio_lines **ret,
                     struct err *err) MUST_USE;
/* A newline is added. */
void stdio_lines_send(struct stdio_lines *lines, struct span line);
/* Sends what is left, for a moment. */
void stdio_lines_close(struct stdio_lines *lines);
