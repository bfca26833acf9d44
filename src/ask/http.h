/*
 * One POST over HTTP or HTTPS, by libcurl, which is loaded when it is first needed: no other
 * command pays for it. Follows no redirections, speaks no other protocol.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/span.h"

struct http;

enum { HTTP_HEADERS_MAX = 8, HTTP_TYPE_BYTES = 64 };

struct http_request {
    const char *url;
    const char *headers[HTTP_HEADERS_MAX]; /* "Name: value" */
    size_t headers_n;
    struct span body;
    const char *ca_file; /* certificates to trust instead of the system's, or NULL */
    const char *proxy;   /* NULL: as the environment says */
    uint64_t timeout_ms; /* of all of it */
    /* Gets the body as it comes; not 0 (err is set) ends the transfer. */
    int (*on_body)(void *context, struct span bytes, struct err *err);
    void *context;
};

struct http_answer {
    long status; /* 0: there was none */
    char type[HTTP_TYPE_BYTES];
    bool has_retry_after;
    uint64_t retry_after_ms;
};

/* -ENOSYS: libcurl cannot be loaded. */
int http_new(struct http **ret, struct err *err) MUST_USE;
void http_free(struct http *http);
/* *answer is filled as its head comes, so that on_body may look at it. -EIO: the transfer failed,
 * and may succeed another time; -ETIMEDOUT: its time is over; other errors are on_body's or final. */
int http_post(struct http *http, const struct http_request *request,
              struct http_answer *answer, struct err *err) MUST_USE;
