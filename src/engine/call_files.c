/* Files of a session, from a client's side. */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/call.h"
#include "engine/call_parts.h"

enum {
    PATIENCE_US = 30 * 1000 * 1000,
    RETRY_NS = 200 * 1000 * 1000,
    ASKED_BYTES_MAX = 64 * 1024
};

struct receiving {
    const struct call_data *to; /* NULL: none is expected */
    const char *last;           /* the type of the last message */
    uint64_t bytes;
    crypto_hash_sha256_state hash;
};

static int
take_data(struct receiving *receiving, const json_t *message, struct err *err)
{
    bool given;
    AUTO_BUF struct buf bytes = {0};
    buf_init(&bytes, PROTOCOL_REPLY_BYTES_MAX);
    int r = protocol_get_data(message, "data", &bytes, &given, err);
    if (r < 0 || !receiving->to)
        return r;
    receiving->bytes += bytes.n;
    crypto_hash_sha256_update(&receiving->hash, (const unsigned char *)buf_span(&bytes).p,
                              bytes.n);
    return receiving->to->on_data(receiving->to->context, buf_span(&bytes), err);
}

static int
check_done(struct receiving *receiving, const json_t *message, struct err *err)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    char text[2 * sizeof(digest) + 1];
    const char *told = call_text(message, "sha256");
    if (!receiving->to)
        return 1;
    crypto_hash_sha256_final(&receiving->hash, digest);
    sodium_bin2hex(text, sizeof(text), digest, sizeof(digest));
    bool same = json_integer_value(json_object_get(message, "bytes")) ==
                (json_int_t)receiving->bytes;
    if (!same || (told[0] != '\0' && strcmp(told, text) != 0))
        return err_set(err, -EBADMSG, "what came is not what the supervisor has sent");
    return 1;
}

static int
take_error(const json_t *message, struct err *err)
{
    static const struct {
        const char *word;
        int code;
    } codes[] = {{"session", -EIDRM}, {"file", -ENODATA}};
    const char *word = call_text(message, "code");
    int code = -EPROTO;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        if (strcmp(word, codes[i].word) == 0)
            code = codes[i].code;
    return err_set(err, code, "%.200s", call_text(message, "message"));
}

/* 1: it was the last. */
static int
take(struct receiving *receiving, const json_t *message, struct err *err)
{
    const char *type = call_text(message, "type");
    if (strcmp(type, receiving->last) == 0)
        return check_done(receiving, message, err);
    if (strcmp(type, "data") == 0)
        return take_data(receiving, message, err);
    if (strcmp(type, "error") == 0)
        return take_error(message, err);
    if (strcmp(type, "busy") == 0)
        return err_set(err, -EBUSY, "the supervisor is busy with other files");
    return 0;
}

static int
converse(const char *socket, struct span frames, struct receiving *receiving,
         json_t **ret, struct err *err)
{
    struct call call;
    json_t *message = NULL;
    int r = call_open(socket, &call, err);
    if (r < 0)
        return r;
    r = call_send(&call, frames, -1, err);
    while (r == 0) {
        r = call_receive(&call, &message, err);
        if (r < 0)
            break;
        r = take(receiving, message, err);
        if (r == 1)
            *ret = message;
        else
            json_decref(message);
    }
    call_close(&call);
    return r < 0 ? r : 0;
}

/* A supervisor with much to do says so before it begins. */
static int
ask(const char *socket, struct span frames, const struct call_data *to, const char *last,
    json_t **ret, struct err *err)
{
    static const struct timespec pause = {.tv_nsec = RETRY_NS};
    uint64_t until = clock_now_us() + PATIENCE_US;
    int r;
    do {
        struct receiving receiving = {.to = to, .last = last};
        crypto_hash_sha256_init(&receiving.hash);
        r = converse(socket, frames, &receiving, ret, err);
    } while (r == -EBUSY && clock_now_us() < until && nanosleep(&pause, NULL) == 0);
    return r;
}

/* --- what is asked --- */

static int
put_head(struct buf *out, const char *type, const char *session)
{
    int r = buf_printf(out, "{\"type\":\"%s\",\"id\":\"1\",\"session\":", type);
    return r < 0 ? r : protocol_put_text(out, span_of(session));
}

static int
put_get(struct buf *out, const char *session, const char *path)
{
    int r = put_head(out, "session_get", session);
    if (r == 0 && path)
        r = buf_append(out, ",", 1);
    if (r == 0 && path)
        r = protocol_put_data(out, "name", span_of(path));
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
put_put(struct buf *out, const char *session, const struct job *job)
{
    int r = put_head(out, "session_put", session);
    if (r == 0)
        r = call_put_files(out, job);
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
why_not_put(int r, struct err *err)
{
    if (r == -EILSEQ)
        return err_set(err, -EINVAL,
                       "a name is not UTF-8, and a supervisor cannot be told of it");
    if (r == -ENOSPC)
        return err_set(err, -EFBIG,
                       "the request is longer than the %d MiB that a supervisor takes",
                       PROTOCOL_REQUEST_BYTES_MAX >> 20);
    return err_set(err, r, "no memory for a request");
}

int
call_put_session(const char *socket, const char *session, const struct job *job,
                 struct err *err)
{
    json_t *done;
    size_t at;
    AUTO_BUF struct buf out = {0};
    buf_init(&out, PROTOCOL_REQUEST_BYTES_MAX + 64);
    int r = call_put_hello(&out);
    if (r == 0)
        r = protocol_begin(&out, &at);
    if (r == 0)
        r = protocol_end(&out, at, put_put(&out, session, job));
    if (r < 0)
        return why_not_put(r, err);
    r = ask(socket, buf_span(&out), NULL, "done", &done, err);
    if (r == 0)
        json_decref(done);
    return r;
}

int
call_get_session(const char *socket, const char *session, const char *path,
                 const struct call_data *to, json_t **ret, struct err *err)
{
    size_t at;
    AUTO_BUF struct buf out = {0};
    buf_init(&out, ASKED_BYTES_MAX);
    int r = call_put_hello(&out);
    if (r == 0)
        r = protocol_begin(&out, &at);
    if (r == 0)
        r = protocol_end(&out, at, put_get(&out, session, path));
    return r < 0 ? why_not_put(r, err)
                 : ask(socket, buf_span(&out), to, "done", ret, err);
}

int
call_list_session(const char *socket, const char *session, json_t **ret, struct err *err)
{
    size_t at;
    AUTO_BUF struct buf out = {0};
    buf_init(&out, ASKED_BYTES_MAX);
    int r = call_put_hello(&out);
    if (r == 0)
        r = protocol_begin(&out, &at);
    if (r == 0) {
        r = put_head(&out, "session_files", session);
        r = protocol_end(&out, at, r < 0 ? r : buf_append(&out, "}", 1));
    }
    return r < 0 ? why_not_put(r, err)
                 : ask(socket, buf_span(&out), NULL, "files", ret, err);
}
