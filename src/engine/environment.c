/* Zygote generations and idle cells of one environment: see environment.h. */
#include "engine/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "warm/zygote.h"

enum {
    /* A zygote shares its hash seed and its address layout with its cells: it is replaced
     * after that many, or after that long, so that neither can be learned and used. */
    GENERATION_CELLS = 10000,
    GENERATION_S = 3600,
    MAKING_MAX = 4, /* asked of a factory at once */
    RETRY_S = 5,    /* before a zygote is replaced that died young; doubled each time */
    RETRY_MAX_S = 320,
    PAUSE_MS = 200, /* after a cell that did not come up */
    SHRINK_S = 15,  /* without a miss: one idle cell fewer is kept */
    US_PER_MS = 1000,
};

/* One zygote, and the cells that came from it. */
struct generation {
    struct generation *next;
    struct environment *environment;
    struct zygote *zygote;
    bool ready, dead;
    uint64_t made, live; /* cells asked for, and those not freed yet */
    uint64_t born_us;
};

/* A cell and where it is from. */
struct member {
    struct member *next; /* in the list that it stands in */
    struct generation *generation;
    struct cell *cell;
};

struct environment {
    struct environment_options options;
    struct policy policy;
    struct job_folders folders;
    struct generation *current; /* ready, or NULL */
    struct generation *coming;  /* starting, or NULL */
    struct generation *retired; /* their last cells are still there */
    struct member *making;      /* asked for */
    struct member *idle;
    struct member *taken;
    struct environment_wait *waits;
    struct event *later;  /* now, but not from here: buries, and looks for age */
    struct event *revive; /* starts a zygote */
    struct event *again;  /* makes cells again */
    struct event *shrink;
    uint64_t idle_n, making_n, target;
    uint64_t wait_s; /* before the next zygote */
    bool freeing;
};

static void refill(struct environment *environment);
static void dismiss_outdated(struct environment *environment);

/* --- generations --- */

static void
generation_free(struct generation *generation)
{
    zygote_free(generation->zygote);
    free(generation);
}

static void
lose_waits(struct environment *environment)
{
    while (environment->waits) {
        struct environment_wait *wait = environment->waits;
        environment->waits = wait->next;
        wait->on_lost(wait->context);
    }
}

static void
on_ready(void *context)
{
    struct generation *generation = context;
    struct environment *environment = generation->environment;
    generation->ready = true;
    if (environment->coming != generation)
        return;
    environment->coming = NULL;
    if (environment->current) {
        environment->current->next = environment->retired;
        environment->retired = environment->current;
    }
    environment->current = generation;
    dismiss_outdated(environment);
    refill(environment);
}

static void
replace(struct environment *environment)
{
    struct timeval wait = {.tv_sec = (time_t)environment->wait_s};
    if (!environment->coming && !event_pending(environment->revive, EV_TIMEOUT, NULL))
        event_add(environment->revive, &wait);
}

/* One that dies young will most likely do so again: a module of the preload list starts a
 * thread, or memory is short. It is tried more and more seldom. */
static void
learn_from_death(struct environment *environment, bool young, const struct err *err)
{
    enum { NOTE_BYTES = 512 };
    char note[NOTE_BYTES];
    uint64_t longer_s = environment->wait_s * 2;
    if (longer_s < RETRY_S)
        longer_s = RETRY_S;
    if (longer_s > RETRY_MAX_S)
        longer_s = RETRY_MAX_S;
    environment->wait_s = young ? longer_s : 0;
    if (!environment->options.on_note)
        return;
    snprintf(note, sizeof(note), "policy '%s': %s; %s, and one is started in %llu s",
             environment->policy.name, err->text,
             environment->current ? "there is another one" : "runs are cold without one",
             (unsigned long long)environment->wait_s);
    environment->options.on_note(environment->options.context, note);
}

/* Freed from the loop: its caller still stands on it. */
static void
on_death(void *context, const struct err *err)
{
    struct generation *generation = context;
    struct environment *environment = generation->environment;
    bool young =
        !generation->ready || clock_now_us() - generation->born_us < RETRY_S * 1000000ULL;
    generation->dead = true;
    generation->ready = false;
    if (environment->current != generation && environment->coming != generation)
        return; /* retired already: its last cells end, or have ended */
    generation->next = environment->retired;
    environment->retired = generation;
    if (environment->current == generation)
        environment->current = NULL;
    else
        environment->coming = NULL;
    if (!environment->current)
        lose_waits(environment);
    learn_from_death(environment, young, err);
    event_active(environment->later, 0, 0);
}

static int
start_generation(struct environment *environment, struct err *err)
{
    struct generation *generation = calloc(1, sizeof(*generation));
    if (!generation)
        return err_set(err, -ENOMEM, "no memory for a zygote");
    generation->environment = environment;
    generation->born_us = clock_now_us();
    const struct environment_options *options = &environment->options;
    const struct zygote_options zygote = {.base = options->base,
                                          .policy = &environment->policy,
                                          .image = options->image,
                                          .folders = &environment->folders,
                                          .guest_file = options->guest_file,
                                          .modules = options->modules,
                                          .modules_n = options->modules_n,
                                          .pids_by_kernel = options->cgroup->version != 0,
                                          .on_ready = on_ready,
                                          .on_death = on_death,
                                          .context = generation};
    int r = zygote_start(&zygote, &generation->zygote, err);
    if (r < 0) {
        free(generation);
        return r;
    }
    environment->coming = generation;
    return 0;
}

static bool
is_old(const struct generation *generation)
{
    return generation->made >= GENERATION_CELLS ||
           clock_now_us() - generation->born_us > GENERATION_S * 1000000ULL;
}

static void
bury_retired(struct environment *environment)
{
    for (struct generation **at = &environment->retired; *at;) {
        struct generation *generation = *at;
        if (generation->live > 0) {
            at = &generation->next;
            continue;
        }
        *at = generation->next;
        generation_free(generation);
    }
}

static void
on_later(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct environment *environment = context;
    bury_retired(environment);
    if (!environment->current || is_old(environment->current))
        replace(environment);
}

static void
on_revive(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct environment *environment = context;
    struct err err;
    if (environment->coming || start_generation(environment, &err) == 0)
        return;
    learn_from_death(environment, true, &err);
    replace(environment);
}

static void
on_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    refill(context);
}

/* --- members --- */

static bool
unlink_member(struct member **list, struct member *member)
{
    for (; *list; list = &(*list)->next)
        if (*list == member) {
            *list = member->next;
            return true;
        }
    return false;
}

static void
append_member(struct member **list, struct member *member)
{
    while (*list)
        list = &(*list)->next;
    member->next = NULL;
    *list = member;
}

static void
member_free(struct member *member)
{
    struct generation *generation = member->generation;
    cell_free(member->cell);
    generation->live--;
    if (generation->live == 0 && !generation->environment->freeing)
        event_active(generation->environment->later, 0, 0);
    free(member);
}

/* An idle cell goes. From here it is in no list: a job must not be given to it. */
static void
dismiss(struct environment *environment, struct member *member)
{
    unlink_member(&environment->idle, member);
    environment->idle_n--;
    cell_stop(member->cell); /* on_lost frees it */
}

static struct member *
oldest_idle(const struct environment *environment)
{
    struct member *member = environment->idle;
    while (member && member->next)
        member = member->next;
    return member;
}

/* The newest idle cell gets the next job, so those of a retired zygote would stay, and keep it.
 * One goes when its zygote is replaced, and one for each that comes: there are always others. */
static void
dismiss_outdated(struct environment *environment)
{
    struct member *oldest = oldest_idle(environment);
    if (oldest && environment->current && oldest->generation != environment->current)
        dismiss(environment, oldest);
}

static void
on_idle(void *context)
{
    struct member *member = context;
    struct environment *environment = member->generation->environment;
    unlink_member(&environment->making, member);
    environment->making_n--;
    append_member(&environment->idle, member); /* the oldest is the readiest */
    environment->idle_n++;
    dismiss_outdated(environment);
    struct environment_wait *wait = environment->waits;
    if (wait) {
        environment->waits = wait->next;
        wait->on_idle(wait->context);
    }
    refill(environment);
}

/* It failed to come up, or ended while it was idle: by our wish, or by somebody's kill. Whoever
 * waits and has nothing more to hope for runs cold. */
static void
on_lost(void *context, const struct err *err)
{
    struct member *member = context;
    struct environment *environment = member->generation->environment;
    struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    if (unlink_member(&environment->idle, member))
        environment->idle_n--;
    else if (unlink_member(&environment->making, member))
        environment->making_n--;
    member_free(member);
    if (!environment->current || (err && environment->making_n == 0))
        lose_waits(environment);
    if (!environment->freeing && !event_pending(environment->again, EV_TIMEOUT, NULL))
        event_add(environment->again, &pause);
}

static int
make_member(struct environment *environment)
{
    struct err err;
    struct generation *generation = environment->current;
    struct member *member = calloc(1, sizeof(*member));
    if (!member)
        return -ENOMEM;
    member->generation = generation;
    const struct cell_warm_events events = {on_idle, on_lost, member};
    int r =
        cell_prepare(environment->options.base, generation->zygote, &environment->policy,
                     environment->options.cgroup, &events, &member->cell, &err);
    if (r < 0) {
        free(member);
        return r;
    }
    member->next = environment->making;
    environment->making = member;
    generation->made++;
    generation->live++;
    environment->making_n++;
    return 0;
}

static uint64_t
waiting(const struct environment *environment)
{
    uint64_t n = 0;
    for (const struct environment_wait *wait = environment->waits; wait;
         wait = wait->next)
        n++;
    return n;
}

static void
refill(struct environment *environment)
{
    if (!environment->current || environment->freeing)
        return;
    uint64_t want = environment->target + waiting(environment);
    while (environment->making_n < MAKING_MAX &&
           environment->idle_n + environment->making_n < want &&
           make_member(environment) == 0)
        continue;
    if (is_old(environment->current))
        replace(environment);
}

static void
on_shrink(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct environment *environment = context;
    if (environment->target > environment->options.idle_min)
        environment->target--;
    if (environment->idle_n > environment->target && environment->idle)
        dismiss(environment, oldest_idle(environment));
}

/* --- the door --- */

int
environment_new(const struct environment_options *options, struct environment **ret,
                struct err *err)
{
    struct environment *environment = calloc(1, sizeof(*environment));
    struct timeval shrink = {.tv_sec = SHRINK_S};
    if (!environment)
        return err_set(err, -ENOMEM, "no memory for an environment");
    environment->options = *options;
    environment->folders = *options->folders;
    environment->target = options->idle_min;
    environment->later = event_new(options->base, -1, 0, on_later, environment);
    environment->revive = event_new(options->base, -1, 0, on_revive, environment);
    environment->again = event_new(options->base, -1, 0, on_again, environment);
    environment->shrink =
        event_new(options->base, -1, EV_PERSIST, on_shrink, environment);
    int r = environment->later && environment->revive && environment->again &&
                    environment->shrink && event_add(environment->shrink, &shrink) == 0
                ? policy_copy(options->policy, &environment->policy, err)
                : err_set(err, -ENOMEM, "no memory for an environment");
    if (r == 0)
        r = start_generation(environment, err);
    if (r < 0) {
        environment_free(environment);
        return r;
    }
    *ret = environment;
    return 0;
}

static void
free_members(struct member **list)
{
    while (*list) {
        struct member *member = *list;
        *list = member->next;
        member_free(member);
    }
}

static void
free_generations(struct generation *list)
{
    while (list) {
        struct generation *next = list->next;
        generation_free(list);
        list = next;
    }
}

void
environment_free(struct environment *environment)
{
    if (!environment)
        return;
    environment->freeing = true;
    free_members(&environment->making);
    free_members(&environment->idle);
    free_generations(environment->retired);
    free_generations(environment->current);
    free_generations(environment->coming);
    struct event *const events[] = {environment->later, environment->revive,
                                    environment->again, environment->shrink};
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (events[i])
            event_free(events[i]);
    policy_done(&environment->policy);
    free(environment);
}

static bool
same_list(const struct policy_list *a, const struct policy_list *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

bool
environment_fits(const struct environment *environment, const struct policy *policy,
                 const struct job_folders *folders, const char *python)
{
    const struct policy *own = &environment->policy;
    const char *ours = environment->options.python;
    bool same_python = python == ours || (python && ours && strcmp(python, ours) == 0);
    return same_python && policy->isolation == own->isolation &&
           policy->processes == own->processes && policy->network == own->network &&
           policy->disk_bytes == own->disk_bytes &&
           policy->disk_inodes == own->disk_inodes && policy->cgroup == own->cgroup &&
           policy->cpus == own->cpus && policy->memory_bytes <= own->memory_bytes &&
           policy->pids <= own->pids && policy->file_bytes <= own->file_bytes &&
           policy->open_files <= own->open_files &&
           same_list(&policy->read_paths, &own->read_paths) &&
           job_folders_alike(folders, &environment->folders);
}

bool
environment_has_folders(const struct environment *environment)
{
    return environment->folders.n > 0;
}

const struct image *
environment_image(const struct environment *environment)
{
    return environment->options.image;
}

struct cell *
environment_take(struct environment *environment)
{
    struct member *member = environment->idle;
    if (!member) {
        /* More are wanted than were kept. */
        uint64_t more = environment->target * 2;
        uint64_t most = environment->options.idle_max;
        environment->target = more < most ? more : most;
        return NULL;
    }
    environment->idle = member->next;
    environment->idle_n--;
    member->next = environment->taken;
    environment->taken = member;
    return member->cell;
}

bool
environment_await(struct environment *environment, struct environment_wait *wait,
                  bool patient)
{
    if (!environment->current && !(patient && environment->coming))
        return false;
    struct environment_wait **at = &environment->waits;
    while (*at)
        at = &(*at)->next;
    wait->next = NULL;
    *at = wait;
    refill(environment);
    return true;
}

void
environment_forget(struct environment *environment, struct environment_wait *wait)
{
    for (struct environment_wait **at = &environment->waits; *at; at = &(*at)->next)
        if (*at == wait) {
            *at = wait->next;
            return;
        }
}

void
environment_give_back(struct environment *environment, struct cell *cell)
{
    for (struct member *member = environment->taken; member; member = member->next)
        if (member->cell == cell) {
            unlink_member(&environment->taken, member);
            member_free(member);
            break;
        }
    refill(environment);
}

static void
add_generations(const struct generation *generation, struct environment_status *sum)
{
    for (; generation; generation = generation->next) {
        if (generation->dead)
            continue;
        sum->zygotes++;
        sum->memory_bytes += zygote_memory_bytes(generation->zygote);
    }
}

void
environment_status(const struct environment *environment, struct environment_status *ret)
{
    const struct generation *current = environment->current;
    *ret = (struct environment_status){.policy = environment->policy.name,
                                       .idle = environment->idle_n,
                                       .making = environment->making_n,
                                       .ready = current != NULL};
    add_generations(current, ret);
    add_generations(environment->coming, ret);
    add_generations(environment->retired, ret);
    if (current) {
        ret->cells = current->made;
        ret->age_ms = (clock_now_us() - current->born_us) / US_PER_MS;
    }
    for (const struct member *at = environment->idle; at; at = at->next)
        ret->memory_bytes += cell_memory_bytes(at->cell);
    for (const struct member *at = environment->taken; at; at = at->next)
        ret->busy++;
}
