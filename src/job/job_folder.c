/* Folders of the host that a job sees in its cell: where each stands there, by its name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "job/job.h"

const char job_data_place[] = "/data", job_workspace_place[] = "/workspace";

/* One component that a listing and an error can show. */
static bool
name_is_plain(struct span name)
{
    if (name.n == 0 || name.n >= JOB_FOLDER_NAME_BYTES || span_is(name, ".") ||
        span_is(name, ".."))
        return false;
    while (name.n > 0) {
        int length = utf8_next(name);
        unsigned char first = (unsigned char)name.p[0];
        if (length <= 0 || first < 0x20 || first == 0x7f || first == '/')
            return false;
        name.p += length;
        name.n -= (size_t)length;
    }
    return true;
}

static int
place(const struct job_folders *folders, const char *name, char *ret, struct err *err)
{
    if (!name)
        snprintf(ret, JOB_FOLDER_TARGET_BYTES, "%s", job_data_place);
    else if (name_is_plain(span_of(name)))
        snprintf(ret, JOB_FOLDER_TARGET_BYTES, "%s/%s", job_data_place, name);
    else
        return err_set(err, -EINVAL,
                       "'%.80s' is no name for a data folder: one plain name of at most "
                       "%d bytes",
                       name, JOB_FOLDER_NAME_BYTES - 1);
    for (size_t i = 0; i < folders->n; i++)
        if (strcmp(folders->list[i].target, ret) == 0)
            return err_set(err, -EEXIST, "two data folders want the name '%.80s'", ret);
    return 0;
}

int
job_add_data(struct job *job, const struct job_folder *folder, const char *name,
             struct err *err)
{
    struct job_folders *folders = &job->folders;
    struct job_folder added = *folder;
    if (folders->n == JOB_FOLDERS_MAX)
        return err_set(err, -E2BIG, "more than %d data folders", JOB_FOLDERS_MAX);
    added.writable = false;
    int r = place(folders, name, added.target, err);
    if (r == 0)
        folders->list[folders->n++] = added;
    return r;
}

static bool
alike(const struct job_folder *a, const struct job_folder *b)
{
    return a->device == b->device && a->inode == b->inode &&
           strcmp(a->path, b->path) == 0 && strcmp(a->target, b->target) == 0;
}

bool
job_folders_alike(const struct job_folders *a, const struct job_folders *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = alike(&a->list[i], &b->list[i]);
    return same;
}

const struct job_folder *
job_folders_workspace(const struct job_folders *folders)
{
    for (size_t i = 0; i < folders->n; i++)
        if (folders->list[i].writable)
            return &folders->list[i];
    return NULL;
}

bool
job_folders_have_data(const struct job_folders *folders)
{
    return folders->n > (job_folders_workspace(folders) ? 1U : 0U);
}

int
job_add_workspace(struct job *job, const struct job_folder *folder, struct err *err)
{
    struct job_folders *folders = &job->folders;
    if (job_folders_workspace(folders))
        return err_set(err, -EEXIST, "there is a workspace already");
    if (folders->n == JOB_FOLDERS_MAX)
        return err_set(err, -E2BIG, "more than %d folders", JOB_FOLDERS_MAX);
    struct job_folder *added = &folders->list[folders->n++];
    *added = *folder;
    added->writable = true;
    snprintf(added->target, sizeof(added->target), "%s", job_workspace_place);
    return 0;
}
