/*
 * Hostile bytes on their way to a terminal: what could move the cursor, retitle the
 * window, answer as if typed, or hide a line is shown as text ("\x1b[2J") instead of
 * obeyed. Colours pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

enum { TERMINAL_HELD_BYTES = 64 };

struct terminal {
    char held[TERMINAL_HELD_BYTES]; /* the start of a character or colour, to be continued
                                     */
    size_t held_n;
    bool coloured; /* a colour passed, and nothing has reset it since */
    bool one_line; /* line ends, tabs and colours are shown too */
};

/* Appends what may be written for `bytes`; keeps back what is not finished. */
int terminal_append(struct terminal *terminal, struct span bytes,
                    struct buf *out) MUST_USE;
/* Shows what was kept back and resets the colours: the stream is over. */
int terminal_finish(struct terminal *terminal, struct buf *out) MUST_USE;
/* Text from a cell or a file name, as part of one line of ours. */
int terminal_append_line(const char *text, struct buf *out) MUST_USE;
