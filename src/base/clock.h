/* The supervisor's own clock: monotonic, in microseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t
clock_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000U + (uint64_t)t.tv_nsec / 1000U;
}
