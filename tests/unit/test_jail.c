/*
 * jail: the tables of calls and steps, the filter that comes of them, and plans.
 * What a sealed process can and cannot do is the escape suite's; here the tables are
 * walked, and the compiled filter is run over arguments that were made to slip through.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the headers above it. */
#include <cmocka.h>

#include "jail/jail.h"

#include "bpf.h"

enum {
    ABI_MAX = 7,
    WHENS_MAX = 3 * 2 * 2 * ABI_MAX,
    NUMBERS = 700,   /* past the last system call of any kernel */
    VALUES_MAX = 64, /* tried of one argument */
    RANDOM_TRIES = 64,
};

static struct seal filter; /* static: large */
static struct jail_plan plan;

/* --- what policies can ask for --- */

struct whens {
    unsigned list[WHENS_MAX];
    size_t n;
};

static void
add_when(struct whens *whens, unsigned when)
{
    for (size_t i = 0; i < whens->n; i++)
        if (whens->list[i] == when)
            return;
    whens->list[whens->n++] = when;
}

static void
collect_whens(struct whens *ret)
{
    *ret = (struct whens){0};
    struct policy policy = {0};
    for (policy.processes = 0; policy.processes <= PROCESSES_EXEC; policy.processes++)
        for (policy.network = 0; policy.network <= NETWORK_LOOPBACK; policy.network++)
            for (policy.isolation = 0; policy.isolation <= ISOLATION_LANDLOCK;
                 policy.isolation++)
                for (int abi = 1; abi <= ABI_MAX; abi++)
                    add_when(ret, jail_syscall_when(&policy, abi));
}

static bool
is_active(const struct syscall_row *row, unsigned when)
{
    return row->number >= 0 && (row->when & when) == row->when;
}

static void
test_when_names_both_sides(void **state)
{
    (void)state;
    struct whens whens;
    collect_whens(&whens);
    assert_true(whens.n >= 12);
    static const unsigned either[][2] = {{WHEN_FORK, WHEN_NO_FORK},
                                         {WHEN_EXEC, WHEN_NO_EXEC},
                                         {WHEN_LOOPBACK, WHEN_NO_NETWORK},
                                         {WHEN_NAMESPACES, WHEN_LANDLOCK},
                                         {WHEN_UNSCOPED, WHEN_SCOPED}};
    for (size_t i = 0; i < whens.n; i++)
        for (size_t j = 0; j < sizeof(either) / sizeof(either[0]); j++)
            assert_true(!(whens.list[i] & either[j][0]) !=
                        !(whens.list[i] & either[j][1]));
}

/* --- the table --- */

static void
test_rows_are_whole(void **state)
{
    (void)state;
    struct whens whens;
    collect_whens(&whens);
    for (size_t i = 0; i < jail_syscalls_n; i++) {
        const struct syscall_row *row = &jail_syscalls[i];
        bool used = row->number < 0;
        for (size_t j = 0; j < whens.n; j++)
            used = used || is_active(row, whens.list[j]);
        if (!row->name || !row->name[0] || !row->why || !row->why[0] || !used)
            fail_msg(
                "row %zu (%s) lacks a name or a reason, or no policy can make it hold", i,
                row->name ? row->name : "?");
        bool told = row->verdict == CALL_REFUSE || row->verdict == CALL_END;
        if ((told && row->error <= 0) || (row->verdict == CALL_ALLOW && row->error != 0))
            fail_msg("row %zu (%s) has errno %d with verdict %d", i, row->name,
                     row->error, (int)row->verdict);
        if (row->test.test == TEST_NONE && row->and.test != TEST_NONE)
            fail_msg("row %zu (%s) has a second condition without a first", i, row->name);
    }
}

/* Values of one argument that tell the tests on it apart: each row's own, its neighbours,
 * the same with bits where the kernel does not look, and the ends of the range. */
static size_t
values_for(int number, unsigned argument, uint64_t values[VALUES_MAX])
{
    static const uint64_t ends[] = {0,          1,          INT32_MAX, UINT32_MAX,
                                    1ULL << 32, 1ULL << 63, UINT64_MAX};
    enum { ENDS = sizeof(ends) / sizeof(ends[0]), EACH = 5 };
    size_t n = ENDS;
    memcpy(values, ends, sizeof(ends));
    for (size_t i = 0; i < jail_syscalls_n; i++) {
        const struct syscall_row *row = &jail_syscalls[i];
        const struct syscall_test_row *const tests[] = {&row->test, &row->and };
        for (size_t j = 0; j < 2 && row->number == number; j++) {
            if (tests[j]->test == TEST_NONE || tests[j]->argument != argument ||
                n + EACH > VALUES_MAX)
                continue;
            uint64_t v = tests[j]->value;
            const uint64_t near[EACH] = {v, v - 1, v + 1, v | (1ULL << 32),
                                         v | ~tests[j]->mask};
            memcpy(values + n, near, sizeof(near));
            n += EACH;
        }
    }
    return n;
}

/* Whether rows that hold for one call disagree: which of them counts is libseccomp's
 * secret. */
static bool
rows_disagree(unsigned when, int number, const uint64_t arguments[6])
{
    const struct syscall_row *first = NULL;
    bool disagree = false;
    for (size_t i = 0; i < jail_syscalls_n; i++) {
        const struct syscall_row *row = &jail_syscalls[i];
        const struct syscall_test_row *const tests[] = {&row->test, &row->and };
        bool holds = is_active(row, when) && row->number == number;
        for (size_t j = 0; j < 2 && holds; j++) {
            uint64_t v = arguments[tests[j]->argument];
            holds = tests[j]->test == TEST_NONE ||
                    (tests[j]->test == TEST_EQ && v == tests[j]->value) ||
                    (tests[j]->test == TEST_NE && v != tests[j]->value) ||
                    (tests[j]->test == TEST_GT && v > tests[j]->value) ||
                    (tests[j]->test == TEST_LT && v < tests[j]->value) ||
                    (tests[j]->test == TEST_MASKED &&
                     (v & tests[j]->mask) == tests[j]->value);
        }
        if (holds && !first)
            first = row;
        if (holds && (row->verdict != first->verdict || row->error != first->error))
            disagree = true;
    }
    return disagree;
}

static const char *
name_of(int number)
{
    for (size_t i = 0; i < jail_syscalls_n; i++)
        if (jail_syscalls[i].number == number)
            return jail_syscalls[i].name;
    return "?";
}

/* libseccomp drops rows with a test beside one without, and says nothing. */
static void
test_no_row_hides_another(void **state)
{
    (void)state;
    struct whens whens;
    collect_whens(&whens);
    for (size_t w = 0; w < whens.n; w++)
        for (int number = 0; number < NUMBERS; number++) {
            unsigned bare = 0, tested = 0;
            for (size_t i = 0; i < jail_syscalls_n; i++) {
                if (jail_syscalls[i].number != number ||
                    !is_active(&jail_syscalls[i], whens.list[w]))
                    continue;
                bool is_bare = jail_syscalls[i].test.test == TEST_NONE;
                bare += is_bare;
                tested += !is_bare;
            }
            if (bare > 1 || (bare == 1 && tested > 0))
                fail_msg("%s: %u rows without a test beside %u with one, when %#x",
                         name_of(number), bare, tested, whens.list[w]);
        }
}

/* --- the filter --- */

static uint32_t
action_of(const struct syscall_row *row)
{
    if (!row)
        return SECCOMP_RET_ERRNO | ENOSYS;
    if (row->verdict == CALL_ALLOW)
        return SECCOMP_RET_ALLOW;
    if (row->verdict == CALL_QUIET)
        return SECCOMP_RET_ERRNO | (uint32_t)row->error;
    return SECCOMP_RET_USER_NOTIF;
}

static struct seccomp_data
call_of(int number, const uint64_t arguments[6])
{
    struct seccomp_data data = {.nr = number, .arch = seccomp_arch_native()};
    for (size_t i = 0; i < 6; i++)
        data.args[i] = arguments[i];
    return data;
}

static void
check_call(unsigned when, int number, const uint64_t arguments[6])
{
    struct seccomp_data data = call_of(number, arguments);
    uint32_t is = bpf_run(filter.filter, filter.filter_n, &data);
    uint32_t wanted = action_of(jail_syscall_row(when, number, arguments));
    bool disagree = rows_disagree(when, number, arguments);
    if (is == wanted && !disagree)
        return;
    fail_msg("%s (%d) with %#llx, %#llx, %#llx, when %#x: the filter says %#x, the table "
             "%#x%s",
             name_of(number), number, (unsigned long long)arguments[0],
             (unsigned long long)arguments[1], (unsigned long long)arguments[2], when, is,
             wanted, disagree ? ", and rows disagree" : "");
}

static uint64_t
random_value(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Every pair of telling values of the first three arguments, and some that nobody
 * chose. */
static void
check_number(unsigned when, int number, uint64_t *seed)
{
    uint64_t first[VALUES_MAX], second[VALUES_MAX];
    for (unsigned a = 0; a < 3; a++)
        for (unsigned b = a + 1; b < 3; b++) {
            size_t first_n = values_for(number, a, first);
            size_t second_n = values_for(number, b, second);
            for (size_t i = 0; i < first_n; i++)
                for (size_t j = 0; j < second_n; j++) {
                    uint64_t arguments[6] = {0};
                    arguments[a] = first[i];
                    arguments[b] = second[j];
                    check_call(when, number, arguments);
                }
        }
    for (int i = 0; i < RANDOM_TRIES; i++) {
        uint64_t arguments[6];
        for (size_t j = 0; j < 6; j++)
            arguments[j] = random_value(seed) >> (random_value(seed) % 64);
        check_call(when, number, arguments);
    }
}

static void
test_filter_says_what_the_table_says(void **state)
{
    (void)state;
    struct whens whens;
    struct err err = {0};
    uint64_t seed = 0x9e3779b97f4a7c15U;
    collect_whens(&whens);
    for (size_t w = 0; w < whens.n; w++) {
        if (jail_filter_cell(whens.list[w], NULL, &filter, &err) < 0)
            fail_msg("when %#x: %s", whens.list[w], err.text);
        assert_true(filter.filter_n > 100 && filter.filter_n <= SEAL_FILTER_MAX);
        assert_int_equal(filter.notify, 1);
        for (int number = 0; number < NUMBERS; number++)
            check_number(whens.list[w], number, &seed);
    }
}

/* Numbers of other architectures mean other calls: whoever makes one dies. */
static void
test_other_architectures_are_closed(void **state)
{
    (void)state;
    struct whens whens;
    struct err err = {0};
    static const uint32_t others[] = {SCMP_ARCH_X86, SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64,
                                      SCMP_ARCH_ARM};
    enum { X32_BIT = 0x40000000 };
    collect_whens(&whens);
    assert_int_equal(jail_filter_cell(whens.list[0], NULL, &filter, &err), 0);
    for (int number = 0; number < NUMBERS; number++) {
        struct seccomp_data data = {.nr = number};
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            data.arch = others[i];
            if (others[i] != seccomp_arch_native())
                assert_int_equal(bpf_run(filter.filter, filter.filter_n, &data),
                                 SECCOMP_RET_KILL_PROCESS);
        }
        data.arch = seccomp_arch_native();
        data.nr = number | X32_BIT;
        if (data.arch == SCMP_ARCH_X86_64)
            assert_int_equal(bpf_run(filter.filter, filter.filter_n, &data),
                             SECCOMP_RET_KILL_PROCESS);
    }
}

/* Init stays in the cell for its whole life: what its loop does not need kills it. */
static void
test_init_filter_is_narrow(void **state)
{
    (void)state;
    struct err err = {0};
    static const int deadly[] = {SYS_openat, SYS_execve, SYS_clone,  SYS_mmap,
                                 SYS_ptrace, SYS_mount,  SYS_socket, SYS_fcntl};
    const uint64_t none[6] = {0};
    assert_int_equal(jail_filter_init(NULL, &filter, &err), 0);
    assert_int_equal(filter.notify, 0);
    unsigned allowed = 0;
    for (int number = 0; number < NUMBERS; number++) {
        struct seccomp_data data = call_of(number, none);
        uint32_t action = bpf_run(filter.filter, filter.filter_n, &data);
        assert_true(action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_KILL_PROCESS);
        allowed += action == SECCOMP_RET_ALLOW;
    }
    assert_in_range(allowed, 5, 20);
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        struct seccomp_data data = call_of(deadly[i], none);
        assert_int_equal(bpf_run(filter.filter, filter.filter_n, &data),
                         SECCOMP_RET_KILL_PROCESS);
    }
}

static void
test_calls_as_text(void **state)
{
    (void)state;
    char text[SYSCALL_TEXT_BYTES];
    const uint64_t packet[6] = {AF_PACKET, SOCK_RAW | SOCK_CLOEXEC};
    const uint64_t attach[6] = {16};
    jail_syscall_text(SYS_socket, packet, text);
    assert_string_equal(text, "socket(AF_PACKET, SOCK_RAW)");
    jail_syscall_text(SYS_ptrace, attach, text);
    assert_string_equal(text, "ptrace(0x10)");
    jail_syscall_text(SYS_mount, attach, text);
    assert_string_equal(text, "mount");
    jail_syscall_text(NUMBERS, attach, text);
    assert_string_equal(text, "system call 700");
}

/* --- the order of the steps --- */

static size_t
enter_at(const char *name)
{
    for (size_t i = 0; i < jail_enter_steps_n; i++)
        if (strcmp(jail_enter_steps[i].name, name) == 0)
            return i;
    fail_msg("no step is called %s", name);
    return 0;
}

static size_t
seal_at(const char *name)
{
    for (size_t i = 0; i < jail_seal_steps_n; i++)
        if (strcmp(jail_seal_steps[i].name, name) == 0)
            return i;
    fail_msg("no step is called %s", name);
    return 0;
}

static void
test_steps_have_reasons_and_names_of_their_own(void **state)
{
    (void)state;
    const unsigned all = 1U << JAIL_NAMESPACES | 1U << JAIL_LANDLOCK |
                         1U << JAIL_FACTORY | 1U << JAIL_CELL;
    for (size_t i = 0; i < jail_enter_steps_n; i++) {
        const struct enter_step *step = &jail_enter_steps[i];
        assert_true(step->run && step->why && step->why[0]);
        assert_true(step->kinds != 0 && (step->kinds & ~all) == 0);
        assert_int_equal(enter_at(step->name), i);
    }
    for (size_t i = 0; i < jail_seal_steps_n; i++) {
        assert_true(jail_seal_steps[i].run && jail_seal_steps[i].why[0]);
        assert_int_equal(seal_at(jail_seal_steps[i].name), i);
    }
}

static void
test_enter_goes_in_an_order_that_holds(void **state)
{
    (void)state;
    static const char *const before[][2] = {
        {"propagation", "root"}, {"propagation", "sources"}, {"sources", "identity"},
        {"identity", "root"},    {"identity", "death"},      {"user", "death"},
        {"user", "home"},        {"root", "files"},          {"root", "place"},
        {"files", "scratch"},    {"scratch", "place"},       {"place", "pivot"},
        {"proc", "pivot"},       {"scratch", "pivot"},       {"pivot", "landlock"},
        {"pivot", "home"},       {"hostname", "landlock"},
    };
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        if (enter_at(before[i][0]) >= enter_at(before[i][1]))
            fail_msg("%s must come before %s", before[i][0], before[i][1]);
    assert_int_equal(enter_at("session"), 0);
    assert_true(enter_at("home") < enter_at("fonts"));
    assert_int_equal(enter_at("fonts"), jail_enter_steps_n - 1);
    /* Without namespaces no step may touch what is the host's. */
    static const char *const walls[] = {"propagation", "root", "files", "scratch",
                                        "place",       "proc", "pivot", "hostname"};
    for (size_t i = 0; i < sizeof(walls) / sizeof(walls[0]); i++)
        assert_int_equal(
            jail_enter_steps[enter_at(walls[i])].kinds & (1U << JAIL_LANDLOCK), 0);
}

static void
test_seal_ends_with_seccomp(void **state)
{
    (void)state;
    assert_int_equal(seal_at("seccomp"), jail_seal_steps_n - 1);
    assert_true(seal_at("capabilities") < seal_at("no_new_privs"));
    assert_true(seal_at("no_new_privs") < seal_at("landlock"));
    assert_true(seal_at("landlock") < seal_at("seccomp"));
}

/* --- plans --- */

static struct image image; /* static: large */

static struct policy
policy_of(enum policy_isolation isolation)
{
    struct policy policy = {0};
    struct err err = {0};
    assert_int_equal(policy_load(policy_default, &policy, &err), 0);
    policy.isolation = isolation;
    return policy;
}

enum { NO_LIMIT = 0 }; /* no plan limits anything to nothing but MSGQUEUE */

static uint64_t
rlimit_of(const struct seal *seal, int resource)
{
    for (size_t i = 0; i < SEAL_RLIMITS; i++)
        if (seal->rlimits[i].set && seal->rlimits[i].resource == resource)
            return seal->rlimits[i].value;
    return NO_LIMIT;
}

static void
test_plan_limits_what_no_group_counts(void **state)
{
    (void)state;
    struct err err = {0};
    struct policy policy = policy_of(ISOLATION_NAMESPACES);
    if (jail_plan_build(&policy, &image, "/guest.so", true, NULL, &plan, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(rlimit_of(&plan.seal, RLIMIT_CORE), 1);
    assert_int_equal(rlimit_of(&plan.seal, RLIMIT_FSIZE), policy.file_bytes);
    assert_int_equal(rlimit_of(&plan.seal, RLIMIT_NOFILE), policy.open_files);
    assert_true(rlimit_of(&plan.seal, RLIMIT_AS) > policy.memory_bytes);
    assert_int_equal(rlimit_of(&plan.seal, RLIMIT_NPROC), NO_LIMIT);
    assert_int_equal(
        jail_plan_build(&policy, &image, "/guest.so", false, NULL, &plan, &err), 0);
    assert_int_equal(rlimit_of(&plan.seal, RLIMIT_NPROC), policy.pids + 1);
    policy.isolation = ISOLATION_LANDLOCK;
    assert_int_equal(
        jail_plan_build(&policy, &image, "/guest.so", false, NULL, &plan, &err), 0);
    /* Here it would count the user's other processes. */
    assert_int_equal(rlimit_of(&plan.seal, RLIMIT_NPROC), NO_LIMIT);
    assert_int_equal(jail_clone_flags(&plan), 0);
    policy_done(&policy);
}

/* The guest refuses a setup without a filter, so a plan has none until it is compiled. */
static void
test_plan_has_no_filter_until_it_is_made(void **state)
{
    (void)state;
    struct err err = {0};
    struct policy policy = policy_of(ISOLATION_NAMESPACES);
    const uint64_t all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                         CLONE_NEWIPC | CLONE_NEWUTS;
    assert_int_equal(
        jail_plan_build(&policy, &image, "/guest.so", true, NULL, &plan, &err), 0);
    assert_int_equal(jail_clone_flags(&plan) & all, all);
    assert_int_equal(plan.seal.filter_n, 0);
    assert_true(plan.init_seal.filter_n > 0);
    assert_true(plan.seal.landlock_abi > 0);
    assert_int_equal(jail_plan_filter(&plan, &err), 0);
    assert_true(plan.seal.filter_n > 0);
    policy_done(&policy);
}

static void
test_plan_refuses_a_guest_that_does_not_fit(void **state)
{
    (void)state;
    struct err err = {0};
    char path[JAIL_PATH_BYTES + 1];
    struct policy policy = policy_of(ISOLATION_NAMESPACES);
    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(jail_plan_build(&policy, &image, path, true, NULL, &plan, &err),
                     -ENAMETOOLONG);
    assert_non_null(strstr(err.text, "guest"));
    policy_done(&policy);
}

/* In a child: cmocka's asserts do not work there. 0: as it must be. */
static int
in_child(int (*run)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run());
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int
plan_without_landlock(void)
{
    struct err err = {0};
    struct policy policy = {0};
    scmp_filter_ctx without = seccomp_init(SCMP_ACT_ALLOW);
    if (policy_load(policy_default, &policy, &err) < 0 || !without ||
        seccomp_rule_add(without, SCMP_ACT_ERRNO(ENOSYS), SYS_landlock_create_ruleset,
                         0) < 0 ||
        seccomp_load(without) < 0)
        return 2;
    int r = jail_plan_build(&policy, &image, "/guest.so", true, NULL, &plan, &err);
    return r == -ENOSYS && strstr(err.text, "Landlock") && strstr(err.text, "lsm=") ? 0
                                                                                    : 1;
}

static void
test_plan_refuses_a_kernel_without_landlock(void **state)
{
    (void)state;
    assert_int_equal(in_child(plan_without_landlock), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_names_both_sides),
        cmocka_unit_test(test_rows_are_whole),
        cmocka_unit_test(test_no_row_hides_another),
        cmocka_unit_test(test_filter_says_what_the_table_says),
        cmocka_unit_test(test_other_architectures_are_closed),
        cmocka_unit_test(test_init_filter_is_narrow),
        cmocka_unit_test(test_calls_as_text),
        cmocka_unit_test(test_steps_have_reasons_and_names_of_their_own),
        cmocka_unit_test(test_enter_goes_in_an_order_that_holds),
        cmocka_unit_test(test_seal_ends_with_seccomp),
        cmocka_unit_test(test_plan_limits_what_no_group_counts),
        cmocka_unit_test(test_plan_has_no_filter_until_it_is_made),
        cmocka_unit_test(test_plan_refuses_a_guest_that_does_not_fit),
        cmocka_unit_test(test_plan_refuses_a_kernel_without_landlock),
    };
    return cmocka_run_group_tests_name("jail", tests, NULL, NULL);
}
