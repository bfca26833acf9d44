/*
 * The tools, as data: each field of their arguments once, from which both the schema for clients
 * and the check of what comes are made. Descriptions are written for a model.
 */
#include <string.h>

#include "engine/protocol.h"
#include "mcp/mcp_parts.h"

#define SESSION_HELP "The session_id from an earlier result of execute_python."
#define PATH_HELP    "A path beneath the session's working folder, like data/sales.csv."

static const struct tool_field execute_fields[] = {
    {"code", "string", true, "Python source, complete and without Markdown fences."},
    {"session_id", "string", false,
     "From an earlier result, to go on with its variables, imports and files. Left out: "
     "a new "
     "session."},
    {"timeout", "number", false,
     "Seconds until the code is interrupted. What is longer than the operator allows "
     "counts as "
     "that."},
    {"files", "files", false,
     "Files to place in the working folder before the code runs: each has a name and "
     "either data "
     "(text) or data_base64."},
    {0}};
static const struct tool_field check_fields[] = {
    {"code", "string", true, "Python source, complete and without Markdown fences."},
    {0}};
static const struct tool_field session_fields[] = {
    {"session_id", "string", true, SESSION_HELP}, {0}};
static const struct tool_field write_fields[] = {
    {"session_id", "string", true, SESSION_HELP},
    {"path", "string", true, PATH_HELP},
    {"data", "string", false, "The file's content as text."},
    {"data_base64", "string", false, "The file's content as base64, instead of data."},
    {0}};
static const struct tool_field read_fields[] = {
    {"session_id", "string", true, SESSION_HELP},
    {"path", "string", true, PATH_HELP},
    {0}};

const struct tool tools[] = {
    {"execute_python", "Run Python in a sandbox",
     "Runs Python 3 in an isolated sandbox and returns what it printed, the value of the "
     "last "
     "expression, tables, and figures of matplotlib as images. State lives in a session: "
     "pass "
     "the session_id of an earlier result to go on with its variables and files; without "
     "it a "
     "new session begins. Sessions end after some time without use (30 minutes by "
     "default). The "
     "working folder is the only place that can be written. There is no network and no "
     "shell, "
     "and no packages can be installed. Code that is refused or fails comes back with "
     "the "
     "reason: correct it and call again.",
     execute_fields, output_execute, false, false, begin_execute},
    {"check_python", "Check Python without running it",
     "Says whether execute_python would refuse this code before it runs (a syntax error, "
     "a "
     "forbidden import or act), with line, rule and what to do instead. Runs nothing.",
     check_fields, output_check, true, true, begin_check},
    {"session_close", "End a session",
     "Ends a session of execute_python: its variables and files are gone, and what runs "
     "in it "
     "is stopped.",
     session_fields, output_close, false, true, begin_close},
    {"write_file", "Write a file into a session",
     "Writes one file into the session's working folder; folders are made, a file of "
     "that name "
     "is replaced.",
     write_fields, output_write, false, true, begin_write},
    {"read_file", "Read a file of a session",
     "Returns one file of the session's working folder: text as text, images as images, "
     "other "
     "bytes as base64. Up to 2 MiB; read parts of larger ones with execute_python.",
     read_fields, output_read, true, true, begin_read},
    {"list_files", "List the files of a session",
     "Lists the files of the session's working folder with size, type and sha256, and "
     "what was "
     "added, modified or removed since the last listing.",
     session_fields, output_list, true, true, begin_list},
};
const struct tool resource_tool = {.name = "resources/read",
                                   .fields = read_fields,
                                   .output = output_read,
                                   .read_only = true,
                                   .idempotent = true,
                                   .begin = begin_read};
const size_t tools_n = sizeof(tools) / sizeof(*tools);

/* --- for clients --- */

static json_t *
files_schema(const char *help)
{
    return json_pack(
        "{s:s, s:s, s:i, s:{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}}, s:[s], s:b}}", "type",
        "array", "description", help, "maxItems", (int)JOB_FILES_MAX, "items", "type",
        "object", "properties", "name", "type", "string", "data", "type", "string",
        "data_base64", "type", "string", "required", "name", "additionalProperties", 0);
}

static json_t *
field_schema(const struct tool_field *field)
{
    if (strcmp(field->kind, "files") == 0)
        return files_schema(field->help);
    json_t *schema =
        json_pack("{s:s, s:s}", "type", field->kind, "description", field->help);
    if (schema && strcmp(field->kind, "number") == 0)
        (void)json_object_set_new(schema, "exclusiveMinimum", json_integer(0));
    return schema;
}

static json_t *
input_schema(const struct tool *tool)
{
    json_t *properties = json_object(), *required = json_array();
    for (const struct tool_field *field = tool->fields; field->name; field++) {
        (void)json_object_set_new(properties, field->name, field_schema(field));
        if (field->needed)
            (void)json_array_append_new(required, json_string(field->name));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
                     "required", required, "additionalProperties", 0);
}

static json_t *
output_schema(const struct tool *tool)
{
    json_t *schema = tool->output();
    json_t *properties = json_object_get(schema, "properties");
    if (schema && json_object_set_new(properties, "error", failure_schema()) < 0) {
        json_decref(schema);
        return NULL;
    }
    return schema;
}

static json_t *
describe(const struct tool *tool)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:{s:s, s:b, s:b, s:b, s:b}}", "name", tool->name,
        "title", tool->title, "description", tool->description, "inputSchema",
        input_schema(tool), "outputSchema", output_schema(tool), "annotations", "title",
        tool->title, "readOnlyHint", tool->read_only,
        /* All that it can destroy lies in the sandbox, and nothing leaves that. */
        "destructiveHint", 0, "idempotentHint", tool->idempotent, "openWorldHint", 0);
}

json_t *
tools_list(void)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < tools_n; i++)
        if (json_array_append_new(list, describe(&tools[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* --- what comes --- */

static bool
is_file(const json_t *file)
{
    const json_t *text = json_object_get(file, "data"),
                 *coded = json_object_get(file, "data_base64");
    return json_is_string(json_object_get(file, "name")) && !text != !coded &&
           json_is_string(text ? text : coded) && json_object_size(file) == 2;
}

static bool
is_of_kind(const json_t *value, const char *kind)
{
    size_t i;
    const json_t *file;
    if (strcmp(kind, "string") == 0)
        return json_is_string(value);
    if (strcmp(kind, "number") == 0)
        return json_is_number(value) && json_number_value(value) > 0;
    if (!json_is_array(value))
        return false;
    json_array_foreach(value, i, file) if (!is_file(file)) return false;
    return true;
}

static const char *
wanted_text(const char *kind)
{
    return strcmp(kind, "files") == 0
               ? "a list of objects with a name and either data or data_base64"
           : strcmp(kind, "number") == 0 ? "a number above 0"
                                         : "a string";
}

const char *
tool_refuse(const struct tool *tool, const json_t *arguments, char text[ERROR_TEXT_BYTES])
{
    const char *name;
    const json_t *value;
    for (const struct tool_field *field = tool->fields; field->name; field++) {
        value = json_object_get(arguments, field->name);
        if (value ? is_of_kind(value, field->kind) : !field->needed)
            continue;
        snprintf(text, ERROR_TEXT_BYTES, "%s: the argument '%s' %s %s.", tool->name,
                 field->name,
                 value ? "must be" : "is missing:", wanted_text(field->kind));
        return text;
    }
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        const struct tool_field *field = tool->fields;
        while (field->name && strcmp(field->name, name) != 0)
            field++;
        if (field->name)
            continue;
        snprintf(text, ERROR_TEXT_BYTES, "%s takes no argument '%.60s'.", tool->name,
                 name);
        return text;
    }
    return NULL;
}
