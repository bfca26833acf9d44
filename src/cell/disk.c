/*
 * The size of a private folder, for the landlock isolation: there /tmp is a folder of the host,
 * on whose file system we cannot set a limit for one user. So it is looked at, often, and a cell
 * that has filled it is ended: a sample, where a tmpfs of its own is a wall.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cell_parts.h"

enum { DEPTH_MAX = 64, BLOCK_BYTES = 512 };

struct sum {
    uint64_t bytes, inodes;
    uint64_t inodes_max; /* counting on would tell nothing more */
};

static void
add_folder(int folder, struct sum *sum, int depth)
{
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = listed < 0 ? NULL : fdopendir(listed);
    if (!dir) {
        fd_close(&listed);
        return;
    }
    for (struct dirent *entry;
         sum->inodes <= sum->inodes_max && (entry = readdir(dir));) {
        struct stat is;
        const char *name = entry->d_name;
        if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
            continue;
        if (fstatat(dirfd(dir), name, &is, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* gone since */
        sum->inodes++;
        sum->bytes += (uint64_t)is.st_blocks * BLOCK_BYTES;
        if (!S_ISDIR(is.st_mode) || depth >= DEPTH_MAX)
            continue;
        AUTO_CLOSE int below =
            openat(dirfd(dir), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            add_folder(below, sum, depth + 1);
    }
    closedir(dir);
}

const char *
cell_disk_over(const struct cell *cell)
{
    const struct policy *policy = cell->request.policy;
    struct sum sum = {.inodes_max = policy->disk_inodes};
    if (policy->isolation != ISOLATION_LANDLOCK || cell->tmp_fd < 0)
        return NULL;
    add_folder(cell->tmp_fd, &sum, 0);
    if (sum.bytes > policy->disk_bytes)
        return "disk";
    return sum.inodes > policy->disk_inodes ? "disk_inodes" : NULL;
}
