/*
 * Speaks the protocol as a client: hello and request in one message, then frames until
 * the end. Everything that can go wrong is told apart by whether something may have run:
 * a run is asked for again only after the supervisor has said that it did not begin.
 */
#include "engine/call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/call_parts.h"
#include "engine/serve.h"

enum {
    READ_BYTES = 64 * 1024,
    ANSWER_MS = 10 * 1000, /* of silence; then it is asked whether it lives */
    SEND_TIMEOUT_S = 30,
    ASKED_BYTES_MAX = 64 * 1024,
};

static int
address_of(const char *path, struct sockaddr_un *ret, struct err *err)
{
    char own[SERVE_PATH_BYTES];
    if (!path) {
        int r = serve_default_socket(own, err);
        if (r < 0)
            return r;
        path = own;
    }
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(ret->sun_path))
        return err_set(err, -ENAMETOOLONG, "--socket: a path has 1 to %zu bytes",
                       sizeof(ret->sun_path) - 1);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, n + 1);
    return 0;
}

/* Code and files go to whoever listens: only to ourselves, or to root. */
static int
check_server(int fd, const char *path, struct err *err)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return err_sys(err, "ask who listens on %s", path);
    if (peer.uid == geteuid() || peer.uid == 0)
        return 0;
    return err_set(err, -EPERM, "user %u listens on %s: nothing is sent to strangers",
                   peer.uid, path);
}

int
call_open(const char *path, struct call *ret, struct err *err)
{
    struct sockaddr_un address;
    int r = address_of(path, &address, err);
    if (r < 0)
        return r;
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(err, "make a socket");
    const struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
    (void)!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        r = -errno;
        err_sys(err, "no supervisor answers on %s", address.sun_path);
        return r == -ECONNREFUSED || r == -EACCES || r == -ENOTDIR ? -ENOENT : r;
    }
    r = check_server(fd, address.sun_path, err);
    if (r < 0)
        return r;
    *ret = (struct call){.fd = fd_take(&fd)};
    snprintf(ret->path, sizeof(ret->path), "%s", address.sun_path);
    buf_init(&ret->in, PROTOCOL_HEADER_BYTES + PROTOCOL_REPLY_BYTES_MAX + READ_BYTES);
    return 0;
}

void
call_close(struct call *call)
{
    fd_close(&call->fd);
    call->fd = -1;
    buf_done(&call->in);
}

int
call_send(const struct call *call, struct span bytes, int fd, struct err *err)
{
    int r = fd_send(call->fd, bytes.p, bytes.n, &fd, fd >= 0 ? 1 : 0);
    if (r == 0)
        return 0;
    /* What it said before it hung up is worth more than that it did. */
    if (r == -EPIPE || r == -ECONNRESET)
        return 0;
    return err_set(err, r, "cannot send to the supervisor on %s: %s", call->path,
                   strerrordesc_np(-r));
}

static int
put_ping(struct buf *out)
{
    size_t at;
    int r = protocol_begin(out, &at);
    return r < 0 ? r : protocol_end(out, at, buf_printf(out, "{\"type\":\"ping\"}"));
}

/* Waits for something to read. After silence it asks; after silence upon that it gives
 * up. */
static int
wait_readable(const struct call *call, struct err *err)
{
    struct pollfd ready = {.fd = call->fd, .events = POLLIN};
    for (bool asked = false;; asked = true) {
        int n;
        do
            n = poll(&ready, 1, ANSWER_MS);
        while (n < 0 && errno == EINTR);
        if (n > 0)
            return 0;
        if (n < 0)
            return err_sys(err, "wait for the supervisor");
        if (asked)
            return err_set(err, -ETIMEDOUT, "the supervisor on %s does not answer",
                           call->path);
        AUTO_BUF struct buf ping = {0};
        buf_init(&ping, 64);
        if (put_ping(&ping) == 0)
            (void)!send(call->fd, ping.p, ping.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static int
read_more(struct call *call, size_t missing, struct err *err)
{
    size_t want = missing > READ_BYTES ? missing : READ_BYTES;
    int r = buf_reserve(&call->in, want);
    if (r < 0)
        return err_set(err, r, "no memory for what the supervisor says");
    r = wait_readable(call, err);
    if (r < 0)
        return r;
    ssize_t n;
    do
        n = recv(call->fd, call->in.p + call->in.n, want, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return err_set(err, -ECONNRESET,
                       "the supervisor on %s is gone; how far it came is not known",
                       call->path);
    call->in.n += (size_t)n;
    return 0;
}

int
call_receive(struct call *call, json_t **ret, struct err *err)
{
    buf_consume(&call->in, call->taken);
    call->taken = 0;
    for (;;) {
        struct span payload;
        int r =
            protocol_frame(buf_span(&call->in), PROTOCOL_REPLY_BYTES_MAX, &payload, err);
        if (r < 0)
            return r;
        if (r > 0) {
            call->taken = PROTOCOL_HEADER_BYTES + payload.n;
            return protocol_load(payload, PROTOCOL_REPLY_MARKS_MAX, ret, err);
        }
        size_t missing =
            payload.n > 0 ? PROTOCOL_HEADER_BYTES + payload.n - call->in.n : 0;
        r = read_more(call, missing, err);
        if (r < 0)
            return r;
    }
}

int
call_put_hello(struct buf *out)
{
    size_t at;
    int r = protocol_begin(out, &at);
    return r < 0 ? r
                 : protocol_end(out, at,
                                buf_printf(out, "{\"adyton\":%d}", PROTOCOL_VERSION));
}

const char *
call_text(const json_t *message, const char *name)
{
    const char *text = json_string_value(json_object_get(message, name));
    return text ? text : "";
}

static int
put_json(struct buf *out, const json_t *request)
{
    size_t at;
    AUTO_FREE char *text = json_dumps(request, JSON_COMPACT);
    int r = text ? call_put_hello(out) : -ENOMEM;
    if (r == 0)
        r = protocol_begin(out, &at);
    return r < 0 ? r : protocol_end(out, at, buf_append(out, text, strlen(text)));
}

static bool
is_one_of(const char *type, const char *const *types)
{
    for (; *types; types++)
        if (strcmp(type, *types) == 0)
            return true;
    return false;
}

static int
await(struct call *call, const char *const *types, json_t **ret, struct err *err)
{
    for (;;) {
        json_t *message;
        int r = call_receive(call, &message, err);
        if (r < 0)
            return r;
        const char *type = call_text(message, "type");
        if (is_one_of(type, types)) {
            *ret = message;
            return 0;
        }
        if (strcmp(type, "error") == 0)
            r = err_set(err, -EPROTO, "%.200s", call_text(message, "message"));
        else if (strcmp(type, "busy") == 0)
            r = err_set(err, -EPROTO, "the supervisor is busy");
        json_decref(message);
        if (r < 0)
            return r;
    }
}

int
call_ask(const char *socket, const json_t *request, const char *const *types,
         json_t **ret, struct err *err)
{
    struct call call;
    AUTO_BUF struct buf out = {0};
    buf_init(&out, ASKED_BYTES_MAX);
    int r = call_open(socket, &call, err);
    if (r < 0)
        return r;
    r = put_json(&out, request);
    r = r < 0 ? err_set(err, r, "the request is too long, or there is no memory for it")
              : call_send(&call, buf_span(&out), -1, err);
    if (r == 0)
        r = await(&call, types, ret, err);
    call_close(&call);
    return r;
}

/* The status without what makes it a frame. */
static int
keep_status(json_t *message, struct buf *ret, struct err *err)
{
    json_object_del(message, "type");
    char *text = json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(6));
    int r = text ? buf_append(ret, text, strlen(text)) : -ENOMEM;
    free(text);
    return r < 0 ? err_set(err, r, "no memory for the status") : 0;
}

int
call_status(const char *socket, struct buf *ret, struct err *err)
{
    static const char *const types[] = {"status", NULL};
    json_t *message, *request = json_pack("{s:s}", "type", "status");
    if (!request)
        return err_set(err, -ENOMEM, "no memory for a request");
    int r = call_ask(socket, request, types, &message, err);
    json_decref(request);
    if (r < 0)
        return r;
    r = keep_status(message, ret, err);
    json_decref(message);
    return r;
}
