/* `adyton ask QUESTION`: a model writes the code. */
#pragma once

int ask_command(int argc, char **argv);
