/*
 * `adyton shell`: an interactive session, of this user's supervisor or of one of its own. From a
 * terminal lines are edited; from anything else they are read, and nothing is written but what the
 * statements say.
 */
#include "door/shell_command.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "door/help.h"
#include "door/session_options.h"
#include "door/shell_parts.h"
#include "door/terminal.h"
#include "policy/policy.h"

enum {
    EXIT_FAILED = 1,
    EXIT_WRONG_USE = 2,
    EXIT_OUR_FAULT = 125,
    EXIT_INTERRUPTED = 128 + SIGINT,
    QUEUE = 256,
};

void
shell_say(const char *format, ...)
{
    char text[SHELL_LINE_BYTES];
    va_list args;
    AUTO_BUF struct buf line = {0};
    buf_init(&line, SHELL_LINE_BYTES * 8);
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fflush(stdout);
    if (terminal_append_line(text, &line) == 0)
        fprintf(stderr, "adyton: %.*s\n", (int)line.n, line.p);
}

static int
complain(const char *text, int status)
{
    shell_say("shell: %s", text);
    return status;
}

static int
print_help(void)
{
    puts("usage: adyton shell [--session ID] [OPTION…]\n\n"
         "Runs Python statements one after another in a session, as they are typed or "
         "come on standard input.\nIt uses this user's supervisor (adyton serve) when "
         "one runs, else one of its own. A session that it\nmakes ends with it. The exit "
         "status is 1 when input was no terminal and a statement has failed.\n\n"
         "options:");
    help_print_row("--session ID", "Use this session, which stays when the shell ends "
                                   "(default: a new one).");
    help_print_row("--policy NAME|FILE",
                   "What the code may do (default: standard). A file needs a "
                   "supervisor of its own.");
    help_print_row("--limit FIELD=VALUE",
                   "A field of the policy, narrower, like memory=128M. May be given "
                   "often.");
    help_print_row("--python PATH", "The interpreter (default: the supervisor's).");
    help_print_row("--out DIR", "Where images are saved (default: a temporary folder, "
                                "which is named).");
    help_print_row("--no-images", "Do not draw images in the terminal.");
    help_print_row("--socket PATH",
                   "Where the supervisor listens; without one there it fails.");
    help_print_row("--private", "Use no running supervisor: have one of its own.");
    help_print_row("--help", "Show this page.");
    return fflush(stdout) == 0 ? 0 : EXIT_OUR_FAULT;
}

/* --- options --- */

static bool
take_flag(struct shell_options *options, const char *word)
{
    const struct {
        const char *name;
        bool *to;
    } flags[] = {{"--private", &options->alone},
                 {"--no-images", &options->no_images},
                 {"--help", &options->help},
                 {"-h", &options->help}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (strcmp(flags[i].name, word) == 0) {
            *flags[i].to = true;
            return true;
        }
    return false;
}

static bool
take_option(struct shell_options *options, int argc, char **argv, int *at)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"--session", &options->session},
                 {"--policy", &options->policy},
                 {"--python", &options->python},
                 {"--socket", &options->socket},
                 {"--out", &options->out_dir}};
    const char *value;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if ((value = session_option_value(texts[i].name, argc, argv, at))) {
            *texts[i].to = value;
            return true;
        }
    if ((value = session_option_value("--limit", argc, argv, at)))
        return session_option_limit(options->limits, value);
    return take_flag(options, argv[*at]);
}

/* What excludes one another, in words; NULL: nothing. */
static const char *
why_wrong(const struct shell_options *options)
{
    if (options->alone && options->socket)
        return "--private and --socket exclude one another";
    if (options->session && options->alone)
        return "--private and --session exclude one another: a session is in a "
               "supervisor that runs";
    if (options->session &&
        (options->policy || options->python || json_object_size(options->limits) > 0))
        return "--session: the session has its policy, limits and interpreter since it "
               "was made";
    return NULL;
}

/* --- the shell --- */

/* Lines of whatever is no terminal. */
static int
read_lines(struct shell *shell, struct err *err)
{
    struct shell_statement statement = {0};
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    ssize_t n;
    bool ended = false;
    int r = 0;
    buf_init(&statement.lines, SHELL_STATEMENT_BYTES_MAX);
    while (r == 0 && !ended && !shell->interrupted &&
           (n = getline(&line, &size, stdin)) >= 0) {
        if (n > 0 && line[n - 1] == '\n')
            n--;
        r = shell_take_line(shell, &statement, (struct span){line, (size_t)n}, &ended,
                            err);
    }
    if (r == 0 && !ended && ferror(stdin))
        r = err_sys(err, "read standard input");
    else if (r == 0 && !ended && !shell->interrupted)
        r = shell_take_end(shell, &statement, err);
    buf_done(&statement.lines);
    return r;
}

static void
greet(const struct shell *shell)
{
    shell_say("session %s%s", shell->session,
              shell->options->session
                  ? ", which stays"
                  : "; it ends with this shell. Ctrl-D ends it, .help says more");
}

static int
talk(struct shell *shell, const struct serve_options *serve, struct err *err)
{
    int r = shell_talk_open(shell, serve, err);
    if (r == 0 && shell->is_terminal) {
        greet(shell);
        r = shell_edit(shell, err);
    } else if (r == 0) {
        r = read_lines(shell, err);
    }
    shell_talk_close(shell);
    return r;
}

static int
run(struct shell_options *options)
{
    struct err err;
    __attribute__((cleanup(policy_done))) struct policy policy = {0};
    struct serve_options serve = {.queue_max = QUEUE};
    struct shell shell = {.options = options, .is_terminal = isatty(STDIN_FILENO) == 1};
    shell.results = (struct results){.folder = options->out_dir,
                                     .is_terminal = isatty(STDOUT_FILENO) == 1,
                                     .may_make = true};
    shell.run = (struct run_options){
        .file = "<statement>", .verbosity = RUN_NORMAL, .one_of_many = true};
    if (options->python)
        serve.pythons[serve.pythons_n++] = options->python;
    int r = session_option_policy(&options->policy, options->socket, &options->alone,
                                  &serve, &policy, &err);
    if (r == 0 && options->out_dir && mkdir(options->out_dir, 0777) < 0 &&
        errno != EEXIST)
        r = err_sys(&err, "make the folder %.150s", options->out_dir);
    if (r < 0)
        return complain(err.text, EXIT_WRONG_USE);
    signal(SIGPIPE, SIG_IGN);
    shell.base = event_base_new();
    r = shell.base ? talk(&shell, &serve, &err)
                   : err_set(&err, -ENOMEM, "no memory for an event loop");
    if (shell.base)
        event_base_free(shell.base);
    if (r < 0)
        return complain(err.text, EXIT_OUR_FAULT);
    if (shell.is_terminal)
        return 0;
    return shell.interrupted ? EXIT_INTERRUPTED : shell.failed ? EXIT_FAILED : 0;
}

int
shell_command(int argc, char **argv)
{
    struct shell_options options = {.limits = json_object()};
    const char *wrong = options.limits ? NULL : "no memory for its options";
    for (int at = 1; at < argc && !wrong; at++)
        if (!take_option(&options, argc, argv, &at))
            wrong = "an argument is not one of this command: see 'adyton shell --help'";
    if (!wrong && !options.help)
        wrong = why_wrong(&options);
    int status = wrong          ? complain(wrong, EXIT_WRONG_USE)
                 : options.help ? print_help()
                                : run(&options);
    json_decref(options.limits);
    return status;
}
