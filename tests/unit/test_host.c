/*
 * jail/host: what the doctor finds. A host that lacks something is made by taking it away
 * from a child: with a filter, with a setting of a user namespace, with another identity.
 * What is not taken away must still be found, or the probe would merely be failing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the headers above it. */
#include <cmocka.h>

#include "base/fd.h"
#include "jail/host.h"

static struct host host; /* static: large */

static const struct host_row *
row_of(const char *name)
{
    static const struct host_row none = {.name = "", .state = HOST_NOTE, .cost = ""};
    for (size_t i = 0; i < host.rows_n; i++)
        if (strcmp(host.rows[i].name, name) == 0)
            return &host.rows[i];
    return &none;
}

static bool
is(const char *name, enum host_state state)
{
    if (row_of(name)->state == state && row_of(name)->name[0])
        return true;
    fprintf(stderr, "# %s is \"%s\" (%s)\n", name, host_state_name(row_of(name)->state),
            row_of(name)->detail);
    return false;
}

static void
probe(void)
{
    struct err err = {0};
    if (host_probe(&host, &err) < 0)
        fail_msg("%s", err.text);
}

enum { CHILD_GOOD = 0, CHILD_BAD = 1, CHILD_CANNOT = 77 };

/* Takes something away, then looks. cmocka's asserts do not work in a child. */
static void
check_in_child(int (*take_away)(void), int (*look)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct err err = {0};
        int r = take_away();
        if (r == CHILD_GOOD && host_probe(&host, &err) < 0)
            r = CHILD_BAD;
        _exit(r == CHILD_GOOD ? look() : r);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CHILD_CANNOT)
        skip();
    assert_int_equal(WEXITSTATUS(status), CHILD_GOOD);
}

static void
test_rows_are_whole(void **state)
{
    (void)state;
    probe();
    assert_true(host.rows_n > 15);
    bool namespaces = true, landlock = true, cgroup = true;
    for (size_t i = 0; i < host.rows_n; i++) {
        const struct host_row *row = &host.rows[i];
        assert_ptr_equal(row_of(row->name), row); /* no name twice */
        assert_true(row->detail[0] != '\0' && row->cost[0] != '\0');
        bool lacks = row->state == HOST_NO;
        namespaces &= !(lacks && (row->needed_for & HOST_FOR_NAMESPACES));
        landlock &= !(lacks && (row->needed_for & HOST_FOR_LANDLOCK));
        cgroup &= !(lacks && (row->needed_for & HOST_FOR_CGROUP));
    }
    assert_int_equal(host.namespaces, namespaces);
    assert_int_equal(host.landlock, landlock);
    assert_int_equal(host.cgroup, cgroup);
    assert_int_equal(host.uid, geteuid());
}

static size_t
count_descriptors(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void
read_mounts(char text[64 * 1024])
{
    assert_true(file_read(AT_FDCWD, "/proc/self/mountinfo", text, (size_t)64 * 1024) > 0);
}

/* Groups that carry our number; others may be at work on this host. */
static bool
has_groups(void)
{
    char command[160], line[8];
    snprintf(command, sizeof(command),
             "find /sys/fs/cgroup -name 'adyton-%ld-*' 2>/dev/null", (long)getpid());
    FILE *found = popen(command, "re");
    assert_non_null(found);
    bool any = fgets(line, sizeof(line), found) != NULL;
    pclose(found);
    return any;
}

static void
test_leaves_nothing(void **state)
{
    (void)state;
    static char before[64 * 1024], after[64 * 1024], namespaces[2][64];
    size_t descriptors = count_descriptors();
    read_mounts(before);
    assert_true(readlink("/proc/self/ns/user", namespaces[0], 63) > 0);
    probe();
    assert_int_equal(count_descriptors(), descriptors);
    read_mounts(after);
    assert_string_equal(after, before);
    assert_true(readlink("/proc/self/ns/user", namespaces[1], 63) > 0);
    assert_string_equal(namespaces[0], namespaces[1]);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_false(has_groups());
    /* Neither has it taken anything from this process. */
    AUTO_CLOSE int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && getppid() > 0);
}

static int
become_user(void)
{
    if (geteuid() == 0 &&
        (setresgid(12345, 12345, 12345) < 0 || setresuid(12345, 12345, 12345) < 0))
        return CHILD_CANNOT;
    return CHILD_GOOD;
}

static int
look_as_user(void)
{
    bool told = host.uid == geteuid() && host.uid != 0;
    /* What needs no privilege is there for a user as well, where the kernel has it. */
    told &= is("openat2", HOST_YES) && is("pidfd", HOST_YES) && is("seccomp", HOST_YES);
    for (size_t i = 0; i < host.rows_n; i++) {
        const struct host_row *row = &host.rows[i];
        if (row->state == HOST_NO && row->needed_for && row->remedy[0] == '\0') {
            fprintf(stderr, "# %s has no remedy\n", row->name);
            told = false;
        }
    }
    return told ? CHILD_GOOD : CHILD_BAD;
}

static void
test_as_user(void **state)
{
    (void)state;
    check_in_child(become_user, look_as_user);
}

static int
refuse_calls(const char *const names[], int error)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    for (size_t i = 0; filter && names[i]; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);
        if (seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)error), number, 0) < 0)
            return CHILD_CANNOT;
    }
    return filter && seccomp_load(filter) == 0 ? CHILD_GOOD : CHILD_CANNOT;
}

static int
refuse_namespaces(void)
{
    static const char *const names[] = {"unshare", "clone3", NULL};
    return refuse_calls(names, EPERM);
}

static int
look_for_no_namespaces(void)
{
    static const char *const names[] = {
        "user namespace", "mount namespace",  "pid namespace",
        "net namespace",  "ipc namespace",    "uts namespace",
        "mounts",         "cgroup namespace", "clone3"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!is(names[i], HOST_NO) || !strstr(row_of(names[i])->detail, "not permitted"))
            return CHILD_BAD;
    bool rest = is("landlock", HOST_YES) && is("seccomp", HOST_YES) &&
                is("seccomp notify", HOST_YES);
    bool remedy =
        strstr(row_of("user namespace")->remedy, "--isolation landlock") != NULL;
    return rest && remedy && !host.namespaces ? CHILD_GOOD : CHILD_BAD;
}

static void
test_namespaces_refused(void **state)
{
    (void)state;
    probe();
    if (!host.namespaces || !host.landlock)
        skip(); /* nothing that could be taken away */
    check_in_child(refuse_namespaces, look_for_no_namespaces);
}

/* The setting counts for each user namespace: in one of our own it may be 0 for real. */
static int
forbid_by_setting(void)
{
    if (unshare(CLONE_NEWUSER) < 0)
        return CHILD_CANNOT;
    return file_write(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0") < 0
               ? CHILD_CANNOT
               : CHILD_GOOD;
}

static int
look_for_setting(void)
{
    const struct host_row *row = row_of("user namespace");
    return is("user namespace", HOST_NO) &&
                   strstr(row->detail, "user.max_user_namespaces is 0") &&
                   strstr(row->remedy, "sysctl -w user.max_user_namespaces=") &&
                   is("mounts", HOST_NO) && is("landlock", HOST_YES) &&
                   !host.namespaces && host.landlock
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_setting_is_named(void **state)
{
    (void)state;
    check_in_child(forbid_by_setting, look_for_setting);
}

static int
take_listener(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter ||
        seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(kexec_load), 0) < 0 ||
        seccomp_load(filter) < 0)
        return CHILD_CANNOT;
    return CHILD_GOOD;
}

static int
look_for_listener(void)
{
    return is("seccomp notify", HOST_NO) && is("seccomp", HOST_YES) && !host.namespaces &&
                   !host.landlock && strstr(row_of("seccomp notify")->detail, "another")
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_listener_is_taken(void **state)
{
    (void)state;
    check_in_child(take_listener, look_for_listener);
}

static int
refuse_landlock(void)
{
    static const char *const names[] = {"landlock_create_ruleset", NULL};
    return refuse_calls(names, ENOSYS);
}

static int
look_for_no_landlock(void)
{
    return is("landlock", HOST_NO) && is("user namespace", HOST_YES) &&
                   !host.namespaces && !host.landlock &&
                   strstr(row_of("landlock")->remedy, "lsm=landlock,")
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_landlock_refused(void **state)
{
    (void)state;
    probe();
    if (!host.namespaces)
        skip();
    check_in_child(refuse_landlock, look_for_no_landlock);
}

/* A kernel that takes a ruleset and does not hold to it is found out. */
static int
pretend_landlock(void)
{
    static const char *const names[] = {"landlock_restrict_self", NULL};
    return refuse_calls(names, 0);
}

static int
look_for_pretence(void)
{
    return is("landlock", HOST_NO) && strstr(row_of("landlock")->detail, "can still read")
               ? CHILD_GOOD
               : CHILD_BAD;
}

static void
test_pretence_is_found_out(void **state)
{
    (void)state;
    probe();
    if (row_of("landlock")->state != HOST_YES)
        skip();
    check_in_child(pretend_landlock, look_for_pretence);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_whole),
        cmocka_unit_test(test_leaves_nothing),
        cmocka_unit_test(test_as_user),
        cmocka_unit_test(test_namespaces_refused),
        cmocka_unit_test(test_setting_is_named),
        cmocka_unit_test(test_listener_is_taken),
        cmocka_unit_test(test_landlock_refused),
        cmocka_unit_test(test_pretence_is_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
