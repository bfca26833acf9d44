/* `adyton completion SHELL`: the script that completes our command line. */
#pragma once

/* argv[0] is "completion"; returns the exit status of the process. */
int completion_command(int argc, char **argv);
