/*
 * The JSON Schema (draft 2020-12) of a policy file, for editors and for other people's
 * checks. It says what a schema can say: the range of "256M" stands in the description
 * only, since no pattern compares numbers. Where it and policy_load differ, policy_load
 * is right.
 */
#include "policy/internal.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#define NUMBER_PATTERN "^(0|[1-9][0-9]*)(\\.[0-9]{1,6})? *"

static const double MS_IN_SECOND = 1000.0;

static json_t *
schema_count(const struct policy_field *field)
{
    return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
                     (json_int_t)field->min, "maximum", (json_int_t)field->max);
}

static json_t *
schema_bytes(const struct policy_field *field)
{
    return json_pack("{s:[{s:s, s:I, s:I}, {s:s, s:s}]}", "anyOf", "type", "integer",
                     "minimum", (json_int_t)field->min, "maximum", (json_int_t)field->max,
                     "type", "string", "pattern",
                     NUMBER_PATTERN "([bB]|[kKmMgGtT]([iI]?[bB])?)?$");
}

static json_t *
schema_ms(const struct policy_field *field)
{
    return json_pack("{s:[{s:s, s:f, s:f}, {s:s, s:s}]}", "anyOf", "type", "number",
                     "minimum", (double)field->min / MS_IN_SECOND, "maximum",
                     (double)field->max / MS_IN_SECOND, "type", "string", "pattern",
                     NUMBER_PATTERN "(ms|s|sec|m|min|h)?$");
}

static json_t *
schema_choice(const struct policy_field *field)
{
    json_t *names = json_array();
    for (size_t i = 0; field->choices[i]; i++) {
        json_array_append_new(names, json_string(field->choices[i]));
        /* Unquoted, other readers of YAML take these two for truth values. */
        bool is_true = strcmp(field->choices[i], "true") == 0;
        if (is_true || strcmp(field->choices[i], "false") == 0)
            json_array_append_new(names, json_boolean(is_true));
    }
    return json_pack("{s:o}", "enum", names);
}

static json_t *
schema_paths(const struct policy_field *field)
{
    (void)field;
    return json_pack("{s:s, s:i, s:b, s:{s:s, s:s, s:i}}", "type", "array", "maxItems",
                     POLICY_LIST_MAX, "uniqueItems", 1, "items", "type", "string",
                     "pattern", "^/[^/]", "maxLength", POLICY_PATH_BYTES - 1);
}

static json_t *
schema_names(const struct policy_field *field)
{
    (void)field;
    return json_pack("{s:s, s:i, s:b, s:{s:s, s:s}}", "type", "array", "maxItems",
                     POLICY_LIST_MAX, "uniqueItems", 1, "items", "type", "string",
                     "pattern", "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*$");
}

static json_t *
schema_rules(const struct policy_field *field)
{
    (void)field;
    json_t *properties = json_object();
    for (size_t i = 0; i < CHECK_RULES; i++) {
        json_t *names = json_array();
        for (size_t j = 0; j < CHECK_SEVERITIES; j++)
            json_array_append_new(names, json_string(check_severity_names[j]));
        json_object_set_new(
            properties, check_rules[i].id,
            json_pack("{s:o, s:s}", "enum", names, "description", check_rules[i].finds));
    }
    return json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
                     "properties", properties);
}

static json_t *(*const shapes[])(const struct policy_field *field) = {
    [FIELD_COUNT] = schema_count, [FIELD_BYTES] = schema_bytes,
    [FIELD_MS] = schema_ms,       [FIELD_CHOICE] = schema_choice,
    [FIELD_PATHS] = schema_paths, [FIELD_NAMES] = schema_names,
    [FIELD_RULES] = schema_rules,
};

static json_t *
default_of(const struct policy_field *field)
{
    const struct policy *standard = profile_find(span_of(policy_default));
    char text[POLICY_RANGE_BYTES];
    if (field->kind == FIELD_PATHS)
        return json_array();
    if (field->kind == FIELD_RULES)
        return json_object();
    if (field->kind == FIELD_NAMES) {
        size_t n;
        const char *const *items = policy_items(standard, field, &n);
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(list, json_string(items[i]));
        return list;
    }
    uint64_t value = policy_scalar(standard, field);
    if (field->kind == FIELD_COUNT)
        return json_integer((json_int_t)value);
    return json_string(value_format(field, value, text));
}

static json_t *
schema_field(const struct policy_field *field)
{
    char range[POLICY_RANGE_BYTES];
    json_t *shape = shapes[field->kind](field);
    if (!shape)
        return NULL;
    json_t *description = json_sprintf(
        "%s %s%s%s%s.", field->help, policy_range(field, range), field->unit ? " (" : "",
        field->unit ? field->unit : "", field->unit ? ")" : "");
    if (json_object_set_new(shape, "description", description) < 0 ||
        json_object_set_new(shape, "default", default_of(field)) < 0) {
        json_decref(shape);
        return NULL;
    }
    return shape;
}

/* The two keys that are no fields. */
static json_t *
own_properties(void)
{
    json_t *names = json_array();
    for (size_t i = 0; policy_profiles[i]; i++)
        json_array_append_new(names, json_string(policy_profiles[i]));
    json_t *not_these = json_deep_copy(names);
    return json_pack("{s:{s:s, s:i, s:s, s:{s:o}, s:s}, s:{s:o, s:s, s:s}}", "name",
                     "type", "string", "maxLength", POLICY_NAME_BYTES - 1, "pattern",
                     "^[A-Za-z0-9._-]+$", "not", "enum", not_these, "description",
                     "What outcomes and the ledger call this policy; the file's name "
                     "when it is left out.",
                     "extends", "enum", names, "default", policy_default, "description",
                     "The built-in profile that gives every field the file does not.");
}

static json_t *
schema_document(void)
{
    json_t *properties = own_properties();
    for (size_t i = 0; i < policy_fields_n && properties; i++)
        if (json_object_set_new(properties, policy_fields[i].name,
                                schema_field(&policy_fields[i])) < 0) {
            json_decref(properties);
            return NULL;
        }
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:o}", "$schema",
        "https://json-schema.org/draft/2020-12/schema", "title", "adyton policy",
        "description",
        "What code in a cell may do and use. `adyton policy check FILE` is the "
        "whole check: a schema cannot compare sizes and times with units.",
        "type", "object", "additionalProperties", 0, "properties", properties);
}

int
policy_schema(struct buf *out)
{
    json_t *document = schema_document();
    char *text = document ? json_dumps(document, JSON_INDENT(2)) : NULL;
    json_decref(document);
    if (!text)
        return -ENOMEM;
    int r = buf_printf(out, "%s\n", text);
    free(text);
    return r;
}
