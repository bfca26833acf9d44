/*
 * The supervisor: a unix socket in front of a pool of cells. It parses jobs, decides
 * whose turn it is, and carries output and outcomes back; docs/PROTOCOL.md is what stands
 * on the socket. One thread, one event loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

enum {
    SERVE_POLICIES_MAX = 64,
    SERVE_PYTHONS_MAX = 16,
    SERVE_PRELOAD_MAX = 64,
    SERVE_PATH_BYTES = 108, /* what a socket's address holds, NUL included */
};

struct serve_options {
    const char *socket; /* NULL: what systemd passed, else the user's own */
    const char *policies[SERVE_POLICIES_MAX]; /* files */
    size_t policies_n;
    const char *pythons[SERVE_PYTHONS_MAX]; /* the first is the default; may be none */
    size_t pythons_n;
    /* That zygotes import ahead; preload_given false: what most programs import. */
    const char *preload[SERVE_PRELOAD_MAX];
    size_t preload_n;
    bool preload_given;
    const char *ledger;    /* NULL: the user's own */
    uint64_t runs_max;     /* at once; 0: by the number of cores */
    uint64_t queue_max;    /* runs that wait */
    uint64_t memory_bytes; /* of all running cells together; 0: half of the host's */
    /* One line about itself, for whoever looks after it; borrowed until it returns. */
    void (*on_note)(void *context, const char *line);
    void *context;
};

/* Serves until it is told to stop (SIGTERM, SIGINT): then running jobs end first, unless
 * it is told again. An error means that it could not begin. */
int serve_run(const struct serve_options *options, struct err *err) MUST_USE;

/* Serves the client at the other end of a connected socket and nobody else: no place to listen on.
 * Takes fd over. Ends everything, without waiting for what runs, when that client is gone. */
int serve_run_one(const struct serve_options *options, int fd, struct err *err) MUST_USE;

/* $XDG_RUNTIME_DIR/adyton/adyton.sock; as root /run/adyton/adyton.sock. -ENOENT: this
 * user has no such place. */
int serve_default_socket(char path[SERVE_PATH_BYTES], struct err *err) MUST_USE;
