/* What the loop's own files share. */
#pragma once

#include "ask/ask.h"

struct asking {
    const struct ask_request *q;
    struct ask_answer *answer;
    json_t *messages;
    struct reply reply;
    struct buf body;  /* the prompt of the reply */
    struct buf piece; /* code that ran last in an answer without calls */
    unsigned failures, made;
    bool used_tool, over;
};

/* ask_ledger.c: what the reply led to, in the ledger and in the answer's steps. run: NULL when
 * nothing was run. */
int ask_record(struct asking *a, const char *run, const char *verdict,
               const char *message, struct err *err) MUST_USE;
/* A line about a step, for whoever wants to see them. */
void ask_step(const struct asking *a, const char *format, ...) PRINTF(2, 3);
