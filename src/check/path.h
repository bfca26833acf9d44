/*
 * Where a path leads, by its text alone: the validator asks before anything exists. Knows
 * the folders of a cell; links are the kernel's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

enum { CHECK_PATH_BYTES = 512 };

struct check_folders {
    const char
        *work; /* the cell's /tmp: the working folder, and the one that may be written */
    const char *workspace; /* another one that may be written, or NULL */
    const char *const
        *reads; /* absolute: the policy's read_paths, the interpreter's folders */
    size_t reads_n;
};

/* True when the path leads outside of what may be read (or written); *ret is then where.
 * Of a beginning of a path (`is_prefix`) only when every path that begins so does. */
bool check_path_is_outside(const struct check_folders *folders, struct span path,
                           bool is_prefix, bool write, char ret[CHECK_PATH_BYTES]);
/* "https://…", "s3://…": not a path of this machine. A file:// URL is cut to its path. */
bool check_path_is_url(struct span *path);
