/*
 * The supervisor's side of a factory and its zygote: start it, ask it for cells, hear what
 * becomes of them. Event-driven; makes nothing of a cell's own (sockets, streams, groups): those
 * come from the caller and go to the factory as descriptors.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/image.h"
#include "jail/jail.h"
#include "policy/policy.h"
#include "warm/factory.h"

struct zygote;

struct zygote_options {
    struct event_base *base;     /* all borrowed for the zygote's life */
    const struct policy *policy; /* of every cell: what the kernel holds is fixed here */
    const struct image *image;
    const struct job_folders *folders; /* that each cell sees */
    const char *guest_file;
    const char *const *modules; /* to import ahead; those not installed are left out */
    size_t modules_n;
    bool pids_by_kernel;
    void (*on_ready)(void *context);
    /* It can make no more cells, and those it had are ending. Free it from the event loop, not
     * from here. */
    void (*on_death)(void *context, const struct err *err);
    void *context;
};

/* What becomes of one cell. Descriptors are the callee's. */
struct zygote_cell {
    void (*on_made)(void *context, int tmp_fd, int proc_fd);
    void (*on_failed)(void *context, const struct err *err);
    /* It runs no more code, and will be told of as exited soon. May be NULL. */
    void (*on_ending)(void *context, int wait_status);
    void (*on_exited)(void *context, int wait_status, uint64_t cpu_us,
                      uint64_t peak_bytes);
    void (*on_interrupted)(void *context);
    /* err: code 0, or why something still runs beside the program. */
    void (*on_cleared)(void *context, const struct err *err);
    void (*on_gone)(void *context); /* nothing of it is left; the last call */
    void *context;
};

int zygote_start(const struct zygote_options *options, struct zygote **ret,
                 struct err *err) MUST_USE;
/* Ends every cell in it, at once; each one's on_gone is called. */
void zygote_free(struct zygote *zygote);
bool zygote_is_ready(const struct zygote *zygote);
/* What the zygote alone holds, without the files that it maps; 0: not known. */
uint64_t zygote_memory_bytes(const struct zygote *zygote);
/* The plan of its cells: its `when` decides about notifications. */
const struct jail_plan *zygote_plan(const struct zygote *zygote);

/* Asks for a cell; descriptors in the order of enum factory_fd, borrowed. */
int zygote_make(struct zygote *zygote, const int *fds, size_t fds_n,
                const struct zygote_cell *cell, uint32_t *ret_id,
                struct err *err) MUST_USE;
void zygote_kill(struct zygote *zygote, uint32_t id);
/* Kills whatever runs in the cell beside its program; its on_cleared follows. */
void zygote_clear(struct zygote *zygote, uint32_t id);
/* SIGINT to the cell's program; its on_interrupted follows. */
void zygote_interrupt(struct zygote *zygote, uint32_t id);
