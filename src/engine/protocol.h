/*
 * What stands on the supervisor's socket: frames of a length and one JSON object, both
 * ways. The form is docs/PROTOCOL.md; here are its bounds, how frames are cut out of
 * bytes, how they are written, and what a request may hold. No sockets, no event loop.
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
#include "job/job.h"
#include "policy/policy.h"

enum {
    PROTOCOL_VERSION = 1,
    PROTOCOL_HEADER_BYTES = 4, /* the length of what follows, big end first */
    PROTOCOL_REQUEST_BYTES_MAX = 96 * 1024 * 1024,
    PROTOCOL_REPLY_BYTES_MAX = 256 * 1024 * 1024,
    PROTOCOL_DEPTH_MAX = 32, /* an outcome, and JSON that a run has shown within it */
    /* Commas, colons and brackets outside strings: what a parsed value costs is many
     * times its bytes, so their number has a bound of its own. */
    PROTOCOL_REQUEST_MARKS_MAX = 16 * 1024,
    PROTOCOL_REPLY_MARKS_MAX = 4 * 1024 * 1024,
    PROTOCOL_ID_BYTES = 65, /* NUL included; letters, digits and ". _ : -" */
    PROTOCOL_SESSION_BYTES = 40,
    PROTOCOL_LIMITS_MAX = 64,
    PROTOCOL_LIMIT_TEXT_BYTES = 64,
    PROTOCOL_PATH_BYTES = 512,
};

/* ---- protocol.c: from bytes to values ---- */

/* The frame at the front of `bytes`: 1, and *ret_payload lies within them; 0 when it is
 * not whole yet, and *ret_payload.n is the length that it tells, 0 while that is unknown.
 * -EMSGSIZE: longer than max; -EBADMSG: empty. */
int protocol_frame(struct span bytes, size_t max, struct span *ret_payload,
                   struct err *err) MUST_USE;
/* One JSON object of at most that many marks. -EBADMSG with the reason. */
int protocol_load(struct span payload, size_t marks_max, json_t **ret,
                  struct err *err) MUST_USE;
/* The bytes behind `name` (text) or `name`_base64 of an object, appended to out; false in
 * *ret_given when neither is there. */
int protocol_get_data(const json_t *object, const char *name, struct buf *out,
                      bool *ret_given, struct err *err) MUST_USE;

/* ---- protocol_put.c: from values to bytes ---- */

/* Begins a frame at the end of out: *ret_at is what protocol_end needs. */
int protocol_begin(struct buf *out, size_t *ret_at) MUST_USE;
/* Writes its length; with a negative r takes the frame back, and returns r. */
int protocol_end(struct buf *out, size_t at, int r) MUST_USE;
/* A JSON string. -EILSEQ: not UTF-8; out is then as it was. */
int protocol_put_text(struct buf *out, struct span text) MUST_USE;
/* A string of base64, for requests that are put together as values. NULL: no memory. */
json_t *protocol_base64(struct span bytes);
/* "name":"…" when the bytes are UTF-8, else "name_base64":"…". */
int protocol_put_data(struct buf *out, const char *name, struct span bytes) MUST_USE;

/* ---- protocol_request.c: what a client asks ---- */

enum protocol_kind {
    PROTOCOL_HELLO,
    PROTOCOL_RUN,
    PROTOCOL_CANCEL,
    PROTOCOL_STATUS,
    PROTOCOL_PING,
    PROTOCOL_SESSION_NEW,
    PROTOCOL_SESSION_RESTART,
    PROTOCOL_SESSION_LIST,
    PROTOCOL_SESSION_SHOW,
    PROTOCOL_SESSION_INTERRUPT,
    PROTOCOL_SESSION_CLOSE,
    PROTOCOL_SESSION_COMPLETE,
    PROTOCOL_SESSION_PUT,
    PROTOCOL_SESSION_GET,
    PROTOCOL_SESSION_FILES,
};

struct protocol_limit {
    const struct policy_field *field;
    char text[PROTOCOL_LIMIT_TEXT_BYTES];
};

struct protocol_data {
    char path[PROTOCOL_PATH_BYTES];
    char name[JOB_FOLDER_NAME_BYTES]; /* "": none given */
};

struct protocol_run {
    char policy[POLICY_NAME_BYTES];
    char python[PROTOCOL_PATH_BYTES]; /* absolute; "": the supervisor's own */
    struct job job;
    struct protocol_limit limits[PROTOCOL_LIMITS_MAX];
    size_t limits_n;
    struct protocol_data
        data[JOB_FOLDERS_MAX]; /* folders of the host; see data_folders.h */
    size_t data_n;
    char workspace[JOB_FOLDER_NAME_BYTES]; /* "": none */
    bool stream;
    bool check; /* validation alone: it is never run */
    bool tied;  /* a session: ends with the connection that has made it */
    bool has_cursor;
    uint64_t cursor; /* of session_complete: characters of the code before it */
};

struct protocol_request {
    enum protocol_kind kind;
    char id[PROTOCOL_ID_BYTES];           /* "" when there is none */
    char session[PROTOCOL_SESSION_BYTES]; /* "": none */
    char path[JOB_PATH_BYTES];            /* of session_get; "": all files */
    /* Of a run, of what opens a session, and of session_put, for its files; owned. */
    struct protocol_run *run;
};

/* -EBADMSG: not of this protocol, nothing more can be understood; -EPROTONOSUPPORT: of
 * another version; -EINVAL: a wrong request, whose id is in *ret when it could be read,
 * so that the answer names it. *ret needs protocol_request_done after failures too. */
int protocol_request_parse(struct span payload, struct protocol_request *ret,
                           struct err *err) MUST_USE;
void protocol_request_done(struct protocol_request *request);
void protocol_run_free(struct protocol_run *run);
