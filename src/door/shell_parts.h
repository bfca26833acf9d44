/* Between the files of `adyton shell`; nobody else's. */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "door/results.h"
#include "door/run_options.h"
#include "engine/client.h"

enum {
    SHELL_STATEMENT_BYTES_MAX = 8 << 20,
    SHELL_ID_BYTES = 64,
    SHELL_LINE_BYTES = 4096, /* of ours */
};

struct shell_options {
    const char *session; /* NULL: a new one */
    const char *policy, *python, *socket;
    const char *out_dir;
    json_t *limits;
    bool alone, no_images, help;
};

struct shell {
    const struct shell_options *options;
    struct event_base *base;
    struct client *client;
    char session[SHELL_ID_BYTES];
    struct err gone;        /* code 0: the supervisor is there */
    bool is_terminal;       /* somebody types */
    bool failed;            /* a statement has */
    bool interrupted;       /* a statement was, by Ctrl-C */
    struct results results; /* where images go, and how many there were */
    bool was_asked;         /* the terminal, how it draws them */
    struct run_options run;
};

/* One line of ours on stderr; whatever is in it is made harmless. */
PRINTF(1, 2) void shell_say(const char *format, ...);

/* --- shell_talk.c: with the supervisor, one question after another --- */

/* Finds one or carries one, and takes or makes the session. */
int shell_talk_open(struct shell *shell, const struct serve_options *serve,
                    struct err *err) MUST_USE;
void shell_talk_close(struct shell *shell);
/* Runs a statement and prints what comes of it. When its session is lost another one is made, and
 * that is said. Fails when there can be none. */
int shell_talk_run(struct shell *shell, struct span code, struct err *err) MUST_USE;

enum shell_state { SHELL_COMPLETE, SHELL_INCOMPLETE, SHELL_INVALID };
/* SHELL_INVALID when nobody can say: the run tells what is wrong. */
enum shell_state shell_talk_state(struct shell *shell, struct span code);
/* Names for the end of the code: the message (new), or NULL. */
json_t *shell_talk_matches(struct shell *shell, struct span code);

/* --- shell_loop.c: statements out of lines --- */

struct shell_statement {
    struct buf lines; /* joined, the last one without its end */
    bool has_lines;
};
/* One line, without its end. *ret_end: it asks for the end of the shell. */
int shell_take_line(struct shell *shell, struct shell_statement *statement,
                    struct span line, bool *ret_end, struct err *err) MUST_USE;
/* No line follows. */
int shell_take_end(struct shell *shell, struct shell_statement *statement,
                   struct err *err) MUST_USE;

/* --- shell_edit.c: lines from a terminal; shell_history.c --- */

int shell_edit(struct shell *shell, struct err *err) MUST_USE;

struct shell_history;
/* Lines of earlier shells, oldest first. NULL: there is no place for them. */
struct shell_history *shell_history_open(void (*take)(void *context, const char *line),
                                         void *context);
void shell_history_add(struct shell_history *history, struct span line);
void shell_history_free(struct shell_history *history);
