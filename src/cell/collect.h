/*
 * Gathers what a dead cell left in its /tmp. The tree was made by the code that ran: it
 * is walked by descriptor, beneath its root, on its own file system; nothing but regular
 * files is opened, no link is followed, and every count and size has an end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "job/job.h"
#include "job/outcome.h"

enum {
    COLLECT_NAMES_MAX = 100 * 1000,         /* names looked at, of whatever kind */
    COLLECT_NAMES_BYTES = 32 * 1024 * 1024, /* the same in bytes of paths */
    COLLECT_DEPTH_MAX = 64,                 /* folders in folders */
    COLLECT_PATH_BYTES = OUTCOME_FILE_PATH_BYTES,
};

struct collect_limits {
    uint64_t files; /* policy: collect_files */
    uint64_t bytes; /* policy: collect_bytes; a file's whole length counts, holes too */
    /* The script and the files of this job are left out while they are as they were
     * placed; may be NULL. */
    const struct job *job;
    /* Folders, relative to /tmp, that the cell's environment made for itself (caches):
     * left out without a word. NULL-terminated; may be NULL. */
    const char *const *own_folders;
    /* The code still runs, and what it made unreadable stays so. */
    bool alive;
};

/* Fills outcome->files, sorted by path, files_skipped and files_note. Copies into the
 * folder out_dir unless it is -1: new files and folders with modes 0644 and 0755 (less
 * the umask), whatever theirs were; a regular file of the same name is replaced as a
 * whole, anything else of that name is kept and noted. An error is ours (out of memory,
 * the output folder cannot be written); what was gathered until then stays in the
 * outcome. */
int collect_files(int tmp_dir, const struct collect_limits *limits, int out_dir,
                  struct outcome *outcome, struct err *err) MUST_USE;
