/* `adyton run`. */
#pragma once

/* argv[0] is "run"; returns the exit status of the process. */
int run_command(int argc, char **argv);
