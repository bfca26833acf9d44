/*
 * A data folder is looked up once, here, and from then on known by a path that has no symbolic
 * link in it. The cell's init opens that path again and refuses links (jail/mounts.c): so what is
 * mounted lies where it was judged to lie, whoever renames folders meanwhile.
 */
#include "engine/data_folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static bool
is_beneath(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Views of the kernel's, and the whole host. */
static int
check_kind(const char *path, struct err *err)
{
    static const char *const never[] = {"/proc", "/sys", "/dev"};
    if (strcmp(path, "/") == 0)
        return err_set(err, -EINVAL, "the data folder '/' would show the whole host");
    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
        if (is_beneath(path, never[i]))
            return err_set(err, -EINVAL, "'%.120s' is no data: it is in %s", path,
                           never[i]);
    return 0;
}

static int
check_allowed(const char *path, const struct policy *policy, struct err *err)
{
    for (size_t i = 0; i < policy->data_paths.n; i++) {
        AUTO_FREE char *allowed = realpath(policy->data_paths.items[i], NULL);
        if (allowed && is_beneath(path, allowed))
            return 0;
    }
    return err_set(err, -EPERM, "policy '%s' does not allow the data folder '%.120s'%s",
                   policy->name, path,
                   policy->data_paths.n > 0 ? ": it is not beneath one of its data_paths"
                                            : ": it has no data_paths");
}

/* As root each cell has a user of its own, who is nobody to the folder's owner. */
static int
check_readable(const char *path, const struct stat *is, struct err *err)
{
    const mode_t others = S_IROTH | S_IXOTH;
    if (!S_ISDIR(is->st_mode))
        return err_set(err, -EINVAL, "'%.120s' is no folder: files are given with --file",
                       path);
    if (geteuid() == 0 && (is->st_mode & others) != others)
        return err_set(err, -EINVAL,
                       "cells may not read the data folder '%.120s': those that root "
                       "starts have users of their own; chmod o+rx lets them",
                       path);
    if (geteuid() != 0 && access(path, R_OK | X_OK) < 0)
        return err_sys(err, "read the data folder '%.120s'", path);
    return 0;
}

static int
look_up(const char *path, struct job_folder *ret, struct stat *ret_is, struct err *err)
{
    struct stat is;
    AUTO_FREE char *real = realpath(path, NULL);
    if (!real || stat(real, &is) < 0)
        return err_set(err, errno == ENOMEM ? -ENOMEM : -EINVAL,
                       "there is no data folder '%.120s': %s", path,
                       strerrordesc_np(errno));
    if (strlen(real) >= sizeof(ret->path))
        return err_set(err, -EINVAL, "the path of the data folder '%.80s…' is too long",
                       real);
    *ret = (struct job_folder){.device = is.st_dev, .inode = is.st_ino};
    memcpy(ret->path, real, strlen(real) + 1);
    *ret_is = is;
    return check_kind(real, err);
}

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int
take(const struct data_folder *asked, bool is_only, const struct policy *policy,
     bool by_operator, struct job *job, struct err *err)
{
    struct job_folder folder;
    struct stat is = {0};
    int r = look_up(asked->path, &folder, &is, err);
    if (r == 0 && !by_operator)
        r = check_allowed(folder.path, policy, err);
    if (r == 0)
        r = check_readable(folder.path, &is, err);
    if (r < 0)
        return r;
    const char *own = is_only ? NULL : base_name(folder.path);
    return job_add_data(job, &folder, asked->name ? asked->name : own, err);
}

int
data_folders_take(const struct data_folder *folders, size_t n,
                  const struct policy *policy, bool by_operator, struct job *job,
                  struct err *err)
{
    if (n > 0 && policy->isolation != ISOLATION_NAMESPACES)
        return err_set(err, -EINVAL,
                       "data folders need mounts, which --isolation landlock does not "
                       "have: name them in the policy's read_paths, and they are seen "
                       "where they are");
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = take(&folders[i], n == 1, policy, by_operator, job, err);
    return r;
}
