/* Steps of a run that the files of this room share; nobody else's. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "job/job.h"
#include "job/outcome.h"
#include "policy/policy.h"

enum { ENGINE_GUEST_BYTES = 512 };

/* The guest extension stands beside the program in a build folder, under lib in a
 * prefix. */
int engine_find_guest(char path[ENGINE_GUEST_BYTES], struct err *err) MUST_USE;
/* What can be said of the bytes before there is a cell: true when they are rejected, and
 * the outcome says why. validate_only: as a policy that looks, whatever its mode. */
bool engine_judge_bytes(const struct policy *policy, const struct job *job,
                        bool validate_only, struct outcome *outcome);
