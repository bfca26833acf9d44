/* What an interpreter of a cell is started with, cold or as a zygote. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/jail.h"

struct command_spec {
    const struct jail_plan *plan;
    const char *entry;        /* of the guest: "main" or "zygote" */
    const char *const *words; /* sys.argv[1:] of the boot program */
    size_t words_n;
    uint64_t threads; /* that numeric libraries are told to start */
};

struct command_line {
    char **argv;
    char **envp; /* both NULL-terminated, owned */
};

int command_line_make(const struct command_spec *spec, struct command_line *ret,
                      struct err *err) MUST_USE;
void command_line_done(struct command_line *line);
/* The guest's flags for a policy (enum guest_flag), validation aside. */
uint32_t command_guest_flags(const struct policy *policy);
/* The threads that a policy leaves room for on this host. */
uint64_t command_threads(const struct policy *policy);
