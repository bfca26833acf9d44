/* A borrowed run of bytes: pointer and length, never NUL-terminated by promise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *p;
    size_t n;
};

static inline struct span
span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

static inline bool
span_is(struct span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}
