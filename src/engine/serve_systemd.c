/* What systemd passes and wants to hear: sd_listen_fds(3) and sd_notify(3) in a few
 * lines, instead of a library. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "engine/serve_parts.h"

enum { FIRST_FD = 3 };

static bool
is_listener(int fd)
{
    struct sockaddr_un name;
    socklen_t name_n = sizeof(name);
    int listens = 0, kind = 0;
    socklen_t n = sizeof(int);
    return getsockname(fd, (struct sockaddr *)&name, &name_n) == 0 &&
           name.sun_family == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &n) == 0 && kind == SOCK_STREAM;
}

int
serve_systemd_socket(int *ret_fd, struct err *err)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    uint64_t pid_n = 0, fds_n = 0;
    *ret_fd = -1;
    if (!pid || !fds || parse_u64(span_of(pid), &pid_n) < 0 ||
        parse_u64(span_of(fds), &fds_n) < 0 || pid_n != (uint64_t)getpid())
        return 0;
    /* Not for our children. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (fds_n != 1 || !is_listener(FIRST_FD))
        return err_set(err, -EINVAL,
                       "systemd passed %llu descriptors; one listening unix stream "
                       "socket is wanted",
                       (unsigned long long)fds_n);
    *ret_fd = FIRST_FD;
    return 0;
}

void
serve_systemd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* the abstract namespace */
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* Nobody hears it: then nobody waits for it, either. */
    if (fd >= 0)
        (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                      (const struct sockaddr *)&to,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}
