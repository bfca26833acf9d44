/*
 * A warm cell on the supervisor's side: asked of a zygote ahead of any job, idle until it is
 * given one, and from then on a cell like any other. What differs is where it comes from and
 * who tells of its end: the factory, for all of its cells.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cell/cell_parts.h"
#include "warm/command.h"

enum { WAIT_LIMIT_US = 20 * 1000 * 1000, US_PER_MS = 1000 };

/* --- before the job --- */

static void
lose(struct cell *cell)
{
    const struct err *why = cell->failure.code < 0 ? &cell->failure : NULL;
    cell->warm.on_lost(cell->warm.context, why);
}

static void
when_ready(struct cell *cell)
{
    if (cell->made && cell->sealed && !cell->given && !cell->unwanted &&
        cell->cause == CAUSE_NONE)
        cell->warm.on_idle(cell->warm.context);
}

void
warm_sealed(struct cell *cell)
{
    when_ready(cell);
}

static void
on_made(void *context, int tmp_fd, int proc_fd)
{
    struct cell *cell = context;
    cell->tmp_fd = tmp_fd;
    cell->proc_fd = proc_fd;
    cell->made = true;
    when_ready(cell);
}

static void
on_failed(void *context, const struct err *err)
{
    struct cell *cell = context;
    struct cgroup_usage usage;
    if (cell->given && cell->exited)
        return; /* how its program has ended is known: nothing more was asked */
    cgroup_usage(&cell->cgroup, &usage);
    if (cell->given && usage.oom_kills > 0)
        return; /* the kernel's doing: with v2 it ends all of a group, init as well */
    if (cell->failure.code == 0)
        cell->failure = *err;
    cell_end(cell, CAUSE_ABANDON);
}

/* It and init are all that is left: neither will run code of anybody's. */
static void
on_ending(void *context, int wait_status)
{
    struct cell *cell = context;
    if (!cell->given || cell->finished || cell->unwanted || !cell->peak_is_told ||
        cgroup_population(&cell->cgroup) != 2)
        return;
    cell_note_exit(cell, wait_status, 0, 0);
    cell_finish(cell);
}

static void
on_exited(void *context, int wait_status, uint64_t cpu_us, uint64_t peak_bytes)
{
    struct cell *cell = context;
    cell_note_exit(cell, wait_status, cpu_us, peak_bytes);
    if (cell->given)
        cell_finish_early(cell);
}

static void
on_gone(void *context)
{
    struct cell *cell = context;
    cell->gone = true;
    if (cell->unwanted)
        cell_free(cell);
    else if (!cell->given)
        lose(cell);
    else if (!cell->finished)
        cell_finish(cell);
}

static int
ask(struct cell *cell, const struct child_ends *child, struct err *err)
{
    const struct zygote_cell events = {
        on_made,         on_failed, on_ending, on_exited, session_interrupted,
        session_cleared, on_gone,   cell};
    int fds[FACTORY_JOINS + CGROUP_SLOTS] = {
        [FACTORY_GUEST] = child->guest,      [FACTORY_CLAIMS] = cell->claims_fd,
        [FACTORY_STDIN] = child->stdin_fd,   [FACTORY_STDOUT] = child->stdout_fd,
        [FACTORY_STDERR] = child->stderr_fd,
    };
    size_t n = FACTORY_JOINS;
    for (size_t i = 0; i < CGROUP_SLOTS; i++)
        if (child->joins[i] >= 0)
            fds[n++] = child->joins[i];
    return zygote_make(cell->zygote, fds, n, &events, &cell->warm_id, err);
}

static int
prepare(struct cell *cell, const struct policy *policy, struct err *err)
{
    struct child_ends child;
    child_ends_init(&child);
    int r = cgroup_make(&cell->cgroup, policy, err);
    if (r == 0)
        r = child_ends_make(cell, &child, err);
    if (r == 0)
        r = cgroup_open_joins(&cell->cgroup, child.joins, err);
    if (r == 0 && (r = fd_set_nonblocking(cell->guest)) < 0)
        err_set(err, r, "watch the guest: %s", strerrordesc_np(-r));
    if (r == 0)
        cell_watch_memory(cell);
    cell->peak_is_told = cgroup_tells_peak(&cell->cgroup);
    if (r == 0)
        r = ask(cell, &child, err);
    child_ends_close(&child);
    if (r < 0)
        return r;
    cell->on_guest =
        cell_watch(cell, cell->guest, EV_READ | EV_PERSIST, cell_on_guest, 0);
    cell->on_wall = cell_watch(cell, -1, 0, cell_on_wall, 0);
    return cell->failure.code < 0
               ? err_set(err, cell->failure.code, "%s", cell->failure.text)
               : 0;
}

int
cell_prepare(struct event_base *base, struct zygote *zygote, const struct policy *policy,
             const struct cgroup *cgroup, const struct cell_warm_events *events,
             struct cell **ret, struct err *err)
{
    struct cell *cell = cell_new(base);
    if (!cell)
        return err_set(err, -ENOMEM, "no memory for a cell");
    cell->zygote = zygote;
    cell->plan = zygote_plan(zygote);
    cell->prepared = policy;
    cell->warm = *events;
    if (cgroup->version != 0)
        cgroup_like(cgroup, &cell->cgroup);
    int r = prepare(cell, policy, err);
    if (r < 0) {
        cell_free(cell);
        return r;
    }
    *ret = cell;
    return 0;
}

/* --- the job --- */

static int
append_files(const struct job *job, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < job->files_n && r == 0; i++) {
        const struct job_file *file = &job->files[i];
        struct guest_job_file head = {.name_n = (uint32_t)strlen(file->name) + 1,
                                      .data_n = file->data.n};
        r = buf_append(out, &head, sizeof(head));
        if (r == 0)
            r = buf_append(out, file->name, head.name_n);
        if (r == 0)
            r = buf_append(out, buf_span(&file->data).p, file->data.n);
    }
    return r;
}

static int
append_job(const struct cell *cell, struct buf *out)
{
    const struct job *job = cell->request.job;
    const struct policy *policy = cell->request.policy;
    struct guest_job head = {.magic = GUEST_MAGIC,
                             .flags = cell_guest_flags(cell),
                             .threads = (uint32_t)command_threads(policy),
                             .file_bytes = policy->file_bytes,
                             .open_files = policy->open_files,
                             .code_n = job->code.n,
                             .name_n = (uint32_t)strlen(job->name) + 1,
                             .args_n = (uint32_t)job->args_n,
                             .files_n = (uint32_t)job->files_n,
                             .run = cell->request.run,
                             .grace_ms = (uint32_t)policy->session_grace_ms};
    /* Other cells have a pipe. */
    bool by_job = session_is_on(cell) && job->has_stdin;
    if (by_job) {
        head.has_stdin = 1;
        head.stdin_n = job->stdin_bytes.n;
    }
    for (size_t i = 0; i < job->args_n; i++)
        head.args_bytes += (uint32_t)strlen(job->args[i]) + 1;
    int r = buf_append(out, &head, sizeof(head));
    if (r == 0)
        r = buf_append(out, job->name, head.name_n);
    for (size_t i = 0; i < job->args_n && r == 0; i++)
        r = buf_append(out, job->args[i], strlen(job->args[i]) + 1);
    if (r == 0)
        r = buf_append(out, buf_span(&job->code).p, job->code.n);
    if (r == 0 && by_job)
        r = buf_append(out, buf_span(&job->stdin_bytes).p, job->stdin_bytes.n);
    if (r == 0)
        r = append_files(job, out);
    if (r < 0)
        return r;
    head.total_bytes = out->n;
    memcpy(out->p, &head, sizeof(head));
    return 0;
}

static int
send_job(struct cell *cell, struct err *err)
{
    AUTO_BUF struct buf bytes = {0};
    buf_init(&bytes, JOB_BYTES_MAX + JOB_ARGS_BYTES + (1 << 20));
    AUTO_CLOSE int memory = memfd_create("job", MFD_CLOEXEC);
    if (memory < 0)
        return err_sys(err, "make the job's memory");
    int r = append_job(cell, &bytes);
    if (r == 0)
        r = fd_write_all(memory, bytes.p, bytes.n);
    if (r == 0)
        r = fd_send(cell->guest, "j", 1, &memory, 1);
    return r < 0 ? err_set(err, r, "hand the job over: %s", strerrordesc_np(-r)) : 0;
}

int
warm_send(struct cell *cell, struct err *err)
{
    int r = send_job(cell, err);
    return r < 0 ? r : validation_send(cell, err);
}

int
cell_give(struct cell *cell, const struct cell_request *request, const char *start,
          struct outcome *outcome, struct err *err)
{
    cell->given = true;
    cell->start = start;
    cell_assign(cell, request, outcome);
    bool narrower = cell->cgroup.version != 0 &&
                    !cgroup_limits_alike(request->policy, cell->prepared);
    int r = narrower ? cgroup_limit(&cell->cgroup, request->policy, err) : 0;
    if (r == 0)
        r = cell_watch_streams(cell, err);
    if (r == 0)
        r = warm_send(cell, err);
    if (r < 0) {
        cell->given = false;
        return r;
    }
    if (!validation_is_on(cell))
        cell_go(cell, false);
    else
        cell_validate(cell);
    return 0;
}

uint64_t
cell_memory_bytes(const struct cell *cell)
{
    return cgroup_memory_bytes(&cell->cgroup);
}

void
cell_stop(struct cell *cell)
{
    cell_end(cell, CAUSE_ABANDON);
}
