/*
 * One message at a time: what it is, in which era it speaks, and which method answers it. Order of
 * checks as the modern specification has it: JSON, request, version, method, parameters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/protocol.h"
#include "mcp/mcp_parts.h"

enum { MARKS_MAX = 64 * 1024, TTL_MS = 60 * 1000, VERSION_BYTES_MAX = 64 };

static const char version_key[] = "io.modelcontextprotocol/protocolVersion";
static const char capabilities_key[] = "io.modelcontextprotocol/clientCapabilities";
static const char modern_version[] = "2026-07-28";
/* The newest first: what a client is told that asks for one that is not here. */
static const char *const legacy_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26",
                                              "2024-11-05", "2024-10-07"};

static const char first_with_links[] = "2025-06-18";

static const char instructions[] =
    "Runs Python in an isolated sandbox. execute_python returns a session_id: pass it "
    "back to go "
    "on with the same variables and files. Without it each call begins anew.";

/* --- a supervisor --- */

static void
on_gone(void *context, const struct err *err)
{
    struct mcp *mcp = context;
    client_close(mcp->client);
    mcp->client = NULL;
    sessions_free(mcp);
    if (mcp->options.note)
        mcp->options.note(mcp->options.context, err->text);
}

bool
mcp_connect(struct mcp *mcp, struct err *err)
{
    struct client_options options = mcp->options.client;
    options.on_gone = on_gone;
    options.context = mcp;
    if (mcp->client)
        return true;
    if (client_open(mcp->options.base, &options, &mcp->client, err) < 0)
        return false;
    client_pause(mcp->client, mcp->is_paused);
    return true;
}

void
mcp_pause(struct mcp *mcp, bool pause)
{
    mcp->is_paused = pause;
    if (mcp->client)
        client_pause(mcp->client, pause);
}

/* Tools are about to be used: so that the first of them finds warm cells. */
static void
expect_calls(struct mcp *mcp)
{
    struct err err;
    (void)mcp_connect(mcp, &err); /* the call that needs it says why not */
}

/* --- methods --- */

static json_t *
capabilities(void)
{
    return json_pack("{s:{s:b}, s:{s:b, s:b}}", "tools", "listChanged", false,
                     "resources", "listChanged", false, "subscribe", false);
}

static void
initialize(const struct request *request)
{
    const char *wanted =
        json_string_value(json_object_get(request->params, "protocolVersion"));
    const char *version = legacy_versions[0];
    if (!wanted) {
        rpc_error(request->mcp, request->id, RPC_PARAMS, "protocolVersion is missing",
                  NULL);
        return;
    }
    for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(*legacy_versions); i++)
        if (strcmp(legacy_versions[i], wanted) == 0)
            version = legacy_versions[i];
    request->mcp->lacks_links = strcmp(version, first_with_links) < 0;
    rpc_result(request->mcp, request->era, request->id,
               json_pack("{s:s, s:o, s:{s:s, s:s, s:s}, s:s}", "protocolVersion", version,
                         "capabilities", capabilities(), "serverInfo", "name", "adyton",
                         "title", "adyton: Python in a sandbox", "version",
                         ADYTON_VERSION, "instructions", instructions));
}

static void
discover(const struct request *request)
{
    rpc_result(request->mcp, request->era, request->id,
               json_pack("{s:[s], s:o, s:s, s:i, s:s}", "supportedVersions",
                         modern_version, "capabilities", capabilities(), "instructions",
                         instructions, "ttlMs", (int)TTL_MS, "cacheScope", "public"));
}

static void
ping(const struct request *request)
{
    rpc_result(request->mcp, request->era, request->id, json_object());
}

static void
list_tools(const struct request *request)
{
    const char *cursor = json_string_value(json_object_get(request->params, "cursor"));
    if (cursor && cursor[0] != '\0') {
        rpc_error(request->mcp, request->id, RPC_PARAMS,
                  "the list has one page: no cursor of "
                  "ours is like this",
                  NULL);
        return;
    }
    json_t *result = json_pack("{s:o}", "tools", tools_list());
    if (result && request->era == ERA_MODERN) {
        (void)json_object_set_new(result, "ttlMs", json_integer(TTL_MS));
        (void)json_object_set_new(result, "cacheScope", json_string("public"));
    }
    rpc_result(request->mcp, request->era, request->id, result);
    expect_calls(request->mcp);
}

static void
call_tool(const struct request *request)
{
    struct mcp *mcp = request->mcp;
    char text[ERROR_TEXT_BYTES];
    const json_t *arguments = json_object_get(request->params, "arguments");
    const char *name = json_string_value(json_object_get(request->params, "name"));
    const struct tool *tool = NULL;
    for (size_t i = 0; name && i < tools_n; i++)
        if (strcmp(tools[i].name, name) == 0)
            tool = &tools[i];
    if (!tool || (arguments && !json_is_object(arguments))) {
        snprintf(text, sizeof(text),
                 tool ? "%s: the arguments are no object" : "there is no tool '%.100s'",
                 name ? name : "");
        rpc_error(mcp, request->id, RPC_PARAMS, text, NULL);
    } else {
        mcp_call_begin_bounded(request, tool, request->params);
    }
}

static void
initialized(const struct request *request)
{
    expect_calls(request->mcp);
}

static void
cancelled(const struct request *request)
{
    mcp_call_cancel(request->mcp, json_object_get(request->params, "requestId"));
}

static const struct method {
    const char *name;
    bool legacy, modern, is_notification;
    void (*answer)(const struct request *request);
} methods[] = {
    {"initialize", true, false, false, initialize},
    {"server/discover", false, true, false, discover},
    {"ping", true, false, false, ping},
    {"tools/list", true, true, false, list_tools},
    {"tools/call", true, true, false, call_tool},
    {"resources/list", true, true, false, resources_list},
    {"resources/templates/list", true, true, false, resources_templates},
    {"resources/read", true, true, false, resources_read},
    {"notifications/initialized", true, true, true, initialized},
    {"notifications/cancelled", true, true, true, cancelled},
};

/* --- one message --- */

static enum era
era_of(const char *method, const json_t *meta)
{
    bool says = json_object_get(meta, version_key) != NULL;
    return says || strcmp(method, "server/discover") == 0 ? ERA_MODERN : ERA_LEGACY;
}

/* False: it was refused. */
static bool
check_version(const struct request *request, const json_t *meta)
{
    const char *version = json_string_value(json_object_get(meta, version_key));
    if (request->era == ERA_LEGACY)
        return true;
    if (!version || !json_is_object(json_object_get(meta, capabilities_key))) {
        rpc_error(request->mcp, request->id, RPC_PARAMS,
                  "_meta must have io.modelcontextprotocol/protocolVersion and "
                  "io.modelcontextprotocol/clientCapabilities",
                  NULL);
        return false;
    }
    if (strcmp(version, modern_version) == 0)
        return true;
    bool is_long = strlen(version) > VERSION_BYTES_MAX;
    rpc_error(request->mcp, request->id, RPC_VERSION, "this version is not spoken here",
              json_pack("{s:[s], s:s}", "supported", modern_version, "requested",
                        is_long ? "one with a name that is too long" : version));
    return false;
}

static void
take_request(struct mcp *mcp, const json_t *id, const char *name, const json_t *params)
{
    const json_t *meta = json_object_get(params, "_meta");
    const struct request request = {mcp, era_of(name, meta), id, params};
    if (id && !check_version(&request, meta))
        return;
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
        const struct method *method = &methods[i];
        bool spoken = request.era == ERA_MODERN ? method->modern : method->legacy;
        if (!spoken || method->is_notification == (id != NULL) ||
            strcmp(method->name, name) != 0)
            continue;
        method->answer(&request);
        return;
    }
    if (id) /* a notification is never answered, known or not */
        rpc_error(mcp, id, RPC_METHOD, "there is no such method", NULL);
}

static void
take_object(struct mcp *mcp, const json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    const json_t *params = json_object_get(message, "params");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    const char *method = json_string_value(json_object_get(message, "method"));
    bool is_answer =
        !json_object_get(message, "method") &&
        (json_object_get(message, "result") || json_object_get(message, "error"));
    if (is_answer)
        return; /* to nothing that we have asked */
    if (!version || strcmp(version, "2.0") != 0 || !method || (id && !rpc_is_id(id)))
        rpc_error(mcp, rpc_is_id(id) ? id : NULL, RPC_INVALID,
                  "this is no request of JSON-RPC 2.0", NULL);
    else if (params && !json_is_object(params))
        rpc_error(mcp, id, id ? RPC_PARAMS : RPC_INVALID, "params are no object", NULL);
    else if (id && mcp_call_goes_on(mcp, id))
        rpc_error(mcp, id, RPC_INVALID, "a request with this id goes on already", NULL);
    else
        take_request(mcp, id, method, params);
}

static size_t
blanks(struct span s)
{
    size_t n = 0;
    while (n < s.n && strchr(" \t\r\n", s.p[n]) && s.p[n] != '\0')
        n++;
    return n;
}

void
mcp_take(struct mcp *mcp, struct span message)
{
    json_t *root;
    struct err err;
    size_t n = blanks(message);
    if (n == message.n)
        return;
    if (message.p[n] == '[') {
        rpc_error(mcp, NULL, RPC_INVALID, "batches are not spoken: one message at a time",
                  NULL);
    } else if (protocol_load(message, MARKS_MAX, &root, &err) < 0) {
        rpc_error(mcp, NULL, RPC_PARSE,
                  "this is not one JSON object, or has too much in it", NULL);
    } else {
        take_object(mcp, root);
        json_decref(root);
    }
}

int
mcp_new(const struct mcp_options *options, struct mcp **ret, struct err *err)
{
    struct mcp *mcp = calloc(1, sizeof(*mcp));
    if (!mcp)
        return err_set(err, -ENOMEM, "no memory for a server");
    mcp->options = *options;
    *ret = mcp;
    return 0;
}

void
mcp_free(struct mcp *mcp)
{
    if (!mcp)
        return;
    client_close(mcp->client); /* and with it the sessions that it has opened */
    mcp->client = NULL;
    mcp_calls_free(mcp);
    sessions_free(mcp);
    free(mcp);
}
