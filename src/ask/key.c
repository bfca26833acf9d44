/* A key is printable ASCII: whatever else stands in the file would end up in a header. */
#include "ask/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { KEY_BYTES_HIDDEN = 4 /* shorter ones are words of any sentence */ };

static int
check_file(int fd, const char *path, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "--key-file: cannot look at '%.120s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "--key-file: '%.120s' is no plain file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, -EPERM, "--key-file: '%.120s' belongs to another user", path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, -EPERM,
                       "--key-file: others may use '%.100s' (mode %03o): chmod 600 it",
                       path, st.st_mode & 0777U);
    return 0;
}

static int
read_file(const char *path, struct buf *ret, struct err *err)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, "--key-file: cannot open '%.120s'", path);
    int r = check_file(fd, path, err);
    if (r < 0)
        return r;
    r = fd_read_all(fd, ret);
    if (r == -ENOSPC)
        return err_set(err, r, "--key-file: '%.120s' has more than %d bytes: no key",
                       path, KEY_BYTES_MAX);
    return r < 0 ? err_set(err, r, "--key-file: cannot read '%.120s'", path) : 0;
}

static int
check_text(struct buf *key, const char *whence, struct err *err)
{
    while (key->n > 0 && strchr("\r\n \t", key->p[key->n - 1]))
        key->n--;
    if (key->p)
        key->p[key->n] = '\0';
    for (size_t i = 0; i < key->n; i++)
        if (key->p[i] <= 0x20 || key->p[i] >= 0x7F)
            return err_set(err, -EINVAL,
                           "%s: a key is one line of printable ASCII without blanks",
                           whence);
    return 0;
}

int
key_read(const char *file, const char *variable, struct buf *ret, struct err *err)
{
    buf_init(ret, KEY_BYTES_MAX);
    if (buf_reserve(ret, KEY_BYTES_MAX) <
        0) /* so that it never moves, and leaves no copy */
        return err_set(err, -ENOMEM, "no memory for a key");
    const char *value = getenv(variable);
    int r = 0;
    if (file)
        r = read_file(file, ret, err);
    else if (value && buf_append(ret, value, strlen(value)) < 0)
        r = err_set(err, -EINVAL, "%s: more than %d bytes: no key", variable,
                    KEY_BYTES_MAX);
    if (r == 0)
        r = check_text(ret, file ? "--key-file" : variable, err);
    if (r == 0 && file && ret->n == 0)
        r = err_set(err, -EINVAL, "--key-file: '%.120s' is empty", file);
    return r;
}

void
key_done(struct buf *key)
{
    if (key->p)
        sodium_memzero(key->p, key->capacity);
    buf_done(key);
}

void
key_hide(const struct buf *key, char *text)
{
    if (key->n < KEY_BYTES_HIDDEN)
        return;
    for (char *at = strstr(text, key->p); at; at = strstr(at + key->n, key->p))
        memset(at, '*', key->n);
}
