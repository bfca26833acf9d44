/* What a model is told before it is asked: where its code runs, what it may do, the files. */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "engine/data_folders.h"
#include "job/job.h"
#include "policy/policy.h"

struct prompt {
    const struct policy *policy;
    const struct job *job; /* its files */
    const struct data_folder *data;
    size_t data_n;
    const char *python_version; /* "3.11.2" */
    const char *libraries;      /* "" when not known */
    bool session;               /* code runs in one, and is not run again */
};

enum { PROMPT_BYTES_MAX = 256 * 1024 };

int prompt_system(const struct prompt *prompt, struct buf *out) MUST_USE;
