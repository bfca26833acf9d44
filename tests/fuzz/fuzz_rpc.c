/*
 * Lines of an MCP client, each a message to a server that reaches no supervisor: whatever they are,
 * what is answered is JSON-RPC, one answer at most to each, none to a notification. libFuzzer drives
 * it (meson setup -Dfuzz=true, with clang); started with names of files it runs each once.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "mcp/mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct heard {
    size_t answers;
};

static void
hear(void *context, struct span message)
{
    struct heard *heard = context;
    heard->answers++;
    assert(message.n > 0 && message.n <= MCP_REPLY_BYTES_MAX);
    assert(!memchr(message.p, '\n', message.n));
    json_t *root =
        json_loadb(message.p, message.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    const json_t *id = json_object_get(root, "id"),
                 *error = json_object_get(root, "error");
    assert(json_is_object(root) && id && !json_object_get(root, "method"));
    assert(!error != !json_object_get(root, "result"));
    assert(error ? json_is_integer(json_object_get(error, "code")) &&
                       json_is_string(json_object_get(error, "message"))
                 : json_is_string(id) || json_is_integer(id));
    json_decref(root);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct event_base *base;
    struct heard heard = {0};
    struct err err;
    struct mcp *mcp;
    if (!base)
        base = event_base_new();
    const struct mcp_options options = {.base = base,
                                        .client = {.socket = "/nonexistent/socket"},
                                        .send = hear,
                                        .context = &heard};
    if (mcp_new(&options, &mcp, &err) < 0)
        return 0;
    struct span rest = {(const char *)bytes, n};
    while (rest.n > 0) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t line = end ? (size_t)(end - rest.p) : rest.n, before = heard.answers;
        mcp_take(mcp, (struct span){rest.p, line});
        event_base_loop(base, EVLOOP_NONBLOCK);
        assert(heard.answers <= before + 1);
        line += end != NULL;
        rest = (struct span){rest.p + line, rest.n - line};
    }
    mcp_free(mcp);
    return 0;
}
