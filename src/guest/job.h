/*
 * A job as a warm cell receives it: a memory file, mapped, with every offset checked against its
 * size before anything is used. It comes from the supervisor, and is bounded all the same.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "guest/wire.h"

struct job_view {
    const char *memory; /* mapped */
    size_t memory_n;
    struct guest_job head;
    const char *name;      /* ends with a NUL */
    const char *arguments; /* head.args_n texts, each ending with a NUL */
    const char *code;
    const char *stdin_bytes;
    const char *files; /* the first struct guest_job_file */
};

/* Whether one is there, or comes within that time; below 0: whenever. */
bool job_comes(int socket, int wait_ms);
/* Waits for a job. -EPIPE: there will be none. */
int job_receive(int socket, struct job_view *ret, struct err *err) MUST_USE;
/* Narrows the limits. */
int job_narrow(const struct job_view *job, struct err *err) MUST_USE;
/* Of a session: writes the files into /tmp, over those of earlier runs. */
int job_place_again(const struct job_view *job, struct err *err) MUST_USE;
/* Makes what the job has for it, or nothing, what descriptor 0 reads from now on. */
int job_place_stdin(const struct job_view *job, struct err *err) MUST_USE;
/* Writes the code and the files into the working directory, and narrows the limits. */
int job_place(const struct job_view *job, struct err *err) MUST_USE;
void job_done(struct job_view *job);
