/*
 * The structured form of a call that has failed before there was anything to show: an unknown
 * session, wrong arguments, no supervisor. It is made from the tool's own schema, so that it fits
 * that, whatever is in it: what is required is there, as far as the call has it, else empty.
 */
#include <string.h>

#include "mcp/mcp_parts.h"

enum { ECHO_BYTES_MAX = 512 }; /* of an argument that is said again */

json_t *
failure_schema(void)
{
    return json_pack("{s:s, s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}}, s:[s, s]}", "type",
                     "object", "description", "Only there when the call has failed.",
                     "properties", "name", "type", "string", "value", "type", "string",
                     "traceback", "type", "string", "required", "name", "value");
}

/* A value of the schema's type that says nothing. */
static json_t *
nothing_of(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    static const struct {
        const char *type, *text;
    } values[] = {{"string", "\"\""}, {"boolean", "false"}, {"integer", "0"},
                  {"number", "0"},    {"array", "[]"},      {"object", "{}"}};
    if (json_object_get(schema, "enum")) /* the one of a run that was none */
        return json_string("failed");
    for (size_t i = 0; type && i < sizeof(values) / sizeof(*values); i++)
        if (strcmp(values[i].type, type) == 0)
            return json_loads(values[i].text, JSON_DECODE_ANY, NULL);
    return NULL;
}

static json_t *
known_of(const struct mcp_call *call, const char *name, const json_t *schema)
{
    json_t *argument = json_object_get(call->arguments, name);
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (strcmp(name, "session_id") == 0 && call->session_id[0] != '\0')
        return json_string(call->session_id);
    if (type && strcmp(type, "string") == 0 && json_is_string(argument) &&
        json_string_length(argument) <= ECHO_BYTES_MAX)
        return json_incref(argument);
    return nothing_of(schema);
}

json_t *
failure_of(const struct mcp_call *call, const char *code, const char *text)
{
    size_t i;
    const json_t *required;
    json_t *schema = call->tool->output();
    const json_t *properties = json_object_get(schema, "properties");
    json_t *form = json_pack("{s:{s:s, s:s, s:s}}", "error", "name", code, "value", text,
                             "traceback", "");
    json_array_foreach(json_object_get(schema, "required"), i, required)
    {
        const char *name = json_string_value(required);
        if (form && json_object_set_new(
                        form, name,
                        known_of(call, name, json_object_get(properties, name))) < 0) {
            json_decref(form);
            form = NULL;
        }
    }
    json_decref(schema);
    return form;
}
