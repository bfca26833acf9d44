/* Paths by their text: joined to the working folder, "." and ".." taken out, compared. */
#include "check/path.h"

#include <stdio.h>
#include <string.h>

/* What a cell has of its own, whatever the policy. */
static const char *const readable[] = {
    "/dev/null",     "/dev/zero",         "/dev/full",
    "/dev/random",   "/dev/urandom",      "/dev/stdin",
    "/dev/stdout",   "/dev/stderr",       "/dev/fd",
    "/proc/self",    "/proc/cpuinfo",     "/proc/thread-self",
    "/proc/meminfo", "/proc/loadavg",     "/proc/uptime",
    "/proc/version", "/proc/filesystems", "/proc/mounts",
    "/proc/stat",    "/proc/sys",         "/usr/share/zoneinfo"};
static const char *const writable[] = {"/dev/null",   "/dev/zero",   "/dev/full",
                                       "/dev/stdout", "/dev/stderr", "/dev/fd"};

static bool
is_beneath(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* An absolute path without "", "." and ".."; false when it is longer than fits. */
static bool
normalise(const char *work, struct span path, char ret[CHECK_PATH_BYTES])
{
    size_t n = 0;
    ret[0] = '\0';
    if (path.n == 0 || path.p[0] != '/') {
        int length = snprintf(ret, CHECK_PATH_BYTES, "%s", work);
        if (length < 0 || length >= CHECK_PATH_BYTES)
            return false;
        n = (size_t)length;
    }
    for (size_t at = 0; at < path.n;) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t part_n = slash ? (size_t)(slash - path.p) - at : path.n - at;
        struct span part = {path.p + at, part_n};
        at += part_n + 1;
        if (part.n == 0 || span_is(part, "."))
            continue;
        if (span_is(part, "..")) {
            while (n > 0 && ret[--n] != '/')
                continue;
            ret[n] = '\0';
            continue;
        }
        if (n + part.n + 2 > CHECK_PATH_BYTES)
            return false;
        ret[n++] = '/';
        memcpy(ret + n, part.p, part.n);
        n += part.n;
        ret[n] = '\0';
    }
    if (n == 0)
        snprintf(ret, CHECK_PATH_BYTES, "/");
    return true;
}

/* The path, or of a prefix the folders in it, lies beneath; or what follows a prefix
 * might lead there. */
static bool
may_be_beneath(const char *path, bool is_prefix, const char *folder)
{
    if (is_beneath(path, folder))
        return true;
    size_t n = strlen(path);
    return is_prefix && strncmp(folder, path, n) == 0;
}

static bool
any_beneath(const char *path, bool is_prefix, const char *const *folders, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (may_be_beneath(path, is_prefix, folders[i]))
            return true;
    return false;
}

bool
check_path_is_outside(const struct check_folders *folders, struct span path,
                      bool is_prefix, bool write, char ret[CHECK_PATH_BYTES])
{
    if (path.n == 0 || memchr(path.p, '\0', path.n))
        return false; /* an error of its own in every call that takes a path */
    if (is_prefix && path.p[0] != '/')
        return false; /* what follows may lead anywhere or nowhere */
    if (!normalise(folders->work, path, ret))
        return false;
    bool ends_folder = is_prefix && path.p[path.n - 1] == '/' && strcmp(ret, "/") != 0;
    size_t n = strlen(ret);
    if (ends_folder && n + 1 < CHECK_PATH_BYTES)
        snprintf(ret + n, CHECK_PATH_BYTES - n, "/");
    if (may_be_beneath(ret, is_prefix, folders->work))
        return false;
    if (folders->workspace && may_be_beneath(ret, is_prefix, folders->workspace))
        return false;
    if (write)
        return !any_beneath(ret, is_prefix, writable, sizeof(writable) / sizeof(char *));
    return !any_beneath(ret, is_prefix, readable, sizeof(readable) / sizeof(char *)) &&
           !any_beneath(ret, is_prefix, folders->reads, folders->reads_n);
}

bool
check_path_is_url(struct span *path)
{
    static const char file[] = "file://";
    static const char *const schemes[] = {"http://", "https://", "ftp://",
                                          "ftps://", "s3://",    "gs://",
                                          "gcs://",  "sftp://",  "hdfs://"};
    if (path->n >= sizeof(file) - 1 && memcmp(path->p, file, sizeof(file) - 1) == 0) {
        path->p += sizeof(file) - 1;
        path->n -= sizeof(file) - 1;
        return false;
    }
    for (size_t i = 0; i < sizeof(schemes) / sizeof(char *); i++) {
        size_t n = strlen(schemes[i]);
        if (path->n >= n && memcmp(path->p, schemes[i], n) == 0)
            return true;
    }
    return false;
}
