/*
 * What a verb must meet inside a cell: the answer, and the layer that gives it. Data
 * only; the Python driver reads the same rows through `probe --table`.
 */
#pragma once

#include <stddef.h>

#include "probe.h"

/* What the system call table decides, before any other layer is asked. */
enum decision {
    PASSES,  /* let through: another layer answers, or nothing needs to */
    REFUSED, /* EPERM or EACCES, and the supervisor records an incident */
    QUIET,   /* EPERM or EACCES; nothing is recorded, because libraries try it */
    UNKNOWN, /* ENOSYS, as from an older kernel; nothing is recorded */
    ENDED,   /* attack-only: the supervisor ends the cell, naming the call */
    KILLED,  /* SIGSYS by the filter itself: another architecture's door */
    DECISIONS,
};

/* Layers that can be applied alone; as a bit set in struct expect. */
enum layer {
    LAYER_SECCOMP = 1 << 0,
    LAYER_NAMESPACES = 1 << 1, /* the cell's namespaces and its own root */
    LAYER_LANDLOCK = 1 << 2,
    LAYER_CAPABILITIES = 1 << 3, /* none, and no way back to any */
    LAYER_RLIMITS = 1 << 4,
    LAYER_OWN = 0, /* nothing refuses it: it reaches only what is the cell's own */
};
enum { LAYERS = 5 };

struct expect {
    const char
        *verb; /* a name, or the beginning of several: "setns_*". The first row counts */
    const char
        *call; /* how the act of the incident begins; NULL where none is recorded */
    enum decision seccomp;
    const char *answers; /* accepted in the whole cell: "EACCES ENOENT", "ok"; NULL: what
                            the decision implies */
    enum layer layer;    /* which must refuse it in the whole cell */
    unsigned alone;      /* which must refuse it with no other there */
    const char *control; /* why a root outside may be refused too; NULL: no reason */
};

extern const struct expect expects[];
extern const size_t expects_n;

const char *layer_name(unsigned layer);
const char *decision_name(enum decision decision);

/* The row's answers, or what its decision implies. */
const char *expect_answers(const struct expect *expect);
/* The row of a verb, or NULL. */
const struct expect *expect_find(const char *verb);
/* Whether `answer` ("ok", an errno's or a signal's name) is one that the row accepts. */
bool expect_accepts(const struct expect *expect, const char *answer);
/* All rows, joined to their verbs, as one JSON document on stdout. Returns 1 when a verb
 * has no row; a row without a verb is named on stderr, because machines differ. */
int expect_print(void);
