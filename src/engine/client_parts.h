/* The supervisor that a client carries; for the files client*.c. */
#pragma once

#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/serve.h"

struct carried {
    pid_t pid; /* 0: none */
    int pidfd;
};

/* Starts one; *ret_fd is the client's end. */
int carried_start(const struct serve_options *options, struct carried *ret, int *ret_fd,
                  struct err *err) MUST_USE;
/* The client's end is closed: waits for it to end everything, and ends it when it does not. */
void carried_end(struct carried *carried);
