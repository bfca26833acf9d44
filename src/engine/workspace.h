/*
 * Workspaces: folders that stay, one for each name, in which what a run leaves is there for the
 * next one. They lie in the user's state folder; a policy says whether there are any.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "job/job.h"
#include "policy/policy.h"

/* Adds the workspace of that name to the job, and makes it if need be. -EPERM: the policy has none;
 * -EINVAL: no such name, or cells of this kind cannot have one. */
int workspace_take(const char *name, const struct policy *policy, struct job *job,
                   struct err *err) MUST_USE;
