/* The base room: errors, bounded buffers, units, UTF-8, descriptors and small kernel
 * files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"

#define ROWS(table) (sizeof(table) / sizeof(*(table)))

/* ---- err ---- */

static void
test_err(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, -EINVAL, "no %s", "sense"), -EINVAL);
    assert_int_equal(err.code, -EINVAL);
    assert_string_equal(err.text, "no sense");
    assert_int_equal(err_wrap(&err, "line %d", 3), -EINVAL);
    assert_string_equal(err.text, "line 3: no sense");
    errno = ENOENT;
    assert_int_equal(err_sys(&err, "open %s", "x"), -ENOENT);
    assert_string_equal(err.text, "open x: No such file or directory");
    errno = 0; /* a caller without an errno still gets a failure */
    assert_int_equal(err_sys(&err, "odd"), -EIO);
}

static void
test_err_is_bounded(void **state)
{
    (void)state;
    struct err err = {0};
    char big[1000];
    memset(big, 'b', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    err_set(&err, -EPERM, "%s", big);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_wrap(&err, "outer");
    assert_memory_equal(err.text, "outer: bbb", 10);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_wrap(&err, "%s", big);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    errno = EPERM;
    err_sys(&err, "%s", big);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

/* ---- buf ---- */

static void
test_buf_holds_to_its_maximum(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf;
    buf_init(&buf, 10);
    assert_int_equal(buf_append(&buf, "12345", 5), 0);
    assert_int_equal(buf_append(&buf, "67890", 5), 0);
    assert_int_equal(buf_append(&buf, "x", 1), -ENOSPC);
    assert_int_equal(buf_append(&buf, NULL, 0), 0);
    assert_int_equal(buf_printf(&buf, "%d", 7), -ENOSPC);
    assert_int_equal(buf_reserve(&buf, SIZE_MAX), -ENOSPC); /* n + SIZE_MAX would wrap */
    assert_int_equal(buf.n, 10);
    assert_string_equal(buf.p, "1234567890");
    buf_consume(&buf, 4);
    assert_string_equal(buf.p, "567890");
    assert_int_equal(buf_printf(&buf, "%s-%d", "a", 12), 0);
    assert_string_equal(buf.p, "567890a-12");
    buf_consume(&buf, 1000);
    assert_int_equal(buf.n, 0);
    assert_string_equal(buf.p, "");
}

static void
test_buf_keeps_what_it_held(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf;
    buf_init(&buf, 100000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf_printf(&buf, "%d", i % 10), 0);
    assert_int_equal(buf.n, 10000);
    for (size_t i = 0; i < buf.n; i++)
        assert_int_equal(buf.p[i], '0' + (int)(i % 10));
}

static void
test_buf_done(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_done(NULL);
    buf_done(&buf);
    struct span empty = buf_span(&buf);
    assert_non_null(empty.p); /* a span can always be passed on to memcpy */
    assert_int_equal(empty.n, 0);
    buf_init(&buf, 8);
    assert_int_equal(buf_append(&buf, "a", 1), 0);
    buf_done(&buf);
    buf_done(&buf);
    assert_null(buf.p);
    assert_int_equal(buf_append(&buf, "again", 5), 0); /* max survives */
    buf_done(&buf);
}

/* ---- units ---- */

static const uint64_t KiB = 1024, MiB = 1048576, GiB = 1073741824;

static void
test_parse_bytes(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int result;
        uint64_t bytes;
    } rows[] = {
        {"0", 0, 0},
        {"1", 0, 1},
        {"256M", 0, 256 * MiB},
        {"256MiB", 0, 256 * MiB},
        {"256mb", 0, 256 * MiB},
        {"1.5GiB", 0, GiB + GiB / 2},
        {"0.5K", 0, 512},
        {"3 k", 0, 3 * KiB},
        {"2T", 0, 2048 * GiB},
        {"10b", 0, 10},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"16777216T", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"M", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", 0, 1},
        {"1.M", -EINVAL, 0},
        {".5M", -EINVAL, 0},
        {"1.0000000M", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"1M2", -EINVAL, 0},
        {"1s", -EINVAL, 0},
        {"inf", -EINVAL, 0},
        {"1,5M", -EINVAL, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        uint64_t value = 77;
        int r = parse_bytes(span_of(rows[i].text), &value);
        if (r != rows[i].result || value != (r == 0 ? rows[i].bytes : 77))
            fail_msg("'%s': %d, %llu", rows[i].text, r, (unsigned long long)value);
    }
    /* An embedded NUL is not the end of a number. */
    uint64_t value;
    assert_int_equal(parse_bytes((struct span){"1\0M", 3}, &value), -EINVAL);
}

static void
test_parse_ms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        uint64_t ms;
    } rows[] = {
        {"5", 0, 5000},      {"5s", 0, 5000},       {"1.5s", 0, 1500},
        {"200ms", 0, 200},   {"2min", 0, 120000},   {"2m", 0, 120000},
        {"1h", 0, 3600000},  {"0.001", 0, 1},       {"0.0005s", 0, 0},
        {"5 s", 0, 5000},    {"5x", -EINVAL, 0},    {"s", -EINVAL, 0},
        {"-5s", -EINVAL, 0}, {"1.2.3", -EINVAL, 0}, {"5M ", -EINVAL, 0},
        {"nan", -EINVAL, 0}, {"1d", -EINVAL, 0},    {"99999999999999999h", -ERANGE, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        uint64_t value = 77;
        int r = parse_ms(span_of(rows[i].text), &value);
        if (r != rows[i].result || value != (r == 0 ? rows[i].ms : 77))
            fail_msg("'%s': %d, %llu", rows[i].text, r, (unsigned long long)value);
    }
}

static void
test_parse_u64(void **state)
{
    (void)state;
    uint64_t value = 77;
    assert_int_equal(parse_u64(span_of("18446744073709551615"), &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(parse_u64(span_of("18446744073709551616"), &value), -ERANGE);
    assert_int_equal(parse_u64(span_of("1k"), &value), -EINVAL);
    assert_int_equal(parse_u64(span_of(""), &value), -EINVAL);
    assert_int_equal(parse_u64(span_of("0012"), &value), 0);
    assert_int_equal(value, 12);
}

/* What is printed is exact: it parses back to the same number. */
static void
test_format(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        const char *bytes, *ms;
    } rows[] = {
        {0, "0", "0ms"},
        {1, "1", "1ms"},
        {1500, "1500", "1500ms"},
        {5000, "5000", "5s"},
        {60000, "60000", "1min"},
        {1024, "1K", "1024ms"},
        {268435456, "256M", "268435456ms"},
        {3600000, "3600000", "1h"},
        {1ULL << 40, "1T", "1099511627776ms"},
        {UINT64_MAX, "18446744073709551615", "18446744073709551615ms"},
    };
    char text[UNITS_TEXT_BYTES];
    for (size_t i = 0; i < ROWS(rows); i++) {
        uint64_t back;
        assert_string_equal(format_bytes(rows[i].value, text), rows[i].bytes);
        assert_int_equal(parse_bytes(span_of(text), &back), 0);
        assert_true(back == rows[i].value);
        assert_string_equal(format_ms(rows[i].value, text), rows[i].ms);
        assert_int_equal(parse_ms(span_of(text), &back), 0);
        assert_true(back == rows[i].value);
    }
}

/* ---- UTF-8 ---- */

static void
test_utf8_next(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int result;
    } rows[] = {
        {"a", 1},
        {"\x7F", 1},
        {"\x80", 0},             /* a continuation without a lead */
        {"\xC1\xBF", 0},         /* overlong */
        {"\xC2\x80", 2},         /* U+0080 */
        {"\xDF\xBF", 2},         /* U+07FF */
        {"\xE0\x9F\xBF", 0},     /* overlong */
        {"\xE0\xA0\x80", 3},     /* U+0800 */
        {"\xED\x9F\xBF", 3},     /* U+D7FF */
        {"\xED\xA0\x80", 0},     /* a surrogate */
        {"\xEE\x80\x80", 3},     /* U+E000 */
        {"\xEF\xBF\xBF", 3},     /* U+FFFF */
        {"\xF0\x8F\xBF\xBF", 0}, /* overlong */
        {"\xF0\x90\x80\x80", 4}, /* U+10000 */
        {"\xF4\x8F\xBF\xBF", 4}, /* U+10FFFF */
        {"\xF4\x90\x80\x80", 0}, /* past the end of Unicode */
        {"\xF5\x80\x80\x80", 0},
        {"\xFF", 0},
        {"\xC2", -1},
        {"\xE2\x82", -1},
        {"\xF0\x9F\x98", -1},
        {"\xE2"
         "a",
         0},
        {"\xF0\x9F"
         "a",
         0},
    };
    assert_int_equal(utf8_next((struct span){"", 0}), 0);
    for (size_t i = 0; i < ROWS(rows); i++)
        if (utf8_next(span_of(rows[i].bytes)) != rows[i].result)
            fail_msg("row %zu: not %d", i, rows[i].result);
}

#define FFFD "\xEF\xBF\xBD"

/* The counts are those of bytes.decode(errors='replace') in CPython. */
static void
test_utf8_append_valid(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *text;
        size_t text_n;
        uint64_t replaced;
    } rows[] = {
        {"", 0, "", 0, 0},
        {"plain\0nul", 9, "plain\0nul", 9, 0},
        {"\xE2\x82\xAC", 3, "\xE2\x82\xAC", 3, 0},
        {"a\xFFz", 3, "a" FFFD "z", 5, 1},
        {"\xE2\x82", 2, FFFD, 3, 1}, /* one unfinished character */
        {"\xE2\x82z", 3, FFFD "z", 4, 1},
        {"\xED\xA0\x80", 3, FFFD FFFD FFFD, 9, 3}, /* a surrogate */
        {"\xF0\x9F\x98\xF0\x9F\x98\x80", 7, FFFD "\xF0\x9F\x98\x80", 7, 1},
        {"\xC0\x80", 2, FFFD FFFD, 6, 2},
        {"\xF4\x90\x80\x80", 4, FFFD FFFD FFFD FFFD, 12, 4},
        {"\x80\x80", 2, FFFD FFFD, 6, 2},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        AUTO_BUF struct buf out;
        buf_init(&out, 100);
        uint64_t replaced = 99;
        struct span s = {rows[i].bytes, rows[i].n};
        assert_int_equal(utf8_append_valid(&out, s, &replaced), 0);
        if (out.n != rows[i].text_n || replaced != rows[i].replaced)
            fail_msg("row %zu: %zu bytes, %llu replaced", i, out.n,
                     (unsigned long long)replaced);
        assert_memory_equal(buf_span(&out).p, rows[i].text, out.n);
    }
    AUTO_BUF struct buf small;
    buf_init(&small, 2);
    uint64_t replaced = 99;
    assert_int_equal(utf8_append_valid(&small, span_of("\xFF"), &replaced), -ENOSPC);
    assert_int_equal(replaced, 99);
}

static void
test_utf8_unfinished_tail(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {
        {"", 0},
        {"a", 0},
        {"a\xC2", 1},
        {"a\xE2\x82", 2},
        {"\xF0\x9F", 2},
        {"\xF0\x9F\x98", 3},
        {"\xE2\x82\xAC", 0},
        {"\x80\x80\x80\x80", 0},
        {"\xFF", 0},
        {"\xED\xA0", 0},
        {"\xC3\xA9\xC3", 1},
        {"\x82\x82\x82\xE2", 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(utf8_unfinished_tail(span_of(rows[i].bytes)), rows[i].n);
}

/* ---- descriptors ---- */

static bool
is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void
test_fd_ownership(void **state)
{
    (void)state;
    int kept, closed;
    {
        AUTO_CLOSE int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
        AUTO_CLOSE int b = open("/dev/null", O_RDONLY | O_CLOEXEC);
        AUTO_CLOSE int none = -1;
        (void)none;
        assert_true(a >= 0 && b >= 0);
        closed = a;
        kept = fd_take(&b);
        assert_int_equal(b, -1);
        errno = EPROTO;
        fd_close(&(int){-1});
        fd_close(NULL);
        assert_int_equal(errno, EPROTO);
    }
    assert_false(is_open(closed));
    assert_true(is_open(kept));
    fd_close(&kept);
    assert_false(is_open(kept));
}

static void
test_fd_move(void **state)
{
    (void)state;
    AUTO_CLOSE int spare = fcntl(open("/dev/null", O_RDONLY), F_DUPFD, 100);
    int number = spare + 7;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int old = fd;
    assert_int_equal(fd_move(&fd, number), 0);
    assert_int_equal(fd, -1);
    assert_false(is_open(old));
    assert_int_equal(fcntl(number, F_GETFD), 0); /* kept over exec */
    assert_int_equal(fcntl(number, F_SETFD, FD_CLOEXEC), 0);
    fd = number;
    assert_int_equal(fd_move(&fd, number), 0); /* onto itself */
    assert_int_equal(fcntl(number, F_GETFD), 0);
    fd_close(&number);
    fd = -1;
    assert_int_equal(fd_move(&fd, number), -EBADF);
}

static void
test_fd_read_all_is_bounded(void **state)
{
    (void)state;
    static const struct {
        size_t written, max;
        int result;
    } rows[] = {{0, 10, 0},       {10, 10, 0},     {11, 10, -ENOSPC},
                {5000, 5000, 0},  {4096, 4096, 0}, {4097, 4096, -ENOSPC},
                {9000, 20000, 0}, {1, 0, -ENOSPC}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        int pair[2];
        char bytes[9000];
        memset(bytes, 'r', sizeof(bytes));
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        assert_int_equal(fd_write_all(pair[1], bytes, rows[i].written), 0);
        close(pair[1]);
        AUTO_BUF struct buf buf;
        buf_init(&buf, rows[i].max);
        assert_int_equal(fd_read_all(pair[0], &buf), rows[i].result);
        if (rows[i].result == 0)
            assert_int_equal(buf.n, rows[i].written);
        close(pair[0]);
    }
    struct buf none = {.max = 1};
    assert_int_equal(fd_read_all(-1, &none), -EBADF);
}

static void
test_fd_nonblocking(void **state)
{
    (void)state;
    int pair[2];
    char byte;
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    assert_int_equal(fd_set_nonblocking(pair[0]), 0);
    assert_int_equal(read(pair[0], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fd_set_nonblocking(-1), -EBADF);
    close(pair[0]);
    close(pair[1]);
}

static void
test_fd_messages(void **state)
{
    (void)state;
    int pair[2], files[2], got[FD_MESSAGE_MAX];
    char text[16] = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe(files), 0);
    assert_int_equal(fd_send(pair[0], "hello", 5, files, 2), 0);
    assert_int_equal(fd_receive(pair[1], text, sizeof(text), got, FD_MESSAGE_MAX), 5);
    assert_string_equal(text, "hello");
    assert_true(got[0] >= 0 && got[1] >= 0);
    assert_int_equal(got[2], -1);
    assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(got[1], "p", 1), 1); /* it is the same pipe */
    assert_int_equal(read(files[0], text, 1), 1);
    close(got[0]);
    close(got[1]);

    /* More descriptors than were asked for are closed, not leaked. */
    int before = dup(0);
    close(before);
    assert_int_equal(fd_send(pair[0], "x", 1, files, 2), 0);
    assert_int_equal(fd_receive(pair[1], text, sizeof(text), NULL, 0), 1);
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);

    int five[FD_MESSAGE_MAX + 1] = {0};
    assert_int_equal(fd_send(pair[0], "x", 1, five, FD_MESSAGE_MAX + 1), -EINVAL);
    close(pair[0]);
    assert_int_equal(fd_receive(pair[1], text, sizeof(text), got, 1), 0);
    assert_int_equal(fd_send(pair[1], "x", 1, NULL, 0),
                     -EPIPE); /* an error, not a signal */
    close(pair[1]);
    close(files[0]);
    close(files[1]);
}

static void
test_kernel_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/adyton-test-base-XXXXXX";
    assert_non_null(mkdtemp(folder));
    AUTO_CLOSE int dir = open(folder, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    close(openat(dir, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    uint64_t value = 77;
    char text[8];
    assert_int_equal(file_write_u64(dir, "f", UINT64_MAX), 0);
    assert_int_equal(file_read_u64(dir, "f", &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(file_read(dir, "f", text, sizeof(text)),
                     7); /* what fits, terminated */
    assert_string_equal(text, "1844674");
    assert_int_equal(file_write(dir, "none", "x"), -ENOENT);
    assert_int_equal(file_read_u64(dir, "none", &value), -ENOENT);

    assert_int_equal(
        file_write(dir, "f", "oom 1\noom_kill 2\nbad x\nbig 99999999999999999999\n"), 0);
    assert_int_equal(file_read_keyed_u64(dir, "f", "oom", &value), 0);
    assert_int_equal(value, 1);
    assert_int_equal(file_read_keyed_u64(dir, "f", "oom_kill", &value), 0);
    assert_int_equal(value, 2);
    assert_int_equal(file_read_keyed_u64(dir, "f", "kill", &value), -ENOENT);
    assert_int_equal(file_read_keyed_u64(dir, "f", "bad", &value), -EINVAL);
    assert_int_equal(file_read_keyed_u64(dir, "f", "big", &value), -ERANGE);
    assert_int_equal(file_read_u64(dir, "f", &value), -EINVAL); /* "oom" is no number */
    unlinkat(dir, "f", 0);
    rmdir(folder);
}

static void
test_clock_goes_forward(void **state)
{
    (void)state;
    uint64_t before = clock_now_us();
    usleep(2000);
    uint64_t passed = clock_now_us() - before;
    assert_true(passed >= 2000 && passed < 60000000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err),
        cmocka_unit_test(test_err_is_bounded),
        cmocka_unit_test(test_buf_holds_to_its_maximum),
        cmocka_unit_test(test_buf_keeps_what_it_held),
        cmocka_unit_test(test_buf_done),
        cmocka_unit_test(test_parse_bytes),
        cmocka_unit_test(test_parse_ms),
        cmocka_unit_test(test_parse_u64),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_utf8_next),
        cmocka_unit_test(test_utf8_append_valid),
        cmocka_unit_test(test_utf8_unfinished_tail),
        cmocka_unit_test(test_fd_ownership),
        cmocka_unit_test(test_fd_move),
        cmocka_unit_test(test_fd_read_all_is_bounded),
        cmocka_unit_test(test_fd_nonblocking),
        cmocka_unit_test(test_fd_messages),
        cmocka_unit_test(test_kernel_files),
        cmocka_unit_test(test_clock_goes_forward),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
