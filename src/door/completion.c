/*
 * Completion scripts for bash, zsh and fish, printed from the tables of commands, options
 * and policy fields: what the program takes and what a shell offers cannot differ.
 */
#include "door/completion.h"

#include <stdio.h>
#include <string.h>

#include "door/command.h"
#include "door/run_options.h"
#include "policy/policy.h"

enum { EXIT_WRONG_USE = 2, EXIT_NO_OUTPUT = 1 };

/* The text with a backslash before each of `special`; a single quote is written as
 * `quote`. */
static void
print_escaped(const char *text, const char *special, const char *quote)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs(quote, stdout);
        else
            printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
    }
}

static void
print_words(const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        printf("%s%s", i > 0 ? " " : "", words[i]);
}

/* Calls for each option of `adyton run`, those of the policy included. */
struct option_view {
    const char *name, *brief, *value, *help;
    const char *const *choices; /* what the value may be, or NULL */
    bool takes_path;
};

static void
each_run_option(void (*print)(const struct option_view *view))
{
    for (size_t i = 0; i < run_option_table_n; i++) {
        const struct run_option *row = &run_option_table[i];
        bool is_policy = strcmp(row->name, "--policy") == 0;
        print(&(struct option_view){row->name, row->brief, row->value, row->help,
                                    is_policy ? policy_profiles : NULL,
                                    row->value != NULL});
    }
    for (size_t i = 0; i < policy_fields_n; i++) {
        const struct policy_field *field = &policy_fields[i];
        char kind[POLICY_RANGE_BYTES];
        if (field->option)
            print(&(struct option_view){field->option, NULL, run_limit_value(field, kind),
                                        field->help, field->choices,
                                        field->kind == FIELD_PATHS});
    }
}

static void
print_bash_name(const struct option_view *view)
{
    printf(" %s", view->name);
}

static void
print_bash_choices(const struct option_view *view)
{
    if (!view->choices)
        return;
    printf("            %s) words=\"", view->name);
    print_words(view->choices);
    puts("\" ;;");
}

static void
print_bash(void)
{
    puts("# bash completion for adyton, printed by `adyton completion bash`.\n"
         "_adyton() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
         "words=\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    printf("        words=\"--help --version");
    for (size_t i = 0; i < command_table_n; i++)
        printf(" %s", command_table[i].name);
    puts("\"\n    else\n        case ${COMP_WORDS[1]} in\n"
         "        run)\n            case $before in");
    each_run_option(print_bash_choices);
    printf("            *) [ \"${word#-}\" = \"$word\" ] || words=\"");
    each_run_option(print_bash_name);
    puts("\" ;;\n            esac ;;");
    for (size_t i = 0; i < command_table_n; i++)
        if (command_table[i].words[0] != '\0')
            printf("        %s) words=\"%s\" ;;\n", command_table[i].name,
                   command_table[i].words);
    puts("        esac\n    fi\n"
         "    [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _adyton adyton");
}

static void
print_zsh_option(const struct option_view *view)
{
    printf("            '*%s%s[", view->name, view->value ? "=" : "");
    print_escaped(view->help, "\\[]:", "'\\''");
    putchar(']');
    if (view->choices) {
        printf(":%s:(", view->value);
        print_words(view->choices);
        putchar(')');
    } else if (view->value) {
        printf(":%s:%s", view->value, view->takes_path ? "_files" : " ");
    }
    puts("' \\");
}

static void
print_zsh(void)
{
    puts("#compdef adyton\n# zsh completion for adyton, printed by `adyton completion "
         "zsh`.\n"
         "_adyton() {\n    local -a commands=(");
    for (size_t i = 0; i < command_table_n; i++) {
        printf("        '%s:", command_table[i].name);
        print_escaped(command_table[i].help, "\\:", "'\\''");
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $command in\n"
         "    run)\n        _arguments \\");
    each_run_option(print_zsh_option);
    puts("            '*:file:_files' ;;");
    for (size_t i = 0; i < command_table_n; i++)
        if (command_table[i].words[0] != '\0')
            printf("    %s) compadd -- %s; _files ;;\n", command_table[i].name,
                   command_table[i].words);
    puts("    esac\n}\n"
         "if [ \"$funcstack[1]\" = _adyton ]; then _adyton; else compdef _adyton adyton; "
         "fi");
}

static void
print_fish_option(const struct option_view *view)
{
    printf("complete -c adyton -n '__fish_seen_subcommand_from run' -l %s",
           view->name + 2);
    if (view->brief)
        printf(" -s %c", view->brief[1]);
    if (view->value)
        printf(" -%c", view->takes_path ? 'r' : 'x');
    if (view->choices) {
        printf(" -a '");
        print_words(view->choices);
        putchar('\'');
    }
    printf(" -d '");
    print_escaped(view->help, "\\", "\\'");
    puts("'");
}

static void
print_fish(void)
{
    puts("# fish completion for adyton, printed by `adyton completion fish`.");
    for (size_t i = 0; i < command_table_n; i++) {
        const struct command *row = &command_table[i];
        printf("complete -c adyton -f -n __fish_use_subcommand -a %s -d '", row->name);
        print_escaped(row->help, "\\", "\\'");
        puts("'");
        if (row->words[0] != '\0')
            printf("complete -c adyton -n '__fish_seen_subcommand_from %s' -a '%s'\n",
                   row->name, row->words);
    }
    each_run_option(print_fish_option);
}

static const struct shell {
    const char *name;
    void (*print)(void);
    const char *use;
} shells[] = {
    {"bash", print_bash, "source <(adyton completion bash)"},
    {"zsh", print_zsh, "source <(adyton completion zsh)"},
    {"fish", print_fish, "adyton completion fish | source"},
};
enum { SHELLS = sizeof(shells) / sizeof(*shells) };

static void
print_help(FILE *to)
{
    fputs("usage: adyton completion bash|zsh|fish\n\n"
          "Prints the completion script of a shell. To use it at once:\n",
          to);
    for (size_t i = 0; i < SHELLS; i++)
        fprintf(to, "  %-5s %s\n", shells[i].name, shells[i].use);
}

int
completion_command(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help(stdout);
        return 0;
    }
    for (size_t i = 0; argc == 2 && i < SHELLS; i++)
        if (strcmp(argv[1], shells[i].name) == 0) {
            shells[i].print();
            return fflush(stdout) == 0 ? 0 : EXIT_NO_OUTPUT;
        }
    print_help(stderr);
    return EXIT_WRONG_USE;
}
