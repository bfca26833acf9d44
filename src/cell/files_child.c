/*
 * The child's half: gives everything up, then does the one thing it was started for. It is the
 * cell's user and may reach nothing but the cell's tree and libmagic's tables, so what a hostile
 * tree or file could make of it is not more than the code in the cell has anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "base/units.h"
#include "cell/collect_parts.h"
#include "cell/files_parts.h"
#include "cell/tar.h"
#include "kernel/kernel.h"

enum {
    CPU_S = 60,
    MORE_MEMORY_BYTES = 1 << 30,
    FILES_OPEN = 64,
    TAR_SLACK_BYTES = 64 * 1024,
    FOLDER_MODE = 0755,
    FILE_MODE = 0644,
};

struct child {
    const struct files_task *task;
    struct buf out; /* bytes on their way */
    crypto_hash_sha256_state hash;
    struct files_end end;
    uint64_t changed; /* files that were another length than they said */
};

/* --- what it says --- */

static void
send_message(const struct files_message *message, size_t body)
{
    size_t n = offsetof(struct files_message, data) + body;
    ssize_t sent;
    do
        sent = send(FILES_CHILD_FD, message, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)n)
        _exit(EXIT_FAILURE); /* nobody listens */
}

static void
send_entry(const struct collected_file *file)
{
    struct files_message message = {.head = {FILES_ENTRY, 0}, .entry = *file};
    send_message(&message, sizeof(message.entry));
}

static void
send_data(const char *bytes, size_t n)
{
    struct files_message message;
    message.head = (struct files_head){FILES_DATA, (uint32_t)n};
    memcpy(message.data, bytes, n);
    send_message(&message, n);
}

static NORETURN void
end(struct child *child, int r)
{
    struct files_message message = {.head = {FILES_END, 0}, .end = child->end};
    if (r == 0)
        message.end.err.code = 0;
    send_message(&message, sizeof(message.end));
    _exit(EXIT_SUCCESS);
}

/* --- what it gives up --- */

static int
become_owner(struct err *err)
{
    struct stat tree;
    if (fstat(FILES_TREE_FD, &tree) < 0)
        return err_sys(err, "look at the cell's /tmp");
    if (geteuid() == 0 &&
        (setgroups(0, NULL) < 0 || setresgid(tree.st_gid, tree.st_gid, tree.st_gid) < 0 ||
         setresuid(tree.st_uid, tree.st_uid, tree.st_uid) < 0))
        return err_sys(err, "become the cell's user");
    return 0;
}

static int
allow(int ruleset, int fd, uint64_t rights, struct err *err)
{
    const struct k_landlock_path rule = {.allowed_access = rights, .parent_fd = fd};
    return k_landlock_add_path(ruleset, &rule) < 0
               ? err_sys(err, "add a Landlock rule for the cell's files")
               : 0;
}

static int
restrict_files(struct err *err)
{
    static const char *const tables[] = {"/usr/share/misc", "/usr/lib/file",
                                         "/usr/share/file", "/etc/magic",
                                         "/etc/magic.mime"};
    const uint64_t read = K_FS_READ_FILE | K_FS_READ_DIR;
    int abi = k_landlock_abi();
    uint64_t handled =
        (K_FS_REFER - 1) | (abi >= 2 ? K_FS_REFER : 0U) | (abi >= 3 ? K_FS_TRUNCATE : 0U);
    const struct k_landlock_ruleset all = {.handled_access_fs = handled};
    AUTO_CLOSE int ruleset =
        k_landlock_create(&all, offsetof(struct k_landlock_ruleset, handled_access_net));
    if (ruleset < 0)
        return err_sys(err, "make a Landlock ruleset for the cell's files");
    int r = allow(ruleset, FILES_TREE_FD, handled & ~(uint64_t)K_FS_EXECUTE, err);
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && r == 0; i++) {
        AUTO_CLOSE int fd = open(tables[i], O_PATH | O_CLOEXEC);
        struct stat is;
        if (fd >= 0 && fstat(fd, &is) == 0)
            r = allow(ruleset, fd, S_ISDIR(is.st_mode) ? read : K_FS_READ_FILE, err);
    }
    if (r == 0 && k_landlock_restrict(ruleset, 0) < 0)
        r = err_sys(err, "restrict the process for the cell's files");
    return r;
}

/* What is mapped now, as it was in the supervisor. */
static int
mapped_bytes(uint64_t *ret, struct err *err)
{
    char text[128];
    uint64_t pages;
    ssize_t n = file_read(AT_FDCWD, "/proc/self/statm", text, sizeof(text));
    if (n <= 0 || parse_u64((struct span){text, strcspn(text, " ")}, &pages) < 0)
        return err_set(err, -EIO, "the size of this process cannot be read");
    *ret = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static int
limit_itself(struct err *err)
{
    uint64_t mapped;
    int r = mapped_bytes(&mapped, err);
    if (r < 0)
        return r;
    const struct {
        __rlimit_resource_t resource;
        rlim_t value;
    } limits[] = {{RLIMIT_CPU, CPU_S},
                  {RLIMIT_AS, mapped + MORE_MEMORY_BYTES},
                  {RLIMIT_NOFILE, FILES_OPEN},
                  {RLIMIT_CORE, 0},
                  {RLIMIT_NPROC, 0}};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        const struct rlimit limit = {limits[i].value, limits[i].value};
        if (setrlimit(limits[i].resource, &limit) < 0)
            return err_sys(err, "limit the process for the cell's files");
    }
    return 0;
}

static int
give_up(struct err *err)
{
    int r = become_owner(err);
    if (r == 0)
        r = limit_itself(err);
    if (r == 0 &&
        (k_capabilities_clear() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
        r = err_sys(err, "give up privileges for the cell's files");
    /* Whoever is the same user must not look into what the supervisor knew. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    umask(0);
    return r < 0 ? r : restrict_files(err);
}

/* --- list --- */

static int
list(struct child *child, struct err *err)
{
    const struct files_task *task = child->task;
    const struct collect_limits limits = {.files = task->files_max,
                                          .bytes = task->bytes_max,
                                          .own_folders = task->own_folders,
                                          .alive = true};
    struct outcome outcome;
    outcome_init(&outcome);
    int r = collect_files(FILES_TREE_FD, &limits, -1, &outcome, err);
    for (size_t i = 0; i < outcome.files_n && r == 0; i++)
        send_entry(&outcome.files[i]);
    child->end.skipped = outcome.files_skipped;
    snprintf(child->end.note, sizeof(child->end.note), "%s", outcome.files_note);
    return r;
}

/* --- bytes --- */

static int
flush(struct child *child, size_t least)
{
    while (child->out.n >= least && child->out.n > 0) {
        size_t n = child->out.n < FILES_DATA_BYTES ? child->out.n : FILES_DATA_BYTES;
        send_data(child->out.p, n);
        buf_consume(&child->out, n);
    }
    return 0;
}

/* Exactly n bytes: what a file has grown is not read, what it has shrunk is `fill`ed with zeros or
 * an error. */
static int
copy(struct child *child, int fd, uint64_t n, bool fill)
{
    UNCLEARED char bytes[FILES_DATA_BYTES];
    while (n > 0) {
        size_t want = n < sizeof(bytes) ? (size_t)n : sizeof(bytes);
        ssize_t got = read(fd, bytes, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 && !fill)
            return got < 0 ? -errno : -ESTALE;
        if (got <= 0) {
            memset(bytes, 0, want);
            child->changed += child->changed == 0;
            got = (ssize_t)want;
        }
        crypto_hash_sha256_update(&child->hash, (const unsigned char *)bytes,
                                  (unsigned long long)got);
        int r = buf_append(&child->out, bytes, (size_t)got);
        if (r < 0)
            return r;
        n -= (uint64_t)got;
        flush(child, FILES_DATA_BYTES);
    }
    return 0;
}

static int
say_why_not(const char *path, int r, struct err *err)
{
    static const struct {
        int code;
        const char *why;
    } rows[] = {{-ENOENT, "there is no such file"},
                {-ENOTDIR, "a part of the path is no folder"},
                {-ELOOP, "it is a symbolic link, or there is one on its way"},
                {-EXDEV, "it leads out of /tmp"},
                {-EISDIR, "it is a folder"},
                {-EINVAL, "it is no regular file"},
                {-ENXIO, "it is no regular file"},
                {-EACCES, "the code has made it unreadable"},
                {-EFBIG, "it is larger than the policy's collect_size"},
                {-ESTALE, "it changed while it was read"},
                {-ENOSPC, "the disk of the cell is full"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].code == r)
            return err_set(err, r, "%.120s: %s", path, rows[i].why);
    return err_set(err, r, "%.120s: %s", path, strerrordesc_np(-r));
}

static int
open_regular(const char *path, struct stat *ret_is)
{
    int fd = collect_open_alive(FILES_TREE_FD, path, O_RDONLY);
    if (fd < 0)
        return fd;
    if (fstat(fd, ret_is) == 0 && S_ISREG(ret_is->st_mode))
        return fd;
    close(fd);
    return S_ISDIR(ret_is->st_mode) ? -EISDIR : -EINVAL;
}

static int
read_one(struct child *child, struct err *err)
{
    const struct files_task *task = child->task;
    struct stat is;
    AUTO_CLOSE int fd = open_regular(task->path, &is);
    if (fd < 0)
        return say_why_not(task->path, fd, err);
    if ((uint64_t)is.st_size > task->bytes_max)
        return say_why_not(task->path, -EFBIG, err);
    struct collected_file file = {.bytes = (uint64_t)is.st_size};
    snprintf(file.path, sizeof(file.path), "%s", task->path);
    send_entry(&file);
    int r = copy(child, fd, (uint64_t)is.st_size, false);
    if (r < 0)
        return say_why_not(task->path, r, err);
    flush(child, 0);
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&child->hash, digest);
    sodium_bin2hex(child->end.sha256, sizeof(child->end.sha256), digest, sizeof(digest));
    return 0;
}

/* --- all as one --- */

static int
put_in_tar(struct child *child, int fd, const char *path, const struct stat *is)
{
    uint64_t bytes = (uint64_t)is->st_size;
    int r = tar_put_header(&child->out, path, bytes, is->st_mtim.tv_sec);
    if (r == 0)
        r = copy(child, fd, bytes, true);
    if (r == 0)
        r = tar_put_padding(&child->out, bytes);
    flush(child, FILES_DATA_BYTES); /* of empty files there is nothing but headers */
    return r;
}

static int
write_tar(struct child *child, struct collect_walk *walk, struct err *err)
{
    const struct files_task *task = child->task;
    uint64_t left_bytes = task->bytes_max, left_files = task->files_max;
    int r = 0;
    for (size_t i = 0; i < walk->files.n && r == 0; i++) {
        struct stat is = {0};
        AUTO_CLOSE int fd = open_regular(walk->files.list[i], &is);
        if (fd < 0 && collect_is_ours(fd))
            return say_why_not(walk->files.list[i], fd, err);
        if (fd < 0 || left_files == 0 || (uint64_t)is.st_size > left_bytes) {
            child->end.skipped++;
            continue;
        }
        left_files--;
        left_bytes -= (uint64_t)is.st_size;
        r = put_in_tar(child, fd, walk->files.list[i], &is);
    }
    if (r == 0)
        r = tar_put_end(&child->out);
    flush(child, 0);
    return r < 0 ? err_set(err, r, "no memory for an archive") : 0;
}

static int
archive(struct child *child, struct err *err)
{
    const struct files_task *task = child->task;
    const struct collect_limits limits = {.own_folders = task->own_folders,
                                          .alive = true};
    struct collect_walk walk = {.root = FILES_TREE_FD, .limits = &limits};
    int r = collect_walk_run(&walk, err);
    if (r == 0)
        r = write_tar(child, &walk, err);
    for (size_t i = 0; i < SKIP_COUNT; i++)
        child->end.skipped += walk.skipped[i];
    child->end.skipped += walk.stopped;
    if (child->end.skipped > 0)
        snprintf(child->end.note, sizeof(child->end.note),
                 "left out is what is no regular file, unreadable, too deep, or beyond "
                 "collect_files and collect_size");
    return r;
}

/* --- put --- */

static int
open_folder(int dir, const char *name)
{
    const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                            RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    if (mkdirat(dir, name, FOLDER_MODE) < 0 && errno != EEXIST)
        return -errno;
    int fd = k_openat2(dir, name, &how);
    return fd < 0 ? -errno : fd;
}

/* The folder of a path, made if need be, a component at a time; *ret_name is the last one. */
static int
enter_folder_of(const char *path, const char **ret_name)
{
    AUTO_CLOSE int dir = open_folder(FILES_TREE_FD, ".");
    const char *name = path;
    for (const char *slash; dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        char part[JOB_NAME_BYTES];
        snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
        int next = open_folder(dir, part);
        close(dir);
        dir = next;
    }
    *ret_name = name;
    return dir < 0 ? dir : fd_take(&dir);
}

/* Beside its place, then renamed: the code sees the old file or the new one, whole. */
static int
put_file(const struct job_file *file)
{
    char beside[40];
    const char *name;
    uint32_t number[2];
    AUTO_CLOSE int dir = enter_folder_of(file->name, &name);
    if (dir < 0)
        return dir;
    if (getrandom(number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return -errno;
    snprintf(beside, sizeof(beside), ".adyton-%08x%08x", number[0], number[1]);
    AUTO_CLOSE int fd = openat(
        dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return -errno;
    struct span data = buf_span(&file->data);
    int r = fd_write_all(fd, data.p, data.n);
    if (r == 0 && renameat(dir, beside, dir, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir, beside, 0);
    return r;
}

static int
put_all(struct child *child, struct err *err)
{
    const struct files_task *task = child->task;
    for (size_t i = 0; i < task->put_n; i++) {
        int r = put_file(&task->put[i]);
        if (r < 0)
            return say_why_not(task->put[i].name, r, err);
    }
    return 0;
}

/* --- */

static int (*const kinds[])(struct child *child,
                            struct err *err) = {[FILES_LIST] = list,
                                                [FILES_READ] = read_one,
                                                [FILES_TAR] = archive,
                                                [FILES_PUT] = put_all};

void
files_child(const struct files_task *task, int socket)
{
    static struct child child;
    struct err err = {0};
    int reach;
    const struct process_fd kept[] = {{socket, FILES_CHILD_FD},
                                      {task->tmp_dir, FILES_TREE_FD}};
    child.task = task;
    buf_init(&child.out, 2 * FILES_DATA_BYTES + TAR_SLACK_BYTES);
    process_reset_signals();
    if (process_keep_fds(kept, sizeof(kept) / sizeof(*kept), FILES_TREE_FD + 1, &reach,
                         &err) < 0)
        _exit(EXIT_FAILURE);
    close_range(0, 2, 0);
    int r =
        sodium_init() < 0 ? err_set(&err, -ENOSYS, "no source of hashes") : give_up(&err);
    crypto_hash_sha256_init(&child.hash);
    if (r == 0)
        r = kinds[task->kind](&child, &err);
    child.end.err = err;
    end(&child, r);
}
