/* `adyton shell`: statements, one after another, in a session. */
#pragma once

int shell_command(int argc, char **argv);
