/*
 * A kept stream as text. Where bytes are missing between head and tail, a marker line
 * says how many; characters that the cut went through count as missing, so that none is
 * ever split.
 */
#include <inttypes.h>

#include "base/utf8.h"
#include "job/outcome.h"

enum { CONTINUATION_BYTES_MAX = 3 };

/* Bytes at the front that belong to a character whose start was dropped. */
static size_t
orphans(struct span tail)
{
    size_t n = 0;
    while (n < tail.n && n < CONTINUATION_BYTES_MAX &&
           (*(const unsigned char *)(tail.p + n) & 0xC0) == 0x80)
        n++;
    return n;
}

static int
append_marker(struct buf *out, bool at_line_start, uint64_t missing)
{
    return buf_printf(out, "%s[adyton: %" PRIu64 " bytes of output dropped here]\n",
                      at_line_start ? "" : "\n", missing);
}

static bool
ends_a_line(struct span s)
{
    return s.n == 0 || s.p[s.n - 1] == '\n';
}

bool
stream_is_truncated(const struct stream *stream)
{
    return stream->dropped_bytes > 0;
}

int
stream_rest(const struct stream *stream, struct buf *out)
{
    struct span tail = buf_span(&stream->tail);
    if (!stream_is_truncated(stream))
        return buf_append(out, tail.p, tail.n);
    size_t skip = orphans(tail);
    int r = append_marker(out, ends_a_line(buf_span(&stream->head)),
                          stream->dropped_bytes + skip);
    return r < 0 ? r : buf_append(out, tail.p + skip, tail.n - skip);
}

/* Nothing is missing: a character may begin in the head and end in the tail. */
static int
append_whole(const struct stream *stream, struct buf *out, uint64_t *ret_replaced)
{
    if (stream->tail.n == 0)
        return utf8_append_valid(out, buf_span(&stream->head), ret_replaced);
    AUTO_BUF struct buf whole = {0};
    buf_init(&whole, stream->head.n + stream->tail.n);
    int r = buf_append(&whole, stream->head.p, stream->head.n);
    if (r == 0)
        r = buf_append(&whole, stream->tail.p, stream->tail.n);
    if (r == 0)
        r = utf8_append_valid(out, buf_span(&whole), ret_replaced);
    return r;
}

int
stream_text(const struct stream *stream, struct buf *out, uint64_t *ret_replaced)
{
    if (!stream_is_truncated(stream))
        return append_whole(stream, out, ret_replaced);

    struct span head = buf_span(&stream->head), tail = buf_span(&stream->tail);
    size_t cut = utf8_unfinished_tail(head);
    size_t skip = orphans(tail);
    head.n -= cut;
    tail.p += skip;
    tail.n -= skip;
    uint64_t in_head = 0, in_tail = 0;
    int r = utf8_append_valid(out, head, &in_head);
    if (r == 0)
        r = append_marker(out, ends_a_line(head), stream->dropped_bytes + cut + skip);
    if (r == 0)
        r = utf8_append_valid(out, tail, &in_tail);
    if (r == 0)
        *ret_replaced = in_head + in_tail;
    return r;
}
