/* The options of `adyton ask`, as data. Those that say how code is run are those of `adyton run`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ask/form.h"
#include "base/attr.h"
#include "base/err.h"
#include "door/run_options.h"

enum ask_confirm { CONFIRM_ON_TERMINAL, CONFIRM_NEVER, CONFIRM_ALWAYS };

/* Everything in it is borrowed from argv. */
struct ask_options {
    const char *question; /* "-": it comes from stdin */
    const struct form *form;
    const char *model, *base_url, *key_file, *ca_file, *proxy;
    const char *save; /* where the program goes */
    uint64_t attempts, retries, token_budget, max_tokens, time_budget_ms;
    enum ask_confirm confirm;
    bool no_stream, no_tools, dry_run, plain_key, json, chat, help;
    struct run_options run;
};

int ask_options_parse(int argc, char **argv, struct ask_options *ret,
                      struct err *err) MUST_USE;
void ask_options_help(void);
