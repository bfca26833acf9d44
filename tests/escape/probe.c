/*
 * Runs one verb and says what came of it. Knows the verbs only as rows.
 *
 * The attempt is made in a forked child wherever that is allowed: it may be killed by a
 * filter, hang, or change the process that makes it. Nothing is allocated and no stdio
 * stream is used, because the parent is an interpreter whose state at the fork is not
 * ours to know.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const struct verb_family probe_families[] = {
    {"namespaces", verbs_namespaces, &verbs_namespaces_n},
    {"mounts", verbs_mounts, &verbs_mounts_n},
    {"process", verbs_process, &verbs_process_n},
    {"network", verbs_network, &verbs_network_n},
    {"files", verbs_files, &verbs_files_n},
    {"kernel", verbs_kernel, &verbs_kernel_n},
    {"machine", verbs_machine, &verbs_machine_n},
};
const size_t probe_families_n = sizeof(probe_families) / sizeof(probe_families[0]);

const struct verb *
probe_find(const char *name, size_t n)
{
    for (size_t f = 0; f < probe_families_n; f++) {
        for (size_t i = 0; i < *probe_families[f].verbs_n; i++) {
            const struct verb *verb = &probe_families[f].verbs[i];
            if (strlen(verb->name) == n && memcmp(verb->name, name, n) == 0)
                return verb;
        }
    }
    return NULL;
}

long
probe_call(const struct verb *verb, pid_t target)
{
    long a[6];
    memcpy(a, verb->args, sizeof(a));
    if (verb->aim > 0)
        a[verb->aim - 1] = target;
    long r = syscall(verb->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return r < 0 ? -errno : r;
}

int
probe_temp(char name[PROBE_PATH_BYTES])
{
    const char *folder = getenv("TMPDIR");
    int n = snprintf(name, PROBE_PATH_BYTES, "%s/adyton-probe-XXXXXX",
                     folder ? folder : "/tmp");
    if (n >= PROBE_PATH_BYTES)
        return -ENAMETOOLONG;
    int fd = mkostemp(name, O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static long
attempt(const struct verb *verb, pid_t target)
{
    return verb->run ? verb->run(verb, target) : probe_call(verb, target);
}

static int
print_result(const char *verb, const char *result, const char *name, long value,
             char *text, size_t n)
{
    int w = snprintf(
        text, n,
        "{\"verb\": \"%s\", \"result\": \"%s\", \"errno\": \"%s\", \"value\": %ld}", verb,
        result, name ? name : "?", value);
    return w < 0 || (size_t)w >= n ? -1 : 0;
}

static int
print_value(const char *verb, long value, char *text, size_t n)
{
    if (value >= 0)
        return print_result(verb, "ok", "", value, text, n);
    return print_result(verb, "errno", strerrorname_np((int)-value), value, text, n);
}

/* The interpreter above may ignore or handle these; a child of it must be able to die. */
static void
arm_alarm(void)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGALRM, SIG_DFL);
    signal(SIGSYS, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(PROBE_SECONDS);
}

static void
child(const struct verb *verb, pid_t target, int out)
{
    arm_alarm();
    long value = attempt(verb, target);
    ssize_t w = write(out, &value, sizeof(value));
    _exit(w == (ssize_t)sizeof(value) ? 0 : 125);
}

/* True when the child sent a value. The alarm ends a child that hangs; the wait here is
 * longer and only for one that stopped itself or left the alarm behind by executing a
 * program. */
static bool
child_value(int in, pid_t pid, long *ret_value)
{
    struct pollfd wait = {.fd = in, .events = POLLIN};
    int r;
    do
        r = poll(&wait, 1, (PROBE_SECONDS + 1) * 1000);
    while (r < 0 && errno == EINTR);
    if (r <= 0)
        kill(pid, SIGKILL);
    ssize_t got;
    do
        got = read(in, ret_value, sizeof(*ret_value));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(*ret_value);
}

/* "verb" or "verb=pid". Without a pid it is 1: of a cell its own init, never a host's. */
static const struct verb *
parse(const char *text, pid_t *ret_target)
{
    size_t n = strcspn(text, "=");
    *ret_target = text[n] == '=' ? (pid_t)strtol(text + n + 1, NULL, 10) : 1;
    return probe_find(text, n);
}

int
probe_run(const char *name, char *text, size_t n)
{
    pid_t target;
    const struct verb *verb = parse(name, &target);
    int fds[2];
    if (!verb)
        return -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return print_result(name, "unforked", strerrorname_np(errno), -errno, text, n);

    pid_t pid = fork();
    if (pid < 0) {
        int e = errno;
        close(fds[0]);
        close(fds[1]);
        return print_result(name, "unforked", strerrorname_np(e), -e, text, n);
    }
    if (pid == 0) {
        close(fds[0]);
        child(verb, target, fds[1]);
    }
    close(fds[1]);

    long value = 0;
    bool answered = child_value(fds[0], pid, &value);
    close(fds[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (answered)
        return print_value(name, value, text, n);
    if (WIFSIGNALED(status)) {
        int s = WTERMSIG(status);
        char signal_name[16];
        snprintf(signal_name, sizeof(signal_name), "SIG%s", sigabbrev_np(s));
        return print_result(name, "signal", signal_name, s, text, n);
    }
    /* It became another program, whose end this is. */
    return print_result(name, "ok", "", WEXITSTATUS(status), text, n);
}

int
probe_run_here(const char *name, char *text, size_t n)
{
    pid_t target;
    const struct verb *verb = parse(name, &target);
    return verb ? print_value(name, attempt(verb, target), text, n) : -1;
}
