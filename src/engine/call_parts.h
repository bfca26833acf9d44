/* One connection to a supervisor, from a client's side; for the files call*.c. */
#pragma once

#include <jansson.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "engine/protocol.h"

struct call {
    int fd;
    char path[128];
    struct buf in;
    size_t taken; /* of the frame that was given out last */
};

/* -ENOENT: nobody listens there, or nothing of ours is there. */
int call_open(const char *path, struct call *ret, struct err *err) MUST_USE;
void call_close(struct call *call);
/* fd -1: none. A supervisor that has hung up is no error yet: it may have said why. */
int call_send(const struct call *call, struct span bytes, int fd,
              struct err *err) MUST_USE;
/* The next frame; the caller drops it. */
int call_receive(struct call *call, json_t **ret, struct err *err) MUST_USE;
int call_put_hello(struct buf *out) MUST_USE;
struct job;
/* ,"files":[…] */
int call_put_files(struct buf *out, const struct job *job) MUST_USE;
/* A string of a message; "" when there is none. */
const char *call_text(const json_t *message, const char *name);
