/* How a run ended, in lines for people. */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "door/run_options.h"
#include "job/outcome.h"

/* Nothing when all went well, unless the options ask for more; each line begins "adyton:
 * ". */
int run_ending_lines(const struct run_options *options, const struct outcome *outcome,
                     struct buf *out) MUST_USE;
