/* The command table. A row is all that a new command needs outside its own file. */
#include "door/command.h"

#include "door/ask_command.h"
#include "door/check_command.h"
#include "door/completion.h"
#include "door/doctor_command.h"
#include "door/incidents_command.h"
#include "door/mcp_command.h"
#include "door/policy_command.h"
#include "door/run_command.h"
#include "door/runs_command.h"
#include "door/serve_command.h"
#include "door/session_command.h"
#include "door/shell_command.h"
#include "door/status_command.h"
#include "door/tools_command.h"

/* clang-format off */
const struct command command_table[] = {
    {"run", run_command,
     "Run Python in a cell.", ""},
    {"check", check_command,
     "Say what validation finds in code, without running it.",
     "--policy --format --python --rules --help"},
    {"ask", ask_command,
     "Ask a model for code, run it, and give its answer.",
     "--model --base-url --api --key-file --plain-key --ca-file --proxy --no-stream --no-tools --attempts "
     "--retries --token-budget --max-tokens --time-budget --chat --dry-run --yes --confirm --save --json "
     "--policy --file --data --out --python --ledger --socket --cold --quiet --verbose --help"},
    {"tools", tools_command,
     "Print the tool's definition, for programs that ask a model themselves.",
     "--format --help openai anthropic mcp"},
    {"mcp", mcp_command,
     "Serve a model its tools: the Model Context Protocol over standard input and output.",
     "--policy --limit --python --socket --private --help"},
    {"serve", serve_command,
     "Hold cells ready for this user, behind a socket.",
     "--socket --policy --python --preload --max-runs --queue --memory-budget --ledger --help"},
    {"session", session_command,
     "Make, use and close sessions: cells that stay.",
     "new run list show interrupt restart close put get files --policy --limit --data --python --out --all --json "
     "--socket --help"},
    {"shell", shell_command,
     "Run statements one after another in a session, as they are typed.",
     "--session --policy --limit --python --out --no-images --socket --private --help"},
    {"status", status_command,
     "Show what the supervisor is doing.", "--json --watch --socket --help"},
    {"doctor", doctor_command,
     "Say what this host offers, layer by layer, and what mends what is missing.", "--json --help"},
    {"policy", policy_command,
     "List, show and check policies; print their JSON Schema.", "list show check schema --help"},
    {"incidents", incidents_command,
     "Show what was refused, and check the ledger that holds it.",
     "list show verify export import --since --rule --status --session --layer --run --limit "
     "--format --head --ledger --help"},
    {"runs", runs_command,
     "Show what was run.",
     "list show verify export import --since --rule --status --session --layer --run --limit "
     "--format --head --ledger --help"},
    {"completion", completion_command,
     "Print the completion script of a shell.", "bash zsh fish --help"},
};
/* clang-format on */

const size_t command_table_n = sizeof(command_table) / sizeof(*command_table);
