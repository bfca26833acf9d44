/* Filters that are kept: the same as compiled ones, or none at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/cache.h"
#include "engine/filter_cache.h"

enum { PATH_BYTES = 300, LANDLOCK_ABI = 6 };

static struct {
    char home[64], folder[96], file[PATH_BYTES];
} at;

/* The one file that is kept. */
static void
find_file(void)
{
    DIR *dir = opendir(at.folder);
    at.file[0] = '\0';
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            snprintf(at.file, sizeof(at.file), "%s/%.180s", at.folder, entry->d_name);
    if (dir)
        closedir(dir);
}

static void
empty_folder(void)
{
    for (find_file(); at.file[0] != '\0'; find_file())
        assert_int_equal(unlink(at.file), 0);
}

static int
set_up(void **state)
{
    (void)state;
    snprintf(at.home, sizeof(at.home), "/tmp/adyton-cache-XXXXXX");
    if (!mkdtemp(at.home))
        return -1;
    snprintf(at.folder, sizeof(at.folder), "%s/adyton", at.home);
    return setenv("XDG_CACHE_HOME", at.home, 1);
}

static int
tear_down(void **state)
{
    (void)state;
    chmod(at.folder, 0700);
    empty_folder();
    rmdir(at.folder);
    return rmdir(at.home);
}

static unsigned
standard(void)
{
    struct policy policy = {0};
    struct err err;
    if (policy_load("standard", &policy, &err) < 0)
        fail_msg("%s", err.text);
    unsigned when = jail_syscall_when(&policy, LANDLOCK_ABI);
    policy_done(&policy);
    return when;
}

static void
make(unsigned when, const struct filter_store *store, struct seal *ret)
{
    struct err err;
    memset(ret, 0, sizeof(*ret));
    if (jail_filter_cell(when, store, ret, &err) < 0)
        fail_msg("%s", err.text);
}

static void
assert_same(const struct seal *a, const struct seal *b)
{
    assert_true(a->filter_n > 100);
    assert_int_equal(a->filter_n, b->filter_n);
    assert_int_equal(a->notify, b->notify);
    assert_memory_equal(a->filter, b->filter, a->filter_n * sizeof(*a->filter));
}

/* A store that never finds, and counts. */
static unsigned compiled;

static bool
find_counted(const char *name, struct seal *ret)
{
    bool found = filter_cache.find(name, ret);
    compiled += !found;
    return found;
}

static void
keep_counted(const char *name, const struct seal *seal)
{
    filter_cache.keep(name, seal);
}

static const struct filter_store counted = {find_counted, keep_counted};

static void
test_what_is_kept_is_what_was_compiled(void **state)
{
    (void)state;
    static const char *const names[] = {"strict", "standard", "open"};
    static struct seal plain, first, second;
    compiled = 0;
    for (size_t i = 0; i < 3; i++) {
        struct policy policy = {0};
        struct err err;
        assert_int_equal(policy_load(names[i], &policy, &err), 0);
        unsigned when = jail_syscall_when(&policy, LANDLOCK_ABI);
        policy_done(&policy);
        make(when, NULL, &plain);
        make(when, &counted, &first);
        make(when, &counted, &second);
        assert_same(&plain, &first);
        assert_same(&plain, &second);
        assert_int_equal(compiled, i + 1);
    }
    struct err err;
    memset(&plain, 0, sizeof(plain));
    memset(&second, 0, sizeof(second));
    assert_int_equal(jail_filter_init(NULL, &plain, &err), 0);
    assert_int_equal(jail_filter_init(&filter_cache, &first, &err), 0);
    assert_int_equal(jail_filter_init(&filter_cache, &second, &err), 0);
    assert_int_equal(second.filter_n, plain.filter_n);
    assert_memory_equal(second.filter, plain.filter,
                        plain.filter_n * sizeof(*plain.filter));
}

/* Whatever a byte of the file becomes, the filter is the compiled one. */
static void
test_a_damaged_file_is_none(void **state)
{
    (void)state;
    static struct seal plain, kept;
    unsigned when = standard();
    make(when, NULL, &plain);
    for (off_t place = 0; place < 400; place += 7) {
        empty_folder();
        make(when, &filter_cache, &kept);
        find_file();
        AUTO_CLOSE int fd = open(at.file, O_RDWR | O_CLOEXEC);
        unsigned char byte;
        assert_int_equal(pread(fd, &byte, 1, place), 1);
        byte ^= 0x11;
        assert_int_equal(pwrite(fd, &byte, 1, place), 1);
        compiled = 0;
        make(when, &counted, &kept);
        assert_same(&plain, &kept);
        assert_int_equal(compiled, 1);
    }
    find_file();
    for (off_t bytes = 0; bytes < 4000; bytes += 501) { /* cut */
        assert_int_equal(truncate(at.file, bytes), 0);
        compiled = 0;
        make(when, &counted, &kept);
        assert_same(&plain, &kept);
        assert_int_equal(compiled, 1);
    }
}

static void
test_what_others_could_write_is_not_read(void **state)
{
    (void)state;
    static struct seal kept;
    char moved[PATH_BYTES + 8];
    unsigned when = standard();
    make(when, &filter_cache, &kept);
    find_file();
    compiled = 0;
    make(when, &counted, &kept);
    assert_int_equal(compiled, 0); /* the control */
    assert_int_equal(chmod(at.file, 0620), 0);
    make(when, &counted, &kept);
    assert_int_equal(compiled, 1); /* and it was written anew */
    assert_int_equal(chmod(at.folder, 0770), 0);
    make(when, &counted, &kept);
    assert_int_equal(compiled, 2);
    assert_int_equal(chmod(at.folder, 0700), 0);
    snprintf(moved, sizeof(moved), "%s.link", at.file);
    assert_int_equal(rename(at.file, moved), 0);
    assert_int_equal(symlink(moved, at.file), 0);
    make(when, &counted, &kept);
    assert_int_equal(compiled, 3);
}

/* Under another filter's name it is not believed. */
static void
test_a_filter_under_another_name_is_none(void **state)
{
    (void)state;
    static struct seal kept;
    char other[PATH_BYTES];
    make(standard(), &filter_cache, &kept);
    find_file();
    snprintf(other, sizeof(other), "%s/filter-0123456789abcdef.bpf", at.folder);
    assert_int_equal(rename(at.file, other), 0);
    assert_false(filter_cache.find("0123456789abcdef", &kept));
}

static void
test_without_a_folder_it_is_compiled(void **state)
{
    (void)state;
    static struct seal plain, kept;
    setenv("XDG_CACHE_HOME", "/nonexistent/cache", 1);
    make(standard(), NULL, &plain);
    make(standard(), &filter_cache, &kept);
    assert_same(&plain, &kept);
    setenv("XDG_CACHE_HOME", at.home, 1);
    assert_int_equal(mkdir(at.folder, 0700), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_kept_is_what_was_compiled),
        TEST(test_a_damaged_file_is_none),
        TEST(test_what_others_could_write_is_not_read),
        TEST(test_a_filter_under_another_name_is_none),
        TEST(test_without_a_folder_it_is_compiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
