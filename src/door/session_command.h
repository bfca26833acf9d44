/* `adyton session`: the sessions of a supervisor. */
#pragma once

int session_command(int argc, char **argv);
