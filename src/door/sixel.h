/* Images for terminals that draw sixels: a PNG, decoded with bounds, in 216 colours. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

/* Asks the terminal (DA1) whether it draws sixels, and waits a moment for its answer; false when
 * it is none of ours to ask. */
bool sixel_is_known(int terminal_fd);
/* Nothing for a PNG of a kind that is not read here (interlaced, 16 bits…) or that is broken. */
int sixel_put(struct span png, struct buf *out) MUST_USE;
