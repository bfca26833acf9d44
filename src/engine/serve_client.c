/*
 * One connection: bytes in, cut into requests; bytes out, as fast as the other end takes
 * them. What a client can make us hold is bounded: a large frame needs room that all
 * clients share, and one that does not read is not read from.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/serve_parts.h"

enum {
    READ_BYTES = 64 * 1024,
    READS_AT_ONCE = 16,
    ACCEPTS_AT_ONCE = 64,
    IN_BYTES_MAX = PROTOCOL_HEADER_BYTES + PROTOCOL_REQUEST_BYTES_MAX + READ_BYTES,
    KEPT_BYTES_MAX = 256 * 1024, /* of an empty buffer; more is given back */
};

/* An unfinished frame, or output that is not read: without any progress for this long the
 * connection is closed. */
static const struct timeval read_patience = {.tv_sec = 30};
static const struct timeval write_patience = {.tv_sec = 60};
static const struct timeval soon = {.tv_usec = 5000};
static const struct timeval accept_pause = {.tv_usec = 100 * 1000};

size_t
serve_client_pending(const struct serve_client *client)
{
    return client->out.n - client->out_done;
}

static void
account(struct serve_client *client)
{
    size_t now = client->closed ? 0 : serve_client_pending(client);
    client->serve->pending_bytes += now;
    client->serve->pending_bytes -= client->counted_bytes;
    client->counted_bytes = now;
}

static void
release_room(struct serve_client *client)
{
    if (client->reserved_bytes == 0)
        return;
    client->serve->held_bytes -= client->reserved_bytes;
    client->reserved_bytes = 0;
    serve_client_wake_all(client->serve);
}

/* Whether it is read from follows from what it holds. */
static void
set_reading(struct serve_client *client)
{
    bool wanted = !client->closed && !client->last_words && !client->wants_room &&
                  serve_client_pending(client) <= SERVE_STREAM_PENDING_MAX;
    if (wanted == client->reading)
        return;
    client->reading = wanted;
    if (wanted) {
        event_del(client->on_gone);
        event_add(client->on_read, &read_patience);
    } else {
        event_del(client->on_read);
        if (!client->closed)
            event_add(client->on_gone, NULL);
    }
}

void
serve_client_close(struct serve_client *client)
{
    if (client->closed)
        return;
    client->closed = true;
    set_reading(client);
    event_del(client->on_gone);
    event_del(client->on_write);
    account(client);
    client->wants_room = false;
    release_room(client);
    serve_job_abandon(client);
    serve_session_abandon(client);
    serve_files_abandon(client);
    event_active(client->later, 0, 0);
}

void
serve_client_free(struct serve_client *client)
{
    struct serve *serve = client->serve;
    *(client->before ? &client->before->after : &serve->clients) = client->after;
    if (client->after)
        client->after->before = client->before;
    serve->clients_n--;
    struct event *const events[] = {client->on_read, client->on_gone, client->on_write,
                                    client->later};
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (events[i])
            event_free(events[i]);
    for (size_t i = 0; i < client->fds_n; i++)
        fd_close(&client->fds[i]);
    fd_close(&client->fd);
    buf_done(&client->in);
    buf_done(&client->out);
    free(client);
}

/* ---- out ---- */

static void
give_back(struct buf *buf)
{
    buf->n = 0;
    if (buf->capacity > KEPT_BYTES_MAX)
        buf_done(buf);
}

/* What was sent leaves the buffer when it is most of it: seldom, and all at once. */
static void
drop_sent(struct serve_client *client)
{
    if (client->out_done == client->out.n)
        give_back(&client->out);
    else if (client->out_done > client->out.n / 2)
        buf_consume(&client->out, client->out_done);
    else
        return;
    client->out_done = 0;
}

void
serve_client_flush(struct serve_client *client)
{
    while (!client->closed && serve_client_pending(client) > 0) {
        ssize_t n = send(client->fd, client->out.p + client->out_done,
                         serve_client_pending(client), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            serve_client_close(client);
            return;
        }
        client->out_done += (size_t)n;
    }
    if (client->closed)
        return;
    drop_sent(client);
    account(client);
    if (serve_client_pending(client) > 0) {
        event_add(client->on_write, &write_patience);
    } else {
        event_del(client->on_write);
        event_del(client->later); /* all that was to be flushed soon is */
        if (client->last_words)
            serve_client_close(client);
        serve_check_drained(client->serve);
    }
    set_reading(client);
    serve_files_go_on(client);
}

void
serve_client_flush_soon(struct serve_client *client)
{
    account(client);
    if (!client->closed && !event_pending(client->later, EV_TIMEOUT, NULL))
        event_add(client->later, &soon);
}

static void
on_write(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    struct serve_client *client = context;
    if (what & EV_TIMEOUT)
        serve_client_close(client);
    else
        serve_client_flush(client);
}

static void
on_later(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct serve_client *client = context;
    struct serve *serve = client->serve;
    if (!client->closed) {
        serve_client_flush(client);
        return;
    }
    serve_client_free(client);
    if (serve->is_private)
        event_base_loopbreak(serve->base);
    serve_check_drained(serve);
}

/* ---- in ---- */

/* What it says cannot be understood from here on: one sentence, and the end. */
static void
hang_up(struct serve_client *client, const struct err *err)
{
    serve_reply_error(client, "", err);
    client->last_words = true;
    serve_client_flush(client);
}

static void
ask_session(struct serve_client *client, const struct protocol_request *request)
{
    struct err err = {0};
    if (serve_session_ask(client, request, &err) < 0)
        serve_reply_error(client, request->id, &err);
    serve_client_flush(client);
}

static void
answer(struct serve_client *client, struct protocol_request *request)
{
    switch (request->kind) {
    case PROTOCOL_HELLO:
        client->greeted = true;
        break;
    case PROTOCOL_RUN:
        /* The room goes from the frame to the job. */
        serve_job_ask(client, request);
        break;
    case PROTOCOL_SESSION_NEW:
    case PROTOCOL_SESSION_RESTART:
    case PROTOCOL_SESSION_COMPLETE:
        serve_job_ask(client, request);
        break;
    case PROTOCOL_SESSION_LIST:
    case PROTOCOL_SESSION_SHOW:
    case PROTOCOL_SESSION_INTERRUPT:
    case PROTOCOL_SESSION_CLOSE:
        ask_session(client, request);
        break;
    case PROTOCOL_SESSION_PUT:
    case PROTOCOL_SESSION_GET:
    case PROTOCOL_SESSION_FILES:
        serve_files_ask(client, request);
        break;
    case PROTOCOL_CANCEL:
        if (!serve_files_cancel(client, request->id))
            serve_job_cancel(client, request->id);
        break;
    case PROTOCOL_STATUS:
        serve_reply_status(client);
        serve_client_flush(client);
        break;
    case PROTOCOL_PING:
        serve_reply_pong(client);
        serve_client_flush(client);
        break;
    }
}

static void
take_frame(struct serve_client *client, struct span payload)
{
    struct protocol_request request;
    struct err err;
    int r = protocol_request_parse(payload, &request, &err);
    if (r == 0 && (request.kind == PROTOCOL_HELLO) == client->greeted)
        r = err_set(&err, -EBADMSG,
                    client->greeted ? "a second hello"
                                    : "the first frame is not a hello");
    if (r == -EBADMSG || r == -EPROTONOSUPPORT || (r < 0 && !client->greeted)) {
        hang_up(client, &err);
    } else if (r < 0) {
        err.code = r;
        serve_reply_error(client, request.id, &err);
        serve_client_flush(client);
    } else {
        answer(client, &request);
    }
    protocol_request_done(&request);
    release_room(client);
}

/* Room for a large frame is asked for once, when its length is known. */
static bool
reserve_room(struct serve_client *client, size_t frame_bytes)
{
    if (frame_bytes <= SERVE_LARGE_BYTES || client->reserved_bytes > 0)
        return true;
    struct serve *serve = client->serve;
    if (serve->held_bytes + frame_bytes > SERVE_HELD_MAX) {
        client->wants_room = true;
        return false;
    }
    serve->held_bytes += frame_bytes;
    client->reserved_bytes = frame_bytes;
    return true;
}

/* All frames that are whole; *ret_missing: how much of the next is still to come. */
static void
take_frames(struct serve_client *client, size_t *ret_missing)
{
    size_t done = 0;
    *ret_missing = 0;
    while (!client->closed && !client->last_words) {
        struct span rest = {client->in.p + done, client->in.n - done}, payload;
        struct err err;
        int r = rest.n == 0
                    ? 0
                    : protocol_frame(rest, PROTOCOL_REQUEST_BYTES_MAX, &payload, &err);
        if (rest.n == 0)
            break;
        if (r < 0) {
            hang_up(client, &err);
            break;
        }
        if (payload.n > 0 && !reserve_room(client, payload.n))
            break;
        if (r == 0) {
            if (payload.n > 0)
                *ret_missing = PROTOCOL_HEADER_BYTES + payload.n - rest.n;
            break;
        }
        take_frame(client, payload);
        done += PROTOCOL_HEADER_BYTES + payload.n;
    }
    if (done < client->in.n)
        buf_consume(&client->in, done);
    else
        give_back(&client->in);
}

static bool
keep_fds(struct serve_client *client, const int *fds)
{
    bool fit = true;
    for (size_t i = 0; i < FD_MESSAGE_MAX; i++) {
        if (fds[i] < 0)
            continue;
        if (client->fds_n < SERVE_FDS_MAX)
            client->fds[client->fds_n++] = fds[i];
        else
            fit = false, fd_close(&fds[i]);
    }
    return fit;
}

/* One read; false when there was no more to be had, or nothing more is wanted. */
static bool
read_once(struct serve_client *client, size_t *missing)
{
    size_t want = *missing > READ_BYTES ? *missing : READ_BYTES;
    int fds[FD_MESSAGE_MAX];
    if (want > READ_BYTES * READS_AT_ONCE)
        want = READ_BYTES * READS_AT_ONCE;
    if (buf_reserve(&client->in, want) < 0) {
        serve_client_close(client);
        return false;
    }
    ssize_t n =
        fd_receive(client->fd, client->in.p + client->in.n, want, fds, FD_MESSAGE_MAX);
    if (n == -EAGAIN)
        return false;
    if (n <= 0) { /* an end of its sending side is its end */
        serve_client_close(client);
        return false;
    }
    client->in.n += (size_t)n;
    if (!keep_fds(client, fds)) {
        struct err err;
        err_set(&err, -EBADMSG, "more than %d descriptors that no run takes",
                SERVE_FDS_MAX);
        hang_up(client, &err);
        return false;
    }
    take_frames(client, missing);
    return (size_t)n == want;
}

static void
read_some(struct serve_client *client)
{
    size_t missing = 0;
    if (client->in.n > 0) { /* what was left because there was no room for it */
        take_frames(client, &missing);
        set_reading(client);
    }
    for (int i = 0; client->reading && i < READS_AT_ONCE; i++) {
        bool more = read_once(client, &missing);
        set_reading(client);
        if (!more)
            return;
    }
}

static void
on_read(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    struct serve_client *client = context;
    if (!(what & EV_TIMEOUT))
        read_some(client);
    else if (client->in.n > 0 || !client->greeted)
        serve_client_close(client);
}

static void
on_gone(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    serve_client_close(context);
}

void
serve_client_wake_all(struct serve *serve)
{
    for (struct serve_client *client = serve->clients; client; client = client->after) {
        if (!client->wants_room)
            continue;
        client->wants_room = false;
        set_reading(client);
        /* What it sent may lie in our buffer already. */
        event_active(client->on_read, EV_READ, 0);
    }
}

/* ---- accepting ---- */

static struct serve_client *
client_new(struct serve *serve, int *fd)
{
    struct serve_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->serve = serve;
    client->fd = fd_take(fd);
    client->after = serve->clients;
    if (client->after)
        client->after->before = client;
    serve->clients = client;
    serve->clients_n++;
    buf_init(&client->in, IN_BYTES_MAX);
    buf_init(&client->out, SIZE_MAX / 2); /* held by the sums, not by this */
    struct event_base *base = serve->base;
    client->on_read = event_new(base, client->fd, EV_READ | EV_PERSIST, on_read, client);
    client->on_gone =
        event_new(base, client->fd, EV_CLOSED | EV_PERSIST, on_gone, client);
    client->on_write =
        event_new(base, client->fd, EV_WRITE | EV_PERSIST, on_write, client);
    client->later = event_new(base, -1, 0, on_later, client);
    if (!client->on_read || !client->on_gone || !client->on_write || !client->later) {
        serve_client_free(client);
        return NULL;
    }
    return client;
}

int
serve_client_welcome(struct serve *serve, int *fd, struct err *err)
{
    int r = serve_check_peer(*fd, err);
    if (r == 0 && serve->clients_n >= SERVE_CLIENTS_MAX)
        r = err_set(err, -EBUSY, "%d clients are connected", SERVE_CLIENTS_MAX);
    if (r < 0) {
        serve_reply_refusal(*fd, err);
        return r;
    }
    struct serve_client *client = client_new(serve, fd);
    if (!client)
        return err_set(err, -ENOMEM, "no memory for a client");
    serve_reply_hello(client);
    serve_client_flush_soon(client);
    set_reading(client);
    read_some(client); /* most send at once: a turn of the loop saved */
    return 0;
}

void
serve_accept(evutil_socket_t listener, short what, void *context)
{
    (void)what;
    struct serve *serve = context;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        AUTO_CLOSE int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct err err;
        if (fd >= 0) {
            (void)!serve_client_welcome(serve, &fd, &err); /* it was told */
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN) { /* no descriptors left: let some be closed first */
            event_del(serve->on_accept);
            event_add(serve->on_accept_again, &accept_pause);
        }
        return;
    }
}
