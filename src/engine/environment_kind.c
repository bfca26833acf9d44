/* What fits a kind of warm cells, what it holds, and what of it is given back when memory is short:
 * see environment.h. */
#include <string.h>

#include "base/clock.h"
#include "engine/environment_parts.h"

enum { US_PER_MS = 1000 };

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
                                       .ready = current != NULL,
                                       .rests = environment->rests};
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

/* --- when memory is short --- */

uint64_t
environment_hold_idle(struct environment *environment, uint64_t most)
{
    uint64_t gone = 0;
    bool wider = most > environment->most;
    environment->most = most;
    for (; environment->idle_n > most; gone++)
        environment_dismiss(environment);
    if (wider)
        environment_refill(environment);
    return gone;
}

uint64_t
environment_unused_ms(const struct environment *environment)
{
    if (!environment->current || environment->coming || environment->taken ||
        environment->making || environment->waits)
        return 0;
    return (clock_now_us() - environment->used_us) / US_PER_MS;
}

void
environment_rest(struct environment *environment)
{
    struct generation *generation = environment->current;
    environment->rests = true;
    event_del(environment->revive);
    environment->current = NULL;
    generation->next = environment->retired;
    environment->retired = generation;
    while (environment->idle)
        environment_dismiss(environment);
    event_active(environment->later, 0, 0); /* buries it, when its last cell has gone */
}

bool
environment_wake(struct environment *environment)
{
    if (!environment->rests)
        return false;
    environment->rests = false;
    environment_replace(environment);
    return true;
}
