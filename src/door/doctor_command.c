/*
 * Prints what the jail found about this host. Decides one thing only: whether the default
 * policy, as it is, has all that it needs.
 */
#include "door/doctor_command.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "door/help.h"
#include "jail/host.h"
#include "policy/policy.h"

enum {
    EXIT_RUNS = 0,
    EXIT_DOES_NOT_RUN = 1,
    EXIT_USAGE = 2,
    EXIT_OUR_FAULT = 125,
    NAME_COLUMNS = 20,
    INDENT = 2 + NAME_COLUMNS + 6, /* where the details begin */
    PAGE_COLUMNS = 92,
    SUMMARY_BYTES = 512,
};

struct report {
    struct host host;
    struct utsname kernel;
    bool runs; /* the default policy */
    char summary[SUMMARY_BYTES];
};

static void
summarise(struct report *report, const struct policy *policy)
{
    const struct host *host = &report->host;
    bool walls =
        policy->isolation == ISOLATION_NAMESPACES ? host->namespaces : host->landlock;
    bool limits = policy->cgroup == CGROUP_OPTIONAL || host->cgroup;
    report->runs = walls && limits;
    char who[32];
    snprintf(who, sizeof(who), host->uid == 0 ? "root" : "user %ld", (long)host->uid);

    const char *instead = "";
    if (!walls && host->landlock)
        instead = ": mend what says no, or accept less with --isolation landlock";
    else if (!walls)
        instead = ": mend what says no";
    if (walls && !limits)
        instead = ": mend what says no, or accept less with --cgroup optional";
    else if (!walls && host->landlock && !limits)
        instead = ": mend what says no, or accept less with --isolation landlock "
                  "--cgroup optional";
    snprintf(
        report->summary, sizeof(report->summary),
        "namespaces: %s, as %s; landlock isolation: %s; control groups: %s; the default "
        "policy (%s) %s here%s.",
        host->namespaces ? "yes" : "no", who, host->landlock ? "yes" : "no",
        host->cgroup ? "yes" : "no", policy->name, report->runs ? "runs" : "does not run",
        instead);
}

static int
examine(struct report *report, struct err *err)
{
    struct policy policy = {0};
    int r = policy_load(policy_default, &policy, err);
    if (r == 0)
        r = host_probe(&report->host, err);
    if (r == 0)
        summarise(report, &policy);
    policy_done(&policy);
    if (r == 0 && uname(&report->kernel) < 0)
        r = err_sys(err, "cannot tell the kernel's name");
    return r;
}

/* Text folded at blanks, its further lines beneath its first: the cursor is at `indent`.
 */
static void
print_folded(const char *text, size_t indent)
{
    size_t column = indent;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > PAGE_COLUMNS) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        }
        printf("%s%.*s", column > indent ? " " : "", (int)word, text);
        column += word + (column > indent);
        text += word + strspn(text + word, " ");
    }
    putchar('\n');
}

static void
print_state(enum host_state state, bool coloured)
{
    static const char *const colours[] = {
        [HOST_YES] = "\x1b[32m", [HOST_NO] = "\x1b[31m", [HOST_NOTE] = "\x1b[33m"};
    printf("%s%-4s%s  ", coloured ? colours[state] : "", host_state_name(state),
           coloured ? "\x1b[0m" : "");
}

/* Rows that were refused for the same reason say it once. */
static bool
is_repeated(const struct host *host, size_t i)
{
    return i > 0 && host->rows[i].state == HOST_NO &&
           host->rows[i - 1].state == HOST_NO &&
           strcmp(host->rows[i].detail, host->rows[i - 1].detail) == 0;
}

static void
print_row(const struct host *host, size_t i, bool coloured)
{
    const struct host_row *row = &host->rows[i];
    bool repeated = is_repeated(host, i);
    printf("  %-*s", NAME_COLUMNS, row->name);
    print_state(row->state, coloured);
    print_folded(repeated ? "as above" : row->detail, INDENT);
    if (row->state == HOST_YES)
        return;
    char line[HOST_DETAIL_BYTES];
    snprintf(line, sizeof(line), row->state == HOST_NO ? "without it: %s" : "%s",
             row->cost);
    printf("%*s", INDENT, "");
    print_folded(line, INDENT);
    if (repeated || row->remedy[0] == '\0')
        return;
    /* In one piece, to be copied. */
    printf("%*smend it: %s\n", INDENT, "", row->remedy);
}

static void
print_text(const struct report *report)
{
    const char *no_color = getenv("NO_COLOR");
    bool coloured = isatty(STDOUT_FILENO) && (!no_color || no_color[0] == '\0');
    printf("Linux %s on %s%s\n\n", report->kernel.release, report->kernel.machine,
           report->host.in_container ? ", in a container" : "");
    for (size_t i = 0; i < report->host.rows_n; i++)
        print_row(&report->host, i, coloured);
    putchar('\n');
    print_folded(report->summary, 0);
}

static json_t *
row_json(const struct host_row *row)
{
    static const struct {
        enum host_need need;
        const char *name;
    } needs[] = {{HOST_FOR_NAMESPACES, "isolation: namespaces"},
                 {HOST_FOR_LANDLOCK, "isolation: landlock"},
                 {HOST_FOR_CGROUP, "cgroup: required"}};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
        if (row->needed_for & needs[i].need)
            json_array_append_new(list, json_string(needs[i].name));
    /* "s*": what is no UTF-8 (a path of this host) is left out, the rest stays. */
    return json_pack("{s:s,s:s,s:s*,s:o,s:s,s:s*}", "name", row->name, "state",
                     host_state_name(row->state), "detail", row->detail, "needed_for",
                     list, "without", row->cost, "remedy",
                     row->remedy[0] ? row->remedy : NULL);
}

static int
print_json(const struct report *report)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < report->host.rows_n; i++)
        json_array_append_new(rows, row_json(&report->host.rows[i]));
    json_t *json =
        json_pack("{s:s,s:s,s:s,s:I,s:b,s:b,s:b,s:b,s:b,s:s,s:o}", "schema",
                  "adyton.doctor/1", "kernel", report->kernel.release, "machine",
                  report->kernel.machine, "uid", (json_int_t)report->host.uid,
                  "in_container", (int)report->host.in_container, "namespaces",
                  (int)report->host.namespaces, "landlock", (int)report->host.landlock,
                  "cgroup", (int)report->host.cgroup, "default_policy_runs",
                  (int)report->runs, "summary", report->summary, "rows", rows);
    int r = json ? json_dumpf(json, stdout, JSON_INDENT(2)) : -1;
    json_decref(json);
    putchar('\n');
    return r;
}

static int
print_help(void)
{
    puts(
        "usage: adyton doctor [--json]\n\n"
        "Says what this host offers, layer by layer, by trying each; what a missing one "
        "costs, and\nwhat mends it. The exit status is 0 when the default policy can run "
        "here, and 1 when not.\n\noptions:");
    help_print_row("--json", "Print one JSON document instead of text.");
    help_print_row("--help", "Show this page.");
    return EXIT_RUNS;
}

int
doctor_command(int argc, char **argv)
{
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_help();
        if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "adyton doctor: takes no argument but --json\n");
            return EXIT_USAGE;
        }
        json = true;
    }
    AUTO_FREE struct report *report = calloc(1, sizeof(*report));
    struct err err = {0};
    if (!report || examine(report, &err) < 0) {
        fprintf(stderr, "adyton doctor: %s\n", report ? err.text : "out of memory");
        return EXIT_OUR_FAULT;
    }
    int r = 0;
    if (json)
        r = print_json(report);
    else
        print_text(report);
    if (r < 0 || fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "adyton doctor: standard output cannot be written\n");
        return EXIT_OUR_FAULT;
    }
    return report->runs ? EXIT_RUNS : EXIT_DOES_NOT_RUN;
}
