/*
 * What a program shows. It writes one item into the claims memory and rings: a system call that
 * the kernel never had, which the filter turns into a notification (jail/syscalls.c). The caller
 * stands still meanwhile, so we first take what it has written to its streams: the order of
 * everything is then exact. Then the item is copied once, and only the copy is looked at.
 *
 * The bytes are a hostile guest's: each length is checked against what is left, whatever makes no
 * sense is counted and dropped, and a ring beyond the bounds costs a comparison.
 */
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "cell/cell_parts.h"

/* What is left of a frame. */
struct reader {
    const char *p;
    size_t n;
};

static bool
take(struct reader *reader, void *ret, size_t n)
{
    if (reader->n < n)
        return false;
    memcpy(ret, reader->p, n);
    reader->p += n;
    reader->n -= n;
    return true;
}

static bool
take_span(struct reader *reader, size_t n, struct span *ret)
{
    if (reader->n < n)
        return false;
    *ret = (struct span){reader->p, n};
    reader->p += n;
    reader->n -= n;
    return true;
}

/* 1: taken; 0: not what a guest of ours writes; -ENOMEM. */
static int
take_part(struct displays *displays, struct display_item *item, struct reader *reader)
{
    struct display_part_head head;
    struct span name, data;
    char mime[DISPLAY_MIME_BYTES];
    if (!take(reader, &head, sizeof(head)) || !take_span(reader, head.mime_n, &name) ||
        !take_span(reader, head.data_n, &data) || name.n >= sizeof(mime) ||
        (head.omitted_n > 0 && data.n > 0))
        return 0;
    memcpy(mime, name.p, name.n);
    mime[name.n] = '\0';
    if (name.n == 0)
        display_item_describe(displays, item, data);
    else if (display_item_put(displays, item, mime, data, head.omitted_n) < 0)
        return -ENOMEM;
    return 1;
}

int
display_parse(struct span frame, struct displays *displays, struct display_item **ret)
{
    struct reader reader = {frame.p, frame.n};
    struct display_head head;
    if (!take(&reader, &head, sizeof(head)) || head.parts_n == 0 ||
        head.parts_n > DISPLAY_PARTS_MAX + 1)
        return 0;
    struct display_item *item = display_item_new(head.flags & DISPLAY_IS_MAIN);
    int r = item ? 1 : -ENOMEM;
    for (uint32_t i = 0; i < head.parts_n && r > 0; i++)
        r = take_part(displays, item, &reader);
    if (r > 0 && reader.n > 0)
        r = 0;
    if (r <= 0)
        display_item_free(item);
    else
        *ret = item;
    return r;
}

/* Copies the frame, and adds what is in it. */
static enum display_answer
take_frame(struct cell *cell, uint32_t n)
{
    struct displays *displays = &cell->outcome->displays;
    struct display_item *item;
    AUTO_BUF struct buf frame = {0};
    buf_init(&frame, DISPLAY_FRAME_BYTES);
    int r = buf_append(&frame, (const char *)cell->display->bytes, n);
    if (r == 0)
        r = display_parse(buf_span(&frame), displays, &item);
    if (r < 0) {
        cell_fail(cell, r, "keep what the code shows");
        return DISPLAY_UNFIT;
    }
    if (r == 0) {
        displays->dropped++;
        return DISPLAY_UNFIT;
    }
    if (!displays_add(displays, item))
        return DISPLAY_UNFIT;
    events_add(&cell->outcome->events, EVENT_DISPLAY, displays->items_n - 1, 0);
    if (cell->request.on_display)
        cell->request.on_display(cell->request.context, item);
    return DISPLAY_KEPT;
}

enum display_answer
display_rung(struct cell *cell)
{
    if (!cell->going || !cell->display || !cell->outcome)
        return DISPLAY_UNFIT;
    struct displays *displays = &cell->outcome->displays;
    /* Read once each: the guest's other threads may write while we look. */
    uint32_t turn = __atomic_load_n(&cell->display->turn, __ATOMIC_RELAXED);
    uint32_t n = __atomic_load_n(&cell->display->n, __ATOMIC_RELAXED);
    /* A signal has interrupted the caller after we had taken it: it rings again. */
    if (turn != 0 && turn == cell->display_turn)
        return cell->display_answer;
    output_take(&cell->out);
    output_take(&cell->err);
    cell->display_turn = turn;
    cell->display_answer = DISPLAY_FULL;
    if (displays_are_full(displays)) {
        displays->dropped++;
    } else if (n > DISPLAY_FRAME_BYTES) {
        displays->dropped++;
        cell->display_answer = DISPLAY_UNFIT;
    } else {
        cell->display_answer = take_frame(cell, n);
    }
    return cell->display_answer;
}
