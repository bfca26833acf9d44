/*
 * libFuzzer: a claims memory as a hostile cell may leave it. Whatever it holds, what reaches the
 * outcome is bounded valid UTF-8, and the outcome's JSON is whole.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cell/cell_parts.h"

enum { JSON_BYTES_MAX = 4 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
must_be_valid(const char *text, size_t size)
{
    AUTO_BUF struct buf copy = {0};
    uint64_t replaced = 0;
    size_t n = strnlen(text, size);
    buf_init(&copy, 4 * size);
    if (n == size || utf8_append_valid(&copy, (struct span){text, n}, &replaced) < 0 ||
        replaced != 0)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct claims *shared = calloc(1, sizeof(*shared));
    struct claims *read = calloc(1, sizeof(*read));
    struct outcome outcome;
    AUTO_BUF struct buf json = {0};
    if (!shared || !read)
        abort();
    memcpy(shared, bytes, n < sizeof(*shared) ? n : sizeof(*shared));
    shared->magic = GUEST_MAGIC; /* or nothing at all would be taken */
    outcome_init(&outcome);
    claims_read(shared, read);
    claims_carry_error(read, &outcome);
    claims_carry_acts(read, &outcome);
    must_be_valid(outcome.error_name, sizeof(outcome.error_name));
    must_be_valid(outcome.error_value, sizeof(outcome.error_value));
    for (size_t i = 0; i < outcome.incidents_n; i++)
        must_be_valid(outcome.incidents[i].act, sizeof(outcome.incidents[i].act));
    buf_init(&json, JSON_BYTES_MAX);
    if (outcome_json(&outcome, OUTCOME_JSON_COMPACT, &json) < 0)
        abort();
    outcome_done(&outcome);
    free(read);
    free(shared);
    return 0;
}
