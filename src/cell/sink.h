/*
 * Writes one file of a cell into a folder of the host: beneath it, through no link, whole or not at
 * all. Its name may be anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* One file on its way into the output folder. Without a name there until it is whole. */
struct sink {
    int dir, fd; /* owned; both -1: nothing is written (no output folder) */
    bool named;  /* exists as `beside` and must become `name` or go */
    char beside[40];
    const char *name; /* last component of the path, borrowed */
    uint64_t length;
};

/* All return 0 or a negative errno. */
int sink_open(int out_dir, const char *path, struct sink *ret) MUST_USE;
int sink_write(struct sink *sink, const char *bytes, size_t n) MUST_USE;
int sink_finish(struct sink *sink) MUST_USE;
void sink_done(struct sink *sink);
/* Whether it means only that this one name has no place there. */
bool sink_has_no_place(int error);
