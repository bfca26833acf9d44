/* The command line's own parts: the terminal filter, options, endings, suggestions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "door/nearest.h"
#include "door/run_ending.h"
#include "door/run_options.h"
#include "door/terminal.h"

#define ROWS(table) (sizeof(table) / sizeof(*(table)))

enum { TEXT_BYTES = 1 << 16 };

/* ---- terminal ---- */

static const struct {
    const char *bytes, *shown;
} terminal_rows[] = {
    {"plain\ttext\r\n", "plain\ttext\r\n"},
    {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
    /* Colours pass, and are reset at the end when the code did not. */
    {"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"},
    {"\x1b[31mred", "\x1b[31mred\x1b[0m"},
    {"\x1b[38:2::1:2:3mx\x1b[m", "\x1b[38:2::1:2:3mx\x1b[m"},
    /* Cursor, screen, scroll region, title, clipboard, answers, DCS, APC, reset. */
    {"\x1b[2J", "\\x1b[2J"},
    {"\x1b[1A\x1b[2K", "\\x1b[1A\\x1b[2K"},
    {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
    {"\x1b]52;c;aGk=\x1b\\", "\\x1b]52;c;aGk=\\x1b\\"},
    {"\x1bP+q\x1b\\", "\\x1bP+q\\x1b\\"},
    {"\x1b_x\x1b\\", "\\x1b_x\\x1b\\"},
    {"\x1b"
     "c",
     "\\x1b"
     "c"},
    {"\x1b[6n", "\\x1b[6n"},
    {"\x1b[>4;2m", "\\x1b[>4;2m"}, /* ends in 'm', and changes the keyboard */
    {"\x1b[?1m", "\\x1b[?1m"},
    {"\x1b[1 m", "\\x1b[1 m"},
    {"\x1b\x1b[31mx", "\\x1b\x1b[31mx\x1b[0m"},
    {"\x1b[\x1b[31mx", "\\x1b[\x1b[31mx\x1b[0m"},
    /* C0 and C1, as bytes and as characters; DEL; what is no character. */
    {"a\x08\x0b\x0c\x0e\x7f", "a\\x08\\x0b\\x0c\\x0e\\u007f"},
    {"\xC2\x9B"
     "2J",
     "\\u009b2J"},
    {"\xC2\x80\xC2\x9F\xC2\xA0", "\\u0080\\u009f\xC2\xA0"},
    {"\x9B"
     "2J",
     "\\x9b2J"},
    {"\xFF\xC0\x80", "\\xff\\xc0\\x80"},
    /* Cut off at the end. */
    {"x\xE2\x82", "x\\xe2\\x82"},
    {"x\x1b", "x\\x1b"},
    {"x\x1b[31", "x\\x1b[31"},
    /* A colour that never ends is not waited for. */
    {"\x1b[1111111111222222222233333333334444444444555555555566666666667mx",
     "\\x1b[1111111111222222222233333333334444444444555555555566666666667mx"},
};

static void
assert_shown(size_t row, const struct buf *out, const char *how)
{
    const char *shown = out->p ? out->p : "";
    if (strcmp(shown, terminal_rows[row].shown) != 0)
        fail_msg("row %zu, %s: '%s'", row, how, shown);
}

static void
test_terminal_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(terminal_rows); i++) {
        struct terminal terminal = {0};
        AUTO_BUF struct buf out;
        buf_init(&out, TEXT_BYTES);
        assert_int_equal(
            terminal_append(&terminal, span_of(terminal_rows[i].bytes), &out), 0);
        assert_int_equal(terminal_finish(&terminal, &out), 0);
        assert_shown(i, &out, "whole");
    }
}

/* Pieces may end anywhere: what is shown must not depend on it. */
static void
test_terminal_in_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(terminal_rows); i++) {
        struct span all = span_of(terminal_rows[i].bytes);
        for (size_t cut = 0; cut <= all.n; cut++) {
            struct terminal terminal = {0};
            AUTO_BUF struct buf out;
            buf_init(&out, TEXT_BYTES);
            struct span first = {all.p, cut}, second = {all.p + cut, all.n - cut};
            assert_int_equal(terminal_append(&terminal, first, &out), 0);
            assert_int_equal(terminal_append(&terminal, second, &out), 0);
            assert_int_equal(terminal_finish(&terminal, &out), 0);
            assert_shown(i, &out, "cut in two");
        }
        struct terminal terminal = {0};
        AUTO_BUF struct buf out;
        buf_init(&out, TEXT_BYTES);
        for (size_t at = 0; at < all.n; at++)
            assert_int_equal(
                terminal_append(&terminal, (struct span){all.p + at, 1}, &out), 0);
        assert_int_equal(terminal_finish(&terminal, &out), 0);
        assert_shown(i, &out, "byte by byte");
    }
}

/* No byte, alone or after an ESC, gets a control other than line ends, tabs and colours
 * out. */
static void
test_terminal_every_pair(void **state)
{
    (void)state;
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            struct terminal terminal = {0};
            AUTO_BUF struct buf out;
            buf_init(&out, TEXT_BYTES);
            const char bytes[2] = {(char)first, (char)second};
            assert_int_equal(terminal_append(&terminal, (struct span){bytes, 2}, &out),
                             0);
            assert_int_equal(terminal_finish(&terminal, &out), 0);
            for (size_t i = 0; i < out.n; i++) {
                unsigned char c = (unsigned char)out.p[i];
                assert_true(c >= 0x20 || c == '\n' || c == '\t' || c == '\r');
                assert_true(c != 0x7F);
                if (c == 0xC2)
                    assert_true((unsigned char)out.p[i + 1] >= 0xA0);
            }
        }
    }
}

static void
test_terminal_one_line(void **state)
{
    (void)state;
    AUTO_BUF struct buf out;
    buf_init(&out, TEXT_BYTES);
    assert_int_equal(terminal_append_line("a\nadyton: ok\r\t\x1b[31m\xC3\xA9", &out), 0);
    assert_string_equal(out.p, "a\\x0aadyton: ok\\x0d\\x09\\x1b[31m\xC3\xA9");
    AUTO_BUF struct buf small;
    buf_init(&small, 3);
    assert_int_equal(terminal_append_line("\x1b", &small), -ENOSPC);
}

/* ---- options ---- */

static int
parse(struct run_options *options, struct err *err, const char *const *words)
{
    char storage[16][64];
    char *argv[17];
    int argc = 1;
    argv[0] = storage[0];
    snprintf(storage[0], sizeof(storage[0]), "run");
    for (; words[argc - 1]; argc++) {
        assert_true(argc < 16);
        snprintf(storage[argc], sizeof(storage[argc]), "%s", words[argc - 1]);
        argv[argc] = storage[argc];
    }
    argv[argc] = NULL;
    *err = (struct err){0};
    int r = run_options_parse(argc, argv, options, err);
    options->args = NULL; /* it pointed into our own frame */
    return r;
}

static void
test_options_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words[6];
        const char *says;
    } rows[] = {
        {{NULL}, "nothing to run"},
        {{"--", "x.py", NULL}, "nothing to run"},
        {{"--timout", "3", "x.py", NULL}, "did you mean --timeout?"},
        {{"--tiemout=3", "x.py", NULL}, "did you mean --timeout?"},
        {{"--frobnicate", "x.py", NULL}, "unknown option '--frobnicate'"},
        {{"-x", "x.py", NULL}, "unknown option '-x'"},
        {{"x.py", "y.py", NULL}, "after --"},
        {{"-c", "pass", "x.py", NULL}, "after --"},
        {{"x.py", "-c", "pass", NULL}, "already the file"},
        {{"x.py", "--timeout", NULL}, "--timeout needs a value: TIME"},
        {{"x.py", "--file", NULL}, "--file needs a value: PATH"},
        {{"--json=yes", "x.py", NULL}, "--json takes no value"},
        {{"x.py", "--base64", NULL}, "needs --json"},
        {{"-", "--stdin", "-", NULL}, "already the code"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct run_options options;
        struct err err;
        assert_int_equal(parse(&options, &err, rows[i].words) < 0, 1);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: %s", i, err.text);
    }
}

static void
test_options_taken(void **state)
{
    (void)state;
    struct run_options o;
    struct err err;
    static const char *const words[] = {
        "--timeout", "3s", "x.py", "--timeout=2s", "--json", "--file", "a=b",
        "--file=c",  "-q", "-v",   "--pids=",      "--",     "--json", NULL};
    assert_int_equal(parse(&o, &err, words), 0);
    assert_string_equal(o.policy, "standard");
    assert_int_equal(o.limits_n,
                     2); /* the second --timeout took the place of the first */
    assert_ptr_equal(o.limits[0].field, policy_field_by_option("--timeout"));
    assert_int_equal(o.files_n, 2);
    assert_int_equal(o.args_n, 1);
    assert_true(o.json && !o.base64 && !o.help);
    assert_int_equal(o.verbosity, RUN_VERBOSE);

    static const char *const help[] = {"--help", NULL};
    assert_int_equal(parse(&o, &err, help), 0);
    assert_true(o.help);
    static const char *const dash[] = {"-", NULL};
    assert_int_equal(parse(&o, &err, dash), 0);
}

/* A limit must not hide behind an option of the same name, nor an option twice in the
 * table. */
static void
test_option_names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < run_option_table_n; i++) {
        const struct run_option *row = &run_option_table[i];
        assert_memory_equal(row->name, "--", 2);
        assert_null(policy_field_by_option(row->name));
        assert_true(row->help[strlen(row->help) - 1] == '.');
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(row->name, run_option_table[j].name);
            if (row->brief && run_option_table[j].brief)
                assert_string_not_equal(row->brief, run_option_table[j].brief);
        }
    }
}

/* ---- ending ---- */

static void
ending(const struct outcome *outcome, enum run_verbosity verbosity, struct buf *out)
{
    struct run_options options = {.verbosity = verbosity};
    buf_done(out);
    buf_init(out, TEXT_BYTES);
    assert_int_equal(run_ending_lines(&options, outcome, out), 0);
}

static void
test_ending_of_a_timeout(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {0};
    struct outcome o;
    outcome_init(&o);
    o.status = STATUS_TIMEOUT;
    snprintf(o.message, sizeof(o.message), "stopped after 5s of wall time");
    snprintf(o.limit_name, sizeof(o.limit_name), "timeout");
    o.limit_value = 5000;
    ending(&o, RUN_NORMAL, &out);
    assert_string_equal(
        out.p, "adyton: timeout: stopped after 5s of wall time (limit timeout=5s)\n");
    /* The supervisor's record of the same end is not said twice. */
    struct incident end = {.layer = "limit", .action = "ended"};
    snprintf(end.act, sizeof(end.act), "%s", o.message);
    outcome_add_incident(&o, &end);
    ending(&o, RUN_NORMAL, &out);
    assert_string_equal(
        out.p, "adyton: timeout: stopped after 5s of wall time (limit timeout=5s)\n");
    o.incidents_n = 0;
    o.status = STATUS_MEMORY;
    snprintf(o.limit_name, sizeof(o.limit_name), "memory");
    o.limit_value = 256 << 20;
    o.message[0] = '\0';
    ending(&o, RUN_NORMAL, &out);
    assert_string_equal(
        out.p, "adyton: memory: stopped at the memory limit (limit memory=256M)\n");
    ending(&o, RUN_QUIET, &out);
    assert_int_equal(out.n, 0);
    outcome_done(&o);
}

static void
test_ending_cannot_be_forged(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {0};
    struct outcome o;
    outcome_init(&o);
    o.status = STATUS_EXCEPTION;
    o.has_error = true;
    snprintf(o.error_name, sizeof(o.error_name), "E");
    snprintf(o.error_value, sizeof(o.error_value), "x\nadyton: ok\x1b[2J");
    ending(&o, RUN_NORMAL, &out);
    assert_string_equal(out.p, "adyton: exception: E: x\\x0aadyton: ok\\x1b[2J\n");
    outcome_done(&o);
}

static void
test_ending_when_all_went_well(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {0};
    struct outcome o;
    outcome_init(&o);
    o.status = STATUS_OK;
    o.wall_us = 23400;
    o.peak_memory_bytes = 3 << 19;
    o.processes = 1;
    snprintf(o.start, sizeof(o.start), "cold");
    snprintf(o.interpreter, sizeof(o.interpreter), "cpython 3.11.2");
    outcome_add_layer(&o, "user");
    outcome_add_layer(&o, "landlock:7");
    ending(&o, RUN_NORMAL, &out);
    assert_int_equal(out.n, 0);
    ending(&o, RUN_VERBOSE, &out);
    assert_string_equal(out.p,
                        "adyton: ok: 23.4 ms wall, 0.0 ms CPU, 1.5 MiB peak, 1 process; "
                        "cold start of cpython 3.11.2; held by user, landlock:7\n");
    outcome_done(&o);
}

static void
test_ending_with_incidents(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {0};
    struct outcome o;
    outcome_init(&o);
    o.status = STATUS_VIOLATION;
    struct incident act = {.rule = "system-call",
                           .layer = "seccomp",
                           .action = "refused",
                           .act = "ptrace",
                           .fact = true,
                           .count = 3};
    outcome_add_incident(&o, &act);
    ending(&o, RUN_NORMAL, &out);
    assert_string_equal(out.p, "adyton: violation: stopped for a forbidden act\n"
                               "adyton: seccomp: refused ptrace, 3 times\n");
    for (int i = 0; i < 20; i++) {
        snprintf(act.act, sizeof(act.act), "call %d", i);
        outcome_add_incident(&o, &act);
    }
    ending(&o, RUN_NORMAL, &out);
    size_t lines = 0;
    for (size_t i = 0; i < out.n; i++)
        lines += out.p[i] == '\n';
    assert_int_equal(lines, 1 + 10 + 1);
    assert_non_null(strstr(out.p, "adyton: and 11 other acts\n"));
    outcome_done(&o);
}

/* ---- suggestions ---- */

static void
test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"run", "doctor", "policy", "completion"};
    static const char *const rows[][2] = {
        {"rnu", "run"},
        {"docter", "doctor"},
        {"polcy", "policy"},
        {"compleiton", "completion"},
        {"xyz", NULL},
        {"", NULL},
        {"zzzzzz", NULL},
        {"doctors", "doctor"},
        {"a-name-that-is-far-longer-than-any-of-ours", NULL},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct nearest nearest;
        nearest_init(&nearest, rows[i][0]);
        for (size_t j = 0; j < ROWS(names); j++)
            nearest_try(&nearest, names[j]);
        if (!rows[i][1])
            assert_null(nearest.best);
        else
            assert_string_equal(nearest.best ? nearest.best : "none", rows[i][1]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terminal_whole),
        cmocka_unit_test(test_terminal_in_pieces),
        cmocka_unit_test(test_terminal_every_pair),
        cmocka_unit_test(test_terminal_one_line),
        cmocka_unit_test(test_options_refused),
        cmocka_unit_test(test_options_taken),
        cmocka_unit_test(test_option_names_are_unique),
        cmocka_unit_test(test_ending_of_a_timeout),
        cmocka_unit_test(test_ending_cannot_be_forged),
        cmocka_unit_test(test_ending_when_all_went_well),
        cmocka_unit_test(test_ending_with_incidents),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests_name("door", tests, NULL, NULL);
}
