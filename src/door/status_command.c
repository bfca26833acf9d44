/*
 * `adyton status`: the supervisor's numbers as a table, or as the JSON that they came in.
 * With --watch the table is drawn again each second, in place, until somebody has seen
 * enough; that needs a terminal.
 */
#include "door/status_command.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "door/help.h"
#include "door/terminal.h"
#include "engine/call.h"

enum {
    EXIT_WRONG = 1,
    EXIT_WRONG_USE = 2,
    EXIT_OUR_FAULT = 125,
    STATUS_BYTES_MAX = 1024 * 1024,
    LINE_BYTES = 4096,
    NAME_COLUMNS = 12,
};

struct wish {
    const char *socket;
    bool json, watch, help;
};

static int
complain(const char *text, int exit_status)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES);
    if (terminal_append_line(text, &line) == 0)
        fprintf(stderr, "adyton status: %s\n", line.p);
    return exit_status;
}

static long long
number(const json_t *status, const char *group, const char *name)
{
    const json_t *where = group ? json_object_get(status, group) : status;
    return (long long)json_integer_value(json_object_get(where, name));
}

static double
real(const json_t *status, const char *group, const char *name)
{
    return json_number_value(json_object_get(json_object_get(status, group), name));
}

static const char *
size(const json_t *status, const char *name, char text[UNITS_TEXT_BYTES])
{
    static const double mib = 1024.0 * 1024.0;
    snprintf(text, UNITS_TEXT_BYTES, "%.1f MiB",
             (double)number(status, "memory", name) / mib);
    return text;
}

static void
row(const char *name)
{
    printf("%-*s", NAME_COLUMNS, name);
}

static void
print_policies(const json_t *status)
{
    const json_t *names = json_object_get(status, "policies");
    row("policies");
    for (size_t i = 0; i < json_array_size(names); i++)
        printf("%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(names, i)));
    putchar('\n');
}

static void
print_memory(const json_t *status)
{
    char a[UNITS_TEXT_BYTES], b[UNITS_TEXT_BYTES], c[UNITS_TEXT_BYTES];
    row("memory");
    printf("%s supervisor, %s pool; %s", size(status, "supervisor_bytes", a),
           size(status, "pool_bytes", b), size(status, "reserved_bytes", c));
    printf(" of %s promised to runs\n", size(status, "budget_bytes", a));
    row("");
    printf("%s of jobs held, %s not read by clients\n", size(status, "jobs_bytes", a),
           size(status, "unread_bytes", b));
}

static long long
of_kind(const json_t *kind, const char *name)
{
    return (long long)json_integer_value(json_object_get(kind, name));
}

static void
print_kind(const json_t *kind)
{
    static const double mib = 1024.0 * 1024.0;
    char age[UNITS_TEXT_BYTES];
    const char *policy = json_string_value(json_object_get(kind, "policy"));
    uint64_t age_s = (uint64_t)of_kind(kind, "age_ms") / 1000;
    row("");
    printf("%s: %lld idle, %lld coming, %lld busy, %.1f MiB", policy ? policy : "?",
           of_kind(kind, "idle"), of_kind(kind, "making"), of_kind(kind, "busy"),
           (double)of_kind(kind, "memory_bytes") / mib);
    if (json_is_true(json_object_get(kind, "ready")))
        printf(", zygote up %s with %lld cells so far\n", format_ms(age_s * 1000, age),
               of_kind(kind, "cells"));
    else if (json_is_true(json_object_get(kind, "given_back")))
        puts(", no zygote: given back because memory was short");
    else
        puts(", no zygote yet: runs are cold");
}

static void
print_pool(const json_t *status)
{
    const json_t *kinds = json_object_get(status, "pool");
    row("cells");
    printf("%lld zygotes, %lld idle, %lld busy\n", number(status, "cells", "zygotes"),
           number(status, "cells", "idle"), number(status, "cells", "busy"));
    for (size_t i = 0; i < json_array_size(kinds); i++)
        print_kind(json_array_get(kinds, i));
}

static void
print_sessions(const json_t *status)
{
    static const double mib = 1024.0 * 1024.0;
    row("sessions");
    printf("%lld open of at most %lld; %lld idle, with %.1f MiB\n",
           number(status, "sessions", "open"), number(status, "sessions", "max"),
           number(status, "sessions", "idle"),
           (double)number(status, "sessions", "idle_bytes") / mib);
}

static void
print_pressure(const json_t *status)
{
    static const double mib = 1024.0 * 1024.0;
    const json_t *pressure = json_object_get(status, "pressure");
    const json_t *given = json_object_get(pressure, "given_back");
    const char *level = json_string_value(json_object_get(pressure, "level"));
    const char *where = json_string_value(json_object_get(pressure, "where"));
    row("pressure");
    printf("%s: %.0f of %.0f MiB left (%s)", level ? level : "?",
           (double)of_kind(pressure, "available_bytes") / mib,
           (double)of_kind(pressure, "total_bytes") / mib, where ? where : "?");
    printf("; given back: %lld cells, %lld zygotes, %lld sessions\n",
           of_kind(given, "cells"), of_kind(given, "zygotes"),
           of_kind(given, "sessions"));
}

static void
print_table(const json_t *status)
{
    char up[UNITS_TEXT_BYTES];
    uint64_t up_s = (uint64_t)number(status, NULL, "uptime_ms") / 1000;
    row("supervisor");
    printf("pid %lld, up %s, %lld clients%s\n", number(status, NULL, "pid"),
           format_ms(up_s * 1000, up), number(status, NULL, "clients"),
           json_is_true(json_object_get(status, "draining")) ? ", ending" : "");
    print_pool(status);
    row("queue");
    printf("%lld of %lld waiting, %lld of %lld running\n",
           number(status, "queue", "waiting"), number(status, "queue", "waiting_max"),
           number(status, "queue", "running"), number(status, "queue", "running_max"));
    row("runs");
    printf("%lld started (%lld cold), %lld failed, %lld refused as busy\n",
           number(status, "runs", "started"), number(status, "runs", "cold"),
           number(status, "runs", "failed"), number(status, "runs", "busy"));
    row("rates");
    printf("%.1f a second (10 s), %.1f (60 s), %.1f ms each\n",
           real(status, "runs", "per_second_10s"), real(status, "runs", "per_second_60s"),
           real(status, "runs", "average_ms"));
    print_memory(status);
    print_pressure(status);
    print_sessions(status);
    print_policies(status);
}

static int
print_status(const struct wish *wish, const struct buf *text)
{
    json_error_t why;
    if (wish->json) {
        printf("%s\n", text->p);
        return 0;
    }
    json_t *status = json_loadb(text->p, text->n, 0, &why);
    if (!status)
        return complain("the supervisor's status is no JSON", EXIT_OUR_FAULT);
    if (wish->watch)
        fputs("\x1b[H\x1b[J", stdout);
    print_table(status);
    json_decref(status);
    return 0;
}

static int
show_once(const struct wish *wish)
{
    struct err err = {0};
    AUTO_BUF struct buf text = {0};
    buf_init(&text, STATUS_BYTES_MAX);
    int r = call_status(wish->socket, &text, &err);
    if (r < 0)
        return complain(err.text, r == -ENOENT ? EXIT_WRONG : EXIT_OUR_FAULT);
    int status = print_status(wish, &text);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain("standard output cannot be written", EXIT_OUR_FAULT);
    return status;
}

static int
show(const struct wish *wish)
{
    const struct timespec second = {.tv_sec = 1};
    int status = show_once(wish);
    while (wish->watch && status == 0) {
        nanosleep(&second, NULL);
        status = show_once(wish);
    }
    return status;
}

static int
print_help(void)
{
    puts("usage: adyton status [--json] [--watch] [--socket PATH]\n\n"
         "Shows what a supervisor (adyton serve) is doing: cells, queue, rates, memory. "
         "The exit status\nis 1 when nobody listens.\n\noptions:");
    help_print_row("--json", "Print one JSON document instead of a table.");
    help_print_row("--watch", "Draw the table again each second; needs a terminal.");
    help_print_row("--socket PATH", "Where the supervisor listens (default: the user's "
                                    "own place).");
    help_print_row("--help", "Show this page.");
    return fflush(stdout) == 0 ? 0 : EXIT_OUR_FAULT;
}

static bool
parse(int argc, char **argv, struct wish *wish)
{
    static const char socket_is[] = "--socket=";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            wish->json = true;
        else if (strcmp(argv[i], "--watch") == 0)
            wish->watch = true;
        else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            wish->help = true;
        else if (strcmp(argv[i], "--socket") == 0 && i + 1 < argc)
            wish->socket = argv[++i];
        else if (strncmp(argv[i], socket_is, sizeof(socket_is) - 1) == 0)
            wish->socket = argv[i] + sizeof(socket_is) - 1;
        else
            return false;
    }
    return true;
}

int
status_command(int argc, char **argv)
{
    struct wish wish = {0};
    if (!parse(argc, argv, &wish))
        return complain("takes --json, --watch and --socket PATH", EXIT_WRONG_USE);
    if (wish.help)
        return print_help();
    if (wish.watch && (wish.json || !isatty(STDOUT_FILENO)))
        return complain("--watch draws a table on a terminal", EXIT_WRONG_USE);
    return show(&wish);
}
