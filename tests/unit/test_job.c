/* The job room: names in a job, the status table, incidents, streams and ids. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "job/job.h"
#include "job/outcome.h"

enum { STREAM_BYTES = 1 << 20 };

/* ---- job ---- */

static int
add_named(struct job *job, const char *name)
{
    struct err err = {0};
    struct buf data;
    buf_init(&data, 16);
    assert_int_equal(buf_append(&data, "x", 1), 0);
    int r = job_add_file(job, name, &data, &err);
    if (r < 0)
        assert_true(err.text[0] != '\0' && err.code == r);
    else
        assert_null(data.p); /* taken over */
    buf_done(&data);
    return r;
}

static void
test_file_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int result;
    } rows[] = {
        {"a.csv", 0},         {"deep/er/b.csv", 0},   {"a b\n\x80.txt", 0},
        {"..c", 0},           {"", -EINVAL},          {"/etc/x", -EINVAL},
        {"a/../b", -EINVAL},  {"..", -EINVAL},        {".", -EINVAL},
        {"a//b", -EINVAL},    {"d/", -EINVAL},        {"./a", -EINVAL},
        {"a.csv", -EEXIST},   {"a.csv/b", -EEXIST},   {"deep", -EEXIST},
        {"main.py", -EEXIST}, {"main.py/x", -EEXIST},
    };
    struct job job;
    job_init(&job);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (add_named(&job, rows[i].name) != rows[i].result)
            fail_msg("%s: not %d", rows[i].name, rows[i].result);
    assert_int_equal(job.files_n, 4);
    assert_int_equal(job.files[0].data.n, 1);
    job_done(&job);
    job_done(&job);
    job_done(NULL);
}

static void
test_file_name_lengths(void **state)
{
    (void)state;
    struct job job;
    job_init(&job);
    char name[JOB_PATH_BYTES + 1];
    memset(name, 'n', sizeof(name));
    name[JOB_NAME_BYTES - 1] = '\0'; /* 255, the longest that Linux takes */
    assert_int_equal(add_named(&job, name), 0);
    name[JOB_NAME_BYTES - 1] = 'n';
    name[JOB_NAME_BYTES] = '\0';
    assert_int_equal(add_named(&job, name), -EINVAL);
    memset(name, 'n', sizeof(name));
    for (size_t i = 1; i < sizeof(name); i += 2)
        name[i] = '/';
    name[JOB_PATH_BYTES - 1] = '\0';
    assert_int_equal(add_named(&job, name), 0);
    name[JOB_PATH_BYTES - 1] = 'n';
    name[JOB_PATH_BYTES] = '\0';
    assert_int_equal(add_named(&job, name), -ENAMETOOLONG);
    job_done(&job);
}

static void
test_file_count(void **state)
{
    (void)state;
    struct job job;
    job_init(&job);
    char name[16];
    for (int i = 0; i < JOB_FILES_MAX; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        assert_int_equal(add_named(&job, name), 0);
    }
    assert_int_equal(add_named(&job, "one-more"), -E2BIG);
    job_done(&job);
}

static void
test_script_name(void **state)
{
    (void)state;
    struct job job;
    struct err err = {0};
    job_init(&job);
    assert_string_equal(job.name, "main.py");
    assert_int_equal(add_named(&job, "taken.py"), 0);
    static const char *const bad[] = {"", ".", "..", "a/b", "/a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(job_set_name(&job, bad[i], &err), -EINVAL);
    assert_int_equal(job_set_name(&job, "taken.py", &err), -EEXIST);
    assert_string_equal(job.name, "main.py");
    assert_int_equal(job_set_name(&job, "my script", &err), 0);
    assert_string_equal(job.name, "my script");
    job_done(&job);
}

static void
test_args(void **state)
{
    (void)state;
    struct job job;
    struct err err = {0};
    job_init(&job);
    for (int i = 0; i < JOB_ARGS_MAX; i++)
        assert_int_equal(job_add_arg(&job, i % 2 ? "" : "--x=1", &err), 0);
    assert_int_equal(job_add_arg(&job, "", &err), -E2BIG);
    assert_string_equal(job.args[2], "--x=1");
    job_done(&job);

    job_init(&job);
    char *big = malloc(JOB_ARGS_BYTES + 1);
    assert_non_null(big);
    memset(big, 'a', JOB_ARGS_BYTES);
    big[JOB_ARGS_BYTES] = '\0';
    assert_int_equal(job_add_arg(&job, big, &err), -E2BIG);
    big[JOB_ARGS_BYTES - 1] = '\0';
    assert_int_equal(job_add_arg(&job, big, &err), 0);
    assert_int_equal(job_add_arg(&job, "", &err), -E2BIG);
    free(big);
    job_done(&job);
}

/* ---- status table ---- */

static void
test_status_table(void **state)
{
    (void)state;
    static const struct {
        enum status status;
        const char *name;
        int exit_status;
    } rows[] = {
        {STATUS_OK, "ok", 0},
        {STATUS_EXCEPTION, "exception", 1},
        {STATUS_EXIT, "exit", 7},
        {STATUS_REJECTED, "rejected", 126},
        {STATUS_TIMEOUT, "timeout", 124},
        {STATUS_VIOLATION, "violation", 126},
        {STATUS_MEMORY, "memory", 137},
        {STATUS_OUTPUT, "output", 137},
        {STATUS_DISK, "disk", 137},
        {STATUS_PIDS, "pids", 137},
        {STATUS_CRASHED, "crashed", 139},
        {STATUS_FAILED, "failed", 125},
    };
    assert_int_equal(sizeof(rows) / sizeof(*rows), STATUS_COUNT);
    struct outcome o;
    outcome_init(&o);
    assert_int_equal(o.status, STATUS_FAILED);
    o.exit_code = 7;
    o.signal = SIGSEGV;
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        o.status = rows[i].status;
        assert_string_equal(status_name(o.status), rows[i].name);
        assert_true(strlen(status_meaning(o.status)) > 10);
        assert_int_equal(outcome_exit_status(&o), rows[i].exit_status);
    }
    outcome_done(&o);
}

/* The kernel keeps 8 bits: what is left must never look like success. */
static void
test_exit_codes(void **state)
{
    (void)state;
    static const int codes[][2] = {{1, 1},    {255, 255}, {256, 1},
                                   {-1, 255}, {0, 1},     {300, 44}};
    struct outcome o;
    outcome_init(&o);
    o.status = STATUS_EXIT;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        o.exit_code = codes[i][0];
        assert_int_equal(outcome_exit_status(&o), codes[i][1]);
    }
    outcome_done(&o);
}

static void
test_fail(void **state)
{
    (void)state;
    struct outcome o;
    struct err err;
    outcome_init(&o);
    o.status = STATUS_OK;
    err_set(&err, -ENOMEM, "no memory for a cell");
    outcome_fail(&o, &err);
    assert_int_equal(o.status, STATUS_FAILED);
    assert_string_equal(o.message, "no memory for a cell");
    outcome_done(&o);
}

/* ---- ids ---- */

static void
test_ids(void **state)
{
    (void)state;
    enum { IDS = 200 };
    static struct outcome o;
    char ids[IDS][OUTCOME_ID_BYTES];
    for (size_t i = 0; i < IDS; i++) {
        outcome_init(&o);
        memcpy(ids[i], o.id, sizeof(o.id));
        outcome_done(&o);
        assert_int_equal(strlen(ids[i]), 28);
        assert_memory_equal(ids[i], "r_", 2);
        assert_int_equal(strspn(ids[i] + 2, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(ids[i], ids[j]);
            /* The first ten characters are the time, and never go back. */
            assert_true(memcmp(ids[j] + 2, ids[i] + 2, 10) <= 0);
        }
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    outcome_init(&o);
    assert_true(strcmp(ids[IDS - 1], o.id) < 0);
    outcome_done(&o);
}

/* ---- incidents and layers ---- */

static void
test_incidents_are_counted(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    struct incident act = {
        .rule = "system-call", .layer = "seccomp", .action = "refused", .act = "ptrace"};
    outcome_add_incident(&o, &act);
    outcome_add_incident(&o, &act);
    act.count = 5;
    outcome_add_incident(&o, &act);
    assert_int_equal(o.incidents_n, 1);
    assert_int_equal(o.incidents[0].count, 7);
    snprintf(act.act, sizeof(act.act), "bpf");
    act.count = UINT64_MAX;
    outcome_add_incident(&o, &act);
    outcome_add_incident(&o, &act);
    assert_int_equal(o.incidents_n, 2);
    assert_true(o.incidents[1].count == UINT64_MAX);
    snprintf(act.layer, sizeof(act.layer), "hook");
    outcome_add_incident(&o, &act);
    assert_int_equal(o.incidents_n, 3);
    outcome_done(&o);
}

static void
test_incidents_are_bounded(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    struct incident act = {.rule = "path", .layer = "landlock", .action = "refused"};
    for (int i = 0; i < OUTCOME_INCIDENTS_MAX + 10; i++) {
        snprintf(act.act, sizeof(act.act), "open(/secret/%d)", i);
        outcome_add_incident(&o, &act);
    }
    assert_int_equal(o.incidents_n, OUTCOME_INCIDENTS_MAX);
    assert_int_equal(o.incidents_dropped, 10);
    snprintf(act.act, sizeof(act.act), "open(/secret/0)");
    outcome_add_incident(&o, &act); /* a known one is still counted */
    assert_int_equal(o.incidents[0].count, 2);
    assert_int_equal(o.incidents_dropped, 10);
    outcome_done(&o);
}

static void
test_incident_without_terminator(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    struct incident act = {.action = "refused"};
    memset(act.rule, 'r', sizeof(act.rule));
    memset(act.act, 'a', sizeof(act.act));
    outcome_add_incident(&o, &act);
    assert_int_equal(strlen(o.incidents[0].rule), sizeof(act.rule) - 1);
    assert_int_equal(strlen(o.incidents[0].act), sizeof(act.act) - 1);
    outcome_done(&o);
}

static void
test_layers(void **state)
{
    (void)state;
    struct outcome o;
    outcome_init(&o);
    for (int i = 0; i < OUTCOME_LAYERS_MAX + 3; i++)
        outcome_add_layer(&o, "landlock:%d", i);
    assert_int_equal(o.isolation_n, OUTCOME_LAYERS_MAX);
    assert_string_equal(o.isolation[7], "landlock:7");
    outcome_done(&o);
}

/* ---- streams ---- */

static void
fill(struct stream *s, const char *head, const char *tail, uint64_t dropped)
{
    *s = (struct stream){.dropped_bytes = dropped};
    buf_init(&s->head, STREAM_BYTES);
    buf_init(&s->tail, STREAM_BYTES);
    assert_int_equal(buf_append(&s->head, head, strlen(head)), 0);
    assert_int_equal(buf_append(&s->tail, tail, strlen(tail)), 0);
    s->total_bytes = s->head.n + s->tail.n + dropped;
}

static void
test_stream_text(void **state)
{
    (void)state;
    static const struct {
        const char *head, *tail;
        uint64_t dropped;
        const char *text;
        uint64_t replaced;
        const char *rest;
    } rows[] = {
        {"", "", 0, "", 0, ""},
        {"all\n", "", 0, "all\n", 0, ""},
        {"all\n", "of it\n", 0, "all\nof it\n", 0, "of it\n"},
        /* A character over the seam of head and tail is whole while nothing is missing.
         */
        {"\xE2\x82", "\xAC", 0, "\xE2\x82\xAC", 0, "\xAC"},
        {"a\xE2\x82", "", 0, "a\xEF\xBF\xBD", 1, ""},
        {"head\n", "tail\n", 9, "head\n[adyton: 9 bytes of output dropped here]\ntail\n",
         0, "[adyton: 9 bytes of output dropped here]\ntail\n"},
        {"head", "tail", 9, "head\n[adyton: 9 bytes of output dropped here]\ntail", 0,
         "\n[adyton: 9 bytes of output dropped here]\ntail"},
        /* The cut goes through a character on both sides: its bytes count as missing. */
        {"h\xE2\x82", "\x82\xACt", 9, "h\n[adyton: 13 bytes of output dropped here]\nt",
         0, "\n[adyton: 11 bytes of output dropped here]\nt"},
        {"h\xFF", "\xC0t", 1,
         "h\xEF\xBF\xBD\n[adyton: 1 bytes of output dropped here]\n"
         "\xEF\xBF\xBDt",
         2, "\n[adyton: 1 bytes of output dropped here]\n\xC0t"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stream s;
        struct buf text, rest;
        uint64_t replaced = 99;
        fill(&s, rows[i].head, rows[i].tail, rows[i].dropped);
        buf_init(&text, STREAM_BYTES);
        buf_init(&rest, STREAM_BYTES);
        assert_int_equal(stream_text(&s, &text, &replaced), 0);
        assert_int_equal(stream_rest(&s, &rest), 0);
        assert_string_equal(text.p ? text.p : "", rows[i].text);
        assert_string_equal(rest.p ? rest.p : "", rows[i].rest);
        assert_int_equal(replaced, rows[i].replaced);
        assert_int_equal(stream_is_truncated(&s), rows[i].dropped > 0);
        buf_done(&text);
        buf_done(&rest);
        buf_done(&s.head);
        buf_done(&s.tail);
    }
}

static void
test_stream_text_into_a_small_buffer(void **state)
{
    (void)state;
    struct stream s;
    struct buf text;
    uint64_t replaced = 99;
    fill(&s, "head", "tail", 9);
    buf_init(&text, 8);
    assert_int_equal(stream_text(&s, &text, &replaced), -ENOSPC);
    assert_int_equal(replaced, 99); /* written on success only */
    buf_done(&text);
    buf_done(&s.head);
    buf_done(&s.tail);
}

static void
test_folders(void **state)
{
    (void)state;
    struct err err = {0};
    static struct job job; /* static: large */
    const struct job_folder one = {.path = "/srv/a", .device = 1, .inode = 2};
    const struct job_folder shelf = {.path = "/w", .writable = true, .user = 7};
    static const char *const bad[] = {"",   ".",    "..",    "a/b",
                                      "/a", "a\nb", "a\x7f", "\xff"};
    job_init(&job);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(job_add_data(&job, &one, bad[i], &err), -EINVAL);
    assert_int_equal(job_add_data(&job, &one,
                                  "Gr\xc3\xb6\xc3\x9f"
                                  "e 2",
                                  &err),
                     0);
    assert_int_equal(job_add_data(&job, &shelf, "b", &err), 0);
    assert_int_equal(job_add_data(&job, &one, "b", &err), -EEXIST);
    assert_string_equal(job.folders.list[1].target, "/data/b");
    assert_false(job.folders.list[1].writable); /* a data folder never is */
    assert_null(job_folders_workspace(&job.folders));
    assert_int_equal(job_add_workspace(&job, &shelf, &err), 0);
    assert_int_equal(job_add_workspace(&job, &shelf, &err), -EEXIST);
    assert_string_equal(job_folders_workspace(&job.folders)->target, "/workspace");
    assert_true(job_folders_have_data(&job.folders));
    static struct job_folders other;
    other = job.folders;
    assert_true(job_folders_alike(&job.folders, &other));
    other.list[0].inode++; /* another folder of that path */
    assert_false(job_folders_alike(&job.folders, &other));
    while (job.folders.n < JOB_FOLDERS_MAX) {
        char name[8];
        snprintf(name, sizeof(name), "n%zu", job.folders.n);
        assert_int_equal(job_add_data(&job, &one, name, &err), 0);
    }
    assert_int_equal(job_add_data(&job, &one, "more", &err), -E2BIG);
    job_done(&job);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_names),
        cmocka_unit_test(test_file_name_lengths),
        cmocka_unit_test(test_file_count),
        cmocka_unit_test(test_script_name),
        cmocka_unit_test(test_args),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_status_table),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_incidents_are_counted),
        cmocka_unit_test(test_incidents_are_bounded),
        cmocka_unit_test(test_incident_without_terminator),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_stream_text),
        cmocka_unit_test(test_stream_text_into_a_small_buffer),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
