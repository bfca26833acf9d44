/* JSON-RPC 2.0 (jsonrpc.org/specification), as far as a server of MCP speaks it. */
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_parts.h"

static const char protocol_name[] = "jsonrpc";

/* Valid UTF-8 without a newline, whatever was in it: jansson escapes the rest. False: it was not
 * sent. */
static bool
send_message(struct mcp *mcp, json_t *message)
{
    char *text =
        message ? json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    size_t n = text ? strlen(text) : 0;
    bool fits = text && n <= MCP_REPLY_BYTES_MAX;
    if (fits)
        mcp->options.send(mcp->options.context, (struct span){text, n});
    else if (mcp->options.note)
        mcp->options.note(mcp->options.context,
                          text ? "an answer is larger than clients take, and is left out"
                               : "no memory for an answer");
    free(text);
    json_decref(message);
    return fits;
}

bool
rpc_is_id(const json_t *id)
{
    return json_is_integer(id) ||
           (json_is_string(id) && json_string_length(id) <= ID_BYTES_MAX);
}

void
rpc_error(struct mcp *mcp, const json_t *id, int code, const char *text, json_t *data)
{
    json_t *shown = id ? json_deep_copy(id) : json_null();
    json_t *error = json_pack("{s:i, s:s}", "code", code, "message", text);
    if (data && (!error || json_object_set_new(error, "data", data) < 0))
        error = NULL;
    (void)send_message(mcp, json_pack("{s:s, s:o, s:o}", protocol_name, "2.0", "id",
                                      shown, "error", error));
}

void
rpc_result(struct mcp *mcp, enum era era, const json_t *id, json_t *result)
{
    if (result && era == ERA_MODERN) {
        json_t *info = json_pack("{s:{s:s, s:s}}", "io.modelcontextprotocol/serverInfo",
                                 "name", "adyton", "version", ADYTON_VERSION);
        (void)json_object_set_new(result, "resultType", json_string("complete"));
        (void)json_object_set_new(result, "_meta", info);
    }
    if (!result) {
        rpc_error(mcp, id, RPC_INTERNAL, "no memory for the result", NULL);
        return;
    }
    if (!send_message(mcp, json_pack("{s:s, s:O, s:o}", protocol_name, "2.0", "id", id,
                                     "result", result)))
        rpc_error(mcp, id, RPC_INTERNAL,
                  "the result is larger than a message may be, and is left out", NULL);
}

void
rpc_notify(struct mcp *mcp, const char *method, json_t *params)
{
    (void)send_message(mcp, json_pack("{s:s, s:s, s:o}", protocol_name, "2.0", "method",
                                      method, "params", params));
}
