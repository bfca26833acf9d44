/* What a model has written, on its way to a terminal. */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

/* Line ends and tabs pass; every other control character, and what changes the direction of text,
 * is shown as "\u001b": code must be read as it will run. */
int ask_text_append(struct span text, struct buf *out) MUST_USE;
