/*
 * `adyton mcp`: options, and messages between standard streams and the core in src/mcp. Nothing is
 * on standard output but messages; what people should know is on stderr.
 */
#include "door/mcp_command.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "door/help.h"
#include "door/session_options.h"
#include "door/stdio_lines.h"
#include "door/terminal.h"
#include "mcp/mcp.h"
#include "policy/policy.h"

enum { EXIT_WRONG_USE = 2, EXIT_OUR_FAULT = 125, LINE_BYTES = 4096, QUEUE = 256 };

struct wish {
    const char *policy, *socket, *python;
    bool alone, help;
    json_t *limits;
};

struct server {
    struct event_base *base;
    struct mcp *mcp;
    struct stdio_lines *lines;
};

static void
print_line(void *context, const char *text)
{
    (void)context;
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES);
    if (terminal_append_line(text, &line) == 0)
        fprintf(stderr, "adyton mcp: %s\n", line.p);
}

static int
print_help(void)
{
    puts("usage: adyton mcp [OPTION…]\n\n"
         "A server of the Model Context Protocol over standard input and output: gives a "
         "model "
         "execute_python\nand its companions. It uses this user's supervisor (adyton "
         "serve) when "
         "one runs, else one of its\nown that ends with it. Sessions that it opens end "
         "with it.\n\n"
         "options:");
    help_print_row("--policy NAME|FILE",
                   "What the code may do (default: standard). A file needs a "
                   "supervisor of its own.");
    help_print_row("--limit FIELD=VALUE",
                   "A field of the policy, narrower, like memory=128M or "
                   "session_idle=5min. May be given often.");
    help_print_row("--python PATH", "The interpreter (default: the supervisor's).");
    help_print_row("--socket PATH",
                   "Where the supervisor listens; without one there it fails.");
    help_print_row("--private", "Use no running supervisor: have one of its own.");
    help_print_row("--help", "Show this page.");
    return fflush(stdout) == 0 ? 0 : EXIT_OUR_FAULT;
}

/* --- options --- */

static bool
take_option(struct wish *wish, int argc, char **argv, int *at)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"--policy", &wish->policy},
                 {"--python", &wish->python},
                 {"--socket", &wish->socket}};
    const char *value;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if ((value = session_option_value(texts[i].name, argc, argv, at))) {
            *texts[i].to = value;
            return true;
        }
    if ((value = session_option_value("--limit", argc, argv, at)))
        return session_option_limit(wish->limits, value);
    if (strcmp(argv[*at], "--private") == 0)
        wish->alone = true;
    else if (strcmp(argv[*at], "--help") == 0 || strcmp(argv[*at], "-h") == 0)
        wish->help = true;
    else
        return false;
    return true;
}

/* --- messages --- */

static void
on_line(void *context, struct span line)
{
    const struct server *server = context;
    mcp_take(server->mcp, line);
}

static void
on_long(void *context)
{
    const struct server *server = context;
    mcp_take(server->mcp, span_of("\"too long\"")); /* told as what cannot be parsed */
    print_line(NULL, "a message is longer than 32 MiB, and is skipped");
}

static void
on_pause(void *context, bool pause)
{
    const struct server *server = context;
    mcp_pause(server->mcp, pause);
}

static void
on_end(void *context)
{
    const struct server *server = context;
    event_base_loopbreak(server->base);
}

static void
send_line(void *context, struct span message)
{
    const struct server *server = context;
    stdio_lines_send(server->lines, message);
}

static int
serve(struct server *server, const struct mcp_options *wanted, struct err *err)
{
    struct mcp_options options = *wanted;
    options.base = server->base;
    options.send = send_line;
    options.note = print_line;
    options.context = server;
    const struct stdio_options streams = {.base = server->base,
                                          .line_max = MCP_MESSAGE_BYTES_MAX,
                                          .on_line = on_line,
                                          .on_long = on_long,
                                          .on_pause = on_pause,
                                          .on_end = on_end,
                                          .context = server};
    int r = mcp_new(&options, &server->mcp, err);
    if (r == 0)
        r = stdio_lines_open(&streams, &server->lines, err);
    if (r == 0)
        event_base_dispatch(server->base);
    stdio_lines_close(server->lines); /* answers that are ready, first */
    mcp_free(server->mcp);
    return r;
}

static int
run(struct wish *wish)
{
    struct err err;
    __attribute__((cleanup(policy_done))) struct policy policy = {0};
    struct serve_options serve_options = {.queue_max = QUEUE};
    if (wish->python)
        serve_options.pythons[serve_options.pythons_n++] = wish->python;
    int r = session_option_policy(&wish->policy, wish->socket, &wish->alone,
                                  &serve_options, &policy, &err);
    if (r < 0) {
        print_line(NULL, err.text);
        return EXIT_WRONG_USE;
    }
    const struct mcp_options options = {.client = {.socket = wish->socket,
                                                   .carry = !wish->socket,
                                                   .alone = wish->alone,
                                                   .serve = &serve_options},
                                        .policy = wish->policy,
                                        .python = wish->python,
                                        .limits = wish->limits,
                                        .timeout_max_ms = policy.wall_ms};
    struct server server = {.base = event_base_new()};
    signal(SIGPIPE, SIG_IGN);
    r = server.base ? serve(&server, &options, &err)
                    : err_set(&err, -ENOMEM, "no memory for an event loop");
    if (server.base)
        event_base_free(server.base);
    if (r < 0)
        print_line(NULL, err.text);
    return r < 0 ? EXIT_OUR_FAULT : 0;
}

int
mcp_command(int argc, char **argv)
{
    struct wish wish = {.limits = json_object()};
    int status = 0;
    for (int at = 1; at < argc && status == 0; at++)
        if (!wish.limits || !take_option(&wish, argc, argv, &at)) {
            print_line(NULL,
                       "an argument is not one of this command: see 'adyton mcp --help'");
            status = EXIT_WRONG_USE;
        }
    if (status == 0 && wish.alone && wish.socket) {
        print_line(NULL, "--private and --socket exclude one another");
        status = EXIT_WRONG_USE;
    }
    if (status == 0)
        status = wish.help ? print_help() : run(&wish);
    json_decref(wish.limits);
    return status;
}
