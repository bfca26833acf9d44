/* The probe as a program: controls outside a cell, the table, and the host's half. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "probe.h"
#include "scratch.h"

/* Each in a place of its own: an attempt that is let through may take /proc away. */
static int
run_one(const char *name)
{
    char text[PROBE_TEXT_BYTES];
    int r = scratch_enter();
    if (r < 0) {
        fprintf(stderr, "no namespaces to try %s in: %s\n", name, strerror(-r));
        return 1;
    }
    if (probe_run(name, text, sizeof(text)) < 0) {
        fprintf(stderr, "no verb %s\n", name);
        return 1;
    }
    puts(text);
    fflush(stdout);
    return 0;
}

static int
run_apart(const char *name)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_one(name));
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return 1;
    return status != 0;
}

int
main(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "--help";
    if (!strcmp(first, "--nothing")) /* what an execve that was let through becomes */
        return 0;
    if (!strcmp(first, "--table"))
        return expect_print();
    if (!strcmp(first, "--hold"))
        return host_hold();
    if (first[0] == '-') {
        fprintf(stderr, "usage: probe VERB[=PID]… | --table | --hold\n");
        return 2;
    }
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= run_apart(argv[i]);
    return failed;
}
