/* One verb under one layer of the jail and no other. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "expect.h"
#include "jail/jail.h"

struct stand {
    struct policy policy,
        unscoped; /* the default profile; the same in landlock isolation */
    struct image image;
    struct jail_plan plan, landlock; /* of the two policies */
    pid_t target;                    /* who is attacked: host_hold's process */
};

enum {
    ANSWER_BYTES = 32,
    LAYER_NONE = 0,
    LAYER_ALL = 1 << LAYERS, /* the whole jail, entered and sealed in its own order */
};

/* Plans for the default profile; `folder` is world-readable and empty. */
int stand_init(struct stand *stand, const char *folder, struct err *err) MUST_USE;

/* The verb's answer ("ok", an errno's or a signal's name, "ended") with `layer` alone
 * applied, or LAYER_NONE, or LAYER_ALL. The error, when the layer itself could not be
 * applied. */
int stand_try(const struct stand *stand, const struct verb *verb, unsigned layer,
              char answer[ANSWER_BYTES], struct err *err) MUST_USE;
