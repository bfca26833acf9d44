/*
 * The supervisor's cells. A run is handed to a cell by start_cell; everything else here
 * is about its end: told at once, released a turn of the loop later, because whoever
 * calls us back (a cell with output, a cell that ends) still stands on what would be
 * freed.
 */
#include "engine/pool_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cell/cell.h"
#include "cell/keeper.h"
#include "engine/engine_parts.h"
#include "engine/environment.h"
#include "engine/filter_cache.h"
#include "engine/interpreter.h"
#include "jail/cgroup.h"
#include "jail/image.h"

enum { ENVIRONMENTS_WITH_FOLDERS_MAX = 2, IDLE_MIN = 2, IDLE_MAX = 16 };

/* What most programs import first; the dearest is what matters: numpy, pandas and matplotlib
 * take half a second together. */
static const char *const usual_modules[] = {"collections", "csv",
                                            "dataclasses", "datetime",
                                            "decimal",     "functools",
                                            "io",          "json",
                                            "math",        "os",
                                            "pathlib",     "random",
                                            "re",          "statistics",
                                            "string",      "tempfile",
                                            "traceback",   "typing",
                                            "uuid",        "numpy",
                                            "pandas",      "matplotlib.pyplot"};

struct pool_run {
    struct pool_run *before, *after;
    struct pool *pool;
    struct pool_request request;
    struct outcome outcome;
    struct image *image;
    struct cell *cell;
    struct environment *environment; /* the cell's; NULL: a cold one */
    struct environment_wait wait;
    bool waits;
    struct event *later;
    bool told; /* on_end was called, or never will be */
    bool held; /* its outcome is still wanted */
    bool cancelled;
};

/* ---- cells ---- */

static void
cell_showed(void *context, const struct display_item *item)
{
    struct pool_run *run = context;
    if (!run->told && run->request.on_display)
        run->request.on_display(run->request.context, item);
}

static void
cell_said(void *context, int stream, struct span bytes)
{
    struct pool_run *run = context;
    if (!run->told && run->request.on_output)
        run->request.on_output(run->request.context, stream, bytes);
}

static void
cell_told(void *context, const struct run_event *event)
{
    struct pool_run *run = context;
    if (!run->told)
        run->request.on_event(run->request.context, event);
}

static void tell_end(struct pool_run *run);

static void
cell_ended(void *context)
{
    struct pool_run *run = context;
    bool waited = run->told && run->request.session && !run->cancelled;
    if (waited)
        run->request.on_lost(run->request.session_context, &run->outcome);
    tell_end(run);
    event_active(run->later, 0, 0);
}

/* The outcome of what comes next begins here: a cell that waits may have something to tell. */
static void
cell_kept(void *context)
{
    struct pool_run *run = context;
    if (run->cancelled)
        return; /* too late: it is about to be settled, and then nobody may hold it */
    struct outcome own = run->outcome;
    outcome_init(&run->outcome);
    cell_wait_with(run->cell, &run->outcome);
    run->told = true;
    run->pool->count.busy--;
    run->pool->count.failed += own.status == STATUS_FAILED;
    run->request.on_end(run->request.context, &own);
    outcome_done(&own);
}

static struct cell_request
request_of(struct pool_run *run, const struct image *image)
{
    const struct pool_request *request = &run->request;
    return (struct cell_request){.policy = request->policy,
                                 .job = request->job,
                                 .image = image,
                                 .guest_file = run->pool->guest,
                                 .filters = &filter_cache,
                                 .session = request->session,
                                 .validate_only = request->validate_only,
                                 .run = request->run,
                                 .on_kept = cell_kept,
                                 .collect_dir = request->collect_dir,
                                 .on_output = cell_said,
                                 .on_display = cell_showed,
                                 .on_event = request->on_event ? cell_told : NULL,
                                 .on_end = cell_ended,
                                 .context = run};
}

static int
start_cold(struct pool_run *run, struct err *err)
{
    const struct pool_request *request = &run->request;
    bool programs = request->policy->processes == PROCESSES_EXEC;
    run->image = calloc(1, sizeof(*run->image));
    if (!run->image)
        return err_set(err, -ENOMEM, "no memory for the interpreter's description");
    const char *python = request->python ? request->python : run->pool->options.python;
    int r = interpreter_find(python, programs, run->image, err);
    if (r < 0)
        return r;
    const struct cell_request cell_request = request_of(run, run->image);
    r = cell_start(run->pool->options.base, &cell_request, &run->outcome, &run->cell,
                   err);
    if (r == 0)
        run->pool->count.runs_cold++;
    return r;
}

/* Takes an idle cell; false when there is none, or with run->cell set when it failed. One that
 * has died while it was idle, which nobody has heard of yet, is followed by the next. */
static bool
start_warm(struct pool_run *run, const char *start, struct err *err)
{
    struct environment *environment = run->environment;
    const struct cell_request request = request_of(run, environment_image(environment));
    struct cell *cell;
    while ((cell = environment_take(environment))) {
        run->cell = cell;
        int r = cell_give(cell, &request, start, &run->outcome, err);
        if (r == 0)
            return true;
        if (r != -EPIPE && r != -ECONNRESET)
            return false;
        run->cell = NULL;
        environment_give_back(environment, cell);
    }
    return false;
}

static int wait_for_cell(struct pool_run *run, struct err *err);

/* No warm cell comes; a session needs one. */
static int
start_other(struct pool_run *run, struct err *err)
{
    if (run->request.session)
        return err_set(err, -EAGAIN,
                       "no warm cell could be made, and a session needs one: the "
                       "supervisor's notes say why");
    return start_cold(run, err);
}

static void
on_idle(void *context)
{
    struct pool_run *run = context;
    struct err err = {0};
    run->waits = false;
    if (start_warm(run, "warm", &err) || (!run->cell && wait_for_cell(run, &err) == 0))
        return;
    outcome_fail(&run->outcome, &err);
    tell_end(run);
    event_active(run->later, 0, 0);
}

static void
on_lost(void *context)
{
    struct pool_run *run = context;
    struct err err = {0};
    run->waits = false;
    run->environment = NULL;
    if (start_other(run, &err) == 0)
        return;
    outcome_fail(&run->outcome, &err);
    tell_end(run);
    event_active(run->later, 0, 0);
}

/* As soon as a cell is there, or cold. */
static int
wait_for_cell(struct pool_run *run, struct err *err)
{
    run->wait = (struct environment_wait){on_idle, on_lost, run, NULL};
    run->waits =
        environment_await(run->environment, &run->wait, run->request.session != NULL);
    if (run->waits)
        return 0;
    run->environment = NULL;
    return start_other(run, err);
}

static struct environment *
find_environment(struct pool *pool, const struct policy *policy,
                 const struct job_folders *folders, const char *python)
{
    for (size_t i = 0; i < pool->places_n; i++)
        if (environment_fits(pool->places[i].environment, policy, folders, python))
            return pool->places[i].environment;
    return NULL;
}

/* Jobs name folders as they like; most of the places are for kinds of jobs that come again. */
static bool
has_room(const struct pool *pool, const struct job_folders *folders)
{
    size_t with_folders = 0;
    for (size_t i = 0; i < pool->places_n; i++)
        with_folders += environment_has_folders(pool->places[i].environment);
    return pool->places_n < POOL_KINDS_MAX &&
           (folders->n == 0 || with_folders < ENVIRONMENTS_WITH_FOLDERS_MAX);
}

static int
add_environment(struct pool *pool, const struct policy *policy,
                const struct job_folders *folders, const char *python, struct err *err)
{
    struct pool_place *place = &pool->places[pool->places_n];
    if (!has_room(pool, folders) && pool->places_n < POOL_KINDS_MAX)
        return err_set(err, -EAGAIN,
                       "there are warm cells with %d other sets of data folders already",
                       ENVIRONMENTS_WITH_FOLDERS_MAX);
    if (!has_room(pool, folders))
        return err_set(err, -EAGAIN, "there are %d kinds of warm cells already",
                       POOL_KINDS_MAX);
    if (policy->isolation != ISOLATION_NAMESPACES)
        return err_set(err, -EINVAL, "warm cells need namespaces");
    if (pool->cgroup.version == 0 && policy->cgroup == CGROUP_REQUIRED)
        return err_set(err, -EACCES, "the policy asks for a control group");
    struct image *image = calloc(1, sizeof(*image));
    if (!image)
        return err_set(err, -ENOMEM, "no memory for the interpreter's description");
    const struct environment_options options = {.base = pool->options.base,
                                                .policy = policy,
                                                .image = image,
                                                .folders = folders,
                                                .guest_file = pool->guest,
                                                .python = python,
                                                .cgroup = &pool->cgroup,
                                                .modules = pool->options.modules,
                                                .modules_n = pool->options.modules_n,
                                                .idle_min = pool->options.idle_min,
                                                .idle_max = pool->options.idle_max,
                                                .on_note = pool->options.on_note,
                                                .context = pool->options.context};
    int r = interpreter_find(python, policy->processes == PROCESSES_EXEC, image, err);
    if (r == 0)
        r = environment_new(&options, &place->environment, err);
    if (r < 0) {
        free(image);
        return r;
    }
    place->image = image;
    pool->places_n++;
    (void)environment_hold_idle(place->environment, pool->most_idle);
    return 0;
}

/* From the pool, or as soon as a cell is there, or cold: the environment is started for those
 * that come after. */
static int
start_cell(struct pool_run *run, struct err *err)
{
    struct pool *pool = run->pool;
    const struct pool_request *request = &run->request;
    const char *python = request->python ? request->python : pool->options.python;
    struct err ignored;
    const struct job_folders *folders = &request->job->folders;
    if (job_folders_workspace(folders)) /* its cell has a user of its own */
        return start_cold(run, err);
    run->environment = find_environment(pool, request->policy, folders, python);
    if (!run->environment && request->session) {
        int r = add_environment(pool, request->policy, folders, python, err);
        if (r < 0)
            return r;
        run->environment = find_environment(pool, request->policy, folders, python);
    }
    if (!run->environment) {
        (void)!add_environment(pool, request->policy, folders, python, &ignored);
        return start_cold(run, err);
    }
    if (start_warm(run, "pool", err))
        return 0;
    return run->cell ? err->code : wait_for_cell(run, err);
}

/* A run's cell goes back where it came from. */
static void
drop_cell(struct pool_run *run)
{
    if (run->waits)
        environment_forget(run->environment, &run->wait);
    if (run->cell && run->environment)
        environment_give_back(run->environment, run->cell);
    else
        cell_free(run->cell);
    run->waits = false;
    run->cell = NULL;
}

/* ---- runs ---- */

static void
release(struct pool_run *run)
{
    drop_cell(run);
    if (run->later)
        event_free(run->later);
    outcome_done(&run->outcome);
    free(run->image);
    free(run);
}

static void
unlink_run(struct pool_run *run)
{
    *(run->before ? &run->before->after : &run->pool->runs) = run->after;
    if (run->after)
        run->after->before = run->before;
}

static void
tell_end(struct pool_run *run)
{
    if (run->told)
        return;
    run->told = true;
    run->pool->count.busy--;
    run->pool->count.failed += run->outcome.status == STATUS_FAILED;
    run->request.on_end(run->request.context, &run->outcome);
}

/* Nobody stands on the run any more. One that has not ended was cancelled. */
static void
settle(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct pool_run *run = context;
    if (!run->told) {
        static const struct err cancelled = {-ECANCELED, "the run was cancelled"};
        drop_cell(run); /* ends it, and waits for that */
        outcome_fail(&run->outcome, &cancelled);
        if (run->request.session)
            run->outcome.session = SESSION_LOST;
        tell_end(run);
    }
    drop_cell(run);
    if (run->held)
        return;
    unlink_run(run);
    release(run);
}

int
pool_submit(struct pool *pool, const struct pool_request *request, struct pool_run **ret,
            struct err *err)
{
    struct pool_run *run = calloc(1, sizeof(*run));
    if (!run)
        return err_set(err, -ENOMEM, "no memory for a run");
    run->pool = pool;
    run->request = *request;
    outcome_init(&run->outcome);
    run->later = event_new(pool->options.base, -1, 0, settle, run);
    int r =
        run->later ? start_cell(run, err) : err_set(err, -ENOMEM, "no memory for a run");
    if (r < 0) {
        release(run);
        return r;
    }
    run->after = pool->runs;
    if (run->after)
        run->after->before = run;
    pool->runs = run;
    pool->count.runs++;
    pool->count.busy++;
    *ret = run;
    return 0;
}

int
pool_next(struct pool_run *run, const struct pool_request *request, struct err *err)
{
    const struct pool_request before = run->request;
    run->request = *request;
    const struct cell_request next = request_of(run, environment_image(run->environment));
    run->told = false;
    int r = cell_next(run->cell, &next, &run->outcome, err);
    if (r < 0) {
        run->request = before;
        run->told = true;
        return r;
    }
    run->pool->count.runs++;
    run->pool->count.busy++;
    return 0;
}

void
pool_interrupt(struct pool_run *run)
{
    if (run->cell && !run->told)
        cell_interrupt(run->cell);
    else if (!run->told)
        pool_cancel(run);
}

int
pool_files(const struct pool_run *run, struct files_task *task, struct files_work **ret,
           struct err *err)
{
    return run->cell ? cell_files(run->cell, task, ret, err)
                     : err_set(err, -ECHILD, "the session is still being made");
}

uint64_t
pool_memory_bytes(const struct pool_run *run)
{
    return run->cell ? cell_memory_bytes(run->cell) : 0;
}

void
pool_cancel(struct pool_run *run)
{
    run->cancelled = true;
    event_active(run->later, 0, 0);
}

void
pool_hold(struct pool_run *run)
{
    run->held = true;
}

void
pool_release(struct pool_run *run)
{
    run->held = false;
    event_active(run->later, 0, 0);
}

/* ---- the pool ---- */

int
pool_warm(struct pool *pool, const struct policy *policy, struct err *err)
{
    static const struct job_folders none;
    const char *python = pool->options.python;
    return find_environment(pool, policy, &none, python)
               ? 0
               : add_environment(pool, policy, &none, python, err);
}

/* Warm cells have no keeper of their own: one for the pool removes their groups if we are
 * killed. Their processes need none, the factory's death is theirs. */
static int
watch_over_groups(struct pool *pool, struct err *err)
{
    struct err none;
    if (cgroup_find(&pool->cgroup, &none) < 0)
        return 0; /* policies that require a group are refused, others are watched */
    return keeper_start(&pool->cgroup, "", true, &pool->keeper, err);
}

int
pool_new(const struct pool_options *options, struct pool **ret, struct err *err)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return err_set(err, -ENOMEM, "no memory for a pool");
    pool->options = *options;
    pool->most_idle = UINT64_MAX;
    if (options->idle_min == 0)
        pool->options.idle_min = IDLE_MIN;
    if (options->idle_max == 0)
        pool->options.idle_max = IDLE_MAX;
    if (!options->modules) {
        pool->options.modules = usual_modules;
        pool->options.modules_n = sizeof(usual_modules) / sizeof(*usual_modules);
    }
    int r = engine_find_guest(pool->guest, err);
    if (r == 0)
        r = watch_over_groups(pool, err);
    if (r < 0) {
        free(pool);
        return r;
    }
    *ret = pool;
    return 0;
}

void
pool_free(struct pool *pool)
{
    if (!pool)
        return;
    while (pool->runs) {
        struct pool_run *run = pool->runs;
        unlink_run(run);
        run->told = true;
        release(run);
    }
    for (size_t i = 0; i < pool->places_n; i++) {
        environment_free(pool->places[i].environment);
        free(pool->places[i].image);
    }
    keeper_done(&pool->keeper);
    free(pool);
}
