/* The tools about code: execute_python, check_python, session_close. */
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "engine/protocol.h"
#include "mcp/mcp_parts.h"

enum {
    TELL_EVERY_US = 100 * 1000, /* progress, at most ten times a second */
    TELL_BYTES_MAX = 16 * 1024, /* of one; what is more comes with the result alone */
    MS_PER_S = 1000,
};

/* --- output as it comes --- */

static void
on_tell(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct mcp_call *call = context;
    json_t *text = json_stringn(call->said.p, call->said.n);
    call->told_us = clock_now_us();
    call->progress++;
    call->said.n = 0;
    if (text)
        rpc_notify(call->mcp, "notifications/progress",
                   json_pack("{s:O, s:I, s:o}", "progressToken", call->progress_token,
                             "progress", (json_int_t)call->progress, "message", text));
}

/* Whole characters of what was written, as far as one notification holds them. */
static int
keep_said(struct mcp_call *call, const json_t *message)
{
    bool given;
    uint64_t replaced;
    struct err err;
    AUTO_BUF struct buf bytes = {0}, text = {0};
    buf_init(&bytes, PROTOCOL_REPLY_BYTES_MAX);
    buf_init(&text, PROTOCOL_REPLY_BYTES_MAX);
    int r = protocol_get_data(message, "data", &bytes, &given, &err);
    if (r == 0)
        r = utf8_append_valid(&text, buf_span(&bytes), &replaced);
    size_t room = TELL_BYTES_MAX - call->said.n, n = text.n < room ? text.n : room;
    n -= utf8_unfinished_tail((struct span){text.p, n});
    return r < 0 ? r : buf_append(&call->said, text.p, n);
}

static void
say(struct mcp_call *call, const json_t *message)
{
    if (!call->tell)
        call->tell = event_new(call->mcp->options.base, -1, 0, on_tell, call);
    if (!call->tell || keep_said(call, message) < 0 ||
        event_pending(call->tell, EV_TIMEOUT, NULL))
        return; /* the result has it all */
    uint64_t now = clock_now_us(), due = call->told_us + TELL_EVERY_US;
    const struct timeval wait = {.tv_usec = (suseconds_t)(due > now ? due - now : 0)};
    event_add(call->tell, &wait);
}

/* --- execute_python --- */

/* A time-out that the supervisor does not allow, which only it may know: nothing has run. */
static bool
is_too_long(const struct mcp_call *call, const json_t *message)
{
    const char *code = json_string_value(json_object_get(message, "code"));
    return code && strcmp(code, "limit") == 0 && !call->without_timeout &&
           json_object_get(call->arguments, "timeout");
}

static void run(struct mcp_call *call);

static void
hear_run(void *context, const json_t *message, bool last)
{
    struct mcp_call *call = context;
    if (mcp_call_is_over(call, message, last))
        return;
    const char *type = json_string_value(json_object_get(message, "type"));
    bool is_output = type && (strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0);
    if (is_output && call->progress_token)
        say(call, message);
    if (!last)
        return;
    if (type && strcmp(type, "busy") == 0 && mcp_call_retry(call, message))
        return;
    const json_t *outcome = json_object_get(message, "outcome");
    if (!outcome && is_too_long(call, message)) {
        call->without_timeout = true;
        run(call);
        return;
    }
    if (!outcome) {
        mcp_call_fail_with(call, message);
        return;
    }
    const char *state = json_string_value(json_object_get(outcome, "session"));
    if (state && strcmp(state, "lost") == 0)
        session_forget(call->mcp, call->session_id);
    mcp_call_finish(call, result_of_run(call->session_id, outcome));
}

/* Seconds, as the protocol's text; no more than the policy has, where that is known. */
static json_t *
limits_of(const struct mcp_call *call)
{
    char text[64];
    const json_t *timeout = json_object_get(call->arguments, "timeout");
    double ms = json_number_value(timeout) * MS_PER_S;
    double most = (double)call->mcp->options.timeout_max_ms;
    if (!timeout || call->without_timeout || (most > 0 && ms >= most))
        return json_object();
    snprintf(text, sizeof(text), "%.0fms", ms < 10 ? 10 : ms > 1e12 ? 1e12 : ms);
    return json_pack("{s:s}", "timeout", text);
}

static void
run(struct mcp_call *call)
{
    json_t *code = json_object_get(call->arguments, "code");
    json_t *files = json_object_get(call->arguments, "files");
    json_t *request =
        json_pack("{s:s, s:s, s:O, s:o, s:b, s:b}", "type", "run", "session",
                  call->session_id, "code", code, "limits", limits_of(call), "show_last",
                  1, "stream", call->progress_token != NULL);
    if (request && files)
        (void)json_object_set(request, "files", files);
    (void)mcp_call_ask(call, request, hear_run);
}

static void
hear_new(void *context, const json_t *message, bool last)
{
    struct mcp_call *call = context;
    if (mcp_call_is_over(call, message, last) || !last)
        return;
    const char *type = json_string_value(json_object_get(message, "type"));
    if (type && strcmp(type, "busy") == 0 && mcp_call_retry(call, message))
        return;
    const char *id = json_string_value(
        json_object_get(json_object_get(message, "session"), "session_id"));
    if (!id) {
        mcp_call_fail_with(call, message);
        return;
    }
    session_opened(call, id);
    run(call);
}

static void
open_session(struct mcp_call *call)
{
    const struct mcp_options *options = &call->mcp->options;
    json_t *request = json_pack("{s:s, s:b}", "type", "session_new", "tied", 1);
    if (request && options->policy)
        (void)json_object_set_new(request, "policy", json_string(options->policy));
    if (request && options->python)
        (void)json_object_set_new(request, "python", json_string(options->python));
    if (request && options->limits)
        (void)json_object_set_new(request, "limits", json_deep_copy(options->limits));
    (void)mcp_call_ask(call, request, hear_new);
}

void
begin_execute(struct mcp_call *call)
{
    if (call->session_id[0] != '\0')
        run(call);
    else
        open_session(call);
}

/* --- check_python --- */

static void
hear_check(void *context, const json_t *message, bool last)
{
    struct mcp_call *call = context;
    if (mcp_call_is_over(call, message, last) || !last)
        return;
    const char *type = json_string_value(json_object_get(message, "type"));
    if (type && strcmp(type, "busy") == 0 && mcp_call_retry(call, message))
        return;
    const json_t *outcome = json_object_get(message, "outcome");
    if (outcome)
        mcp_call_finish(call, result_of_check(outcome));
    else
        mcp_call_fail_with(call, message);
}

void
begin_check(struct mcp_call *call)
{
    const struct mcp_options *options = &call->mcp->options;
    json_t *request = json_pack("{s:s, s:b, s:O}", "type", "run", "check", 1, "code",
                                json_object_get(call->arguments, "code"));
    if (request && options->policy)
        (void)json_object_set_new(request, "policy", json_string(options->policy));
    (void)mcp_call_ask(call, request, hear_check);
}

/* --- session_close --- */

static void
hear_close(void *context, const json_t *message, bool last)
{
    static const char text[] = "The session has ended.";
    struct mcp_call *call = context;
    if (mcp_call_is_over(call, message, last) || !last)
        return;
    if (!json_object_get(message, "session")) {
        mcp_call_fail_with(call, message);
        return;
    }
    json_t *structured =
        json_pack("{s:s, s:b}", "session_id", call->session_id, "closed", 1);
    session_forget(call->mcp, call->session_id);
    mcp_call_finish(call, result_text_block(text, sizeof(text) - 1, structured, false));
}

void
begin_close(struct mcp_call *call)
{
    (void)mcp_call_ask(
        call,
        json_pack("{s:s, s:s}", "type", "session_close", "session", call->session_id),
        hear_close);
}

json_t *
output_close(void)
{
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s}}, s:[s, s]}", "type", "object",
                     "properties", "session_id", "type", "string", "closed", "type",
                     "boolean", "required", "session_id", "closed");
}
