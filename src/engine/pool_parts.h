/* The supervisor's cells, by kind; shared by the files pool*.c, nobody else's. */
#pragma once

#include "cell/keeper.h"
#include "engine/engine_parts.h"
#include "engine/environment.h"
#include "engine/pool.h"
#include "jail/cgroup.h"
#include "jail/image.h"

struct pool_place {
    struct environment *environment;
    struct image *image;
};

struct pool {
    struct pool_options options;
    struct cgroup cgroup; /* whose parents warm cells share; version 0: none */
    struct keeper keeper;
    struct pool_place places[POOL_KINDS_MAX];
    size_t places_n;
    char guest[ENGINE_GUEST_BYTES];
    struct pool_run *runs; /* those that are not released yet */
    uint64_t most_idle;    /* of each kind, while memory is short */
    struct pool_status count;
};
