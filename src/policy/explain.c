/*
 * A policy told to people: as the YAML that policy_load takes back, and the field table
 * as the Markdown that the manual holds. Both walk policy_fields and know no field by
 * name.
 */
#include "policy/internal.h"

/* Words that a reader of YAML 1.1 takes for a truth value; ours does not, others may. */
static const char *const truth_words[] = {"y",  "n",   "yes",  "no",
                                          "on", "off", "true", "false"};

static bool
needs_quotes(const char *word)
{
    for (size_t i = 0; i < sizeof(truth_words) / sizeof(*truth_words); i++)
        if (strcmp(word, truth_words[i]) == 0)
            return true;
    return false;
}

/* An item as a double-quoted scalar: nothing in it can then be taken for YAML. */
static int
append_item(struct buf *out, const char *path)
{
    int r = buf_append(out, "  - \"", 5);
    for (const char *p = path; *p && r == 0; p++) {
        if (*p == '"' || *p == '\\')
            r = buf_append(out, "\\", 1);
        if (r == 0)
            r = buf_append(out, p, 1);
    }
    return r == 0 ? buf_append(out, "\"\n", 2) : r;
}

static int
explain_items(const struct policy *policy, const struct policy_field *field,
              struct buf *out)
{
    size_t n;
    const char *const *items = policy_items(policy, field, &n);
    int r = buf_printf(out, "%s:%s\n", field->name, n == 0 ? " []" : "");
    for (size_t i = 0; i < n && r == 0; i++)
        r = append_item(out, items[i]);
    return r;
}

static int
explain_scalar(const struct policy *policy, const struct policy_field *field,
               struct buf *out)
{
    char text[POLICY_RANGE_BYTES];
    const char *value = value_format(field, policy_scalar(policy, field), text);
    const char *quotes = needs_quotes(value) ? "\"" : "";
    return buf_printf(out, "%s: %s%s%s\n", field->name, quotes, value, quotes);
}

static int
explain_comment(const struct policy_field *field, struct buf *out)
{
    char range[POLICY_RANGE_BYTES];
    return buf_printf(out, "\n# %s\n# %s%s%s%s%s%s\n", field->help,
                      field->kind == FIELD_CHOICE ? "one of " : "",
                      policy_range(field, range), field->unit ? "; counted in " : "",
                      field->unit ? field->unit : "", field->option ? "; option " : "",
                      field->option ? field->option : "");
}

/* A profile's own name is not written down: a changed copy of it must not pass for it. */
static int
explain_head(const struct policy *policy, struct buf *out)
{
    if (profile_find(span_of(policy->name)))
        return buf_printf(
            out,
            "# The built-in policy '%s'. A copy of this is named after its file,\n"
            "# or by a line `name: ...`.\nextends: %s\n",
            policy->name, policy->name);
    return buf_printf(out,
                      "# The policy '%s', fully resolved.\nname: \"%s\"\nextends: %s\n",
                      policy->name, policy->name, policy->extends);
}

int
policy_explain(const struct policy *policy, struct buf *out)
{
    int r = explain_head(policy, out);
    for (size_t i = 0; i < policy_fields_n && r == 0; i++) {
        const struct policy_field *field = &policy_fields[i];
        r = explain_comment(field, out);
        if (r == 0)
            r = field->kind == FIELD_RULES ? rules_explain(policy, out)
                : policy_is_scalar(field)  ? explain_scalar(policy, field, out)
                                           : explain_items(policy, field, out);
    }
    return r;
}

static int
markdown_field(const struct policy_field *field, struct buf *out)
{
    char range[POLICY_RANGE_BYTES];
    const char *tick = field->option ? "`" : "";
    return buf_printf(out, "| `%s` | %s%s%s | %s | %s | %s |\n", field->name, tick,
                      field->option ? field->option : "", tick,
                      policy_range(field, range), field->unit ? field->unit : "",
                      field->help);
}

static int
markdown_values(const struct policy_field *field, struct buf *out)
{
    int r = buf_printf(out, "| `%s` |", field->name);
    for (size_t i = 0; policy_profiles[i] && r == 0; i++) {
        const struct policy *profile = profile_find(span_of(policy_profiles[i]));
        size_t before = out->n;
        r = buf_append(out, " ", 1);
        if (r == 0)
            r = policy_format(profile, field, out);
        if (r == 0 && out->n == before + 1)
            r = buf_append(out, "none", 4); /* an empty list */
        if (r == 0)
            r = buf_append(out, " |", 2);
    }
    if (r < 0)
        return r;
    return buf_printf(out, " %s |\n",
                      field->authority == BY_OPERATOR ? "the operator"
                                                      : "a job, narrower only");
}

static int
markdown_profile_head(struct buf *out)
{
    int r = buf_printf(out, "\n| field |");
    for (size_t i = 0; policy_profiles[i] && r == 0; i++)
        r = buf_printf(out, " %s%s |", policy_profiles[i],
                       strcmp(policy_profiles[i], policy_default) == 0 ? " (default)"
                                                                       : "");
    if (r == 0)
        r = buf_printf(out, " changed by |\n|---|");
    for (size_t i = 0; policy_profiles[i] && r == 0; i++)
        r = buf_printf(out, "---|");
    return r == 0 ? buf_printf(out, "---|\n") : r;
}

int
policy_markdown(struct buf *out)
{
    int r = buf_printf(
        out, "| field | option | takes | unit | what it limits, and who enforces "
             "it |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < policy_fields_n && r == 0; i++)
        r = markdown_field(&policy_fields[i], out);
    if (r == 0)
        r = markdown_profile_head(out);
    for (size_t i = 0; i < policy_fields_n && r == 0; i++)
        r = markdown_values(&policy_fields[i], out);
    return r;
}
