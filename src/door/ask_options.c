/*
 * Reads the command line of `adyton ask`. Nothing of it is the key: that would be in everybody's
 * list of processes. Opens nothing.
 */
#include "door/ask_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "door/help.h"
#include "door/nearest.h"

enum {
    ATTEMPTS = 3,
    ATTEMPTS_MAX = 10,
    RETRIES = 3,
    RETRIES_MAX = 10,
    TOKEN_BUDGET = 200 * 1000,
    TOKENS_MAX = 100 * 1000 * 1000,
    TIME_BUDGET_MS = 10 * 60 * 1000,
    TIME_BUDGET_MS_MAX = 24 * 60 * 60 * 1000,
};

enum kind { TEXT, FLAG, COUNT, TIME, FORM, CONFIRM };

struct row {
    const char *name, *value;
    enum kind kind;
    size_t offset;
    uint64_t min, max; /* of counts and times; of CONFIRM, what is set */
    const char *help;
};

#define AT(member) offsetof(struct ask_options, member)
/* clang-format off */
static const struct row rows[] = {
    {"--model", "NAME", TEXT, AT(model), 0, 0,
     "The model to ask (default: OPENAI_MODEL or ANTHROPIC_MODEL)."},
    {"--base-url", "URL", TEXT, AT(base_url), 0, 0,
     "Where it answers, as http://localhost:11434/v1 (default: OPENAI_BASE_URL or "
     "ANTHROPIC_BASE_URL, else the maker's own)."},
    {"--api", "openai|anthropic", FORM, 0, 0, 0,
     "The form that the endpoint speaks (default: openai, which Ollama, vLLM and llama.cpp "
     "speak, too)."},
    {"--key-file", "FILE", TEXT, AT(key_file), 0, 0,
     "A file with the key, which only its owner may read (default: OPENAI_API_KEY or "
     "ANTHROPIC_API_KEY)."},
    {"--plain-key", NULL, FLAG, AT(plain_key), 0, 0,
     "Send the key over plain HTTP to another machine, too."},
    {"--ca-file", "FILE", TEXT, AT(ca_file), 0, 0,
     "Certificates to trust instead of the system's (default: SSL_CERT_FILE)."},
    {"--proxy", "URL", TEXT, AT(proxy), 0, 0,
     "The proxy to go through; '' for none (default: https_proxy, http_proxy, no_proxy)."},
    {"--no-stream", NULL, FLAG, AT(no_stream), 0, 0,
     "Ask for whole answers instead of a stream."},
    {"--no-tools", NULL, FLAG, AT(no_tools), 0, 0,
     "Tell the model of no tool, and take code from its text alone; so, too, when the endpoint says "
     "that it knows none."},
    {"--attempts", "N", COUNT, AT(attempts), 1, ATTEMPTS_MAX,
     "Programs that may fail before it gives up (default: 3)."},
    {"--retries", "N", COUNT, AT(retries), 0, RETRIES_MAX,
     "How often a request is tried again that the endpoint cannot serve now (default: 3)."},
    {"--token-budget", "N", COUNT, AT(token_budget), 1, TOKENS_MAX,
     "Tokens that all requests together may take (default: 200000)."},
    {"--max-tokens", "N", COUNT, AT(max_tokens), 1, TOKENS_MAX,
     "Tokens of one answer (default: the endpoint's; 8192 for anthropic)."},
    {"--time-budget", "TIME", TIME, AT(time_budget_ms), 1000, TIME_BUDGET_MS_MAX,
     "Time for all of it (default: 10m, as 600s)."},
    {"--dry-run", NULL, FLAG, AT(dry_run), 0, 0,
     "Print the code and what validation finds, and run nothing."},
    {"--yes", NULL, CONFIRM, 0, CONFIRM_NEVER, 0,
     "Run code without asking; on a terminal it is asked before each run."},
    {"--confirm", NULL, CONFIRM, 0, CONFIRM_ALWAYS, 0,
     "Ask before each run, and fail where nobody can be asked."},
    {"--chat", NULL, FLAG, AT(chat), 0, 0,
     "Go on asking: a question a line, from the terminal or stdin, in one session that keeps "
     "variables and files."},
    {"--save", "FILE", TEXT, AT(save), 0, 0,
     "Write the program that gave the answer to FILE."},
    {"--json", NULL, FLAG, AT(json), 0, 0,
     "Print answer, program, steps and the last outcome as one JSON document."},
    {"--help", NULL, FLAG, AT(help), 0, 0,
     "Show this page."},
};
/* clang-format on */
#undef AT
enum { ROWS = sizeof(rows) / sizeof(*rows) };

/* Of `adyton run`, with its help. */
static const char *const shared[] = {
    "--policy", "--file",   "--data", "--out",   "--python",
    "--ledger", "--socket", "--cold", "--quiet", "--verbose",
};
enum { SHARED = sizeof(shared) / sizeof(*shared) };

static const struct run_option *
shared_option(const char *name)
{
    for (size_t i = 0; i < run_option_table_n; i++) {
        const struct run_option *row = &run_option_table[i];
        bool is_it =
            strcmp(row->name, name) == 0 || (row->brief && strcmp(row->brief, name) == 0);
        for (size_t k = 0; is_it && k < SHARED; k++)
            if (strcmp(shared[k], row->name) == 0)
                return row;
    }
    return NULL;
}

static const struct row *
own_option(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return strcmp(name, "-h") == 0 ? own_option("--help") : NULL;
}

static int
take_number(const struct row *row, const char *value, uint64_t *ret, struct err *err)
{
    uint64_t n;
    bool is_time = row->kind == TIME;
    int r = is_time ? parse_ms(span_of(value), &n) : parse_u64(span_of(value), &n);
    if (r == 0 && n >= row->min && n <= row->max) {
        *ret = n;
        return 0;
    }
    return err_set(
        err, -EINVAL, "%s: '%.60s' is no %s from %llu%s to %llu%s", row->name, value,
        is_time ? "time" : "number", (unsigned long long)row->min / (is_time ? 1000 : 1),
        is_time ? "s" : "", (unsigned long long)row->max / (is_time ? 1000 : 1),
        is_time ? "s" : "");
}

static int
take_own(struct ask_options *o, const struct row *row, const char *value, struct err *err)
{
    char *at = (char *)o + row->offset;
    switch (row->kind) {
    case TEXT:
        memcpy(at, &value, sizeof(value));
        return 0;
    case FLAG:
        *(bool *)(void *)at = true;
        return 0;
    case COUNT:
    case TIME:
        return take_number(row, value, (uint64_t *)(void *)at, err);
    case CONFIRM:
        o->confirm = (enum ask_confirm)row->min;
        return 0;
    case FORM:
        o->form = form_by_name(value);
        if (o->form)
            return 0;
        break;
    }
    return err_set(err, -EINVAL, "--api: '%.60s' is neither openai nor anthropic", value);
}

static int
unknown_option(const char *name, struct err *err)
{
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < ROWS; i++)
        nearest_try(&nearest, rows[i].name);
    for (size_t i = 0; i < SHARED; i++)
        nearest_try(&nearest, shared[i]);
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_fields[i].option)
            nearest_try(&nearest, policy_fields[i].option);
    return err_set(err, -EINVAL, "unknown option '%.80s'%s%s%s", name,
                   nearest.best ? "; did you mean " : "",
                   nearest.best ? nearest.best : "", nearest.best ? "?" : "");
}

static int
take_limit(struct run_options *o, const struct policy_field *field, const char *value,
           struct err *err)
{
    if (o->limits_n >= RUN_LIMITS_MAX)
        return err_set(err, -E2BIG, "%s: given too often", field->option);
    o->limits[o->limits_n++] = (struct run_limit){field, value};
    return 0;
}

static int
parse_option(int argc, char **argv, int *at, struct ask_options *o, struct err *err)
{
    char name[64], kind[POLICY_RANGE_BYTES];
    const char *value = strchr(argv[*at], '=');
    size_t name_n = value ? (size_t)(value - argv[*at]) : strlen(argv[*at]);
    value = value ? value + 1 : NULL;
    if (name_n >= sizeof(name))
        return err_set(err, -EINVAL, "unknown option '%.60s…'", argv[*at]);
    snprintf(name, sizeof(name), "%.*s", (int)name_n, argv[*at]);
    const struct row *own = own_option(name);
    const struct run_option *run = own ? NULL : shared_option(name);
    const struct policy_field *field = own || run ? NULL : policy_field_by_option(name);
    if (!own && !run && !field)
        return unknown_option(name, err);
    const char *wants = own   ? own->value
                        : run ? run->value
                              : run_limit_value(field, kind);
    if (!wants && value)
        return err_set(err, -EINVAL, "%s takes no value", name);
    if (wants && !value) {
        if (*at + 1 >= argc)
            return err_set(err, -EINVAL, "%s needs a value: %s", name, wants);
        value = argv[++*at];
    }
    return own   ? take_own(o, own, value, err)
           : run ? run->handle(&o->run, value, err)
                 : take_limit(&o->run, field, value, err);
}

static int
parse_operand(struct ask_options *o, const char *word, struct err *err)
{
    if (o->question)
        return err_set(err, -EINVAL,
                       "unexpected '%.80s': the question is one word, in quotes", word);
    o->question = word;
    return 0;
}

int
ask_options_parse(int argc, char **argv, struct ask_options *ret, struct err *err)
{
    *ret = (struct ask_options){
        .form = &form_openai,
        .attempts = ATTEMPTS,
        .retries = RETRIES,
        .token_budget = TOKEN_BUDGET,
        .time_budget_ms = TIME_BUDGET_MS,
        .run = {.policy = policy_default, .verbosity = RUN_NORMAL, .show_last = true},
    };
    bool options_end = false;
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        if (!options_end && strcmp(word, "--") == 0) {
            options_end = true;
            continue;
        }
        bool is_option = !options_end && word[0] == '-' && word[1] != '\0';
        int r = is_option ? parse_option(argc, argv, &at, ret, err)
                          : parse_operand(ret, word, err);
        if (r < 0)
            return r;
    }
    if (ret->chat && (ret->json || ret->dry_run || ret->run.cold || ret->save))
        return err_set(err, -EINVAL,
                       "--chat goes with none of --json, --dry-run, --save and --cold");
    if (ret->help || ret->question || ret->chat)
        return 0;
    return err_set(err, -EINVAL,
                   "a question is missing: adyton ask \"…\", or - for stdin");
}

void
ask_options_help(void)
{
    char left[96];
    puts("usage: adyton ask [OPTION…] QUESTION|-\n"
         "       adyton ask --chat [OPTION…] [QUESTION]\n\n"
         "Asks a model, runs the Python that it answers with in a cell, gives it what "
         "came of "
         "that,\nand prints its answer.\n\noptions:");
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(left, sizeof(left), "%s%s%s", rows[i].name, rows[i].value ? " " : "",
                 rows[i].value ? rows[i].value : "");
        help_print_row(left, rows[i].help);
    }
    puts("\noptions of adyton run:");
    for (size_t i = 0; i < SHARED; i++) {
        const struct run_option *row = shared_option(shared[i]);
        snprintf(left, sizeof(left), "%s%s%s", row->name, row->value ? " " : "",
                 row->value ? row->value : "");
        help_print_row(left, row->help);
    }
    puts("\nIts limits (--timeout, --memory...) are taken too.\n\n"
         "The exit status is 0 when there is an answer, 1 when there is none, that of "
         "the last "
         "run\n(124, 126, 137...) when every attempt failed, 125 when the endpoint or "
         "adyton "
         "failed, and 2\nwhen the command line is wrong.");
}
