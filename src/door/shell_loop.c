/*
 * Statements out of lines. Whether one is whole is the session's to say. A block ends where a line
 * begins that is not part of it, and for somebody who types also with an empty line; lines from a
 * pipe or a file may have empty lines in their blocks, as files of Python do.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "door/shell_parts.h"

static const char help[] =
    "Python statements run in the session as they are typed; the value of an expression "
    "is\n"
    "shown. A statement that is not finished goes on with '... '; an empty line ends a "
    "block.\n"
    "Tab completes names, the arrows walk through the history, Ctrl-R searches it.\n"
    "Ctrl-C interrupts what runs. Ctrl-D, exit or quit ends the shell.";

static bool
is_blank(struct span line)
{
    for (size_t i = 0; i < line.n; i++)
        if (!memchr(" \t\r\f", line.p[i], 4))
            return false;
    return true;
}

static struct span
trimmed(struct span line)
{
    while (line.n > 0 && memchr(" \t\r", line.p[line.n - 1], 3))
        line.n--;
    return line;
}

static bool
is_one_of(struct span line, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (line.n == strlen(words[i]) && memcmp(line.p, words[i], line.n) == 0)
            return true;
    return false;
}

/* Indented, a comment, or a clause of the statement before. */
static bool
may_belong(struct span line)
{
    static const char *const words[] = {"else", "elif", "except", "finally"};
    if (line.n == 0 || memchr(" \t#)]}", line.p[0], 6))
        return true;
    size_t n = 0;
    while (n < line.n && line.p[n] >= 'a' && line.p[n] <= 'z')
        n++;
    return is_one_of((struct span){line.p, n}, words, sizeof(words) / sizeof(*words));
}

static int
append(struct shell_statement *statement, struct span line, struct err *err)
{
    int r = statement->has_lines ? buf_append(&statement->lines, "\n", 1) : 0;
    if (r == 0)
        r = buf_append(&statement->lines, line.p, line.n);
    statement->has_lines = true;
    return r < 0 ? err_set(err, r, "a statement is longer than %d MiB",
                           SHELL_STATEMENT_BYTES_MAX >> 20)
                 : 0;
}

static int
run(struct shell *shell, struct shell_statement *statement, struct err *err)
{
    int r = buf_append(&statement->lines, "\n", 1);
    if (r < 0)
        return err_set(err, r, "no memory for a statement");
    r = shell_talk_run(shell, buf_span(&statement->lines), err);
    buf_consume(&statement->lines, statement->lines.n);
    statement->has_lines = false;
    return r;
}

/* Whether the block could end here: an empty line after it would do that. */
static bool
could_end(struct shell *shell, struct shell_statement *statement)
{
    if (buf_append(&statement->lines, "\n", 1) < 0)
        return false;
    enum shell_state state = shell_talk_state(shell, buf_span(&statement->lines));
    statement->lines.n--;
    return state == SHELL_COMPLETE;
}

static bool
is_for_us(struct span line, bool *ret_end)
{
    static const char *const ends[] = {"exit", "exit()", "quit", "quit()"};
    static const char *const helps[] = {".help"};
    line = trimmed(line);
    *ret_end = is_one_of(line, ends, sizeof(ends) / sizeof(*ends));
    if (is_one_of(line, helps, 1)) {
        puts(help);
        fflush(stdout);
        return true;
    }
    return *ret_end;
}

int
shell_take_line(struct shell *shell, struct shell_statement *statement, struct span line,
                bool *ret_end, struct err *err)
{
    int r = 0;
    bool blank = is_blank(line);
    *ret_end = false;
    if (!statement->has_lines && (blank || is_for_us(line, ret_end)))
        return 0;
    if (blank && !shell->is_terminal)
        return append(statement, line, err);
    if (statement->has_lines && !blank && !may_belong(line) &&
        could_end(shell, statement))
        r = run(shell, statement, err);
    if (r == 0 && !statement->has_lines && is_for_us(line, ret_end))
        return 0;
    if (r == 0)
        r = append(statement, blank ? (struct span){0} : line, err);
    if (r == 0 &&
        shell_talk_state(shell, buf_span(&statement->lines)) != SHELL_INCOMPLETE)
        r = run(shell, statement, err);
    return r;
}

int
shell_take_end(struct shell *shell, struct shell_statement *statement, struct err *err)
{
    return statement->has_lines ? run(shell, statement, err) : 0;
}
