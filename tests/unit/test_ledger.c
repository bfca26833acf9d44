/* The ledger: what is read back, who may use it, what it does when it cannot be written. */
#include "ledger_fixture.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { TEXT_BYTES = 512 };

/* --- the columns --- */

static void
test_columns_agree(void **state)
{
    (void)state;
    char text[1024];
    AUTO_STATEMENT sqlite3_stmt *s = NULL, *all = NULL;
    snprintf(text, sizeof(text), "%s", sql_select_entry);
    assert_int_equal(sqlite3_prepare_v2(at.raw, text, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(at.raw, "SELECT * FROM entry", -1, &all, NULL),
                     SQLITE_OK);
    static const char *const types[] = {
        [TYPE_INTEGER] = "INTEGER", [TYPE_TEXT] = "TEXT", [TYPE_BLOB] = "BLOB"};
    assert_int_equal(sqlite3_column_count(s), COLUMNS);
    assert_int_equal(sqlite3_column_count(all), COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        assert_string_equal(sqlite3_column_name(s, i), ledger_columns[i].name);
        assert_string_equal(sqlite3_column_name(all, i), ledger_columns[i].name);
        assert_string_equal(sqlite3_column_decltype(all, i),
                            types[ledger_columns[i].type]);
    }
}

/* No two rows share their bytes: what moves over the border of a column is another row. */
static void
test_borders_of_columns_count(void **state)
{
    (void)state;
    unsigned char before[LEDGER_HASH_BYTES] = {0}, hashes[4][LEDGER_HASH_BYTES];
    struct row rows[4] = {0};
    row_set_text(&rows[0], C_RUN, "ab");
    row_set_text(&rows[0], C_SESSION, "c");
    row_set_text(&rows[1], C_RUN, "a");
    row_set_text(&rows[1], C_SESSION, "bc");
    row_set_text(&rows[2], C_RUN, "abc");
    row_set_text(&rows[3], C_RUN, "abc");
    row_set_bytes(&rows[3], C_SESSION, "", 0); /* "" is not NULL */
    for (size_t i = 0; i < 4; i++)
        row_hash(before, &rows[i], hashes[i]);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(hashes[i], hashes[j], LEDGER_HASH_BYTES);
}

/* --- what is read back --- */

struct seen {
    size_t n;
    char first[TEXT_BYTES];
};

static int
see_run(void *context, const struct ledger_run *run)
{
    struct seen *seen = context;
    if (seen->n++ == 0)
        snprintf(seen->first, sizeof(seen->first), "%s %s %s %lld %s %s %s %d %lld",
                 run->id, run->session ? run->session : "-", run->status,
                 (long long)run->incidents, run->message ? run->message : "-",
                 run->isolation ? run->isolation : "-", run->error ? run->error : "-",
                 (int)run->exit_code, (long long)run->limit_value);
    return 0;
}

static int
see_incident(void *context, const struct ledger_incident *incident)
{
    struct seen *seen = context;
    if (seen->n++ == 0)
        snprintf(seen->first, sizeof(seen->first), "%s %s %s %s %s %lld %lld:%lld %s %d",
                 incident->id, incident->rule, incident->layer, incident->act,
                 incident->status, (long long)incident->count, (long long)incident->line,
                 (long long)incident->column, incident->reason, incident->fact);
    return 0;
}

static size_t
count_runs(const struct ledger_filter *filter, struct seen *seen)
{
    struct err err;
    *seen = (struct seen){0};
    must(ledger_each_run(at.ledger, filter, see_run, seen, &err), &err);
    return seen->n;
}

static size_t
count_incidents(const struct ledger_filter *filter)
{
    struct seen seen = {0};
    struct err err;
    must(ledger_each_incident(at.ledger, filter, see_incident, &seen, &err), &err);
    return seen.n;
}

static void
test_what_was_written_is_read(void **state)
{
    (void)state;
    char id[OUTCOME_ID_BYTES], incident[OUTCOME_ID_BYTES + 8], expected[TEXT_BYTES];
    struct seen seen = {0};
    struct err err = {0};
    add_run("print(1)\n", "s_1", STATUS_VIOLATION, "ptrace", id);
    must(ledger_find_run(at.ledger, id, see_run, &seen, &err), &err);
    snprintf(expected, sizeof(expected),
             "%s s_1 violation 1 a message user,seccomp ValueError 1 5", id);
    assert_string_equal(seen.first, expected);
    snprintf(incident, sizeof(incident), "%s.1", id);
    seen = (struct seen){0};
    must(ledger_find_incident(at.ledger, incident, see_incident, &seen, &err), &err);
    snprintf(expected, sizeof(expected),
             "%s system-call seccomp ptrace violation 2 3:7 a reason 1", incident);
    assert_string_equal(seen.first, expected);

    assert_int_equal(ledger_find_run(at.ledger, "r_none", see_run, &seen, &err), -ENOENT);
    snprintf(incident, sizeof(incident), "%s.2", id);
    assert_int_equal(ledger_find_incident(at.ledger, incident, see_incident, &seen, &err),
                     -ENOENT);
    assert_int_equal(ledger_find_incident(at.ledger, id, see_incident, &seen, &err),
                     -EINVAL);
}

static void
test_filters(void **state)
{
    (void)state;
    char ok[OUTCOME_ID_BYTES], bad[OUTCOME_ID_BYTES];
    struct seen seen;
    add_run("1\n", NULL, STATUS_OK, NULL, ok);
    add_run("2\n", "s_1", STATUS_VIOLATION, "ptrace", bad);
    add_run("3\n", "s_1", STATUS_OK, "mount", NULL);
    const struct {
        struct ledger_filter filter;
        size_t runs, incidents;
    } rows[] = {
        {{0}, 3, 2},
        {{.limit = 1}, 1, 1},
        {{.status = "ok"}, 2, 1},
        {{.status = "open"}, 0, 0},
        {{.session = "s_1"}, 2, 2},
        {{.session = "s_1", .status = "violation"}, 1, 1},
        {{.rule = "system-call"}, 2, 2},
        {{.rule = "system-call' OR 1 --"}, 0, 0},
        {{.layer = "seccomp"}, 2, 2},
        {{.layer = "hook"}, 0, 0},
        {{.run = bad}, 1, 1},
        {{.run = ok}, 1, 0},
        {{.since_us = 1}, 3, 2},
        {{.since_us = INT64_MAX}, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(count_runs(&rows[i].filter, &seen), rows[i].runs);
        assert_int_equal(count_incidents(&rows[i].filter), rows[i].incidents);
    }
}

static void
test_hostile_bytes_are_kept_as_text(void **state)
{
    (void)state;
    struct outcome outcome;
    struct err err;
    int64_t seq;
    outcome_init(&outcome);
    outcome.wall_us = UINT64_MAX;
    memset(outcome.message, 0xFF, sizeof(outcome.message));
    memset(outcome.error_name, 'e', sizeof(outcome.error_name) - 1);
    memset(outcome.error_value, 0x80, sizeof(outcome.error_value) - 1);
    outcome.has_error = true;
    for (size_t i = 0; i < OUTCOME_INCIDENTS_MAX + 5; i++) {
        char act[16];
        snprintf(act, sizeof(act), "\xff\xfe%zu", i);
        add_incident(&outcome, "no-such-rule", "hook", act);
    }
    struct ledger_intent intent = intent_of(&outcome, "x");
    intent.name = "\xed\xa0\x80\x1b[2J.py";
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err);
    must(ledger_outcome(at.ledger, seq, &outcome, false, &err), &err);
    assert_sound();
    assert_int_equal(number("SELECT count(*) FROM entry WHERE act LIKE char(65533)||'%'"),
                     OUTCOME_INCIDENTS_MAX);
    assert_int_equal(number("SELECT incidents FROM entry WHERE kind = 'outcome'"),
                     OUTCOME_INCIDENTS_MAX);
    assert_int_equal(number("SELECT incidents_dropped FROM entry WHERE kind = 'outcome'"),
                     5 * 2);
    assert_int_equal(number("SELECT wall_us FROM entry WHERE kind = 'outcome'"),
                     INT64_MAX);
    assert_int_equal(
        number("SELECT remedy IS NULL FROM entry WHERE kind = 'incident' LIMIT 1"), 1);
    outcome_done(&outcome);
}

static void
test_code_is_kept_or_not(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = {.max = TEXT_BYTES};
    struct outcome outcome;
    struct err err;
    int64_t seq;
    unsigned char hash[LEDGER_HASH_BYTES];
    outcome_init(&outcome);
    struct ledger_intent intent = intent_of(&outcome, "print('secret')\n");
    intent.keep_code = false;
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err);
    must(ledger_outcome(at.ledger, seq, &outcome, true, &err), &err);
    code_hash(intent.code, hash);
    assert_int_equal(ledger_code(at.ledger, hash, &text, &err), -ENOENT);
    assert_int_equal(number("SELECT count(*) FROM code"), 0);
    assert_sound();
    add_run("print('secret')\n", NULL, STATUS_OK, NULL, NULL);
    add_run("print('secret')\n", NULL, STATUS_OK, NULL, NULL);
    must(ledger_code(at.ledger, hash, &text, &err), &err);
    assert_string_equal(text.p, "print('secret')\n");
    assert_int_equal(number("SELECT count(*) FROM code"), 1);
    assert_sound();
    assert_int_equal(ledger_outcome(at.ledger, seq, &outcome, false, &err), -EEXIST);
    assert_int_equal(ledger_outcome(at.ledger, 999, &outcome, false, &err), -EEXIST);
    assert_sound();
    outcome_done(&outcome);
}

static void
test_remedies(void **state)
{
    (void)state;
    struct incident incident = {.rule = "system-call", .act = "socket(AF_INET)"};
    assert_non_null(strstr(ledger_remedy(&incident), "network"));
    incident = (struct incident){.rule = "system-call", .act = "ptrace"};
    assert_non_null(ledger_remedy(&incident));
    incident = (struct incident){.rule = "dynamic-code"}; /* a rule of validation */
    assert_non_null(ledger_remedy(&incident));
    incident = (struct incident){.rule = "no-such-rule"};
    assert_null(ledger_remedy(&incident));
}

/* --- who may use it --- */

static void
expect_open(int expected, const char *part)
{
    struct ledger *ledger = NULL;
    struct err err = {0};
    int r = ledger_open(at.path, LEDGER_WRITE, &ledger, &err);
    ledger_free(ledger);
    if (r != expected || (r < 0 && !strstr(err.text, part)))
        fail_msg("%d (%s), not %d with '%s'", r, err.text, expected, part);
}

static void
test_only_its_user_may_write_it(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(stat(at.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    expect_open(0, "");
    assert_int_equal(chmod(at.path, 0620), 0);
    expect_open(-EPERM, "may be written by others");
    assert_int_equal(chmod(at.path, 0600), 0);
    assert_int_equal(chmod(at.folder, 0702), 0);
    expect_open(-EPERM, "may be written by others");
    assert_int_equal(chmod(at.folder, 0700), 0);
    char other[PATH_BYTES + 32];
    snprintf(other, sizeof(other), "%s/other", at.folder);
    assert_int_equal(link(at.path, other), 0);
    expect_open(-EPERM, "hard link");
    assert_int_equal(unlink(other), 0);
    assert_int_equal(rename(at.path, other), 0);
    assert_int_equal(symlink(other, at.path), 0);
    expect_open(-EPERM, "not a regular file");
    assert_int_equal(unlink(at.path), 0);
    assert_int_equal(rename(other, at.path), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(at.path, 12345, (gid_t)-1), 0);
        expect_open(-EPERM, "another user");
        assert_int_equal(chown(at.path, 0, (gid_t)-1), 0);
        assert_int_equal(chown(at.folder, 12345, (gid_t)-1), 0);
        expect_open(-EPERM, "another user");
        assert_int_equal(chown(at.folder, 0, (gid_t)-1), 0);
    }
    expect_open(0, "");
}

static void
replace_file(const char *bytes)
{
    AUTO_CLOSE int fd = open(at.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, strlen(bytes)), 0);
}

static void
test_other_files_are_left_alone(void **state)
{
    (void)state;
    struct err err = {0};
    sql("PRAGMA user_version = 99");
    expect_open(-EPROTONOSUPPORT, "newer adyton");
    sql("PRAGMA user_version = 1; PRAGMA application_id = 7");
    expect_open(-EMEDIUMTYPE, "no ledger of adyton");
    sqlite3_close(at.raw);
    ledger_free(at.ledger);
    at.raw = NULL;
    at.ledger = NULL;
    ledger_remove(at.path);
    assert_int_equal(ledger_open(at.path, LEDGER_READ, &at.ledger, &err), -ENOENT);
    replace_file(
        "# A text that somebody keeps here, and that is long enough for a head.\n"
        "# It is no database and must not become one.\n");
    expect_open(-EBADMSG, "no database");
    replace_file(""); /* an empty file is a ledger that was never finished */
    assert_int_equal(ledger_open(at.path, LEDGER_READ, &at.ledger, &err), -ENOENT);
    expect_open(0, "");
}

/* --- intents that nobody ends --- */

/* A child with an intent that it leaves open; it says so and waits to be killed. */
static pid_t
start_child(int *ret_said)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct ledger *ledger;
        struct outcome outcome;
        struct err err;
        int64_t seq = 0;
        outcome_init(&outcome);
        const struct ledger_intent intent = intent_of(&outcome, "child");
        if (ledger_open(at.path, LEDGER_WRITE, &ledger, &err) == 0 &&
            ledger_intent(ledger, &intent, &seq, &err) == 0)
            (void)!write(ends[1], &seq, sizeof(seq));
        pause();
        _exit(0);
    }
    close(ends[1]);
    *ret_said = ends[0];
    return pid;
}

static void
end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
test_open_intents_of_the_dead_are_closed(void **state)
{
    (void)state;
    int64_t seqs[2] = {0};
    int said[2];
    struct seen seen;
    uint64_t closed;
    struct err err;
    const struct ledger_filter open_ones = {.status = "open"},
                               failed = {.status = "failed"};
    /* SQLite must not be carried over a fork. */
    sqlite3_close(at.raw);
    at.raw = NULL;
    ledger_free(at.ledger);
    at.ledger = NULL;
    pid_t dies = start_child(&said[0]), lives = start_child(&said[1]);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(read(said[i], &seqs[i], sizeof(seqs[i])), sizeof(seqs[i]));
    end_child(dies);
    must(ledger_open(at.path, LEDGER_WRITE, &at.ledger, &err), &err);
    assert_int_equal(count_runs(&open_ones, &seen), 1);
    assert_int_equal(count_runs(&failed, &seen), 1);
    assert_non_null(strstr(seen.first, "ended before this run did"));
    assert_sound();
    must(ledger_close_open_intents(at.ledger, &closed, &err), &err);
    assert_int_equal(closed, 0); /* the living keeps its own */
    end_child(lives);
    must(ledger_close_open_intents(at.ledger, &closed, &err), &err);
    assert_int_equal(closed, 1);
    assert_int_equal(count_runs(&open_ones, &seen), 0);
    assert_int_equal(count_runs(&failed, &seen), 2);
    assert_sound();
    close(said[0]);
    close(said[1]);
}

static void
test_our_own_open_intents_stay(void **state)
{
    (void)state;
    struct ledger *second = NULL;
    struct outcome outcome;
    struct err err;
    uint64_t closed;
    int64_t seq;
    outcome_init(&outcome);
    const struct ledger_intent intent = intent_of(&outcome, "x");
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err);
    must(ledger_open(at.path, LEDGER_WRITE, &second, &err), &err);
    must(ledger_close_open_intents(second, &closed, &err), &err);
    assert_int_equal(closed, 0);
    ledger_free(second); /* its end releases no lock of the first */
    second = NULL;
    must(ledger_open(at.path, LEDGER_WRITE, &second, &err), &err);
    must(ledger_outcome(at.ledger, seq, &outcome, false, &err), &err);
    ledger_free(second);
    assert_sound();
    outcome_done(&outcome);
}

/* --- what cannot be written --- */

static void
test_a_full_ledger_takes_no_intent(void **state)
{
    (void)state;
    struct rlimit old, small;
    struct stat st;
    char wal[PATH_BYTES + 32], code[20000];
    struct outcome outcome;
    struct err err = {0};
    int64_t seq = 0;
    memset(code, 'x', sizeof(code) - 1);
    code[sizeof(code) - 1] = '\0';
    outcome_init(&outcome);
    add_run("before\n", NULL, STATUS_OK, NULL, NULL);
    snprintf(wal, sizeof(wal), "%s-wal", at.path);
    assert_int_equal(stat(wal, &st), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){(rlim_t)st.st_size + 100, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct ledger_intent intent = intent_of(&outcome, code);
    int r = ledger_intent(at.ledger, &intent, &seq, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(r < 0);
    assert_int_equal(seq, 0);
    assert_non_null(strstr(err.text, at.path));
    assert_sound();
    intent.code = span_of("after\n"); /* and it goes on when there is room again */
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err);
    assert_sound();
    outcome_done(&outcome);
}

static void
test_a_flush_is_not_waited_for(void **state)
{
    (void)state;
    struct err err;
    add_run("1\n", NULL, STATUS_OK, NULL, NULL);
    assert_true(at.ledger->is_dirty);
    assert_true(ledger_flush_soon(at.ledger));
    pid_t flusher = at.ledger->flusher;
    assert_true(flusher > 0);
    assert_false(at.ledger->is_dirty);
    ledger_flush_soon(at.ledger); /* nothing new: no second one */
    must(ledger_flush(at.ledger, &err), &err);
    assert_int_equal(at.ledger->flusher, 0);
    assert_false(ledger_flush_soon(at.ledger)); /* an idle one needs no timer */
    assert_int_equal(kill(flusher, 0), -1);
    add_run("2\n", NULL, STATUS_OK, NULL, NULL);
    ledger_flush_soon(at.ledger);
    assert_int_equal(kill(at.ledger->flusher, SIGKILL), 0); /* it did not get to it, */
    flush_reap(at.ledger, true);
    if (at.ledger->is_dirty) /* unless it was faster than we: then the work is left */
        must(ledger_flush(at.ledger, &err), &err);
    assert_false(at.ledger->is_dirty);
}

static int
count_steps(unsigned kind, void *context, void *statement, void *extra)
{
    (void)kind, (void)extra;
    int steps = sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
    int *most = context;
    if (steps > *most) {
        *most = steps;
        if (steps > 4)
            print_error("%d rows are read for: %s\n", steps, sqlite3_sql(statement));
    }
    return 0;
}

/* A run costs the same in a ledger of a day and of a year. */
static void
test_no_statement_of_a_run_reads_all_rows(void **state)
{
    (void)state;
    enum { RUNS = 40, STEPS_MAX = 4 };
    struct err err;
    for (int i = 0; i < RUNS; i++)
        add_run("1\n", NULL, STATUS_OK, NULL, NULL);
    int most = 0;
    uint64_t n;
    sqlite3_trace_v2(at.ledger->db, SQLITE_TRACE_PROFILE, count_steps, &most);
    must(ledger_close_open_intents(at.ledger, &n, &err), &err);
    add_run("2\n", NULL, STATUS_EXCEPTION, NULL, NULL);
    const struct ledger_retention retention = {.days = 30, .bytes = 1 << 30};
    must(ledger_prune(at.ledger, &retention, &n, &err), &err);
    assert_true(most <= STEPS_MAX);
    /* The control: one that does read all is seen. */
    AUTO_STATEMENT sqlite3_stmt *all = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(at.ledger->db, "SELECT seq FROM entry", -1, &all, NULL),
        SQLITE_OK);
    while (sqlite3_step(all) == SQLITE_ROW)
        ;
    sqlite3_reset(all);
    assert_true(most > STEPS_MAX);
    sqlite3_trace_v2(at.ledger->db, 0, NULL, NULL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_columns_agree, set_up, tear_down),
        cmocka_unit_test(test_borders_of_columns_count),
        cmocka_unit_test_setup_teardown(test_what_was_written_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_filters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_bytes_are_kept_as_text, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_code_is_kept_or_not, set_up, tear_down),
        cmocka_unit_test(test_remedies),
        cmocka_unit_test_setup_teardown(test_only_its_user_may_write_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_other_files_are_left_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_open_intents_of_the_dead_are_closed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_our_own_open_intents_stay, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_ledger_takes_no_intent, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_no_statement_of_a_run_reads_all_rows, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_flush_is_not_waited_for, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
