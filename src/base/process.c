/* CPUs, signals and descriptors of a process: see process.h. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t
process_cpu_us(const struct rusage *usage)
{
    enum { US_PER_S = 1000000 };
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * US_PER_S +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

uint64_t
process_peak_bytes(const struct rusage *usage)
{
    enum { KIB = 1024 };
    return (uint64_t)usage->ru_maxrss * KIB;
}

unsigned
process_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (unsigned)n : 1;
}

void
process_reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int
process_keep_fds(const struct process_fd *kept, size_t n, int first_free, int *ret_first,
                 struct err *err)
{
    enum { HIGH_FD = 64 }; /* they wait here while the low numbers are filled */
    int high[PROCESS_FDS_MAX];
    *ret_first = n > 0 ? kept[0].fd : -1;
    if (n > PROCESS_FDS_MAX)
        return err_set(err, -E2BIG, "more than %d descriptors to keep", PROCESS_FDS_MAX);
    for (size_t i = 0; i < n; i++) {
        high[i] = fcntl(kept[i].fd, F_DUPFD_CLOEXEC, HIGH_FD);
        if (high[i] < 0)
            return err_sys(err, "keep a descriptor for the cell");
        *ret_first = high[0];
    }
    if (close_range(3, HIGH_FD - 1, 0) < 0)
        return err_sys(err, "close the supervisor's descriptors");
    for (size_t i = 0; i < n; i++)
        if (dup2(high[i], kept[i].number) < 0)
            return err_sys(err, "place a descriptor for the cell");
    *ret_first = n > 0 ? kept[0].number : -1;
    if (close_range((unsigned)first_free, ~0U, 0) < 0)
        return err_sys(err, "close the supervisor's descriptors");
    return 0;
}
