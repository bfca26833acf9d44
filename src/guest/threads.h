/* Threads of numeric libraries in warm cells: see threads.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { THREADS_LIBRARIES_MAX = 4 }; /* wheels bring their own, beside the system's */

struct threads {
    void (*set[THREADS_LIBRARIES_MAX])(int threads);
    size_t n;
};

/* In the zygote, before it imports: says how long an idle one may spin. */
void threads_expect(void);
/* In the zygote, when it has imported: finds the libraries. */
void threads_prepare(struct threads *threads);
/* In a cell: they may have as many, from now on, if this code uses them. */
void threads_allow(const struct threads *threads, uint32_t n, const char *code,
                   size_t code_n);
