/* What came of a piece of code, as text for the model that wrote it: what it printed and showed, or
 * why it failed and what to change. */
#pragma once

#include "ask/program.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "job/outcome.h"

enum { RESULT_BYTES_MAX = 256 * 1024 };

/* Valid UTF-8, bounded. */
int result_text(const struct outcome *outcome, const struct program *program,
                struct buf *out) MUST_USE;
