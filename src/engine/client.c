/*
 * Requests out, messages in, each to whoever asked. Nothing here waits for the socket; a connection
 * that breaks is told in a turn of the loop of its own, so that no caller is called from its call.
 */
#include "engine/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/units.h"
#include "engine/call_parts.h"
#include "engine/client_parts.h"

enum { READ_BYTES = 64 * 1024, READS_AT_ONCE = 16, OUT_BYTES_MAX = 256 * 1024 * 1024 };

struct asked {
    struct asked *after;
    uint64_t number;
    client_hear *hear; /* NULL: nobody listens any more */
    void *context;
};

struct client {
    struct event_base *base;
    struct client_options options;
    int fd;
    struct carried carried;
    struct event *on_read, *on_write, *on_break;
    struct buf in, out;
    size_t out_done;
    struct asked *asked;
    size_t asked_n;
    uint64_t next;
    bool paused, is_closed,
        is_hearing;    /* hearing: closed meanwhile, it is freed after it */
    struct err broken; /* code 0: it is not */
};

/* --- the end of a connection --- */

static void
break_off(struct client *client, int code, const char *why)
{
    if (client->broken.code != 0)
        return;
    err_set(&client->broken, code, "%s", why);
    event_del(client->on_read);
    event_del(client->on_write);
    event_active(client->on_break, 0, 0);
}

static void
free_client(struct client *client)
{
    struct event *const events[] = {client->on_read, client->on_write, client->on_break};
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (events[i])
            event_free(events[i]);
    for (struct asked *asked = client->asked, *after; asked; asked = after) {
        after = asked->after;
        free(asked);
    }
    fd_close(&client->fd);
    carried_end(&client->carried);
    buf_done(&client->in);
    buf_done(&client->out);
    free(client);
}

void
client_close(struct client *client)
{
    if (!client)
        return;
    client->is_closed = true;
    if (!client->is_hearing)
        free_client(client);
}

/* Calls back; false: the client was closed meanwhile. */
static bool
tell(struct client *client, const struct asked *asked, const json_t *message, bool last)
{
    if (asked->hear)
        asked->hear(asked->context, message, last);
    return !client->is_closed;
}

static struct asked *
take_out(struct client *client, struct asked **at)
{
    struct asked *asked = *at;
    *at = asked->after;
    client->asked_n--;
    return asked;
}

static void
on_break(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct client *client = context;
    client->is_hearing = true;
    while (client->asked && !client->is_closed) {
        struct asked *asked = take_out(client, &client->asked);
        (void)tell(client, asked, NULL, true);
        free(asked);
    }
    if (!client->is_closed && client->options.on_gone)
        client->options.on_gone(client->options.context, &client->broken);
    client->is_hearing = false;
    if (client->is_closed)
        free_client(client);
}

/* --- messages in --- */

static bool
goes_on(const char *type)
{
    static const char *const types[] = {"accepted", "started",  "stdout", "stderr",
                                        "display",  "incident", "usage",  "dropped",
                                        "file",     "data"};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

static struct asked **
find(struct client *client, uint64_t number)
{
    struct asked **at = &client->asked;
    while (*at && (*at)->number != number)
        at = &(*at)->after;
    return at;
}

/* False: the client is closed, or the connection broken. */
static bool
take_message(struct client *client, const json_t *message)
{
    uint64_t number;
    const char *id = call_text(message, "id"), *type = call_text(message, "type");
    bool named = id[0] != '\0' && parse_u64(span_of(id), &number) == 0;
    if (!named && strcmp(type, "error") == 0) {
        break_off(client, -EPROTO, call_text(message, "message"));
        return false;
    }
    struct asked **at = named ? find(client, number) : NULL;
    if (!at || !*at)
        return true; /* the greeting; or what was cancelled when it had ended already */
    if (goes_on(type))
        return tell(client, *at, message, false);
    struct asked *asked = take_out(client, at);
    bool open = tell(client, asked, message, true);
    free(asked);
    return open;
}

/* The next whole frame: 1 when there was one, 0 when there is none, negative when no more will be
 * understood. */
static int
take_frame(struct client *client, size_t *done)
{
    struct span rest = {client->in.p + *done, client->in.n - *done}, payload;
    json_t *message;
    struct err err;
    if (rest.n == 0 || client->paused)
        return 0;
    int r = protocol_frame(rest, PROTOCOL_REPLY_BYTES_MAX, &payload, &err);
    if (r > 0) {
        *done += PROTOCOL_HEADER_BYTES + payload.n;
        r = protocol_load(payload, PROTOCOL_REPLY_MARKS_MAX, &message, &err);
        if (r == 0) {
            r = take_message(client, message) ? 1 : 0;
            json_decref(message);
        }
    }
    if (r < 0)
        break_off(client, r, err.text);
    return r;
}

static void
take_frames(struct client *client)
{
    size_t done = 0;
    client->is_hearing = true;
    while (take_frame(client, &done) > 0)
        continue;
    client->is_hearing = false;
    buf_consume(&client->in, done);
    if (client->is_closed)
        free_client(client);
}

/* One read; false: there was no more, or nothing more is wanted. */
static bool
read_once(struct client *client)
{
    if (buf_reserve(&client->in, READ_BYTES) < 0) {
        break_off(client, -ENOMEM, "no memory for what the supervisor says");
        return false;
    }
    ssize_t n;
    do
        n = recv(client->fd, client->in.p + client->in.n, READ_BYTES, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        break_off(client, -ECONNRESET,
                  "the supervisor is gone; how far what was asked came is not known");
        return false;
    }
    client->in.n += (size_t)n;
    return n == READ_BYTES;
}

static void
on_read(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct client *client = context;
    for (int i = 0; i < READS_AT_ONCE && read_once(client); i++)
        continue;
    take_frames(client);
}

void
client_pause(struct client *client, bool pause)
{
    if (client->paused == pause || client->broken.code != 0)
        return;
    client->paused = pause;
    if (pause) {
        event_del(client->on_read);
    } else {
        event_add(client->on_read, NULL);
        event_active(client->on_read, EV_READ, 0); /* frames that lie here already */
    }
}

/* --- requests out --- */

static void
flush(struct client *client)
{
    while (client->broken.code == 0 && client->out_done < client->out.n) {
        ssize_t n = send(client->fd, client->out.p + client->out_done,
                         client->out.n - client->out_done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            event_add(client->on_write, NULL);
            return;
        }
        /* What it said before it hung up is worth more than that it did. */
        if (n < 0)
            break;
        client->out_done += (size_t)n;
    }
    client->out.n = client->out_done = 0;
    event_del(client->on_write);
}

static void
on_write(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    flush(context);
}

static int
put_frame(struct client *client, const json_t *request)
{
    size_t at;
    AUTO_FREE char *text = json_dumps(request, JSON_COMPACT);
    size_t n = text ? strlen(text) : 0;
    if (n > PROTOCOL_REQUEST_BYTES_MAX)
        return -EMSGSIZE;
    int r = text ? protocol_begin(&client->out, &at) : -ENOMEM;
    return r < 0 ? r : protocol_end(&client->out, at, buf_append(&client->out, text, n));
}

/* A descriptor belongs to the first byte of its frame, so all before it must be away. */
static int
send_with(struct client *client, const json_t *request, int fd)
{
    int r = 0;
    if (client->out.n > client->out_done)
        return -EAGAIN;
    r = put_frame(client, request);
    if (r == 0)
        r = fd_send(client->fd, client->out.p, 1, &fd, 1);
    client->out_done = r == 0 ? 1 : client->out.n;
    return r;
}

int
client_ask(struct client *client, json_t *request, int fd, client_hear *hear,
           void *context, uint64_t *ret_number, struct err *err)
{
    char id[UNITS_TEXT_BYTES];
    if (client->broken.code != 0)
        return err_set(err, client->broken.code, "%s", client->broken.text);
    if (client->asked_n == CLIENT_REQUESTS_MAX)
        return err_set(err, -EAGAIN, "%d requests are waiting for their answers",
                       CLIENT_REQUESTS_MAX);
    struct asked *asked = malloc(sizeof(*asked));
    snprintf(id, sizeof(id), "%llu", (unsigned long long)client->next);
    int r =
        asked && json_object_set_new(request, "id", json_string(id)) == 0 ? 0 : -ENOMEM;
    if (r == 0)
        r = fd < 0 ? put_frame(client, request) : send_with(client, request, fd);
    if (r < 0) {
        free(asked);
        return err_set(err, r, "cannot ask the supervisor: %s", strerrordesc_np(-r));
    }
    *asked = (struct asked){client->asked, client->next, hear, context};
    client->asked = asked;
    client->asked_n++;
    *ret_number = client->next++;
    flush(client);
    return 0;
}

void
client_cancel(struct client *client, uint64_t number)
{
    char id[UNITS_TEXT_BYTES];
    if (client->broken.code != 0 || !*find(client, number))
        return;
    snprintf(id, sizeof(id), "%llu", (unsigned long long)number);
    json_t *request = json_pack("{s:s, s:s}", "type", "cancel", "id", id);
    if (!request || put_frame(client, request) < 0)
        break_off(client, -ENOMEM, "no memory to cancel a request");
    json_decref(request);
    flush(client);
}

void
client_forget(struct client *client, uint64_t number)
{
    struct asked *asked = *find(client, number);
    if (!asked)
        return;
    asked->hear = NULL;
    client_cancel(client, number);
}

/* --- the beginning --- */

static int
connect_to(struct client *client, struct err *err)
{
    const struct client_options *options = &client->options;
    struct call call;
    int r = options->alone ? -ENOENT : call_open(options->socket, &call, err);
    if (r == 0) {
        client->fd = fd_take(&call.fd);
        call_close(&call);
    } else if (r == -ENOENT && (options->carry || options->alone)) {
        r = carried_start(options->serve, &client->carried, &client->fd, err);
    }
    return r;
}

static int
begin(struct client *client, struct err *err)
{
    int r = connect_to(client, err);
    if (r == 0 && call_put_hello(&client->out) < 0)
        r = err_set(err, -ENOMEM, "no memory for a greeting");
    if (r < 0)
        return r;
    client->on_read =
        event_new(client->base, client->fd, EV_READ | EV_PERSIST, on_read, client);
    client->on_write =
        event_new(client->base, client->fd, EV_WRITE | EV_PERSIST, on_write, client);
    client->on_break = event_new(client->base, -1, 0, on_break, client);
    if (!client->on_read || !client->on_write || !client->on_break ||
        event_add(client->on_read, NULL) < 0)
        return err_set(err, -ENOMEM, "no memory for the connection's events");
    flush(client);
    return 0;
}

int
client_open(struct event_base *base, const struct client_options *options,
            struct client **ret, struct err *err)
{
    struct client *client = calloc(1, sizeof(*client));
    if (!client)
        return err_set(err, -ENOMEM, "no memory for a client");
    *client = (struct client){.base = base, .options = *options, .fd = -1, .next = 1};
    buf_init(&client->in, PROTOCOL_HEADER_BYTES + PROTOCOL_REPLY_BYTES_MAX + READ_BYTES);
    buf_init(&client->out, OUT_BYTES_MAX);
    int r = begin(client, err);
    if (r < 0) {
        free_client(client);
        return r;
    }
    *ret = client;
    return 0;
}

bool
client_carries(const struct client *client)
{
    return client->carried.pid > 0;
}
