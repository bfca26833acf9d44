/*
 * Bytes are gathered to a line, lines to an event (WHATWG HTML, 9.2.6). A line ends with CR,
 * LF or both; the LF of a CR LF may come a piece later, so that it is skipped when it comes.
 */
#include "ask/sse.h"

#include <errno.h>
#include <stdio.h>

static const char byte_order_mark[] = "\xEF\xBB\xBF";
enum { MARK_BYTES = sizeof(byte_order_mark) - 1 };

void
sse_init(struct sse *sse,
         int (*on_event)(void *context, const char *name, struct span data,
                         struct err *err),
         void *context)
{
    *sse = (struct sse){.on_event = on_event, .context = context};
    buf_init(&sse->line, SSE_LINE_BYTES_MAX);
    buf_init(&sse->data, SSE_DATA_BYTES_MAX);
}

void
sse_done(struct sse *sse)
{
    buf_done(&sse->line);
    buf_done(&sse->data);
}

static int
too_long(int r, const char *what, int max, struct err *err)
{
    if (r == -ENOSPC)
        return err_set(err, r, "the endpoint sent %s of more than %d bytes", what, max);
    return err_set(err, r, "no memory for what the endpoint sent");
}

static int
add_data(struct sse *sse, struct span value, struct err *err)
{
    int r = sse->has_data ? buf_append(&sse->data, "\n", 1) : 0;
    if (r == 0)
        r = buf_append(&sse->data, value.p, value.n);
    sse->has_data = true;
    return r < 0 ? too_long(r, "an event", SSE_DATA_BYTES_MAX, err) : 0;
}

static int
dispatch(struct sse *sse, struct err *err)
{
    int r = 0;
    if (sse->has_data)
        r = sse->on_event(sse->context, sse->name, buf_span(&sse->data), err);
    sse->has_data = false;
    sse->name[0] = '\0';
    buf_consume(&sse->data, sse->data.n);
    return r;
}

static int
take_field(struct sse *sse, struct span name, struct span value, struct err *err)
{
    if (span_is(name, "data"))
        return add_data(sse, value, err);
    /* A name with a NUL in it is none that is known. */
    if (span_is(name, "event") && value.n < sizeof(sse->name) &&
        !memchr(value.p, '\0', value.n))
        snprintf(sse->name, sizeof(sse->name), "%.*s", (int)value.n, value.p);
    return 0; /* id, retry, and what is not known */
}

static int
take_line(struct sse *sse, struct err *err)
{
    struct span line = buf_span(&sse->line);
    if (!sse->begun && line.n >= MARK_BYTES &&
        memcmp(line.p, byte_order_mark, MARK_BYTES) == 0) {
        line.p += MARK_BYTES;
        line.n -= MARK_BYTES;
    }
    sse->begun = true;
    if (line.n == 0)
        return dispatch(sse, err);
    const char *colon = memchr(line.p, ':', line.n);
    struct span name = {line.p, colon ? (size_t)(colon - line.p) : line.n};
    struct span value = {line.p + line.n, 0};
    if (colon)
        value = (struct span){colon + 1, line.n - name.n - 1};
    if (value.n > 0 && value.p[0] == ' ') {
        value.p++;
        value.n--;
    }
    return name.n == 0 ? 0 : take_field(sse, name, value, err); /* ": a comment" */
}

static int
end_line(struct sse *sse, struct err *err)
{
    int r = take_line(sse, err);
    buf_consume(&sse->line, sse->line.n);
    return r;
}

static size_t
bytes_before_end(struct span s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] != '\n' && s.p[n] != '\r')
        n++;
    return n;
}

int
sse_feed(struct sse *sse, struct span s, struct err *err)
{
    sse->bytes += s.n;
    if (sse->bytes > SSE_STREAM_BYTES_MAX)
        return too_long(-ENOSPC, "a stream", SSE_STREAM_BYTES_MAX, err);
    while (s.n > 0) {
        if (sse->after_cr && s.p[0] == '\n') {
            s.p++;
            s.n--;
        }
        sse->after_cr = false;
        size_t n = bytes_before_end(s);
        int r = buf_append(&sse->line, s.p, n);
        if (r < 0)
            return too_long(r, "a line", SSE_LINE_BYTES_MAX, err);
        if (n == s.n)
            break;
        sse->after_cr = s.p[n] == '\r';
        s.p += n + 1;
        s.n -= n + 1;
        r = end_line(sse, err);
        if (r != 0)
            return r;
    }
    return 0;
}

int
sse_finish(struct sse *sse, struct err *err)
{
    int r = sse->line.n > 0 ? end_line(sse, err) : 0;
    return r == 0 ? dispatch(sse, err) : r;
}
