/*
 * Network namespaces of cells that have no network. To make one and to take it down costs the
 * kernel a millisecond, more than all else of a cell, and what is in it is next to nothing: a
 * loopback that is down and over which the cell has no capability, since the namespace is ours.
 * The filter leaves such a cell unix sockets alone, and those die with the processes that hold
 * them. So a namespace is lent to one cell at a time, and to the next when nothing of the last
 * one is left. The next one looks: a unix socket in it that outlives its cell (a cycle of
 * sockets in flight, until the kernel has collected it) fails the making of that cell
 * (guest/zygote.c), and the namespace is not used again.
 *
 * A policy with a loopback has more that could stay (closed connections, ports): there each
 * cell has a namespace of its own.
 */
#include <fcntl.h>
#include <sched.h>

#include "base/fd.h"
#include "warm/factory_parts.h"

bool
factory_net_is_lent(const struct jail_plan *plan)
{
    return plan->policy->network == NETWORK_NONE;
}

static int
open_own(const struct factory *factory)
{
    return openat(factory->proc_fd, "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

int
factory_net_open_home(struct factory *factory, struct err *err)
{
    factory->home_net = open_own(factory);
    return factory->home_net < 0 ? err_sys(err, "open the factory's network namespace")
                                 : 0;
}

int
factory_net_enter(struct factory *factory, struct factory_cell *cell, struct err *err)
{
    if (factory->nets_n > 0) {
        cell->net = factory->nets[--factory->nets_n];
        return setns(cell->net, CLONE_NEWNET) < 0
                   ? err_sys(err, "enter a network namespace")
                   : 0;
    }
    if (unshare(CLONE_NEWNET) < 0)
        return err_sys(err, "make a network namespace");
    cell->net = open_own(factory);
    return cell->net < 0 ? err_sys(err, "open a network namespace") : 0;
}

int
factory_net_leave(struct factory *factory, struct err *err)
{
    return setns(factory->home_net, CLONE_NEWNET) < 0
               ? err_sys(err, "come back from a cell's network namespace")
               : 0;
}

void
factory_net_return(struct factory *factory, struct factory_cell *cell)
{
    if (cell->net >= 0 && cell->is_clean && factory->nets_n < FACTORY_NETS_MAX)
        factory->nets[factory->nets_n++] = fd_take(&cell->net);
    fd_close(&cell->net);
}
