/*
 * What is asked, as data. Built by a door, read by everything below it. Bytes in it come
 * from outside: names are checked as they are added, so that one in a job is safe beneath
 * /tmp.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "job/job_folder.h"

enum {
    JOB_FILES_MAX = 1024,
    JOB_ARGS_MAX = 256,
    JOB_ARGS_BYTES = 64 * 1024,
    JOB_NAME_BYTES = 256, /* NUL included: a Linux file name */
    JOB_PATH_BYTES = 1024,
    /* Of code and of stdin; a door reads as much as its policy says. */
    JOB_BYTES_MAX = 1 << 30,
};

struct job_file {
    char *name; /* relative to /tmp; folders in it are made; no "..", no leading '/' */
    struct buf data; /* owned */
};

struct job {
    char name[JOB_NAME_BYTES]; /* of the script in /tmp, and sys.argv[0]: "main.py" */
    struct buf code; /* owned: the source as bytes, any encoding that CPython takes */
    char **args;     /* owned, sys.argv[1:] */
    size_t args_n;
    struct buf stdin_bytes; /* owned; empty means /dev/null unless has_stdin */
    bool has_stdin;
    struct job_file *files; /* owned */
    size_t files_n;
    bool show_last; /* the value of the last expression is a result */
    bool svg;       /* figures are shown as SVG, too */
    bool
        completes; /* a question about the code: args[0] is "matches" or "state". It is not run */
    struct job_folders folders;
    bool collect; /* gather what the code leaves in /tmp into the outcome */
};

void job_init(struct job *job); /* "main.py", nothing in it */
void job_done(struct job *job);
int job_add_arg(struct job *job, const char *arg, struct err *err) MUST_USE;
/* Takes the bytes of `data` over on success. -EEXIST: the name is taken, by the script
 * too. */
int job_add_file(struct job *job, const char *name, struct buf *data,
                 struct err *err) MUST_USE;
/* Sets the script's name: a single plain path component. */
int job_set_name(struct job *job, const char *name, struct err *err) MUST_USE;
/* A data folder, found and allowed by the caller, stands at /data/NAME, or with NULL at /data
 * itself; its target is written here. */
int job_add_data(struct job *job, const struct job_folder *folder, const char *name,
                 struct err *err) MUST_USE;
int job_add_workspace(struct job *job, const struct job_folder *folder,
                      struct err *err) MUST_USE;
