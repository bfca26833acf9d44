/*
 * The supervisor's place: a socket of mode 0600 in a folder of mode 0700. A socket that
 * is there already is replaced only when nobody listens on it any more, and only by one
 * supervisor at a time: whoever looks and replaces holds a lock on the folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/serve_parts.h"

enum { BACKLOG = 1024, LOCK_TRIES = 200, LOCK_PAUSE_NS = 10 * 1000 * 1000 };

int
serve_default_socket(char path[SERVE_PATH_BYTES], struct err *err)
{
    const char *runtime = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
    if (!runtime || runtime[0] != '/')
        return err_set(err, -ENOENT,
                       "XDG_RUNTIME_DIR names no folder: say where with --socket PATH");
    int n = snprintf(path, SERVE_PATH_BYTES, "%s/adyton/adyton.sock", runtime);
    return n < SERVE_PATH_BYTES
               ? 0
               : err_set(err, -ENOENT,
                         "XDG_RUNTIME_DIR is too long for a socket in it: %.80s…",
                         runtime);
}

static int
set_path(struct serve *serve, struct err *err)
{
    const char *wanted = serve->options->socket;
    if (!wanted)
        return serve_default_socket(serve->socket, err);
    size_t n = strlen(wanted);
    if (n == 0 || n >= sizeof(serve->socket))
        return err_set(err, -ENAMETOOLONG,
                       "--socket: a path has 1 to %zu bytes: '%.120s'",
                       sizeof(serve->socket) - 1, wanted);
    memcpy(serve->socket, wanted, n + 1);
    return 0;
}

/* The folder, made when it is not there; ours is nobody else's to write in. */
static int
open_folder(const struct serve *serve, int *ret_dir, struct err *err)
{
    char folder[SERVE_PATH_BYTES];
    snprintf(folder, sizeof(folder), "%s", serve->socket);
    char *slash = strrchr(folder, '/');
    if (!slash)
        snprintf(folder, sizeof(folder), ".");
    else
        slash[slash == folder] = '\0';
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return err_sys(err, "make the folder %s", folder);
    AUTO_CLOSE int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(err, "open the folder %s", folder);
    bool others_write = (st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX);
    if ((st.st_uid != geteuid() && st.st_uid != 0) || others_write)
        return err_set(err, -EPERM,
                       "%s is a folder that other users may write: choose another "
                       "place with --socket PATH",
                       folder);
    *ret_dir = fd_take(&dir);
    return 0;
}

static int
lock_folder(int dir, struct err *err)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(dir, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_sys(err, "lock the socket's folder");
        nanosleep(&pause, NULL);
    }
    return err_set(err, -EBUSY, "somebody else holds a lock on the socket's folder");
}

/* 1: somebody listens there; 0: it is a socket that nobody listens on. */
static int
is_alive(const struct sockaddr_un *address, struct err *err)
{
    struct stat st;
    if (lstat(address->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "look at %s", address->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, -EEXIST, "%s is there and no socket", address->sun_path);
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "make a socket");
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
        return 1;
    if (errno == ECONNREFUSED || errno == ENOENT)
        return 0;
    return errno == EAGAIN ? 1 : err_sys(err, "ask who listens on %s", address->sun_path);
}

static int
bind_socket(int fd, const struct sockaddr_un *address, struct err *err)
{
    int alive = is_alive(address, err);
    if (alive < 0)
        return alive;
    if (alive)
        return err_set(err, -EADDRINUSE, "a supervisor listens on %s already",
                       address->sun_path);
    if (unlink(address->sun_path) < 0 && errno != ENOENT)
        return err_sys(err, "remove the socket %s, which nobody uses", address->sun_path);
    mode_t before = umask(0177);
    int r = bind(fd, (const struct sockaddr *)address, sizeof(*address));
    int saved = errno;
    umask(before);
    errno = saved;
    return r < 0 ? err_sys(err, "make the socket %s", address->sun_path) : 0;
}

static ino_t
inode_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_ino : 0;
}

static int
make_socket(struct serve *serve, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    AUTO_CLOSE int dir = -1;
    int r = set_path(serve, err);
    if (r == 0)
        r = open_folder(serve, &dir, err);
    if (r == 0)
        r = lock_folder(dir, err);
    if (r < 0)
        return r;
    memcpy(address.sun_path, serve->socket, strlen(serve->socket) + 1);
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "make a socket");
    r = bind_socket(fd, &address, err);
    if (r < 0)
        return r;
    serve->socket_inode = inode_of(serve->socket);
    if (listen(fd, BACKLOG) < 0)
        return err_sys(err, "listen on %s", serve->socket);
    serve->listener = fd_take(&fd);
    return 0;
}

/* systemd's socket, unless a place was named. */
int
serve_socket_open(struct serve *serve, struct err *err)
{
    int r = serve->options->socket ? 0 : serve_systemd_socket(&serve->listener, err);
    if (r < 0)
        return r;
    if (serve->listener < 0)
        return make_socket(serve, err);
    snprintf(serve->socket, sizeof(serve->socket), "systemd's socket");
    r = fd_set_nonblocking(serve->listener);
    if (r == 0 && fcntl(serve->listener, F_SETFD, FD_CLOEXEC) < 0)
        r = -errno;
    return r < 0 ? err_set(err, r, "take systemd's socket: %s", strerrordesc_np(-r)) : 0;
}

void
serve_socket_close(struct serve *serve)
{
    /* First the name, for whoever finds it must find somebody; and only our own. */
    if (serve->socket_inode != 0 && inode_of(serve->socket) == serve->socket_inode)
        unlink(serve->socket);
    serve->socket_inode = 0;
    fd_close(&serve->listener);
    serve->listener = -1;
}

int
serve_check_peer(int fd, struct err *err)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return err_sys(err, "ask who is at the other end");
    if (peer.uid == geteuid() || peer.uid == 0)
        return 0;
    return err_set(err, -EACCES, "this supervisor is user %u's, and you are user %u",
                   geteuid(), peer.uid);
}
