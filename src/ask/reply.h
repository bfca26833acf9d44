/*
 * What a model has answered, whatever the wire form: text, calls of tools, how it ended. All of
 * it is hostile input: bounded here, and never more than text.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum {
    REPLY_CALLS_MAX = 16,
    REPLY_TEXT_BYTES_MAX = 4 << 20,
    REPLY_ARGUMENTS_BYTES_MAX = 4 << 20,
    REPLY_ID_BYTES = 128,
    REPLY_NAME_BYTES = 128,
    REPLY_ERROR_BYTES = 8192, /* longer than a key that it may quote */
};

enum reply_finish {
    FINISH_UNKNOWN,
    FINISH_WHOLE,   /* it has said all that it wanted to */
    FINISH_CUT,     /* its limit of tokens came first */
    FINISH_REFUSED, /* it, or a filter at the endpoint, does not want to */
};

struct reply_call {
    char id[REPLY_ID_BYTES]; /* "" until reply_name_calls */
    char name[REPLY_NAME_BYTES];
    size_t wire;          /* how the endpoint tells it from others, in a stream */
    struct buf arguments; /* as text, perhaps no JSON */
};

struct reply {
    struct buf text;
    struct reply_call calls[REPLY_CALLS_MAX];
    size_t calls_n;
    enum reply_finish finish;
    bool ended; /* the endpoint has said that this is all */
    /* An error in the middle of a stream; "" when there was none. */
    char stopped[REPLY_ERROR_BYTES];
    uint64_t input_tokens, output_tokens; /* 0: not told */
    /* Gets text as it comes; may be NULL. */
    void (*on_text)(void *context, struct span text);
    void *context;
};

void reply_init(struct reply *reply);
void reply_done(struct reply *reply);
/* Empty again, as before the first byte; who listens stays. */
void reply_reset(struct reply *reply);

int reply_add_text(struct reply *reply, const json_t *text, struct err *err) MUST_USE;
/* The call that the endpoint knows by `wire`, made when it is new; NULL (err is set): there is no
 * room. */
struct reply_call *reply_call_at(struct reply *reply, size_t wire, struct err *err);
/* Names that do not fit, or that have controls in them, are no names. */
void reply_set_name(char *name, size_t n, const json_t *value);
int reply_add_arguments(struct reply_call *call, const json_t *text,
                        struct err *err) MUST_USE;
/* The arguments as one JSON value. */
int reply_set_arguments(struct reply_call *call, const json_t *value,
                        struct err *err) MUST_USE;
/* The text without the thoughts that some models put before it, in <think> and </think>; all of it
 * is thought when they do not end. */
struct span reply_said(const struct reply *reply);
/* Every call gets an id that no other has: what came, or one of ours. `made` counts those. */
void reply_name_calls(struct reply *reply, unsigned *made);
/* The arguments as an object to send back: an empty one where they are none. New reference. */
json_t *reply_arguments_object(const struct reply_call *call);
/* A count of tokens, 0 where it is none. */
uint64_t reply_tokens(const json_t *value);
