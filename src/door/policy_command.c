/*
 * `adyton policy list | show NAME | check FILE | schema | markdown`. A table of verbs
 * over the policy room; it prints what that room knows and decides nothing of its own.
 */
#include "door/policy_command.h"

#include <stdio.h>

#include "policy/policy.h"

enum {
    EXIT_OK = 0,
    EXIT_WRONG = 1,
    EXIT_USAGE = 2,
    TEXT_MAX = 1024 * 1024, /* of what one verb prints */
};

struct verb {
    const char *name;
    const char *argument; /* as --help names it; NULL when the verb takes none */
    int (*run)(const char *argument, struct buf *out, struct err *err);
    const char *help;
    bool for_us; /* of use to whoever writes the manual: told by --help only */
};

/* The columns of `list`. */
static const char *const key_fields[] = {"timeout", "memory",    "pids",    "disk",
                                         "output",  "processes", "network", "validation"};
enum { KEY_FIELDS = sizeof(key_fields) / sizeof(*key_fields), COLUMN = 11 };

static int
pad_column(struct buf *out, size_t begin)
{
    size_t n = out->n - begin;
    return buf_printf(out, "%*s", n < COLUMN ? (int)(COLUMN - n) : 1, "");
}

static int
list_profile(const struct policy *policy, struct buf *out)
{
    size_t begin = out->n;
    int r = buf_printf(out, "%s", policy->name);
    for (size_t i = 0; i < KEY_FIELDS && r == 0; i++) {
        r = pad_column(out, begin);
        begin = out->n;
        if (r == 0)
            r = policy_format(policy, policy_field_by_name(span_of(key_fields[i])), out);
    }
    if (r == 0 && strcmp(policy->name, policy_default) == 0)
        r = buf_printf(out, " (default)");
    return r == 0 ? buf_append(out, "\n", 1) : r;
}

static int
run_list(const char *argument, struct buf *out, struct err *err)
{
    (void)argument;
    int r = buf_printf(out, "%-*s", COLUMN, "policy");
    for (size_t i = 0; i < KEY_FIELDS && r == 0; i++)
        r = buf_printf(out, "%-*s", i + 1 < KEY_FIELDS ? COLUMN : 0, key_fields[i]);
    if (r == 0)
        r = buf_append(out, "\n", 1);
    for (size_t i = 0; policy_profiles[i] && r == 0; i++) {
        struct policy policy = {0};
        r = policy_load(policy_profiles[i], &policy, err);
        if (r == 0)
            r = list_profile(&policy, out);
        policy_done(&policy);
    }
    return r;
}

static int
run_show(const char *argument, struct buf *out, struct err *err)
{
    struct policy policy = {0};
    int r = policy_load(argument, &policy, err);
    if (r == 0)
        r = policy_explain(&policy, out);
    policy_done(&policy);
    return r;
}

/* "  memory: 1G (standard: 256M)", when the two differ. */
static int
show_difference(const struct policy *policy, const struct policy *base,
                const struct policy_field *field, struct buf *out)
{
    AUTO_BUF struct buf here = {.max = TEXT_MAX};
    AUTO_BUF struct buf there = {.max = TEXT_MAX};
    int r = policy_format(policy, field, &here);
    if (r == 0)
        r = policy_format(base, field, &there);
    struct span is = buf_span(&here), was = buf_span(&there);
    if (r < 0 || (is.n == was.n && memcmp(is.p, was.p, is.n) == 0))
        return r;
    return buf_printf(out, "  %s: %s (%s: %s)\n", field->name, is.n > 0 ? is.p : "none",
                      base->name, was.n > 0 ? was.p : "none");
}

static int
run_check(const char *argument, struct buf *out, struct err *err)
{
    struct policy policy = {0}, base = {0};
    int r = policy_load(argument, &policy, err);
    if (r == 0)
        r = policy_load(policy.extends, &base, err);
    if (r == 0)
        r = buf_printf(out, "%s: ok\n", argument);
    for (size_t i = 0; i < policy_fields_n && r == 0; i++)
        r = show_difference(&policy, &base, &policy_fields[i], out);
    policy_done(&policy);
    policy_done(&base);
    return r;
}

static int
run_schema(const char *argument, struct buf *out, struct err *err)
{
    (void)argument, (void)err;
    return policy_schema(out);
}

static int
run_markdown(const char *argument, struct buf *out, struct err *err)
{
    (void)argument, (void)err;
    return policy_markdown(out);
}

static const struct verb verbs[] = {
    {"list", NULL, run_list, "the built-in policies, one a line, with their main limits",
     false},
    {"show", "NAME", run_show,
     "a policy fully resolved, as YAML to copy; a file's name too", false},
    {"check", "FILE", run_check,
     "whether a file is a policy, and where it departs from its base", false},
    {"schema", NULL, run_schema, "the JSON Schema (draft 2020-12) of policy files",
     false},
    {"markdown", NULL, run_markdown, "the tables of the manual", true},
};
enum { VERBS = sizeof(verbs) / sizeof(*verbs) };

static int
help_fields(struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < policy_fields_n && r == 0; i++) {
        const struct policy_field *field = &policy_fields[i];
        char range[POLICY_RANGE_BYTES];
        r = buf_printf(out, "  %-15s%s%s%s\n      %s\n", field->name,
                       policy_range(field, range), field->option ? "; " : "",
                       field->option ? field->option : "", field->help);
    }
    return r;
}

static int
help(struct buf *out)
{
    int r = buf_printf(out, "Usage: adyton policy VERB [NAME|FILE]\n\nVerbs:\n");
    for (size_t i = 0; i < VERBS && r == 0; i++)
        r = buf_printf(out, "  %-9s%-6s%s\n", verbs[i].name,
                       verbs[i].argument ? verbs[i].argument : "", verbs[i].help);
    if (r == 0)
        r = buf_printf(
            out,
            "\nA policy file is YAML: an optional `name`, an optional `extends` with "
            "the name of a\nbuilt-in policy (%s when it is left out), and any of the "
            "fields below. Sizes take K, M,\nG and T; times take ms, s, min and h."
            "\n\nFields, what they take, and the option of `adyton run`:\n",
            policy_default);
    return r == 0 ? help_fields(out) : r;
}

static int
complain(const char *text)
{
    fprintf(stderr, "adyton policy: %s\n", text);
    return EXIT_WRONG;
}

static int
complain_usage(const char *what, const char *word)
{
    fprintf(stderr, "adyton policy: %s%s; the verbs are", what, word);
    for (size_t i = 0; i < VERBS; i++)
        if (!verbs[i].for_us)
            fprintf(stderr, "%s %s%s%s", i > 0 ? "," : "", verbs[i].name,
                    verbs[i].argument ? " " : "",
                    verbs[i].argument ? verbs[i].argument : "");
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

/* Prints what a verb made, or says why there is nothing; a full disk is an error too. */
static int
finish(int r, const struct buf *out, const struct err *err)
{
    if (r < 0)
        return complain(err->code < 0 ? err->text : "out of memory");
    fwrite(out->p, 1, out->n, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain("standard output cannot be written");
    return EXIT_OK;
}

static const struct verb *
find_verb(const char *name)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

static bool
asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

int
policy_command(int argc, char **argv)
{
    AUTO_BUF struct buf out = {.max = TEXT_MAX};
    struct err err = {0};
    if (asks_help(argc, argv))
        return finish(help(&out), &out, &err);
    if (argc < 2)
        return complain_usage("a verb is missing", "");
    const struct verb *verb = find_verb(argv[1]);
    if (!verb)
        return complain_usage("no such verb: ", argv[1]);
    int wanted = verb->argument ? 3 : 2;
    if (argc != wanted)
        return complain_usage(
            argc < wanted ? "an argument is missing for " : "too much for ", verb->name);
    return finish(verb->run(verb->argument ? argv[2] : NULL, &out, &err), &out, &err);
}
