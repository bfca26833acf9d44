/* What the supervisor says, frame by frame, written into what waits to be sent. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "engine/serve_parts.h"

/* The words that programs go by. */
enum { US_PER_MS = 1000 };

static const struct {
    int code;
    const char *word;
} words[] = {
    {-EBADMSG, "protocol"}, {-EMSGSIZE, "protocol"}, {-EPROTONOSUPPORT, "version"},
    {-EINVAL, "request"},   {-ENOENT, "policy"},     {-EPERM, "limit"},
    {-ERANGE, "limit"},     {-ENOEXEC, "python"},    {-EFBIG, "memory"},
    {-EACCES, "peer"},      {-EBUSY, "clients"},     {-ESRCH, "id"},
    {-EIDRM, "session"},    {-ENODATA, "file"},
};

static const char *
word_of(int code)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (words[i].code == code)
            return words[i].word;
    return "internal";
}

/* Out of memory for an answer: better none than half of one. */
bool
serve_reply_end(struct serve_client *client, size_t at, int r)
{
    r = protocol_end(&client->out, at, r);
    if (r < 0)
        serve_client_close(client);
    return r == 0;
}

bool
serve_reply_begin(struct serve_client *client, size_t *at)
{
    if (client->closed)
        return false;
    if (protocol_begin(&client->out, at) == 0)
        return true;
    serve_client_close(client);
    return false;
}

PRINTF(2, 3)
static void
say(struct serve_client *client, const char *format, ...)
{
    char text[512];
    size_t at;
    va_list args;
    if (!serve_reply_begin(client, &at))
        return;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    serve_reply_end(client, at,
                    n > 0 && n < (int)sizeof(text)
                        ? buf_append(&client->out, text, (size_t)n)
                        : -EINVAL);
}

void
serve_reply_hello(struct serve_client *client)
{
    say(client, "{\"adyton\":%d,\"program\":\"%s\"}", PROTOCOL_VERSION, ADYTON_VERSION);
}

void
serve_reply_pong(struct serve_client *client)
{
    say(client, "{\"type\":\"pong\"}");
}

void
serve_reply_accepted(struct serve_client *client, const char *id, size_t ahead)
{
    say(client, "{\"type\":\"accepted\",\"id\":\"%s\",\"ahead\":%zu}", id, ahead);
}

void
serve_reply_busy(struct serve_client *client, const char *id, uint64_t retry_ms)
{
    client->serve->refused++;
    say(client, "{\"type\":\"busy\",\"id\":\"%s\",\"retry_after_ms\":%" PRIu64 "}", id,
        retry_ms);
}

void
serve_reply_dropped(struct serve_client *client, const char *id, int stream)
{
    say(client, "{\"type\":\"dropped\",\"id\":\"%s\",\"stream\":\"%s\"}", id,
        stream == 1 ? "stdout" : "stderr");
}

int
serve_reply_put_text(struct buf *out, struct span text, uint64_t *ret_replaced)
{
    AUTO_BUF struct buf valid = {0};
    buf_init(&valid, 4 * text.n + 1);
    *ret_replaced = 0;
    int r = utf8_append_valid(&valid, text, ret_replaced);
    return r < 0 ? r : protocol_put_text(out, buf_span(&valid));
}

static int
put_error(struct buf *out, const char *id, const struct err *err)
{
    uint64_t replaced;
    int r = buf_printf(out, "{\"type\":\"error\",\"code\":\"%s\",", word_of(err->code));
    if (r == 0 && id[0] != '\0')
        r = buf_printf(out, "\"id\":\"%s\",", id);
    if (r == 0)
        r = buf_printf(out, "\"message\":");
    if (r == 0) /* a path in it may be no UTF-8 */
        r = serve_reply_put_text(out, span_of(err->text), &replaced);
    return r < 0 ? r : buf_append(out, "}", 1);
}

void
serve_reply_error(struct serve_client *client, const char *id, const struct err *err)
{
    size_t at;
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, put_error(&client->out, id, err));
}

void
serve_reply_refusal(int fd, const struct err *err)
{
    AUTO_BUF struct buf out = {0};
    size_t at;
    buf_init(&out, 4096);
    int r = protocol_begin(&out, &at);
    if (r == 0)
        r = protocol_end(&out, at, put_error(&out, "", err));
    if (r == 0) /* a fresh socket has room for it */
        (void)!send(fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int
put_output(struct buf *out, const char *id, int stream, struct span bytes)
{
    char time[RUN_EVENT_TIME_BYTES];
    int r = buf_printf(out, "{\"type\":\"%s\",\"id\":\"%s\",\"time\":\"%s\",",
                       stream == 1 ? "stdout" : "stderr", id,
                       run_event_time(run_event_now_us(), time));
    if (r == 0)
        r = protocol_put_data(out, "data", bytes);
    return r < 0 ? r : buf_append(out, "}", 1);
}

void
serve_reply_output(struct serve_client *client, const char *id, int stream,
                   struct span bytes)
{
    size_t at;
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, put_output(&client->out, id, stream, bytes));
}

void
serve_reply_event(struct serve_client *client, const char *id,
                  const struct run_event *event)
{
    size_t at;
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, run_event_put(event, id, &client->out));
}

static int
put_display(struct buf *out, const char *id, const struct display_item *item)
{
    char time[RUN_EVENT_TIME_BYTES];
    int r = buf_printf(out,
                       "{\"type\":\"display\",\"id\":\"%s\",\"time\":\"%s\","
                       "\"item\":",
                       id, run_event_time(run_event_now_us(), time));
    if (r == 0)
        r = display_item_write(item, out);
    return r < 0 ? r : buf_append(out, "}", 1);
}

void
serve_reply_display(struct serve_client *client, const char *id,
                    const struct display_item *item)
{
    size_t at;
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, put_display(&client->out, id, item));
}

static int
put_finished(struct buf *out, const char *id, const struct outcome *outcome)
{
    char time[RUN_EVENT_TIME_BYTES];
    int r = buf_printf(out,
                       "{\"type\":\"finished\",\"id\":\"%s\",\"time\":\"%s\","
                       "\"outcome\":",
                       id, run_event_time(run_event_now_us(), time));
    if (r == 0)
        r = outcome_json(outcome, OUTCOME_JSON_COMPACT | OUTCOME_JSON_EXACT, out);
    return r < 0 ? r : buf_append(out, "}", 1);
}

/* Facts without what was written and shown, for an outcome that no frame can hold. */
static void
empty_claims(struct outcome *outcome)
{
    struct stream *const streams[] = {&outcome->out, &outcome->err};
    for (size_t i = 0; i < 2; i++)
        *streams[i] = (struct stream){.dropped_bytes = streams[i]->total_bytes,
                                      .total_bytes = streams[i]->total_bytes};
    outcome->displays = (struct displays){.dropped = outcome->displays.dropped +
                                                     outcome->displays.items_n};
    outcome->events = (struct events){0};
}

void
serve_reply_finished(struct serve_client *client, const char *id,
                     const struct outcome *outcome)
{
    size_t at;
    if (!serve_reply_begin(client, &at))
        return;
    int r = protocol_end(&client->out, at, put_finished(&client->out, id, outcome));
    if (r == 0)
        return;
    struct outcome facts = *outcome; /* borrows what it points to */
    empty_claims(&facts);
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, put_finished(&client->out, id, &facts));
}

static int
put_session(struct buf *out, const struct serve_session *session)
{
    static const char *const states[] = {"opening", "idle", "ended"};
    bool busy =
        session->state == SESSION_OPEN && session->current && !session->current->opens;
    uint64_t now = clock_now_us();
    int r =
        buf_printf(out,
                   "{\"session_id\":\"%s\",\"state\":\"%s\",\"execution_count\":%" PRIu32
                   ",\"age_ms\":%" PRIu64 ",\"idle_ms\":%" PRIu64
                   ",\"memory_bytes\":%" PRIu64 ",\"policy\":",
                   session->id, busy ? "busy" : states[session->state], session->runs,
                   (now - session->opened_us) / US_PER_MS,
                   busy ? 0 : (now - session->last_us) / US_PER_MS,
                   session->run ? pool_memory_bytes(session->run) : 0);
    if (r == 0)
        r = protocol_put_text(out, span_of(session->policy.name));
    if (r == 0 && session->state == SESSION_ENDED) {
        r = buf_printf(out, ",\"reason\":");
        if (r == 0)
            r = protocol_put_text(out, span_of(session->reason));
    }
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
put_session_frame(struct buf *out, const char *id, const struct serve_session *session)
{
    int r = buf_printf(out, "{\"type\":\"session\",\"id\":\"%s\",\"session\":", id);
    if (r == 0)
        r = put_session(out, session);
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
put_sessions_frame(struct buf *out, const char *id, const struct serve *serve)
{
    bool first = true;
    int r = buf_printf(out, "{\"type\":\"sessions\",\"id\":\"%s\",\"sessions\":[", id);
    for (const struct serve_session *at = serve->sessions; at && r == 0; at = at->after) {
        if (at->state == SESSION_ENDED)
            continue;
        r = first ? 0 : buf_append(out, ",", 1);
        if (r == 0)
            r = put_session(out, at);
        first = false;
    }
    return r < 0 ? r : buf_append(out, "]}", 2);
}

void
serve_reply_session(struct serve_client *client, const char *id,
                    const struct serve_session *session)
{
    size_t at;
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, put_session_frame(&client->out, id, session));
}

void
serve_reply_sessions(struct serve_client *client, const char *id)
{
    size_t at;
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, put_sessions_frame(&client->out, id, client->serve));
}

void
serve_reply_status(struct serve_client *client)
{
    size_t at;
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at, serve_status_json(client->serve, &client->out));
}
