/* The commands of adyton, as data: for the program, its --help and shell completion. */
#pragma once

#include <stddef.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the name; returns the exit status */
    const char *help;
    const char
        *words; /* what may follow, for completion; the options of run are in its table */
};

extern const struct command command_table[];
extern const size_t command_table_n;
