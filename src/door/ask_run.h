/* The code of a model, run as `adyton run` runs code: by the supervisor when there is one, else in a
 * cell of our own. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "door/run_input.h"
#include "door/run_options.h"
#include "job/job.h"
#include "job/outcome.h"
#include "policy/policy.h"

struct ask_run {
    const struct run_options *options;
    struct policy policy;
    struct job job; /* but its code */
    struct run_data data;
    int collect_dir;
    bool may_call, has_folders;
};

/* Policy, files and folders; what is wrong with the command line. */
int ask_run_init(struct ask_run *run, const struct run_options *options,
                 struct err *err) MUST_USE;
void ask_run_done(struct ask_run *run);
/* The context is a struct ask_run; for ask_hooks.execute. */
int ask_run_execute(struct ask_run *run, struct span code, bool validate_only,
                    struct outcome *ret, struct err *err) MUST_USE;
