/*
 * The two halves of a control: a place where an attempt that nothing stops does no harm,
 * and the things of a host that an attempt from inside a cell must not reach.
 */
#include "scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

int
scratch_enter(void)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0)
        return errno == EPERM && geteuid() != 0 ? 1 : -errno;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

static int
listen_unix(const char *name, bool abstract, int type)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(at.sun_path + (abstract ? 1 : 0), name, n);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0)
        return -errno;
    if (!abstract)
        chmod(name, 0777);
    return type == SOCK_DGRAM || listen(fd, 64) == 0 ? 0 : -errno;
}

static int
hold_stream(void)
{
    return listen_unix(HOST_ABSTRACT, true, SOCK_STREAM);
}

static int
hold_datagram(void)
{
    return listen_unix(HOST_DATAGRAM, true, SOCK_DGRAM);
}

static int
hold_socket(void)
{
    unlink(HOST_SOCKET);
    return listen_unix(HOST_SOCKET, false, SOCK_STREAM);
}

static int
hold_port(void)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET,
        .sin_port = htons(HOST_PORT),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0)
        return -errno;
    return 0;
}

/* Open to everybody, so that a refusal is never the work of the file mode. */
static int
hold_file(void)
{
    int fd = open(HOST_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 || fchmod(fd, 0666) < 0 || write(fd, "host\n", 5) != 5)
        return -errno;
    close(fd);
    return 0;
}

static int
hold_shared(void)
{
    if (mkdir(HOST_SHARED, 0777) < 0 && errno != EEXIST)
        return -errno;
    if (chmod(HOST_SHARED, 0777) < 0)
        return -errno;
    int fd = open(HOST_SHARED "/file", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 || fchmod(fd, 0666) < 0)
        return -errno;
    close(fd);
    return 0;
}

static int
hold_shared_memory(void)
{
    return shmget(HOST_KEY, 1, IPC_CREAT | 0666) < 0 ? -errno : 0;
}

static int
hold_semaphore(void)
{
    return semget(HOST_KEY, 1, IPC_CREAT | 0666) < 0 ? -errno : 0;
}

static int
hold_messages(void)
{
    return msgget(HOST_KEY, IPC_CREAT | 0666) < 0 ? -errno : 0;
}

static int
hold_queue(void)
{
    mqd_t queue = mq_open("/" HOST_QUEUE, O_RDWR | O_CREAT, 0666, NULL);
    return queue < 0 ? -errno : 0;
}

static void
release(void)
{
    shmctl(shmget(HOST_KEY, 1, 0), IPC_RMID, NULL);
    semctl(semget(HOST_KEY, 1, 0), 0, IPC_RMID);
    msgctl(msgget(HOST_KEY, 0), IPC_RMID, NULL);
    mq_unlink("/" HOST_QUEUE);
    unlink(HOST_SOCKET);
    unlink(HOST_FILE);
    unlink(HOST_SHARED "/file");
    rmdir(HOST_SHARED);
}

static const struct {
    const char *what;
    int (*make)(void);
} holds[] = {
    {"an abstract socket", hold_stream},
    {"an abstract datagram socket", hold_datagram},
    {"a unix socket", hold_socket},
    {"a port", hold_port},
    {"a file", hold_file},
    {"a folder", hold_shared},
    {"shared memory", hold_shared_memory},
    {"a semaphore", hold_semaphore},
    {"a message queue", hold_messages},
    {"a POSIX message queue", hold_queue},
};

int
host_hold(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof(holds) / sizeof(holds[0]) && !failed; i++) {
        failed = holds[i].make();
        if (failed)
            fprintf(stderr, "cannot hold %s: %s\n", holds[i].what, strerror(-failed));
    }
    if (!failed) {
        printf("holding %d\n", (int)getpid());
        fflush(stdout);
        char c;
        while (read(0, &c, 1) > 0)
            ;
    }
    release();
    return failed ? 1 : 0;
}
