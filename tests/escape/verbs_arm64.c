/* Verbs that only arm64 has. Its second door, 32-bit code, needs a program of that kind,
 * which execve refuses; what is left is the one machine call. */
#include "probe.h"

#include <sys/syscall.h>

const struct verb verbs_machine[] = {
    {"unknown_negative", "a call before the first", .number = -2},
};
const size_t verbs_machine_n = sizeof(verbs_machine) / sizeof(verbs_machine[0]);
