/*
 * One kind of warm cell: an interpreter with modules imported, under one policy. It keeps some
 * idle ones at hand, as many as lately were wanted, and replaces its zygote when that is old or
 * dead, without a pause.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "cell/cell.h"
#include "jail/cgroup.h"
#include "jail/image.h"
#include "policy/policy.h"

struct environment;

struct environment_options {
    struct event_base *base;     /* all borrowed for the environment's life */
    const struct policy *policy; /* copied */
    const struct image *image;
    const struct job_folders *folders; /* copied */
    const char *guest_file;
    const char *python;          /* as jobs name it; NULL: the default */
    const struct cgroup *cgroup; /* found; version 0: none */
    const char *const *modules;  /* to import ahead */
    size_t modules_n;
    uint64_t idle_min, idle_max;
    /* One line about why there are no warm cells for now; may be NULL. */
    void (*on_note)(void *context, const char *line);
    void *context;
};

struct environment_status {
    const char *policy; /* by name; the environment's */
    uint64_t zygotes;   /* that are ready, starting, or kept by their last cells */
    uint64_t idle, making, busy;
    uint64_t cells,
        age_ms;            /* of the zygote that makes them now: so far, and since when */
    uint64_t memory_bytes; /* of zygotes and idle cells, as far as it is known */
    bool ready;            /* cells can be made */
    bool rests;            /* its zygote was given back, until it is wanted */
};

int environment_new(const struct environment_options *options, struct environment **ret,
                    struct err *err) MUST_USE;
void environment_free(struct environment *environment); /* and all its cells, at once */

/* Whether a job under this policy may run in one of its cells: what the kernel holds from the
 * start is the same, and what is set at hand-over is no wider. */
bool environment_fits(const struct environment *environment, const struct policy *policy,
                      const struct job_folders *folders, const char *python);
bool environment_has_folders(const struct environment *environment);
const struct image *environment_image(const struct environment *environment);

/* An idle cell, or NULL; the caller gives it a job and frees it with environment_give_back. */
struct cell *environment_take(struct environment *environment);
/* Calls when an idle cell has come, once; false when none can come now. patient: one may come as
 * well from a zygote that is starting. */
struct environment_wait {
    void (*on_idle)(void *context);
    /* None will: the zygote has died, and another one is not ready. */
    void (*on_lost)(void *context);
    void *context;
    struct environment_wait *next;
};
bool environment_await(struct environment *environment, struct environment_wait *wait,
                       bool patient);
void environment_forget(struct environment *environment, struct environment_wait *wait);
/* After on_end of a cell that was taken. */
void environment_give_back(struct environment *environment, struct cell *cell);
void environment_status(const struct environment *environment,
                        struct environment_status *ret);

/* --- when memory is short --- */

/* At most so many cells are idle from now on; the oldest beyond that go. Runs that find none wait
 * for one that is made for them. Returns how many have gone. */
uint64_t environment_hold_idle(struct environment *environment, uint64_t most);
/* Since when nothing was asked of it; 0: something of it is in use, or it has no zygote. */
uint64_t environment_unused_ms(const struct environment *environment);
/* Gives back its zygote, which nobody uses now, until a run asks or it is woken. */
void environment_rest(struct environment *environment);
/* True when there was something to wake. */
bool environment_wake(struct environment *environment);
