/* cell/collect: the output folder, which belongs to the caller and may hold anything. */
#include "collect_tree.h"

static void
test_hostile_output_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"fifo", "folder", "link", "linked/f", "plain/f"};
    char outside[128];
    assert_int_equal(mkdirat(at.tree, "linked", 0755), 0);
    assert_int_equal(mkdirat(at.tree, "plain", 0755), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        put(at.tree, names[i], "new");
    put(at.tree, "fine", "new");

    put(at.top, "victim", "untouched");
    assert_int_equal(mkdirat(at.top, "outside", 0755), 0);
    snprintf(outside, sizeof(outside), "%s/victim", at.path);
    assert_int_equal(symlinkat(outside, at.out, "link"), 0);
    assert_int_equal(symlinkat("../outside", at.out, "linked"), 0);
    assert_int_equal(mkdirat(at.out, "folder", 0755), 0);
    assert_int_equal(mkfifoat(at.out, "fifo", 0644), 0);
    put(at.out, "plain", "a file where a folder is wanted");
    collect(&wide);
    assert_int_equal(outcome.files_n, 1);
    assert_string_equal(outcome.files[0].path, "fine");
    assert_string_equal(outcome.files_note, "5 names taken in the output folder skipped");
    assert_string_equal(text_of(at.top, "victim"), "untouched");
    assert_int_equal(faccessat(at.top, "outside/f", F_OK, 0), -1);
    assert_string_equal(text_of(at.out, "plain"), "a file where a folder is wanted");
}

static void
test_replaces_as_a_whole(void **state)
{
    (void)state;
    put(at.tree, "f", "new");
    put(at.out, "f", "old");
    /* Another name of the old file keeps the old bytes: it was not written into. */
    assert_int_equal(linkat(at.out, "f", at.top, "kept", 0), 0);
    collect(&wide);
    assert_string_equal(text_of(at.out, "f"), "new");
    assert_string_equal(text_of(at.top, "kept"), "old");
    assert_int_equal(count_names(at.out), 1);
}

/* A file system that knows no files without a name (NFS): the kernel's answer, by a
 * filter. */
static int
collect_without_tmpfile(void)
{
    static const uint64_t bit = O_TMPFILE & ~O_DIRECTORY;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter ||
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(EOPNOTSUPP), SCMP_SYS(openat), 1,
                         SCMP_A2(SCMP_CMP_MASKED_EQ, bit, bit)) < 0 ||
        seccomp_load(filter) < 0)
        return CHILD_SKIP;
    if (openat(at.out, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) >= 0)
        return CHILD_BAD;
    struct err err = {0};
    return collect_files(at.tree, &wide, at.out, &outcome, &err) == 0 &&
                   outcome.files_n == 2
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_file_system_without_tmpfile(void **state)
{
    (void)state;
    put(at.tree, "a", "new");
    put(at.tree, "b", "new");
    put(at.out, "b", "old");
    assert_int_equal(in_child(collect_without_tmpfile), CHILD_GOOD);
    assert_string_equal(text_of(at.out, "a"), "new");
    assert_string_equal(text_of(at.out, "b"), "new");
    assert_int_equal(count_names(at.out), 2);
}

static int
collect_into_full(void)
{
    struct rlimit limit = {1000, 1000};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return CHILD_SKIP;
    struct err err = {0};
    int r = collect_files(at.tree, &wide, at.out, &outcome, &err);
    return r == -EFBIG && strstr(err.text, "cannot write into the output folder") &&
                   outcome.files_n == 1
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_unwritable_output_is_an_error(void **state)
{
    (void)state;
    char big[2000];
    memset(big, 'x', sizeof(big));
    put(at.tree, "a", "small");
    put_bytes(at.tree, "b", big, sizeof(big), 0644);
    assert_int_equal(in_child(collect_into_full), CHILD_GOOD);
    assert_string_equal(text_of(at.out, "a"), "small");
    assert_int_equal(count_names(at.out), 1); /* and no half file */
}

static void
test_without_output_folder(void **state)
{
    (void)state;
    put(at.tree, "a", "abc");
    struct err err = {0};
    assert_int_equal(collect_files(at.tree, &wide, -1, &outcome, &err), 0);
    assert_int_equal(outcome.files_n, 1);
    assert_string_equal(
        outcome.files[0].sha256,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(count_names(at.out), 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(test_hostile_output_folder),       TEST(test_replaces_as_a_whole),
        TEST(test_file_system_without_tmpfile), TEST(test_unwritable_output_is_an_error),
        TEST(test_without_output_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
