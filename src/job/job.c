/*
 * The job as data. Names are checked on the way in, because a job is the only thing that
 * crosses from a door to the code that holds privileges: what is in a struct job is safe
 * to use beneath /tmp of a cell, whoever built it.
 */
#include "job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
job_init(struct job *job)
{
    *job = (struct job){.name = "main.py"};
    buf_init(&job->code, JOB_BYTES_MAX);
    buf_init(&job->stdin_bytes, JOB_BYTES_MAX);
}

void
job_done(struct job *job)
{
    if (!job)
        return;
    buf_done(&job->code);
    buf_done(&job->stdin_bytes);
    for (size_t i = 0; i < job->args_n; i++)
        free(job->args[i]);
    free(job->args);
    for (size_t i = 0; i < job->files_n; i++) {
        free(job->files[i].name);
        buf_done(&job->files[i].data);
    }
    free(job->files);
    *job = (struct job){0};
}

/* Adds room for one more element; the array is small, so one at a time is enough. */
static void *
grow(void *array, size_t n, size_t element_bytes)
{
    return reallocarray(array, n + 1, element_bytes);
}

int
job_add_arg(struct job *job, const char *arg, struct err *err)
{
    size_t total = strlen(arg) + 1;
    for (size_t i = 0; i < job->args_n; i++)
        total += strlen(job->args[i]) + 1;
    if (job->args_n >= JOB_ARGS_MAX)
        return err_set(err, -E2BIG, "more than %d arguments", JOB_ARGS_MAX);
    if (total > JOB_ARGS_BYTES)
        return err_set(err, -E2BIG, "the arguments are longer than %d bytes",
                       JOB_ARGS_BYTES);

    char **args = grow(job->args, job->args_n, sizeof(*args));
    if (!args)
        return err_set(err, -ENOMEM, "no memory for an argument");
    job->args = args;
    args[job->args_n] = strdup(arg);
    if (!args[job->args_n])
        return err_set(err, -ENOMEM, "no memory for an argument");
    job->args_n++;
    return 0;
}

/* A component that names something in its folder and nothing else. */
static bool
component_is_plain(struct span s)
{
    return s.n > 0 && s.n < JOB_NAME_BYTES && !span_is(s, ".") && !span_is(s, "..") &&
           !memchr(s.p, '/', s.n);
}

/* The kernel would resolve "..", "//" and a leading '/' too, but not beneath /tmp. */
static int
check_path(const char *path, struct err *err)
{
    if (strlen(path) >= JOB_PATH_BYTES)
        return err_set(err, -ENAMETOOLONG, "the file name is longer than %d bytes",
                       JOB_PATH_BYTES - 1);
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");
        if (!component_is_plain((struct span){p, n}))
            return err_set(err, -EINVAL,
                           "the file name '%.80s' is not a plain path beneath /tmp "
                           "(no leading '/', no '.' or '..', no empty part)",
                           path);
        p += n;
        if (*p == '\0')
            return 0;
    }
}

/* One of them is the other, or would have to be a folder that holds the other. */
static bool
paths_collide(const char *a, const char *b)
{
    size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    if (strncmp(a, b, n) != 0)
        return false;
    return (a[n] == '\0' && (b[n] == '\0' || b[n] == '/')) ||
           (a[n] == '/' && b[n] == '\0');
}

static int
check_free(const struct job *job, const char *name, struct err *err)
{
    for (size_t i = 0; i < job->files_n; i++)
        if (paths_collide(job->files[i].name, name))
            return err_set(err, -EEXIST, "two files want the name '%.80s'", name);
    return 0;
}

int
job_add_file(struct job *job, const char *name, struct buf *data, struct err *err)
{
    int r = check_path(name, err);
    if (r == 0)
        r = check_free(job, name, err);
    if (r < 0)
        return r;
    if (paths_collide(job->name, name))
        return err_set(err, -EEXIST, "'%.80s' is the name of the script itself", name);
    if (job->files_n >= JOB_FILES_MAX)
        return err_set(err, -E2BIG, "more than %d files", JOB_FILES_MAX);

    struct job_file *files = grow(job->files, job->files_n, sizeof(*files));
    if (!files)
        return err_set(err, -ENOMEM, "no memory for a file");
    job->files = files;
    char *own_name = strdup(name);
    if (!own_name)
        return err_set(err, -ENOMEM, "no memory for a file");
    files[job->files_n++] = (struct job_file){.name = own_name, .data = *data};
    *data = (struct buf){.max = data->max};
    return 0;
}

int
job_set_name(struct job *job, const char *name, struct err *err)
{
    if (!component_is_plain(span_of(name)))
        return err_set(err, -EINVAL, "the script's name '%.80s' is not a plain file name",
                       name);
    int r = check_free(job, name, err);
    if (r < 0)
        return r;
    snprintf(job->name, sizeof(job->name), "%s", name);
    return 0;
}
