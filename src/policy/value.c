/*
 * One value of one field: reading, range, narrowing, printing. The sentences of its
 * errors begin with `who`, so that the command line and a file can use the same ones.
 */
#include "policy/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/units.h"

/* "256M" is no time, though M might pass for minutes: units of time are small letters. */
static int
parse_time(struct span text, uint64_t *ret_ms)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] >= 'A' && text.p[i] <= 'Z')
            return -EINVAL;
    return parse_ms(text, ret_ms);
}

static const char *
format_count(uint64_t value, char text[UNITS_TEXT_BYTES])
{
    snprintf(text, UNITS_TEXT_BYTES, "%llu", (unsigned long long)value);
    return text;
}

static const struct kind {
    const char *what; /* "… is not WHAT" */
    int (*parse)(struct span text, uint64_t *ret);
    const char *(*format)(uint64_t value, char text[UNITS_TEXT_BYTES]);
} kinds[] = {
    [FIELD_COUNT] = {"a whole number", parse_u64, format_count},
    [FIELD_BYTES] = {"a size", parse_bytes, format_bytes},
    [FIELD_MS] = {"a time", parse_time, format_ms},
    [FIELD_CHOICE] = {"a choice", NULL, NULL},
    [FIELD_PATHS] = {"a list of paths", NULL, NULL},
    [FIELD_NAMES] = {"a list of modules", NULL, NULL},
    [FIELD_RULES] = {"rules with their severities", NULL, NULL},
};

const char *
value_format(const struct policy_field *field, uint64_t value,
             char text[POLICY_RANGE_BYTES])
{
    if (field->kind == FIELD_CHOICE) {
        assert(value <= field->max);
        return field->choices[value];
    }
    return kinds[field->kind].format(value, text);
}

static const char *
join_choices(const struct policy_field *field, char text[POLICY_RANGE_BYTES])
{
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; field->choices[i]; i++) {
        int added = snprintf(text + n, POLICY_RANGE_BYTES - n, "%s%s", i > 0 ? ", " : "",
                             field->choices[i]);
        assert(added > 0 && (size_t)added < POLICY_RANGE_BYTES - n);
        n += (size_t)added;
    }
    return text;
}

const char *
policy_range(const struct policy_field *field, char text[POLICY_RANGE_BYTES])
{
    char low[POLICY_RANGE_BYTES], high[POLICY_RANGE_BYTES];
    if (field->kind == FIELD_CHOICE)
        return join_choices(field, text);
    if (field->kind == FIELD_PATHS)
        snprintf(text, POLICY_RANGE_BYTES, "at most %d absolute paths", POLICY_LIST_MAX);
    else if (field->kind == FIELD_NAMES)
        snprintf(text, POLICY_RANGE_BYTES, "at most %d names of modules",
                 POLICY_LIST_MAX);
    else if (field->kind == FIELD_RULES)
        snprintf(text, POLICY_RANGE_BYTES, "for each rule error, warning, note, off");
    else
        snprintf(text, POLICY_RANGE_BYTES, "%.40s to %.40s",
                 value_format(field, field->min, low),
                 value_format(field, field->max, high));
    return text;
}

static int
choice_parse(const struct policy_field *field, const char *who, struct span text,
             uint64_t *ret, struct err *err)
{
    for (uint64_t i = 0; field->choices[i]; i++)
        if (span_is(text, field->choices[i])) {
            *ret = i;
            return 0;
        }
    char shown[QUOTE_BYTES], range[POLICY_RANGE_BYTES];
    return err_set(err, -EINVAL, "%s: '%s' is not one of %s", who, quote(text, shown),
                   policy_range(field, range));
}

static int
refuse_value(const struct policy_field *field, const char *who, struct span text,
             struct err *err)
{
    /* The default's value is the example: it is always one that works. */
    const struct policy *example = profile_find(span_of(policy_default));
    char shown[QUOTE_BYTES], range[POLICY_RANGE_BYTES], like[POLICY_RANGE_BYTES];
    return err_set(err, -EINVAL, "%s: '%s' is not %s: %s, like %s", who,
                   quote(text, shown), kinds[field->kind].what,
                   policy_range(field, range),
                   value_format(field, policy_scalar(example, field), like));
}

int
value_parse(const struct policy_field *field, const char *who, struct span text,
            uint64_t *ret, struct err *err)
{
    assert(policy_is_scalar(field));
    if (field->kind == FIELD_CHOICE)
        return choice_parse(field, who, text, ret, err);

    /* 010 is eight to some readers of YAML and ten to others; nobody has to guess. */
    if (text.n > 1 && text.p[0] == '0' && text.p[1] >= '0' && text.p[1] <= '9')
        return refuse_value(field, who, text, err);
    uint64_t value;
    int r = kinds[field->kind].parse(text, &value);
    if (r == -EINVAL)
        return refuse_value(field, who, text, err);
    if (r < 0 || value < field->min || value > field->max) {
        char shown[QUOTE_BYTES], range[POLICY_RANGE_BYTES];
        return err_set(err, -ERANGE, "%s: %s is out of range: %s", who,
                       quote(text, shown), policy_range(field, range));
    }
    *ret = value;
    return 0;
}

void
value_set(struct policy *policy, const struct policy_field *field, uint64_t value)
{
    assert(policy_is_scalar(field));
    memcpy((char *)policy + field->offset, &value, sizeof(value));
}

static bool
is_wider(const struct policy_field *field, uint64_t value, uint64_t held)
{
    if (field->zero_is_widest && (value == 0 || held == 0))
        return value == 0 && held != 0;
    return value > held;
}

/* The items stand between commas, blanks around them dropped; the new list replaces the
 * old. */
static int
replace_items(struct policy *policy, const struct policy_field *field, const char *who,
              struct span text, struct err *err)
{
    struct policy_list list = {.given = true};
    while (text.n > 0) {
        const char *comma = memchr(text.p, ',', text.n);
        size_t n = comma ? (size_t)(comma - text.p) : text.n;
        struct span item = {text.p, n};
        text.p += comma ? n + 1 : n;
        text.n -= comma ? n + 1 : n;
        for (; item.n > 0 && item.p[0] == ' '; item.p++)
            item.n--;
        for (; item.n > 0 && item.p[item.n - 1] == ' ';)
            item.n--;
        int r = list_add(&list, field, who, item, err);
        if (r < 0) {
            list_done(&list);
            return r;
        }
    }
    list_done(list_of(policy, field));
    *list_of(policy, field) = list;
    return 0;
}

int
policy_narrow(struct policy *policy, const struct policy_field *field, const char *who,
              struct span text, struct err *err)
{
    if (field->kind == FIELD_RULES)
        return err_set(err, -EINVAL, "%s: is set in a policy file", who);
    if (!policy_is_scalar(field)) {
        assert(field->authority ==
               BY_OPERATOR); /* no order of narrower and wider is defined */
        return replace_items(policy, field, who, text, err);
    }
    uint64_t value;
    int r = value_parse(field, who, text, &value, err);
    if (r < 0)
        return r;
    uint64_t held = policy_scalar(policy, field);
    if (field->authority == BY_JOB_NARROWING && is_wider(field, value, held)) {
        char asked[POLICY_RANGE_BYTES], allowed[POLICY_RANGE_BYTES];
        return err_set(err, -EPERM,
                       "%s: %s is more than policy '%s' allows (%s); "
                       "choose a policy that allows it with --policy",
                       who, value_format(field, value, asked), policy->name,
                       value_format(field, held, allowed));
    }
    value_set(policy, field, value);
    return 0;
}

int
policy_format(const struct policy *policy, const struct policy_field *field,
              struct buf *out)
{
    char text[POLICY_RANGE_BYTES];
    if (policy_is_scalar(field))
        return buf_printf(out, "%s",
                          value_format(field, policy_scalar(policy, field), text));
    if (field->kind == FIELD_RULES)
        return rules_format(policy, out);
    size_t n;
    const char *const *items = policy_items(policy, field, &n);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = buf_printf(out, "%s%s", i > 0 ? ", " : "", items[i]);
    return r;
}
