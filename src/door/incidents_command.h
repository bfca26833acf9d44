/* `adyton incidents`. */
#pragma once

/* argv[0] is "incidents"; returns the exit status of the process. */
int incidents_command(int argc, char **argv);
