/*
 * The first half of confinement: the cell's init, alone in fresh namespaces, turns what
 * it sees into what the policy allows. The table at the end is the order, with a reason
 * for each step. Runs after clone: no allocation, no stdio, no locks.
 */
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/kernel.h"

static int
enter_session(struct enter_run *run, struct err *err)
{
    (void)run;
    umask(0);
    if (setsid() < 0 && errno != EPERM)
        return err_sys(err, "start a session without a terminal");
    return 0;
}

static int
enter_propagation(struct enter_run *run, struct err *err)
{
    (void)run;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(err, "cut the mount namespace off from the host's");
    return 0;
}

/* Straight system calls: glibc's wrappers would signal other threads, and there are
 * none. */
static int
become(uid_t id, bool drop_groups, struct err *err)
{
    if (drop_groups && syscall(SYS_setgroups, 0, NULL) < 0)
        return err_sys(err, "drop the supplementary groups");
    if (syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0)
        return err_sys(err, "become user %u", id);
    return 0;
}

static int
enter_identity_inside(struct enter_run *run, struct err *err)
{
    return become(run->plan->uid_inside, run->plan->as_root, err);
}

static int
enter_identity_outside(struct enter_run *run, struct err *err)
{
    if (!run->plan->as_root)
        return 0;
    uid_t id = jail_host_uid(getpid());
    if (chown(run->plan->scratch_dir, id, id) < 0)
        return err_sys(err, "give the private folder to the cell's user");
    return become(id, true, err);
}

static int
enter_death(struct enter_run *run, struct err *err)
{
    /* In a pid namespace init's death is the cell's. Without one, init must live on to end
     * the cell's processes itself: the lifeline of cell/init.c serves there. */
    if (run->plan->kind != JAIL_LANDLOCK && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(err, "ask to die with the supervisor");
    /* A factory writes its children's identity maps, and an init is joined by its descriptor:
     * both need a process that others may look at. init.c closes it before user code comes. */
    bool open = run->plan->kind == JAIL_FACTORY || run->plan->kind == JAIL_CELL;
    if (prctl(PR_SET_DUMPABLE, open ? 1 : 0, 0, 0, 0) < 0)
        return err_sys(err, "close init's memory to others");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(err, "become the parent of orphans");
    return 0;
}

static int
enter_hostname(struct enter_run *run, struct err *err)
{
    (void)run;
    if (sethostname("cell", strlen("cell")) < 0 || setdomainname("", 0) < 0)
        return err_sys(err, "name the cell");
    return 0;
}

static int
enter_cgroup(struct enter_run *run, struct err *err)
{
    (void)run;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_sys(err, "make a cgroup namespace");
    return 0;
}

static int
enter_loopback(struct enter_run *run, struct err *err)
{
    if (run->plan->policy->network != NETWORK_LOOPBACK)
        return 0;
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return err_sys(err, "bring the cell's loopback up");
    return 0;
}

static int
enter_landlock(struct enter_run *run, struct err *err)
{
    return jail_landlock_ruleset(run->plan, &run->entered->landlock_fd, err);
}

static int
enter_home(struct enter_run *run, struct err *err)
{
    const char *home = jail_tmp_dir(run->plan);
    if (chdir(home) < 0)
        return err_sys(err, "enter %s", home);
    if (run->entered->tmp_fd < 0) {
        run->entered->tmp_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (run->entered->tmp_fd < 0)
            return err_sys(err, "open %s", home);
    }
    umask(022);
    return 0;
}

static int
enter_top(struct enter_run *run, struct err *err)
{
    (void)run;
    return chdir("/") < 0 ? err_sys(err, "enter the root") : 0;
}

#define NS       (1U << JAIL_NAMESPACES)
#define LANDLOCK (1U << JAIL_LANDLOCK)
#define FACTORY  (1U << JAIL_FACTORY)
#define CELL     (1U << JAIL_CELL)

/* clang-format off */
const struct enter_step jail_enter_steps[] = {
    {"session",     "before anything can read from or be stopped by a terminal",
     NS | LANDLOCK | FACTORY | CELL, enter_session},
    {"propagation", "before the first mount: none may travel to the host",
     NS | FACTORY | CELL, enter_propagation},
    {"sources",     "while paths are still the host's and are looked up as who started us",
     NS | FACTORY, mounts_sources},
    {"identity",    "before the first inode is made: a tmpfs takes only mapped owners",
     NS | FACTORY | CELL, enter_identity_inside},
    {"user",        "the private folder must be the cell's before it is entered",
     LANDLOCK, enter_identity_outside},
    {"death",       "after the identity: a change of user clears the parent-death signal",
     NS | LANDLOCK | FACTORY | CELL, enter_death},
    {"hostname",    "needs CAP_SYS_ADMIN in the new user namespace, which ends with the seal",
     NS | FACTORY, enter_hostname},
    {"cgroup",      "after init has joined the cell's groups: they become its root",
     NS | CELL, enter_cgroup},
    {"loopback",    "needs CAP_NET_ADMIN in the new network namespace",
     NS | CELL, enter_loopback},
    {"root",        "the empty tree that all of the following fill",
     NS | FACTORY, mounts_root},
    {"files",       "folders that the next mounts stand on",
     NS | FACTORY, mounts_files},
    {"top",         "a cell of a factory has its tree already: paths count from its root",
     CELL, enter_top},
    {"scratch",     "before the image: a virtual environment may live in the host's /tmp",
     NS | FACTORY | CELL, mounts_scratch},
    {"place",       "the interpreter's files, over ours: what the image has is what is seen",
     NS | FACTORY, mounts_place},
    {"substitutes", "over the interpreter's files: what is read at every start, in a shorter form",
     NS | FACTORY, mounts_substitutes},
    {"proc",        "before the host's /proc is out of sight: the kernel wants to see one",
     NS | FACTORY | CELL, mounts_proc},
    {"pivot",       "after the last mount: from here on the host's tree does not exist",
     NS | FACTORY, mounts_pivot},
    {"landlock",    "rules are made from the final paths; restricting comes in the seal",
     NS | LANDLOCK | CELL, enter_landlock},
    {"home",        "the working directory of the code",
     NS | LANDLOCK | FACTORY | CELL, enter_home},
    {"fonts",       "last: files in the home",
     NS | FACTORY | CELL, mounts_fonts},
};
/* clang-format on */
const size_t jail_enter_steps_n = sizeof(jail_enter_steps) / sizeof(*jail_enter_steps);

int
jail_enter(const struct jail_plan *plan, struct jail_entered *ret, struct err *err)
{
    *ret = (struct jail_entered){-1, -1, -1};
    struct enter_run run = {.plan = plan, .entered = ret, .root_fd = -1};
    unsigned kind = 1U << plan->kind;
    for (size_t i = 0; i < jail_enter_steps_n; i++) {
        if (!(jail_enter_steps[i].kinds & kind))
            continue;
        int r = jail_enter_steps[i].run(&run, err);
        if (r < 0)
            return err_wrap(err, "enter, step %s", jail_enter_steps[i].name);
    }
    return 0;
}
