/*
 * Takes the files that the walk found, in the order of their paths, until a limit is
 * reached: reads, hashes and copies each in one pass, and says in one note what was left
 * out and why.
 */
#include "cell/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "cell/collect_parts.h"

enum { CHUNK_BYTES = MIME_SNIFF_BYTES };

struct collect {
    struct collect_walk walk;
    const struct collect_limits *limits;
    int out_dir;
    struct outcome *outcome;
    uint64_t bytes_left;
    struct mime mime;
    char chunk[CHUNK_BYTES];
};

static int
read_chunk(int fd, char *chunk, size_t n, size_t *ret)
{
    *ret = 0;
    while (*ret < n) {
        ssize_t got = read(fd, chunk + *ret, n - *ret);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        *ret += (size_t)got;
    }
    return 0;
}

/* What was placed under that name before the code ran, or NULL. */
static const struct buf *
placed_as(const struct job *job, const char *path)
{
    if (!job)
        return NULL;
    if (strcmp(path, job->name) == 0)
        return &job->code;
    for (size_t i = 0; i < job->files_n; i++)
        if (strcmp(path, job->files[i].name) == 0)
            return &job->files[i].data;
    return NULL;
}

/* Byte for byte; leaves the offset at 0. */
static bool
is_unchanged(struct collect *c, int fd, const struct buf *placed)
{
    size_t at = 0, n;
    bool same = true;
    do {
        same = read_chunk(fd, c->chunk, CHUNK_BYTES, &n) == 0 && n <= placed->n - at &&
               (n == 0 || memcmp(c->chunk, placed->p + at, n) == 0);
        at += n;
    } while (same && n > 0);
    return lseek(fd, 0, SEEK_SET) == 0 && same && at == placed->n;
}

/* Reads, hashes, names and copies. 1: it holds more than may still be taken. Errors of
 * reading are negative in *ret_read, those of writing are returned. */
static int
take_bytes(struct collect *c, int fd, struct sink *sink, struct collected_file *file,
           int *ret_read)
{
    crypto_hash_sha256_state hash;
    crypto_hash_sha256_init(&hash);
    size_t n;
    do {
        *ret_read = read_chunk(fd, c->chunk, CHUNK_BYTES, &n);
        if (*ret_read < 0)
            return 0;
        if (n > c->bytes_left - file->bytes)
            return 1;
        if (file->bytes == 0)
            mime_name(&c->mime, file->path, c->chunk, n, file->mime, sizeof(file->mime));
        crypto_hash_sha256_update(&hash, (const unsigned char *)c->chunk, n);
        file->bytes += n;
        int r = sink_write(sink, c->chunk, n);
        if (r < 0)
            return r;
    } while (n == CHUNK_BYTES);
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&hash, digest);
    sodium_bin2hex(file->sha256, sizeof(file->sha256), digest, sizeof(digest));
    return sink_finish(sink);
}

static int
keep(struct outcome *outcome, const struct collected_file *file)
{
    struct collected_file *files =
        reallocarray(outcome->files, outcome->files_n + 1, sizeof(*files));
    if (!files)
        return -ENOMEM;
    outcome->files = files;
    files[outcome->files_n++] = *file;
    return 0;
}

static int
take(struct collect *c, int fd, const char *path, struct err *err)
{
    struct collected_file file = {0};
    snprintf(file.path, sizeof(file.path), "%s", path);
    struct sink sink;
    int unread = 0;
    int r = sink_open(c->out_dir, path, &sink);
    if (r == 0)
        r = take_bytes(c, fd, &sink, &file, &unread);
    sink_done(&sink);
    enum collect_skip skip = SKIP_UNREADABLE;
    if (r == 1)
        skip = SKIP_LARGE;
    if (r == 1 || unread < 0 || sink_is_skip(r, &skip)) {
        c->walk.skipped[skip]++;
        return 0;
    }
    if (r < 0)
        return err_set(err, r, "cannot write into the output folder: %s", strerror(-r));
    c->bytes_left -= file.bytes;
    r = keep(c->outcome, &file);
    return r < 0 ? err_set(err, r, "no memory for the list of files") : 0;
}

static int
take_path(struct collect *c, const char *path, struct err *err)
{
    const struct buf *placed = placed_as(c->limits->job, path);
    bool full = c->outcome->files_n >= c->limits->files;
    if (full && !placed) {
        c->walk.skipped[SKIP_MANY]++;
        return 0;
    }
    AUTO_CLOSE int fd = c->limits->alive
                            ? collect_open_alive(c->walk.root, path, O_RDONLY)
                            : collect_open(c->walk.root, path, O_RDONLY);
    struct stat st;
    if (fd < 0 && collect_is_ours(fd))
        return err_set(err, fd, "read %.100s of what the code left in /tmp: %s", path,
                       strerrordesc_np(-fd));
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        c->walk.skipped[fd == -EXDEV ? SKIP_ELSEWHERE : SKIP_UNREADABLE]++;
        return 0;
    }
    if (placed && (uint64_t)st.st_size == placed->n && is_unchanged(c, fd, placed))
        return 0;
    if (full || (uint64_t)st.st_size > c->bytes_left) {
        c->walk.skipped[full ? SKIP_MANY : SKIP_LARGE]++;
        return 0;
    }
    return take(c, fd, path, err);
}

PRINTF(2, 3)
static void
note(struct outcome *outcome, const char *format, ...)
{
    size_t n = strlen(outcome->files_note);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcome->files_note + n, sizeof(outcome->files_note) - n, format,
              arguments);
    va_end(arguments);
}

static const struct {
    const char *one, *many;
} skip_names[SKIP_MANY] = {
    [SKIP_LINK] = {"link", "links"},
    [SKIP_FIFO] = {"fifo", "fifos"},
    [SKIP_SOCKET] = {"socket", "sockets"},
    [SKIP_DEVICE] = {"device", "devices"},
    [SKIP_UNREADABLE] = {"unreadable entry", "unreadable entries"},
    [SKIP_DEEP] = {"path too deep or long", "paths too deep or long"},
    [SKIP_ELSEWHERE] = {"entry of another file system", "entries of another file system"},
    [SKIP_TAKEN] = {"name taken in the output folder",
                    "names taken in the output folder"},
    [SKIP_UNNAMEABLE] = {"name that the output folder cannot hold",
                         "names that the output folder cannot hold"},
};

/* "2 links, 1 fifo skipped; 300 more files beyond the limit of 1000". */
static void
write_note(const struct collect *c)
{
    const uint64_t *skipped = c->walk.skipped;
    struct outcome *outcome = c->outcome;
    const char *before = "";
    outcome->files_note[0] = '\0';
    for (size_t i = 0; i < SKIP_LARGE; i++) {
        outcome->files_skipped += skipped[i];
        if (skipped[i] == 0)
            continue;
        note(outcome, "%s%llu %s", before, (unsigned long long)skipped[i],
             skipped[i] == 1 ? skip_names[i].one : skip_names[i].many);
        before = ", ";
    }
    if (before[0])
        note(outcome, " skipped");
    char limit[UNITS_TEXT_BYTES];
    if (skipped[SKIP_LARGE])
        note(outcome, "%s%llu larger than what was left of %s", before[0] ? "; " : "",
             (unsigned long long)skipped[SKIP_LARGE],
             format_bytes(c->limits->bytes, limit));
    if (skipped[SKIP_MANY])
        note(outcome, "%s%llu more files beyond the limit of %llu",
             outcome->files_note[0] ? "; " : "", (unsigned long long)skipped[SKIP_MANY],
             (unsigned long long)c->limits->files);
    if (c->walk.stopped)
        note(outcome, "%sstopped after %d names", outcome->files_note[0] ? "; " : "",
             COLLECT_NAMES_MAX);
    outcome->files_skipped += skipped[SKIP_LARGE] + skipped[SKIP_MANY] + c->walk.stopped;
}

int
collect_files(int tmp_dir, const struct collect_limits *limits, int out_dir,
              struct outcome *outcome, struct err *err)
{
    AUTO_FREE struct collect *c = calloc(1, sizeof(*c));
    if (!c || sodium_init() < 0)
        return err_set(err, -ENOMEM, "no memory to collect files");
    c->walk = (struct collect_walk){.root = tmp_dir, .limits = limits};
    c->limits = limits;
    c->out_dir = out_dir;
    c->outcome = outcome;
    c->bytes_left = limits->bytes;

    int r = collect_walk_run(&c->walk, err);
    for (size_t i = 0; r == 0 && i < c->walk.files.n; i++)
        r = take_path(c, c->walk.files.list[i], err);
    write_note(c);
    mime_done(&c->mime);
    collect_walk_done(&c->walk);
    return r;
}
