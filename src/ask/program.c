/* Joins pieces, and finds the mark between what was and what is new. */
#include "ask/program.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { MARK_RANDOM_BYTES = 16 };

/* One line between the pieces. Whatever sys.stdout is by now: the mark goes where it first went. */
static const char marking[] =
    "import sys as _adyton; [(_s and _s.flush(), _t.write('%s\\n'), _t.flush()) for _s, "
    "_t in "
    "((_adyton.stdout, _adyton.__stdout__), (_adyton.stderr, _adyton.__stderr__))]; "
    "del _adyton\n";

void
program_init(struct program *program)
{
    *program = (struct program){0};
    buf_init(&program->pieces, PROGRAM_BYTES_MAX);
}

void
program_done(struct program *program)
{
    buf_done(&program->pieces);
}

static int
append(struct buf *out, struct span piece, struct err *err)
{
    bool ended = piece.n > 0 && piece.p[piece.n - 1] == '\n';
    int r = buf_append(out, piece.p, piece.n);
    if (r == 0 && !ended)
        r = buf_append(out, "\n", 1);
    return r < 0
               ? err_set(err, r, "the program has more than %d bytes", PROGRAM_BYTES_MAX)
               : 0;
}

int
program_source(struct program *program, struct span piece, struct buf *out,
               struct err *err)
{
    unsigned char random[MARK_RANDOM_BYTES];
    program->mark[0] = '\0';
    if (program->pieces_n == 0 ||
        program->lives) /* as it is: one without a line end, too */
        return buf_append(out, piece.p, piece.n) < 0
                   ? err_set(err, -ENOSPC, "no memory for the program")
                   : 0;
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(program->mark, sizeof(program->mark), random, sizeof(random));
    char line[sizeof(marking) + PROGRAM_MARK_BYTES];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(line, sizeof(line), marking, program->mark);
#pragma GCC diagnostic pop
    int r = append(out, buf_span(&program->pieces), err);
    if (r == 0)
        r = append(out, span_of(line), err);
    return r < 0 ? r : append(out, piece, err);
}

size_t
program_first_line(const struct program *program)
{
    return program->pieces_n == 0 || program->lives ? 1 : program->lines + 2;
}

int
program_keep(struct program *program, struct span piece, struct err *err)
{
    size_t before = program->pieces.n;
    int r = append(&program->pieces, piece, err);
    if (r < 0)
        return r;
    for (size_t i = before; i < program->pieces.n; i++)
        program->lines += program->pieces.p[i] == '\n';
    program->pieces_n++;
    return 0;
}

static bool
find(const struct stream *stream, const char *mark, size_t *ret_at)
{
    size_t n = strlen(mark);
    struct span head = buf_span(&stream->head);
    const char *at = head.n > n ? memmem(head.p, head.n, mark, n) : NULL;
    if (!at)
        return false;
    *ret_at = (size_t)(at - head.p) + n + 1; /* its line end */
    return true;
}

/* The first display that came after the byte of stdout that ends the mark. */
static size_t
displays_before(const struct outcome *outcome, size_t out_at)
{
    for (size_t i = 0, before = 0; i < outcome->events.n; i++) {
        const struct event_row *row = &outcome->events.rows[i];
        if (row->kind == EVENT_DISPLAY)
            before = row->at + 1;
        else if (row->kind == EVENT_STDOUT && row->at + row->n >= out_at)
            return before;
    }
    return outcome->displays.items_n;
}

void
program_cut(const struct program *program, const struct outcome *outcome,
            struct program_cut *ret)
{
    *ret = (struct program_cut){0};
    if (program->mark[0] == '\0')
        return;
    ret->found = find(&outcome->out, program->mark, &ret->out_at) &&
                 find(&outcome->err, program->mark, &ret->err_at);
    if (ret->found)
        ret->displays_at = displays_before(outcome, ret->out_at);
    else
        ret->out_at = ret->err_at = 0;
}
