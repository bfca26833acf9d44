/* Folders of the host that a job sees in its cell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JOB_FOLDERS_MAX = 16,
    JOB_FOLDER_NAME_BYTES = 64,
    JOB_FOLDER_TARGET_BYTES = JOB_FOLDER_NAME_BYTES + 8,
    JOB_FOLDER_PATH_BYTES = 512,
};

/* A folder of the host that the cell sees. Plain data: it is compared and copied. */
struct job_folder {
    char path[JOB_FOLDER_PATH_BYTES];     /* absolute, no link on its way */
    char target[JOB_FOLDER_TARGET_BYTES]; /* in the cell: "/data", "/data/NAME", … */
    bool writable;                        /* the workspace */
    uint32_t user; /* of the workspace, when we are root: the cell's user on the host */
    uint64_t device, inode; /* which one it was: another may take its path */
};
struct job_folders {
    struct job_folder list[JOB_FOLDERS_MAX];
    size_t n;
};

extern const char job_data_place[];      /* "/data" */
extern const char job_workspace_place[]; /* "/workspace" */
/* The workspace among them, or NULL. */
const struct job_folder *job_folders_workspace(const struct job_folders *folders);
bool job_folders_have_data(const struct job_folders *folders);
bool job_folders_alike(const struct job_folders *a, const struct job_folders *b);
