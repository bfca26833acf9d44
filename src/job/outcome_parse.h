/* From the one JSON form back to an outcome: for whoever asked somebody else to run. */
#pragma once

#include <jansson.h>

#include "base/attr.h"
#include "base/err.h"
#include "job/outcome.h"

/* Reads what outcome_json wrote, with OUTCOME_JSON_EXACT or without (then streams are the
 * text they became). Strict: a key that is unknown, of another type or missing is
 * -EINVAL. On success the caller calls outcome_done; on failure *ret is as it was. */
int outcome_from_json(const json_t *document, struct outcome *ret,
                      struct err *err) MUST_USE;
