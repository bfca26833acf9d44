/* `adyton mcp`: the MCP server over standard input and output. */
#pragma once

/* argv[0] is "mcp"; returns the exit status of the process. */
int mcp_command(int argc, char **argv);
