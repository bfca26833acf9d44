/*
 * Runs a program and makes one chosen system call of one of its processes fail:
 *
 *   inject RECORD -- PROGRAM ARGS…                           only records
 *   inject RECORD ROLE CALL NTH ERRNO -- PROGRAM ARGS…       … and fails that one; with
 *                                                            0 its caller is held in it
 *   inject --steps                                           the steps of a cold cell
 *
 * The product has no hook for this: the call is exchanged for a harmless one on its way
 * into the kernel, and its result on the way out (ptrace). RECORD gets one line a call,
 * tab-separated: role, call, how many of that call in that role, "hit" or "-", and what
 * it was about. Processes that outlive the program are recorded as "left" and killed.
 *
 * Roles are told by what a process does, so that counts are the same in every run; see
 * role_*.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/span.h"
#include "base/units.h"
#include "fault/registers.h"
#include "guest/wire.h"
#include "jail/jail.h"

enum {
    PROCESSES_MAX = 64,
    CALLS_MAX = 600, /* numbers of system calls */
    DETAIL_BYTES = 160,
    HOLD_S = 1,
    OUTLIVE_S = 5, /* what is alive so long after the program is left behind */
    EXIT_WRONG = 99,
};

enum role {
    ROLE_LOADER,     /* the dynamic loader: not ours */
    ROLE_DOOR,       /* the command line, before the run */
    ROLE_SUPERVISOR, /* from its event loop on */
    ROLE_ASKED,      /* an interpreter that tells about itself */
    ROLE_KEEPER,
    ROLE_INIT,
    ROLE_STARTER, /* init's child until it becomes the interpreter */
    ROLE_PYTHON,  /* its own start */
    ROLE_GUEST,   /* ours again: from the setup to the report that it is sealed */
    ROLE_CODE,    /* the submitted code */
    ROLES,
};
static const char *const role_names[ROLES] = {"loader", "door", "supervisor", "asked",
                                              "keeper", "init", "starter",    "python",
                                              "guest",  "code"};

struct process {
    pid_t pid; /* 0: free */
    enum role role;
    bool known;                        /* its parent's event has come: it has a role */
    bool stopped;                      /* its first stop came before that */
    bool failing;                      /* between entry and exit of the call that fails */
    bool held;                         /* at the entry of a call, until the alarm */
    struct __ptrace_syscall_info call; /* as it was entered */
};

struct tracer {
    FILE *record;
    struct process processes[PROCESSES_MAX];
    unsigned counts[ROLES][CALLS_MAX];
    bool armed;
    enum role role;
    int number;
    uint64_t nth, error;
    pid_t program;
    int status;
    bool ended;
};

static NORETURN void
give_up(const char *what)
{
    fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    exit(EXIT_WRONG);
}

/* --- what a call is about --- */

static void
read_text(pid_t pid, uint64_t address, char *text, size_t n)
{
    enum { PAGE = 4096 };
    size_t done = 0;
    /* Page by page: the one after the text's end may not be mapped. */
    while (address && done < n - 1) {
        size_t in_page = PAGE - (address + done) % PAGE;
        size_t want = in_page < n - 1 - done ? in_page : n - 1 - done;
        struct iovec to = {text + done, want};
        struct iovec from = {(void *)(uintptr_t)(address + done), want};
        ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
        if (got <= 0)
            break;
        done += (size_t)got;
        if (memchr(to.iov_base, '\0', (size_t)got))
            break;
    }
    text[done] = '\0';
}

/* Which argument is a path; the first is a descriptor where none is named. */
static const struct {
    const char *call;
    int argument;
} paths[] = {
    {"openat", 1},     {"newfstatat", 1},   {"mkdir", 0},
    {"mkdirat", 1},    {"unlinkat", 1},     {"symlink", 1},
    {"symlinkat", 2},  {"access", 0},       {"faccessat", 1},
    {"faccessat2", 1}, {"readlink", 0},     {"execve", 0},
    {"chdir", 0},      {"mount", 1},        {"open_tree", 1},
    {"move_mount", 3}, {"fsopen", 0},       {"umount2", 0},
    {"pivot_root", 0}, {"chown", 0},        {"readlinkat", 1},
    {"openat2", 1},    {"renameat", 3},     {"open", 0},
    {"stat", 0},       {"lstat", 0},        {"unlink", 0},
    {"fsconfig", 2},   {"memfd_create", 0}, {"inotify_add_watch", 1},
    {"renameat2", 3},  {"rmdir", 0},        {"fchownat", 1},
    {"fchmodat", 1},   {"chmod", 0},
};

static const char *const about_numbers[] = {
    "prctl",   "prlimit64",  "rt_sigaction", "setresuid", "setresgid", "mmap",
    "brk",     "clone",      "clone3",       "socket",    "unshare",   "wait4",
    "capset",  "umask",      "poll",         "kill",      "fcntl",     "setgroups",
    "seccomp", "socketpair", "pipe2",        "munmap",    "mprotect"};

static bool
is_about_numbers(const char *name)
{
    for (size_t i = 0; i < sizeof(about_numbers) / sizeof(*about_numbers); i++)
        if (strcmp(about_numbers[i], name) == 0)
            return true;
    return false;
}

static void
describe(const struct process *process, const char *name, char text[DETAIL_BYTES])
{
    const uint64_t *args = (const uint64_t *)process->call.entry.args;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths) && !text[0]; i++)
        if (strcmp(paths[i].call, name) == 0)
            read_text(process->pid, args[paths[i].argument], text, DETAIL_BYTES);
    if (!text[0] && !is_about_numbers(name) && args[0] < INT32_MAX) {
        char link[64];
        snprintf(link, sizeof(link), "/proc/%d/fd/%d", process->pid, (int)args[0]);
        ssize_t n = readlink(link, text, DETAIL_BYTES - 1);
        text[n > 0 ? n : 0] = '\0';
    }
    if (!text[0])
        snprintf(text, DETAIL_BYTES, "%#llx, %#llx", (unsigned long long)args[0],
                 (unsigned long long)args[1]);
    for (char *p = text; *p; p++)
        if (*p == '\t' || *p == '\n')
            *p = ' ';
}

/* --- roles --- */

static bool
is_path(const struct process *process, int argument, const char *path)
{
    char text[DETAIL_BYTES];
    read_text(process->pid, process->call.entry.args[argument], text, sizeof(text));
    return strcmp(text, path) == 0;
}

/* Before a call counts: what it shows its process to be from now on. */
static void
role_at_entry(struct process *process)
{
    uint64_t number = process->call.entry.nr;
    /* The first thing that main() does, and the first that engine_run() does. */
    if (process->role == ROLE_LOADER && number == SYS_openat &&
        is_path(process, 1, "/dev/null"))
        process->role = ROLE_DOOR;
    if (process->role == ROLE_DOOR &&
        (number == SYS_epoll_create1 || number == SYS_eventfd2))
        process->role = ROLE_SUPERVISOR;
    if (process->role == ROLE_PYTHON && number == SYS_recvmsg &&
        process->call.entry.args[0] == GUEST_FD)
        process->role = ROLE_GUEST;
}

static enum role
role_of_child(const struct process *parent)
{
    const struct __ptrace_syscall_info *call = &parent->call;
    uint64_t flags = call->entry.args[0]; /* of clone; clone3 has them in memory */
    struct iovec to = {&flags, sizeof(flags)};
    struct iovec from = {(void *)(uintptr_t)call->entry.args[0], sizeof(flags)};
    if (call->entry.nr == SYS_clone3 &&
        process_vm_readv(parent->pid, &to, 1, &from, 1, 0) != sizeof(flags))
        flags = 0;
    if (parent->role == ROLE_INIT)
        return ROLE_STARTER;
    if (parent->role != ROLE_SUPERVISOR)
        return parent->role;
    return flags & CLONE_PIDFD ? ROLE_INIT : flags & CLONE_VM ? ROLE_ASKED : ROLE_KEEPER;
}

/* --- calls --- */

static void
enter_call(struct tracer *tracer, struct process *process)
{
    role_at_entry(process);
    uint64_t number = process->call.entry.nr;
    if (number >= CALLS_MAX || process->role == ROLE_LOADER || process->role == ROLE_CODE)
        return;
    unsigned nth = ++tracer->counts[process->role][number];
    process->failing = tracer->armed && process->role == tracer->role &&
                       (int)number == tracer->number && nth == tracer->nth;
    char detail[DETAIL_BYTES];
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
    describe(process, name ? name : "?", detail);
    fprintf(tracer->record, "%s\t%s\t%u\t%s\t%s\n", role_names[process->role],
            name ? name : "?", nth, process->failing ? "hit" : "-", detail);
    free(name);
    if (process->failing && tracer->error == 0) {
        process->failing = false;
        process->held = true;
        alarm(HOLD_S);
    }
    /* Linux closes a descriptor also when close reports an error. Everything else that
     * fails has done nothing; getpid is let through by every filter. */
    if (process->failing && number != SYS_close &&
        registers_set_call(process->pid, SYS_getpid) < 0)
        give_up("exchange a system call");
}

static void
leave_call(struct tracer *tracer, struct process *process)
{
    if (process->failing &&
        registers_set_result(process->pid, -(int64_t)tracer->error) < 0)
        give_up("exchange a result");
    process->failing = false;
    if (process->role == ROLE_GUEST && process->call.entry.nr == SYS_sendmsg &&
        process->call.entry.args[0] == GUEST_FD)
        process->role = ROLE_CODE;
}

static void
stopped_at_call(struct tracer *tracer, struct process *process)
{
    struct __ptrace_syscall_info info = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, process->pid, sizeof(info), &info) <= 0)
        return; /* killed meanwhile */
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        process->call = info;
        enter_call(tracer, process);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
        leave_call(tracer, process);
    }
}

/* --- processes --- */

static struct process *
process_of(struct tracer *tracer, pid_t pid)
{
    struct process *free_place = NULL;
    for (size_t i = 0; i < PROCESSES_MAX; i++) {
        if (tracer->processes[i].pid == pid)
            return &tracer->processes[i];
        if (tracer->processes[i].pid == 0 && !free_place)
            free_place = &tracer->processes[i];
    }
    if (!free_place) {
        errno = ENOSPC;
        give_up("too many processes");
    }
    *free_place = (struct process){.pid = pid};
    return free_place;
}

static void
go_on(const struct process *process, int signal_number)
{
    (void)ptrace(PTRACE_SYSCALL, process->pid, 0, (long)signal_number);
}

static void
born(struct tracer *tracer, const struct process *parent)
{
    unsigned long pid = 0;
    if (ptrace(PTRACE_GETEVENTMSG, parent->pid, 0, &pid) < 0)
        return;
    struct process *child = process_of(tracer, (pid_t)pid);
    child->role = role_of_child(parent);
    child->known = true;
    if (child->stopped)
        go_on(child, 0);
    child->stopped = false;
}

static void
stopped(struct tracer *tracer, struct process *process, int status)
{
    int signal_number = WSTOPSIG(status), event = status >> 16;
    if (signal_number == (SIGTRAP | 0x80)) {
        stopped_at_call(tracer, process);
        if (process->held)
            return;
        signal_number = 0;
    } else if (event == PTRACE_EVENT_STOP) {
        process->stopped = !process->known;
        if (process->stopped)
            return; /* until its parent's event says what it is */
        signal_number = 0;
    } else if (event != 0) {
        if (event == PTRACE_EVENT_EXEC && process->role == ROLE_STARTER)
            process->role = ROLE_PYTHON;
        if (event != PTRACE_EVENT_EXEC)
            born(tracer, process);
        signal_number = 0;
    }
    go_on(process, signal_number);
}

static void
died(struct tracer *tracer, struct process *process, int status)
{
    if (process->pid == tracer->program) {
        tracer->status = status;
        tracer->ended = true;
        alarm(OUTLIVE_S);
    }
    process->pid = 0;
}

/* False: nobody was held. */
static bool
release(struct tracer *tracer)
{
    bool released = false;
    for (size_t i = 0; i < PROCESSES_MAX; i++) {
        if (!tracer->processes[i].held)
            continue;
        tracer->processes[i].held = false;
        go_on(&tracer->processes[i], 0);
        released = true;
    }
    if (released)
        alarm(tracer->ended ? OUTLIVE_S : 0);
    return released;
}

static void
end_those_left(struct tracer *tracer)
{
    for (size_t i = 0; i < PROCESSES_MAX; i++) {
        const struct process *process = &tracer->processes[i];
        if (process->pid == 0)
            continue;
        fprintf(tracer->record, "left\t%s\t%d\t-\t\n", role_names[process->role],
                process->pid);
        kill(process->pid, SIGKILL);
    }
}

static void
trace(struct tracer *tracer)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR) { /* the alarm */
            if (release(tracer))
                continue;
            end_those_left(tracer);
            return;
        }
        if (pid < 0)
            return;
        struct process *process = process_of(tracer, pid);
        if (WIFSTOPPED(status))
            stopped(tracer, process, status);
        else
            died(tracer, process, status);
    }
}

static void
start(struct tracer *tracer, char **argv)
{
    int go[2];
    char byte;
    if (pipe2(go, O_CLOEXEC) < 0)
        give_up("make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) == 1)
            execv(argv[0], argv);
        _exit(EXIT_WRONG);
    }
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, options) < 0)
        give_up("trace the program");
    struct process *process = process_of(tracer, pid);
    process->role = ROLE_LOADER;
    process->known = true;
    tracer->program = pid;
    if (write(go[1], "g", 1) != 1)
        give_up("start the program");
    close(go[0]);
    close(go[1]);
}

static void
on_alarm(int number)
{
    (void)number;
    alarm(1); /* again: this one may have come just before the wait that it is to end */
}

static void
arm(struct tracer *tracer, char **argv)
{
    tracer->number = seccomp_syscall_resolve_name(argv[3]);
    tracer->role = ROLES;
    for (size_t i = 0; i < ROLES; i++)
        if (strcmp(role_names[i], argv[2]) == 0)
            tracer->role = (enum role)i;
    if (tracer->number < 0 || tracer->role == ROLES ||
        parse_u64(span_of(argv[4]), &tracer->nth) < 0 ||
        parse_u64(span_of(argv[5]), &tracer->error) < 0) {
        errno = EINVAL;
        give_up("ROLE CALL NTH ERRNO");
    }
    tracer->armed = true;
}

static int
print_steps(void)
{
    const unsigned cold = 1U << JAIL_NAMESPACES | 1U << JAIL_LANDLOCK;
    for (size_t i = 0; i < jail_enter_steps_n; i++)
        if (jail_enter_steps[i].kinds & cold)
            printf("enter, step %s\n", jail_enter_steps[i].name);
    for (size_t i = 0; i < jail_seal_steps_n; i++)
        printf("seal, step %s\n", jail_seal_steps[i].name);
    return fflush(stdout) == 0 ? 0 : EXIT_WRONG;
}

int
main(int argc, char **argv)
{
    enum { ONLY_RECORD = 2, WITH_FAULT = 6 }; /* where "--" stands */
    if (argc == 2 && strcmp(argv[1], "--steps") == 0)
        return print_steps();
    int dashes = 1;
    while (dashes < argc && strcmp(argv[dashes], "--") != 0)
        dashes++;
    if ((dashes != ONLY_RECORD && dashes != WITH_FAULT) || dashes + 1 >= argc) {
        fputs("usage: inject RECORD [ROLE CALL NTH ERRNO] -- PROGRAM ARGS\n", stderr);
        return EXIT_WRONG;
    }
    struct tracer *tracer = calloc(1, sizeof(*tracer));
    if (!tracer)
        give_up("remember processes");
    tracer->record = fopen(argv[1], "we");
    if (!tracer->record)
        give_up(argv[1]);
    if (dashes == WITH_FAULT)
        arm(tracer, argv);
    struct sigaction action = {.sa_handler =
                                   on_alarm}; /* no SA_RESTART: it ends a wait */
    sigaction(SIGALRM, &action, NULL);
    start(tracer, argv + dashes + 1);
    trace(tracer);
    int status = tracer->status;
    bool whole = fclose(tracer->record) == 0 && tracer->ended;
    free(tracer);
    if (!whole)
        return EXIT_WRONG;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
