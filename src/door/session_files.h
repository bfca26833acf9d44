/* Files of sessions: `adyton session put`, `get` and `files`. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "job/outcome.h"

enum { SESSION_WORDS_MAX = 1024 };

struct session_files {
    const char *socket, *session;
    const char *words[SESSION_WORDS_MAX]; /* after the session's id */
    size_t words_n;
    const char *out;
    bool all, json;
};

/* Each returns the exit status. */
int session_files_put(const struct session_files *wish);
int session_files_get(const struct session_files *wish);
int session_files_list(const struct session_files *wish);

/* What --out does with a run of a session: fetches all files into the folder, and names them in
 * the outcome. */
int session_files_collect(const struct session_files *wish, int dir,
                          struct outcome *outcome, struct err *err) MUST_USE;
