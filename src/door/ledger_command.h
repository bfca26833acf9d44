/*
 * What `adyton incidents` and `adyton runs` share: options, output, and the verbs that
 * are about the whole ledger. Each brings how one of its rows is shown.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "ledger/ledger.h"

enum view_format { VIEW_TEXT, VIEW_JSON, VIEW_CSV };

struct view_options {
    struct ledger_filter filter;
    enum view_format format;
    bool has_limit;
    const char *ledger;  /* NULL: the user's own */
    const char *operand; /* an id, a file */
    const char *head;    /* SEQ:HASH, noted elsewhere */
};

/* Where rows go: collected, filtered when a terminal reads, written. */
struct view_out {
    struct ledger *ledger;
    const struct view_options *options;
    struct buf text;
    uint64_t rows, rows_max;
    bool has_more;
    struct err *err; /* code 0 until something failed */
};

struct view {
    const char *name; /* of the command */
    const char *what; /* "incidents" */
    int (*list)(struct view_out *out, struct err *err);
    int (*show)(struct view_out *out, const char *id, struct err *err);
};

/* --- ledger_options.c --- */
/* One option at argv[*at], with its value there or in the next word; *at ends on its
 * last. */
int view_option(int argc, char **argv, int *at, struct view_options *o,
                struct err *err) MUST_USE;
void view_options_help(void);

/* argv[0] is the command's name; returns the exit status. */
int ledger_command(const struct view *view, int argc, char **argv);

/* --- for the views --- */
enum { VIEW_TIME_BYTES = 40 };
/* "2026-12-01 04:15:02Z"; with `exact`, microseconds and a T between. */
const char *view_time(int64_t time_us, bool exact, char text[VIEW_TIME_BYTES]);
/* One cell of a line of text: nothing in it drives a terminal or begins a line; "-" when
 * there is nothing. Followed by blanks up to `width`, 0: by none. */
int view_cell(struct buf *out, const char *text, size_t width) MUST_USE;
/* One cell of CSV (RFC 4180), and the comma before it unless it is the first. What a
 * spreadsheet would take for a formula gets a quote in front. */
int view_csv(struct buf *out, bool first, const char *text) MUST_USE;
int view_csv_number(struct buf *out, bool first, int64_t number) MUST_USE;
/* "name       text" */
int view_field(struct buf *out, const char *name, const char *text) MUST_USE;
/* Takes the object over. */
int view_json_line(struct buf *out, json_t *object) MUST_USE;
json_t *view_json_text(const char *text); /* null for NULL; valid UTF-8 whatever it is */
json_t *view_json_hash(const unsigned char hash[LEDGER_HASH_BYTES]);
/* The lines around `line` with their numbers and a mark; the first ones when it is 0. */
int view_excerpt(struct buf *out, struct span code, int64_t line,
                 int64_t column) MUST_USE;
/* The kept text as JSON, or null. */
json_t *view_json_code(struct ledger *ledger,
                       const unsigned char hash[LEDGER_HASH_BYTES]);
/* Before each row of a list: 0, 1 when enough were shown, or a negative errno with
 * out->err. */
int view_next(struct view_out *out) MUST_USE;
/* For what a walk returned: fills the error when that was memory, and forgets a plain
 * end. */
int view_result(struct view_out *out, int r) MUST_USE;
