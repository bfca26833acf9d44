/*
 * The moment at which a cell's program has run its last instruction. A process is reaped when its
 * memory is taken down, which for one with numpy and pandas in it takes the kernel a millisecond
 * or more; that it will run no more code is settled when it enters its exit, and the kernel tells
 * a tracer so (ptrace(2), PTRACE_O_TRACEEXIT). So each program is traced by its factory, for that
 * event alone: every other stop is passed on as if nobody had looked.
 *
 * Nobody in the cell can tell (TracerPid counts only in our pid namespace) or mind: ptrace is refused
 * there anyway. A program that cannot be traced is heard of when it is reaped; so is one with more
 * stops (signals to itself) than a program has that does not want to keep us busy.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "warm/factory_parts.h"

enum { EVENT_SHIFT = 16, STOPS_MAX = 32 };

void
factory_trace(pid_t program)
{
    /* If we die, so does it; that it may be gone already, or cannot be traced, is no error. */
    (void)!ptrace(PTRACE_SEIZE, program, NULL, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
}

/* SIGKILL is left to the reaping, where it is found out who sent it. */
static void
tell_ending(const struct factory_cell *cell, pid_t program)
{
    unsigned long status = 0;
    if (ptrace(PTRACE_GETEVENTMSG, program, NULL, &status) < 0)
        return;
    struct factory_report report = {
        .kind = FACTORY_ENDING, .id = cell->id, .wait_status = (int)status};
    if (!WIFSIGNALED(report.wait_status) || WTERMSIG(report.wait_status) != SIGKILL)
        factory_report(&report, NULL, 0);
}

static bool
stops_a_group(int number)
{
    return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN ||
           number == SIGTTOU;
}

void
factory_pass_on(struct factory *factory, pid_t pid, int status)
{
    struct factory_cell *cell = factory_find(factory, pid);
    int event = status >> EVENT_SHIFT, number = WSTOPSIG(status);
    long passed = event != 0 ? 0 : number;
    if (event == PTRACE_EVENT_EXIT && cell && cell->program == pid)
        tell_ending(cell, pid);
    if (!cell || ++cell->stops > STOPS_MAX)
        (void)!ptrace(PTRACE_DETACH, pid, NULL, passed);
    else if (event == PTRACE_EVENT_STOP && stops_a_group(number))
        (void)!ptrace(PTRACE_LISTEN, pid, NULL, 0L); /* it stays stopped */
    else
        (void)!ptrace(PTRACE_CONT, pid, NULL, passed);
}
