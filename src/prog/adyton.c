/*
 * The program `adyton`: finds the command, runs it, ends with its status. It knows no
 * option but --help and --version.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "door/command.h"
#include "door/help.h"
#include "door/nearest.h"
#include "door/terminal.h"
#include "prog/last_words.h"

enum { EXIT_WRONG_USE = 2, EXIT_OUR_FAULT = 125, NAME_BYTES_SHOWN = 256 };

/*
 * A caller may have closed 0, 1 or 2. A socket of ours that landed there would be taken
 * for a standard stream: fill the gaps first, with something that fails to be written to.
 */
static int
hold_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -1;
    return close(fd);
}

static void
print_help(void)
{
    puts("usage: adyton COMMAND [OPTION…]\n\n"
         "Runs Python that somebody else, or a model, wrote: isolated, bounded, "
         "accounted for.\n\n"
         "commands:");
    for (size_t i = 0; i < command_table_n; i++)
        help_print_row(command_table[i].name, command_table[i].help);
    puts("\noptions:");
    help_print_row("--help", "Show this page; after a command, that command's.");
    help_print_row("--version", "Show the version.");
}

static const struct command *
find_command(const char *name)
{
    for (size_t i = 0; i < command_table_n; i++)
        if (strcmp(name, command_table[i].name) == 0)
            return &command_table[i];
    return NULL;
}

static int
unknown_command(const char *name)
{
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < command_table_n; i++)
        nearest_try(&nearest, command_table[i].name);
    AUTO_BUF struct buf shown = {0};
    buf_init(&shown, NAME_BYTES_SHOWN);
    const char *quoted =
        terminal_append_line(name, &shown) == 0 && shown.n > 0 ? shown.p : "";
    fprintf(stderr, "adyton: unknown command '%s'%s%s%s\nTry 'adyton --help'.\n", quoted,
            nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "",
            nearest.best ? "?" : "");
    return EXIT_WRONG_USE;
}

int
main(int argc, char **argv)
{
    last_words_install();
    if (hold_standard_streams() < 0) {
        fputs("adyton: cannot open /dev/null in place of a closed stream\n", stderr);
        return EXIT_OUR_FAULT;
    }
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        print_help();
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (strcmp(name, "--version") == 0) {
        puts("adyton " ADYTON_VERSION);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    const struct command *command = find_command(name);
    if (command)
        return command->run(argc - 1, argv + 1);
    if (argc > 1)
        return unknown_command(name);
    fputs("adyton: a command is missing\nTry 'adyton --help'.\n", stderr);
    return EXIT_WRONG_USE;
}
