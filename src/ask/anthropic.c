/* Anthropic's Messages: content is a list of blocks, a call's input an object, results are the
 * user's. */
#include <errno.h>
#include <string.h>

#include "ask/form.h"
#include "ask/tools.h"

enum { MAX_TOKENS = 8192 /* the form wants one */ };

static json_t *
request(const struct form_request *q)
{
    json_t *root =
        json_pack("{s:s, s:I, s:s, s:O, s:b}", "model", q->model, "max_tokens",
                  (json_int_t)(q->max_tokens > 0 ? q->max_tokens : MAX_TOKENS), "system",
                  q->system, "messages", q->messages, "stream", q->stream);
    if (!root || !q->tools ||
        json_object_set_new(root, "tools",
                            json_pack("[o]", tools_definition("anthropic"))) == 0)
        return root;
    json_decref(root);
    return NULL;
}

static const struct {
    const char *reason;
    enum reply_finish finish;
} reasons[] = {
    {"end_turn", FINISH_WHOLE},      {"tool_use", FINISH_WHOLE},
    {"stop_sequence", FINISH_WHOLE}, {"pause_turn", FINISH_WHOLE},
    {"max_tokens", FINISH_CUT},      {"model_context_window_exceeded", FINISH_CUT},
    {"refusal", FINISH_REFUSED},
};

static void
take_reason(const json_t *holder, struct reply *reply)
{
    const char *reason = json_string_value(json_object_get(holder, "stop_reason"));
    for (size_t i = 0; reason && i < sizeof(reasons) / sizeof(*reasons); i++)
        if (strcmp(reason, reasons[i].reason) == 0)
            reply->finish = reasons[i].finish;
}

/* message_start has the input's, message_delta the output's. */
static void
take_usage(const json_t *holder, struct reply *reply)
{
    const json_t *usage = json_object_get(holder, "usage");
    uint64_t in = reply_tokens(json_object_get(usage, "input_tokens"));
    uint64_t out = reply_tokens(json_object_get(usage, "output_tokens"));
    reply->input_tokens = in > 0 ? in : reply->input_tokens;
    reply->output_tokens = out > 0 ? out : reply->output_tokens;
}

static bool
is_type(const json_t *value, const char *type)
{
    const char *text = json_string_value(json_object_get(value, "type"));
    return text && strcmp(text, type) == 0;
}

static int
begin_call(const json_t *block, struct reply *reply, struct err *err)
{
    struct reply_call *call = reply_call_at(reply, reply->calls_n, err);
    if (!call)
        return err->code;
    reply_set_name(call->id, sizeof(call->id), json_object_get(block, "id"));
    reply_set_name(call->name, sizeof(call->name), json_object_get(block, "name"));
    const json_t *input = json_object_get(block, "input");
    /* A streamed call begins with an empty one; its text follows. */
    return json_object_size(input) > 0 || json_is_string(input)
               ? reply_set_arguments(call, input, err)
               : 0;
}

static int
take_block(const json_t *block, struct reply *reply, struct err *err)
{
    if (is_type(block, "text"))
        return reply_add_text(reply, json_object_get(block, "text"), err);
    return is_type(block, "tool_use") ? begin_call(block, reply, err) : 0;
}

static int
take_answer(const json_t *root, struct reply *reply, struct err *err)
{
    size_t i;
    json_t *block;
    const json_t *content = json_object_get(root, "content");
    if (!json_is_array(content))
        return err_set(err, -EPROTO, "the endpoint's answer has no content in it");
    int r = 0;
    json_array_foreach(content, i, block) if (r == 0) r = take_block(block, reply, err);
    take_reason(root, reply);
    take_usage(root, reply);
    reply->ended = true;
    return r;
}

/* Blocks come one after the other: a piece of input belongs to the call begun last. */
static int
take_delta(const json_t *delta, struct reply *reply, struct err *err)
{
    if (is_type(delta, "text_delta"))
        return reply_add_text(reply, json_object_get(delta, "text"), err);
    if (is_type(delta, "input_json_delta") && reply->calls_n > 0)
        return reply_add_arguments(&reply->calls[reply->calls_n - 1],
                                   json_object_get(delta, "partial_json"), err);
    return 0;
}

static int
take_event(const char *name, const json_t *event, struct reply *reply, struct err *err)
{
    (void)name; /* the event says its type again */
    if (is_type(event, "error"))
        form_error_text(event, reply->stopped, sizeof(reply->stopped));
    if (is_type(event, "message_start"))
        take_usage(json_object_get(event, "message"), reply);
    if (is_type(event, "message_stop"))
        reply->ended = true;
    if (is_type(event, "message_delta")) {
        take_reason(json_object_get(event, "delta"), reply);
        take_usage(event, reply);
    }
    if (is_type(event, "content_block_start"))
        return take_block(json_object_get(event, "content_block"), reply, err);
    if (is_type(event, "content_block_delta"))
        return take_delta(json_object_get(event, "delta"), reply, err);
    return 0;
}

static bool
add_user(json_t *messages, struct span text)
{
    return json_array_append_new(messages, json_pack("{s:s, s:s%}", "role", "user",
                                                     "content", text.p, text.n)) == 0;
}

static bool
add_reply(json_t *messages, const struct reply *reply)
{
    json_t *blocks = json_array();
    struct span text = buf_span(&reply->text);
    bool good = blocks != NULL;
    /* An empty text is refused, and so is a message without a block. */
    if (good && (text.n > 0 || reply->calls_n == 0))
        good = json_array_append_new(
                   blocks, json_pack("{s:s, s:s%}", "type", "text", "text",
                                     text.n > 0 ? text.p : "(nothing)",
                                     text.n > 0 ? text.n : strlen("(nothing)"))) == 0;
    for (size_t i = 0; good && i < reply->calls_n; i++)
        good = json_array_append_new(
                   blocks,
                   json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id",
                             reply->calls[i].id, "name", reply->calls[i].name, "input",
                             reply_arguments_object(&reply->calls[i]))) == 0;
    if (good)
        return json_array_append_new(
                   messages,
                   json_pack("{s:s, s:o}", "role", "assistant", "content", blocks)) == 0;
    json_decref(blocks);
    return false;
}

static bool
add_results(json_t *messages, const struct reply *reply,
            const struct form_result *results)
{
    json_t *blocks = json_array();
    bool good = blocks != NULL;
    for (size_t i = 0; good && i < reply->calls_n; i++)
        good =
            json_array_append_new(
                blocks, json_pack("{s:s, s:s, s:[{s:s, s:s%}], s:b}", "type",
                                  "tool_result", "tool_use_id", reply->calls[i].id,
                                  "content", "type", "text", "text", results[i].text.p,
                                  results[i].text.n, "is_error", results[i].failed)) == 0;
    if (good)
        return json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user",
                                                         "content", blocks)) == 0;
    json_decref(blocks);
    return false;
}

const struct form form_anthropic = {
    .name = "anthropic",
    .base_url = "https://api.anthropic.com",
    .path = "/v1/messages",
    .key_variable = "ANTHROPIC_API_KEY",
    .base_variable = "ANTHROPIC_BASE_URL",
    .model_variable = "ANTHROPIC_MODEL",
    .key_header = "x-api-key: %s",
    .header = "anthropic-version: 2023-06-01",
    .request = request,
    .take_answer = take_answer,
    .take_event = take_event,
    .add_user = add_user,
    .add_reply = add_reply,
    .add_results = add_results,
};
