/*
 * A growing byte buffer with a hard maximum: bytes from outside go only into one of
 * these. Owns its memory; buf_done frees it and accepts a zeroed struct. Failed appends
 * leave it as it was. buf.p is NUL-terminated after every successful append (the NUL is
 * not counted).
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/span.h"

struct buf {
    char *p;
    size_t n;
    size_t capacity;
    size_t max; /* bytes; an append past it fails with -ENOSPC */
};

#define AUTO_BUF __attribute__((cleanup(buf_done)))

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);
int buf_append(struct buf *buf, const void *bytes, size_t n) MUST_USE;
int buf_printf(struct buf *buf, const char *format, ...) PRINTF(2, 3) MUST_USE;
/* Makes room for n more bytes at buf->p + buf->n; the caller then adds to buf->n. */
int buf_reserve(struct buf *buf, size_t n) MUST_USE;
/* Drops n bytes from the front. */
void buf_consume(struct buf *buf, size_t n);
struct span buf_span(const struct buf *buf);
