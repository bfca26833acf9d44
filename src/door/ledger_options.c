/* The options of `adyton incidents` and `adyton runs`, as data: for parsing and --help.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "door/help.h"
#include "door/ledger_command.h"

static int
take_since(struct view_options *o, const char *value, struct err *err)
{
    static const char *const forms[] = {
        "%Y-%m-%d",       "%Y-%m-%dT%H:%M",    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%SZ"};
    uint64_t ms;
    size_t n = strlen(value);
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        struct tm tm = {0};
        const char *end = strptime(value, forms[i], &tm);
        if (end && *end == '\0') {
            o->filter.since_us = (int64_t)timegm(&tm) * 1000000;
            return 0;
        }
    }
    bool days = n > 1 && value[n - 1] == 'd';
    int r = days ? parse_u64((struct span){value, n - 1}, &ms)
                 : parse_ms(span_of(value), &ms);
    if (r == 0 && days && __builtin_mul_overflow(ms, 24ULL * 3600 * 1000, &ms))
        r = -ERANGE;
    if (r < 0 || ms > (uint64_t)time(NULL) * 1000)
        return err_set(err, -EINVAL,
                       "--since: '%.40s' is no time: 90s, 15min, 24h, 7d, or "
                       "2026-01-31 with or without 13:45 (UTC)",
                       value);
    o->filter.since_us = (int64_t)time(NULL) * 1000000 - (int64_t)ms * 1000;
    return 0;
}

static int
take_status(struct view_options *o, const char *value, struct err *err)
{
    char names[160] = "";
    size_t n = 0;
    o->filter.status = value;
    for (int i = 0; i < STATUS_COUNT; i++) {
        if (strcmp(value, status_name((enum status)i)) == 0)
            return 0;
        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s, ",
                              status_name((enum status)i));
    }
    if (strcmp(value, "open") == 0)
        return 0;
    return err_set(err, -EINVAL, "--status: '%.30s' is not one of %sopen", value, names);
}

static int
take_limit(struct view_options *o, const char *value, struct err *err)
{
    o->has_limit = true;
    if (parse_u64(span_of(value), &o->filter.limit) < 0)
        return err_set(err, -EINVAL, "--limit: '%.40s' is no number", value);
    return 0;
}

static int
take_format(struct view_options *o, const char *value, struct err *err)
{
    static const char *const names[] = {
        [VIEW_TEXT] = "text", [VIEW_JSON] = "json", [VIEW_CSV] = "csv"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(value, names[i]) == 0) {
            o->format = (enum view_format)i;
            return 0;
        }
    return err_set(err, -EINVAL, "--format: '%.40s' is not one of text, json, csv",
                   value);
}

static const struct option_row {
    const char *name, *value, *help;
    int (*handle)(struct view_options *o, const char *value, struct err *err);
    size_t offset; /* of a text, when there is no handle */
} option_rows[] = {
    /* clang-format off */
    {"--since", "TIME", "Only what is younger: 90s, 15min, 24h, 7d, or a date in UTC.",
     take_since, 0},
    {"--rule", "RULE", "Only incidents of this rule, or runs that have one.",
     NULL, offsetof(struct view_options, filter.rule)},
    {"--status", "STATUS", "Only runs that ended so: ok, violation, timeout…; open.",
     take_status, 0},
    {"--session", "ID", "Only this session.",
     NULL, offsetof(struct view_options, filter.session)},
    {"--layer", "LAYER", "Only incidents that this layer saw, or runs that have one.",
     NULL, offsetof(struct view_options, filter.layer)},
    {"--run", "ID", "Only this run.", NULL, offsetof(struct view_options, filter.run)},
    {"--limit", "N", "At most N, the newest; 0 for all (text: 50, else all).",
     take_limit, 0},
    {"--format", "FORMAT", "text, json (one document a line) or csv.", take_format, 0},
    {"--head", "ROW:HASH", "With verify: a head, noted before, must still be in it.",
     NULL, offsetof(struct view_options, head)},
    {"--ledger", "FILE", "The ledger (default: the user's own).",
     NULL, offsetof(struct view_options, ledger)},
    /* clang-format on */
};
enum { OPTION_ROWS = sizeof(option_rows) / sizeof(*option_rows) };

int
view_option(int argc, char **argv, int *at, struct view_options *o, struct err *err)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        const struct option_row *row = &option_rows[i];
        if (strlen(row->name) != n || memcmp(row->name, word, n) != 0)
            continue;
        if (!equals && *at + 1 >= argc)
            return err_set(err, -EINVAL, "%s needs a value: %s", row->name, row->value);
        const char *value = equals ? equals + 1 : argv[++*at];
        if (row->handle)
            return row->handle(o, value, err);
        memcpy((char *)o + row->offset, &value, sizeof(value));
        return 0;
    }
    return err_set(err, -EINVAL, "unknown option '%.80s'", word);
}

void
view_options_help(void)
{
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        char left[32];
        snprintf(left, sizeof(left), "%s %s", option_rows[i].name, option_rows[i].value);
        help_print_row(left, option_rows[i].help);
    }
}
