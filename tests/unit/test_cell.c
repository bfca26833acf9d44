/*
 * cell, without a cell: what is kept of a stream, what of a claim reaches the outcome, and what
 * facts come to which status. The facts are made up here; where a counter of a control group is
 * one of them, a folder with a file of that name stands for the group.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka wants the headers above it. */
#include <cmocka.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "cell/cell_parts.h"

enum { WROTE_MAX = 512 * 1024 };

/* A cell that never was: no process, no group, every descriptor -1. */
struct stage {
    struct cell cell;
    struct policy policy;
    struct job job;
    struct outcome outcome;
    struct jail_plan plan;
    struct image image;
    struct claims claims;
    struct event_base *base;
    char group[64]; /* a folder that stands for a control group */
    char forwarded[WROTE_MAX];
    size_t forwarded_n;
};

static struct stage stage; /* static: large */

static void
forward(void *context, int stream, struct span bytes)
{
    assert_ptr_equal(context, &stage);
    assert_int_equal(stream, STDOUT_FILENO);
    assert_true(stage.forwarded_n + bytes.n <= sizeof(stage.forwarded));
    memcpy(stage.forwarded + stage.forwarded_n, bytes.p, bytes.n);
    stage.forwarded_n += bytes.n;
}

static int
set_up(void **state)
{
    (void)state;
    struct err err = {0};
    memset(&stage, 0, sizeof(stage));
    signal(SIGPIPE, SIG_IGN); /* as the engine does */
    job_init(&stage.job);
    outcome_init(&stage.outcome);
    if (policy_load(policy_default, &stage.policy, &err) < 0)
        return -1;
    stage.policy.validation = VALIDATION_OFF;
    stage.base = event_base_new();
    struct cell *cell = &stage.cell;
    cell->request = (struct cell_request){.policy = &stage.policy,
                                          .job = &stage.job,
                                          .image = &stage.image,
                                          .collect_dir = -1,
                                          .on_output = forward,
                                          .context = &stage};
    cell->base = stage.base;
    cell->outcome = &stage.outcome;
    cell->plan = &stage.plan;
    cell->start = "cold";
    cell->init_pidfd = cell->report = cell->guest = cell->notify = cell->tmp_fd = -1;
    cell->proc_fd = cell->oom_fd = cell->stdin_fd = cell->claims_fd = -1;
    cell->out.fd = cell->err.fd = cell->keeper.lifeline = -1;
    cgroup_init(&cell->cgroup);
    return stage.base ? 0 : -1;
}

static int
tear_down(void **state)
{
    (void)state;
    static const char *const counters[] = {"memory.events", "pids.events"};
    output_done(&stage.cell.out);
    fd_close(&stage.cell.stdin_fd);
    fd_close(&stage.cell.tmp_fd);
    int dir = stage.cell.cgroup.slots[0].dir;
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]) && dir >= 0; i++)
        (void)unlinkat(dir, counters[i], 0);
    fd_close(&dir);
    if (stage.group[0])
        (void)rmdir(stage.group);
    event_base_free(stage.base);
    outcome_done(&stage.outcome);
    policy_done(&stage.policy);
    job_done(&stage.job);
    return 0;
}

/* --- streams --- */

/* The cell's stdout as a pipe; returns the end that the program would have. */
static int
open_output(uint64_t limit_bytes)
{
    int ends[2];
    struct err err = {0};
    stage.policy.output_bytes = limit_bytes;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(output_start(&stage.cell, &stage.cell.out, STDOUT_FILENO, ends[0],
                                  &stage.outcome.out, &err),
                     0);
    return ends[1];
}

static void
say(int end, const char *bytes, size_t n)
{
    assert_int_equal(write(end, bytes, n), n);
    event_base_loop(stage.base, EVLOOP_NONBLOCK);
}

static void
check_kept(const char *wrote, size_t n)
{
    const struct stream *stream = &stage.outcome.out;
    size_t head_n = stream->head.n, tail_n = stream->tail.n;
    assert_int_equal(stream->total_bytes, n);
    assert_int_equal(head_n + tail_n + stream->dropped_bytes, n);
    assert_true(head_n + tail_n <= stage.policy.output_bytes);
    assert_memory_equal(buf_span(&stream->head).p, wrote, head_n);
    assert_memory_equal(buf_span(&stream->tail).p, wrote + n - tail_n, tail_n);
    /* What is streamed is the head, once. */
    assert_int_equal(stage.forwarded_n, head_n);
    assert_memory_equal(stage.forwarded, wrote, head_n);
}

static void
test_what_fits_is_all_kept(void **state)
{
    (void)state;
    static const char text[] = "first\nsecond\n";
    int end = open_output(4096);
    say(end, text, 6);
    say(end, text + 6, sizeof(text) - 1 - 6);
    close(end);
    output_drain(&stage.cell.out);
    check_kept(text, sizeof(text) - 1);
    assert_int_equal(stage.outcome.out.dropped_bytes, 0);
    assert_int_equal(stage.outcome.out.tail.n, 0);
    assert_int_equal(stage.cell.out.fd, -1);
}

/* Head and last bytes stay, in whatever pieces they come. */
static void
test_what_does_not_fit_is_counted(void **state)
{
    (void)state;
    static char wrote[40 * 1000];
    static const size_t pieces[] = {1, 2, 7, 100, 1023, 1024, 1025, 3000, 9000};
    int end = open_output(4096);
    size_t n = 0;
    for (size_t i = 0; i < sizeof(wrote); i++)
        wrote[i] = (char)('a' + i * 7 % 26);
    for (size_t i = 0; n < sizeof(wrote); i++) {
        size_t piece = pieces[i * 5 % (sizeof(pieces) / sizeof(pieces[0]))];
        piece = piece < sizeof(wrote) - n ? piece : sizeof(wrote) - n;
        say(end, wrote + n, piece);
        n += piece;
        check_kept(wrote, n);
    }
    close(end);
    output_drain(&stage.cell.out);
    check_kept(wrote, n);
    assert_int_equal(stage.outcome.out.head.n, 3072);
    assert_int_equal(stage.outcome.out.tail.n, 1024);
    assert_int_equal(stage.cell.cause, CAUSE_NONE); /* ten times the limit is only cut */
}

static void
test_a_flood_is_ended(void **state)
{
    (void)state;
    static char piece[16 * 1024];
    int end = open_output(4096);
    memset(piece, 'x', sizeof(piece));
    for (int i = 0; i < 4; i++)
        say(end, piece, sizeof(piece));
    assert_int_equal(stage.cell.cause, CAUSE_NONE);
    say(end, piece, 1);
    assert_int_equal(stage.cell.cause, CAUSE_OUTPUT);
    close(end);
}

/* Or the program would meet a broken pipe, and be blamed for it. */
static void
test_output_that_cannot_be_read_is_our_fault(void **state)
{
    (void)state;
    int end = open_output(4096);
    int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0 && dup2(folder, stage.cell.out.fd) >= 0);
    close(folder);
    output_drain(&stage.cell.out);
    assert_int_equal(stage.cell.failure.code, -EISDIR);
    assert_int_equal(stage.cell.cause, CAUSE_ABANDON);
    close(end);
}

static void
feed(int fd, const char *text)
{
    assert_int_equal(buf_append(&stage.job.stdin_bytes, text, strlen(text)), 0);
    stage.cell.stdin_fd = fd;
    cell_feed_stdin(fd, EV_WRITE, &stage.cell);
}

static void
test_a_program_need_not_read(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    feed(ends[1], "unread");
    assert_int_equal(stage.cell.failure.code, 0);
    assert_int_equal(stage.cell.stdin_fd, -1);
}

static void
test_stdin_that_cannot_be_written_is_our_fault(void **state)
{
    (void)state;
    feed(open("/dev/full", O_WRONLY | O_CLOEXEC), "given");
    assert_int_equal(stage.cell.failure.code, -ENOSPC);
    assert_int_equal(stage.cell.stdin_fd, -1);
}

/* --- claims --- */

static void
claim(const char *name, const char *value, const char *traceback)
{
    struct claims *claims = &stage.claims;
    claims->magic = GUEST_MAGIC;
    claims->kind = CLAIM_EXCEPTION;
    claims->line = 3;
    claims->name_n = (uint32_t)strlen(name);
    claims->value_n = (uint32_t)strlen(value);
    claims->traceback_n = (uint32_t)strlen(traceback);
    memcpy(claims->name, name, claims->name_n);
    memcpy(claims->value, value, claims->value_n);
    memcpy(claims->traceback, traceback, claims->traceback_n);
    stage.cell.claims = claims;
}

static void
test_a_claim_is_carried(void **state)
{
    (void)state;
    struct claims read;
    claim("ValueError", "no such thing", "Traceback …\n");
    claims_read(&stage.claims, &read);
    claims_carry_error(&read, &stage.outcome);
    assert_true(stage.outcome.has_error);
    assert_string_equal(stage.outcome.error_name, "ValueError");
    assert_string_equal(stage.outcome.error_value, "no such thing");
    assert_string_equal(stage.outcome.traceback.p, "Traceback …\n");
    assert_int_equal(stage.outcome.error_line, 3);
}

/* One field is not what it may be: then nothing was claimed. */
static void
test_hostile_lengths_claim_nothing(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        uint32_t value;
    } rows[] = {
        {offsetof(struct claims, magic), 0},
        {offsetof(struct claims, kind), 77},
        {offsetof(struct claims, kind), UINT32_MAX},
        {offsetof(struct claims, line), UINT32_MAX}, /* -1 */
        {offsetof(struct claims, name_n), CLAIM_NAME_BYTES},
        {offsetof(struct claims, name_n), UINT32_MAX},
        {offsetof(struct claims, value_n), CLAIM_VALUE_BYTES + 1},
        {offsetof(struct claims, value_n), 1U << 31},
        {offsetof(struct claims, traceback_n), CLAIM_TRACEBACK_BYTES + 1},
        {offsetof(struct claims, traceback_n), UINT32_MAX},
        {offsetof(struct claims, acts_n), CLAIM_ACTS_MAX + 1},
        {offsetof(struct claims, acts_n), UINT32_MAX},
    };
    static const struct claims nothing;
    struct claims read;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        claim("ValueError", "x", "y");
        memcpy((char *)&stage.claims + rows[i].offset, &rows[i].value,
               sizeof(rows[i].value));
        claims_read(&stage.claims, &read);
        assert_memory_equal(&read, &nothing, sizeof(read));
        memset(&stage.claims, 0, sizeof(stage.claims));
    }
    claims_read(NULL, &read);
    assert_memory_equal(&read, &nothing, sizeof(read));
}

static bool
is_valid(const char *text)
{
    AUTO_BUF struct buf out;
    uint64_t replaced = 0;
    buf_init(&out, WROTE_MAX);
    return utf8_append_valid(&out, span_of(text), &replaced) == 0 && replaced == 0;
}

/* Every array full to its last byte, no NUL anywhere, each byte an invalid one. */
static void
test_claims_without_an_end(void **state)
{
    (void)state;
    struct claims *claims = &stage.claims, read;
    memset(claims, 0xff, sizeof(*claims));
    claims->magic = GUEST_MAGIC;
    claims->kind = CLAIM_EXCEPTION;
    claims->line = claims->os_error = INT32_MAX;
    claims->name_n = CLAIM_NAME_BYTES - 1;
    claims->value_n = CLAIM_VALUE_BYTES;
    claims->traceback_n = CLAIM_TRACEBACK_BYTES;
    claims->acts_n = CLAIM_ACTS_MAX;
    claims_read(claims, &read);
    assert_int_equal(read.kind, CLAIM_EXCEPTION);
    claims_carry_error(&read, &stage.outcome);
    claims_carry_acts(&read, &stage.outcome);
    assert_true(strlen(stage.outcome.error_name) < sizeof(stage.outcome.error_name));
    assert_true(is_valid(stage.outcome.error_name));
    assert_true(is_valid(stage.outcome.error_value));
    assert_int_equal(stage.outcome.traceback.n, CLAIM_TRACEBACK_BYTES);
    for (size_t i = 0; i < stage.outcome.incidents_n; i++) {
        assert_true(is_valid(stage.outcome.incidents[i].act));
        assert_true(is_valid(stage.outcome.incidents[i].rule));
        assert_false(stage.outcome.incidents[i].fact);
        assert_int_equal(stage.outcome.incidents[i].line, 0); /* it claimed -1 */
    }
}

/* Cut where a character ends, wherever the array does. */
static void
test_claims_are_cut_between_characters(void **state)
{
    (void)state;
    static const char euro[] = "\xe2\x82\xac";
    struct claims *claims = &stage.claims, read;
    claim("", "", "");
    for (uint32_t i = 0; i + 3 <= CLAIM_NAME_BYTES - 1; i += 3)
        memcpy(claims->name + i, euro, 3);
    for (uint32_t i = 0; i + 3 <= CLAIM_VALUE_BYTES; i += 3)
        memcpy(claims->value + i, euro, 3);
    claims->name_n = CLAIM_NAME_BYTES - 2; /* 126: whole characters */
    claims->value_n = CLAIM_VALUE_BYTES - 1;
    claims->acts_n = 1;
    claims->acts[0].count = 0; /* means once */
    for (size_t i = 0; i + 3 < sizeof(claims->acts[0].object); i += 3)
        memcpy(claims->acts[0].object + i, euro, 3);
    memcpy(claims->acts[0].call, "open", 5);
    claims_read(claims, &read);
    claims_carry_error(&read, &stage.outcome);
    claims_carry_acts(&read, &stage.outcome);
    assert_true(is_valid(stage.outcome.error_name));
    assert_true(is_valid(stage.outcome.error_value));
    assert_int_equal(stage.outcome.incidents_n, 1);
    assert_int_equal(stage.outcome.incidents[0].count, 1);
    assert_true(is_valid(stage.outcome.incidents[0].act));
    assert_memory_equal(stage.outcome.incidents[0].act, "open(\xe2\x82\xac", 8);
}

/* --- from facts to a status --- */

/* A folder stands for the group: the kernel's counters are files in it. */
static void
count(const char *file, const char *text)
{
    if (!stage.group[0]) {
        snprintf(stage.group, sizeof(stage.group), "/tmp/adyton-test-XXXXXX");
        assert_non_null(mkdtemp(stage.group));
        stage.cell.cgroup.version = 2;
        stage.cell.cgroup.slots[0].dir =
            open(stage.group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    AUTO_CLOSE int fd = openat(stage.cell.cgroup.slots[0].dir, file,
                               O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

enum seen {
    SEEN_OOM = 1 << 0,  /* the kernel counted a kill for want of memory */
    SEEN_PIDS = 1 << 1, /* … and a fork that was refused */
    SEEN_FULL = 1 << 2, /* nothing is free on the cell's /tmp */
    NOT_SEALED = 1 << 3,
    NOT_EXITED = 1 << 4,
    OUR_FAULT = 1 << 5,
    CLAIMS = 1 << 6, /* an exception, with the errno of the row */
};

static const struct decision {
    const char *name;
    unsigned seen;
    enum cause cause;
    int wait_status, os_error;
    enum status status;
    int signal;
    const char *limit, *message; /* a part of the message */
} decisions[] = {
    /* A wait status is signal, or exit code << 8. */
    {"ended well", 0, 0, 0, 0, STATUS_OK, 0, "", ""},
    {"a claim does not change that", CLAIMS, 0, 0, 0, STATUS_OK, 0, "", ""},
    {"exit code", 0, 0, 3 << 8, 0, STATUS_EXIT, 0, "", "exit code 3"},
    {"exit code with a claim", CLAIMS, 0, 3 << 8, 0, STATUS_EXIT, 0, "", "exit code 3"},
    {"exit code 1", 0, 0, 1 << 8, 0, STATUS_EXIT, 0, "", "exit code 1"},
    {"exception", CLAIMS, 0, 1 << 8, 0, STATUS_EXCEPTION, 0, "", "uncaught Error"},
    {"crash", 0, 0, SIGSEGV, 0, STATUS_CRASHED, SIGSEGV, "", "SIGSEGV"},
    {"killed itself", 0, 0, SIGKILL, 0, STATUS_CRASHED, SIGKILL, "", "SIGKILL"},
    {"killed for memory", SEEN_OOM, 0, SIGKILL, 0, STATUS_MEMORY, 0, "memory", "memory"},
    {"ended for memory", 0, CAUSE_MEMORY, SIGKILL, 0, STATUS_MEMORY, 0, "memory",
     "memory"},
    {"a child was killed for memory", SEEN_OOM, 0, 0, 0, STATUS_MEMORY, 0, "memory", ""},
    {"wall time", NOT_EXITED, CAUSE_WALL, 0, 0, STATUS_TIMEOUT, 0, "timeout", "wall"},
    {"CPU time", NOT_EXITED, CAUSE_CPU, 0, 0, STATUS_TIMEOUT, 0, "cpu_time", "CPU"},
    {"memory before time", SEEN_OOM | NOT_EXITED, CAUSE_WALL, 0, 0, STATUS_MEMORY, 0,
     "memory", ""},
    {"output", NOT_EXITED, CAUSE_OUTPUT, 0, 0, STATUS_OUTPUT, 0, "output", "output"},
    {"a deadly call", NOT_EXITED, CAUSE_CALL, 0, 0, STATUS_VIOLATION, 0, "", "forbidden"},
    {"another architecture", 0, 0, SIGSYS, 0, STATUS_VIOLATION, SIGSYS, "",
     "architecture"},
    {"disk full", CLAIMS | SEEN_FULL, 0, 1 << 8, ENOSPC, STATUS_DISK, 0, "disk_inodes",
     ""},
    {"disk only claimed full", CLAIMS, 0, 1 << 8, ENOSPC, STATUS_EXCEPTION, 0, "", ""},
    {"full, and not the reason", SEEN_FULL, 0, 1 << 8, 0, STATUS_EXIT, 0, "", ""},
    {"processes", CLAIMS | SEEN_PIDS, 0, 1 << 8, EAGAIN, STATUS_PIDS, 0, "pids", ""},
    {"processes only claimed", CLAIMS, 0, 1 << 8, EAGAIN, STATUS_EXCEPTION, 0, "", ""},
    {"refused, and not the reason", SEEN_PIDS, 0, 0, 0, STATUS_OK, 0, "", ""},
    {"open files", CLAIMS, 0, 1 << 8, EMFILE, STATUS_EXCEPTION, 0, "open_files", ""},
    {"file size", CLAIMS, 0, 1 << 8, EFBIG, STATUS_EXCEPTION, 0, "file_size", ""},
    {"not sealed", NOT_SEALED, 0, 1 << 8, 0, STATUS_FAILED, 0, "", "could run"},
    {"not sealed in time", NOT_SEALED | NOT_EXITED, CAUSE_START, 0, 0, STATUS_FAILED, 0,
     "", "not ready"},
    {"not sealed for memory", NOT_SEALED | SEEN_OOM, 0, SIGKILL, 0, STATUS_FAILED, 0, "",
     "--memory"},
    {"init gone", NOT_EXITED, 0, 0, 0, STATUS_FAILED, 0, "", "without a report"},
    {"given up", NOT_EXITED, CAUSE_ABANDON, 0, 0, STATUS_FAILED, 0, "", "given up"},
    {"our fault", OUR_FAULT, 0, 0, 0, STATUS_FAILED, 0, "", "what we could not"},
    {"our fault before a limit", OUR_FAULT | SEEN_OOM, CAUSE_MEMORY, SIGKILL, 0,
     STATUS_FAILED, 0, "", "what we could not"},
};

static void
make_facts(const struct decision *row)
{
    struct cell *cell = &stage.cell;
    cell->sealed = cell->going = !(row->seen & NOT_SEALED);
    cell->exited = !(row->seen & NOT_EXITED);
    cell->wait_status = row->wait_status;
    cell->cause = row->cause;
    cell->started_us = 1000;
    cell->ended_us = 3000;
    if (row->seen & SEEN_OOM)
        count("memory.events", "low 0\noom 1\noom_kill 1\n");
    if (row->seen & SEEN_PIDS)
        count("pids.events", "max 2\n");
    if (row->seen & SEEN_FULL) /* it has no blocks, and so none that is free */
        cell->tmp_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (row->seen & OUR_FAULT)
        err_set(&cell->failure, -EIO, "what we could not do");
    if (row->seen & CLAIMS) {
        claim("Error", "", "");
        stage.claims.os_error = row->os_error;
    }
}

static void
check_decision(const struct decision *row)
{
    const struct outcome *outcome = &stage.outcome;
    bool right = outcome->status == row->status && outcome->signal == row->signal &&
                 strcmp(outcome->limit_name, row->limit) == 0 &&
                 strstr(outcome->message, row->message);
    if (!right)
        fail_msg("%s: status %s, signal %d, limit '%s', message '%s'", row->name,
                 status_name(outcome->status), outcome->signal, outcome->limit_name,
                 outcome->message);
    /* Whatever is not plain success says why, and an error is a claim of exit code 1. */
    assert_true(outcome->status == STATUS_OK || outcome->message[0]);
    assert_int_equal(outcome->has_error,
                     (row->seen & CLAIMS) != 0 && row->wait_status == 1 << 8);
    assert_int_equal(outcome->isolation_n > 0, !(row->seen & NOT_SEALED));
    assert_int_equal(outcome->wall_us, row->seen & NOT_SEALED ? 0 : 2000);
}

static void
test_facts_decide(void **state)
{
    for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
        make_facts(&decisions[i]);
        cell_decide(&stage.cell);
        check_decision(&decisions[i]);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

/* A traceback's last line tells, not its first. */
static void
test_an_interpreter_that_does_not_start_is_quoted(void **state)
{
    (void)state;
    static const char text[] =
        "Traceback (most recent call last):\n  …\nOSError: gone\n\n";
    buf_init(&stage.outcome.err.head, 4096);
    assert_int_equal(buf_append(&stage.outcome.err.head, text, sizeof(text) - 1), 0);
    stage.cell.exited = true;
    stage.cell.wait_status = 1 << 8;
    cell_decide(&stage.cell);
    assert_int_equal(stage.outcome.status, STATUS_FAILED);
    assert_non_null(strstr(stage.outcome.message, ": OSError: gone"));
}

/* --- what a cell leaves on the host --- */

/* Deeper than a path can be long, with a folder that its owner closed and a link out. */
static void
test_deep_trees_are_removed(void **state)
{
    (void)state;
    enum { DEPTH = 600 };
    static const char name[] = "a-folder-of-twenty-b";
    char top[] = "/tmp/adyton-test-XXXXXX", beside[] = "/tmp/adyton-test-XXXXXX";
    assert_non_null(mkdtemp(top));
    assert_non_null(mkdtemp(beside));
    int at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(at, name, 0700), 0);
        assert_int_equal(symlinkat(beside, at, "link"), 0);
        int below = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(fchmod(at, 0), 0);
        close(at);
        at = below;
    }
    close(at);
    assert_int_equal(keeper_remove_tree(top), 0);
    assert_int_equal(access(top, F_OK), -1);
    assert_int_equal(access(beside, F_OK), 0); /* a link is not followed */
    assert_int_equal(rmdir(beside), 0);
    assert_int_equal(keeper_remove_tree(top), 0); /* again: nothing to do */
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_fits_is_all_kept),
        TEST(test_what_does_not_fit_is_counted),
        TEST(test_a_flood_is_ended),
        TEST(test_output_that_cannot_be_read_is_our_fault),
        TEST(test_a_program_need_not_read),
        TEST(test_stdin_that_cannot_be_written_is_our_fault),
        TEST(test_a_claim_is_carried),
        TEST(test_hostile_lengths_claim_nothing),
        TEST(test_claims_without_an_end),
        TEST(test_claims_are_cut_between_characters),
        TEST(test_facts_decide),
        TEST(test_an_interpreter_that_does_not_start_is_quoted),
        TEST(test_deep_trees_are_removed),
    };
    return cmocka_run_group_tests_name("cell", tests, NULL, NULL);
}
