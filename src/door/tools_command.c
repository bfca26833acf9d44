/* Prints what `adyton ask` tells its model, in the form that is wanted. */
#include "door/tools_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/tools.h"
#include "door/help.h"

enum { EXIT_WRONG_USE = 2, EXIT_OUR_FAULT = 125 };

static int
print_help(void)
{
    puts("usage: adyton tools [--format openai|anthropic|mcp]\n\n"
         "Prints the definition of the tool " TOOL_NAME
         " as a JSON array, for the `tools` of a request\nto a model.\n\noptions:");
    help_print_row("--format FORM", "openai (the default), anthropic, or mcp.");
    help_print_row("--help", "Show this page.");
    return 0;
}

static int
print(const char *format)
{
    json_t *list = json_pack("[o]", tools_definition(format));
    int r = list ? json_dumpf(list, stdout, JSON_INDENT(2)) : -1;
    json_decref(list);
    putchar('\n');
    return r < 0 || fflush(stdout) != 0 ? EXIT_OUR_FAULT : 0;
}

int
tools_command(int argc, char **argv)
{
    static const char option[] = "--format";
    const char *format = tools_forms[0];
    for (int at = 1; at < argc; at++) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
            return print_help();
        size_t n = sizeof(option) - 1;
        if (strncmp(argv[at], option, n) == 0 && argv[at][n] == '=')
            format = argv[at] + n + 1;
        else if (strcmp(argv[at], option) == 0 && at + 1 < argc)
            format = argv[++at];
        else
            format = "";
    }
    for (size_t i = 0; tools_forms[i]; i++)
        if (strcmp(tools_forms[i], format) == 0)
            return print(format);
    fputs("adyton tools: takes --format openai, anthropic or mcp\n"
          "Try 'adyton tools --help'.\n",
          stderr);
    return EXIT_WRONG_USE;
}
