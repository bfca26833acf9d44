/* UTF-8 (RFC 3629) over untrusted bytes: never split a character, replace what is
 * invalid. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

/* Length 1-4 of the well-formed character at the front of s; 0 when ill-formed; -1 when s
 * ends inside a character that is well-formed so far. */
int utf8_next(struct span s);
/* Appends s to out with each ill-formed byte run replaced by U+FFFD (maximal subparts, as
 * in Unicode 3.9 and Python's errors='replace'); counts the replacements. */
int utf8_append_valid(struct buf *out, struct span s, uint64_t *ret_replaced) MUST_USE;
/* Bytes at the end of s that begin a character without ending it (0-3). */
size_t utf8_unfinished_tail(struct span s);
