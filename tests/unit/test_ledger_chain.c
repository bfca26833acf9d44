/* The chain of the ledger: whatever is changed, removed or moved is found and named. */
#include "ledger_fixture.h"

enum { VALUE_BYTES = 512, ROWS_MAX = 64 };

static void
fill(void)
{
    add_run("print(1)\n", NULL, STATUS_OK, NULL, NULL);
    add_run("print(2)\n", "s_1", STATUS_VIOLATION, "socket(AF_INET)", NULL);
    add_run("print(1)\n", NULL, STATUS_MEMORY, NULL, NULL);
    struct outcome outcome;
    struct err err;
    int64_t seq;
    outcome_init(&outcome);
    const struct ledger_intent intent = intent_of(&outcome, "print(3)\n");
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err); /* and stays open */
    outcome_done(&outcome);
    assert_sound();
}

struct stored {
    int type;
    int64_t integer;
    int n;
    char bytes[VALUE_BYTES];
};

static struct stored
read_value(const char *table, const char *column, int64_t row, const char *key)
{
    char text[VALUE_BYTES];
    struct stored value = {0};
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    snprintf(text, sizeof(text), "SELECT \"%s\" FROM %s ORDER BY %s LIMIT 1 OFFSET %lld",
             column, table, key, (long long)row);
    assert_int_equal(sqlite3_prepare_v2(at.raw, text, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    value.type = sqlite3_column_type(s, 0);
    value.integer = sqlite3_column_int64(s, 0);
    value.n = sqlite3_column_bytes(s, 0);
    assert_true(value.n < VALUE_BYTES);
    if (value.n > 0)
        memcpy(value.bytes, sqlite3_column_blob(s, 0), (size_t)value.n);
    return value;
}

/* Puts a value in place of another; false when the table's own rules refuse it. */
static bool
write_value(const char *table, const char *column, const char *key,
            const struct stored *key_value, const struct stored *value)
{
    char text[VALUE_BYTES];
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    snprintf(text, sizeof(text), "UPDATE %s SET \"%s\" = ?1 WHERE \"%s\" = ?2", table,
             column, key);
    assert_int_equal(sqlite3_prepare_v2(at.raw, text, -1, &s, NULL), SQLITE_OK);
    const struct stored *values[] = {value, key_value};
    for (int i = 0; i < 2; i++) {
        if (values[i]->type == SQLITE_INTEGER)
            sqlite3_bind_int64(s, i + 1, values[i]->integer);
        else if (values[i]->type == SQLITE_TEXT)
            sqlite3_bind_text(s, i + 1, values[i]->bytes, values[i]->n, SQLITE_TRANSIENT);
        else if (values[i]->type == SQLITE_BLOB)
            sqlite3_bind_blob(s, i + 1, values[i]->bytes, values[i]->n, SQLITE_TRANSIENT);
    }
    return sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(at.raw) == 1;
}

struct spot {
    const char *table, *column, *key;
    int64_t row;     /* counted from 0, in the order of the key */
    int64_t bad_row; /* what verify must say; 0: it may say another, for a key moved */
};

/* One change, the verdict, and back. Returns whether there was a change to judge. */
static bool
try_change(const struct spot *p, const struct stored *old, const struct stored *changed)
{
    char what[VALUE_BYTES];
    const struct stored key = read_value(p->table, p->key, p->row, p->key);
    const struct stored *back = strcmp(p->column, p->key) == 0 ? changed : &key;
    snprintf(what, sizeof(what), "%s.%s of row %lld", p->table, p->column,
             (long long)p->row);
    if (!write_value(p->table, p->column, p->key, &key, changed))
        return false;
    if (p->bad_row != 0) {
        assert_bad(p->table, p->bad_row, what);
    } else if (verdict_of(NULL).sound) {
        fail_msg("%s: not seen", what);
    }
    assert_true(write_value(p->table, p->column, p->key, back, old));
    return true;
}

/* Every byte of a value, its absence, and for numbers their neighbours. */
static size_t
try_value(const struct spot *p)
{
    const struct stored old = read_value(p->table, p->column, p->row, p->key);
    const struct stored nothing = {.type = SQLITE_NULL};
    const struct stored others[] = {
        {.type = SQLITE_INTEGER, .integer = 987654},
        {.type = SQLITE_TEXT, .n = 1, .bytes = "x"},
        {.type = SQLITE_BLOB, .n = 1, .bytes = "x"},
    };
    size_t tried = old.type != SQLITE_NULL && try_change(p, &old, &nothing);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others) && old.type == SQLITE_NULL;
         i++)
        tried += try_change(p, &old, &others[i]);
    for (int bit = 0; bit < 63 && old.type == SQLITE_INTEGER; bit += 9) {
        struct stored changed = old;
        changed.integer ^= 1LL << bit;
        tried += try_change(p, &old, &changed);
    }
    for (int i = 0; i < old.n && old.type != SQLITE_INTEGER; i++) {
        struct stored changed = old;
        changed.bytes[i] ^= 1;
        tried += try_change(p, &old, &changed);
    }
    return tried;
}

static void
test_every_value_of_the_chain_counts(void **state)
{
    (void)state;
    fill();
    int64_t rows = number("SELECT count(*) FROM entry");
    assert_int_equal(rows, 8);
    for (size_t column = 0; column < COLUMNS; column++) {
        for (int64_t row = 0; row < rows; row++) {
            const struct spot spot = {"entry", ledger_columns[column].name, "seq", row,
                                      column == C_SEQ ? 0 : row + 1};
            if (try_value(&spot) == 0)
                fail_msg("nothing was tried on %s of row %lld", spot.column,
                         (long long)row);
        }
    }
    assert_sound();
}

static void
test_every_value_of_the_other_tables_counts(void **state)
{
    (void)state;
    fill();
    static const struct {
        const char *table, *key, *columns[5];
    } tables[] = {
        {"chain", "id", {"anchor_seq", "anchor_hash", "head_seq", "head_hash", NULL}},
        {"open", "intent", {"intent", NULL}},
        {"code", "hash", {"hash", "text", "last", NULL}},
    };
    for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
        char count[VALUE_BYTES];
        snprintf(count, sizeof(count), "SELECT count(*) FROM %s", tables[t].table);
        int64_t rows = number(count);
        assert_true(rows > 0);
        for (int64_t row = 0; row < rows; row++)
            for (size_t c = 0; tables[t].columns[c]; c++) {
                const struct spot spot = {tables[t].table, tables[t].columns[c],
                                          tables[t].key, row, 0};
                assert_true(try_value(&spot) > 0);
            }
    }
    assert_sound();
}

static void
test_a_removed_row_is_named(void **state)
{
    (void)state;
    fill();
    static const char keep[] = "CREATE TEMP TABLE kept AS SELECT * FROM entry";
    sql(keep);
    for (int64_t row = 1; row <= 8; row++) {
        char text[VALUE_BYTES];
        snprintf(text, sizeof(text), "DELETE FROM entry WHERE seq = %lld",
                 (long long)row);
        sql(text);
        assert_bad("entry", row, text);
        snprintf(text, sizeof(text),
                 "INSERT INTO entry SELECT * FROM kept WHERE seq = %lld", (long long)row);
        sql(text);
    }
    assert_sound();
    sql("DELETE FROM open");
    assert_bad("open", 8, "the open intent");
    sql("INSERT INTO open VALUES (8), (2)");
    assert_bad("open", 2, "an open intent that is none");
    sql("DELETE FROM open WHERE intent = 2");
    sql("DELETE FROM code WHERE text = CAST('print(1)' || char(10) AS BLOB)");
    assert_bad("code", 6, "a text that an intent names");
}

static void
test_moved_rows_are_named(void **state)
{
    (void)state;
    fill();
    sql("UPDATE entry SET seq = 100 WHERE seq = 3; UPDATE entry SET seq = 3 WHERE seq = "
        "4;"
        "UPDATE entry SET seq = 4 WHERE seq = 100");
    assert_bad("entry", 3, "two rows in each other's place");
    sql("UPDATE entry SET seq = 100 WHERE seq = 3; UPDATE entry SET seq = 3 WHERE seq = "
        "4;"
        "UPDATE entry SET seq = 4 WHERE seq = 100");
    assert_sound();
    sql("INSERT INTO entry SELECT 9, kind, time_us, run, session, intent, policy, name, "
        "code, code_bytes, code_kept, owner, pid, status, exit_code, signal, limit_name, "
        "limit_value, message, error, wall_us, cpu_us, peak_memory_bytes, processes, "
        "stdout_bytes, stderr_bytes, incidents, incidents_dropped, interpreter, "
        "isolation, start, number, "
        "rule, layer, fact, action, act, reason, count, line, col, remedy, hash FROM "
        "entry WHERE seq = 8");
    assert_bad("entry", 9, "a row put in at the end");
    sql("DELETE FROM entry WHERE seq = 9; UPDATE entry SET seq = 0 WHERE seq = 1");
    assert_bad("entry", 0, "a row before the first");
}

/* Who can write the file can cut it and say that it always ended there. A head that was
 * noted elsewhere shows it; without one nothing can. */
static void
test_a_cut_tail_needs_a_noted_head(void **state)
{
    (void)state;
    fill();
    const struct ledger_head noted = verdict_of(NULL).head;
    assert_int_equal(noted.seq, 8);
    assert_true(verdict_of(&noted).sound);
    sql("DELETE FROM entry WHERE seq > 6; DELETE FROM open");
    assert_bad("entry", 7, "a cut tail");
    sql("DELETE FROM entry WHERE seq > 5;"
        "UPDATE code SET last = coalesce((SELECT max(seq) FROM entry WHERE code = "
        "code.hash AND kind = 'intent'), 0); DELETE FROM code WHERE last = 0;"
        "UPDATE chain SET head_seq = 5, head_hash = (SELECT hash FROM entry WHERE seq = "
        "5)");
    assert_sound(); /* told honestly in docs/LEDGER.md */
    struct ledger_verdict verdict = verdict_of(&noted);
    assert_false(verdict.sound);
    assert_int_equal(verdict.row, 6);
    struct ledger_head other = {.seq = 3};
    verdict = verdict_of(&other);
    assert_false(verdict.sound);
    assert_int_equal(verdict.row, 3);
}

static void
test_rows_go_on_after_the_head(void **state)
{
    (void)state;
    fill();
    const struct ledger_head noted = verdict_of(NULL).head;
    add_run("print(4)\n", NULL, STATUS_OK, NULL, NULL);
    assert_true(verdict_of(&noted).sound);
    assert_int_equal(verdict_of(NULL).rows, 10);
    assert_int_equal(verdict_of(NULL).open, 1);
}

/* --- pruning --- */

static void
test_old_rows_go_and_the_chain_holds(void **state)
{
    (void)state;
    struct err err;
    uint64_t rows;
    for (int i = 0; i < 5; i++)
        add_run(i == 4 ? "print('last')\n" : "print('early')\n", NULL, STATUS_OK, NULL,
                NULL);
    const struct ledger_retention keep_all = {.days = 1, .bytes = UINT64_MAX};
    must(ledger_prune(at.ledger, &keep_all, &rows, &err), &err);
    assert_int_equal(rows, 0);
    const struct ledger_retention keep_none = {.days = 0, .bytes = UINT64_MAX};
    struct ledger_head before = verdict_of(NULL).head, early;
    must(ledger_prune(at.ledger, &keep_none, &rows, &err), &err);
    assert_int_equal(rows, 8); /* all but the newest run */
    assert_sound();
    const struct ledger_verdict verdict = verdict_of(&before);
    assert_true(verdict.sound);
    assert_int_equal(verdict.anchor.seq, 8);
    assert_int_equal(verdict.rows, 2);
    assert_int_equal(number("SELECT count(*) FROM code"), 1);
    early = verdict.anchor;
    assert_true(verdict_of(&early).sound);
    early.hash[0] ^= 1;
    assert_false(verdict_of(&early).sound);
    add_run("print('more')\n", NULL, STATUS_OK, NULL, NULL);
    assert_sound();
    sql("DELETE FROM entry WHERE seq = 9");
    assert_bad("entry", 9, "the first row after the anchor");
}

static void
test_what_is_in_use_is_not_pruned(void **state)
{
    (void)state;
    struct err err;
    uint64_t rows;
    const struct ledger_retention keep_none = {.days = 0, .bytes = 0};
    add_run("print('a')\n", NULL, STATUS_OK, NULL, NULL);
    struct outcome outcome;
    int64_t seq;
    outcome_init(&outcome);
    const struct ledger_intent intent = intent_of(&outcome, "print('a')\n");
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err);
    add_run("print('b')\n", NULL, STATUS_OK, NULL, NULL);
    must(ledger_prune(at.ledger, &keep_none, &rows, &err), &err);
    assert_int_equal(rows, 2); /* not the open intent, and nothing after it */
    assert_sound();
    assert_int_equal(number("SELECT count(*) FROM code"), 2);
    must(ledger_outcome(at.ledger, seq, &outcome, false, &err), &err);
    assert_sound();
    outcome_done(&outcome);
}

static void
test_size_is_bounded(void **state)
{
    (void)state;
    enum { RUNS = 400, LIMIT = 128 * 1024, CODE = 2000 };
    const struct ledger_retention retention = {.days = 1, .bytes = LIMIT};
    struct err err;
    char code[CODE];
    uint64_t rows, removed = 0;
    memset(code, 'x', sizeof(code));
    code[CODE - 1] = '\0';
    for (int i = 0; i < RUNS; i++) {
        snprintf(code, 16, "#%d", i);
        code[strlen(code)] = ' ';
        add_run(code, NULL, STATUS_OK, "ptrace", NULL);
        must(ledger_prune(at.ledger, &retention, &rows, &err), &err);
        removed += rows;
    }
    assert_sound();
    assert_true(removed > RUNS);
    struct stat st;
    sql("PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(stat(at.path, &st), 0);
    /* A batch holds more than the limit here; it is never far beyond both. */
    assert_in_range(st.st_size, 1, 2 * LIMIT + 512 * 1024);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_value_of_the_chain_counts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_every_value_of_the_other_tables_counts,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_removed_row_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_rows_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_cut_tail_needs_a_noted_head, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_rows_go_on_after_the_head, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_old_rows_go_and_the_chain_holds, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_in_use_is_not_pruned, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_size_is_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("ledger chain", tests, NULL, NULL);
}
