/* cell/collect: hostile trees. */
#include "collect_tree.h"

static void
test_ordinary(void **state)
{
    (void)state;
    assert_int_equal(mkdirat(at.tree, "sub", 0700), 0);
    put(at.tree, "z.csv", "a,b\n1,2\n");
    put(at.tree, "sub/b.json", "{\"a\": 1}");
    put(at.tree, "a.txt", "abc");
    put(at.tree, "empty", "");
    put(at.tree, "plot.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
    put_bytes(at.tree, "pic", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, 0644);
    put_bytes(at.tree, "suid", "#!/bin/sh\n", 10, 06755);
    collect(&wide);

    static const struct {
        const char *path, *mime;
        uint64_t bytes;
    } expected[] = {
        {"a.txt", "text/plain", 3},
        {"empty", "text/plain", 0},
        {"pic", "image/png", 16},
        {"plot.svg", "image/svg+xml", 41},
        {"sub/b.json", "application/json", 8},
        {"suid", "text/x-shellscript", 10},
        {"z.csv", "text/csv", 8},
    };
    assert_int_equal(outcome.files_n, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < outcome.files_n; i++) {
        assert_string_equal(outcome.files[i].path, expected[i].path);
        assert_string_equal(outcome.files[i].mime, expected[i].mime);
        assert_int_equal(outcome.files[i].bytes, expected[i].bytes);
    }
    assert_string_equal(
        outcome.files[0].sha256,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(
        outcome.files[1].sha256,
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(text_of(at.out, "sub/b.json"), "{\"a\": 1}");
    assert_string_equal(outcome.files_note, "");
    assert_int_equal(outcome.files_skipped, 0);
    /* Nothing comes out executable, least of all with somebody's rights. */
    struct stat st;
    assert_int_equal(fstatat(at.out, "suid", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(fstatat(at.out, "sub", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
}

static void
put_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/tree/socket", at.path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void
test_only_regular_files(void **state)
{
    (void)state;
    put(at.top, "secret", "of the host");
    put(at.tree, "good", "good");
    char secret[128];
    snprintf(secret, sizeof(secret), "%s/secret", at.path);
    assert_int_equal(symlinkat(secret, at.tree, "link"), 0);
    assert_int_equal(symlinkat("../secret", at.tree, "up"), 0);
    assert_int_equal(symlinkat("/", at.tree, "root"), 0);
    assert_int_equal(symlinkat("loop", at.tree, "loop"), 0);
    assert_int_equal(mkfifoat(at.tree, "fifo", 0644), 0);
    put_socket();
    collect(&wide);
    assert_int_equal(outcome.files_n, 1);
    assert_string_equal(outcome.files[0].path, "good");
    assert_string_equal(outcome.files_note, "4 links, 1 fifo, 1 socket skipped");
    assert_int_equal(outcome.files_skipped, 6);
    assert_int_equal(faccessat(at.out, "link", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static void
test_devices(void **state)
{
    (void)state;
    if (mknodat(at.tree, "zero", S_IFCHR | 0666, makedev(1, 5)) < 0)
        skip(); /* an ordinary user cannot make one, and neither could the cell */
    collect(&wide);
    assert_int_equal(outcome.files_n, 0);
    assert_string_equal(outcome.files_note, "1 device skipped");
}

static void
test_placed_files(void **state)
{
    (void)state;
    struct job job;
    struct err err = {0};
    job_init(&job);
    assert_int_equal(buf_append(&job.code, "pass", 4), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"same", "changed", "sub/longer"};
        struct buf data;
        buf_init(&data, 100);
        assert_int_equal(buf_append(&data, "data", 4), 0);
        assert_int_equal(job_add_file(&job, names[i], &data, &err), 0);
    }
    assert_int_equal(mkdirat(at.tree, "sub", 0755), 0);
    put(at.tree, "main.py", "pass");
    put(at.tree, "same", "data");
    put(at.tree, "changed", "DATA");
    put(at.tree, "sub/longer", "data and more");
    put(at.tree, "sub/same", "data"); /* of that content, but not placed there */
    struct collect_limits limits = wide;
    limits.job = &job;
    collect(&limits);
    assert_int_equal(outcome.files_n, 3);
    assert_string_equal(outcome.files[0].path, "changed");
    assert_string_equal(outcome.files[1].path, "sub/longer");
    assert_string_equal(outcome.files[2].path, "sub/same");
    assert_string_equal(outcome.files_note, "");
    job_done(&job);
}

static void
test_own_folders(void **state)
{
    (void)state;
    static const char *const own[] = {".cache", NULL};
    assert_int_equal(mkdirat(at.tree, ".cache", 0755), 0);
    assert_int_equal(mkdirat(at.tree, ".cachet", 0755), 0);
    put(at.tree, ".cache/x", "x");
    put(at.tree, ".cachet/x", "x");
    struct collect_limits limits = wide;
    limits.own_folders = own;
    collect(&limits);
    assert_int_equal(outcome.files_n, 1);
    assert_string_equal(outcome.files[0].path, ".cachet/x");
    assert_string_equal(outcome.files_note, "");
}

static void
test_file_limit(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%02d", (i * 7) % 40); /* made out of order */
        put(at.tree, name, "x");
    }
    assert_int_equal(symlinkat("f00", at.tree, "link"), 0);
    struct collect_limits limits = {.files = 10, .bytes = mib};
    collect(&limits);
    assert_int_equal(outcome.files_n, 10);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(outcome.files[i].path[2], '0' + (int)i);
    assert_string_equal(outcome.files_note,
                        "1 link skipped; 30 more files beyond the limit of 10");
    assert_int_equal(outcome.files_skipped, 31);
    assert_int_equal(faccessat(at.out, "f10", F_OK, 0), -1);
}

static void
test_byte_limit(void **state)
{
    (void)state;
    put(at.tree, "a", "12345678");
    put(at.tree, "b", "123");
    put(at.tree, "c", "12");
    struct collect_limits limits = {.files = 10, .bytes = 10};
    collect(&limits);
    /* What no longer fits does not stop what does. */
    assert_int_equal(outcome.files_n, 2);
    assert_string_equal(outcome.files[1].path, "c");
    assert_string_equal(outcome.files_note, "1 larger than what was left of 10");
    assert_int_equal(outcome.files_skipped, 1);
}

static void
test_sparse(void **state)
{
    (void)state;
    put(at.tree, "huge", "x");
    AUTO_CLOSE int huge = openat(at.tree, "huge", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(huge, 1024L * 1024 * 1024 * 1024), 0);
    put(at.tree, "holes", "begin");
    AUTO_CLOSE int holes = openat(at.tree, "holes", O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(holes, "middle", 6, 3 * (off_t)mib + 77), 6);
    assert_int_equal(ftruncate(holes, 8 * (off_t)mib), 0);
    collect(&wide);
    /* A length of a terabyte is not read, however little it holds. */
    assert_int_equal(outcome.files_n, 1);
    assert_string_equal(outcome.files_note, "1 larger than what was left of 64M");
    struct stat st;
    assert_int_equal(fstatat(at.out, "holes", &st, 0), 0);
    assert_int_equal(st.st_size, 8 * mib);
    assert_true(st.st_blocks * 512 < (blkcnt_t)mib);
    char middle[7] = "";
    AUTO_CLOSE int copy = openat(at.out, "holes", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(copy, middle, 6, 3 * (off_t)mib + 77), 6);
    assert_string_equal(middle, "middle");
    assert_int_equal(pread(copy, middle, 6, 0), 6);
    assert_memory_equal(middle, "begin", 6);
}

/* 40 folders of 200 bytes each: about 8,000 bytes of path, which no call takes at once.
 */
static void
test_deeper_than_a_path(void **state)
{
    (void)state;
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    AUTO_CLOSE int dir = dup(at.tree);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(mkdirat(dir, name, 0755), 0);
        int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(dir);
        dir = next;
        if (i < 8)
            put(dir, "leaf", "x");
    }
    collect(&wide);
    /* 1,023 bytes hold five such folders; the sixth does not fit, nor does what is in it.
     */
    assert_int_equal(outcome.files_n, 5);
    assert_string_equal(outcome.files_note, "1 path too deep or long skipped");
}

static void
test_many_levels(void **state)
{
    (void)state;
    AUTO_CLOSE int dir = dup(at.tree);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(mkdirat(dir, "d", 0755), 0);
        int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(dir);
        dir = next;
        put(dir, "f", "x");
    }
    collect(&wide);
    assert_int_equal(outcome.files_n, COLLECT_DEPTH_MAX);
    assert_string_equal(outcome.files_note, "1 path too deep or long skipped");
}

static void
test_names_are_exact(void **state)
{
    (void)state;
    static const char *const names[] = {"\n\x1b[2J", " lead",       "-rf", "caf\xc3\xa9",
                                        "\xff\xfe",  "back\\slash", "...", "..a"};
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = '\0';
    put(at.tree, longest, "x");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        put(at.tree, names[i], "x");
    collect(&wide);
    assert_int_equal(outcome.files_n, 1 + sizeof(names) / sizeof(names[0]));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        file_named(names[i]);
        assert_string_equal(text_of(at.out, names[i]), "x");
    }
    assert_string_equal(text_of(at.out, longest), "x");
    assert_string_equal(outcome.files[0].path, "\n\x1b[2J"); /* sorted as bytes */
    assert_string_equal(outcome.files[outcome.files_n - 1].path, "\xff\xfe");
}

static int
collect_unreadable(void)
{
    /* As the user who owns them: for root no mode is a barrier. */
    if (geteuid() == 0 &&
        (setresgid(12345, 12345, 12345) < 0 || setresuid(12345, 12345, 12345)))
        return CHILD_SKIP;
    if (faccessat(at.tree, "closed/inner", R_OK, AT_EACCESS) == 0)
        return CHILD_SKIP; /* the barrier is none here */
    struct err err = {0};
    if (collect_files(at.tree, &wide, -1, &outcome, &err) < 0)
        return CHILD_BAD;
    return outcome.files_n == 3 && strcmp(outcome.files[0].path, "blind/f") == 0 &&
                   strcmp(outcome.files[1].path, "closed/inner/f") == 0 &&
                   strcmp(outcome.files[2].path, "secret") == 0 &&
                   outcome.files_note[0] == '\0'
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_unreadable_are_ours(void **state)
{
    (void)state;
    assert_int_equal(mkdirat(at.tree, "closed", 0755), 0);
    assert_int_equal(mkdirat(at.tree, "closed/inner", 0755), 0);
    assert_int_equal(mkdirat(at.tree, "blind", 0755), 0);
    put(at.tree, "closed/inner/f", "x");
    put(at.tree, "blind/f", "x");
    put(at.tree, "secret", "x");
    static const char *const closed[] = {"closed/inner/f", "closed/inner", "closed",
                                         "blind/f",        "blind",        "secret"};
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
        mode_t mode = strcmp(closed[i], "blind") == 0 ? 0400 : 0;
        if (geteuid() == 0)
            assert_int_equal(fchownat(at.tree, closed[i], 12345, 12345, 0), 0);
        assert_int_equal(fchmodat(at.tree, closed[i], mode, 0), 0);
    }
    if (geteuid() == 0)
        assert_int_equal(fchown(at.tree, 12345, 12345), 0);
    assert_int_equal(fchmod(at.tree, 0755), 0);
    int seen = in_child(collect_unreadable);
    if (seen == CHILD_SKIP)
        skip();
    assert_int_equal(seen, CHILD_GOOD);
}

/* A mount of another file system within the tree, as no cell can make one. */
static int
collect_across_mount(void)
{
    char sub[128], uids[48], gids[48];
    bool root = geteuid() == 0;
    snprintf(uids, sizeof(uids), "0 %ld 1", (long)geteuid());
    snprintf(gids, sizeof(gids), "0 %ld 1", (long)getegid());
    snprintf(sub, sizeof(sub), "%s/tree/sub", at.path);
    if (unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) < 0 ||
        (!root && (file_write(AT_FDCWD, "/proc/self/uid_map", uids) < 0 ||
                   file_write(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
                   file_write(AT_FDCWD, "/proc/self/gid_map", gids) < 0)) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", sub, "tmpfs", 0, NULL) < 0)
        return CHILD_SKIP;
    /* The descriptor of before leads through the mounts of before. */
    fd_close(&at.tree);
    at.tree = openat(AT_FDCWD, at.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    at.tree = openat(at.tree, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int fd = openat(at.tree, "sub/elsewhere", O_CREAT | O_CLOEXEC, 0644);
    struct err err = {0};
    if (fd < 0 || collect_files(at.tree, &wide, -1, &outcome, &err) < 0)
        return CHILD_BAD;
    return outcome.files_n == 1 && strcmp(outcome.files[0].path, "here") == 0 &&
                   strcmp(outcome.files_note, "1 entry of another file system skipped") ==
                       0
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_other_file_system(void **state)
{
    (void)state;
    assert_int_equal(mkdirat(at.tree, "sub", 0755), 0);
    put(at.tree, "here", "x");
    int seen = in_child(collect_across_mount);
    if (seen == CHILD_SKIP)
        skip();
    assert_int_equal(seen, CHILD_GOOD);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(test_ordinary),
        TEST(test_only_regular_files),
        TEST(test_devices),
        TEST(test_placed_files),
        TEST(test_own_folders),
        TEST(test_file_limit),
        TEST(test_byte_limit),
        TEST(test_sparse),
        TEST(test_deeper_than_a_path),
        TEST(test_many_levels),
        TEST(test_names_are_exact),
        TEST(test_unreadable_are_ours),
        TEST(test_other_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
