/* The supervisor's side of a factory: see zygote.h. */
#include "warm/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/wire.h"
#include "kernel/kernel.h"
#include "warm/command.h"

enum {
    ROWS = FACTORY_CELLS_MAX,
    /* Host users of a factory when we are root, above those of cold cells (jail.h): one range
     * for each live factory. */
    HOST_RANGE = 256,
};
#define HOST_RANGE_BASE 0xB0000000U

struct zygote {
    struct zygote_options options;
    struct jail_plan *factory_plan, *cell_plan;
    pid_t factory;
    int factory_socket, zygote_socket;
    struct event *on_factory, *on_zygote, *on_room;
    bool ready, dead;
    uint32_t last_id;
    struct row {
        uint32_t id;    /* 0: free */
        unsigned wants; /* a bit for each request that there was no room for */
        struct zygote_cell cell;
    } rows[ROWS];
};

static void on_room(evutil_socket_t fd, short what, void *context);

static struct row *
find_row(struct zygote *zygote, uint32_t id)
{
    for (size_t i = 0; i < ROWS; i++)
        if (zygote->rows[i].id == id)
            return &zygote->rows[i];
    return NULL;
}

static void
die(struct zygote *zygote, const struct err *err)
{
    if (zygote->dead)
        return;
    zygote->dead = true;
    zygote->ready = false;
    zygote->options.on_death(zygote->options.context, err);
}

/* Everything in the factory's pid namespace is gone with it. */
static void
end_factory(struct zygote *zygote)
{
    kill(zygote->factory, SIGKILL);
    while (waitpid(zygote->factory, NULL, 0) < 0 && errno == EINTR)
        continue;
    zygote->factory = 0;
}

/* … and so are its cells. why: NULL when it is our wish. */
static void
tell_all_gone(struct zygote *zygote, const struct err *why)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct row row = zygote->rows[i];
        zygote->rows[i].id = 0;
        if (row.id != 0 && why)
            row.cell.on_failed(row.cell.context, why);
        if (row.id != 0)
            row.cell.on_gone(row.cell.context);
    }
}

static void
factory_gone(struct zygote *zygote)
{
    struct err err;
    if (zygote->on_factory)
        event_free(zygote->on_factory);
    zygote->on_factory = NULL;
    if (zygote->on_room)
        event_free(zygote->on_room);
    zygote->on_room = NULL;
    end_factory(zygote);
    err_set(&err, -ECHILD, "the factory of warm cells has died");
    tell_all_gone(zygote, &err);
    die(zygote, &err);
}

static void
take_report(struct zygote *zygote, struct factory_report *report, int *fds)
{
    struct row *row = report->id != 0 ? find_row(zygote, report->id) : NULL;
    report->err.text[sizeof(report->err.text) - 1] = '\0';
    if (report->id == 0 && report->kind == FACTORY_FAILED)
        die(zygote, &report->err);
    if (!row)
        return;
    struct zygote_cell cell = row->cell;
    if (report->kind == FACTORY_GONE)
        row->id = 0;
    if (report->kind == FACTORY_MADE)
        cell.on_made(cell.context, fd_take(&fds[0]), fd_take(&fds[1]));
    else if (report->kind == FACTORY_FAILED)
        cell.on_failed(cell.context, &report->err);
    else if (report->kind == FACTORY_ENDING && cell.on_ending)
        cell.on_ending(cell.context, report->wait_status);
    else if (report->kind == FACTORY_EXITED)
        cell.on_exited(cell.context, report->wait_status, report->cpu_us,
                       report->peak_bytes);
    else if (report->kind == FACTORY_INTERRUPTED)
        cell.on_interrupted(cell.context);
    else if (report->kind == FACTORY_CLEARED)
        cell.on_cleared(cell.context, &report->err);
    else if (report->kind == FACTORY_GONE)
        cell.on_gone(cell.context);
}

static void
on_factory(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct zygote *zygote = context;
    struct factory_report report;
    int fds[2];
    ssize_t n = fd_receive(fd, &report, sizeof(report), fds, 2);
    if (n == (ssize_t)sizeof(report))
        take_report(zygote, &report, fds);
    else if (n != -EAGAIN)
        factory_gone(zygote);
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

/* The zygote speaks once: ready, or why not. */
static void
on_zygote(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct zygote *zygote = context;
    struct guest_ready ready;
    ssize_t n = fd_receive(fd, &ready, sizeof(ready), NULL, 0);
    event_free(zygote->on_zygote);
    zygote->on_zygote = NULL;
    if (n != (ssize_t)sizeof(ready) || ready.magic != GUEST_MAGIC)
        err_set(&ready.err, -ECHILD, "the zygote's interpreter has ended at its start");
    if (ready.err.code < 0) {
        ready.err.text[sizeof(ready.err.text) - 1] = '\0';
        die(zygote, &ready.err);
        return;
    }
    zygote->ready = true;
    zygote->options.on_ready(zygote->options.context);
}

static int
make_plans(struct zygote *zygote, struct err *err)
{
    const struct zygote_options *options = &zygote->options;
    zygote->factory_plan = calloc(1, sizeof(*zygote->factory_plan));
    zygote->cell_plan = calloc(1, sizeof(*zygote->cell_plan));
    if (!zygote->factory_plan || !zygote->cell_plan)
        return err_set(err, -ENOMEM, "no memory for a zygote");
    int r = jail_plan_build(options->policy, options->image, options->guest_file,
                            options->pids_by_kernel, NULL, zygote->cell_plan, err);
    if (r == 0)
        r = jail_plan_folders(zygote->cell_plan, options->folders, err);
    if (r == 0)
        r = jail_plan_filter(zygote->cell_plan, err);
    if (r < 0)
        return r;
    zygote->cell_plan->seal.landlock_fd = GUEST_LANDLOCK_FD;
    *zygote->factory_plan = *zygote->cell_plan;
    zygote->cell_plan->kind = JAIL_CELL;
    zygote->factory_plan->kind = JAIL_FACTORY;
    zygote->factory_plan->uid_inside = 0;
    return 0;
}

static int
write_maps(const struct zygote *zygote, struct err *err)
{
    bool root = zygote->cell_plan->as_root;
    uint32_t first = HOST_RANGE_BASE + (uint32_t)zygote->factory * HOST_RANGE;
    const struct {
        const char *file;
        uint32_t outside;
    } maps[] = {{"uid_map", root ? first : geteuid()},
                {"gid_map", root ? first : getegid()}};
    char path[32], map[64];
    snprintf(path, sizeof(path), "/proc/%d", zygote->factory);
    AUTO_CLOSE int proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_sys(err, "open %s", path);
    int r = root ? 0 : file_write(proc, "setgroups", "deny");
    for (size_t i = 0; i < 2 && r == 0; i++) {
        snprintf(map, sizeof(map), "0 %u %d", maps[i].outside, root ? HOST_RANGE : 1);
        r = file_write(proc, maps[i].file, map);
    }
    return r < 0 ? err_set(err, r, "write the identity maps of a factory: %s",
                           strerrordesc_np(-r))
                 : 0;
}

static int
clone_factory(struct zygote *zygote, int report_end, int zygote_end, struct err *err)
{
    const struct zygote_options *options = &zygote->options;
    struct command_spec spec = {.plan = zygote->factory_plan,
                                .entry = "zygote",
                                .words = options->modules,
                                .words_n = options->modules_n,
                                .threads = 1 /* a zygote must have one */};
    struct command_line line;
    int r = command_line_make(&spec, &line, err);
    if (r < 0)
        return r;
    struct factory_task task = {.plan = zygote->factory_plan,
                                .cell = zygote->cell_plan,
                                .argv = line.argv,
                                .envp = line.envp,
                                .report = report_end,
                                .zygote = zygote_end,
                                .stderr_fd = STDERR_FILENO,
                                .as_root = zygote->cell_plan->as_root};
    pid_t pid = k_clone(jail_clone_flags(zygote->factory_plan), SIGCHLD, NULL);
    if (pid == 0)
        factory_main(&task);
    int saved = errno;
    command_line_done(&line);
    errno = saved;
    if (pid < 0)
        return err_sys(err, "start a factory of warm cells");
    zygote->factory = pid;
    r = write_maps(zygote, err);
    if (r == 0 && (r = fd_send(zygote->factory_socket, "g", 1, NULL, 0)) < 0)
        err_set(err, r, "start the factory: %s", strerrordesc_np(-r));
    return r;
}

static int
send_setup(struct zygote *zygote, struct err *err)
{
    struct guest_setup *setup = calloc(1, sizeof(*setup));
    if (!setup)
        return err_set(err, -ENOMEM, "no memory for the zygote's setup");
    setup->magic = GUEST_MAGIC;
    setup->version = GUEST_VERSION;
    setup->flags = command_guest_flags(zygote->options.policy);
    setup->threads = (uint32_t)command_threads(zygote->options.policy);
    setup->seal = zygote->cell_plan->seal;
    int r = fd_send(zygote->zygote_socket, setup, sizeof(*setup), NULL, 0);
    free(setup);
    if (r == -EPIPE)
        return 0; /* the factory has failed already, and says why */
    return r < 0 ? err_set(err, r, "send the zygote's setup: %s", strerrordesc_np(-r))
                 : 0;
}

static int
start(struct zygote *zygote, struct err *err)
{
    int report[2] = {-1, -1}, guest[2] = {-1, -1};
    int r = make_plans(zygote, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, guest) < 0) {
        r = err_sys(err, "make the factory's sockets");
        fd_close(&report[0]);
        fd_close(&report[1]);
        return r;
    }
    zygote->factory_socket = report[0];
    zygote->zygote_socket = guest[0];
    r = clone_factory(zygote, report[1], guest[1], err);
    close(report[1]);
    close(guest[1]);
    if (r == 0)
        r = send_setup(zygote, err);
    if (r < 0)
        return r;
    struct event_base *base = zygote->options.base;
    r = fd_set_nonblocking(zygote->factory_socket);
    if (r < 0)
        return err_set(err, r, "watch a factory: %s", strerrordesc_np(-r));
    zygote->on_room = event_new(base, zygote->factory_socket, EV_WRITE, on_room, zygote);
    zygote->on_factory =
        event_new(base, zygote->factory_socket, EV_READ | EV_PERSIST, on_factory, zygote);
    zygote->on_zygote =
        event_new(base, zygote->zygote_socket, EV_READ | EV_PERSIST, on_zygote, zygote);
    if (!zygote->on_factory || !zygote->on_zygote || !zygote->on_room ||
        event_add(zygote->on_factory, NULL) < 0 || event_add(zygote->on_zygote, NULL) < 0)
        return err_set(err, -ENOMEM, "no memory to watch a factory");
    return 0;
}

int
zygote_start(const struct zygote_options *options, struct zygote **ret, struct err *err)
{
    struct zygote *zygote = calloc(1, sizeof(*zygote));
    if (!zygote)
        return err_set(err, -ENOMEM, "no memory for a zygote");
    zygote->options = *options;
    zygote->factory_socket = zygote->zygote_socket = -1;
    int r = start(zygote, err);
    if (r < 0) {
        zygote_free(zygote);
        return r;
    }
    *ret = zygote;
    return 0;
}

void
zygote_free(struct zygote *zygote)
{
    if (!zygote)
        return;
    if (zygote->on_factory)
        event_free(zygote->on_factory);
    if (zygote->on_zygote)
        event_free(zygote->on_zygote);
    if (zygote->on_room)
        event_free(zygote->on_room);
    zygote->on_room = NULL;
    fd_close(&zygote->factory_socket);
    fd_close(&zygote->zygote_socket);
    if (zygote->factory > 0)
        end_factory(zygote);
    tell_all_gone(zygote, NULL);
    free(zygote->factory_plan);
    free(zygote->cell_plan);
    free(zygote);
}

bool
zygote_is_ready(const struct zygote *zygote)
{
    return zygote->ready && !zygote->dead;
}

/* The factory's first child. Its cells, which are children too, come after it. */
uint64_t
zygote_memory_bytes(const struct zygote *zygote)
{
    enum { TEXT_BYTES = 128 };
    char path[64], text[TEXT_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", zygote->factory,
             zygote->factory);
    if (zygote->factory <= 0 || file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return 0;
    unsigned long long resident, shared;
    snprintf(path, sizeof(path), "/proc/%lu/statm", strtoul(text, NULL, 10));
    if (file_read(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
        sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || resident < shared)
        return 0;
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

const struct jail_plan *
zygote_plan(const struct zygote *zygote)
{
    return zygote->cell_plan;
}

int
zygote_make(struct zygote *zygote, const int *fds, size_t fds_n,
            const struct zygote_cell *cell, uint32_t *ret_id, struct err *err)
{
    struct row *row = find_row(zygote, 0);
    if (!zygote_is_ready(zygote) || !row)
        return err_set(err, -EAGAIN, "the zygote cannot make a cell now");
    struct factory_request request = {FACTORY_MAKE, ++zygote->last_id};
    if (request.id == 0)
        request.id = ++zygote->last_id; /* 0 is nobody's, also after four billion */
    int r = fd_send(zygote->factory_socket, &request, sizeof(request), fds, fds_n);
    if (r < 0)
        return err_set(err, r, "ask the factory for a cell: %s", strerrordesc_np(-r));
    *row = (struct row){.id = request.id, .cell = *cell};
    *ret_id = request.id;
    return 0;
}

/* A factory that reports on hundreds of cells waits for us to listen. We must not wait for it. */
static bool
say(struct zygote *zygote, enum factory_request_kind kind, uint32_t id)
{
    struct factory_request request = {kind, id};
    int r = fd_send(zygote->factory_socket, &request, sizeof(request), NULL, 0);
    if (r == -EAGAIN && zygote->on_room)
        event_add(zygote->on_room, NULL);
    return r !=
           -EAGAIN; /* any other failure is the factory's end, which is told elsewhere */
}

/* In the order of their numbers: a kill comes first, and makes the others void. */
static void
on_room(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct zygote *zygote = context;
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &zygote->rows[i];
        for (unsigned kind = 0; row->id != 0 && row->wants >> kind != 0; kind++) {
            if (!(row->wants >> kind & 1U))
                continue;
            if (!say(zygote, kind, row->id))
                return;
            row->wants &= ~(1U << kind);
        }
    }
}

static void
wish(struct zygote *zygote, enum factory_request_kind kind, uint32_t id)
{
    struct row *row = find_row(zygote, id);
    if (row && !say(zygote, kind, id))
        row->wants |= 1U << kind;
}

void
zygote_kill(struct zygote *zygote, uint32_t id)
{
    wish(zygote, FACTORY_KILL, id);
}

void
zygote_clear(struct zygote *zygote, uint32_t id)
{
    wish(zygote, FACTORY_CLEAR, id);
}

void
zygote_interrupt(struct zygote *zygote, uint32_t id)
{
    wish(zygote, FACTORY_INTERRUPT, id);
}
