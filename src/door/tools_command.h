/* `adyton tools`: the tool's definition, for programs that talk to a model themselves. */
#pragma once

int tools_command(int argc, char **argv);
