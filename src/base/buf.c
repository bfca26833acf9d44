/* The bounded buffer. Growth doubles, and never passes max. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST_BYTES = 256 };

void
buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){.max = max};
}

void
buf_done(struct buf *buf)
{
    if (!buf)
        return;
    free(buf->p);
    *buf = (struct buf){.max = buf->max};
}

int
buf_reserve(struct buf *buf, size_t n)
{
    if (n > buf->max || buf->n > buf->max - n)
        return -ENOSPC;
    size_t need = buf->n + n + 1;
    if (need <= buf->capacity)
        return 0;
    size_t capacity = buf->capacity ? buf->capacity : BUF_FIRST_BYTES;
    while (capacity < need)
        capacity *= 2;
    char *p = realloc(buf->p, capacity);
    if (!p)
        return -ENOMEM;
    buf->p = p;
    buf->capacity = capacity;
    buf->p[buf->n] = '\0';
    return 0;
}

int
buf_append(struct buf *buf, const void *bytes, size_t n)
{
    int r = buf_reserve(buf, n);
    if (r < 0)
        return r;
    if (n > 0)
        memcpy(buf->p + buf->n, bytes, n);
    buf->n += n;
    buf->p[buf->n] = '\0';
    return 0;
}

int
buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    int r = n < 0 ? -EINVAL : buf_reserve(buf, (size_t)n);
    if (r == 0) {
        vsnprintf(buf->p + buf->n, (size_t)n + 1, format, again);
        buf->n += (size_t)n;
    }
    va_end(again);
    return r;
}

void
buf_consume(struct buf *buf, size_t n)
{
    if (n >= buf->n) {
        buf->n = 0;
    } else {
        memmove(buf->p, buf->p + n, buf->n - n);
        buf->n -= n;
    }
    if (buf->p)
        buf->p[buf->n] = '\0';
}

struct span
buf_span(const struct buf *buf)
{
    return (struct span){buf->p ? buf->p : "", buf->n};
}
