/* The checks that need no parser and no cell: the bytes of the source, before
 * anything. */
#pragma once

#include <stdint.h>

#include "check/finding.h"
#include "check/source.h"

/* The first thing that is wrong, as a finding without a severity: size, NUL, encoding. */
bool check_bytes(struct source *source, uint64_t most_bytes, struct finding *ret);
/* The one that holds in every mode: the limit is a limit. */
bool check_size(struct span text, uint64_t most_bytes, struct finding *ret);
