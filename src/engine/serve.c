/*
 * The supervisor's life: what it needs before it opens, the loop, and an end at which
 * nothing is cut off that was begun, unless it is told twice.
 */
#include "engine/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/serve_parts.h"
#include "jail/cgroup.h"

enum { RUNS_PER_CORE = 4, NOTE_BYTES = 512 };

/* For clients to read their last outcome. */
static const struct timeval last_patience = {.tv_sec = 5};

void
serve_note(struct serve *serve, const char *format, ...)
{
    char line[NOTE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (serve->options->on_note)
        serve->options->on_note(serve->options->context, line);
}

/* ---- signals ---- */

void
serve_check_drained(struct serve *serve)
{
    if (!serve->draining || serve->jobs_n > 0 || serve->files_n > 0)
        return;
    if (serve->pending_bytes == 0)
        event_base_loopbreak(serve->base);
    else if (!event_pending(serve->on_last, EV_TIMEOUT, NULL))
        event_add(serve->on_last, &last_patience);
}

static void
on_last(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    const struct serve *serve = context;
    event_base_loopbreak(serve->base);
}

static void
on_stop(evutil_socket_t number, short what, void *context)
{
    (void)what;
    struct serve *serve = context;
    if (serve->draining) {
        serve_note(serve, "told to end again: %zu runs are cut off", serve->jobs_n);
        event_base_loopbreak(serve->base);
        return;
    }
    serve->draining = true;
    serve_systemd_notify("STOPPING=1");
    serve_job_refuse_waiting(serve);
    serve_note(serve, "%s: ends when %zu runs have ended",
               number == SIGINT ? "interrupted" : "told to end", serve->jobs_n);
    serve_check_drained(serve);
}

static void
on_reload(evutil_socket_t number, short what, void *context)
{
    (void)number;
    (void)what;
    serve_policies_reload(context);
}

static int
watch_signals(struct serve *serve, struct err *err)
{
    static const struct {
        int number;
        event_callback_fn callback;
    } signals[] = {{SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGHUP, on_reload}};
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        serve->on_signals[i] =
            evsignal_new(serve->base, signals[i].number, signals[i].callback, serve);
        if (!serve->on_signals[i] || evsignal_add(serve->on_signals[i], NULL) < 0)
            return err_set(err, -ENOMEM, "watch for signals");
    }
    /* Readers that are gone, and files that may grow no further: errors, no deaths. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return 0;
}

/* ---- the beginning ---- */

static void
on_accept_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    const struct serve *serve = context;
    event_add(serve->on_accept, NULL);
}

static int
watch_socket(struct serve *serve, struct err *err)
{
    int r = serve_socket_open(serve, err);
    if (r < 0)
        return r;
    serve->on_accept = event_new(serve->base, serve->listener, EV_READ | EV_PERSIST,
                                 serve_accept, serve);
    serve->on_accept_again = event_new(serve->base, -1, 0, on_accept_again, serve);
    if (!serve->on_accept || !serve->on_accept_again ||
        event_add(serve->on_accept, NULL) < 0)
        return err_set(err, -ENOMEM, "no memory for the socket's events");
    return 0;
}

static uint64_t
half_of_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes / 2 : 1ULL << 30;
}

static void
set_bounds(struct serve *serve)
{
    const struct serve_options *options = serve->options;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t runs = options->runs_max > 0
                        ? options->runs_max
                        : (uint64_t)(cores > 0 ? cores : 1) * RUNS_PER_CORE;
    serve->queue = (struct queue){.waiting_max = options->queue_max,
                                  .running_max = runs,
                                  .memory_max_bytes = options->memory_bytes > 0
                                                          ? options->memory_bytes
                                                          : half_of_memory()};
    /* A client has one descriptor, a running cell about ten. */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)!setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Whatever a supervisor that was killed left behind. What is missing here is for the runs
 * to tell: their policies know whether it matters. */
static void
clean_house(void)
{
    struct cgroup cgroup;
    struct err err;
    if (cgroup_find(&cgroup, &err) == 0)
        cgroup_sweep(&cgroup);
}

/* The default policy and the operator's own are what clients will name. One that cannot be
 * warm here runs cold, and its runs say why they cannot, where they cannot. */
static void
warm_up(struct serve *serve)
{
    const struct serve_options *options = serve->options;
    struct err err;
    for (size_t i = 0; i < serve->policies_n; i++) {
        const struct serve_policy *loaded = serve->policies[i];
        if (!loaded->path && strcmp(loaded->policy.name, policy_default) != 0)
            continue;
        if (pool_warm(serve->pool, &loaded->policy, &err) < 0 && options->on_note)
            options->on_note(options->context, err.text);
    }
}

static int
begin(struct serve *serve, struct err *err)
{
    const struct serve_options *options = serve->options;
    serve->base = event_base_new();
    if (!serve->base)
        return err_set(err, -ENOMEM, "no memory for an event loop");
    set_bounds(serve);
    clean_house();
    const struct pool_options pool = {
        .base = serve->base,
        .python = options->pythons_n > 0 ? options->pythons[0] : NULL,
        .modules = options->preload_given ? options->preload : NULL,
        .modules_n = options->preload_n,
        .on_note = options->on_note,
        .context = options->context,
        .idle_max = serve->queue.running_max};
    int r = watch_signals(serve, err);
    if (r == 0)
        r = serve_policies_load(serve, err);
    if (r == 0)
        r = serve_record_open(serve, err);
    if (r == 0)
        r = pool_new(&pool, &serve->pool, err);
    serve->on_last = event_new(serve->base, -1, 0, on_last, serve);
    if (r == 0 && !serve->on_last)
        r = err_set(err, -ENOMEM, "no memory for the loop's events");
    if (r == 0)
        warm_up(serve);
    if (r == 0)
        r = serve_pressure_open(serve, err);
    return r;
}

static void
finish(struct serve *serve)
{
    struct event **const events[] = {&serve->on_accept,     &serve->on_accept_again,
                                     &serve->on_last,       &serve->on_signals[0],
                                     &serve->on_signals[1], &serve->on_signals[2]};
    serve_socket_close(serve);
    pressure_done(&serve->pressure);
    serve_job_record_late(serve);
    pool_free(serve->pool);
    serve_job_free_all(serve);
    serve_session_end_all(serve, "the supervisor has ended");
    while (serve->clients)
        serve_client_free(serve->clients);
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (*events[i])
            event_free(*events[i]);
    serve_session_free_all(serve);
    serve_record_close(serve);
    serve_policies_done(serve);
    if (serve->base)
        event_base_free(serve->base);
    free(serve);
}

static struct serve *
serve_new(const struct serve_options *options)
{
    struct serve *serve = calloc(1, sizeof(*serve));
    if (!serve)
        return NULL;
    serve->options = options;
    serve->listener = -1;
    serve->started_us = clock_now_us();
    serve->rates.second = serve->started_us / 1000000U;
    return serve;
}

int
serve_run(const struct serve_options *options, struct err *err)
{
    struct serve *serve = serve_new(options);
    if (!serve)
        return err_set(err, -ENOMEM, "no memory for a supervisor");
    int r = begin(serve, err);
    if (r == 0)
        r = watch_socket(serve, err);
    if (r == 0) {
        serve_note(serve, "listens on %s", serve->socket);
        serve_systemd_notify("READY=1");
        event_base_dispatch(serve->base);
    }
    finish(serve);
    return r;
}

int
serve_run_one(const struct serve_options *options, int fd, struct err *err)
{
    AUTO_CLOSE int own = fd;
    struct serve *serve = serve_new(options);
    if (!serve)
        return err_set(err, -ENOMEM, "no memory for a supervisor");
    serve->is_private = true;
    int r = begin(serve, err);
    if (r == 0)
        r = fd_set_nonblocking(own);
    if (r == 0)
        r = serve_client_welcome(serve, &own, err);
    if (r == 0)
        event_base_dispatch(serve->base);
    finish(serve);
    return r;
}
