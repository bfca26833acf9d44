/*
 * The chain and its lock. One writer at a time holds SQLite's lock from reading the head
 * of the chain to moving it, so the chain is one line whatever the number of processes.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ledger/ledger_parts.h"

/* clang-format off */
static const char *const statement_texts[STATEMENTS] = {
    [S_BEGIN] = "BEGIN IMMEDIATE",
    [S_COMMIT] = "COMMIT",
    [S_ROLLBACK] = "ROLLBACK",
    [S_HEAD] = "SELECT head_seq, head_hash FROM chain",
    [S_SET_HEAD] = "UPDATE chain SET head_seq = ?1, head_hash = ?2",
    [S_INSERT] = "INSERT INTO entry VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                 "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [S_INTENT] = "SELECT run, session, code FROM entry JOIN open ON open.intent = seq "
                 "WHERE seq = ?1",
    [S_OPEN_ADD] = "INSERT INTO open VALUES (?1)",
    [S_OPEN_REMOVE] = "DELETE FROM open WHERE intent = ?1",
    /* CROSS: the few open ones lead. Left to choose, SQLite reads all entries for the order. */
    [S_OPEN_LIST] = "SELECT seq, owner FROM open CROSS JOIN entry ON seq = open.intent "
                    "ORDER BY open.intent",
    [S_CODE_ADD] = "INSERT INTO code VALUES (?1, ?2, ?3) "
                   "ON CONFLICT(hash) DO UPDATE SET last = ?3",
};
/* clang-format on */

sqlite3_stmt *
statement(struct ledger *ledger, enum statement which, struct err *err)
{
    sqlite3_stmt **slot = &ledger->statements[which];
    if (!*slot &&
        sqlite3_prepare_v3(ledger->db, statement_texts[which], -1,
                           SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK) {
        ledger_fail(ledger, "prepare for it", err);
        return NULL;
    }
    return *slot;
}

int
statement_run(struct ledger *ledger, sqlite3_stmt *s, const char *what, struct err *err)
{
    int rc = sqlite3_step(s);
    int r = rc == SQLITE_DONE ? 0 : ledger_fail(ledger, what, err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return r;
}

int
statement_run_numbered(struct ledger *ledger, enum statement which, int64_t number,
                       struct err *err)
{
    sqlite3_stmt *s = statement(ledger, which, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, number);
    return statement_run(ledger, s, "write to it", err);
}

static int
run_plain(struct ledger *ledger, enum statement which, struct err *err)
{
    sqlite3_stmt *s = statement(ledger, which, err);
    return s ? statement_run(ledger, s, "write to it", err) : err->code;
}

void
chain_abandon(struct ledger *ledger)
{
    if (!sqlite3_get_autocommit(ledger->db))
        (void)sqlite3_exec(ledger->db, "ROLLBACK", NULL, NULL, NULL);
}

static int
read_head(struct ledger *ledger, struct err *err)
{
    sqlite3_stmt *s = statement(ledger, S_HEAD, err);
    if (!s)
        return err->code;
    int r = 0;
    if (sqlite3_step(s) != SQLITE_ROW) {
        r = ledger_fail(ledger, "find the head of its chain", err);
    } else if (sqlite3_column_bytes(s, 1) != LEDGER_HASH_BYTES) {
        r = err_set(err, -EBADMSG,
                    "the ledger %.100s: the head of its chain is damaged: see "
                    "`adyton incidents verify`",
                    ledger->path);
    } else {
        ledger->head.seq = sqlite3_column_int64(s, 0);
        memcpy(ledger->head.hash, sqlite3_column_blob(s, 1), LEDGER_HASH_BYTES);
    }
    sqlite3_reset(s);
    return r;
}

int
chain_begin(struct ledger *ledger, struct err *err)
{
    int r = run_plain(ledger, S_BEGIN, err);
    if (r == 0)
        r = read_head(ledger, err);
    if (r < 0)
        chain_abandon(ledger);
    return r;
}

static int64_t
now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int
chain_append(struct ledger *ledger, struct row *row, enum kind kind, struct err *err)
{
    struct ledger_head next = {.seq = ledger->head.seq + 1};
    row_set_integer(row, C_SEQ, next.seq);
    row_set_text(row, C_KIND, ledger_kinds[kind]);
    row_set_integer(row, C_TIME_US, now_us());
    row_hash(ledger->head.hash, row, next.hash);
    row_set_bytes(row, C_HASH, next.hash, sizeof(next.hash));
    sqlite3_stmt *s = statement(ledger, S_INSERT, err);
    if (!s)
        return err->code;
    if (row_bind(s, row) != SQLITE_OK)
        return ledger_fail(ledger, "write to it", err);
    int r = statement_run(ledger, s, "write to it", err);
    if (r == 0)
        ledger->head = next;
    return r;
}

int
chain_commit(struct ledger *ledger, bool full_sync, struct err *err)
{
    sqlite3_stmt *s = statement(ledger, S_SET_HEAD, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, ledger->head.seq);
    sqlite3_bind_blob(s, 2, ledger->head.hash, LEDGER_HASH_BYTES, SQLITE_STATIC);
    int r = statement_run(ledger, s, "write to it", err);
    if (r == 0)
        r = run_plain(ledger, S_COMMIT, err);
    if (r == 0 && full_sync && flush_now(ledger) < 0)
        r = err_sys(err, "cannot bring the ledger %.140s to the disk", ledger->path);
    return r;
}
