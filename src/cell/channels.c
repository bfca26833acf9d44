/* The descriptors between a cell and its supervisor: sockets, streams, the claims memory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cell_parts.h"

static int
make_claims(struct cell *cell, struct err *err)
{
    cell->claims_fd = memfd_create("claims", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (cell->claims_fd < 0 ||
        ftruncate(cell->claims_fd, sizeof(struct claims_memory)) < 0)
        return err_sys(err, "make the claims memory");
    /* A guest that could shrink it would kill us with SIGBUS. */
    if (fcntl(cell->claims_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
        0)
        return err_sys(err, "seal the claims memory's size");
    struct claims_memory *memory = mmap(NULL, sizeof(struct claims_memory), PROT_READ,
                                        MAP_SHARED, cell->claims_fd, 0);
    if (memory == MAP_FAILED)
        return err_sys(err, "map the claims memory");
    cell->claims = &memory->claims;
    cell->display = &memory->display;
    return 0;
}

static int
make_pair(int *ret_ours, int *ret_theirs, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket pair");
    *ret_ours = ends[0];
    *ret_theirs = ends[1];
    return 0;
}

static int
make_pipe(int *ret_read, int *ret_write, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

int
child_ends_make(struct cell *cell, struct child_ends *child, struct err *err)
{
    int r = make_claims(cell, err);
    if (r == 0 && !cell->zygote) /* a factory reports for all of its cells */
        r = make_pair(&cell->report, &child->report, err);
    if (r == 0)
        r = make_pair(&cell->guest, &child->guest, err);
    if (r == 0)
        r = make_pipe(&child->stdin_fd, &cell->stdin_fd, err);
    if (r == 0)
        r = make_pipe(&cell->out.fd, &child->stdout_fd, err);
    if (r == 0)
        r = make_pipe(&cell->err.fd, &child->stderr_fd, err);
    return r;
}

void
child_ends_init(struct child_ends *child)
{
    *child = (struct child_ends){-1, -1, -1, -1, -1, {-1, -1, -1}};
}

void
child_ends_close(struct child_ends *child)
{
    fd_close(&child->report);
    fd_close(&child->guest);
    fd_close(&child->stdin_fd);
    fd_close(&child->stdout_fd);
    fd_close(&child->stderr_fd);
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        fd_close(&child->joins[i]);
    child_ends_init(child);
}
