/*
 * From the table of system calls to BPF, through libseccomp, before any fork; and back
 * from a notification to the row that caused it. Must not know: who asks, and what
 * happens to the cell.
 */
#include "jail/jail.h"

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"

_Static_assert(sizeof(((struct seal *)0)->filter) ==
                   SEAL_FILTER_MAX * sizeof(struct sock_filter),
               "a filter is copied as it is");

unsigned
jail_syscall_when(const struct policy *policy, int landlock_abi)
{
    enum { SCOPING_ABI = 6 }; /* the first Landlock that keeps signals in */
    bool namespaces = policy->isolation == ISOLATION_NAMESPACES;
    bool forks = policy->processes != PROCESSES_NONE;
    bool execs = policy->processes == PROCESSES_EXEC;
    unsigned when = namespaces ? WHEN_NAMESPACES : WHEN_LANDLOCK;
    when |= forks ? WHEN_FORK : WHEN_NO_FORK;
    when |= execs ? WHEN_EXEC : WHEN_NO_EXEC;
    when |= policy->network == NETWORK_LOOPBACK && namespaces ? WHEN_LOOPBACK
                                                              : WHEN_NO_NETWORK;
    when |= namespaces || landlock_abi >= SCOPING_ABI ? WHEN_SCOPED : WHEN_UNSCOPED;
    return when;
}

static uint32_t
row_action(const struct syscall_row *row)
{
    static const uint32_t by_verdict[] = {
        [CALL_ALLOW] = SCMP_ACT_ALLOW,
        [CALL_REFUSE] = SCMP_ACT_NOTIFY,
        [CALL_END] = SCMP_ACT_NOTIFY,
        [CALL_BELL] = SCMP_ACT_NOTIFY,
    };
    return row->verdict == CALL_QUIET ? SCMP_ACT_ERRNO((uint32_t)row->error)
                                      : by_verdict[row->verdict];
}

/* Appends a condition when there is one. */
static void
add_compare(const struct syscall_test_row *test, struct scmp_arg_cmp *compares,
            unsigned *n)
{
    static const enum scmp_compare by_test[] = {
        [TEST_EQ] = SCMP_CMP_EQ,
        [TEST_NE] = SCMP_CMP_NE,
        [TEST_MASKED] = SCMP_CMP_MASKED_EQ,
        [TEST_GT] = SCMP_CMP_GT,
        [TEST_LT] = SCMP_CMP_LT,
    };
    bool masked = test->test == TEST_MASKED;
    if (test->test == TEST_NONE)
        return;
    compares[(*n)++] = (struct scmp_arg_cmp){.arg = test->argument,
                                             .op = by_test[test->test],
                                             .datum_a = masked ? test->mask : test->value,
                                             .datum_b = masked ? test->value : 0};
}

static int
add_row(scmp_filter_ctx filter, const struct syscall_row *row)
{
    if (row->number < 0)
        return 0; /* this architecture never had it */
    struct scmp_arg_cmp compares[2] = {{0}};
    unsigned n = 0;
    add_compare(&row->test, compares, &n);
    add_compare(&row->and, compares, &n);
    return seccomp_rule_add_array(filter, row_action(row), row->number, n, compares);
}

/* libseccomp 2.5 writes its program only to a descriptor: a memory file, read back. */
static int
export_filter(scmp_filter_ctx filter, struct seal *ret, struct err *err)
{
    AUTO_CLOSE int memory = memfd_create("filter", MFD_CLOEXEC);
    if (memory < 0)
        return err_sys(err, "make a memory file for the system-call filter");
    int r = seccomp_export_bpf(filter, memory);
    if (r < 0)
        return err_set(err, r, "compile the system-call filter: %s", strerrordesc_np(-r));
    off_t bytes = lseek(memory, 0, SEEK_CUR);
    if (bytes <= 0 || (size_t)bytes > sizeof(ret->filter))
        return err_set(err, -ENOSPC,
                       "the system-call filter has %lld bytes, at most %zu fit",
                       (long long)bytes, sizeof(ret->filter));
    if (pread(memory, ret->filter, (size_t)bytes, 0) != bytes)
        return err_sys(err, "read the system-call filter back");
    ret->filter_n = (uint32_t)((size_t)bytes / sizeof(struct sock_filter));
    return 0;
}

enum { BINARY_TREE = 2 };

struct filter {
    const struct syscall_row *rows;
    size_t n;
    unsigned when;
    uint32_t otherwise;
};

static bool
counts(const struct filter *filter, const struct syscall_row *row)
{
    return (row->when & filter->when) == row->when;
}

static int
compile(const struct filter *wanted, struct seal *ret, struct err *err)
{
    scmp_filter_ctx filter = seccomp_init(wanted->otherwise);
    if (!filter)
        return err_set(err, -ENOMEM, "no memory for the system-call filter");
    /* i386 and x32 numbers mean other calls than the table's: the process dies. */
    int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* A binary tree: the kernel walks the program for every call, and when it is installed
     * for each call that there is. */
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, BINARY_TREE);
    for (size_t i = 0; i < wanted->n && r == 0; i++) {
        if (!counts(wanted, &wanted->rows[i]))
            continue;
        r = add_row(filter, &wanted->rows[i]);
        if (r < 0)
            err_set(err, r, "system-call table, row %s: %s", wanted->rows[i].name,
                    strerrordesc_np(-r));
    }
    if (r == 0)
        r = export_filter(filter, ret, err);
    seccomp_release(filter);
    return r;
}

/* ---- filters that were compiled before ---- */

static void
mix(uint64_t *hash, uint64_t value)
{
    for (size_t i = 0; i < sizeof(value); i++) /* FNV-1a */
        *hash = (*hash ^ (value >> (8 * i) & 0xff)) * 0x100000001b3U;
}

static void
mix_test(uint64_t *hash, const struct syscall_test_row *test)
{
    mix(hash, test->argument);
    mix(hash, test->test);
    mix(hash, test->mask);
    mix(hash, test->value);
}

/* Of everything that the program follows from: each row that counts, the library that writes it, the
 * architecture and the kernel that it is written for. */
static void
name_filter(const struct filter *filter, char name[FILTER_NAME_BYTES])
{
    enum { FORM = 1 }; /* raised whenever compile() changes */
    uint64_t hash = 0xcbf29ce484222325U;
    const struct scmp_version *library = seccomp_version();
    struct utsname host = {0};
    (void)uname(&host);
    mix(&hash, FORM);
    mix(&hash, filter->otherwise);
    mix(&hash, (uint64_t)library->major << 32 | library->minor << 16 | library->micro);
    mix(&hash, seccomp_arch_native());
    for (const char *p = host.release; *p != '\0'; p++)
        mix(&hash, (unsigned char)*p);
    for (size_t i = 0; i < filter->n; i++) {
        const struct syscall_row *row = &filter->rows[i];
        if (!counts(filter, row))
            continue;
        mix(&hash, (uint64_t)(int64_t)row->number);
        mix(&hash, row_action(row));
        mix_test(&hash, &row->test);
        mix_test(&hash, &row->and);
    }
    snprintf(name, FILTER_NAME_BYTES, "%016llx", (unsigned long long)hash);
}

static int
find_or_compile(const struct filter *filter, const struct filter_store *store,
                struct seal *ret, struct err *err)
{
    char name[FILTER_NAME_BYTES];
    if (!store)
        return compile(filter, ret, err);
    name_filter(filter, name);
    if (store->find(name, ret))
        return 0;
    int r = compile(filter, ret, err);
    if (r == 0)
        store->keep(name, ret);
    return r;
}

int
jail_filter_cell(unsigned when, const struct filter_store *store, struct seal *ret,
                 struct err *err)
{
    const struct filter filter = {jail_syscalls, jail_syscalls_n, when,
                                  SCMP_ACT_ERRNO(ENOSYS)};
    ret->notify = 1;
    return find_or_compile(&filter, store, ret, err);
}

#define INIT(call)                                                                       \
    {                                                                                    \
        SCMP_SYS(call), #call, CALL_ALLOW, 0, 0, {0}, "init's loop",                     \
        {                                                                                \
            0                                                                            \
        }                                                                                \
    }

int
jail_filter_init(const struct filter_store *store, struct seal *ret, struct err *err)
{
    /* What the loop in cell/init.c calls after its seal, and nothing else: it stays for
     * the cell's whole life as a process that user code can see. The landlock isolation
     * has no pid namespace, so init itself finds and ends the processes of its cell: the
     * last group. */
    static const struct syscall_row rows[] = {
        INIT(close), INIT(exit_group),      INIT(poll),         INIT(ppoll),
        INIT(read),  INIT(restart_syscall), INIT(rt_sigreturn), INIT(sendmsg),
        INIT(wait4), INIT(write),           INIT(getpid),       INIT(clock_nanosleep),
        INIT(kill),  INIT(lseek),
    };
    const struct filter filter = {rows, sizeof(rows) / sizeof(*rows), 0,
                                  SCMP_ACT_KILL_PROCESS};
    ret->notify = 0;
    return find_or_compile(&filter, store, ret, err);
}

static bool
test_holds(const struct syscall_test_row *test, const uint64_t arguments[6])
{
    uint64_t value = arguments[test->argument];
    const bool by_test[] = {
        [TEST_NONE] = true,
        [TEST_EQ] = value == test->value,
        [TEST_NE] = value != test->value,
        [TEST_MASKED] = (value & test->mask) == test->value,
        [TEST_GT] = value > test->value,
        [TEST_LT] = value < test->value,
    };
    return by_test[test->test];
}

const struct syscall_row *
jail_syscall_row(unsigned when, int number, const uint64_t arguments[6])
{
    for (size_t i = 0; i < jail_syscalls_n; i++) {
        const struct syscall_row *row = &jail_syscalls[i];
        if (row->number == number && (row->when & when) == row->when &&
            test_holds(&row->test, arguments) && test_holds(&row->and, arguments))
            return row;
    }
    return NULL;
}

struct named_value {
    uint64_t value;
    const char *name;
};

static const char *
name_of(const struct named_value *names, size_t n, uint64_t value)
{
    for (size_t i = 0; i < n; i++)
        if (names[i].value == value)
            return names[i].name;
    return NULL;
}

static void
socket_text(const uint64_t arguments[6], char *text, size_t n)
{
    static const struct named_value families[] = {
        {AF_UNIX, "AF_UNIX"},     {AF_INET, "AF_INET"},
        {AF_INET6, "AF_INET6"},   {AF_NETLINK, "AF_NETLINK"},
        {AF_PACKET, "AF_PACKET"}, {AF_VSOCK, "AF_VSOCK"},
        {AF_ALG, "AF_ALG"},       {AF_BLUETOOTH, "AF_BLUETOOTH"},
    };
    static const struct named_value types[] = {
        {SOCK_STREAM, "SOCK_STREAM"}, {SOCK_DGRAM, "SOCK_DGRAM"}, {SOCK_RAW, "SOCK_RAW"}};
    enum { TYPE_MASK = 0xf };
    const char *family =
        name_of(families, sizeof(families) / sizeof(*families), arguments[0]);
    const char *type =
        name_of(types, sizeof(types) / sizeof(*types), arguments[1] & TYPE_MASK);
    if (family && type)
        snprintf(text, n, "socket(%s, %s)", family, type);
    else
        snprintf(text, n, "socket(%llu, %llu)", (unsigned long long)arguments[0],
                 (unsigned long long)arguments[1]);
}

/* Only values are shown: what a pointer points to may change while we look. */
void
jail_syscall_text(int number, const uint64_t arguments[6], char text[SYSCALL_TEXT_BYTES])
{
    const char *name = NULL;
    bool first_argument_decides = false;
    for (size_t i = 0; i < jail_syscalls_n && !name; i++)
        if (jail_syscalls[i].number == number) {
            name = jail_syscalls[i].name;
            first_argument_decides = jail_syscalls[i].test.test != TEST_NONE &&
                                     jail_syscalls[i].test.argument == 0;
        }
    if (!name)
        snprintf(text, SYSCALL_TEXT_BYTES, "system call %d", number);
    else if (number == SCMP_SYS(socket))
        socket_text(arguments, text, SYSCALL_TEXT_BYTES);
    else if (first_argument_decides)
        snprintf(text, SYSCALL_TEXT_BYTES, "%s(0x%llx)", name,
                 (unsigned long long)arguments[0]);
    else
        snprintf(text, SYSCALL_TEXT_BYTES, "%s", name);
}
