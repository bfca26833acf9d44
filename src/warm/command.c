/* The interpreter's arguments and environment: a short list made here, nothing of the
 * host's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "guest/boot.h"
#include "guest/wire.h"
#include "warm/command.h"

enum {
    ENVIRONMENT_MAX = 32,
    TEXT_BYTES = 1024,
    PIDS_A_THREAD = 8, /* numeric libraries get an eighth of the pids as threads */
};

/* A library that starts a thread for each of the host's cores meets the pids limit and
 * fails in ways its users cannot read; so each is told how many it has. */
uint64_t
command_threads(const struct policy *policy)
{
    uint64_t threads = process_cpus();
    uint64_t by_pids = policy->pids / PIDS_A_THREAD;
    if (policy->cpus > 0)
        threads = policy->cpus < threads ? policy->cpus : threads;
    if (by_pids < threads)
        threads = by_pids;
    return threads > 0 ? threads : 1;
}

uint32_t
command_guest_flags(const struct policy *policy)
{
    uint32_t flags = policy->processes != PROCESSES_EXEC ? GUEST_NO_PROGRAMS : 0;
    flags |= policy->processes == PROCESSES_NONE ? GUEST_NO_FORK : 0;
    flags |= policy->network == NETWORK_NONE ? GUEST_NO_NETWORK : 0;
    return flags;
}

static int
append(char **list, size_t *n, size_t max, const char *text, struct err *err)
{
    if (*n + 1 >= max)
        return err_set(err, -E2BIG, "more than %zu arguments for the interpreter", max);
    list[*n] = strdup(text);
    if (!list[*n])
        return err_set(err, -ENOMEM, "no memory for the interpreter's arguments");
    list[++*n] = NULL;
    return 0;
}

static int
make_arguments(const struct command_spec *spec, struct command_line *line,
               struct err *err)
{
    char boot[TEXT_BYTES];
    snprintf(boot, sizeof(boot), GUEST_BOOT, jail_guest_file(spec->plan), spec->entry);
    const char *const first[] = {spec->plan->image->executable, "-u", "-B", "-c", boot};
    size_t n = 0, fixed = sizeof(first) / sizeof(*first), max = fixed + spec->words_n + 1;
    line->argv = calloc(max, sizeof(*line->argv));
    if (!line->argv)
        return err_set(err, -ENOMEM, "no memory for the interpreter's arguments");
    int r = 0;
    for (size_t i = 0; i < fixed && r == 0; i++)
        r = append(line->argv, &n, max, first[i], err);
    for (size_t i = 0; i < spec->words_n && r == 0; i++)
        r = append(line->argv, &n, max, spec->words[i], err);
    return r;
}

static int
make_environment(const struct command_spec *spec, struct command_line *line,
                 struct err *err)
{
    static const char *const constants[] = {
        "LANG=C.UTF-8",
        "MPLBACKEND=Agg", /* there is no screen: matplotlib need not look for one */
        "PATH=/usr/local/bin:/usr/bin:/bin",
    };
    static const char *const thread_variables[] = {GUEST_THREAD_VARIABLES};
    const char *tmp = jail_tmp_dir(spec->plan);
    char text[TEXT_BYTES];
    size_t n = 0;
    line->envp = calloc(ENVIRONMENT_MAX, sizeof(*line->envp));
    if (!line->envp)
        return err_set(err, -ENOMEM, "no memory for the interpreter's environment");
    int r = 0;
    for (size_t i = 0; i < sizeof(constants) / sizeof(*constants) && r == 0; i++)
        r = append(line->envp, &n, ENVIRONMENT_MAX, constants[i], err);
    for (size_t i = 0; i < sizeof(thread_variables) / sizeof(char *) && r == 0; i++) {
        snprintf(text, sizeof(text), "%s=%llu", thread_variables[i],
                 (unsigned long long)spec->threads);
        r = append(line->envp, &n, ENVIRONMENT_MAX, text, err);
    }
    static const char *const folders[] = {"HOME", "TMPDIR"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && r == 0; i++) {
        snprintf(text, sizeof(text), "%s=%s", folders[i], tmp);
        r = append(line->envp, &n, ENVIRONMENT_MAX, text, err);
    }
    if (r == 0 && spec->plan->image->venv[0] != '\0') {
        snprintf(text, sizeof(text), "VIRTUAL_ENV=%s", spec->plan->image->venv);
        r = append(line->envp, &n, ENVIRONMENT_MAX, text, err);
    }
    return r;
}

int
command_line_make(const struct command_spec *spec, struct command_line *ret,
                  struct err *err)
{
    *ret = (struct command_line){0};
    int r = make_arguments(spec, ret, err);
    if (r == 0)
        r = make_environment(spec, ret, err);
    if (r < 0)
        command_line_done(ret);
    return r;
}

static void
free_list(char **list)
{
    for (char **item = list; list && *item; item++)
        free(*item);
    free(list);
}

void
command_line_done(struct command_line *line)
{
    free_list(line->argv);
    free_list(line->envp);
    *line = (struct command_line){0};
}
