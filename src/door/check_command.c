/*
 * `adyton check FILE…`: each file is read here and looked at in a sealed cell of its own, never
 * run and not recorded. The exit status is the worst of all: 0 clean, 1 warnings (or errors that
 * the policy only reports), 126 rejected, 125 when adyton could not look, 2 for wrong usage.
 */
#include "door/check_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "check/render.h"
#include "door/help.h"
#include "door/terminal.h"
#include "engine/engine.h"

enum {
    EXIT_CLEAN = 0,
    EXIT_WARNINGS = 1,
    EXIT_WRONG_USE = 2,
    EXIT_OUR_FAULT = 125,
    EXIT_REJECTED = 126,
    LINE_BYTES = 4096,
    REPORT_BYTES_MAX = 1 << 30,
    FILES_MAX = 100 * 1000,
    LIMITS_MAX = 64,
};

struct format {
    const char *name;
    int (*render)(const struct checked *files, size_t n, struct buf *out);
};

static int
render_text(const struct checked *files, size_t n, struct buf *out)
{
    const char *no_color = getenv("NO_COLOR");
    bool coloured = isatty(STDOUT_FILENO) && (!no_color || no_color[0] == '\0');
    return check_render_text(files, n, coloured, out);
}

static const struct format formats[] = {
    {"text", render_text}, {"json", check_render_json}, {"sarif", check_render_sarif}};
enum { FORMATS = sizeof(formats) / sizeof(*formats) };

struct check {
    const char *policy_name, *python;
    struct {
        const struct policy_field *field;
        const char *text;
    } limits[LIMITS_MAX];
    size_t limits_n;
    const struct format *format;
    char **files;
    size_t files_n;
    bool help, markdown;
    struct policy policy;
    struct checked *checked; /* files_n of them */
};

static void
check_done(struct check *check)
{
    for (size_t i = 0; check->checked && i < check->files_n; i++)
        findings_done(&check->checked[i].findings);
    free(check->checked);
    free(check->files);
    policy_done(&check->policy);
}

static int
complain(const struct err *err, int exit_status)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES);
    if (terminal_append_line(err->text, &line) == 0)
        fprintf(stderr, "adyton check: %s\n", line.p);
    return exit_status;
}

/* --- options --- */

static int
take_policy(struct check *check, const char *value, struct err *err)
{
    (void)err;
    check->policy_name = value;
    return 0;
}

static int
take_python(struct check *check, const char *value, struct err *err)
{
    (void)err;
    check->python = value;
    return 0;
}

static int
take_format(struct check *check, const char *value, struct err *err)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(value, formats[i].name) == 0) {
            check->format = &formats[i];
            return 0;
        }
    return err_set(err, -EINVAL, "--format: '%.40s' is not one of text, json, sarif",
                   value);
}

static int
take_help(struct check *check, const char *value, struct err *err)
{
    (void)value, (void)err;
    check->help = true;
    return 0;
}

static int
take_rules(struct check *check, const char *value, struct err *err)
{
    (void)value, (void)err;
    check->markdown = true;
    return 0;
}

static const struct option {
    const char *name, *value, *help;
    int (*take)(struct check *check, const char *value, struct err *err);
} options[] = {
    {"--policy", "NAME|FILE",
     "The policy whose rules and severities count; standard is the default.",
     take_policy},
    {"--format", "text|json|sarif",
     "How findings are printed: for people, as JSON, or as SARIF 2.1.0.", take_format},
    {"--python", "PATH", "The interpreter whose syntax counts.", take_python},
    {"--rules", NULL, "Print the table of rules as Markdown and do nothing else.",
     take_rules},
    {"--help", NULL, "Show this page.", take_help},
};

/* An option of `adyton run` that sets a field of the policy. */
static int
take_limit(struct check *check, int argc, char **argv, int *at, struct err *err)
{
    char name[64];
    const char *word = argv[*at], *equals = strchr(word, '=');
    snprintf(name, sizeof(name), "%.*s",
             (int)(equals ? equals - word : (ptrdiff_t)sizeof(name) - 1), word);
    const struct policy_field *field = policy_field_by_option(name);
    if (!field)
        return err_set(err, -EINVAL, "unknown option '%.80s'", word);
    if (!equals && *at + 1 == argc)
        return err_set(err, -EINVAL, "%s needs a value", field->option);
    if (check->limits_n == LIMITS_MAX)
        return err_set(err, -E2BIG, "%s: more than %d limits", field->option, LIMITS_MAX);
    check->limits[check->limits_n].field = field;
    check->limits[check->limits_n++].text = equals ? equals + 1 : argv[++*at];
    return 0;
}

static int
take_option(struct check *check, int argc, char **argv, int *at, struct err *err)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        const struct option *option = &options[i];
        if (strlen(option->name) != n || strncmp(option->name, word, n) != 0)
            continue;
        if (!option->value)
            return equals ? err_set(err, -EINVAL, "%s takes no value", option->name)
                          : option->take(check, NULL, err);
        if (!equals && *at + 1 == argc)
            return err_set(err, -EINVAL, "%s needs a value: %s", option->name,
                           option->value);
        return option->take(check, equals ? equals + 1 : argv[++*at], err);
    }
    return take_limit(check, argc, argv, at, err);
}

static int
parse(struct check *check, int argc, char **argv, struct err *err)
{
    bool only_files = false;
    *check = (struct check){.policy_name = policy_default, .format = &formats[0]};
    check->files = calloc((size_t)argc + 1, sizeof(*check->files));
    if (!check->files)
        return err_set(err, -ENOMEM, "out of memory");
    for (int i = 1; i < argc; i++) {
        bool is_option = !only_files && argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strcmp(argv[i], "--") == 0) {
            only_files = true;
            continue;
        }
        int r = 0;
        if (is_option)
            r = take_option(check, argc, argv, &i, err);
        else
            check->files[check->files_n++] = argv[i];
        if (r < 0)
            return r;
    }
    if (check->files_n > FILES_MAX)
        return err_set(err, -E2BIG, "more than %d files", FILES_MAX);
    if (check->files_n == 0 && !check->help && !check->markdown)
        return err_set(err, -EINVAL, "nothing to check: name a file, or - for stdin");
    return 0;
}

static int
resolve_policy(struct check *check, struct err *err)
{
    int r = policy_load(check->policy_name, &check->policy, err);
    for (size_t i = 0; r == 0 && i < check->limits_n; i++)
        r = policy_narrow(&check->policy, check->limits[i].field,
                          check->limits[i].field->option, span_of(check->limits[i].text),
                          err);
    return r;
}

/* --- one file --- */

static int
read_code(const char *path, const struct policy *policy, struct buf *code,
          struct err *err)
{
    bool dash = strcmp(path, "-") == 0;
    AUTO_CLOSE int opened = dash ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (!dash && opened < 0)
        return err_sys(err, "cannot open '%.120s'", path);
    /* One byte more than is taken: what is longer is a finding, no failure. */
    code->max = (size_t)policy->source_bytes + 1;
    int r = fd_read_all(dash ? STDIN_FILENO : opened, code);
    if (r == 0 || r == -ENOSPC)
        return 0;
    errno = -r;
    return err_sys(err, "cannot read '%.120s'", path);
}

static void
look_at(struct check *check, size_t i, struct job *job)
{
    struct checked *checked = &check->checked[i];
    struct outcome *outcome = calloc(1, sizeof(*outcome));
    struct err err;
    checked->name = check->files[i];
    if (!outcome) {
        snprintf(checked->failure, sizeof(checked->failure), "out of memory");
        return;
    }
    if (read_code(checked->name, &check->policy, &job->code, &err) < 0) {
        snprintf(checked->failure, sizeof(checked->failure), "%s", err.text);
        free(outcome);
        return;
    }
    const struct run_request request = {.policy = &check->policy,
                                        .job = job,
                                        .python = check->python,
                                        .collect_dir = -1,
                                        .validate_only = true};
    engine_run(&request, outcome);
    checked->rejected = outcome->status == STATUS_REJECTED;
    if (!checked->rejected && outcome->status != STATUS_OK)
        snprintf(checked->failure, sizeof(checked->failure), "%s",
                 outcome->message[0] != '\0' ? outcome->message
                                             : status_name(outcome->status));
    checked->findings = outcome->findings; /* handed over */
    outcome->findings = (struct findings){0};
    outcome_done(outcome);
    free(outcome);
}

static int
exit_status_of(const struct checked *checked)
{
    uint64_t serious = 0;
    if (checked->failure[0] != '\0')
        return EXIT_OUR_FAULT;
    for (size_t i = 0; i < checked->findings.n; i++)
        serious += checked->findings.list[i].severity < CHECK_NOTE;
    return checked->rejected ? EXIT_REJECTED : serious > 0 ? EXIT_WARNINGS : EXIT_CLEAN;
}

static int
check_all(struct check *check, struct err *err)
{
    check->checked = calloc(check->files_n, sizeof(*check->checked));
    if (!check->checked)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < check->files_n; i++) {
        struct job job;
        job_init(&job);
        look_at(check, i, &job);
        job_done(&job);
    }
    return 0;
}

/* Rejected outweighs what could not be looked at: both are told, and it is the graver. */
static int
report(const struct check *check)
{
    static const int by_weight[] = {EXIT_REJECTED, EXIT_OUR_FAULT, EXIT_WARNINGS};
    AUTO_BUF struct buf out = {0};
    buf_init(&out, REPORT_BYTES_MAX);
    struct err err;
    if (check->format->render(check->checked, check->files_n, &out) < 0)
        return complain((err_set(&err, -ENOMEM, "out of memory"), &err), EXIT_OUR_FAULT);
    fwrite(out.p, 1, out.n, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain((err_set(&err, -EIO, "standard output cannot be written"), &err),
                        EXIT_OUR_FAULT);
    for (size_t w = 0; w < sizeof(by_weight) / sizeof(*by_weight); w++)
        for (size_t i = 0; i < check->files_n; i++)
            if (exit_status_of(&check->checked[i]) == by_weight[w])
                return by_weight[w];
    return EXIT_CLEAN;
}

static int
print_help(void)
{
    char left[64];
    puts("usage: adyton check [OPTION]... FILE...\n\n"
         "Says what validation finds in Python code: syntax errors, and acts that the "
         "policy "
         "does not\nallow. The code is parsed in a sealed cell and never run. - is "
         "standard "
         "input. The exit status\nis 0 when nothing is found but notes, 1 for warnings, "
         "and "
         "126 when the code would be rejected.\n\noptions:");
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        snprintf(left, sizeof(left), "%s%s%s", options[i].name,
                 options[i].value ? " " : "", options[i].value ? options[i].value : "");
        help_print_row(left, options[i].help);
    }
    puts("\nOptions of adyton run that set a field of the policy (--memory, --isolation, "
         "--cgroup...) are\ntaken too.");
    return EXIT_CLEAN;
}

static int
print_rules(void)
{
    AUTO_BUF struct buf out = {0};
    buf_init(&out, REPORT_BYTES_MAX);
    if (check_markdown(&out) < 0)
        return EXIT_OUR_FAULT;
    fwrite(out.p, 1, out.n, stdout);
    return fflush(stdout) == 0 ? EXIT_CLEAN : EXIT_OUR_FAULT;
}

int
check_command(int argc, char **argv)
{
    __attribute__((cleanup(check_done))) struct check check = {0};
    struct err err;
    if (parse(&check, argc, argv, &err) < 0) {
        complain(&err, EXIT_WRONG_USE);
        fputs("Try 'adyton check --help'.\n", stderr);
        return EXIT_WRONG_USE;
    }
    if (check.help)
        return print_help();
    if (check.markdown)
        return print_rules();
    signal(SIGPIPE, SIG_IGN);
    if (resolve_policy(&check, &err) < 0)
        return complain(&err, EXIT_WRONG_USE);
    if (check_all(&check, &err) < 0)
        return complain(&err, EXIT_OUR_FAULT);
    return report(&check);
}
