/* Descriptor helpers: see fd.h. No policy, no paths of our own. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_STEP_BYTES = 4096, KERNEL_FILE_BYTES = 4096 };

void
fd_close(const int *fd)
{
    if (!fd || *fd < 0)
        return;
    int saved = errno;
    close(*fd);
    errno = saved;
}

int
fd_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

void
ptr_free(void *pointer_to_pointer)
{
    void *p;
    memcpy(&p, pointer_to_pointer, sizeof(p));
    free(p);
}

int
fd_write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int
fd_read_all(int fd, struct buf *buf)
{
    for (;;) {
        size_t left = buf->max - buf->n;
        /* One byte more than may be kept, to tell "exactly full" from "too much". */
        size_t want = left < READ_STEP_BYTES ? left + 1 : READ_STEP_BYTES;
        char step[READ_STEP_BYTES + 1];
        ssize_t got = read(fd, step, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return 0;
        int r = buf_append(buf, step, (size_t)got);
        if (r < 0)
            return r;
    }
}

int
fd_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

int
fd_move(int *fd, int number)
{
    if (*fd == number) {
        if (fcntl(number, F_SETFD, 0) < 0)
            return -errno;
        *fd = -1;
        return 0;
    }
    if (dup2(*fd, number) < 0)
        return -errno;
    close(fd_take(fd));
    return 0;
}

union rights {
    char space[CMSG_SPACE(sizeof(int) * FD_MESSAGE_MAX)];
    struct cmsghdr align;
};

int
fd_send(int socket, const void *bytes, size_t n, const int *fds, size_t fds_n)
{
    union rights control = {0};
    struct iovec iov = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fds_n > FD_MESSAGE_MAX)
        return -EINVAL;
    if (fds_n > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds_n);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fds_n);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fds_n);
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    /* Descriptors travel with the first byte; what is left is plain bytes. */
    if ((size_t)sent < n)
        return fd_write_all(socket, (const char *)bytes + sent, n - (size_t)sent);
    return 0;
}

ssize_t
fd_receive(int socket, void *bytes, size_t n, int *fds, size_t fds_n)
{
    union rights control = {0};
    struct iovec iov = {bytes, n};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space)};
    for (size_t i = 0; i < fds_n; i++)
        fds[i] = -1;
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    size_t kept = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
            if (kept < fds_n)
                fds[kept++] = fd;
            else
                close(fd);
        }
    }
    return got;
}

int
file_write(int dir, const char *name, const char *text)
{
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fd_write_all(fd, text, strlen(text));
}

int
file_write_u64(int dir, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return file_write(dir, name, text);
}

ssize_t
file_read(int dir, const char *name, char *text, size_t n)
{
    AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t done = 0;
    while (done + 1 < n) {
        ssize_t got = read(fd, text + done, n - 1 - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    text[done] = '\0';
    return (ssize_t)done;
}

/* Digits at *p, past leading blanks; -EINVAL when there is none or it does not fit. */
static int
scan_u64(const char *p, uint64_t *ret)
{
    while (*p == ' ' || *p == '\t')
        p++;
    if (*p < '0' || *p > '9')
        return -EINVAL;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return -ERANGE;
    *ret = value;
    return 0;
}

int
file_read_u64(int dir, const char *name, uint64_t *ret)
{
    UNCLEARED char text[KERNEL_FILE_BYTES];
    ssize_t n = file_read(dir, name, text, sizeof(text));
    if (n < 0)
        return (int)n;
    return scan_u64(text, ret);
}

int
file_read_keyed_u64(int dir, const char *name, const char *key, uint64_t *ret)
{
    UNCLEARED char text[KERNEL_FILE_BYTES];
    ssize_t n = file_read(dir, name, text, sizeof(text));
    if (n < 0)
        return (int)n;
    size_t key_n = strlen(key);
    for (const char *line = text; line && *line;) {
        if (strncmp(line, key, key_n) == 0 && line[key_n] == ' ')
            return scan_u64(line + key_n, ret);
        line = strchr(line, '\n');
        if (line)
            line++;
    }
    return -ENOENT;
}
