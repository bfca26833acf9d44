/* The part of `adyton run` that asks a supervisor. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "door/run_input.h"
#include "door/run_options.h"
#include "engine/call.h"
#include "job/job.h"
#include "job/outcome.h"
#include "policy/policy.h"

/* Whether a supervisor can be asked for what these options want. What is the operator's
 * to set (a policy or a ledger by path, a kind of isolation) holds here and not there:
 * then, and with --cold, the run is our own. -EINVAL when --socket says otherwise. */
int run_call_is_for(const struct run_options *options, bool *ret,
                    struct err *err) MUST_USE;

struct run_call {
    const struct run_options *options;
    const struct policy *policy; /* as it is known here: for its time limit */
    const struct job *job;
    const struct run_data *data;
    int collect_dir;
    void (*on_output)(void *context, int stream, struct span bytes);
    void (*on_message)(void *context, const json_t *message);
    void *context;
};

enum call_result run_call(const struct run_call *call, struct outcome *ret,
                          struct err *err) MUST_USE;
