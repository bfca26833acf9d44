/*
 * Builds the Landlock ruleset: which trees may be read, which written. In namespaces it
 * repeats what the mounts say, so that a hole in one is closed by the other; without them
 * it is the only wall around files. Restricting is seal.c's; the ruleset's descriptor is
 * what travels.
 */
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/kernel.h"

enum {
    READ_RIGHTS = K_FS_READ_FILE | K_FS_READ_DIR,
    /* All of a private folder, but running its files and making devices in it. */
    WRITE_RIGHTS = READ_RIGHTS | K_FS_WRITE_FILE | K_FS_REMOVE_DIR | K_FS_REMOVE_FILE |
                   K_FS_MAKE_DIR | K_FS_MAKE_REG | K_FS_MAKE_SOCK | K_FS_MAKE_FIFO |
                   K_FS_MAKE_SYM | K_FS_REFER | K_FS_TRUNCATE,
    DEVICE_RIGHTS = K_FS_READ_FILE | K_FS_WRITE_FILE,
    FILE_RIGHTS = K_FS_EXECUTE | K_FS_READ_FILE | K_FS_WRITE_FILE | K_FS_TRUNCATE,
};

/* Rights that each ABI added: a kernel refuses bits it does not know. */
static const struct abi_row {
    int abi;
    uint64_t fs, net, scoped;
} abis[] = {
    {1, K_FS_REFER - 1, 0, 0}, {2, K_FS_REFER, 0, 0},
    {3, K_FS_TRUNCATE, 0, 0},  {4, 0, K_NET_BIND_TCP | K_NET_CONNECT_TCP, 0},
    {5, K_FS_IOCTL_DEV, 0, 0}, {6, 0, 0, K_SCOPE_ABSTRACT_UNIX | K_SCOPE_SIGNAL},
};

struct ruleset {
    int fd;
    uint64_t handled;
};

static int
allow(const struct ruleset *rules, const char *path, uint64_t rights, bool required,
      struct err *err)
{
    AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && !required)
        return 0;
    if (fd < 0)
        return err_sys(err, "open %s for a Landlock rule", path);
    struct k_landlock_path rule = {.allowed_access = rights & rules->handled,
                                   .parent_fd = fd};
    if (k_landlock_add_path(rules->fd, &rule) == 0)
        return 0;
    /* A file takes no rights that are a folder's. */
    rule.allowed_access &= FILE_RIGHTS;
    if (errno == EINVAL && k_landlock_add_path(rules->fd, &rule) == 0)
        return 0;
    return err_sys(err, "add a Landlock rule for %s", path);
}

static int
allow_image(const struct jail_plan *plan, const struct ruleset *rules, uint64_t rights,
            struct err *err)
{
    const struct policy *policy = plan->policy;
    int r = 0;
    for (size_t i = 0; i < plan->image->paths_n && r == 0; i++)
        r = allow(rules, plan->image->paths[i], rights, true, err);
    for (size_t i = 0; i < policy->read_paths.n && r == 0; i++)
        r = allow(rules, policy->read_paths.items[i], rights, true, err);
    return r;
}

static int
allow_devices(const struct ruleset *rules, struct err *err)
{
    static const char *const written[] = {"/dev/null", "/dev/zero", "/dev/full"};
    static const char *const read[] = {"/dev/random", "/dev/urandom"};
    int r = 0;
    for (size_t i = 0; i < sizeof(written) / sizeof(*written) && r == 0; i++)
        r = allow(rules, written[i], DEVICE_RIGHTS, true, err);
    for (size_t i = 0; i < sizeof(read) / sizeof(*read) && r == 0; i++)
        r = allow(rules, read[i], K_FS_READ_FILE, true, err);
    return r;
}

static int
allow_all(const struct jail_plan *plan, const struct ruleset *rules, struct err *err)
{
    bool namespaces = plan->policy->isolation == ISOLATION_NAMESPACES;
    bool execs = plan->policy->processes == PROCESSES_EXEC;
    uint64_t image = READ_RIGHTS | (execs ? K_FS_EXECUTE : 0);

    int r = allow(rules, jail_tmp_dir(plan), WRITE_RIGHTS, true, err);
    if (r == 0)
        r = allow_devices(rules, err);
    if (r == 0)
        r = allow(rules, jail_guest_file(plan), READ_RIGHTS, true, err);
    /* The whole root is the cell's own: one rule reads it, image rules only add
     * execution. */
    if (r == 0 && namespaces)
        r = allow(rules, "/", READ_RIGHTS, true, err);
    if (r == 0 && namespaces)
        r = allow(rules, "/dev/shm", WRITE_RIGHTS, true, err);
    for (size_t i = 0; r == 0 && plan->folders && i < plan->folders->n; i++)
        if (plan->folders->list[i].writable)
            r = allow(rules, plan->folders->list[i].target, WRITE_RIGHTS, true, err);
    if (r == 0 && (!namespaces || execs))
        r = allow_image(plan, rules, image, err);
    return r;
}

int
jail_landlock_ruleset(const struct jail_plan *plan, int *ret_fd, struct err *err)
{
    struct k_landlock_ruleset handled = {0};
    for (size_t i = 0; i < sizeof(abis) / sizeof(*abis); i++) {
        if (abis[i].abi > plan->landlock_abi)
            break;
        handled.handled_access_fs |= abis[i].fs;
        handled.handled_access_net |= abis[i].net;
        handled.scoped |= abis[i].scoped;
    }
    /* Its own loopback is in its own network namespace: there is nobody else to reach. */
    if (plan->policy->network == NETWORK_LOOPBACK &&
        plan->policy->isolation == ISOLATION_NAMESPACES)
        handled.handled_access_net = 0;

    size_t size = handled.scoped ? sizeof(handled)
                  : handled.handled_access_net
                      ? offsetof(struct k_landlock_ruleset, scoped)
                      : offsetof(struct k_landlock_ruleset, handled_access_net);
    AUTO_CLOSE int fd = k_landlock_create(&handled, size);
    if (fd < 0)
        return err_sys(err, "make a Landlock ruleset");
    struct ruleset rules = {fd, handled.handled_access_fs};
    int r = allow_all(plan, &rules, err);
    if (r == 0)
        *ret_fd = fd_take(&fd);
    return r;
}
