/*
 * Whether the ledger is what was written: every row's hash follows from its columns and
 * the row before it, the numbers have no gap from the anchor to the head, and the other
 * tables say what the chain says. What is found first is named. All of it is read in one
 * transaction, so that writers may go on meanwhile.
 *
 * What no chain can show by itself: that its last rows, or all of it, were replaced by
 * somebody who could write the file and recomputed every hash. A head noted elsewhere
 * shows that.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ledger/ledger_parts.h"

static int PRINTF(4, 5)
    bad(struct ledger_verdict *v, const char *table, int64_t row, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    v->sound = false;
    v->row = row;
    snprintf(v->table, sizeof(v->table), "%s", table);
    vsnprintf(v->text, sizeof(v->text), format, args);
    va_end(args);
    return 0;
}

static bool
hash_at(sqlite3_stmt *s, int column, unsigned char ret[LEDGER_HASH_BYTES])
{
    if (sqlite3_column_bytes(s, column) != LEDGER_HASH_BYTES)
        return false;
    memcpy(ret, sqlite3_column_blob(s, column), LEDGER_HASH_BYTES);
    return true;
}

static int
check_ends(struct ledger *ledger, struct ledger_verdict *v, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(
        ledger, "SELECT anchor_seq, anchor_hash, head_seq, head_hash FROM chain", &s,
        err);
    if (r < 0)
        return r;
    int rc = sqlite3_step(s);
    if (rc == SQLITE_DONE)
        return bad(v, "chain", 1, "the row is missing");
    if (rc != SQLITE_ROW)
        return ledger_fail(ledger, "read it", err);
    v->anchor.seq = sqlite3_column_int64(s, 0);
    v->head.seq = sqlite3_column_int64(s, 2);
    if (!hash_at(s, 1, v->anchor.hash) || !hash_at(s, 3, v->head.hash) ||
        v->anchor.seq < 0 || v->anchor.seq > v->head.seq)
        return bad(v, "chain", 1, "the anchor or the head is none");
    if (sqlite3_step(s) != SQLITE_DONE)
        return bad(v, "chain", 2, "there is more than one row");
    return 0;
}

/* --- the chain --- */

struct walk {
    struct ledger_verdict *v;
    const struct ledger_head *noted;
    struct ledger_head at; /* the row before */
    bool noted_seen;
};

static void
note(struct walk *walk)
{
    if (walk->noted && walk->noted->seq == walk->at.seq)
        walk->noted_seen =
            memcmp(walk->noted->hash, walk->at.hash, LEDGER_HASH_BYTES) == 0;
}

static bool
is_known_kind(const struct row *row)
{
    for (size_t i = 0; i < KINDS; i++)
        if (row->v[C_KIND].set && span_is(row->v[C_KIND].bytes, ledger_kinds[i]))
            return true;
    return false;
}

static void
check_row(struct walk *walk, sqlite3_stmt *s)
{
    struct row row;
    unsigned char hash[LEDGER_HASH_BYTES];
    int64_t seq = sqlite3_column_int64(s, 0), expected = walk->at.seq + 1;
    if (seq != expected) {
        bad(walk->v, "entry", seq > expected ? expected : seq,
            seq > expected ? "the row is missing (the next is %lld)"
                           : "the row stands before the anchor (%lld)",
            (long long)(seq > expected ? seq : walk->v->anchor.seq));
        return;
    }
    if (!row_read(s, &row) || !row.v[C_HASH].set ||
        row.v[C_HASH].bytes.n != LEDGER_HASH_BYTES || !is_known_kind(&row)) {
        bad(walk->v, "entry", seq, "the row is no row of a ledger");
        return;
    }
    row_hash(walk->at.hash, &row, hash);
    if (memcmp(hash, row.v[C_HASH].bytes.p, LEDGER_HASH_BYTES) != 0) {
        bad(walk->v, "entry", seq,
            "the hash does not follow from the row and the one before it: it was "
            "changed, "
            "moved or put in");
        return;
    }
    walk->at.seq = seq;
    memcpy(walk->at.hash, hash, sizeof(hash));
    walk->v->rows++;
    note(walk);
}

static int
check_head(struct walk *walk)
{
    struct ledger_verdict *v = walk->v;
    if (walk->at.seq < v->head.seq)
        return bad(v, "entry", walk->at.seq + 1,
                   "the row is missing: the chain ends before its head (%lld)",
                   (long long)v->head.seq);
    if (walk->at.seq > v->head.seq)
        return bad(v, "entry", v->head.seq + 1,
                   "the row stands after the head of the chain");
    if (memcmp(walk->at.hash, v->head.hash, LEDGER_HASH_BYTES) != 0)
        return bad(v, "chain", 1, "the head is not the hash of the last row");
    if (!walk->noted || walk->noted_seen)
        return 0;
    if (walk->noted->seq < v->anchor.seq)
        return bad(v, "entry", walk->noted->seq,
                   "the noted row was pruned: nothing can be said about it any more");
    if (walk->noted->seq > v->head.seq)
        return bad(v, "entry", v->head.seq + 1,
                   "the row is missing: a head of %lld was noted",
                   (long long)walk->noted->seq);
    return bad(v, "entry", walk->noted->seq,
               "the row is not the one that was noted: the chain was written anew");
}

static int
check_chain(struct ledger *ledger, struct walk *walk, struct err *err)
{
    char sql[1024];
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    snprintf(sql, sizeof(sql), "%s ORDER BY seq", sql_select_entry);
    int r = ledger_prepare(ledger, sql, &s, err);
    if (r < 0)
        return r;
    walk->at = walk->v->anchor;
    note(walk);
    int rc = SQLITE_DONE;
    while (walk->v->sound && (rc = sqlite3_step(s)) == SQLITE_ROW)
        check_row(walk, s);
    if (!walk->v->sound)
        return 0;
    if (rc != SQLITE_DONE)
        return ledger_fail(ledger, "read it", err);
    return check_head(walk);
}

/* --- what else there is --- */

/* Each selects the rows that are wrong: number, and nothing else. */
static const struct relation {
    const char *table, *sql, *text;
} relations[] = {
    /* clang-format off */
    {"entry", "SELECT n.seq FROM entry n LEFT JOIN entry i ON i.seq = n.intent "
              "WHERE n.kind <> 'intent' AND n.intent > (SELECT anchor_seq FROM chain) "
              "AND (i.seq IS NULL OR i.seq > n.seq OR i.kind <> 'intent' "
              "OR i.run <> n.run)",
     "there is no intent for it"},
    {"entry", "SELECT seq FROM entry WHERE kind NOT IN ('intent', 'request') "
              "AND intent IS NULL",
     "there is no intent for it"},
    {"entry", "SELECT max(seq) FROM entry WHERE kind = 'outcome' GROUP BY intent "
              "HAVING count(*) > 1",
     "it is the second outcome of one run"},
    {"open", "SELECT intent FROM open WHERE intent NOT IN "
             "(SELECT seq FROM entry WHERE kind = 'intent')",
     "there is no such intent"},
    {"open", "SELECT intent FROM open WHERE intent IN "
             "(SELECT intent FROM entry WHERE kind = 'outcome')",
     "that intent has its outcome"},
    {"open", "SELECT seq FROM entry i WHERE kind = 'intent' AND seq NOT IN "
             "(SELECT intent FROM open) AND NOT EXISTS "
             "(SELECT 1 FROM entry o WHERE o.intent = i.seq AND o.kind = 'outcome')",
     "the row is missing: that intent has no outcome"},
    {"code", "SELECT max(e.seq) FROM entry e LEFT JOIN code c ON c.hash = e.code "
             "WHERE e.kind = 'intent' AND e.code_kept GROUP BY e.code "
             "HAVING c.hash IS NULL OR c.last <> max(e.seq)",
     "the text of that intent's code is missing, or was used by another one since"},
    {"code", "SELECT last FROM code WHERE hash NOT IN (SELECT code FROM entry WHERE "
             "kind = 'intent' AND code_kept AND code IS NOT NULL)",
     "no intent names that text"},
    {"code", "SELECT max(e.seq) FROM entry e JOIN code c ON c.hash = e.code "
             "WHERE e.kind = 'intent' AND e.code_bytes <> length(c.text)",
     "the text has not the length that the intent says"},
    /* clang-format on */
};

static int
check_relation(struct ledger *ledger, const struct relation *relation,
               struct ledger_verdict *v, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, relation->sql, &s, err);
    if (r < 0)
        return r;
    int rc = sqlite3_step(s);
    if (rc == SQLITE_DONE ||
        (rc == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_NULL))
        return 0;
    if (rc != SQLITE_ROW)
        return ledger_fail(ledger, "read it", err);
    return bad(v, relation->table, sqlite3_column_int64(s, 0), "%s", relation->text);
}

static int
check_code(struct ledger *ledger, struct ledger_verdict *v, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, "SELECT hash, text, last FROM code", &s, err);
    if (r < 0)
        return r;
    int rc = SQLITE_DONE;
    while (v->sound && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        unsigned char hash[LEDGER_HASH_BYTES];
        struct span text = {sqlite3_column_blob(s, 1),
                            (size_t)sqlite3_column_bytes(s, 1)};
        code_hash(text, hash);
        if (sqlite3_column_bytes(s, 0) != LEDGER_HASH_BYTES ||
            memcmp(sqlite3_column_blob(s, 0), hash, LEDGER_HASH_BYTES) != 0)
            bad(v, "code", sqlite3_column_int64(s, 2), "the text was changed");
    }
    return !v->sound || rc == SQLITE_DONE ? 0 : ledger_fail(ledger, "read it", err);
}

/* Indexes and pages: a query must find what a walk finds. */
static int
check_file(struct ledger *ledger, struct ledger_verdict *v, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, "PRAGMA integrity_check(1)", &s, err);
    if (r < 0)
        return r;
    if (sqlite3_step(s) != SQLITE_ROW)
        return ledger_fail(ledger, "read it", err);
    const char *text = (const char *)sqlite3_column_text(s, 0);
    if (text && strcmp(text, "ok") == 0)
        return 0;
    return bad(v, "file", 0, "the file is damaged: %.120s", text ? text : "");
}

static int
count_open(struct ledger *ledger, struct ledger_verdict *v, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, "SELECT count(*) FROM open", &s, err);
    if (r < 0)
        return r;
    if (sqlite3_step(s) != SQLITE_ROW)
        return ledger_fail(ledger, "read it", err);
    v->open = (uint64_t)sqlite3_column_int64(s, 0);
    return 0;
}

static int
check_all(struct ledger *ledger, struct walk *walk, struct err *err)
{
    struct ledger_verdict *v = walk->v;
    int r = check_ends(ledger, v, err);
    if (r == 0 && v->sound)
        r = check_chain(ledger, walk, err);
    if (r == 0 && v->sound)
        r = check_code(ledger, v, err);
    for (size_t i = 0; i < sizeof(relations) / sizeof(*relations) && r == 0 && v->sound;
         i++)
        r = check_relation(ledger, &relations[i], v, err);
    if (r == 0 && v->sound)
        r = check_file(ledger, v, err);
    return r < 0 ? r : count_open(ledger, v, err);
}

int
ledger_verify(struct ledger *ledger, const struct ledger_head *noted,
              struct ledger_verdict *ret, struct err *err)
{
    struct ledger_verdict v = {.sound = true};
    struct walk walk = {.v = &v, .noted = noted};
    int r = ledger_exec(ledger, "BEGIN", "read it", err);
    if (r < 0)
        return r;
    r = check_all(ledger, &walk, err);
    chain_abandon(ledger);
    if (r == 0)
        *ret = v;
    return r;
}
