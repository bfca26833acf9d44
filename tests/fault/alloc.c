/*
 * Preloaded into the supervisor: makes its n-th allocation fail. Children are left alone:
 * they are another process, told by the pid at load, and allocate nothing before they
 * execute.
 *
 *   ADYTON_FAULT_ALLOC=N       fail the N-th malloc, calloc or realloc; 0: only look
 *   ADYTON_FAULT_REPORT=FILE   gets the calls that led to the one that failed; with 0 the
 *                              first allocation of each different way to one
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/span.h"
#include "base/units.h"

/* Ways are told apart by the calls nearest to them: the whole trail would make thousands. The trail
 * itself is long enough for a regular expression's compiler, which calls itself. */
enum { FRAMES = 96, WAY_FRAMES = 6, OWN_FRAMES = 2, WAYS_MAX = 4096 };

/* The C library's own, under the names that serve programs which bring a malloc of
 * theirs. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static struct {
    pid_t pid; /* 0: not loaded yet */
    bool inside;
    uint64_t fail, count;
    int report;
    uint64_t ways[WAYS_MAX]; /* hashes of return addresses */
    size_t ways_n;
} state = {.report = -1};

__attribute__((constructor)) static void
load(void)
{
    void *frames[FRAMES];
    const char *fail = getenv("ADYTON_FAULT_ALLOC");
    const char *report = getenv("ADYTON_FAULT_REPORT");
    if (!fail || !report || parse_u64(span_of(fail), &state.fail) < 0)
        return;
    /* The first backtrace loads a library; afterwards none allocates. */
    (void)backtrace(frames, FRAMES);
    /* High: the numbers that the program will get are those that it always gets. */
    int fd = open(report, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    state.report = fcntl(fd, F_DUPFD_CLOEXEC, 500);
    close(fd);
    state.pid = getpid();
}

static bool
is_new(void *const *frames, int n)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (int i = OWN_FRAMES; i < n && i < WAY_FRAMES; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x100000001b3U;
    for (size_t i = 0; i < state.ways_n; i++)
        if (state.ways[i] == hash)
            return false;
    if (state.ways_n < WAYS_MAX)
        state.ways[state.ways_n++] = hash;
    return true;
}

static void
tell(void *const *frames, int n)
{
    char line[48];
    int length = snprintf(line, sizeof(line), "%llu\n", (unsigned long long)state.count);
    (void)!write(state.report, line, (size_t)length);
    if (state.fail != 0)
        backtrace_symbols_fd(frames + OWN_FRAMES, n - OWN_FRAMES, state.report);
}

static bool
fails(void)
{
    void *frames[FRAMES];
    if (state.pid == 0 || state.inside || state.pid != getpid())
        return false;
    state.count++;
    if (state.fail != 0 && state.fail != state.count)
        return false;
    state.inside = true;
    int n = backtrace(frames, FRAMES);
    if (state.fail != 0 || is_new(frames, n))
        tell(frames, n);
    state.inside = false;
    errno = state.fail != 0 ? ENOMEM : errno;
    return state.fail != 0;
}

void *
malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
    return fails() ? NULL : __libc_realloc(p, n);
}
