/*
 * Numbers with units, as people write them: sizes (256M, 1.5GiB) and times (1.5s, 200ms).
 * M and MiB are both 1,048,576 bytes, as in ulimit, systemd and Docker. A bare number is
 * bytes, or seconds. Results are whole bytes or whole milliseconds.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

/* All return 0, -EINVAL (not such a number) or -ERANGE (does not fit in 64 bits). */
int parse_u64(struct span text, uint64_t *ret) MUST_USE;
int parse_bytes(struct span text, uint64_t *ret_bytes) MUST_USE;
int parse_ms(struct span text, uint64_t *ret_ms) MUST_USE;

/* Exact and shortest: 268435456 -> "256M", 1500 -> "1500" bytes; 5000 -> "5s", 250 ->
 * "250ms". */
enum { UNITS_TEXT_BYTES = 32 };
const char *format_bytes(uint64_t bytes, char text[UNITS_TEXT_BYTES]);
const char *format_ms(uint64_t ms, char text[UNITS_TEXT_BYTES]);
