/*
 * The code of a chat, run in one session of a supervisor, found or carried: what one piece has made
 * is there for the next, and for the next question. Waits for each run.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "door/ask_run.h"
#include "job/outcome.h"

struct ask_session;

/* run: its policy, files and folders; borrowed. */
int ask_session_open(const struct ask_run *run, struct ask_session **ret,
                     struct err *err) MUST_USE;
void ask_session_close(struct ask_session *session);
/* One that was lost is followed by a new one, with the files as they were given. */
int ask_session_execute(struct ask_session *session, struct span code,
                        struct outcome *ret, struct err *err) MUST_USE;
