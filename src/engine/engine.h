/* The steps of one run, from a job and a policy to an outcome, whatever makes the
 * cell. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "job/job.h"
#include "job/outcome.h"
#include "job/run_event.h"
#include "policy/policy.h"

struct run_request {
    const struct policy *policy; /* borrowed, resolved */
    const struct job *job;       /* borrowed */
    const char *python;          /* NULL: the default interpreter */
    const char *ledger_path;     /* NULL: the user's own */
    int collect_dir;             /* where collected files are written, or -1 */
    bool validate_only;          /* looks at the code, never runs it, records nothing */
    /* Called with the bytes of stream 1 or 2 as they come, up to the head's limit; may be
     * NULL. */
    void (*on_output)(void *context, int stream, struct span bytes);
    void (*on_display)(void *context, const struct display_item *item); /* may be NULL */
    /* What happens beside it, as it happens; may be NULL. */
    void (*on_event)(void *context, const struct run_event *event);
    void *context;
};

/* Always fills *ret (outcome_init inside; the caller calls outcome_done): what adyton
 * itself could not do is STATUS_FAILED with a sentence. */
void engine_run(const struct run_request *request, struct outcome *ret);
/* Of a run whose outcome the caller has: it is recorded like any other, or fails. */
void engine_record(const struct run_request *request, struct outcome *outcome);
