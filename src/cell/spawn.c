/*
 * From a request to a running init: plan, keeper, control group, descriptors, clone3,
 * identity maps, go. Ordered so that whatever is made has somebody who removes it: the
 * keeper knows the group's and the folder's names before they exist.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cell_parts.h"
#include "cell/init.h"
#include "kernel/kernel.h"
#include "warm/command.h"

static int
find_cgroup(struct cell *cell, struct err *err)
{
    const struct policy *policy = cell->request.policy;
    struct err why = {0};
    int r = cgroup_find(&cell->cgroup, &why);
    if (r == 0 || policy->cgroup == CGROUP_OPTIONAL)
        return 0; /* version 0 then: the supervisor watches, and the outcome says so */
    *err = why;
    return r;
}

static int
name_scratch(struct cell *cell, struct err *err)
{
    if (cell->request.policy->isolation != ISOLATION_LANDLOCK)
        return 0;
    /* As root the cell has another user, who may not pass through root's own TMPDIR. */
    const char *base = cell->plan->as_root ? NULL : getenv("TMPDIR");
    char *name = cell->own_plan->scratch_dir;
    int n = snprintf(name, sizeof(cell->plan->scratch_dir), "%s/adyton-%d-%llx",
                     base && base[0] == '/' ? base : "/tmp", getpid(),
                     (unsigned long long)(uintptr_t)cell ^
                         (unsigned long long)cell->started_us);
    if (n < 0 || (size_t)n >= sizeof(cell->plan->scratch_dir))
        return err_set(err, -ENAMETOOLONG, "TMPDIR is too long for a private folder");
    snprintf(cell->scratch_dir, sizeof(cell->scratch_dir), "%s", name);
    return 0;
}

static int
make_scratch(struct cell *cell, struct err *err)
{
    /* 0700 and exclusive: whoever guessed the name has not made it first. */
    if (cell->scratch_dir[0] != '\0' && mkdir(cell->scratch_dir, 0700) < 0)
        return err_sys(err, "make the private folder %s", cell->scratch_dir);
    return 0;
}

/* With v2 the new process is born in its group. Docker's default profile has no clone3:
 * then, and with v1, clone serves and init joins by itself. *ret_joined says which it
 * was. */
static pid_t
clone_process(struct cell *cell, bool *ret_joined)
{
    uint64_t flags = CLONE_PIDFD;
    flags |= jail_clone_flags(cell->plan);
    int group = cgroup_clone_fd(&cell->cgroup);
    struct clone_args args = {
        .flags = flags | CLONE_INTO_CGROUP,
        .pidfd = (uint64_t)(uintptr_t)&cell->init_pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (unsigned)group,
    };
    *ret_joined = true;
    pid_t pid = group >= 0 ? k_clone3(&args) : -1;
    if (group >= 0 && (pid >= 0 || errno != ENOSYS))
        return pid;
    *ret_joined = false;
    return k_clone(flags, SIGCHLD, &cell->init_pidfd);
}

static int
clone_init(struct cell *cell, const struct child_ends *child,
           const struct command_line *line, struct err *err)
{
    bool joined;
    pid_t pid = clone_process(cell, &joined);
    if (pid == 0) {
        struct init_task task = {
            .plan = cell->plan,
            .job = cell->request.job,
            .argv = line->argv,
            .envp = line->envp,
            .report = child->report,
            .guest = child->guest,
            .stdio = {child->stdin_fd, child->stdout_fd, child->stderr_fd}};
        for (size_t i = 0; i < CGROUP_SLOTS; i++)
            task.joins[i] = joined ? -1 : child->joins[i];
        init_main(&task);
    }
    if (pid < 0 && (errno == EPERM || errno == ENOSPC))
        return err_set(err, -errno,
                       "this host does not let user %u make namespaces (%s): see "
                       "'adyton doctor', or name the weaker '--isolation landlock'",
                       geteuid(), strerrordesc_np(errno));
    if (pid < 0)
        return err_sys(err, "start the cell's init");
    cell->init = pid;
    return 0;
}

/* One uid and one gid of the host stand for the cell's user: its own when we are root. */
static int
write_maps(struct cell *cell, struct err *err)
{
    if (cell->request.policy->isolation == ISOLATION_LANDLOCK)
        return 0;
    char path[32], map[64];
    bool root = cell->plan->as_root;
    const struct job_folder *workspace =
        job_folders_workspace(&cell->request.job->folders);
    uid_t own =
        workspace && workspace->user > 0 ? workspace->user : jail_host_uid(cell->init);
    snprintf(path, sizeof(path), "/proc/%d", cell->init);
    AUTO_CLOSE int proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_sys(err, "open %s", path);
    const struct {
        const char *file;
        unsigned outside;
    } maps[] = {{"uid_map", root ? own : geteuid()}, {"gid_map", root ? own : getegid()}};
    int r = root ? 0 : file_write(proc, "setgroups", "deny");
    for (size_t i = 0; i < 2 && r == 0; i++) {
        snprintf(map, sizeof(map), "%d %u 1", JAIL_UID, maps[i].outside);
        r = file_write(proc, maps[i].file, map);
    }
    return r < 0 ? err_set(err, r, "write the identity maps of the cell: %s",
                           strerrordesc_np(-r))
                 : 0;
}

uint32_t
cell_guest_flags(const struct cell *cell)
{
    const struct job *job = cell->request.job;
    return command_guest_flags(cell->request.policy) |
           (validation_is_on(cell) ? GUEST_CHECK : 0) |
           (job_folders_workspace(&job->folders) ? GUEST_WORKSPACE : 0) |
           (cell->request.session ? GUEST_SESSION : 0) |
           (job->show_last ? GUEST_SHOW_LAST : 0) | (job->svg ? GUEST_SVG : 0) |
           (job->completes ? GUEST_COMPLETE : 0) |
           (session_ends_background(cell) ? GUEST_END_THREADS : 0);
}

/* Init builds the jail in less than two milliseconds, and nothing else happens meanwhile: what we
 * have to do can wait until the interpreter starts, on a core of its own. Beside a busy waker the
 * kernel would queue init on the same core. No more than a pause: whatever it brings is read later. */
static void
let_init_enter(const struct cell *cell)
{
    enum { PAUSE_MS = 20 };
    struct pollfd report = {.fd = cell->report, .events = POLLIN};
    (void)poll(&report, 1, PAUSE_MS);
}

/* While the interpreter starts we compile its filter; it waits for the setup then. */
static int
send_setup(struct cell *cell, struct err *err)
{
    int r = jail_plan_filter(cell->own_plan, err);
    if (r < 0)
        return r;
    struct guest_setup *setup = calloc(1, sizeof(*setup));
    if (!setup)
        return err_set(err, -ENOMEM, "no memory for the guest's setup");
    setup->magic = GUEST_MAGIC;
    setup->version = GUEST_VERSION;
    setup->flags = cell_guest_flags(cell);
    setup->seal = cell->plan->seal;
    r = fd_send(cell->guest, setup, sizeof(*setup), &cell->claims_fd, 1);
    free(setup);
    if (r == 0)
        return validation_send(cell, err);
    /* EPIPE: it has died already, and init's report will say of what. */
    return r < 0 && r != -EPIPE
               ? err_set(err, r, "send the setup: %s", strerrordesc_np(-r))
               : 0;
}

/* sys.argv of the boot program: the script's name, its folder, its own arguments. */
static int
make_command(const struct cell *cell, struct command_line *ret, struct err *err)
{
    enum { OWN_WORDS = 2 };
    const struct job *job = cell->request.job;
    struct command_spec spec = {.plan = cell->plan,
                                .entry = "main",
                                .words_n = OWN_WORDS + job->args_n,
                                .threads = command_threads(cell->request.policy)};
    AUTO_FREE const char **words = calloc(spec.words_n, sizeof(*words));
    if (!words)
        return err_set(err, -ENOMEM, "no memory for the interpreter's arguments");
    words[0] = job->name;
    words[1] = jail_tmp_dir(cell->plan);
    for (size_t i = 0; i < job->args_n; i++)
        words[OWN_WORDS + i] = job->args[i];
    spec.words = words;
    return command_line_make(&spec, ret, err);
}

static int
start_init(struct cell *cell, struct child_ends *child, struct err *err)
{
    struct command_line line;
    int r = make_command(cell, &line, err);
    if (r < 0)
        return r;
    r = clone_init(cell, child, &line, err);
    command_line_done(&line);
    child_ends_close(child);
    if (r == 0)
        r = write_maps(cell, err);
    if (r == 0) {
        r = fd_send(cell->report, "g", 1, NULL, 0);
        if (r < 0)
            err_set(err, r, "start the cell: %s", strerrordesc_np(-r));
    }
    if (r == 0)
        let_init_enter(cell);
    if (r == 0 && cell->request.before_code)
        r = cell->request.before_code(cell->request.context, err);
    if (r == 0)
        r = send_setup(cell, err);
    if (r == 0) /* others' leftovers can wait until ours runs */
        cgroup_sweep(&cell->cgroup);
    return r;
}

int
cell_spawn(struct cell *cell, struct err *err)
{
    const struct cell_request *request = &cell->request;
    struct child_ends child;
    child_ends_init(&child);
    int r = find_cgroup(cell, err);
    if (r == 0)
        r = jail_plan_build(request->policy, request->image, request->guest_file,
                            cell->cgroup.version != 0, request->filters, cell->own_plan,
                            err);
    if (r == 0)
        r = jail_plan_folders(cell->own_plan, &request->job->folders, err);
    cell->own_plan->seal.landlock_fd = cell->own_plan->init_seal.landlock_fd =
        GUEST_LANDLOCK_FD;
    if (r == 0)
        r = cell_open_workspace(cell, err);
    if (r == 0)
        r = name_scratch(cell, err);
    if (r == 0)
        r = keeper_start(&cell->cgroup, cell->scratch_dir, false, &cell->keeper, err);
    if (r == 0)
        r = cgroup_make(&cell->cgroup, request->policy, err);
    if (r == 0)
        r = make_scratch(cell, err);
    if (r == 0)
        r = child_ends_make(cell, &child, err);
    if (r == 0)
        r = cgroup_open_joins(&cell->cgroup, child.joins, err);
    if (r == 0)
        r = start_init(cell, &child, err);
    child_ends_close(&child);
    return r;
}
