/* The measure of memory pressure: where each level begins, and where it is left again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/pressure.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

static enum pressure_level
judge(uint64_t total, uint64_t available, enum pressure_level before)
{
    const struct memory_room room = {.total_bytes = total, .available_bytes = available};
    size_t tightest;
    return pressure_judge(&room, 1, before, &tightest);
}

static void
test_levels_begin_and_end(void **state)
{
    static const struct {
        uint64_t total, available;
        enum pressure_level before, wanted;
    } rows[] = {
        {512 * MIB, 400 * MIB, PRESSURE_NONE, PRESSURE_NONE},
        {512 * MIB, 64 * MIB, PRESSURE_NONE, PRESSURE_NONE},
        {512 * MIB, 63 * MIB, PRESSURE_NONE, PRESSURE_LOW},
        {512 * MIB, 32 * MIB, PRESSURE_NONE, PRESSURE_LOW},
        {512 * MIB, 31 * MIB, PRESSURE_NONE, PRESSURE_HIGH},
        {512 * MIB, 0, PRESSURE_LOW, PRESSURE_HIGH},
        /* Once reached, a quarter more is wanted. */
        {512 * MIB, 39 * MIB, PRESSURE_HIGH, PRESSURE_HIGH},
        {512 * MIB, 40 * MIB, PRESSURE_HIGH, PRESSURE_LOW},
        {512 * MIB, 79 * MIB, PRESSURE_HIGH, PRESSURE_LOW},
        {512 * MIB, 79 * MIB, PRESSURE_LOW, PRESSURE_LOW},
        {512 * MIB, 80 * MIB, PRESSURE_LOW, PRESSURE_NONE},
        /* A share of a large host is no shortage. */
        {1024 * GIB, 2 * GIB, PRESSURE_NONE, PRESSURE_NONE},
        {1024 * GIB, 2 * GIB - 1, PRESSURE_NONE, PRESSURE_LOW},
        {1024 * GIB, 1 * GIB - 1, PRESSURE_NONE, PRESSURE_HIGH},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(judge(rows[i].total, rows[i].available, rows[i].before),
                         rows[i].wanted);
}

static void
test_the_tightest_room_counts(void **state)
{
    const struct memory_room rooms[] = {
        {.total_bytes = 24 * GIB, .available_bytes = 20 * GIB},
        {.total_bytes = 512 * MIB, .available_bytes = 10 * MIB},
        {.total_bytes = 4 * GIB, .available_bytes = 1 * GIB},
    };
    size_t tightest;
    (void)state;
    assert_int_equal(pressure_judge(rooms, 3, PRESSURE_NONE, &tightest), PRESSURE_HIGH);
    assert_int_equal(tightest, 1);
    assert_int_equal(pressure_judge(rooms, 1, PRESSURE_HIGH, &tightest), PRESSURE_NONE);
    assert_int_equal(tightest, 0);
}

/* A capped level on a large host must not point at the room with the smaller share. */
static void
test_a_room_that_is_short_is_named(void **state)
{
    const struct memory_room rooms[] = {
        {.total_bytes = 4 * GIB, .available_bytes = 600 * MIB},
        {.total_bytes = 1024 * GIB, .available_bytes = 3 * GIB},
    };
    size_t tightest;
    (void)state;
    assert_int_equal(pressure_judge(rooms, 2, PRESSURE_LOW, &tightest), PRESSURE_LOW);
    assert_int_equal(tightest, 0);
}

static void
test_what_must_come_free(void **state)
{
    const struct memory_room room = {.total_bytes = 512 * MIB,
                                     .available_bytes = 10 * MIB};
    const struct memory_room enough = {.total_bytes = 512 * MIB,
                                       .available_bytes = 100 * MIB};
    (void)state;
    assert_int_equal(pressure_need_bytes(&room), 70 * MIB);
    assert_int_equal(pressure_need_bytes(&enough), 0);
}

/* --- what is read --- */

static void
write_file(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void
remove_tree(const char *folder)
{
    char command[300];
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* v2 in the outer folder, v1 in the one below it: folders, as no host has both. */
static void
test_groups_are_read_up_to_the_top(void **state)
{
    char top[] = "/tmp/adyton-groups-XXXXXX", outer[200], inner[240];
    struct memory_watch watch = {0};
    struct memory_room rooms[MEMORY_ROOMS_MAX];
    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(outer, sizeof(outer), "%s/outer", top);
    snprintf(inner, sizeof(inner), "%s/inner", outer);
    assert_int_equal(mkdir(outer, 0700) | mkdir(inner, 0700), 0);
    write_file(outer, "memory.max", "104857600\n");
    write_file(outer, "memory.current", "83886080\n");
    write_file(outer, "memory.stat", "anon 1\ninactive_file 10485760\nactive_file 0\n");
    write_file(inner, "memory.limit_in_bytes", "20971520\n");
    write_file(inner, "memory.usage_in_bytes", "20971520\n");
    write_file(inner, "memory.stat",
               "total_inactive_file 0\ntotal_active_file 1048576\n");
    snprintf(watch.top, sizeof(watch.top), "%s", top);
    snprintf(watch.folder, sizeof(watch.folder), "%s", inner);
    assert_int_equal(memory_look(&watch, rooms), 3);
    assert_string_equal(rooms[0].where, "host");
    assert_true(rooms[0].total_bytes > 64 * MIB && rooms[0].available_bytes > 0);
    assert_string_equal(rooms[1].where, inner);
    assert_int_equal(rooms[1].available_bytes, 1 * MIB);
    assert_string_equal(rooms[2].where, outer);
    assert_int_equal(rooms[2].total_bytes, 100 * MIB);
    assert_int_equal(rooms[2].available_bytes, 30 * MIB);
    write_file(outer, "memory.max", "max\n"); /* no limit: no room of its own */
    assert_int_equal(memory_look(&watch, rooms), 2);
    remove_tree(top);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_begin_and_end),
        cmocka_unit_test(test_the_tightest_room_counts),
        cmocka_unit_test(test_a_room_that_is_short_is_named),
        cmocka_unit_test(test_what_must_come_free),
        cmocka_unit_test(test_groups_are_read_up_to_the_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
