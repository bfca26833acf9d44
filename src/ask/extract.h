/*
 * Code out of what a model has said: the argument of a tool call, or the fenced blocks of a text.
 * What cannot be taken is named in a sentence that goes back to the model.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum extract_kind {
    EXTRACT_NOTHING, /* there is no code in it */
    EXTRACT_CODE,
    EXTRACT_PROBLEM, /* there is something, and it cannot be run: `problem` says why */
};

struct extract {
    enum extract_kind kind;
    struct buf code;
    size_t blocks; /* that the code was joined from */
    char problem[256];
};

enum { EXTRACT_CODE_BYTES_MAX = 4 << 20, EXTRACT_BLOCKS_MAX = 256 };

void extract_init(struct extract *extract);
void extract_done(struct extract *extract);
/* cut: the model has reached its limit of tokens. */
int extract_text(struct span text, bool cut, struct extract *ret,
                 struct err *err) MUST_USE;
int extract_arguments(struct span arguments, bool cut, struct extract *ret,
                      struct err *err) MUST_USE;
