/* Policies from text, and what both test programs of the policy room ask of them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "policy/policy.h"

enum { TEXT_MAX = 1024 * 1024, PATH_MAX_BYTES = 512 };

#define AUTO_POLICY __attribute__((cleanup(policy_done)))

/* Loads text as a file that never touches a disk. *path, when asked for, is what errors
 * begin with. */
static inline int
load_text(struct span text, struct policy *ret, struct err *err,
          char path[PATH_MAX_BYTES])
{
    AUTO_CLOSE int fd = memfd_create("policy", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text.p, text.n), 0);
    char name[PATH_MAX_BYTES];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    if (path)
        memcpy(path, name, sizeof(name));
    return policy_load(name, ret, err);
}

static inline struct policy
profile(const char *name)
{
    struct policy policy = {0};
    struct err err = {0};
    assert_int_equal(policy_load(name, &policy, &err), 0);
    return policy;
}

static inline void
assert_field(const struct policy *policy, const char *name, const char *expected)
{
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    const struct policy_field *field = policy_field_by_name(span_of(name));
    assert_non_null(field);
    assert_int_equal(policy_format(policy, field, &text), 0);
    assert_string_equal(text.p ? text.p : "", expected);
}

static inline void
assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in '%s'", part, text);
}
