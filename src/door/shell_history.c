/*
 * The history: a file of lines in the user's state folder, which nobody else may read. Each line is
 * appended as it is entered, so shells beside one another lose nothing of theirs; who finds it
 * long keeps its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "door/shell_parts.h"

enum {
    PATH_BYTES = 1024,
    LINES_MAX = 2000,
    LINE_MAX_BYTES = 4096, /* a longer one is not worth a place */
    FILE_BYTES_MAX = 1 << 20,
    PRIVATE_FOLDER = 0700,
    PRIVATE_FILE = 0600,
};

static const char file_name[] = "shell_history", new_name[] = "shell_history.new";

struct shell_history {
    int dir, fd;
};

/* Makes the folders that are not there. */
static int
open_folder(void)
{
    char path[PATH_BYTES];
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool given = state && state[0] == '/';
    if (!given && (!home || home[0] != '/'))
        return -ENOENT;
    int n = snprintf(path, sizeof(path), "%s%s/adyton", given ? state : home,
                     given ? "" : "/.local/state");
    if (n < 0 || (size_t)n >= sizeof(path))
        return -ENAMETOOLONG;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)!mkdir(path, PRIVATE_FOLDER);
        *slash = '/';
    }
    (void)!mkdir(path, PRIVATE_FOLDER);
    int fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A file of ours alone: one that somebody else may read or write is made private, or left. */
static int
open_file(int dir)
{
    struct stat st;
    AUTO_CLOSE int fd =
        openat(dir, file_name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
               PRIVATE_FILE);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink > 1)
        return -EPERM;
    if ((st.st_mode & 0777) != PRIVATE_FILE && fchmod(fd, PRIVATE_FILE) < 0)
        return -errno;
    return fd_take(&fd);
}

/* The end of the file, from a line's begin. */
static int
read_end(int fd, struct buf *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    off_t from = st.st_size > FILE_BYTES_MAX ? st.st_size - FILE_BYTES_MAX : 0;
    buf_init(ret, FILE_BYTES_MAX);
    if (buf_reserve(ret, FILE_BYTES_MAX) < 0)
        return -ENOMEM;
    ssize_t n = pread(fd, ret->p, FILE_BYTES_MAX, from);
    if (n < 0)
        return -errno;
    ret->n = (size_t)n;
    const char *first = from > 0 && n > 0 ? memchr(ret->p, '\n', (size_t)n) : NULL;
    if (first)
        buf_consume(ret, (size_t)(first - ret->p) + 1);
    return 0;
}

/* The last lines of the text; *ret_cut: there were others. */
static struct span
last_lines(struct span text, bool *ret_cut)
{
    size_t lines = 0, at = text.n;
    while (at > 0 && lines <= LINES_MAX)
        lines += text.p[--at] == '\n';
    *ret_cut = at > 0;
    if (*ret_cut)
        at++;
    return (struct span){text.p + at, text.n - at};
}

static void
cut_file(struct shell_history *history, struct span kept)
{
    int fd = openat(history->dir, new_name,
                    O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    PRIVATE_FILE);
    if (fd < 0)
        return;
    if (fchmod(fd, PRIVATE_FILE) == 0 && fd_write_all(fd, kept.p, kept.n) == 0 &&
        renameat(history->dir, new_name, history->dir, file_name) == 0) {
        fd_close(&history->fd);
        history->fd = fd_take(&fd);
    }
    fd_close(&fd);
}

static void
tell_lines(struct span text, void (*take)(void *context, const char *line), void *context)
{
    char line[LINE_MAX_BYTES];
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        if (n > 0 && n < sizeof(line) && !memchr(text.p, '\0', n)) {
            memcpy(line, text.p, n);
            line[n] = '\0';
            take(context, line);
        }
        n += end != NULL;
        text.p += n;
        text.n -= n;
    }
}

struct shell_history *
shell_history_open(void (*take)(void *context, const char *line), void *context)
{
    AUTO_BUF struct buf text = {0};
    AUTO_CLOSE int dir = open_folder();
    AUTO_CLOSE int fd = dir < 0 ? -1 : open_file(dir);
    struct shell_history *history = fd < 0 ? NULL : malloc(sizeof(*history));
    if (!history)
        return NULL;
    *history = (struct shell_history){.dir = fd_take(&dir), .fd = fd_take(&fd)};
    if (read_end(history->fd, &text) == 0) {
        struct stat st;
        bool cut;
        struct span kept = last_lines(buf_span(&text), &cut);
        if (cut || (fstat(history->fd, &st) == 0 && st.st_size > FILE_BYTES_MAX))
            cut_file(history, kept);
        tell_lines(kept, take, context);
    }
    return history;
}

void
shell_history_add(struct shell_history *history, struct span line)
{
    char text[LINE_MAX_BYTES + 1];
    if (!history || line.n == 0 || line.n >= LINE_MAX_BYTES ||
        memchr(line.p, '\n', line.n))
        return;
    memcpy(text, line.p, line.n);
    text[line.n] = '\n';
    (void)!write(history->fd, text, line.n + 1); /* whole, or it is not worth a word */
}

void
shell_history_free(struct shell_history *history)
{
    if (!history)
        return;
    fd_close(&history->dir);
    fd_close(&history->fd);
    free(history);
}
