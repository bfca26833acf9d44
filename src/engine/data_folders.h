/*
 * Which folders of the host a run may see as data: what the policy lists, or, where the one who
 * asks is the operator, what is asked for.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "job/job.h"
#include "policy/policy.h"

struct data_folder {
    const char *path; /* of the host */
    const char
        *name; /* beneath /data; NULL: its own, or /data itself when it is the only one */
};

/* Adds them to the job, each by a path without links. by_operator: whatever the policy lists.
 * -EPERM: the policy does not allow it; -EINVAL: no such folder, no such name, or cells of this
 * kind cannot have it. */
int data_folders_take(const struct data_folder *folders, size_t n,
                      const struct policy *policy, bool by_operator, struct job *job,
                      struct err *err) MUST_USE;
