/*
 * Files of a cell that lives: list them, read one or all, put some. The code that runs in the cell
 * changes that tree meanwhile as it likes; so the work is done by descriptor, beneath the root,
 * with no link followed, and in a process of its own: a child that becomes the cell's user, without
 * privileges, has a time and a size to keep to, and tells what it finds in small messages. The
 * supervisor only reads those, as bytes of somebody it does not trust.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "job/job.h"
#include "job/outcome.h"

enum files_kind {
    FILES_LIST, /* on_entry for each regular file, in the order of their paths */
    FILES_READ, /* one file: on_entry (without type and hash), then its bytes */
    FILES_TAR,  /* all of them as one archive */
    FILES_PUT,  /* writes files, each whole or not at all */
};

struct files_work;

struct files_task {
    enum files_kind kind;
    int tmp_dir;                    /* the cell's /tmp; borrowed for the call */
    uint64_t files_max, bytes_max;  /* of LIST, READ and TAR */
    const char *const *own_folders; /* see collect.h; borrowed for the call */
    const char *path;               /* of READ: relative to /tmp; borrowed for the call */
    const struct job_file *put;     /* of PUT; borrowed for the call */
    size_t put_n;
    void (*on_entry)(void *context, const struct collected_file *file); /* may be NULL */
    void (*on_data)(void *context, struct span bytes);                  /* may be NULL */
    /* The last call; the work is freed after it. code 0: all is done. skipped and note as in an
     * outcome: what was left out, and why. sha256: of READ. */
    void (*on_end)(void *context, const struct err *err, uint64_t skipped,
                   const char *note, const char *sha256);
    void *context;
};

/* On failure on_end is not called. -ENOENT, -EISDIR… come with on_end. */
int files_start(struct event_base *base, const struct files_task *task,
                struct files_work **ret, struct err *err) MUST_USE;
/* Nothing is called until it goes on: for a reader that is slow. */
void files_pause(struct files_work *work, bool pause);
/* Ends it; on_end is not called. */
void files_cancel(struct files_work *work);
