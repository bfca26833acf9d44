/* The tools about files of a session. */
#include <string.h>

#include "base/utf8.h"
#include "engine/protocol.h"
#include "mcp/mcp_parts.h"

enum {
    READ_BYTES_MAX = 2 * 1024 * 1024,
    LIST_BYTES_MAX = 64 * 1024,
    NAME_BYTES = 512,
    LINKS_MAX = 50,
    CONTROLS_SHARE = 4,
    CONTROLS_FREE = 16
};

static const char *
text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static const char *
path_of(const struct mcp_call *call)
{
    return text_of(call->arguments, "path");
}

static bool
is_type(const json_t *message, const char *type)
{
    return strcmp(text_of(message, "type"), type) == 0;
}

/* The last message of a request, that is no failure; else the call has been answered, or waits. */
static bool
has_worked(struct mcp_call *call, const json_t *message, const char *type)
{
    if (is_type(message, type))
        return true;
    if (!is_type(message, "busy") || !mcp_call_retry(call, message))
        mcp_call_fail_with(call, message);
    return false;
}

/* --- write_file --- */

static void
hear_write(void *context, const json_t *message, bool last)
{
    struct mcp_call *call = context;
    char text[NAME_BYTES];
    if (mcp_call_is_over(call, message, last) || !last ||
        !has_worked(call, message, "done"))
        return;
    snprintf(text, sizeof(text), "Written: %.400s\n", path_of(call));
    mcp_call_finish(call,
                    result_text_block(text, strlen(text),
                                      json_pack("{s:s, s:s}", "session_id",
                                                call->session_id, "path", path_of(call)),
                                      false));
}

void
begin_write(struct mcp_call *call)
{
    json_t *text = json_object_get(call->arguments, "data");
    json_t *coded = json_object_get(call->arguments, "data_base64");
    if (!text == !coded) {
        mcp_call_fail(call, "arguments",
                      "write_file: exactly one of data and data_base64 is needed.");
        return;
    }
    json_t *request =
        json_pack("{s:s, s:s, s:[{s:s, s:O}]}", "type", "session_put", "session",
                  call->session_id, "files", "name", path_of(call),
                  text ? "data" : "data_base64", text ? text : coded);
    (void)mcp_call_ask(call, request, hear_write);
}

json_t *
output_write(void)
{
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s}}, s:[s, s]}", "type", "object",
                     "properties", "session_id", "type", "string", "path", "type",
                     "string", "required", "session_id", "path");
}

/* --- read_file --- */

static const char *
image_type(struct span bytes)
{
    static const struct {
        const char *magic;
        size_t n;
        const char *mime;
    } types[] = {{"\x89PNG\r\n\x1a\n", 8, "image/png"},
                 {"\xff\xd8\xff", 3, "image/jpeg"},
                 {"GIF8", 4, "image/gif"}};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (bytes.n >= types[i].n && memcmp(bytes.p, types[i].magic, types[i].n) == 0)
            return types[i].mime;
    return NULL;
}

/* Text that stays readable, and small, in JSON, where control characters are six bytes each. */
static bool
is_text(struct span bytes)
{
    size_t controls = 0, most = bytes.n / CONTROLS_SHARE + CONTROLS_FREE;
    for (int n; bytes.n > 0; bytes.p += n, bytes.n -= (size_t)n) {
        n = utf8_next(bytes);
        controls += (unsigned char)*bytes.p < ' ' && !strchr("\t\n\r", *bytes.p);
        if (n <= 0 || *bytes.p == '\0' || controls > most)
            return false;
    }
    return true;
}

/* With its address, as a resource. */
static json_t *
contents_of(const struct mcp_call *call, struct span bytes)
{
    bool is_plain = is_text(bytes);
    const char *image = image_type(bytes);
    json_t *uri = resource_uri(call->session_id, path_of(call));
    json_t *data =
        is_plain ? json_stringn(bytes.p ? bytes.p : "", bytes.n) : protocol_base64(bytes);
    return json_pack("{s:o, s:s, s:o}", "uri", uri, "mimeType",
                     is_plain ? "text/plain"
                     : image  ? image
                              : "application/octet-stream",
                     is_plain ? "text" : "blob", data);
}

static json_t *
content_of(const struct mcp_call *call, struct span bytes)
{
    const char *image = image_type(bytes);
    if (image)
        return json_pack("{s:s, s:o, s:s}", "type", "image", "data",
                         protocol_base64(bytes), "mimeType", image);
    if (is_text(bytes))
        return json_pack("{s:s, s:o}", "type", "text", "text",
                         json_stringn(bytes.p ? bytes.p : "", bytes.n));
    return json_pack("{s:s, s:o}", "type", "resource", "resource",
                     contents_of(call, bytes));
}

static void
finish_read(struct mcp_call *call)
{
    struct span bytes = buf_span(&call->data);
    if (call->tool == &resource_tool) {
        mcp_call_finish(call, resource_result(call, contents_of(call, bytes)));
        return;
    }
    json_t *content = content_of(call, bytes);
    const char *kind = text_of(content, "type");
    json_t *result =
        json_pack("{s:[O], s:{s:s, s:s, s:I, s:s}}", "content", content,
                  "structuredContent", "session_id", call->session_id, "path",
                  path_of(call), "bytes", (json_int_t)bytes.n, "content_type", kind);
    json_decref(content);
    mcp_call_finish(call, result);
}

static void
hear_read(void *context, const json_t *message, bool last)
{
    struct mcp_call *call = context;
    struct err err;
    bool given;
    if (mcp_call_is_over(call, message, last))
        return;
    if (is_type(message, "data") && !call->is_cut &&
        (protocol_get_data(message, "data", &call->data, &given, &err) < 0 ||
         call->data.n > READ_BYTES_MAX)) {
        call->is_cut = true; /* what has begun is heard to its end */
        client_cancel(call->mcp->client, call->number);
    }
    if (!last)
        return;
    if (call->is_cut)
        mcp_call_fail(call, "file",
                      "%.300s is larger than 2 MiB: read parts of it with "
                      "execute_python.",
                      path_of(call));
    else if (has_worked(call, message, "done"))
        finish_read(call);
}

void
begin_read(struct mcp_call *call)
{
    call->data.n = 0;
    (void)mcp_call_ask(call,
                       json_pack("{s:s, s:s, s:s}", "type", "session_get", "session",
                                 call->session_id, "name", path_of(call)),
                       hear_read);
}

json_t *
output_read(void)
{
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}}, s:[s, s, s]}", "type",
                     "object", "properties", "session_id", "type", "string", "path",
                     "type", "string", "bytes", "type", "integer", "content_type", "type",
                     "string", "required", "session_id", "path", "bytes");
}

/* --- list_files --- */

static int
put_line(struct buf *out, const json_t *file)
{
    const char *change = text_of(file, "change"), *path = text_of(file, "path");
    long long bytes = json_integer_value(json_object_get(file, "bytes"));
    if (strcmp(change, "removed") == 0)
        return buf_printf(out, "%s (removed)\n", path);
    return buf_printf(out, "%s: %lld bytes, %s%s%s\n", path, bytes, text_of(file, "mime"),
                      change[0] != '\0' ? ", " : "", change);
}

/* Links to the first of them, for hosts that show or attach files. */
static void
add_links(const struct mcp_call *call, json_t *content, const json_t *files)
{
    size_t i, n = 0;
    const json_t *file;
    json_array_foreach(files, i, file)
    {
        bool is_there = strcmp(text_of(file, "change"), "removed") != 0;
        json_t *link = is_there && n < LINKS_MAX && !call->mcp->lacks_links
                           ? resource_link(call->session_id, file)
                           : NULL;
        if (link && json_array_append_new(content, link) == 0)
            n++;
    }
}

static void
hear_list(void *context, const json_t *message, bool last)
{
    struct mcp_call *call = context;
    const json_t *file;
    size_t i;
    int r = 0;
    if (mcp_call_is_over(call, message, last) || !last ||
        !has_worked(call, message, "files"))
        return;
    const json_t *files = json_object_get(message, "files");
    AUTO_BUF struct buf text = {0};
    buf_init(&text, LIST_BYTES_MAX);
    json_t *shown = json_array();
    json_array_foreach(files, i, file)
    {
        r = put_line(&text, file);
        if (r < 0) /* as many as there is room for */
            break;
        (void)json_array_append(shown, (json_t *)(uintptr_t)file);
    }
    size_t left = json_array_size(files) - json_array_size(shown);
    if (left > 0) {
        text.n -= text.n < NAME_BYTES ? text.n : NAME_BYTES;
        (void)!buf_printf(&text, "\n… and %zu more\n", left);
    }
    if (text.n == 0)
        (void)!buf_printf(&text, "There are no files.\n");
    json_t *result =
        result_text_block(text.p, text.n,
                          json_pack("{s:s, s:O, s:I}", "session_id", call->session_id,
                                    "files", shown, "omitted", (json_int_t)left),
                          false);
    add_links(call, json_object_get(result, "content"), shown);
    json_decref(shown);
    mcp_call_finish(call, result);
}

void
begin_list(struct mcp_call *call)
{
    (void)mcp_call_ask(
        call,
        json_pack("{s:s, s:s}", "type", "session_files", "session", call->session_id),
        hear_list);
}

json_t *
output_list(void)
{
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s, s:{s:s}}, s:{s:s}}, s:[s, s]}", "type",
                     "object", "properties", "session_id", "type", "string", "files",
                     "type", "array", "items", "type", "object", "omitted", "type",
                     "integer", "required", "session_id", "files");
}
