/*
 * The cell's tree: a tmpfs that holds read-only copies of the interpreter's own files, a
 * private /tmp and /dev/shm, five devices, a /proc of its own processes, and a few files
 * in /etc.
 *
 * Built with descriptors (open_tree, fsopen, move_mount), so that no path of the host is
 * looked up after the identity is given up, and attributes are set before a mount can be
 * seen. Runs in the cell's init, after clone: no allocation.
 */
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/kernel.h"

enum { ROOT_BYTES = 1 << 20, ROOT_INODES = 2048 };

static const char *const devices[JAIL_DEVICES] = {"/dev/null", "/dev/zero", "/dev/full",
                                                  "/dev/random", "/dev/urandom"};

/* dir and path say what is cloned; from is its name for people. */
static int
add_tree(struct enter_run *run, int dir, const char *path, const char *from,
         const char *target, uint64_t attributes, struct err *err)
{
    const unsigned flags =
        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH;
    if (run->sources_n >= JAIL_SOURCES_MAX)
        return err_set(err, -E2BIG, "the image and the policy name more than %d paths",
                       JAIL_SOURCES_MAX);
    AUTO_CLOSE int fd = open_tree(dir, path, flags);
    if (fd < 0)
        return err_sys(err, "take %s into the cell", from);
    struct mount_attr attr = {.attr_set = attributes};
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return err_sys(err, "make %s read-only for the cell", from);
    run->sources[run->sources_n++] = (struct jail_source){fd_take(&fd), target};
    return 0;
}

static int
add_source(struct enter_run *run, const char *from, const char *target,
           uint64_t attributes, struct err *err)
{
    return add_tree(run, AT_FDCWD, from, from, target, attributes, err);
}

/* It was judged by a path without links: whatever is there now and is another one is refused. */
static int
add_folder(struct enter_run *run, const struct job_folder *folder, struct err *err)
{
    const uint64_t attributes = (folder->writable ? 0 : MOUNT_ATTR_RDONLY) |
                                MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    struct stat is;
    AUTO_CLOSE int fd = k_openat2(AT_FDCWD, folder->path, &how);
    if (fd < 0 || fstat(fd, &is) < 0)
        return err_sys(err, "open the folder %s", folder->path);
    if (is.st_dev != folder->device || is.st_ino != folder->inode)
        return err_set(err, -ESTALE,
                       "the folder %s is another one since it was "
                       "looked at",
                       folder->path);
    return add_tree(run, fd, "", folder->path, folder->target, attributes, err);
}

int
mounts_sources(struct enter_run *run, struct err *err)
{
    const struct jail_plan *plan = run->plan;
    const uint64_t files = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    const uint64_t nodes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    int r = 0;
    for (size_t i = 0; i < plan->image->paths_n && r == 0; i++)
        r = add_source(run, plan->image->paths[i], plan->image->paths[i], files, err);
    for (size_t i = 0; i < plan->policy->read_paths.n && r == 0; i++) {
        const char *path = plan->policy->read_paths.items[i];
        r = add_source(run, path, path, files, err);
    }
    for (size_t i = 0; plan->folders && i < plan->folders->n && r == 0; i++)
        r = add_folder(run, &plan->folders->list[i], err);
    if (r == 0)
        r = add_source(run, plan->guest_file, jail_guest_file(plan), files, err);
    if (r == 0 && plan->image->font_list[0] != '\0')
        r = add_source(run, plan->image->font_list, jail_font_list, files, err);
    for (size_t i = 0; i < JAIL_DEVICES && r == 0; i++)
        r = add_source(run, devices[i], devices[i], nodes, err);
    return r;
}

struct option {
    const char *key;
    uint64_t value;
    const char *text; /* instead of a number */
};

static int
new_mount(const char *type, const struct option *options, size_t n, unsigned attributes,
          int *ret_fd, struct err *err)
{
    AUTO_CLOSE int context = fsopen(type, FSOPEN_CLOEXEC);
    if (context < 0)
        return err_sys(err, "open a new %s", type);
    for (size_t i = 0; i < n; i++) {
        char number[24];
        snprintf(number, sizeof(number), "%llu", (unsigned long long)options[i].value);
        const char *value = options[i].text ? options[i].text : number;
        if (fsconfig(context, FSCONFIG_SET_STRING, options[i].key, value, 0) < 0)
            return err_sys(err, "set %s=%s on a new %s", options[i].key, value, type);
    }
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(err, "make a new %s", type);
    int fd = fsmount(context, FSMOUNT_CLOEXEC, attributes);
    if (fd < 0)
        return err_sys(err, "mount a new %s", type);
    *ret_fd = fd;
    return 0;
}

int
mounts_root(struct enter_run *run, struct err *err)
{
    static const struct option options[] = {{"mode", 0, "0755"},
                                            {"size", ROOT_BYTES, NULL},
                                            {"nr_inodes", ROOT_INODES, NULL}};
    int r = new_mount("tmpfs", options, sizeof(options) / sizeof(*options),
                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &run->root_fd, err);
    if (r < 0)
        return r;
    /* Stacked on the old root, where every host has a place; pivot_root swaps them
     * later. */
    if (move_mount(run->root_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(err, "attach the new root");
    if (fchdir(run->root_fd) < 0)
        return err_sys(err, "enter the new root");
    return 0;
}

/* Makes the folders above an absolute path, relative to the working directory. */
static int
make_parents(const char *path, struct err *err)
{
    char part[JAIL_PATH_BYTES];
    for (const char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        size_t n = (size_t)(p - path) - 1;
        if (n >= sizeof(part))
            return err_set(err, -ENAMETOOLONG, "path too long for a cell: %.100s", path);
        memcpy(part, path + 1, n);
        part[n] = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_sys(err, "make /%s in the cell", part);
    }
    return 0;
}

static int
place_source(const struct jail_source *source, struct err *err)
{
    const char *relative = source->target + 1;
    struct stat is;
    int r = make_parents(source->target, err);
    if (r < 0)
        return r;
    if (fstatat(source->fd, "", &is, AT_EMPTY_PATH) < 0)
        return err_sys(err, "look at the source of %s", source->target);
    if (S_ISDIR(is.st_mode)) {
        if (mkdir(relative, 0755) < 0 && errno != EEXIST)
            return err_sys(err, "make %s in the cell", source->target);
    } else {
        AUTO_CLOSE int fd =
            open(relative, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0444);
        if (fd < 0)
            return err_sys(err, "make %s in the cell", source->target);
    }
    if (move_mount(source->fd, "", AT_FDCWD, relative, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(err, "mount %s in the cell", source->target);
    return 0;
}

int
mounts_place(struct enter_run *run, struct err *err)
{
    const struct image *image = run->plan->image;
    /* Links first: a path of the image may lead through one (/lib -> usr/lib). */
    for (size_t i = 0; i < image->links_n; i++) {
        int r = make_parents(image->links[i].path, err);
        if (r < 0)
            return r;
        if (symlink(image->links[i].target, image->links[i].path + 1) < 0 &&
            errno != EEXIST)
            return err_sys(err, "make the link %s in the cell", image->links[i].path);
    }
    for (size_t i = 0; i < run->sources_n; i++) {
        int r = place_source(&run->sources[i], err);
        if (r < 0)
            return r;
        close(fd_take(&run->sources[i].fd));
    }
    return 0;
}

static int
make_file(const char *path, const char *text, struct err *err)
{
    AUTO_CLOSE int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
    if (fd < 0)
        return err_sys(err, "make /%s in the cell", path);
    int r = fd_write_all(fd, text, strlen(text));
    return r < 0 ? err_set(err, r, "write /%s in the cell", path) : 0;
}

/* A file of ours over one of the image. */
static int
cover(const struct image_file *file, size_t i, uint64_t attributes, struct err *err)
{
    char path[JAIL_PATH_BYTES];
    if (faccessat(AT_FDCWD, file->path + 1, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    snprintf(path, sizeof(path), "run/adyton/start-%zu", i);
    int r = make_file(path, file->text, err);
    if (r < 0)
        return r;
    AUTO_CLOSE int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    struct mount_attr attr = {.attr_set = attributes};
    if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ||
        move_mount(fd, "", AT_FDCWD, file->path + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(err, "cover %s in the cell", file->path);
    return 0;
}

int
mounts_substitutes(struct enter_run *run, struct err *err)
{
    const struct image *image = run->plan->image;
    int r = 0;
    for (size_t i = 0; i < image->files_n && r == 0; i++)
        r = cover(&image->files[i], i,
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    return r;
}

int
mounts_files(struct enter_run *run, struct err *err)
{
    (void)run;
    static const struct {
        const char *path, *text;
    } files[] = {
        {"etc/passwd", "root:x:0:0:root:/:/bin/sh\ncell:x:1000:1000:cell:/tmp:/bin/sh\n"},
        {"etc/group", "root:x:0:\ncell:x:1000:\n"},
        {"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 cell\n"},
        {"etc/hostname", "cell\n"},
        /* Files only: libc would load a module for each service the host names. */
        {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    };
    static const struct {
        const char *path, *target;
    } links[] = {{"dev/fd", "/proc/self/fd"},
                 {"dev/stdin", "/proc/self/fd/0"},
                 {"dev/stdout", "/proc/self/fd/1"},
                 {"dev/stderr", "/proc/self/fd/2"}};
    static const char *const folders[] = {"etc", "dev", "dev/shm", "proc", "run", "tmp"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
        if (mkdir(folders[i], 0755) < 0 && errno != EEXIST)
            return err_sys(err, "make /%s in the cell", folders[i]);
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        if (symlink(links[i].target, links[i].path) < 0)
            return err_sys(err, "make the link /%s in the cell", links[i].path);
    int r = 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files) && r == 0; i++)
        r = make_file(files[i].path, files[i].text, err);
    return r;
}

static int
split_scratch(int scratch, const char *folder, int *ret_fd, struct err *err)
{
    if (mkdirat(scratch, folder, 01777) < 0)
        return err_sys(err, "make the scratch folder %s", folder);
    *ret_fd = open_tree(scratch, folder, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return *ret_fd < 0 ? err_sys(err, "split the scratch file system") : 0;
}

/* /tmp and /dev/shm (POSIX semaphores and shared memory) are two folders of one file
 * system, so that the policy's byte and inode limits hold for both together. */
int
mounts_scratch(struct enter_run *run, struct err *err)
{
    const struct policy *policy = run->plan->policy;
    enum { OWN_INODES = 3 }; /* its root and the two folders are not the user's */
    const struct option options[] = {
        {"mode", 0, "0755"},
        {"size", policy->disk_bytes, NULL},
        {"nr_inodes", policy->disk_inodes + OWN_INODES, NULL}};
    AUTO_CLOSE int scratch = -1;
    AUTO_CLOSE int shm = -1;
    AUTO_CLOSE int tmp = -1;
    int r = new_mount("tmpfs", options, sizeof(options) / sizeof(*options),
                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &scratch,
                      err);
    if (r < 0)
        return r;
    /* A detached mount cannot be cloned: the whole stands in /tmp for a moment. */
    if (move_mount(scratch, "", AT_FDCWD, "tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(err, "mount the scratch file system");
    r = split_scratch(scratch, "shm", &shm, err);
    if (r == 0)
        r = split_scratch(scratch, "tmp", &tmp, err);
    if (r < 0)
        return r;
    if (umount2("tmp", MNT_DETACH) < 0)
        return err_sys(err, "take the whole scratch file system away");
    if (move_mount(shm, "", AT_FDCWD, "dev/shm", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
        move_mount(tmp, "", AT_FDCWD, "tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(err, "mount the cell's /tmp and /dev/shm");
    run->entered->tmp_fd = fd_take(&tmp);
    return 0;
}

int
mounts_proc(struct enter_run *run, struct err *err)
{
    /* subset=pid: processes only. What else the host's /proc tells (its command line,
     * memory, disks, keys) is nobody's business here. */
    static const struct option options[] = {{"subset", 0, "pid"}};
    AUTO_CLOSE int proc = -1;
    int r =
        new_mount("proc", options, 1,
                  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &proc, err);
    if (r < 0)
        return err_wrap(err, "the cell's /proc (a container that masks its own /proc may "
                             "refuse it)");
    if (move_mount(proc, "", AT_FDCWD, "proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(err, "mount /proc in the cell");
    run->entered->proc_fd = fd_take(&proc);
    return 0;
}

/* Where matplotlib looks for its list of fonts, in the working directory: the cell's home. */
int
mounts_fonts(struct enter_run *run, struct err *err)
{
    const char *list = run->plan->image->font_list;
    char path[IMAGE_PATH_BYTES + 32];
    if (list[0] == '\0')
        return 0;
    snprintf(path, sizeof(path), ".cache/matplotlib/%s", strrchr(list, '/') + 1);
    if (mkdir(".cache", 0755) < 0 || mkdir(".cache/matplotlib", 0755) < 0 ||
        symlink(jail_font_list, path) < 0)
        return err_sys(err, "place matplotlib's list of fonts");
    return 0;
}

int
mounts_pivot(struct enter_run *run, struct err *err)
{
    /* With "." twice the old root lies on top of the new one and is detached with
     * everything on it; see pivot_root(2), NOTES. */
    if (fchdir(run->root_fd) < 0 || k_pivot_root(".", ".") < 0)
        return err_sys(err, "swap the root");
    if (umount2(".", MNT_DETACH) < 0)
        return err_sys(err, "let go of the host's tree");
    if (chdir("/") < 0)
        return err_sys(err, "enter the new root");
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    if (mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof(attr)) < 0)
        return err_sys(err, "make the new root read-only");
    close(fd_take(&run->root_fd));
    return 0;
}
