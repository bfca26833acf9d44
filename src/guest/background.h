/* Threads that a run leaves: see background.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Tells all threads of Python but this one to end (SystemExit), until they have or the time is
 * over: false. One that waits in C does not hear of it. */
bool background_end(uint32_t grace_ms);
