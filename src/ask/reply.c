/* Gathers an answer from the pieces that a form reads out of JSON. */
#include "ask/reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 1 << 30 };

void
reply_init(struct reply *reply)
{
    *reply = (struct reply){0};
    buf_init(&reply->text, REPLY_TEXT_BYTES_MAX);
}

void
reply_done(struct reply *reply)
{
    buf_done(&reply->text);
    for (size_t i = 0; i < reply->calls_n; i++)
        buf_done(&reply->calls[i].arguments);
    reply->calls_n = 0;
}

void
reply_reset(struct reply *reply)
{
    void (*on_text)(void *, struct span) = reply->on_text;
    void *context = reply->context;
    reply_done(reply);
    reply_init(reply);
    reply->on_text = on_text;
    reply->context = context;
}

static int
full(int r, const char *what, int max, struct err *err)
{
    if (r == -ENOSPC)
        return err_set(err, r, "the model's %s has more than %d bytes", what, max);
    return err_set(err, r, "no memory for the model's %s", what);
}

int
reply_add_text(struct reply *reply, const json_t *text, struct err *err)
{
    if (!json_is_string(text))
        return 0;
    struct span s = {json_string_value(text), json_string_length(text)};
    int r = buf_append(&reply->text, s.p, s.n);
    if (r < 0)
        return full(r, "answer", REPLY_TEXT_BYTES_MAX, err);
    if (reply->on_text && s.n > 0)
        reply->on_text(reply->context, s);
    return 0;
}

struct reply_call *
reply_call_at(struct reply *reply, size_t wire, struct err *err)
{
    for (size_t i = 0; i < reply->calls_n; i++)
        if (reply->calls[i].wire == wire)
            return &reply->calls[i];
    if (reply->calls_n >= REPLY_CALLS_MAX) {
        err_set(err, -E2BIG, "the model calls more than %d tools at once",
                REPLY_CALLS_MAX);
        return NULL;
    }
    struct reply_call *call = &reply->calls[reply->calls_n++];
    *call = (struct reply_call){.wire = wire};
    buf_init(&call->arguments, REPLY_ARGUMENTS_BYTES_MAX);
    return call;
}

void
reply_set_name(char *name, size_t n, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || text[0] == '\0' || strlen(text) >= n ||
        strlen(text) != json_string_length(value))
        return;
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7F)
            return;
    snprintf(name, n, "%s", text);
}

int
reply_add_arguments(struct reply_call *call, const json_t *text, struct err *err)
{
    if (!json_is_string(text))
        return 0;
    int r =
        buf_append(&call->arguments, json_string_value(text), json_string_length(text));
    return r < 0 ? full(r, "tool call", REPLY_ARGUMENTS_BYTES_MAX, err) : 0;
}

int
reply_set_arguments(struct reply_call *call, const json_t *value, struct err *err)
{
    if (json_is_string(value))
        return reply_add_arguments(call, value, err);
    if (!json_is_object(value))
        return 0;
    char *text = json_dumps(value, JSON_COMPACT);
    if (!text)
        return err_set(err, -ENOMEM, "no memory for a tool call");
    int r = buf_append(&call->arguments, text, strlen(text));
    free(text);
    return r < 0 ? full(r, "tool call", REPLY_ARGUMENTS_BYTES_MAX, err) : 0;
}

struct span
reply_said(const struct reply *reply)
{
    static const char opens[] = "<think>", closes[] = "</think>";
    struct span s = buf_span(&reply->text);
    size_t at = 0;
    while (at < s.n && strchr(" \t\r\n", s.p[at]) && s.p[at] != '\0')
        at++;
    if (s.n - at < sizeof(opens) - 1 || memcmp(s.p + at, opens, sizeof(opens) - 1) != 0)
        return s;
    const char *end = memmem(s.p, s.n, closes, sizeof(closes) - 1);
    if (!end)
        return (struct span){s.p + s.n, 0};
    at = (size_t)(end - s.p) + sizeof(closes) - 1;
    while (at < s.n && strchr("\r\n", s.p[at]) && s.p[at] != '\0')
        at++;
    return (struct span){s.p + at, s.n - at};
}

static bool
is_taken(const struct reply *reply, size_t before, const char *id)
{
    for (size_t i = 0; i < before; i++)
        if (strcmp(reply->calls[i].id, id) == 0)
            return true;
    return false;
}

void
reply_name_calls(struct reply *reply, unsigned *made)
{
    for (size_t i = 0; i < reply->calls_n; i++) {
        struct reply_call *call = &reply->calls[i];
        while (call->id[0] == '\0' || is_taken(reply, i, call->id))
            snprintf(call->id, sizeof(call->id), "call_%u", ++*made);
    }
}

json_t *
reply_arguments_object(const struct reply_call *call)
{
    struct span text = buf_span(&call->arguments);
    json_t *object = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);
    if (json_is_object(object))
        return object;
    json_decref(object);
    return json_object();
}

uint64_t
reply_tokens(const json_t *value)
{
    json_int_t n = json_integer_value(value);
    return n > 0 && n < TOKENS_MAX ? (uint64_t)n : 0;
}
