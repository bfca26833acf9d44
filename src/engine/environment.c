/* Zygote generations and idle cells of one environment: see environment.h. */
#include "engine/environment_parts.h"

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
    /* Sessions keep their places in a factory: another one begins before this one is full. */
    GENERATION_LIVE = FACTORY_CELLS_MAX / 4 * 3,
    MAKING_MAX = 4, /* asked of a factory at once */
    RETRY_S = 5,    /* before a zygote is replaced that died young; doubled each time */
    RETRY_MAX_S = 320,
    PAUSE_MS = 200, /* after a cell that did not come up */
    SHRINK_S = 15,  /* without a miss: one idle cell fewer is kept */
    US_PER_MS = 1000,
};

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
    environment_refill(environment);
}

void
environment_replace(struct environment *environment)
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
    return generation->made >= GENERATION_CELLS || generation->live >= GENERATION_LIVE ||
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
    if (!environment->rests && (!environment->current || is_old(environment->current)))
        environment_replace(environment);
}

static void
on_revive(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct environment *environment = context;
    struct err err;
    if (environment->coming || environment->rests ||
        start_generation(environment, &err) == 0)
        return;
    learn_from_death(environment, true, &err);
    environment_replace(environment);
}

static void
on_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    environment_refill(context);
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

/* The oldest idle cell goes; they stand in the order in which they came. From here it is in no
 * list: a job must not be given to it. */
void
environment_dismiss(struct environment *environment)
{
    struct member *member = environment->idle;
    environment->idle = member->next;
    environment->idle_n--;
    cell_stop(member->cell); /* on_lost frees it */
}

/* Those of a retired zygote keep it. One goes when its zygote is replaced, and one for each that
 * comes: there are always others. */
static void
dismiss_outdated(struct environment *environment)
{
    const struct member *oldest = environment->idle;
    if (oldest && environment->current && oldest->generation != environment->current)
        environment_dismiss(environment);
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
    environment_refill(environment);
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

void
environment_refill(struct environment *environment)
{
    if (!environment->current || environment->freeing)
        return;
    uint64_t kept =
        environment->target < environment->most ? environment->target : environment->most;
    uint64_t want = kept + waiting(environment);
    const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    int r = 0;
    while (r == 0 && environment->making_n < MAKING_MAX &&
           environment->idle_n + environment->making_n < want)
        r = make_member(environment);
    /* Its factory has no room for the wish, or we none for a cell: somebody may wait for it. */
    if (r < 0 && !event_pending(environment->again, EV_TIMEOUT, NULL))
        event_add(environment->again, &pause);
    if (is_old(environment->current))
        environment_replace(environment);
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
        environment_dismiss(environment);
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
    environment->most = UINT64_MAX;
    environment->used_us = clock_now_us();
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

struct cell *
environment_take(struct environment *environment)
{
    struct member *member = environment->idle;
    environment->used_us = clock_now_us();
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
    struct err err;
    if (environment->rests) { /* it is wanted: by who cannot wait, the next time */
        environment->rests = false;
        if (!environment->coming && start_generation(environment, &err) < 0)
            learn_from_death(environment, true, &err);
        if (!environment->coming)
            environment_replace(environment);
    }
    if (!environment->current && !(patient && environment->coming))
        return false;
    struct environment_wait **at = &environment->waits;
    while (*at)
        at = &(*at)->next;
    wait->next = NULL;
    *at = wait;
    environment_refill(environment);
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
    environment_refill(environment);
}
