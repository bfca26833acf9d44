/* arm64: the number is a register set of its own, the result is in x0. */
#include "fault/registers.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

/* A register set of linux/elf.h, which elf.h of older libcs lacks. */
enum { SYSTEM_CALL_SET = 0x404 };

int
registers_set_call(pid_t pid, long number)
{
    int value = (int)number;
    struct iovec set = {&value, sizeof(value)};
    return ptrace(PTRACE_SETREGSET, pid, SYSTEM_CALL_SET, &set) < 0 ? -1 : 0;
}

int
registers_set_result(pid_t pid, int64_t result)
{
    struct user_regs_struct registers;
    struct iovec set = {&registers, sizeof(registers)};
    if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &set) < 0)
        return -1;
    registers.regs[0] = (unsigned long long)result;
    return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &set) < 0 ? -1 : 0;
}
