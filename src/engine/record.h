/*
 * A run in the ledger: its intent before anything is done for it, its outcome when all is
 * over. What cannot be recorded does not happen, or fails.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/engine.h"
#include "ledger/ledger.h"

struct record {
    const struct policy *policy;
    struct ledger *ledger;
    struct event *on_flush; /* while the run goes on */
    int64_t intent;         /* its row; 0: none was written */
};

int record_begin(const struct run_request *request, struct event_base *base,
                 const struct outcome *outcome, struct record *ret,
                 struct err *err) MUST_USE;
/* Both of a record that did not begin, too, and both turn the outcome into a failure of ours
 * when it cannot be recorded. The first commits it, and has the disk begin; */
void record_end(struct record *record, struct outcome *outcome);
/* the second waits for the disk, so what else is to be done at the end comes between them. */
void record_done(struct record *record, struct outcome *outcome);
