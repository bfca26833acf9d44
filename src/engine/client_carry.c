/*
 * A private supervisor: a fork of its client, with a socket whose other end only that client has.
 * It is the supervisor that `adyton serve` is, so what it makes is held as that holds it; when
 * the client's end is closed, by its end too, it ends all and goes. Should it be killed, its keeper
 * and the kernel see to the rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "engine/client_parts.h"

enum { END_MS = 1200, SOCKET_FD = 3, QUEUE_DEFAULT = 256 };

static const struct serve_options plain = {.queue_max = QUEUE_DEFAULT};

/* Nothing of the client's but stderr: a pipe that it holds open would outlive the client. */
static int
keep_nothing(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), *ends[] = {&null, &fd};
    for (size_t i = 0; i < 2; i++) /* out of the way of the numbers below */
        *ends[i] = fcntl(*ends[i], F_DUPFD_CLOEXEC, SOCKET_FD + 1);
    if (null < 0 || fd < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(null, STDOUT_FILENO) < 0 || dup3(fd, SOCKET_FD, O_CLOEXEC) < 0)
        return -errno;
    return close_range(SOCKET_FD + 1, ~0U, 0) < 0 ? -errno : 0;
}

static NORETURN void
serve_and_exit(const struct serve_options *options, int fd)
{
    struct err err;
    process_reset_signals();
    setsid(); /* Ctrl-C is for the client */
    prctl(PR_SET_NAME, "adyton-private", 0, 0, 0);
    if (keep_nothing(fd) < 0)
        _exit(EXIT_FAILURE);
    _exit(serve_run_one(options ? options : &plain, SOCKET_FD, &err) < 0 ? EXIT_FAILURE
                                                                         : EXIT_SUCCESS);
}

int
carried_start(const struct serve_options *options, struct carried *ret, int *ret_fd,
              struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make the sockets of a private supervisor");
    pid_t pid = fork();
    if (pid == 0)
        serve_and_exit(options, ends[1]);
    close(ends[1]);
    int pidfd = pid < 0 ? -1 : pidfd_open(pid, 0);
    if (pid < 0 || pidfd < 0) {
        int r = err_sys(err, "start a private supervisor");
        close(ends[0]); /* its end, too */
        if (pid > 0)
            (void)!waitpid(pid, NULL, 0);
        return r;
    }
    *ret = (struct carried){.pid = pid, .pidfd = pidfd};
    *ret_fd = ends[0];
    return 0;
}

void
carried_end(struct carried *carried)
{
    if (carried->pid <= 0)
        return;
    struct pollfd ended = {.fd = carried->pidfd, .events = POLLIN};
    int n;
    do
        n = poll(&ended, 1, END_MS);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        kill(carried->pid, SIGKILL);
    while (waitpid(carried->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    fd_close(&carried->pidfd);
    carried->pid = 0;
}
