/*
 * Verbs that only x86-64 has: its second and third doors into the kernel, and the calls
 * that belong to the processor. The other architectures take verbs_arm64.c; meson
 * chooses.
 */
#include "probe.h"

#include <asm/ldt.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { X32 = 0x40000000, I386_GETPID = 20, I386_PTRACE = 26, I386_SOCKETCALL = 102 };

/* The 32-bit door: its numbers are others, so a filter that looks at numbers alone is
 * blind. */
static long
run_int80(const struct verb *verb, pid_t target)
{
    (void)target;
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "a"(verb->args[0]), "b"(verb->args[1]), "c"(verb->args[2]), "d"(0L)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)r;
}

/* Answers in 32 bits: a negative one would look like a large value. */
static long
run_ldt(const struct verb *verb, pid_t target)
{
    (void)target;
    long r = syscall(SYS_modify_ldt, verb->args[0], NULL, 0);
    return r < 0 ? -errno : (int)r;
}

static long
run_thread_area(const struct verb *verb, pid_t target)
{
    (void)verb, (void)target;
    struct user_desc area = {.entry_number = 0xffff};
    long r = syscall(SYS_set_thread_area, &area);
    return r < 0 ? -errno : r;
}

/* clang-format off */
const struct verb verbs_machine[] = {
    {"x32_getpid", "the x32 door", .number = X32 | SYS_getpid},
    {"x32_ptrace", "ptrace by the x32 door", .number = X32 | 521, .args = {0xffff}},
    {"i386_getpid", "the 32-bit door", .run = run_int80, .args = {I386_GETPID}},
    {"i386_ptrace", "ptrace by the 32-bit door", .run = run_int80,
     .args = {I386_PTRACE, 0xffff}},
    {"i386_socketcall", "a socket by the 32-bit door", .run = run_int80,
     .args = {I386_SOCKETCALL, 1, 0}},
    {"iopl", "the I/O ports", .number = SYS_iopl, .args = {3}},
    {"ioperm", "an I/O port", .number = SYS_ioperm, .args = {0x80, 1, 1}},
    {"modify_ldt", "a segment", .run = run_ldt, .args = {1}},
    {"set_thread_area", "a segment", .run = run_thread_area},
    {"uselib", "a library of the old kind", .number = SYS_uselib},
    {"sysctl_old", "a call that is gone", .number = SYS__sysctl},
};
/* clang-format on */
const size_t verbs_machine_n = COUNT(verbs_machine);
