/*
 * `adyton serve`: the command line of the supervisor, and its notes on stderr. What is
 * wrong with the command line ends with 2, what keeps it from serving with 125.
 */
#include "door/serve_command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "door/help.h"
#include "door/terminal.h"
#include "engine/serve.h"

enum {
    EXIT_WRONG_USE = 2,
    EXIT_OUR_FAULT = 125,
    LINE_BYTES = 4096,
    RUNS_MAX = 100 * 1000,
    QUEUE_DEFAULT = 256,
};

struct wish {
    struct serve_options serve;
    char *owned[SERVE_PYTHONS_MAX]; /* pythons made absolute */
    char *preload;                  /* cut into names */
    bool help;
};

struct option {
    const char *name, *value, *help;
    int (*take)(struct wish *wish, const char *value, struct err *err);
};

static int
take_socket(struct wish *wish, const char *value, struct err *err)
{
    (void)err;
    wish->serve.socket = value;
    return 0;
}

static int
take_policy(struct wish *wish, const char *value, struct err *err)
{
    if (wish->serve.policies_n == SERVE_POLICIES_MAX)
        return err_set(err, -E2BIG, "--policy: more than %d files", SERVE_POLICIES_MAX);
    wish->serve.policies[wish->serve.policies_n++] = value;
    return 0;
}

/* Absolute, because that is how clients name it; links stay, for they may lead into a
 * virtual environment. */
static int
take_python(struct wish *wish, const char *value, struct err *err)
{
    char here[PATH_MAX] = "";
    size_t i = wish->serve.pythons_n;
    if (i == SERVE_PYTHONS_MAX)
        return err_set(err, -E2BIG, "--python: more than %d", SERVE_PYTHONS_MAX);
    if (!strchr(value, '/'))
        return err_set(err, -EINVAL, "--python: '%.120s' is not a path", value);
    if (value[0] != '/' && !getcwd(here, sizeof(here)))
        return err_sys(err, "cannot tell the current folder");
    if (asprintf(&wish->owned[i], "%s%s%s", here, here[0] ? "/" : "", value) < 0) {
        wish->owned[i] = NULL;
        return err_set(err, -ENOMEM, "no memory for a path");
    }
    wish->serve.pythons[wish->serve.pythons_n++] = wish->owned[i];
    return 0;
}

/* A comma-separated list, cut in place; "none" is the empty one. */
static int
take_preload(struct wish *wish, const char *value, struct err *err)
{
    free(wish->preload);
    wish->preload = strdup(value);
    if (!wish->preload)
        return err_set(err, -ENOMEM, "no memory for a list of modules");
    wish->serve.preload_n = 0;
    wish->serve.preload_given = true;
    if (strcmp(value, "none") == 0)
        return 0;
    for (char *name = wish->preload, *end; name; name = end) {
        end = strchr(name, ',');
        if (end)
            *end++ = '\0';
        if (*name == '\0' || wish->serve.preload_n == SERVE_PRELOAD_MAX)
            return err_set(err, -EINVAL,
                           "--preload: up to %d module names, like numpy,pandas, or none",
                           SERVE_PRELOAD_MAX);
        wish->serve.preload[wish->serve.preload_n++] = name;
    }
    return 0;
}

static int
take_number(const char *name, const char *value, uint64_t least, uint64_t *ret,
            struct err *err)
{
    uint64_t n;
    if (parse_u64(span_of(value), &n) < 0 || n < least || n > RUNS_MAX)
        return err_set(err, -EINVAL, "%s: '%.40s' is not a number from %llu to %d", name,
                       value, (unsigned long long)least, RUNS_MAX);
    *ret = n;
    return 0;
}

static int
take_runs(struct wish *wish, const char *value, struct err *err)
{
    return take_number("--max-runs", value, 1, &wish->serve.runs_max, err);
}

static int
take_queue(struct wish *wish, const char *value, struct err *err)
{
    return take_number("--queue", value, 0, &wish->serve.queue_max, err);
}

static int
take_memory(struct wish *wish, const char *value, struct err *err)
{
    uint64_t bytes;
    if (parse_bytes(span_of(value), &bytes) < 0 || bytes == 0)
        return err_set(err, -EINVAL, "--memory-budget: '%.40s' is not a size, like 8G",
                       value);
    wish->serve.memory_bytes = bytes;
    return 0;
}

static int
take_ledger(struct wish *wish, const char *value, struct err *err)
{
    (void)err;
    wish->serve.ledger = value;
    return 0;
}

static int
take_help(struct wish *wish, const char *value, struct err *err)
{
    (void)value, (void)err;
    wish->help = true;
    return 0;
}

/* clang-format off */
static const struct option options[] = {
    {"--socket", "PATH",
     "Where to listen (default: $XDG_RUNTIME_DIR/adyton/adyton.sock, as root "
     "/run/adyton/adyton.sock; or what systemd passes).", take_socket},
    {"--policy", "FILE",
     "A policy that clients may name, beside the built-in ones. May be given often.", take_policy},
    {"--python", "PATH",
     "An interpreter that clients may name; the first is the default. May be given often.",
     take_python},
    {"--preload", "MODULES",
     "What warm interpreters import ahead, separated by commas, or none (default: numpy, pandas, "
     "matplotlib.pyplot and usual modules of the standard library, where installed).",
     take_preload},
    {"--max-runs", "N",
     "Runs at the same time (default: four for each core).", take_runs},
    {"--queue", "N",
     "Runs that wait; those beyond are told that the supervisor is busy (default: 256).",
     take_queue},
    {"--memory-budget", "SIZE",
     "What the memory limits of all running cells may add up to (default: half of the host's).",
     take_memory},
    {"--ledger", "FILE",
     "Where runs are recorded (default: the user's own ledger).", take_ledger},
    {"--help", NULL,
     "Show this page.", take_help},
};
/* clang-format on */
enum { OPTIONS = sizeof(options) / sizeof(*options) };

static void
print_line(const char *text)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES);
    if (terminal_append_line(text, &line) == 0)
        fprintf(stderr, "adyton serve: %s\n", line.p);
}

static void
on_note(void *context, const char *line)
{
    (void)context;
    print_line(line);
}

static int
print_help(void)
{
    puts("usage: adyton serve [OPTION…]\n\n"
         "Runs cells for whoever of this user connects to its socket; `adyton run` finds "
         "it by itself.\nSIGTERM ends it when what runs has ended, a second one at once; "
         "SIGHUP reads the policy files\nagain.\n\noptions:");
    for (size_t i = 0; i < OPTIONS; i++) {
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s", options[i].name,
                 options[i].value ? " " : "", options[i].value ? options[i].value : "");
        help_print_row(left, options[i].help);
    }
    return fflush(stdout) == 0 ? 0 : EXIT_OUR_FAULT;
}

/* The option at argv[*at], with its value there or in the next word. */
static int
parse_option(int argc, char **argv, int *at, struct wish *wish, struct err *err)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    const struct option *option = NULL;
    for (size_t i = 0; i < OPTIONS; i++)
        if (strlen(options[i].name) == n && strncmp(options[i].name, word, n) == 0)
            option = &options[i];
    if (!option)
        return err_set(err, -EINVAL, "unknown option '%.80s'", word);
    const char *value = equals ? equals + 1 : NULL;
    if (!option->value && value)
        return err_set(err, -EINVAL, "%s takes no value", option->name);
    if (option->value && !value) {
        if (*at + 1 >= argc)
            return err_set(err, -EINVAL, "%s needs a value: %s", option->name,
                           option->value);
        value = argv[++*at];
    }
    return option->take(wish, value, err);
}

static void
wish_done(struct wish *wish)
{
    for (size_t i = 0; i < SERVE_PYTHONS_MAX; i++)
        free(wish->owned[i]);
    free(wish->preload);
}

int
serve_command(int argc, char **argv)
{
    __attribute__((cleanup(wish_done))) struct wish wish = {
        .serve = {.queue_max = QUEUE_DEFAULT, .on_note = on_note}};
    struct err err = {0};
    for (int at = 1; at < argc; at++)
        if (parse_option(argc, argv, &at, &wish, &err) < 0) {
            print_line(err.text);
            fputs("Try 'adyton serve --help'.\n", stderr);
            return EXIT_WRONG_USE;
        }
    if (wish.help)
        return print_help();
    if (serve_run(&wish.serve, &err) < 0) {
        print_line(err.text);
        return EXIT_OUR_FAULT;
    }
    return 0;
}
