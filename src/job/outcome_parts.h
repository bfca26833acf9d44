/* JSON values that more than one part of an outcome is written with; for its own files. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/span.h"

/* json_int_t is signed: a count past its end stays at the end. */
json_t *json_u64(uint64_t value);
json_t *json_base64(struct span bytes);
