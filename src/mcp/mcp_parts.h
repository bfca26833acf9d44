/* The state of a server, shared by the files of this room; nobody else's. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "mcp/mcp.h"

enum {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_VERSION = -32022,
    RPC_NO_RESOURCE = -32002, /* of the legacy era alone */

    SESSION_ID_BYTES = 40,
    ERROR_TEXT_BYTES = 512,
    ID_BYTES_MAX = 4096, /* of what is said again in each answer */
};

enum era { ERA_LEGACY, ERA_MODERN };

struct mcp_session {
    struct mcp_session *after; /* the one longest unused is the last */
    char id[SESSION_ID_BYTES];
    size_t calls; /* that go on in it */
};

/* What to do with a tool's answer; false: the call goes on. */
struct mcp_call;

struct mcp_call {
    struct mcp_call *after;
    struct mcp *mcp;
    json_t *id; /* of the request */
    enum era era;
    const struct tool *tool;
    json_t *arguments;
    json_t *progress_token; /* NULL: no progress is wanted */
    struct mcp_session *session;
    char session_id[SESSION_ID_BYTES]; /* "": a new one is made */
    uint64_t number;                   /* of the request that goes on; 0: none */
    bool is_cancelled;                 /* nothing is answered any more */
    unsigned retries;
    bool without_timeout; /* the one that was asked for is more than is allowed */
    struct event *again;  /* after `busy` */
    /* Live output */
    struct buf said;
    uint64_t progress, told_us;
    struct event *tell;
    /* A file that is read */
    struct buf data;
    bool is_cut;
};

/* A request, of a method that is known. */
struct request {
    struct mcp *mcp;
    enum era era;
    const json_t *id, *params;
};

struct mcp {
    struct mcp_options options;
    struct client *client; /* NULL: not reached yet, or gone */
    struct mcp_call *calls;
    size_t calls_n;
    struct mcp_session *sessions; /* opened here, the one last used first */
    size_t sessions_n;
    bool is_paused;
    bool
        lacks_links; /* the client shook hands on a revision without links to resources */
};

/* --- rpc.c: what is said --- */
/* A string or a whole number; anything else is none that could be answered. */
bool rpc_is_id(const json_t *id);
void rpc_result(struct mcp *mcp, enum era era, const json_t *id, json_t *result);
/* id NULL: none could be read. data, or NULL, is taken over. */
void rpc_error(struct mcp *mcp, const json_t *id, int code, const char *text,
               json_t *data);
void rpc_notify(struct mcp *mcp, const char *method, json_t *params);

/* --- tools.c --- */
struct tool_field {
    const char *name, *kind; /* "string", "number", "files" */
    bool needed;
    const char *help;
};

struct tool {
    const char *name, *title, *description;
    const struct tool_field *fields; /* ends with a NULL name */
    json_t *(*output)(void);         /* the schema of what comes back */
    bool read_only, idempotent;
    void (*begin)(struct mcp_call *call);
};

enum { TOOLS_MAX = 8 };
extern const struct tool tools[];
extern const size_t tools_n;
/* read_file, but as a method of its own. */
extern const struct tool resource_tool;
/* The list for clients. New reference; NULL: no memory. */
json_t *tools_list(void);
/* What is wrong with the arguments, as a sentence for the model; NULL: nothing. */
const char *tool_refuse(const struct tool *tool, const json_t *arguments,
                        char text[ERROR_TEXT_BYTES]);

/* --- calls.c --- */
void mcp_call_begin(struct mcp *mcp, enum era era, const json_t *id,
                    const struct tool *tool, const json_t *params);
/* The same, unless too many go on. */
void mcp_call_begin_bounded(const struct request *request, const struct tool *tool,
                            const json_t *params);
void mcp_call_cancel(struct mcp *mcp, const json_t *id);
/* The call with this id goes on. */
bool mcp_call_goes_on(const struct mcp *mcp, const json_t *id);
/* Answers, and frees the call. result is taken over; NULL: no memory. */
void mcp_call_finish(struct mcp_call *call, json_t *result);
/* An answer that tells the model what to do otherwise. code: "session", "arguments"… */
PRINTF(3, 4)
void mcp_call_fail(struct mcp_call *call, const char *code, const char *format, ...);
/* A result with isError from a supervisor's error, busy or lost connection. */
void mcp_call_fail_with(struct mcp_call *call, const json_t *message);
/* Sends a request, which is taken over, and hears its answer. False: the call has failed. */
bool mcp_call_ask(struct mcp_call *call, json_t *request, client_hear *hear);
/* Of what a client_hear was told: true when the call need not go on (it was cancelled, and is
 * gone when that was the last). */
bool mcp_call_is_over(struct mcp_call *call, const json_t *message, bool last);
/* Asks again after `busy`; false: it has been tried for long enough. */
bool mcp_call_retry(struct mcp_call *call, const json_t *busy);
void mcp_calls_free(struct mcp *mcp);

/* --- sessions.c --- */
/* The session that the call names; one that another program has opened is not in our list. */
void session_use(struct mcp_call *call);
void session_leave(struct mcp_call *call);
void session_opened(struct mcp_call *call, const char *id);
/* A cancelled call's own session, whose handle nobody has been told. message: its last, or NULL. */
void session_abandon(struct mcp_call *call, const json_t *message);
void session_forget(struct mcp *mcp, const char *id);
void sessions_free(struct mcp *mcp);

/* --- execute.c, files.c: the tools --- */
void begin_execute(struct mcp_call *call);
void begin_check(struct mcp_call *call);
void begin_close(struct mcp_call *call);
void begin_write(struct mcp_call *call);
void begin_read(struct mcp_call *call);
void begin_list(struct mcp_call *call);
json_t *output_execute(void);
json_t *output_check(void);
json_t *output_close(void);
json_t *output_write(void);
json_t *output_read(void);
json_t *output_list(void);

/* --- failure.c --- */
/* What each tool's schema has for it, as the member "error". */
json_t *failure_schema(void);
/* The form of a failed call, which fits the tool's schema. code: a word; text: what to do. New
 * reference; NULL: no memory. */
json_t *failure_of(const struct mcp_call *call, const char *code, const char *text);

/* --- resources.c --- */
/* The address of a session's file. New reference; NULL: it has none. */
json_t *resource_uri(const char *session_id, const char *path);
/* A block that leads to a file of a listing. New reference; NULL: it has no path. */
json_t *resource_link(const char *session_id, const json_t *file);
void resources_list(const struct request *request);
void resources_templates(const struct request *request);
void resources_read(const struct request *request);
/* contents is taken over. */
json_t *resource_result(const struct mcp_call *call, json_t *contents);
void resource_fail(const struct mcp_call *call, const char *code, const char *text);

/* --- result.c --- */
/* What came of a run, for the model. outcome: the protocol's object. */
json_t *result_of_run(const char *session_id, const json_t *outcome);
json_t *result_of_check(const json_t *outcome);
/* One block of text beside a structured form, which is taken over. */
json_t *result_text_block(const char *text, size_t n, json_t *structured, bool is_error);

/* --- server.c --- */
/* Reaches a supervisor; false: err says why not. */
bool mcp_connect(struct mcp *mcp, struct err *err);
