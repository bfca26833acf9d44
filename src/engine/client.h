/*
 * A supervisor's client for programs that have an event loop of their own: any number of requests
 * at once on one connection, each with its own callback. It finds the user's supervisor, or
 * carries one: a private supervisor, a child that serves this client alone, on a pair of sockets
 * that nobody else can reach, and ends with everything in it when the client does, however that
 * ends. What stands on the socket is docs/PROTOCOL.md.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/serve.h"

enum { CLIENT_REQUESTS_MAX = 1024 }; /* at once */

struct client;

struct client_options {
    const char *socket; /* NULL: the user's own place */
    /* When nobody listens there. It is a fork of this process, made in client_open: by one that
     * has a single thread, and watches for no signals in an event loop yet. */
    bool carry;
    bool alone;                        /* even when somebody listens */
    const struct serve_options *serve; /* of a carried one; its socket does not count */
    /* The connection is over, err says why; every request has had its last call. It may close the
     * client. */
    void (*on_gone)(void *context, const struct err *err);
    void *context;
};

/* -ENOENT: nobody listens, and none is to be carried. Requests may follow at once. */
int client_open(struct event_base *base, const struct client_options *options,
                struct client **ret, struct err *err) MUST_USE;
/* No callback is called any more. A carried supervisor ends, and is waited for. */
void client_close(struct client *client);
bool client_carries(const struct client *client);

/* Each message about a request, in order, borrowed for the call. last: none follows. NULL: the
 * connection is over, and what came of the request is not known. */
typedef void client_hear(void *context, const json_t *message, bool last);

/* Sends a request of a type that has an `id`, which is set here, in the caller's object. fd: a
 * folder that goes with it, or -1. hear is not called before this returns. *ret_number names the
 * request, from 1. -EAGAIN: too many at once; -EMSGSIZE: longer than a request may be. */
int client_ask(struct client *client, json_t *request, int fd, client_hear *hear,
               void *context, uint64_t *ret_number, struct err *err) MUST_USE;
/* Asks for its end; its last message still comes. Nothing happens when that came already. */
void client_cancel(struct client *client, uint64_t number);
/* The same, and hear is not called again. */
void client_forget(struct client *client, uint64_t number);
/* While the answers find no room with whoever asked: nothing is read, and the supervisor drops or
 * holds back what a client does not read. */
void client_pause(struct client *client, bool pause);
