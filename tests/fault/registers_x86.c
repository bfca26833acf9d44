/* x86-64: the number is in orig_rax, the result in rax. */
#include "fault/registers.h"

#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

int
registers_set_call(pid_t pid, long number)
{
    return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax),
                  number) < 0
               ? -1
               : 0;
}

int
registers_set_result(pid_t pid, int64_t result)
{
    return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), result) <
                   0
               ? -1
               : 0;
}
