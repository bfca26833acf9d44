/* One incident as JSON and as a line: for its own list, and for the run that it is of. */
#pragma once

#include <jansson.h>

#include "base/attr.h"
#include "base/buf.h"
#include "ledger/ledger.h"

json_t *incident_json(const struct ledger_incident *incident);
int incident_line(struct buf *out, const struct ledger_incident *incident) MUST_USE;
