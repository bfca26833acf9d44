/* Of all kinds of cells: what they hold, and what is given back when memory is short. */
#include "engine/pool_parts.h"

uint64_t
pool_hold_idle(struct pool *pool, uint64_t most)
{
    uint64_t gone = 0;
    for (size_t i = 0; i < pool->places_n; i++)
        gone += environment_hold_idle(pool->places[i].environment, most);
    pool->most_idle = most;
    return gone;
}

bool
pool_give_zygote(struct pool *pool, uint64_t unused_ms)
{
    struct environment *longest = NULL;
    for (size_t i = 0; i < pool->places_n; i++) {
        uint64_t ms = environment_unused_ms(pool->places[i].environment);
        if (ms == 0 || ms < unused_ms)
            continue;
        longest = pool->places[i].environment;
        unused_ms = ms;
    }
    if (longest)
        environment_rest(longest);
    return longest != NULL;
}

bool
pool_wake_zygote(struct pool *pool)
{
    for (size_t i = 0; i < pool->places_n; i++)
        if (environment_wake(pool->places[i].environment))
            return true;
    return false;
}

void
pool_status(const struct pool *pool, struct pool_status *ret)
{
    *ret = pool->count;
    for (size_t i = 0; i < pool->places_n; i++) {
        struct environment_status status;
        environment_status(pool->places[i].environment, &status);
        ret->zygotes += status.zygotes;
        ret->idle += status.idle;
        ret->memory_bytes += status.memory_bytes;
        ret->kinds[ret->kinds_n++] =
            (struct pool_kind){.policy = status.policy,
                               .ready = status.ready,
                               .rests = status.rests,
                               .idle = status.idle,
                               .making = status.making,
                               .busy = status.busy,
                               .cells = status.cells,
                               .age_ms = status.age_ms,
                               .memory_bytes = status.memory_bytes};
    }
}
