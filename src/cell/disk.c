/*
 * The size of a private folder, for the landlock isolation: there /tmp is a folder of the host,
 * on whose file system we cannot set a limit for one user. So it is looked at, often, and a cell
 * that has filled it is ended: a sample, where a tmpfs of its own is a wall. The same for a workspace,
 * which is a folder of the host in every isolation.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "cell/cell_parts.h"
#include "kernel/kernel.h"

enum { DEPTH_MAX = 64, BLOCK_BYTES = 512 };

struct sum {
    uint64_t bytes, inodes;
    uint64_t inodes_max; /* counting on would tell nothing more */
    bool is_hidden;      /* a part of it could not be looked at */
};

static void add_folder(int folder, struct sum *sum, int depth);

/* What its owner has closed to himself, or put deeper than we follow, may hold anything. */
static void
add_below(int above, const char *name, struct sum *sum, int depth)
{
    AUTO_CLOSE int below =
        openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0 && depth < DEPTH_MAX)
        add_folder(below, sum, depth + 1);
    else if (below >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP))
        sum->is_hidden = true;
}

static void
add_name(int folder, const char *name, struct sum *sum, int depth)
{
    struct stat is;
    if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
        return;
    if (fstatat(folder, name, &is, AT_SYMLINK_NOFOLLOW) < 0) {
        sum->is_hidden |= errno != ENOENT; /* gone since */
        return;
    }
    sum->inodes++;
    sum->bytes += (uint64_t)is.st_blocks * BLOCK_BYTES;
    if (S_ISDIR(is.st_mode))
        add_below(folder, name, sum, depth);
}

static void
add_folder(int folder, struct sum *sum, int depth)
{
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = listed < 0 ? NULL : fdopendir(listed);
    if (!dir) {
        sum->is_hidden |= listed >= 0 || errno != ENOENT;
        fd_close(&listed);
        return;
    }
    for (struct dirent *entry; sum->inodes <= sum->inodes_max && (entry = readdir(dir));)
        add_name(dirfd(dir), entry->d_name, sum, depth);
    closedir(dir);
}

/* Its user may write while we look: a sum of what was there one after the other. */
static const char *
workspace_over(const struct cell *cell)
{
    const struct policy *policy = cell->request.policy;
    struct sum sum = {.inodes_max = policy->disk_inodes};
    add_folder(cell->workspace_fd, &sum, 0);
    if (sum.bytes > policy->workspace_bytes || sum.is_hidden)
        return "workspace_size";
    return sum.inodes > policy->disk_inodes ? "disk_inodes" : NULL;
}

int
cell_open_workspace(struct cell *cell, struct err *err)
{
    const struct job_folder *folder = job_folders_workspace(&cell->request.job->folders);
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    char limit[UNITS_TEXT_BYTES];
    if (!folder)
        return 0;
    cell->workspace_fd = k_openat2(AT_FDCWD, folder->path, &how);
    if (cell->workspace_fd < 0)
        return err_sys(err, "open the workspace %s", folder->path);
    if (!workspace_over(cell))
        return 0;
    return err_set(
        err, -EDQUOT,
        "the workspace is full, or a part of it cannot be looked at: it may hold %s in "
        "%llu files and folders when a run begins; see to %.100s",
        format_bytes(cell->request.policy->workspace_bytes, limit),
        (unsigned long long)cell->request.policy->disk_inodes, folder->path);
}

const char *
cell_disk_over(const struct cell *cell)
{
    const struct policy *policy = cell->request.policy;
    struct sum sum = {.inodes_max = policy->disk_inodes};
    if (cell->workspace_fd >= 0)
        return workspace_over(cell);
    if (policy->isolation != ISOLATION_LANDLOCK || cell->tmp_fd < 0)
        return NULL;
    add_folder(cell->tmp_fd, &sum, 0);
    if (sum.bytes > policy->disk_bytes || sum.is_hidden)
        return "disk";
    return sum.inodes > policy->disk_inodes ? "disk_inodes" : NULL;
}
