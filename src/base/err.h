/*
 * An error of ours, as plain data. The guest's failures are outcomes, never errors.
 *
 * Contract: int f(..., struct err *err) returns 0 or a negative errno; err is left alone
 * on success. The text is one sentence for the person who reads it: what happened, to
 * what. No allocation, so that a child between clone and exec can fill one and write it
 * up a pipe.
 */
#pragma once

#include <limits.h>

#include "base/attr.h"

struct err {
    int code; /* negative errno; 0 while nothing has failed */
    char text[236];
};
_Static_assert(sizeof(struct err) <= PIPE_BUF, "a child must be able to send it whole");

/* Both return the code, so that `return err_set(...)` is one line. */
int err_set(struct err *err, int code, const char *format, ...) PRINTF(3, 4);
/* Adds ": <strerror(errno)>" and returns -errno. */
int err_sys(struct err *err, const char *format, ...) PRINTF(2, 3);
/* Puts "context: " before the text that is there; returns err->code. */
int err_wrap(struct err *err, const char *format, ...) PRINTF(2, 3);
