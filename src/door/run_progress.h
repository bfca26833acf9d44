/* One line on stderr while a run takes long: that it lives, and what it uses. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct run_progress {
    bool on;    /* somebody looks at stderr */
    bool shown; /* the line stands there */
    unsigned turns;
};

/* Draws the line, or draws it anew. */
void run_progress_show(struct run_progress *progress, uint64_t wall_us, uint64_t cpu_us,
                       uint64_t memory_bytes);
/* Takes it away: something else is about to be written. */
void run_progress_hide(struct run_progress *progress);
