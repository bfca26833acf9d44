/*
 * Lines from a terminal: libedit has the keys, the history and the screen (docs/decisions). Names
 * that the session offers are its claims: what is no plain name is neither inserted nor shown.
 */
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/utf8.h"
#include "door/shell_parts.h"

enum { HISTORY_LINES = 2000, INDENT = 4, COLUMNS = 78, SHOWN_MAX = 100 };

struct editor {
    struct shell *shell;
    struct shell_statement statement;
    EditLine *line;
    History *recall;
    struct shell_history *history;
};

/* The handler's only way to say something. */
static volatile sig_atomic_t *
interrupted(void)
{
    static volatile sig_atomic_t flag;
    return &flag;
}

static void
on_interrupt(int number)
{
    (void)number;
    *interrupted() = 1;
}

static struct editor *
editor_of(EditLine *line)
{
    struct editor *editor = NULL;
    el_get(line, EL_CLIENTDATA, &editor);
    return editor;
}

static char *
prompt(EditLine *line)
{
    static char first[] = ">>> ", next[] = "... ";
    return editor_of(line)->statement.has_lines ? next : first;
}

/* --- completion --- */

/* Letters, digits, '_', '.', and what is beyond ASCII but no control. */
static bool
is_name(const char *text, size_t n)
{
    struct span rest = {text, n};
    while (rest.n > 0) {
        unsigned char c = (unsigned char)rest.p[0];
        int length = utf8_next(rest);
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || c == '_' || c == '.';
        bool c1 = length == 2 && c == 0xC2 && (unsigned char)rest.p[1] < 0xA0;
        if (length <= 0 || c1 || (length == 1 && !plain))
            return false;
        rest.p += length;
        rest.n -= (size_t)length;
    }
    return n > 0;
}

/* Those that go on from the word, in their order; how many. */
static size_t
choose(const json_t *matches, struct span word, const char **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(matches) && n < SHOWN_MAX; i++) {
        const json_t *match = json_array_get(matches, i);
        const char *text = json_string_value(match);
        size_t length = json_string_length(match);
        if (text && length >= word.n && memcmp(text, word.p, word.n) == 0 &&
            is_name(text, length))
            ret[n++] = text;
    }
    return n;
}

/* Bytes that all of them begin with, whole characters. */
static size_t
common(const char *const *names, size_t n)
{
    size_t length = n > 0 ? strlen(names[0]) : 0;
    for (size_t i = 1; i < n; i++) {
        size_t same = 0;
        while (same < length && names[i][same] == names[0][same])
            same++;
        length = same;
    }
    while (length > 0 && ((unsigned char)names[0][length] & 0xC0) == 0x80)
        length--;
    return length;
}

/* Below the line, by what is after the last dot. */
static void
list(const char *const *names, size_t n, json_int_t more)
{
    size_t width = 0, column = 0;
    for (size_t i = 0; i < n; i++) {
        const char *dot = strrchr(names[i], '.');
        size_t length = strlen(dot ? dot + 1 : names[i]);
        width = length > width ? length : width;
    }
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        const char *dot = strrchr(names[i], '.');
        if (column > 0 && column + width + 2 > COLUMNS) {
            putchar('\n');
            column = 0;
        }
        column += width + 2;
        printf("%-*s", (int)width + 2, dot ? dot + 1 : names[i]);
    }
    if (more > 0)
        printf("and %lld more", (long long)more);
    putchar('\n');
    fflush(stdout);
}

static unsigned char
offer(EditLine *line, const json_t *answer, struct span word)
{
    const char *names[SHOWN_MAX];
    const json_t *matches = json_object_get(answer, "matches");
    size_t n = choose(matches, word, names), length = common(names, n);
    char text[SHELL_LINE_BYTES];
    if (n == 0 || length >= sizeof(text))
        return CC_ERROR;
    if (length > word.n) {
        memcpy(text, names[0] + word.n, length - word.n);
        text[length - word.n] = '\0';
        return el_insertstr(line, text) < 0 ? CC_ERROR : CC_REFRESH;
    }
    if (n == 1)
        return CC_ERROR;
    list(names, n,
         json_integer_value(json_object_get(answer, "more")) +
             (json_int_t)(json_array_size(matches) - n));
    return CC_REDISPLAY;
}

/* The last characters of the text, from the one that the answer names. */
static bool
word_at(struct span text, const json_t *answer, struct span *ret)
{
    json_int_t start = json_integer_value(json_object_get(answer, "start"));
    for (; start > 0; start--) {
        int n = utf8_next(text);
        if (n <= 0)
            return false;
        text.p += n;
        text.n -= (size_t)n;
    }
    *ret = text;
    return true;
}

static unsigned char
complete(EditLine *line, int key)
{
    (void)key;
    struct editor *editor = editor_of(line);
    const LineInfo *info = el_line(line);
    struct span before = {info->buffer, (size_t)(info->cursor - info->buffer)}, word;
    bool blank = true;
    for (size_t i = 0; i < before.n; i++)
        blank = blank && before.p[i] == ' ';
    if (blank)
        return el_insertstr(line, "    ") < 0 ? CC_ERROR : CC_REFRESH;
    AUTO_BUF struct buf text = {0};
    buf_init(&text, SHELL_STATEMENT_BYTES_MAX);
    struct span lines = buf_span(&editor->statement.lines);
    int r = buf_append(&text, lines.p, lines.n);
    if (r == 0 && editor->statement.has_lines)
        r = buf_append(&text, "\n", 1);
    if (r == 0)
        r = buf_append(&text, before.p, before.n);
    json_t *answer = r == 0 ? shell_talk_matches(editor->shell, buf_span(&text)) : NULL;
    unsigned char ret = CC_ERROR;
    if (answer && word_at(buf_span(&text), answer, &word))
        ret = offer(line, answer, word);
    json_decref(answer);
    return ret;
}

/* --- lines --- */

/* SIGINT is blocked but for the wait, so that it is never between two thoughts of ours. */
static int
await_input(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigdelset(&mask, SIGINT);
    int n = ppoll(&input, 1, NULL, &mask);
    return n < 0 && (errno != EINTR || *interrupted()) ? -1 : n;
}

/* Called by libedit; a character that is none is shown as what stands for it. */
static int
read_character(EditLine *line, wchar_t *ret)
{
    (void)line;
    mbstate_t state = {0};
    for (;;) {
        char byte;
        int n = await_input();
        if (n == 0 || (n < 0 && errno == EINTR && !*interrupted()))
            continue;
        if (n < 0)
            return -1;
        ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got <= 0)
            return got < 0 && errno == EAGAIN ? -1 : (int)got;
        size_t used = mbrtowc(ret, &byte, 1, &state);
        if (used == (size_t)-1)
            *ret = L'\xFFFD';
        if (used != (size_t)-2)
            return 1;
    }
}

static void
recall(void *context, const char *line)
{
    struct editor *editor = context;
    HistEvent event;
    history(editor->recall, &event, H_ENTER, line);
}

static void
bind_keys(EditLine *line)
{
    static const char *const keys[][2] = {
        {"^I", "adyton-complete"},         {"^R", "em-inc-search-prev"},
        {"\\e[3~", "ed-delete-next-char"}, {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},      {"\\e[1;5C", "em-next-word"},
        {"\\e[1;5D", "ed-prev-word"},
    };
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_ADDFN, "adyton-complete", "complete the name", complete);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        el_set(line, EL_BIND, keys[i][0], keys[i][1], NULL);
}

static int
begin(struct editor *editor, struct err *err)
{
    HistEvent event;
    /* A terminal of today; without it libedit takes each byte for a character. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        (void)!setlocale(LC_CTYPE, "C.UTF-8");
    bool out = isatty(STDOUT_FILENO) == 1;
    editor->line = el_init("adyton", stdin, out ? stdout : stderr, stderr);
    editor->recall = history_init();
    if (!editor->line || !editor->recall)
        return err_set(err, -ENOMEM, "no memory for an editor of lines");
    history(editor->recall, &event, H_SETSIZE, HISTORY_LINES);
    history(editor->recall, &event, H_SETUNIQUE, 1);
    el_set(editor->line, EL_CLIENTDATA, editor);
    el_set(editor->line, EL_PROMPT, prompt);
    el_set(editor->line, EL_SIGNAL, 0);
    el_set(editor->line, EL_GETCFN, read_character);
    el_set(editor->line, EL_HIST, history, editor->recall);
    bind_keys(editor->line);
    (void)!el_source(editor->line, NULL);
    editor->history = shell_history_open(recall, editor);
    return 0;
}

static void
end(struct editor *editor)
{
    shell_history_free(editor->history);
    if (editor->line)
        el_end(editor->line);
    if (editor->recall)
        history_end(editor->recall);
    buf_done(&editor->statement.lines);
}

/* NULL: the end of input, or Ctrl-C. */
static const char *
read_line(struct editor *editor, int *ret_n, bool *ret_interrupted)
{
    *interrupted() = 0;
    /* Or what is typed at a prompt's sight shows twice. */
    el_set(editor->line, EL_PREP_TERM, 1);
    const char *line = el_gets(editor->line, ret_n);
    *ret_interrupted = *interrupted() != 0;
    return line && *ret_n > 0 ? line : NULL;
}

static int
take(struct editor *editor, const char *text, int n, bool *ret_end, struct err *err)
{
    struct span line = {text, (size_t)n};
    HistEvent event;
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    if (line.n > 0) {
        AUTO_BUF struct buf kept = {0};
        buf_init(&kept, SHELL_STATEMENT_BYTES_MAX);
        if (buf_append(&kept, line.p, line.n) == 0 && buf_append(&kept, "", 1) == 0)
            history(editor->recall, &event, H_ENTER, kept.p);
        shell_history_add(editor->history, line);
        return shell_take_line(editor->shell, &editor->statement, line, ret_end, err);
    }
    return shell_take_line(editor->shell, &editor->statement, line, ret_end, err);
}

static int
go_on(struct editor *editor, struct err *err)
{
    bool ended = false, stopped;
    int n, r = 0;
    while (r == 0 && !ended) {
        const char *line = read_line(editor, &n, &stopped);
        if (stopped) {
            puts("\nKeyboardInterrupt");
            buf_consume(&editor->statement.lines, editor->statement.lines.n);
            editor->statement.has_lines = false;
        } else if (!line) {
            putchar('\n');
            return 0;
        } else {
            r = take(editor, line, n, &ended, err);
        }
        fflush(stdout);
    }
    return r;
}

int
shell_edit(struct shell *shell, struct err *err)
{
    const struct sigaction ours = {.sa_handler = on_interrupt}; /* no restart */
    struct editor editor = {.shell = shell};
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, NULL);
    sigaction(SIGINT, &ours, NULL);
    buf_init(&editor.statement.lines, SHELL_STATEMENT_BYTES_MAX);
    int r = begin(&editor, err);
    if (r == 0)
        r = go_on(&editor, err);
    end(&editor);
    return r;
}
