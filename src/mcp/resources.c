/*
 * Files of sessions as resources: tools hand out links to them, and a host reads those that it
 * wants without the model. The link holds the session's handle, so it is as good as that is secret;
 * nothing is listed, since what there is to see is the business of whoever has a handle.
 */
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_parts.h"

enum { PATH_BYTES_MAX = 4096, TEMPLATE_TTL_MS = 60 * 1000 };

static const char scheme[] = "adyton://";
static const char template[] = "adyton://{session_id}/{+path}";

/* --- addresses --- */

static bool
is_plain(char c)
{
    static const char also[] = "-._~/";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr(also, c));
}

json_t *
resource_uri(const char *session_id, const char *path)
{
    AUTO_BUF struct buf out = {0};
    buf_init(&out, sizeof(scheme) + SESSION_ID_BYTES + 3 * PATH_BYTES_MAX);
    int r = buf_printf(&out, "%s%s/", scheme, session_id);
    for (; r == 0 && *path != '\0'; path++)
        r = is_plain(*path) ? buf_append(&out, path, 1)
                            : buf_printf(&out, "%%%02X", (unsigned)(unsigned char)*path);
    return r < 0 ? NULL : json_stringn(out.p, out.n);
}

static int
digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    char lower = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char *at = c != '\0' ? strchr(digits, lower) : NULL;
    return at ? (int)(at - digits) : -1;
}

static json_t *
decoded(const char *text)
{
    char path[PATH_BYTES_MAX];
    size_t n = 0;
    for (; *text != '\0' && n < sizeof(path); text++) {
        int high = *text == '%' ? digit(text[1]) : 0;
        int low = *text == '%' && high >= 0 ? digit(text[2]) : 0;
        if (high < 0 || low < 0)
            return NULL;
        path[n++] = *text == '%' ? (char)(high << 4 | low) : *text;
        text += *text == '%' ? 2 : 0;
    }
    if (*text != '\0' || n == 0 || memchr(path, '\0', n))
        return NULL;
    return json_stringn(path, n); /* NULL when it is no UTF-8 */
}

/* The arguments of read_file; NULL: it is no address of ours. */
static json_t *
arguments_of(const char *uri)
{
    size_t head = sizeof(scheme) - 1;
    const char *slash;
    if (strncmp(uri, scheme, head) != 0 || !(slash = strchr(uri + head, '/')))
        return NULL;
    size_t n = (size_t)(slash - uri) - head;
    json_t *path = decoded(slash + 1);
    if (n > 0 && n < SESSION_ID_BYTES && path)
        return json_pack("{s:s%, s:o}", "session_id", uri + head, n, "path", path);
    json_decref(path);
    return NULL;
}

json_t *
resource_link(const char *session_id, const json_t *file)
{
    /* One whose path is no UTF-8 has no name that could be asked for. */
    const char *path = json_object_get(file, "path_base64")
                           ? NULL
                           : json_string_value(json_object_get(file, "path"));
    json_t *mime = json_object_get(file, "mime"), *bytes = json_object_get(file, "bytes");
    json_t *uri = path ? resource_uri(session_id, path) : NULL;
    json_t *link = uri ? json_pack("{s:s, s:o, s:s}", "type", "resource_link", "uri", uri,
                                   "name", path)
                       : NULL;
    if (link && json_is_string(mime))
        (void)json_object_set(link, "mimeType", mime);
    if (link && json_is_integer(bytes))
        (void)json_object_set(link, "size", bytes);
    return link;
}

/* --- methods --- */

/* How long a client may keep it, and who else may have it: of the modern era alone. */
static void
set_cache(json_t *result, enum era era, int ttl_ms, const char *scope)
{
    if (!result || era == ERA_LEGACY)
        return;
    (void)json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
    (void)json_object_set_new(result, "cacheScope", json_string(scope));
}

void
resources_list(const struct request *request)
{
    json_t *result = json_pack("{s:[]}", "resources");
    set_cache(result, request->era, TEMPLATE_TTL_MS, "public");
    rpc_result(request->mcp, request->era, request->id, result);
}

void
resources_templates(const struct request *request)
{
    json_t *result = json_pack(
        "{s:[{s:s, s:s, s:s}]}", "resourceTemplates", "uriTemplate", template, "name",
        "A file of a session", "description",
        "A file beneath a session's working folder, by its path, percent-encoded.");
    set_cache(result, request->era, TEMPLATE_TTL_MS, "public");
    rpc_result(request->mcp, request->era, request->id, result);
}

/* The answer to resources/read: the file that read_file has read. */
json_t *
resource_result(const struct mcp_call *call, json_t *contents)
{
    json_t *result = contents ? json_pack("{s:[o]}", "contents", contents) : NULL;
    set_cache(result, call->era, 0, "private");
    return result;
}

/* Not found is the client's error; anything else is ours. */
void
resource_fail(const struct mcp_call *call, const char *code, const char *text)
{
    bool is_missing = strcmp(code, "session") == 0 || strcmp(code, "file") == 0;
    int number = call->era == ERA_MODERN ? RPC_PARAMS : RPC_NO_RESOURCE;
    rpc_error(call->mcp, call->id, is_missing ? number : RPC_INTERNAL, text, NULL);
}

void
resources_read(const struct request *request)
{
    const char *uri = json_string_value(json_object_get(request->params, "uri"));
    json_t *arguments = uri ? arguments_of(uri) : NULL;
    if (!arguments) {
        rpc_error(request->mcp, request->id,
                  uri && request->era == ERA_LEGACY ? RPC_NO_RESOURCE : RPC_PARAMS,
                  uri ? "there is no such resource: its uri must be "
                        "adyton://SESSION_ID/PATH, from a link of a tool"
                      : "uri is missing",
                  NULL);
        return;
    }
    json_t *params = json_pack("{s:o}", "arguments", arguments);
    mcp_call_begin_bounded(request, &resource_tool, params);
    json_decref(params);
}
