/* Registers of a traced process at a system call: one file an architecture. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* At entry: another call is made with the same arguments. At exit: another result is seen. */
int registers_set_call(pid_t pid, long number);
int registers_set_result(pid_t pid, int64_t result);
