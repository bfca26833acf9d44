/*
 * A model behind an endpoint: sends a conversation, gives the answer. Knows retries, time and
 * tokens; nothing of code.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "ask/form.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

struct http;

enum { ENDPOINT_URL_BYTES = 2048, ENDPOINT_BODY_BYTES_MAX = 64 << 20 };

struct endpoint {
    const struct form *form;
    const char *base_url; /* NULL: the form's own */
    const char *model;
    const struct buf *key; /* empty: none */
    const char *ca_file, *proxy;
    bool stream;
    bool no_tools;    /* set, too, when the endpoint says that it knows none */
    bool plain_key;   /* a key may go over plain HTTP to another machine */
    unsigned retries; /* after the first try */
    uint64_t max_tokens;
    uint64_t until_us; /* on base/clock.h's clock */
    /* A line about what is waited for; may be NULL. */
    void (*on_wait)(void *context, const char *text);
    void *context;
    struct http *http;
    char url[ENDPOINT_URL_BYTES];
};

/* The URL, and whether a key may be sent there. -EINVAL says what is wrong with it. */
int endpoint_init(struct endpoint *endpoint, struct err *err) MUST_USE;
void endpoint_done(struct endpoint *endpoint);
/* *body is what was sent: the whole prompt. The reply is initialised; on failure it may hold a part
 * of an answer. */
int endpoint_ask(struct endpoint *endpoint, const char *system, json_t *messages,
                 struct buf *body, struct reply *reply, struct err *err) MUST_USE;
