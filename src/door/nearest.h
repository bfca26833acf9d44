/* "Did you mean …?": the known name that a mistyped one most resembles. */
#pragma once

#include <stddef.h>

struct nearest {
    const char *wanted;
    const char *best; /* NULL until one is near enough */
    size_t distance;
};

void nearest_init(struct nearest *nearest, const char *wanted);
void nearest_try(struct nearest *nearest, const char *name);
