/* The tool as models are told of it: one definition, in the words of each form. */
#pragma once

#include <jansson.h>

#define TOOL_NAME "execute_python"

/* form: "openai", "anthropic" or "mcp"; NULL: no memory, or no such form. New reference. */
json_t *tools_definition(const char *form);
extern const char *const tools_forms[]; /* NULL-terminated */
