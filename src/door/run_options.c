/*
 * Reads the command line of `adyton run` into struct run_options. It opens nothing and
 * checks no value: limits can be judged only against the policy, whatever the order they
 * were given in.
 */
#include "door/run_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "door/help.h"
#include "door/nearest.h"

static int
take_code(struct run_options *o, const char *value, struct err *err)
{
    if (o->file)
        return err_set(err, -EINVAL, "-c: the code is already the file '%.80s'", o->file);
    o->code = value;
    return 0;
}

static int
take_json(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->json = true;
    return 0;
}

static int
take_stream(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->stream = true;
    return 0;
}

static int
take_base64(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->base64 = true;
    return 0;
}

static int
take_session(struct run_options *options, const char *value, struct err *err)
{
    (void)err;
    options->session = value;
    options->show_last = true;
    return 0;
}

static int
take_policy(struct run_options *o, const char *value, struct err *err)
{
    (void)err;
    o->policy = value;
    return 0;
}

static int
take_file(struct run_options *o, const char *value, struct err *err)
{
    if (o->files_n >= JOB_FILES_MAX)
        return err_set(err, -E2BIG, "--file: more than %d files", JOB_FILES_MAX);
    o->files[o->files_n++] = value;
    return 0;
}

static int
take_data(struct run_options *o, const char *value, struct err *err)
{
    if (o->data_n >= JOB_FOLDERS_MAX)
        return err_set(err, -E2BIG, "--data: more than %d folders", JOB_FOLDERS_MAX);
    o->data[o->data_n++] = value;
    return 0;
}

static int
take_workspace(struct run_options *o, const char *value, struct err *err)
{
    if (value[0] == '\0')
        return err_set(err, -EINVAL, "--workspace: needs a name");
    o->workspace = value;
    return 0;
}

static int
take_out(struct run_options *o, const char *value, struct err *err)
{
    (void)err;
    o->out_dir = value;
    return 0;
}

static int
take_stdin(struct run_options *o, const char *value, struct err *err)
{
    (void)err;
    o->stdin_path = value;
    return 0;
}

static int
take_python(struct run_options *o, const char *value, struct err *err)
{
    (void)err;
    o->python = value;
    return 0;
}

static int
take_ledger(struct run_options *o, const char *value, struct err *err)
{
    if (value[0] == '\0')
        return err_set(err, -EINVAL, "--ledger: needs the path of a file");
    o->ledger = value;
    return 0;
}

static int
take_socket(struct run_options *o, const char *value, struct err *err)
{
    (void)err;
    o->socket = value;
    return 0;
}

static int
take_cold(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->cold = true;
    return 0;
}

static int
take_quiet(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->verbosity = RUN_QUIET;
    return 0;
}

static int
take_verbose(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->verbosity = RUN_VERBOSE;
    return 0;
}

static int
take_show_last(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->show_last = true;
    return 0;
}

static int
take_svg(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->svg = true;
    return 0;
}

static int
take_no_images(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->no_images = true;
    return 0;
}

static int
take_help(struct run_options *o, const char *value, struct err *err)
{
    (void)value, (void)err;
    o->help = true;
    return 0;
}

/* clang-format off */
const struct run_option run_option_table[] = {
    {"--code", "-c", "CODE",
     "Run CODE instead of a file.", take_code},
    {"--policy", NULL, "NAME|FILE",
     "What the code may do: a built-in profile or a YAML file (default: standard).", take_policy},
    {"--session", NULL, "ID",
     "Run in this session of a supervisor (adyton session new); what the last expression gives is "
     "shown.", take_session},
    {"--file", NULL, "PATH[=NAME]",
     "Put a copy of PATH into the cell, as NAME beneath /tmp. May be given often.", take_file},
    {"--data", NULL, "DIR[=NAME]",
     "Show the folder DIR to the code, read-only, as /data/NAME; one alone without NAME as /data. "
     "May be given often.", take_data},
    {"--workspace", NULL, "NAME",
     "Give the code the folder NAME, which stays, as /workspace; where the policy has workspaces.",
     take_workspace},
    {"--stdin", NULL, "FILE|-",
     "What the code reads from its stdin; '-' passes ours on. Without it the code finds an empty "
     "stdin.", take_stdin},
    {"--out", NULL, "DIR",
     "Collect what the code leaves in /tmp into DIR, which is made if need be.", take_out},
    {"--python", NULL, "PATH",
     "The interpreter: any CPython 3.9 or newer, that of a virtual environment too.", take_python},
    {"--ledger", NULL, "FILE",
     "Where the run is recorded (default: adyton/ledger.db in the XDG state folder).",
     take_ledger},
    {"--socket", NULL, "PATH",
     "The supervisor to ask (default: that of this user, when one listens).", take_socket},
    {"--cold", NULL, NULL,
     "Ask no supervisor: start a cell of our own.", take_cold},
    {"--show-last", NULL, NULL,
     "Show the value of the last expression, as a notebook does.", take_show_last},
    {"--svg", NULL, NULL,
     "Figures as SVG, too.", take_svg},
    {"--no-images", NULL, NULL,
     "Draw no images in the terminal; they are saved and named all the same.", take_no_images},
    {"--json", NULL, NULL,
     "Print the outcome as one JSON document, and nothing else.", take_json},
    {"--stream", NULL, NULL,
     "Print what happens as JSON, a line each, when it happens; the last has the outcome.",
     take_stream},
    {"--base64", NULL, NULL,
     "With --json or --stream: also the exact bytes of the streams.", take_base64},
    {"--quiet", "-q", NULL,
     "Say nothing about how the run ended.", take_quiet},
    {"--verbose", "-v", NULL,
     "Say what the run used and which layers held it.", take_verbose},
    {"--help", "-h", NULL,
     "Show this page.", take_help},
};
/* clang-format on */

const size_t run_option_table_n = sizeof(run_option_table) / sizeof(*run_option_table);

/* The last of two wins, as with other options; only lists add up. */
static int
take_limit(struct run_options *o, const struct policy_field *field, const char *value,
           struct err *err)
{
    size_t i = o->limits_n;
    if (field->kind != FIELD_PATHS)
        for (i = 0; i < o->limits_n && o->limits[i].field != field; i++)
            continue;
    if (i >= RUN_LIMITS_MAX)
        return err_set(err, -E2BIG, "%s: given too often", field->option);
    o->limits[i] = (struct run_limit){field, value};
    if (i == o->limits_n)
        o->limits_n++;
    return 0;
}

static const struct run_option *
find_option(const char *name)
{
    for (size_t i = 0; i < run_option_table_n; i++) {
        const struct run_option *row = &run_option_table[i];
        if (strcmp(row->name, name) == 0 || (row->brief && strcmp(row->brief, name) == 0))
            return row;
    }
    return NULL;
}

static int
unknown_option(const char *name, struct err *err)
{
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < run_option_table_n; i++)
        nearest_try(&nearest, run_option_table[i].name);
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_fields[i].option)
            nearest_try(&nearest, policy_fields[i].option);
    if (!nearest.best)
        return err_set(err, -EINVAL, "unknown option '%.80s'", name);
    return err_set(err, -EINVAL, "unknown option '%.80s'; did you mean %s?", name,
                   nearest.best);
}

/* One option at argv[*at], with its value there or in the next word; *at ends on its last
 * word. */
static int
parse_option(int argc, char **argv, int *at, struct run_options *o, struct err *err)
{
    char name[64];
    const char *value = strchr(argv[*at], '=');
    size_t name_n = value ? (size_t)(value - argv[*at]) : strlen(argv[*at]);
    value = value ? value + 1 : NULL;
    if (name_n >= sizeof(name))
        return err_set(err, -EINVAL, "unknown option '%.60s…'", argv[*at]);
    snprintf(name, sizeof(name), "%.*s", (int)name_n, argv[*at]);

    const struct run_option *option = find_option(name);
    const struct policy_field *field = option ? NULL : policy_field_by_option(name);
    if (!option && !field)
        return unknown_option(name, err);
    char kind[POLICY_RANGE_BYTES];
    const char *wants = option ? option->value : run_limit_value(field, kind);
    if (!wants && value)
        return err_set(err, -EINVAL, "%s takes no value", name);
    if (wants && !value) {
        if (*at + 1 >= argc)
            return err_set(err, -EINVAL, "%s needs a value: %s", name, wants);
        value = argv[++*at];
    }
    if (option)
        return option->handle(o, value, err);
    return take_limit(o, field, value, err);
}

static int
parse_operand(struct run_options *o, const char *word, struct err *err)
{
    if (o->file || o->code)
        return err_set(err, -EINVAL,
                       "unexpected '%.80s': arguments for the script stand after --",
                       word);
    o->file = word;
    return 0;
}

static int
check_whole(const struct run_options *o, struct err *err)
{
    if (o->help)
        return 0;
    if (!o->file && !o->code)
        return err_set(err, -EINVAL, "nothing to run: give FILE, - (stdin) or -c CODE");
    if (o->stream && o->json)
        return err_set(err, -EINVAL,
                       "--stream ends with what --json prints: leave --json out");
    if (o->base64 && !o->json && !o->stream)
        return err_set(err, -EINVAL, "--base64 needs --json or --stream");
    if (o->file && o->stdin_path && strcmp(o->file, "-") == 0 &&
        strcmp(o->stdin_path, "-") == 0)
        return err_set(err, -EINVAL, "--stdin -: stdin is already the code");
    return 0;
}

int
run_options_parse(int argc, char **argv, struct run_options *ret, struct err *err)
{
    *ret = (struct run_options){.policy = policy_default, .verbosity = RUN_NORMAL};
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        if (strcmp(word, "--") == 0) {
            ret->args = argv + at + 1;
            ret->args_n = (size_t)(argc - at - 1);
            break;
        }
        bool is_option = word[0] == '-' && word[1] != '\0';
        int r = is_option ? parse_option(argc, argv, &at, ret, err)
                          : parse_operand(ret, word, err);
        if (r < 0)
            return r;
    }
    return check_whole(ret, err);
}

const char *
run_limit_value(const struct policy_field *field, char text[POLICY_RANGE_BYTES])
{
    static const char *const kinds[] = {[FIELD_COUNT] = "N",
                                        [FIELD_BYTES] = "SIZE",
                                        [FIELD_MS] = "TIME",
                                        [FIELD_CHOICE] = NULL,
                                        [FIELD_PATHS] = "PATHS"};
    if (kinds[field->kind])
        return kinds[field->kind];
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; field->choices[i] && n < POLICY_RANGE_BYTES; i++)
        n += (size_t)snprintf(text + n, POLICY_RANGE_BYTES - n, "%s%s", i > 0 ? "|" : "",
                              field->choices[i]);
    return text;
}

static int
print_limit(const struct policy *shown, const struct policy_field *field)
{
    char kind[POLICY_RANGE_BYTES], range[POLICY_RANGE_BYTES], left[160];
    AUTO_BUF struct buf text = {0};
    buf_init(&text, 4096);
    snprintf(left, sizeof(left), "%s %s", field->option, run_limit_value(field, kind));
    int r = buf_printf(&text, "%s (%s: ", field->help, shown->name);
    if (r == 0)
        r = policy_format(shown, field, &text);
    if (r == 0 && field->kind != FIELD_CHOICE)
        r = buf_printf(&text, "; %s", policy_range(field, range));
    if (r == 0)
        r = buf_append(&text, ")", 1);
    if (r == 0)
        help_print_row(left, text.p);
    return r;
}

int
run_options_help(struct err *err)
{
    __attribute__((cleanup(policy_done))) struct policy shown = {0};
    int r = policy_load(policy_default, &shown, err);
    if (r < 0)
        return r;
    puts("usage: adyton run [FILE|-] [-c CODE] [OPTION…] [-- ARGS…]\n\n"
         "Runs Python in a cell: isolated from the host, bounded, with /tmp to write "
         "in.\n\n"
         "options:");
    for (size_t i = 0; i < run_option_table_n; i++) {
        const struct run_option *row = &run_option_table[i];
        char left[96];
        snprintf(left, sizeof(left), "%s%s%s%s%s", row->brief ? row->brief : "",
                 row->brief ? ", " : "", row->name, row->value ? " " : "",
                 row->value ? row->value : "");
        help_print_row(left, row->help);
    }
    puts("\nlimits (a run may narrow its policy, never widen it; sizes like 256M, times "
         "like "
         "1.5s):");
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_fields[i].option && print_limit(&shown, &policy_fields[i]) < 0)
            return err_set(err, -ENOMEM, "no memory for the help");
    puts("\nThe exit status says how the run ended: 0 ok, 1 exception, n of sys.exit(n), "
         "124\n"
         "timeout, 125 adyton failed, 126 rejected or violation, 137 memory, output, "
         "disk or\n"
         "pids, 128+n crashed by signal n; 2 when the command line is wrong.");
    return 0;
}
