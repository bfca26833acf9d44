/*
 * The program that grows while a model works: the pieces that have run without an error, in their
 * order. A new piece is run behind them, in one file, so that it finds their variables, and what
 * they print again is cut off. That is replay, not a living session: each run begins anew, and a
 * piece that failed leaves nothing behind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "job/outcome.h"

enum { PROGRAM_MARK_BYTES = 64, PROGRAM_BYTES_MAX = 8 << 20 };

struct program {
    struct buf pieces; /* joined: a program of its own */
    size_t pieces_n;
    size_t lines;
    bool lives; /* in a session: what ran is there, and a new piece runs alone */
    char mark
        [PROGRAM_MARK_BYTES]; /* printed before the new piece; "": there is none before it */
};

void program_init(struct program *program);
void program_done(struct program *program);
/* The source to run for a new piece. */
int program_source(struct program *program, struct span piece, struct buf *out,
                   struct err *err) MUST_USE;
/* The line of that source on which the piece begins, from 1. */
size_t program_first_line(const struct program *program);
/* The piece has run well. */
int program_keep(struct program *program, struct span piece, struct err *err) MUST_USE;

/* Where the new piece's own part begins. */
struct program_cut {
    size_t out_at, err_at; /* in the heads of the streams */
    size_t displays_at;
    bool found;
};
void program_cut(const struct program *program, const struct outcome *outcome,
                 struct program_cut *ret);
