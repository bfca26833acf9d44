/*
 * The wire forms of chat endpoints: how a conversation is written, and how an answer is read,
 * whole or streamed. The messages of a conversation are kept in the form's own JSON.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "ask/reply.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"

enum { FORM_RESULTS_MAX = REPLY_CALLS_MAX };

struct form_request {
    const char *model;
    const char *system;
    json_t *messages;    /* borrowed */
    uint64_t max_tokens; /* of the answer; 0: the endpoint's own */
    bool stream;
    bool tools;    /* it is told of the tool */
    bool is_maker; /* at the form's own base URL: the newest words are known there */
};

struct form_result {
    struct span text; /* valid UTF-8 */
    bool failed;
};

struct form {
    const char *name;
    const char *base_url; /* unless another is given */
    const char *path;     /* of chat, beneath the base */
    const char *key_variable, *base_variable, *model_variable; /* of the environment */
    const char *key_header;                                    /* a format with one %s */
    const char *header;                                        /* one more, or NULL */
    const char *end_of_stream; /* data that ends a stream, or NULL */
    json_t *(*request)(const struct form_request *request); /* NULL: no memory */
    int (*take_answer)(const json_t *answer, struct reply *reply, struct err *err);
    int (*take_event)(const char *name, const json_t *event, struct reply *reply,
                      struct err *err);
    /* Messages; false: no memory, or text that is not valid UTF-8. */
    bool (*add_user)(json_t *messages, struct span text);
    bool (*add_reply)(json_t *messages, const struct reply *reply);
    bool (*add_results)(json_t *messages, const struct reply *reply,
                        const struct form_result *results);
};

extern const struct form form_openai, form_anthropic;
extern const struct form *const forms[]; /* NULL-terminated */
/* NULL: there is none of that name. */
const struct form *form_by_name(const char *name);

/* "{\"error\": …}" in any of the ways of endpoints, as one printable line; "" when there is none. */
void form_error_text(const json_t *root, char *text, size_t n);
