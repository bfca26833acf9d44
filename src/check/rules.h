/*
 * The rules of validation: ONE table that the validator in the cell, the supervisor,
 * policies and the manual share. Plain data, so that it links into the guest extension
 * too; it knows no policy and no job.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum check_severity {
    CHECK_ERROR,
    CHECK_WARNING,
    CHECK_NOTE,
    CHECK_OFF,
    CHECK_SEVERITIES
};
/* In the order of policy_profiles. */
enum check_profile { CHECK_STRICT, CHECK_STANDARD, CHECK_OPEN, CHECK_PROFILES };

enum check_rule_id {
    RULE_SOURCE_SIZE,
    RULE_SOURCE_ENCODING,
    RULE_SYNTAX_ERROR,
    RULE_PARSER_EXHAUSTED,
    RULE_IMPORT_DENIED,
    RULE_PROCESS_START,
    RULE_PROCESS_FORK,
    RULE_FILE_OUTSIDE,
    RULE_NETWORK_USE,
    RULE_NATIVE_CODE,
    RULE_DYNAMIC_CODE,
    RULE_INTROSPECTION_ESCAPE,
    RULE_INTROSPECTION,
    RULE_INTERPRETER_TAMPERING,
    RULE_RESOURCE_BOMB,
    RULE_OBFUSCATION,
    CHECK_RULES,
};

struct check_rule {
    const char *id;
    const char *finds;
    const char *why;  /* it matters */
    const char *hint; /* to the model that wrote the code */
    uint8_t
        severity[CHECK_PROFILES]; /* enum check_severity, where a policy says nothing */
};

extern const struct check_rule check_rules[CHECK_RULES];
extern const char *const check_severity_names[CHECK_SEVERITIES + 1]; /* NULL-terminated */

/* CHECK_RULES when there is none of that id; CHECK_SEVERITIES likewise. */
size_t check_rule_by_id(struct span id);
size_t check_severity_by_name(struct span name);
