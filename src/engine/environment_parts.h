/* The state of one kind of warm cells, shared by the files environment*.c; nobody else's. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/environment.h"
#include "job/job_folder.h"
#include "warm/zygote.h"

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
    uint64_t most;    /* idle; while memory is short */
    uint64_t used_us; /* when something was asked of it last */
    uint64_t wait_s;  /* before the next zygote */
    bool rests;       /* has no zygote on purpose */
    bool freeing;
};

/* Makes the cells that are wanted and not there. */
void environment_refill(struct environment *environment);
/* Starts the next zygote, when it is time. */
void environment_replace(struct environment *environment);
/* The oldest idle cell, of which there must be one, goes. */
void environment_dismiss(struct environment *environment);
