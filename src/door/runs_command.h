/* `adyton runs`. */
#pragma once

/* argv[0] is "runs"; returns the exit status of the process. */
int runs_command(int argc, char **argv);
