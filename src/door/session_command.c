/*
 * `adyton session`: makes, shows and ends the sessions of a supervisor. A run in one is `adyton run`
 * with --session, under a shorter name.
 */
#include "door/session_command.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/units.h"
#include "door/help.h"
#include "door/run_command.h"
#include "door/session_files.h"
#include "door/session_options.h"
#include "door/terminal.h"
#include "engine/call.h"

enum { EXIT_WRONG = 1, EXIT_WRONG_USE = 2, EXIT_OUR_FAULT = 125, LINE_BYTES = 4096 };

struct wish {
    const struct verb *verb;
    const char *session, *socket;
    json_t *request;
    struct session_files files;
    bool json, help;
};

struct verb {
    const char *name, *type, *help;
    bool takes_id;
    int (*carry_out)(
        const struct session_files *wish); /* NULL: one request, one answer */
};

static const struct verb verbs[] = {
    {"new", "session_new", "Make a session and print its id.", false, NULL},
    {"list", "session_list", "Those that live.", false, NULL},
    {"show", "session_show", "One of them.", true, NULL},
    {"interrupt", "session_interrupt", "KeyboardInterrupt in what runs there.", true,
     NULL},
    {"restart", "session_restart", "The same id, with nothing in it.", true, NULL},
    {"close", "session_close", "End it, and what runs there.", true, NULL},
    {"put", NULL, "Place FILE[=NAME]… beneath its /tmp.", true, session_files_put},
    {"get", NULL, "Fetch NAME from there, or --all.", true, session_files_get},
    {"files", NULL, "What is there, and what has changed since its last run.", true,
     session_files_list},
};

static int
complain(const char *text, int exit_status)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES);
    if (terminal_append_line(text, &line) == 0)
        fprintf(stderr, "adyton session: %s\n", line.p);
    return exit_status;
}

static int
print_help(void)
{
    puts("usage: adyton session new [--policy NAME] [--limit FIELD=VALUE]… [--python "
         "PATH]\n"
         "                          [--data DIR[=NAME]]…\n"
         "       adyton session run ID [OPTION…] [FILE]\n"
         "       adyton session list|show ID|interrupt ID|restart ID|close ID\n"
         "       adyton session put ID FILE[=NAME]…\n"
         "       adyton session get ID NAME [--out PATH|-]\n"
         "       adyton session get ID --all --out DIR|FILE.tar|-\n"
         "       adyton session files ID [--json]\n\n"
         "A session is a cell of a supervisor (adyton serve) that stays between runs, "
         "with "
         "its variables,\nimports and files. The exit status is 1 when there is no such "
         "session, or nobody listens.\n\nverbs:");
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        help_print_row(verbs[i].name, verbs[i].help);
    help_print_row("run ID", "As adyton run --session ID, with that command's options.");
    puts("\noptions:");
    help_print_row("--policy NAME", "With new: a policy of the supervisor (default: "
                                    "standard).");
    help_print_row("--limit FIELD=VALUE",
                   "With new: a field of the policy, narrower, like "
                   "memory=64M or session_idle=5min.");
    help_print_row("--data DIR[=NAME]",
                   "With new: a folder of the host that is seen read-only in /data, "
                   "where the policy's data_paths allow it.");
    help_print_row("--python PATH",
                   "With new: an interpreter that the supervisor serves.");
    help_print_row("--out PATH",
                   "With get: the file, or the folder, that is written; '-' is stdout.");
    help_print_row("--all", "With get: all files, into a folder or as a tar archive.");
    help_print_row("--json", "Print what the supervisor says as one JSON document.");
    help_print_row("--socket PATH", "Where the supervisor listens (default: the user's "
                                    "own place).");
    help_print_row("--help", "Show this page.");
    return fflush(stdout) == 0 ? 0 : EXIT_OUR_FAULT;
}

/* --- what comes back --- */

static const char *
text_of(const json_t *session, const char *name)
{
    const char *text = json_string_value(json_object_get(session, name));
    return text ? text : "";
}

static void
print_session(const json_t *session)
{
    static const double mib = 1024.0 * 1024.0;
    enum { MS_PER_S = 1000 };
    char age[UNITS_TEXT_BYTES];
    json_int_t age_ms = json_integer_value(json_object_get(session, "age_ms"));
    json_int_t memory = json_integer_value(json_object_get(session, "memory_bytes"));
    printf("%s  %s, %lld runs, up %s, %.1f MiB, policy %s",
           text_of(session, "session_id"), text_of(session, "state"),
           (long long)json_integer_value(json_object_get(session, "execution_count")),
           format_ms((uint64_t)age_ms / MS_PER_S * MS_PER_S, age), (double)memory / mib,
           text_of(session, "policy"));
    const char *reason = text_of(session, "reason");
    printf("%s%s\n", reason[0] != '\0' ? ": " : "", reason);
}

static void
print_answer(const struct wish *wish, const json_t *answer)
{
    const json_t *session = json_object_get(answer, "session");
    const json_t *sessions = json_object_get(answer, "sessions");
    if (wish->json) {
        json_dumpf(session ? session : sessions, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (strcmp(wish->verb->name, "new") == 0) {
        puts(text_of(session, "session_id"));
    } else if (session) {
        print_session(session);
    }
    for (size_t i = 0; !wish->json && i < json_array_size(sessions); i++)
        print_session(json_array_get(sessions, i));
}

static int
ask(const struct wish *wish)
{
    static const char *const types[] = {"session", "sessions", NULL};
    struct err err;
    json_t *answer;
    int r = call_ask(wish->socket, wish->request, types, &answer, &err);
    if (r < 0)
        return complain(err.text,
                        r == -ENOENT || r == -EPROTO ? EXIT_WRONG : EXIT_OUR_FAULT);
    print_answer(wish, answer);
    json_decref(answer);
    return fflush(stdout) == 0
               ? 0
               : complain("standard output cannot be written", EXIT_OUR_FAULT);
}

/* --- what is asked --- */

static bool
add_limit(json_t *request, const char *text)
{
    if (!json_object_get(request, "limits") &&
        json_object_set_new(request, "limits", json_object()) < 0)
        return false;
    return session_option_limit(json_object_get(request, "limits"), text);
}

static bool
add_data(json_t *request, const char *text)
{
    const char *equals = strrchr(text, '=');
    AUTO_FREE char *folder =
        strndup(text, equals ? (size_t)(equals - text) : strlen(text));
    AUTO_FREE char *path = folder ? realpath(folder, NULL) : NULL;
    if (!json_object_get(request, "data") &&
        json_object_set_new(request, "data", json_array()) < 0)
        return false;
    /* One that is not there is refused by the supervisor, in words. */
    json_t *item = json_pack("{s:s}", "path", path ? path : text);
    if (!item ||
        (equals && json_object_set_new(item, "name", json_string(equals + 1)) < 0)) {
        json_decref(item);
        return false;
    }
    return json_array_append_new(json_object_get(request, "data"), item) == 0;
}

/* Of the verbs about files. */
static bool
take_word(struct session_files *files, int argc, char **argv, int *at)
{
    const char *value;
    if (strcmp(argv[*at], "--all") == 0)
        files->all = true;
    else if ((value = session_option_value("--out", argc, argv, at)))
        files->out = value;
    else if (argv[*at][0] != '-' && files->words_n < SESSION_WORDS_MAX)
        files->words[files->words_n++] = argv[*at];
    else
        return false;
    return true;
}

static bool
take_option(struct wish *wish, int argc, char **argv, int *at)
{
    bool is_new = strcmp(wish->verb->name, "new") == 0;
    const char *value;
    if (strcmp(argv[*at], "--json") == 0)
        wish->json = true;
    else if (strcmp(argv[*at], "--help") == 0 || strcmp(argv[*at], "-h") == 0)
        wish->help = true;
    else if ((value = session_option_value("--socket", argc, argv, at)))
        wish->socket = value;
    else if (is_new && (value = session_option_value("--policy", argc, argv, at)))
        return json_object_set_new(wish->request, "policy", json_string(value)) == 0;
    else if (is_new && (value = session_option_value("--python", argc, argv, at)))
        return json_object_set_new(wish->request, "python", json_string(value)) == 0;
    else if (is_new && (value = session_option_value("--limit", argc, argv, at)))
        return add_limit(wish->request, value);
    else if (is_new && (value = session_option_value("--data", argc, argv, at)))
        return add_data(wish->request, value);
    else if (wish->verb->takes_id && !wish->session && argv[*at][0] != '-')
        wish->session = argv[*at];
    else
        return wish->verb->carry_out && take_word(&wish->files, argc, argv, at);
    return true;
}

static int
carry_out(struct wish *wish, int argc, char **argv)
{
    wish->request = json_pack("{s:s*, s:s}", "type", wish->verb->type, "id", "1");
    if (!wish->request)
        return complain("no memory for a request", EXIT_OUR_FAULT);
    for (int i = 2; i < argc; i++)
        if (!take_option(wish, argc, argv, &i))
            return complain("an argument is not one of this verb: see 'adyton session "
                            "--help'",
                            EXIT_WRONG_USE);
    if (wish->help)
        return print_help();
    if (wish->verb->takes_id && !wish->session)
        return complain("the session's id is missing", EXIT_WRONG_USE);
    wish->files.socket = wish->socket;
    wish->files.session = wish->session;
    wish->files.json = wish->json;
    if (wish->verb->carry_out)
        return wish->verb->carry_out(&wish->files);
    if (wish->session &&
        json_object_set_new(wish->request, "session", json_string(wish->session)) < 0)
        return complain("the session's id is not text", EXIT_WRONG_USE);
    return ask(wish);
}

/* `session run ID …` is `run --session ID …`. */
static int
run_in(int argc, char **argv)
{
    static char name[] = "run", option[] = "--session";
    if (argc < 3 || argv[2][0] == '-')
        return complain("run: the session's id comes first", EXIT_WRONG_USE);
    argv[0] = name;
    argv[1] = option;
    return run_command(argc, argv);
}

int
session_command(int argc, char **argv)
{
    struct wish wish = {0};
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help();
    if (strcmp(name, "run") == 0)
        return run_in(argc, argv);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcmp(name, verbs[i].name) == 0)
            wish.verb = &verbs[i];
    if (!wish.verb)
        return complain("takes new, run, list, show, interrupt, restart, close, put, get "
                        "or files: see 'adyton session --help'",
                        EXIT_WRONG_USE);
    int status = carry_out(&wish, argc, argv);
    json_decref(wish.request);
    return status;
}
