/* The definition of execute_python. The text is for a model: what it does, what comes back. */
#include "ask/tools.h"

#include <stdbool.h>
#include <string.h>

const char *const tools_forms[] = {"openai", "anthropic", "mcp", NULL};

static const char description[] = "Runs Python 3 in an isolated sandbox and returns what "
                                  "it printed. The value of the last "
                                  "expression is shown, too, and so are figures of "
                                  "matplotlib. The working folder is /tmp: it "
                                  "holds the user's files and is the only place that can "
                                  "be written. There is no network and "
                                  "no shell, and no packages can be installed. Code that "
                                  "is refused or that fails comes back "
                                  "with the reason: correct it and call again.";

static json_t *
parameters(void)
{
    return json_pack("{s:s, s:{s:{s:s, s:s}}, s:[s], s:b}", "type", "object",
                     "properties", "code", "type", "string", "description",
                     "The Python source to run, complete and without Markdown fences.",
                     "required", "code", "additionalProperties", false);
}

static json_t *
openai(void)
{
    return json_pack("{s:s, s:{s:s, s:s, s:o}}", "type", "function", "function", "name",
                     TOOL_NAME, "description", description, "parameters", parameters());
}

static json_t *
anthropic(void)
{
    return json_pack("{s:s, s:s, s:o}", "name", TOOL_NAME, "description", description,
                     "input_schema", parameters());
}

static json_t *
mcp(void)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:{s:b, s:b, s:b, s:b}}", "name", TOOL_NAME,
                     "title", "Run Python in a sandbox", "description", description,
                     "inputSchema", parameters(), "annotations", "readOnlyHint", false,
                     "destructiveHint", false, "idempotentHint", false, "openWorldHint",
                     false);
}

json_t *
tools_definition(const char *form)
{
    static json_t *(*const makers[])(void) = {openai, anthropic, mcp};
    for (size_t i = 0; tools_forms[i]; i++)
        if (strcmp(tools_forms[i], form) == 0)
            return makers[i]();
    return NULL;
}
