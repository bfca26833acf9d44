/*
 * Sessions that were opened here. The handle is the authority: a call may name any session of the
 * supervisor. But those that a model has opened and left would stay for half an hour each, so
 * there is a bound, and the one longest unused ends. All of them end with the connection.
 */
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_parts.h"

static struct mcp_session **
find(struct mcp *mcp, const char *id)
{
    struct mcp_session **at = &mcp->sessions;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->after;
    return at;
}

static void
to_front(struct mcp *mcp, struct mcp_session *session)
{
    session->after = mcp->sessions;
    mcp->sessions = session;
}

void
session_use(struct mcp_call *call)
{
    struct mcp *mcp = call->mcp;
    struct mcp_session **at = find(mcp, call->session_id);
    struct mcp_session *session = *at;
    if (!session || call->session)
        return;
    *at = session->after;
    to_front(mcp, session);
    session->calls++;
    call->session = session;
}

void
session_leave(struct mcp_call *call)
{
    if (call->session)
        call->session->calls--;
    call->session = NULL;
}

/* Nobody waits for what comes of it. */
static void
close_session(struct mcp *mcp, const char *id)
{
    struct err err;
    uint64_t number;
    json_t *request = json_pack("{s:s, s:s}", "type", "session_close", "session", id);
    if (request && mcp->client)
        (void)!client_ask(mcp->client, request, -1, NULL, NULL, &number, &err);
    json_decref(request);
}

void
session_abandon(struct mcp_call *call, const json_t *message)
{
    char id[SESSION_ID_BYTES] = "";
    const json_t *opened =
        json_object_get(json_object_get(message, "session"), "session_id");
    const char *text =
        json_is_string(opened) ? json_string_value(opened) : call->session_id;
    if (json_object_get(call->arguments, "session_id"))
        return; /* whoever named it has it */
    snprintf(id, sizeof(id), "%s", text);
    if (id[0] == '\0')
        return;
    session_forget(call->mcp, id);
    close_session(call->mcp, id);
}

static void
end_unused(struct mcp *mcp)
{
    struct mcp_session **last = NULL, *ended;
    for (struct mcp_session **at = &mcp->sessions; *at; at = &(*at)->after)
        if ((*at)->calls == 0)
            last = at;
    if (!last)
        return;
    ended = *last;
    *last = ended->after;
    mcp->sessions_n--;
    close_session(mcp, ended->id);
    free(ended);
}

void
session_opened(struct mcp_call *call, const char *id)
{
    struct mcp *mcp = call->mcp;
    snprintf(call->session_id, sizeof(call->session_id), "%s", id);
    struct mcp_session *session = calloc(1, sizeof(*session));
    if (!session)
        return; /* it ends with the connection all the same */
    snprintf(session->id, sizeof(session->id), "%s", id);
    to_front(mcp, session);
    mcp->sessions_n++;
    session_use(call);
    if (mcp->sessions_n > MCP_SESSIONS_MAX)
        end_unused(mcp);
}

void
session_forget(struct mcp *mcp, const char *id)
{
    struct mcp_session **at = find(mcp, id), *session = *at;
    if (!session)
        return;
    for (struct mcp_call *call = mcp->calls; call; call = call->after)
        if (call->session == session)
            call->session = NULL;
    *at = session->after;
    mcp->sessions_n--;
    free(session);
}

void
sessions_free(struct mcp *mcp)
{
    while (mcp->sessions)
        session_forget(mcp, mcp->sessions->id);
}
