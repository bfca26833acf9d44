/*
 * Server-sent events, cut out of bytes that come in any pieces. The other end may be
 * anybody: lines, events and the whole stream have a hard maximum.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum {
    SSE_LINE_BYTES_MAX = 4 << 20,
    SSE_DATA_BYTES_MAX = 4 << 20, /* of one event */
    SSE_STREAM_BYTES_MAX = 64 << 20,
    SSE_NAME_BYTES = 64,
};

struct sse {
    /* Gets each event that has data; not 0 ends the reading with that value. */
    int (*on_event)(void *context, const char *name, struct span data, struct err *err);
    void *context;
    struct buf line, data;
    char name[SSE_NAME_BYTES]; /* of the event that is being read; "": none */
    bool has_data, after_cr, begun;
    uint64_t bytes;
};

void sse_init(struct sse *sse,
              int (*on_event)(void *context, const char *name, struct span data,
                              struct err *err),
              void *context);
void sse_done(struct sse *sse);
int sse_feed(struct sse *sse, struct span bytes, struct err *err) MUST_USE;
/* The stream is over: a last event that no empty line ended counts as well. */
int sse_finish(struct sse *sse, struct err *err) MUST_USE;
