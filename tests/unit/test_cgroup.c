/*
 * jail/cgroup: a group is made with its limits, ends who is in it, and goes; an orphan's
 * is swept and nobody else's. Where this process may make no group the tests are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the headers above it. */
#include <cmocka.h>

#include "base/fd.h"
#include "jail/cgroup.h"

static struct policy
default_policy(void)
{
    struct policy policy = {0};
    struct err err = {0};
    assert_int_equal(policy_load(policy_default, &policy, &err), 0);
    return policy;
}

static struct cgroup group; /* static: for children */

static void
find_group(void)
{
    struct err err = {0};
    if (cgroup_find(&group, &err) < 0) {
        print_message("# no control group may be made here: %s\n", err.text);
        skip();
    }
}

static uint64_t
number_in(int slot, const char *file)
{
    uint64_t value = 0;
    assert_int_equal(file_read_u64(group.slots[slot].dir, file, &value), 0);
    return value;
}

static void
group_path(char *path, size_t n, size_t slot, const char *name)
{
    int length = snprintf(path, n, "%s/%s", group.slots[slot].parent, name);
    assert_true(length > 0 && (size_t)length < n);
}

static void
test_group_holds_the_limits_and_goes(void **state)
{
    (void)state;
    struct err err = {0};
    int joins[CGROUP_SLOTS];
    char path[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];
    struct cgroup_usage usage;
    struct policy policy = default_policy();
    find_group();
    if (cgroup_make(&group, &policy, &err) < 0)
        fail_msg("%s", err.text);
    bool v1 = group.version == 1;
    assert_int_equal(number_in(0, v1 ? "memory.limit_in_bytes" : "memory.max"),
                     policy.memory_bytes);
    assert_int_equal(number_in(v1 ? 1 : 0, "pids.max"), policy.pids + 1); /* and init */
    assert_int_equal(cgroup_open_joins(&group, joins, &err), 0);
    for (size_t i = 0; i < CGROUP_SLOTS; i++) {
        assert_int_equal(joins[i] >= 0, group.slots[i].parent[0] != '\0');
        fd_close(&joins[i]);
    }
    cgroup_usage(&group, &usage);
    assert_int_equal(usage.oom_kills, 0);
    assert_int_equal(usage.pids_refused, 0);
    assert_int_equal(cgroup_remove(&group), 0);
    for (size_t i = 0; i < CGROUP_SLOTS && group.slots[i].parent[0]; i++) {
        group_path(path, sizeof(path), i, group.name);
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_int_equal(cgroup_remove(&group), 0); /* again: nothing to do */
    policy_done(&policy);
}

static int
join_and_wait(void)
{
    struct err err = {0};
    int joins[CGROUP_SLOTS];
    if (cgroup_open_joins(&group, joins, &err) < 0 || cgroup_join(joins, &err) < 0)
        return 1;
    pause();
    return 2;
}

static void
test_removing_ends_who_is_in_it(void **state)
{
    (void)state;
    struct err err = {0};
    struct policy policy = default_policy();
    int status = 0;
    uint64_t member = 0;
    find_group();
    assert_int_equal(cgroup_make(&group, &policy, &err), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(join_and_wait());
    for (int i = 0; i < 2000 && member != (uint64_t)pid; i++) {
        usleep(1000);
        (void)!file_read_u64(group.slots[0].dir, "cgroup.procs", &member);
    }
    assert_int_equal(member, pid);
    assert_int_equal(cgroup_remove(&group), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    policy_done(&policy);
}

/* --- orphans --- */

/* The name of a group that we made, but of another moment. */
static void
living_name(char name[CGROUP_NAME_BYTES])
{
    snprintf(name, CGROUP_NAME_BYTES, "%s", group.name);
    char *last = strrchr(name, '-');
    assert_non_null(last);
    snprintf(last, CGROUP_NAME_BYTES - (size_t)(last - name), "-77");
}

static void
test_only_orphans_are_swept(void **state)
{
    (void)state;
    char name[CGROUP_NAME_BYTES], orphan[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];
    char living[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];
    find_group();
    living_name(name);
    group_path(living, sizeof(living), 0, name);
    snprintf(name, sizeof(name), "adyton-%d-1-77",
             getpid()); /* our pid, another process */
    group_path(orphan, sizeof(orphan), 0, name);
    assert_int_equal(mkdir(living, 0755), 0);
    assert_int_equal(mkdir(orphan, 0755), 0);
    cgroup_sweep(&group);
    int orphan_stays = access(orphan, F_OK), living_stays = access(living, F_OK);
    rmdir(orphan);
    rmdir(living);
    assert_int_equal(orphan_stays, -1);
    assert_int_equal(living_stays, 0);
}

enum { CANNOT_HIDE = 77, FOUND = 0, REFUSED = 1 };

/* In a mount namespace of its own: the process is there, and its start time cannot be
 * read. */
static int
find_without_start_time_of(pid_t pid)
{
    char path[32];
    struct err err = {0};
    struct cgroup found;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("/dev/null", path, NULL, MS_BIND, NULL) < 0)
        return CANNOT_HIDE;
    if (cgroup_find(&found, &err) < 0 && strstr(err.text, "start time"))
        return REFUSED;
    cgroup_sweep(&found);
    return FOUND;
}

static void
check_without_start_time(bool of_parent, int wanted)
{
    int status = 0;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        _exit(find_without_start_time_of(of_parent ? parent : getpid()));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_HIDE)
        print_message("# this process may not mount\n");
    else
        assert_int_equal(WEXITSTATUS(status), wanted);
}

/* Found by failing each read in turn: a run beside it removed the group of a living
 * cell. */
static void
test_who_cannot_look_sweeps_nothing(void **state)
{
    (void)state;
    char name[CGROUP_NAME_BYTES], living[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];
    find_group();
    living_name(name);
    group_path(living, sizeof(living), 0, name);
    assert_int_equal(mkdir(living, 0755), 0);
    check_without_start_time(true, FOUND);
    int stays = access(living, F_OK);
    rmdir(living);
    assert_int_equal(stays, 0);
}

static void
test_no_group_is_named_without_a_start_time(void **state)
{
    (void)state;
    find_group();
    check_without_start_time(false, REFUSED);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_holds_the_limits_and_goes),
        cmocka_unit_test(test_removing_ends_who_is_in_it),
        cmocka_unit_test(test_only_orphans_are_swept),
        cmocka_unit_test(test_who_cannot_look_sweeps_nothing),
        cmocka_unit_test(test_no_group_is_named_without_a_start_time),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
