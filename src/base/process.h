/* This process: its CPUs; and what a freshly cloned child does before anything else, signals and
 * descriptors as they should be. Allocates nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

struct process_fd {
    int fd;     /* as it is now */
    int number; /* where it must be; close-on-exec is off there */
};

enum { PROCESS_FDS_MAX = 16 };

/* What a process that was waited for has used, its waited-for children included. */
struct rusage;
uint64_t process_cpu_us(const struct rusage *usage);
uint64_t process_peak_bytes(const struct rusage *usage);
/* How many CPUs it may run on; at least 1. */
unsigned process_cpus(void);
/* Every signal to its default, none blocked. */
void process_reset_signals(void);
/* Moves descriptors to their numbers, whatever stood there, and closes all others from
 * `first_free` on, which must be above every number. *ret_first is where the first one can
 * be reached at every moment, so that a failure can still be told through it. */
int process_keep_fds(const struct process_fd *kept, size_t n, int first_free,
                     int *ret_first, struct err *err) MUST_USE;
