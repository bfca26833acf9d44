/*
 * What a run has shown, for a person: text as it is, images saved and named, and drawn in the
 * terminal where it says that it can. For every door that prints.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "job/outcome_display.h"

/* How a terminal draws an image that is given to it in its text. */
enum images_protocol { IMAGES_NONE, IMAGES_KITTY, IMAGES_ITERM2, IMAGES_SIXEL };
/* What the terminal at this descriptor says of itself: its variables, then, for sixel, its answer
 * to a question. IMAGES_NONE where nothing is said. */
enum images_protocol images_ask(int terminal_fd);
/* The image in the words of the protocol, with a line end; nothing when it cannot be said. */
int images_put(enum images_protocol protocol, struct span png, struct buf *out) MUST_USE;
/* Width and height in the head of a PNG; false when it is none. */
bool images_png_size(struct span png, uint32_t *ret_width, uint32_t *ret_height);

enum { RESULTS_FOLDER_BYTES = 512 };

struct results {
    const char *folder; /* where images go; NULL: a temporary one, or nowhere */
    bool is_terminal;   /* text goes to one */
    bool may_make;      /* a temporary folder: somebody is told of it */
    bool tells_unsaved; /* that images had no place; else nobody asked for them */
    enum images_protocol protocol;
    char made[RESULTS_FOLDER_BYTES]; /* the temporary one; "" before the first image */
    unsigned number;
    uint64_t unsaved; /* images that had no place */
};

/* Appends what belongs on stdout to `out` (control sequences of the cell's made visible where it
 * is a terminal) and lines about it, for stderr, to `lines`. */
int results_show(struct results *results, const struct display_item *item,
                 struct buf *out, struct buf *lines) MUST_USE;
/* All of a run, and what did not fit. */
int results_show_all(struct results *results, const struct displays *displays,
                     struct buf *out, struct buf *lines) MUST_USE;
