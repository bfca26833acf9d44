/*
 * Chat completions, as OpenAI, Ollama, vLLM, llama.cpp and others speak them. What they differ
 * in is taken as it comes: calls without ids, arguments as an object, a whole call in one piece,
 * members that nobody has announced.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ask/form.h"
#include "ask/tools.h"

/* A reference to `value` goes over, whatever comes; NULL is no value. */
static bool
set(json_t *root, const char *name, json_t *value)
{
    return json_object_set_new(root, name, value) == 0;
}

static json_t *
request(const struct form_request *q)
{
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "system", "content", q->system);
    json_t *root = json_pack("{s:s, s:b}", "model", q->model, "stream", q->stream);
    bool whole = root && messages && json_array_extend(messages, q->messages) == 0;
    whole = whole && json_object_set(root, "messages", messages) == 0;
    if (whole && q->tools)
        whole = set(root, "tools", json_pack("[o]", tools_definition("openai"))) &&
                set(root, "tool_choice", json_string("auto"));
    if (whole && q->max_tokens > 0)
        whole = set(root, q->is_maker ? "max_completion_tokens" : "max_tokens",
                    json_integer((json_int_t)q->max_tokens));
    if (whole && q->stream)
        whole = set(root, "stream_options", json_pack("{s:b}", "include_usage", true));
    json_decref(messages);
    if (whole)
        return root;
    json_decref(root);
    return NULL;
}

static const struct {
    const char *reason;
    enum reply_finish finish;
} reasons[] = {
    {"stop", FINISH_WHOLE},
    {"tool_calls", FINISH_WHOLE},
    {"function_call", FINISH_WHOLE},
    {"length", FINISH_CUT},
    {"content_filter", FINISH_REFUSED},
};

static void
take_reason(const json_t *choice, struct reply *reply)
{
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    for (size_t i = 0; reason && i < sizeof(reasons) / sizeof(*reasons); i++)
        if (strcmp(reason, reasons[i].reason) == 0)
            reply->finish = reasons[i].finish;
    reply->ended = reply->ended || reason;
}

static void
take_usage(const json_t *root, struct reply *reply)
{
    const json_t *usage = json_object_get(root, "usage");
    if (!json_is_object(usage))
        return;
    reply->input_tokens = reply_tokens(json_object_get(usage, "prompt_tokens"));
    reply->output_tokens = reply_tokens(json_object_get(usage, "completion_tokens"));
}

/* A text, or a list of parts that have one. */
static int
take_content(const json_t *content, struct reply *reply, struct err *err)
{
    size_t i;
    json_t *part;
    int r = reply_add_text(reply, content, err);
    json_array_foreach(content, i, part) if (r == 0) r =
        reply_add_text(reply, json_object_get(part, "text"), err);
    return r;
}

static int
take_call(const json_t *value, size_t wire, struct reply *reply, struct err *err)
{
    const json_t *function = json_object_get(value, "function");
    struct reply_call *call = reply_call_at(reply, wire, err);
    if (!call)
        return err->code;
    reply_set_name(call->id, sizeof(call->id), json_object_get(value, "id"));
    reply_set_name(call->name, sizeof(call->name), json_object_get(function, "name"));
    return reply_set_arguments(call, json_object_get(function, "arguments"), err);
}

/* No index that an endpoint sends is one of these. */
static size_t
new_wire(const struct reply *reply)
{
    return SIZE_MAX - reply->calls_n;
}

/* Which call a piece of one belongs to: where it says, unless that one has another id; without an
 * index, one with an id begins a call and one without goes on with the last. */
static size_t
wire_of(const json_t *value, size_t position, const struct reply *reply, bool whole)
{
    const json_t *index = json_object_get(value, "index");
    const char *id = json_string_value(json_object_get(value, "id"));
    bool has_id = id && id[0] != '\0';
    if (whole)
        return position;
    if (!json_is_integer(index) || json_integer_value(index) < 0)
        return has_id || reply->calls_n == 0 ? new_wire(reply)
                                             : reply->calls[reply->calls_n - 1].wire;
    size_t wire = (size_t)json_integer_value(index);
    for (size_t i = 0; has_id && i < reply->calls_n; i++) {
        const struct reply_call *call = &reply->calls[i];
        if (call->wire == wire && call->id[0] != '\0' && strcmp(call->id, id) != 0)
            return new_wire(reply);
    }
    return wire;
}

static int
take_message(const json_t *message, struct reply *reply, bool whole, struct err *err)
{
    size_t i;
    json_t *value;
    int r = take_content(json_object_get(message, "content"), reply, err);
    json_array_foreach(json_object_get(message, "tool_calls"), i, value) if (r == 0) r =
        take_call(value, wire_of(value, i, reply, whole), reply, err);
    if (r == 0 && json_is_string(json_object_get(message, "refusal")))
        r = reply_add_text(reply, json_object_get(message, "refusal"), err);
    return r;
}

static int
take_answer(const json_t *root, struct reply *reply, struct err *err)
{
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const json_t *message = json_object_get(choice, "message");
    if (!json_is_object(message))
        return err_set(err, -EPROTO, "the endpoint's answer has no message in it");
    take_reason(choice, reply);
    take_usage(root, reply);
    reply->ended = true;
    return take_message(message, reply, true, err);
}

static int
take_event(const char *name, const json_t *root, struct reply *reply, struct err *err)
{
    (void)name;
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    if (json_object_get(root, "error"))
        form_error_text(root, reply->stopped, sizeof(reply->stopped));
    take_usage(root, reply);
    if (!json_is_object(choice)) /* the one with the usage has none */
        return 0;
    int r = take_message(json_object_get(choice, "delta"), reply, false, err);
    take_reason(choice, reply);
    return r;
}

static bool
add_user(json_t *messages, struct span text)
{
    return json_array_append_new(messages, json_pack("{s:s, s:s%}", "role", "user",
                                                     "content", text.p, text.n)) == 0;
}

static json_t *
call_json(const struct reply_call *call)
{
    json_t *object = reply_arguments_object(call);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    json_t *value =
        !text ? NULL
              : json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", call->id, "type", "function",
                          "function", "name", call->name, "arguments", text);
    free(text);
    return value;
}

static bool
add_reply(json_t *messages, const struct reply *reply)
{
    struct span text = buf_span(&reply->text);
    json_t *content =
        text.n > 0 || reply->calls_n == 0 ? json_stringn(text.p, text.n) : json_null();
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", content);
    json_t *calls = reply->calls_n > 0 ? json_array() : NULL;
    bool good = message && (calls || reply->calls_n == 0);
    for (size_t i = 0; good && i < reply->calls_n; i++)
        good = json_array_append_new(calls, call_json(&reply->calls[i])) == 0;
    if (good && calls)
        good = json_object_set(message, "tool_calls", calls) == 0;
    json_decref(calls);
    if (good)
        return json_array_append_new(messages, message) == 0;
    json_decref(message);
    return false;
}

static bool
add_results(json_t *messages, const struct reply *reply,
            const struct form_result *results)
{
    bool good = true;
    for (size_t i = 0; good && i < reply->calls_n; i++)
        good = json_array_append_new(
                   messages, json_pack("{s:s, s:s, s:s%}", "role", "tool", "tool_call_id",
                                       reply->calls[i].id, "content", results[i].text.p,
                                       results[i].text.n)) == 0;
    return good;
}

const struct form form_openai = {
    .name = "openai",
    .base_url = "https://api.openai.com/v1",
    .path = "/chat/completions",
    .key_variable = "OPENAI_API_KEY",
    .base_variable = "OPENAI_BASE_URL",
    .model_variable = "OPENAI_MODEL",
    .key_header = "Authorization: Bearer %s",
    .end_of_stream = "[DONE]",
    .request = request,
    .take_answer = take_answer,
    .take_event = take_event,
    .add_user = add_user,
    .add_reply = add_reply,
    .add_results = add_results,
};
