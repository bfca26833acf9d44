/* A ledger in a folder of its own, and what both test programs of the room ask of it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/ledger_parts.h"

enum { PATH_BYTES = 256 };

static struct {
    char folder[PATH_BYTES], path[PATH_BYTES + 16];
    struct ledger *ledger;
    sqlite3 *raw; /* a program that is not ours */
} at;

static inline void
remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    (void)rmdir(path);
}

static int
set_up(void **state)
{
    (void)state;
    struct err err;
    snprintf(at.folder, sizeof(at.folder), "/tmp/adyton-ledger-XXXXXX");
    if (!mkdtemp(at.folder))
        return -1;
    snprintf(at.path, sizeof(at.path), "%s/ledger.db", at.folder);
    if (ledger_open(at.path, LEDGER_WRITE, &at.ledger, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    return sqlite3_open(at.path, &at.raw) == SQLITE_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
    (void)state;
    sqlite3_close(at.raw);
    ledger_free(at.ledger);
    at.ledger = NULL;
    remove_folder(at.folder);
    return 0;
}

static inline void
must(int r, const struct err *err)
{
    if (r < 0)
        fail_msg("%s", err->text);
}

static inline void
sql(const char *text)
{
    char *message = NULL;
    if (sqlite3_exec(at.raw, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", text, message);
}

static inline int64_t
number(const char *text)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(at.raw, text, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    return sqlite3_column_int64(s, 0);
}

static inline struct ledger_intent
intent_of(const struct outcome *outcome, const char *code)
{
    return (struct ledger_intent){.run = outcome->id,
                                  .policy = "standard",
                                  .name = "main.py",
                                  .code = span_of(code),
                                  .keep_code = true};
}

static inline void
add_incident(struct outcome *outcome, const char *rule, const char *layer,
             const char *act)
{
    struct incident incident = {.fact = true, .count = 2, .line = 3, .column = 7};
    snprintf(incident.rule, sizeof(incident.rule), "%s", rule);
    snprintf(incident.layer, sizeof(incident.layer), "%s", layer);
    snprintf(incident.action, sizeof(incident.action), "refused");
    snprintf(incident.act, sizeof(incident.act), "%s", act);
    snprintf(incident.reason, sizeof(incident.reason), "a reason");
    outcome_add_incident(outcome, &incident);
}

/* One run from its intent to its outcome; the id goes to `id`. */
static inline int64_t
add_run(const char *code, const char *session, enum status status, const char *act,
        char id[OUTCOME_ID_BYTES])
{
    struct outcome outcome;
    struct err err;
    int64_t seq;
    outcome_init(&outcome);
    outcome.status = status;
    outcome.has_exit_code = true;
    outcome.exit_code = 1;
    snprintf(outcome.message, sizeof(outcome.message), "a message");
    snprintf(outcome.limit_name, sizeof(outcome.limit_name), "memory");
    outcome.limit_value = 5;
    outcome.has_error = true;
    snprintf(outcome.error_name, sizeof(outcome.error_name), "ValueError");
    snprintf(outcome.start, sizeof(outcome.start), "cold");
    snprintf(outcome.interpreter, sizeof(outcome.interpreter), "cpython 3");
    outcome_add_layer(&outcome, "user");
    outcome_add_layer(&outcome, "seccomp");
    if (act)
        add_incident(&outcome, "system-call", "seccomp", act);
    struct ledger_intent intent = intent_of(&outcome, code);
    intent.session = session;
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err);
    must(ledger_outcome(at.ledger, seq, &outcome, false, &err), &err);
    if (id)
        snprintf(id, OUTCOME_ID_BYTES, "%s", outcome.id);
    outcome_done(&outcome);
    return seq;
}

static inline struct ledger_verdict
verdict_of(const struct ledger_head *noted)
{
    struct ledger_verdict verdict;
    struct err err;
    must(ledger_verify(at.ledger, noted, &verdict, &err), &err);
    return verdict;
}

static inline void
assert_sound(void)
{
    const struct ledger_verdict verdict = verdict_of(NULL);
    if (!verdict.sound)
        fail_msg("%s %lld: %s", verdict.table, (long long)verdict.row, verdict.text);
}

static inline void
assert_bad(const char *table, int64_t row, const char *what)
{
    const struct ledger_verdict verdict = verdict_of(NULL);
    if (verdict.sound)
        fail_msg("%s: not seen", what);
    if (strcmp(verdict.table, table) != 0 || verdict.row != row)
        fail_msg("%s: %s %lld is named (%s), not %s %lld", what, verdict.table,
                 (long long)verdict.row, verdict.text, table, (long long)row);
}
