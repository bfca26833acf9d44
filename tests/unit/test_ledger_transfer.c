/* The ledger as a file for others, and from others: export and import. */
#include "ledger_fixture.h"

#include <sys/mman.h>

enum { EXPORT_BYTES = 1 << 20 };

static void
export_to(struct ledger *ledger, struct buf *text)
{
    struct err err;
    AUTO_CLOSE int fd = memfd_create("export", MFD_CLOEXEC);
    must(ledger_export(ledger, fd, &err), &err);
    buf_init(text, EXPORT_BYTES);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(fd_read_all(fd, text), 0);
}

static int
text_fd(struct span text)
{
    int fd = memfd_create("import", MFD_CLOEXEC);
    assert_int_equal(fd_write_all(fd, text.p, text.n), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* Without a file: for many. */
static int
try_import(struct span text, struct err *err)
{
    AUTO_CLOSE int fd = text_fd(text);
    AUTO_LEDGER struct ledger *ledger = NULL;
    *err = (struct err){0};
    must(ledger_open_scratch(&ledger, err), err);
    return import_into(ledger, fd, err);
}

static int
import_text(struct span text, struct err *err)
{
    char path[PATH_BYTES + 32];
    AUTO_CLOSE int fd = text_fd(text);
    snprintf(path, sizeof(path), "%s/imported.db", at.folder);
    *err = (struct err){0};
    int r = ledger_import(path, fd, err);
    if (r < 0)
        assert_int_equal(access(path, F_OK), -1); /* nothing is left of it */
    return r;
}

static void
test_an_export_comes_back_as_it_was(void **state)
{
    (void)state;
    AUTO_BUF struct buf first = {0}, second = {0};
    struct err err;
    uint64_t rows;
    char path[PATH_BYTES + 32];
    add_run("print(1)\n", NULL, STATUS_OK, NULL, NULL);
    add_run("", "s_1", STATUS_VIOLATION, "ptrace", NULL);
    const struct ledger_retention keep_none = {.days = 0, .bytes = UINT64_MAX};
    add_run("print('\xff\\n')\n", NULL, STATUS_OK, NULL, NULL);
    must(ledger_prune(at.ledger, &keep_none, &rows, &err), &err);
    assert_int_equal(rows, 5);
    struct outcome outcome;
    int64_t seq;
    outcome_init(&outcome);
    const struct ledger_intent intent = intent_of(&outcome, "open");
    must(ledger_intent(at.ledger, &intent, &seq, &err), &err);
    export_to(at.ledger, &first);
    must(import_text(buf_span(&first), &err), &err);
    snprintf(path, sizeof(path), "%s/imported.db", at.folder);
    AUTO_LEDGER struct ledger *imported = NULL;
    must(ledger_open(path, LEDGER_READ, &imported, &err), &err);
    export_to(imported, &second);
    assert_string_equal(first.p, second.p);
    struct ledger_verdict verdict;
    must(ledger_verify(imported, NULL, &verdict, &err), &err);
    assert_true(verdict.sound);
    assert_int_equal(verdict.open, 1);
    AUTO_CLOSE int fd = memfd_create("again", MFD_CLOEXEC);
    assert_int_equal(ledger_import(path, fd, &err), -EEXIST);
    outcome_done(&outcome);
}

/* Every byte of a sound export that is changed is either refused, or was none that counts. */
static void
test_a_changed_export_is_refused(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = {0};
    struct err err;
    add_run("print(1)\n", NULL, STATUS_OK, "ptrace", NULL);
    export_to(at.ledger, &text);
    for (size_t i = 0; i < text.n; i++) {
        text.p[i] ^= 1;
        if (try_import(buf_span(&text), &err) == 0)
            fail_msg("byte %zu ('%c' in its place) went unseen", i, text.p[i]);
        text.p[i] ^= 1;
    }
    for (size_t n = 0; n < text.n; n++)
        assert_true(try_import((struct span){text.p, n}, &err) < 0);
    must(try_import(buf_span(&text), &err), &err);
    text.p[text.n / 2] ^= 1;
    assert_true(import_text(buf_span(&text), &err) < 0);
}

static void
test_hostile_exports_are_refused(void **state)
{
    (void)state;
    enum { LONG = 200 * 1024 };
    static const char head[] =
        "{\"schema\":\"adyton.ledger/1\",\"anchor_seq\":0,"
        "\"anchor_hash\":\"0000000000000000000000000000000000000000"
        "000000000000000000000000\"}\n";
    static const struct {
        const char *after, *part; /* the head stands before it */
        const char *fill;         /* repeated to a line that is too long */
    } rows[] = {
        {"", "ends before", NULL},
        {"\n", "line 2: it is no JSON", NULL},
        {"[]\n", "line 2", NULL},
        {"{}\n", "line 2: row 1 is missing", NULL},
        {"{\"seq\":1}\n", "row 1 is missing", NULL},
        {"{\"seq\":1,\"seq\":1}\n", "no JSON", NULL},
        {"{\"seq\":\"1\"}\n", "'seq' is no value", NULL},
        {"{\"seq\":1.5}\n", "'seq' is no value", NULL},
        {"{\"seq\":99999999999999999999}\n", "no JSON", NULL},
        {"{\"nothing\":1}\n", "'nothing' is no value", NULL},
        {"{\"hash\":\"00\"}\n", "'hash' is no value", NULL},
        {"{\"hash\":\"zz\"}\n", "'hash' is no value", NULL},
        {"{\"head_seq\":5,\"head_hash\":\"00\"}\n", "no head", NULL},
        {"{\"code\":\"0000000000000000000000000000000000000000000000000000000000000000\","
         "\"base64\":\"!\"}\n",
         "base 64", NULL},
        {"{\"code\":\"0000000000000000000000000000000000000000000000000000000000000000\","
         "\"base64\":\"AAAA\"}\n",
         "no row names it", NULL},
        {"{\"run\":\"", "line 2: it has more than", "x"},
        {"", "line 2: it has more than", "["},
        {"", "line 2: it has more than", "{\"a\":"},
        {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
         "no JSON", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AUTO_BUF struct buf text;
        struct err err;
        buf_init(&text, EXPORT_BYTES);
        assert_int_equal(buf_printf(&text, "%s%s", head, rows[i].after), 0);
        while (rows[i].fill && text.n < LONG)
            assert_int_equal(buf_append(&text, rows[i].fill, strlen(rows[i].fill)), 0);
        if (rows[i].fill)
            assert_int_equal(buf_append(&text, "\n", 1), 0);
        assert_true(try_import(buf_span(&text), &err) < 0);
        if (!strstr(err.text, rows[i].part))
            fail_msg("row %zu: '%s' is not in '%s'", i, rows[i].part, err.text);
    }
    struct err err;
    assert_true(try_import(span_of(""), &err) < 0);
    assert_true(try_import(span_of("{\"schema\":\"adyton.ledger/2\"}\n"), &err) < 0);
    assert_non_null(strstr(err.text, "line 1"));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_export_comes_back_as_it_was, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_changed_export_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_exports_are_refused, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("ledger transfer", tests, NULL, NULL);
}
