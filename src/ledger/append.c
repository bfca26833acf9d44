/*
 * What is added to the chain: intents, outcomes with their incidents, and outcomes for
 * those who can no longer give one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "ledger/ledger_parts.h"

enum {
    TEXTS_BYTES = 32 * 1024, /* of one row: each byte of a field may become three */
    CLOSED_AT_ONCE = 128,
};

/* --- texts --- */

/* Names and acts may be any bytes. They are stored as text that every reader can read;
 * the buffer never moves, for rows point into it. */
static void
set_text(struct row *row, enum column column, struct buf *texts, const char *text,
         size_t max)
{
    struct span s = {text, text ? strnlen(text, max) : 0};
    size_t before = texts->n;
    uint64_t replaced;
    if (s.n == 0 || texts->n + 3 * s.n > texts->capacity)
        return;
    if (utf8_append_valid(texts, s, &replaced) == 0)
        row_set_bytes(row, column, texts->p + before, texts->n - before);
}

static int
texts_init(struct buf *texts, struct err *err)
{
    buf_init(texts, TEXTS_BYTES + 1);
    if (buf_reserve(texts, TEXTS_BYTES) < 0)
        return err_set(err, -ENOMEM, "no memory for a row of the ledger");
    return 0;
}

/* --- intents --- */

static int
keep_code(struct ledger *ledger, const struct row *row, struct span code, struct err *err)
{
    sqlite3_stmt *s = statement(ledger, S_CODE_ADD, err);
    if (!s)
        return err->code;
    sqlite3_bind_blob(s, 1, row->v[C_CODE].bytes.p, LEDGER_HASH_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob64(s, 2, code.n > 0 ? code.p : "", code.n, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, row->v[C_SEQ].integer);
    return statement_run(ledger, s, "keep code in it", err);
}

static int
append_intent(struct ledger *ledger, const struct ledger_intent *intent, struct row *row,
              struct err *err)
{
    int r = chain_append(ledger, row, KIND_INTENT, err);
    if (r == 0)
        r = statement_run_numbered(ledger, S_OPEN_ADD, ledger->head.seq, err);
    if (r == 0 && intent->keep_code)
        r = keep_code(ledger, row, intent->code, err);
    return r;
}

int
ledger_intent(struct ledger *ledger, const struct ledger_intent *intent, int64_t *ret_seq,
              struct err *err)
{
    AUTO_BUF struct buf texts = {0};
    struct row row = {0};
    unsigned char hash[LEDGER_HASH_BYTES];
    int r = texts_init(&texts, err);
    if (r < 0)
        return r;
    code_hash(intent->code, hash);
    set_text(&row, C_RUN, &texts, intent->run, LEDGER_ID_BYTES - 1);
    set_text(&row, C_SESSION, &texts, intent->session, LEDGER_ID_BYTES - 1);
    set_text(&row, C_POLICY, &texts, intent->policy, OUTCOME_TEXT_BYTES);
    set_text(&row, C_NAME, &texts, intent->name, OUTCOME_TEXT_BYTES);
    row_set_bytes(&row, C_CODE, hash, sizeof(hash));
    row_set_count(&row, C_CODE_BYTES, intent->code.n);
    row_set_integer(&row, C_CODE_KEPT, intent->keep_code);
    row_set_integer(&row, C_OWNER, ledger->owner);
    row_set_integer(&row, C_PID, getpid());
    r = chain_begin(ledger, err);
    if (r < 0)
        return r;
    r = append_intent(ledger, intent, &row, err);
    int64_t seq = ledger->head.seq;
    if (r == 0)
        r = chain_commit(ledger, intent->full_sync, err);
    if (r < 0)
        chain_abandon(ledger);
    else
        *ret_seq = seq;
    return r;
}

/* --- outcomes --- */

struct intent_of {
    int64_t seq;
    char run[LEDGER_ID_BYTES * 3], session[LEDGER_ID_BYTES * 3];
    unsigned char code[LEDGER_HASH_BYTES];
};

static int
find_intent(struct ledger *ledger, int64_t seq, struct intent_of *ret, struct err *err)
{
    sqlite3_stmt *s = statement(ledger, S_INTENT, err);
    if (!s)
        return err->code;
    *ret = (struct intent_of){.seq = seq};
    sqlite3_bind_int64(s, 1, seq);
    int rc = sqlite3_step(s), r = 0;
    if (rc == SQLITE_DONE) {
        r = err_set(err, -EEXIST,
                    "the ledger %.100s: row %lld is no intent that waits for "
                    "its outcome",
                    ledger->path, (long long)seq);
    } else if (rc != SQLITE_ROW) {
        r = ledger_fail(ledger, "find the intent of a run", err);
    } else {
        const char *run = (const char *)sqlite3_column_text(s, 0);
        const char *session = (const char *)sqlite3_column_text(s, 1);
        snprintf(ret->run, sizeof(ret->run), "%s", run ? run : "");
        snprintf(ret->session, sizeof(ret->session), "%s", session ? session : "");
        if (sqlite3_column_bytes(s, 2) == LEDGER_HASH_BYTES)
            memcpy(ret->code, sqlite3_column_blob(s, 2), LEDGER_HASH_BYTES);
    }
    sqlite3_reset(s);
    return r;
}

static void
set_common(struct row *row, const struct intent_of *intent)
{
    row_set_text(row, C_RUN, intent->run);
    row_set_text(row, C_SESSION, intent->session);
    row_set_integer(row, C_INTENT, intent->seq);
}

static void
set_layers(struct row *row, const struct outcome *o, struct buf *texts)
{
    char layers[OUTCOME_LAYERS_MAX * OUTCOME_LAYER_BYTES + 1];
    size_t n = 0;
    layers[0] = '\0';
    for (size_t i = 0; i < o->isolation_n; i++)
        n += (size_t)snprintf(layers + n, sizeof(layers) - n, "%s%.*s", i > 0 ? "," : "",
                              OUTCOME_LAYER_BYTES - 1, o->isolation[i]);
    set_text(row, C_ISOLATION, texts, layers, sizeof(layers));
}

/* What the cell says of itself: the name and the text of the exception that ended it. */
static void
set_error(struct row *row, const struct outcome *o, struct buf *texts)
{
    char text[sizeof(o->error_name) + sizeof(o->error_value) + 2];
    if (!o->has_error)
        return;
    snprintf(text, sizeof(text), "%s%s%s", o->error_name, o->error_value[0] ? ": " : "",
             o->error_value);
    set_text(row, C_ERROR, texts, text, sizeof(text));
}

static int
append_outcome(struct ledger *ledger, const struct intent_of *intent,
               const struct outcome *o, struct buf *texts, struct err *err)
{
    struct row row = {0};
    texts->n = 0;
    set_common(&row, intent);
    set_text(&row, C_STATUS, texts, status_name(o->status), OUTCOME_TEXT_BYTES);
    if (o->has_exit_code)
        row_set_integer(&row, C_EXIT_CODE, o->exit_code);
    if (o->signal != 0)
        row_set_integer(&row, C_SIGNAL, o->signal);
    if (o->limit_name[0] != '\0') {
        set_text(&row, C_LIMIT_NAME, texts, o->limit_name, sizeof(o->limit_name));
        row_set_count(&row, C_LIMIT_VALUE, o->limit_value);
    }
    set_text(&row, C_MESSAGE, texts, o->message, sizeof(o->message));
    set_error(&row, o, texts);
    row_set_count(&row, C_WALL_US, o->wall_us);
    row_set_count(&row, C_CPU_US, o->cpu_us);
    row_set_count(&row, C_PEAK_MEMORY_BYTES, o->peak_memory_bytes);
    row_set_count(&row, C_PROCESSES, o->processes);
    row_set_count(&row, C_STDOUT_BYTES, o->out.total_bytes);
    row_set_count(&row, C_STDERR_BYTES, o->err.total_bytes);
    row_set_count(&row, C_INCIDENTS, o->incidents_n);
    row_set_count(&row, C_INCIDENTS_DROPPED, o->incidents_dropped);
    set_text(&row, C_INTERPRETER, texts, o->interpreter, sizeof(o->interpreter));
    set_layers(&row, o, texts);
    set_text(&row, C_START, texts, o->start, sizeof(o->start));
    return chain_append(ledger, &row, KIND_OUTCOME, err);
}

static int
append_incident(struct ledger *ledger, const struct intent_of *intent,
                const struct incident *incident, size_t number, struct buf *texts,
                struct err *err)
{
    struct row row = {0};
    texts->n = 0;
    set_common(&row, intent);
    row_set_bytes(&row, C_CODE, intent->code, sizeof(intent->code));
    row_set_integer(&row, C_NUMBER, (int64_t)number);
    set_text(&row, C_RULE, texts, incident->rule, sizeof(incident->rule));
    set_text(&row, C_LAYER, texts, incident->layer, sizeof(incident->layer));
    row_set_integer(&row, C_FACT, incident->fact);
    set_text(&row, C_ACTION, texts, incident->action, sizeof(incident->action));
    set_text(&row, C_ACT, texts, incident->act, sizeof(incident->act));
    set_text(&row, C_REASON, texts, incident->reason, sizeof(incident->reason));
    row_set_count(&row, C_COUNT, incident->count);
    if (incident->line > 0)
        row_set_integer(&row, C_LINE, incident->line);
    if (incident->column > 0)
        row_set_integer(&row, C_COLUMN, incident->column);
    row_set_text(&row, C_REMEDY, ledger_remedy(incident));
    return chain_append(ledger, &row, KIND_INCIDENT, err);
}

static int
append_all(struct ledger *ledger, int64_t intent_seq, const struct outcome *outcome,
           struct buf *texts, struct err *err)
{
    struct intent_of intent;
    int r = find_intent(ledger, intent_seq, &intent, err);
    if (r == 0)
        r = append_outcome(ledger, &intent, outcome, texts, err);
    for (size_t i = 0; i < outcome->incidents_n && r == 0; i++)
        r = append_incident(ledger, &intent, &outcome->incidents[i], i + 1, texts, err);
    if (r == 0)
        r = statement_run_numbered(ledger, S_OPEN_REMOVE, intent_seq, err);
    return r;
}

int
ledger_outcome(struct ledger *ledger, int64_t intent_seq, const struct outcome *outcome,
               bool full_sync, struct err *err)
{
    AUTO_BUF struct buf texts = {0};
    int r = texts_init(&texts, err);
    if (r == 0)
        r = chain_begin(ledger, err);
    if (r < 0)
        return r;
    r = append_all(ledger, intent_seq, outcome, &texts, err);
    if (r == 0)
        r = chain_commit(ledger, full_sync, err);
    if (r < 0)
        chain_abandon(ledger);
    return r;
}

/* --- requests to models --- */

int
ledger_request(struct ledger *ledger, const struct ledger_request *request,
               bool full_sync, struct err *err)
{
    AUTO_BUF struct buf texts = {0};
    struct row row = {0};
    unsigned char hash[LEDGER_HASH_BYTES];
    int r = texts_init(&texts, err);
    if (r < 0)
        return r;
    code_hash(request->prompt, hash);
    set_text(&row, C_RUN, &texts, request->run ? request->run : request->ask,
             LEDGER_ID_BYTES - 1);
    set_text(&row, C_SESSION, &texts, request->ask, LEDGER_ID_BYTES - 1);
    set_text(&row, C_POLICY, &texts, request->policy, OUTCOME_TEXT_BYTES);
    set_text(&row, C_NAME, &texts, request->model, OUTCOME_TEXT_BYTES);
    row_set_bytes(&row, C_CODE, hash, sizeof(hash));
    row_set_count(&row, C_CODE_BYTES, request->prompt.n);
    row_set_integer(&row, C_CODE_KEPT, 0);
    set_text(&row, C_STATUS, &texts, request->verdict, OUTCOME_TEXT_BYTES);
    set_text(&row, C_MESSAGE, &texts, request->message, OUTCOME_TEXT_BYTES);
    r = chain_begin(ledger, err);
    if (r == 0)
        r = chain_append(ledger, &row, KIND_REQUEST, err);
    if (r == 0)
        r = chain_commit(ledger, full_sync, err);
    if (r < 0)
        chain_abandon(ledger);
    return r;
}

/* --- intents that nobody will end --- */

/* The open intents whose owner is gone, at most CLOSED_AT_ONCE. */
static int
list_dead(struct ledger *ledger, int64_t dead[CLOSED_AT_ONCE], size_t *ret_n,
          struct err *err)
{
    sqlite3_stmt *s = statement(ledger, S_OPEN_LIST, err);
    if (!s)
        return err->code;
    size_t n = 0;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && n < CLOSED_AT_ONCE)
        if (!place_owner_lives(ledger, sqlite3_column_int64(s, 1)))
            dead[n++] = sqlite3_column_int64(s, 0);
    int r = rc == SQLITE_ROW || rc == SQLITE_DONE
                ? 0
                : ledger_fail(ledger, "list its open intents", err);
    sqlite3_reset(s);
    *ret_n = n;
    return r;
}

static int
close_dead(struct ledger *ledger, const int64_t *dead, size_t n, struct err *err)
{
    AUTO_BUF struct buf texts = {0};
    struct outcome lost = {.status = STATUS_FAILED};
    snprintf(lost.message, sizeof(lost.message),
             "adyton ended before this run did: what came of it is not known");
    int r = texts_init(&texts, err);
    for (size_t i = 0; i < n && r == 0; i++)
        r = append_all(ledger, dead[i], &lost, &texts, err);
    return r;
}

int
ledger_close_open_intents(struct ledger *ledger, uint64_t *ret_closed, struct err *err)
{
    int64_t dead[CLOSED_AT_ONCE];
    size_t n = CLOSED_AT_ONCE;
    uint64_t closed = 0;
    int r = 0;
    while (r == 0 && n == CLOSED_AT_ONCE) {
        /* Almost always there is none, and no lock is taken. */
        r = list_dead(ledger, dead, &n, err);
        if (r < 0 || n == 0)
            break;
        r = chain_begin(ledger, err);
        if (r < 0)
            break;
        r = list_dead(ledger, dead, &n, err); /* another start may have been faster */
        if (r == 0)
            r = close_dead(ledger, dead, n, err);
        if (r == 0)
            r = chain_commit(ledger, false, err);
        if (r < 0)
            chain_abandon(ledger);
        else
            closed += n;
    }
    if (r == 0)
        *ret_closed = closed;
    return r;
}
