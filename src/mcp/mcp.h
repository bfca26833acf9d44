/*
 * The core of the MCP server: JSON-RPC messages of a client in, messages out, and between them the
 * tools, which are requests to a supervisor. It knows nothing of what carries the messages.
 *
 * Both eras of the protocol are spoken, and each request decides for itself: 2025-11-25 and older
 * (a handshake with `initialize`), and 2026-07-28 (`server/discover`, the version in each request's
 * `_meta`). Source: modelcontextprotocol.io/specification.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"
#include "engine/client.h"

enum {
    MCP_MESSAGE_BYTES_MAX = 32 * 1024 * 1024, /* of one from the client */
    MCP_REPLY_BYTES_MAX = 9 * 1000 * 1000,    /* clients hang up at 10 MB */
    MCP_CALLS_MAX = 256,                      /* at once */
    MCP_SESSIONS_MAX =
        32, /* that this server has opened: beyond, the one longest unused ends */
};

struct mcp;

struct mcp_options {
    struct event_base *base;
    /* How to reach a supervisor; on_gone and context are ours. Opened when a tool is about to be
     * used: a client may start a server only to ask who it is. */
    struct client_options client;
    const char *policy;      /* of the sessions; NULL: the default one */
    const char *python;      /* absolute; NULL: the supervisor's own */
    const json_t *limits;    /* an object of texts, or NULL; borrowed */
    uint64_t timeout_max_ms; /* what the policy allows a run; 0: not known here */
    /* One message, without a newline in it. */
    void (*send)(void *context, struct span message);
    /* A line for whoever looks after the server; may be NULL. */
    void (*note)(void *context, const char *line);
    void *context;
};

int mcp_new(const struct mcp_options *options, struct mcp **ret,
            struct err *err) MUST_USE;
/* Takes one message; what there is to say to it is sent, now or later. */
void mcp_take(struct mcp *mcp, struct span message);
/* While whoever carries messages finds no room for them: nothing more comes from the supervisor. */
void mcp_pause(struct mcp *mcp, bool pause);
/* Ends all calls and the sessions that were opened here, and says nothing more. */
void mcp_free(struct mcp *mcp);
