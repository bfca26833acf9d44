/* Calls of tools: from a request to its answer, in any order, cancelled or not. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_parts.h"

enum {
    RETRIES_MAX = 100,
    RETRY_MS_MIN = 20,
    RETRY_MS_MAX = 500,
    DATA_BYTES_MAX = 8 << 20
};

static void
mcp_call_free(struct mcp_call *call)
{
    struct mcp *mcp = call->mcp;
    struct mcp_call **at = &mcp->calls;
    while (*at != call)
        at = &(*at)->after;
    *at = call->after;
    mcp->calls_n--;
    session_leave(call);
    if (call->again)
        event_free(call->again);
    if (call->tell)
        event_free(call->tell);
    json_decref(call->id);
    json_decref(call->arguments);
    json_decref(call->progress_token);
    buf_done(&call->said);
    buf_done(&call->data);
    free(call);
}

static struct mcp_call *
find(const struct mcp *mcp, const json_t *id)
{
    struct mcp_call *call = mcp->calls;
    while (call && !(json_equal(call->id, id) && !call->is_cancelled))
        call = call->after;
    return call;
}

bool
mcp_call_goes_on(const struct mcp *mcp, const json_t *id)
{
    return find(mcp, id) != NULL;
}

void
mcp_call_finish(struct mcp_call *call, json_t *result)
{
    if (!call->is_cancelled)
        rpc_result(call->mcp, call->era, call->id, result);
    else
        json_decref(result);
    mcp_call_free(call);
}

void
mcp_call_fail(struct mcp_call *call, const char *code, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (call->tool == &resource_tool) {
        if (!call->is_cancelled)
            resource_fail(call, code, text);
        mcp_call_free(call);
        return;
    }
    json_t *result = result_text_block(text, strlen(text), NULL, true);
    /* As it is in the block, where a character that was cut is none any more. */
    const json_t *block = json_array_get(json_object_get(result, "content"), 0);
    const char *clean = json_string_value(json_object_get(block, "text"));
    json_t *form = clean ? failure_of(call, code, clean) : NULL;
    if (form)
        (void)json_object_set_new(result, "structuredContent", form);
    mcp_call_finish(call, result);
}

void
mcp_call_fail_with(struct mcp_call *call, const json_t *message)
{
    static const char again[] =
        " Call execute_python without session_id for a new session.";
    const char *ended = call->tool == &resource_tool ? "" : again;
    const char *code = json_string_value(json_object_get(message, "code"));
    const char *why = json_string_value(json_object_get(message, "message"));
    bool is_session = code && strcmp(code, "session") == 0;
    if (is_session)
        session_forget(call->mcp, call->session_id);
    if (!message)
        mcp_call_fail(call, "gone",
                      "The sandbox has ended unexpectedly, and its sessions with it: "
                      "what came of this call is not known. Try again in a new session.");
    else if (!why)
        mcp_call_fail(call, "busy", "The sandbox is busy: try again in a few seconds.");
    else
        mcp_call_fail(call, code ? code : "sandbox", "%s.%s", why,
                      is_session ? ended : "");
}

bool
mcp_call_ask(struct mcp_call *call, json_t *request, client_hear *hear)
{
    struct mcp *mcp = call->mcp;
    struct err err = {0};
    int r = request ? 0 : err_set(&err, -ENOMEM, "no memory for a request");
    if (r == 0 && !mcp_connect(mcp, &err))
        r = err.code;
    if (r == 0)
        r = client_ask(mcp->client, request, -1, hear, call, &call->number, &err);
    json_decref(request);
    if (r < 0)
        mcp_call_fail(call, "supervisor", "The sandbox cannot be used now: %.400s.",
                      err.text);
    return r == 0;
}

bool
mcp_call_is_over(struct mcp_call *call, const json_t *message, bool last)
{
    if (last)
        call->number = 0;
    if (!call->is_cancelled)
        return false;
    if (last) {
        session_abandon(call, message);
        mcp_call_free(call);
    }
    return true;
}

static void
on_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct mcp_call *call = context;
    call->tool->begin(call);
}

bool
mcp_call_retry(struct mcp_call *call, const json_t *busy)
{
    json_int_t ms = json_integer_value(json_object_get(busy, "retry_after_ms"));
    ms = ms < RETRY_MS_MIN ? RETRY_MS_MIN : ms > RETRY_MS_MAX ? RETRY_MS_MAX : ms;
    const struct timeval pause = {.tv_usec = (suseconds_t)ms * 1000};
    if (++call->retries > RETRIES_MAX)
        return false;
    if (!call->again)
        call->again = event_new(call->mcp->options.base, -1, 0, on_again, call);
    return call->again && event_add(call->again, &pause) == 0;
}

void
mcp_call_cancel(struct mcp *mcp, const json_t *id)
{
    struct mcp_call *call = id ? find(mcp, id) : NULL;
    if (!call)
        return;
    call->is_cancelled = true;
    if (call->tell)
        event_del(call->tell);
    if (call->number > 0 && mcp->client) {
        client_cancel(mcp->client, call->number);
    } else {
        session_abandon(call, NULL);
        mcp_call_free(call);
    }
}

static json_t *
progress_token_of(const json_t *params)
{
    const json_t *token =
        json_object_get(json_object_get(params, "_meta"), "progressToken");
    return rpc_is_id(token) ? json_deep_copy(token) : NULL;
}

void
mcp_call_begin(struct mcp *mcp, enum era era, const json_t *id, const struct tool *tool,
               const json_t *params)
{
    char text[ERROR_TEXT_BYTES];
    const json_t *arguments = json_object_get(params, "arguments");
    struct mcp_call *call = calloc(1, sizeof(*call));
    if (!call) {
        rpc_error(mcp, id, RPC_INTERNAL, "no memory for a call", NULL);
        return;
    }
    *call = (struct mcp_call){.after = mcp->calls,
                              .mcp = mcp,
                              .id = json_deep_copy(id),
                              .era = era,
                              .tool = tool,
                              .arguments =
                                  arguments ? json_deep_copy(arguments) : json_object(),
                              .progress_token = progress_token_of(params)};
    mcp->calls = call;
    mcp->calls_n++;
    buf_init(&call->said, DATA_BYTES_MAX);
    buf_init(&call->data, DATA_BYTES_MAX);
    const char *session =
        json_string_value(json_object_get(call->arguments, "session_id"));
    const char *wrong = call->id && call->arguments
                            ? tool_refuse(tool, call->arguments, text)
                            : "no memory for a call";
    if (!wrong && session && strlen(session) >= sizeof(call->session_id))
        wrong = "There is no such session: session_id is longer than any. Call "
                "execute_python "
                "without it for a new one.";
    if (wrong) {
        mcp_call_fail(call, "arguments", "%s", wrong);
        return;
    }
    if (session)
        snprintf(call->session_id, sizeof(call->session_id), "%s", session);
    session_use(call);
    tool->begin(call);
}

void
mcp_call_begin_bounded(const struct request *request, const struct tool *tool,
                       const json_t *params)
{
    if (request->mcp->calls_n >= MCP_CALLS_MAX)
        rpc_error(request->mcp, request->id, RPC_INTERNAL,
                  "too many calls at once: wait for some to end", NULL);
    else
        mcp_call_begin(request->mcp, request->era, request->id, tool, params);
}

void
mcp_calls_free(struct mcp *mcp)
{
    while (mcp->calls)
        mcp_call_free(mcp->calls);
}
