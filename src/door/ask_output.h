/* What `adyton ask` prints: the answer on stdout, everything else on stderr. */
#pragma once

#include <stdbool.h>

#include "ask/ask.h"
#include "base/attr.h"
#include "base/err.h"
#include "door/ask_options.h"
#include "door/results.h"

struct ask_output {
    const struct ask_options *options;
    const struct program *program; /* of the answer that grows */
    struct results results;
    bool out_is_terminal, err_is_terminal;
    bool is_live;        /* the answer's text is shown as it comes */
    bool is_mid_line;    /* of that */
    bool asked_terminal; /* how it draws images: once, and only when there is one */
};

void ask_output_init(struct ask_output *output, const struct ask_options *options);
/* For struct ask_hooks and endpoint.on_wait, behind a context that has it. */
/* Of a model, on a terminal; only where is_live. */
void ask_output_text(struct ask_output *output, struct span text);
void ask_output_step(struct ask_output *output, const char *line);
void ask_output_wait(struct ask_output *output, const char *line);
void ask_output_code(struct ask_output *output, struct span code);
void ask_output_outcome(struct ask_output *output, const struct outcome *outcome,
                        bool validated_only);
/* Shows the code's verdict and asks the person at the terminal. */
bool ask_output_may_run(struct ask_output *output, const struct outcome *verdict);
int ask_output_finish(struct ask_output *output, const struct ask_answer *answer,
                      struct err *err) MUST_USE;
