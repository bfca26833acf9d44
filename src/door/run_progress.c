/*
 * The line is written to the terminal at once and by itself: it is no part of what the run says,
 * and is gone before anything else is written. A terminal that takes nothing just now goes without.
 */
#include "door/run_progress.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

enum { BEGINS_AFTER_US = 1000000, LINE_BYTES = 160, US_PER_MS = 1000 };

static const char erase_line[] = "\r\x1b[K";

static void
write_now(const char *text)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT))
        (void)!write(STDERR_FILENO, text, strlen(text));
}

void
run_progress_show(struct run_progress *progress, uint64_t wall_us, uint64_t cpu_us,
                  uint64_t memory_bytes)
{
    static const char *const frames[] = {"⠋", "⠙", "⠹", "⠸", "⠼",
                                         "⠴", "⠦", "⠧", "⠇", "⠏"};
    enum { FRAMES = sizeof(frames) / sizeof(*frames), MIB = 1 << 20 };
    char line[LINE_BYTES];
    if (!progress->on || wall_us < BEGINS_AFTER_US)
        return;
    int n = snprintf(line, sizeof(line), "%s%s %.1f s", erase_line,
                     frames[progress->turns++ % FRAMES], (double)wall_us / 1e6);
    if (memory_bytes > 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", %" PRIu64 " MiB",
                      memory_bytes / MIB);
    snprintf(line + n, sizeof(line) - (size_t)n, ", %.1f s CPU", (double)cpu_us / 1e6);
    write_now(line);
    progress->shown = true;
}

void
run_progress_hide(struct run_progress *progress)
{
    if (progress->shown)
        write_now(erase_line);
    progress->shown = false;
}
