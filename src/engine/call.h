/*
 * The other end of the supervisor's socket: finds it, asks for one run, and fills an
 * outcome as if the run had been ours. Blocks; waits for nothing but the socket.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "engine/data_folders.h"
#include "job/job.h"
#include "job/outcome.h"

enum { CALL_LIMITS_MAX = 64 };

struct call_limit {
    const char *name; /* of a policy's field */
    const char *text;
};

struct call_request {
    const char *socket;  /* NULL: the user's own */
    const char *session; /* NULL: a run of its own */
    const char *policy;  /* a name that the supervisor knows; not with a session */
    struct call_limit limits[CALL_LIMITS_MAX];
    size_t limits_n;
    const struct job *job;
    const struct data_folder *data; /* paths are made absolute */
    size_t data_n;
    const char *workspace; /* NULL: none */
    const char *python;    /* NULL: the supervisor's; a path is made absolute */
    int collect_dir;       /* of a job that collects */
    uint64_t patience_ms;  /* how long a busy supervisor is asked again */
    void (*on_output)(void *context, int stream, struct span bytes); /* may be NULL */
    /* Each message about the run as it comes but the last, output too; on_output is then given
     * only what the outcome has and no message had. May be NULL. */
    void (*on_message)(void *context, const json_t *message);
    void *context;
};

enum call_result {
    CALL_ENDED,   /* the run has ended, and *ret is its outcome */
    CALL_NOBODY,  /* nobody listens; nothing was run */
    CALL_UNFIT,   /* the job cannot be said on a socket; nothing was sent */
    CALL_REFUSED, /* nothing was run: the request is wrong there, and err says why */
    CALL_FAILED,  /* the supervisor is gone or does not answer; err says so */
};

/* *ret is an initialised outcome after CALL_ENDED only. */
enum call_result call_run(const struct call_request *request, struct outcome *ret,
                          struct err *err) MUST_USE;

/* One request that is answered with one message, in *ret: the first that is of one of the types,
 * which end with NULL. -ENOENT: nobody listens. -EPROTO: it is refused, and err says why. */
int call_ask(const char *socket, const json_t *request, const char *const *types,
             json_t **ret, struct err *err) MUST_USE;
/* Files of a session; see docs/PROTOCOL.md. -ENOENT: nobody listens; -EIDRM: no such session, or it
 * has ended; -ENODATA: that file; -EPROTO: refused otherwise. err says why. */
int call_put_session(const char *socket, const char *session, const struct job *job,
                     struct err *err) MUST_USE;
/* path NULL: all files, as a tar. on_data may fail, with err, and that is returned. *ret is what
 * was said at the end. What came is what was sent: its length and hash are compared. */
struct call_data {
    int (*on_data)(void *context, struct span bytes, struct err *err);
    void *context;
};
int call_get_session(const char *socket, const char *session, const char *path,
                     const struct call_data *to, json_t **ret, struct err *err) MUST_USE;
int call_list_session(const char *socket, const char *session, json_t **ret,
                      struct err *err) MUST_USE;
/* The supervisor's status as JSON text. -ENOENT: nobody listens. */
int call_status(const char *socket, struct buf *ret, struct err *err) MUST_USE;
