/*
 * The step from trusted start-up to a cell, shared by cold and warm ones: take the setup, seal
 * this process, tell the supervisor. What cannot be done is told and ends the process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/cell.h"
#include "jail/jail.h"

void
cell_give_up(const struct err *err)
{
    struct guest_ready ready = {.magic = GUEST_MAGIC, .err = *err};
    (void)!fd_send(GUEST_FD, &ready, sizeof(ready), NULL, 0);
    _exit(EXIT_FAILURE);
}

int
cell_receive_setup(struct guest_setup *setup, int *ret_claims_fd, struct err *err)
{
    int fds[1];
    ssize_t got = fd_receive(GUEST_FD, setup, sizeof(*setup), fds, 1);
    if (got < 0)
        return err_set(err, (int)got, "receive the setup: %s",
                       strerrordesc_np((int)-got));
    bool whole = got == (ssize_t)sizeof(*setup) && setup->magic == GUEST_MAGIC &&
                 setup->version == GUEST_VERSION;
    /* No filter, no run: a supervisor that failed to compile one has said so by now. */
    if (!whole || setup->seal.filter_n == 0 || setup->seal.filter_n > SEAL_FILTER_MAX)
        return err_set(err, -EPROTO, "the setup is not one of this build (%zd bytes)",
                       got);
    *ret_claims_fd = fds[0];
    return 0;
}

struct claims_memory *
cell_seal(const struct seal *seal, int claims_fd)
{
    struct err err = {0};
    int notify_fd = -1;
    struct claims_memory *memory = mmap(NULL, sizeof(struct claims_memory),
                                        PROT_READ | PROT_WRITE, MAP_SHARED, claims_fd, 0);
    if (memory == MAP_FAILED) {
        err_sys(&err, "map the claims memory");
        cell_give_up(&err);
    }
    close(claims_fd);
    if (jail_seal(seal, &notify_fd, &err) < 0)
        cell_give_up(&err);
    struct guest_ready ready = {.magic = GUEST_MAGIC};
    if (fd_send(GUEST_FD, &ready, sizeof(ready), &notify_fd, notify_fd >= 0 ? 1 : 0) < 0)
        _exit(EXIT_FAILURE); /* nobody is there to watch: nothing may run */
    close(notify_fd);
    return memory;
}
