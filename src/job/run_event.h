/*
 * What happens in the course of a run beside its output: that the code runs, what was refused, what
 * it uses. Told as it happens to whoever listens; the outcome says all of it again.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "job/outcome.h"

enum run_event_kind { RUN_STARTED, RUN_INCIDENT, RUN_USAGE };

struct run_event {
    enum run_event_kind kind;
    uint64_t time_us;                /* since 1970: see run_event_now_us */
    const char *run_id;              /* of RUN_STARTED */
    const char *start;               /* of RUN_STARTED: "cold", "warm", "pool" */
    const struct incident *incident; /* of RUN_INCIDENT: the first of its kind, count 1 */
    uint64_t wall_us, cpu_us;        /* of RUN_USAGE: since the code began */
    uint64_t memory_bytes;           /* … now; 0: the host does not say */
};

enum { RUN_EVENT_TIME_BYTES = 32 };
uint64_t run_event_now_us(void);
/* "2026-01-31T23:59:59.123456Z" */
const char *run_event_time(uint64_t time_us, char text[RUN_EVENT_TIME_BYTES]);

/* One incident of an outcome. NULL: no memory. */
json_t *outcome_incident_json(const struct incident *incident);
/* {"type":…,"id":…,"time":…,…}; without "id" when it is NULL. NULL: no memory. */
json_t *run_event_json(const struct run_event *event, const char *id);
int run_event_put(const struct run_event *event, const char *id,
                  struct buf *out) MUST_USE;
