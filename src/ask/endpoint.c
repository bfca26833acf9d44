/*
 * A request is tried again when the endpoint is busy (429), in trouble (5xx) or out of reach, and
 * when its answer breaks off: asking a model changes nothing at the other end. The pauses double,
 * with some chance in them, and are as long as the endpoint says where it does. Nothing waits
 * longer than the budget of time.
 */
#include "ask/endpoint.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ask/http.h"
#include "ask/key.h"
#include "ask/sse.h"
#include "base/clock.h"
#include "check/finding.h"

enum {
    FIRST_PAUSE_MS = 500,
    PAUSE_MS_MAX = 30 * 1000,
    ERROR_BODY_BYTES = 64 * 1024,
    ANSWER_BYTES_MAX = 16 << 20,
    ERROR_SHOWN_BYTES = 150,
    US_PER_MS = 1000,
    STATUS_OK = 200,
};

/* What one try gathers. */
struct hearing {
    struct endpoint *endpoint;
    struct reply *reply;
    struct http_answer answer;
    struct buf plain; /* an answer that is no stream, or an error */
    struct sse sse;
    bool streams;
};

static bool
begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- where ---- */

static bool
is_here(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(host, names[i], n) == 0 && strchr(":/", host[n]))
            return true; /* '\0' is found, too */
    }
    return false;
}

static int
check_url(const char *base, struct err *err)
{
    if (!begins(base, "https://") && !begins(base, "http://"))
        return err_set(err, -EINVAL, "--base-url: '%.100s' is no http:// or https:// URL",
                       base);
    const char *host = strstr(base, "//") + 2;
    for (const char *c = base; *c != '\0'; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7F || strchr("?#\\", *c))
            return err_set(err, -EINVAL,
                           "--base-url: no blanks, '?' or '#' can stand in it");
    if (memchr(host, '@', strcspn(host, "/")))
        return err_set(
            err, -EINVAL,
            "--base-url: no user or password can stand in it: a key comes from "
            "--key-file or the environment");
    return 0;
}

/* What goes over plain HTTP, proxies and neighbours can read. What stays on this machine goes
 * through no proxy unless one is named. */
static int
guard_key(struct endpoint *endpoint, const char *base, struct err *err)
{
    bool tls = begins(base, "https://"), here = is_here(strstr(base, "//") + 2);
    if (here && !tls && !endpoint->proxy)
        endpoint->proxy = "";
    bool leaves = !here || (endpoint->proxy && endpoint->proxy[0] != '\0');
    if (tls || endpoint->key->n == 0 || !leaves || endpoint->plain_key)
        return 0;
    return err_set(
        err, -EPERM,
        "the key is not sent over plain HTTP to another machine: use https://, or "
        "allow it with --plain-key");
}

int
endpoint_init(struct endpoint *endpoint, struct err *err)
{
    const char *base = endpoint->base_url ? endpoint->base_url : endpoint->form->base_url;
    const char *path = endpoint->form->path;
    size_t n = strlen(base);
    int r = check_url(base, err);
    if (r == 0)
        r = guard_key(endpoint, base, err);
    if (r < 0)
        return r;
    while (n > 0 && base[n - 1] == '/')
        n--;
    /* A base that has the form's version in it already. */
    if (begins(path, "/v1/") && n > 3 && memcmp(base + n - 3, "/v1", 3) == 0)
        path += 3;
    int length =
        snprintf(endpoint->url, sizeof(endpoint->url), "%.*s%s", (int)n, base, path);
    if (length < 0 || length >= ENDPOINT_URL_BYTES)
        return err_set(err, -EINVAL, "--base-url: has more than %d bytes",
                       ENDPOINT_URL_BYTES - 64);
    return http_new(&endpoint->http, err);
}

void
endpoint_done(struct endpoint *endpoint)
{
    http_free(endpoint->http);
    endpoint->http = NULL;
}

/* ---- hearing ---- */

static int
on_event(void *context, const char *name, struct span data, struct err *err)
{
    struct hearing *h = context;
    const struct form *form = h->endpoint->form;
    if (form->end_of_stream && span_is(data, form->end_of_stream)) {
        h->reply->ended = true;
        return 0;
    }
    json_error_t wrong;
    json_t *event = json_loadb(data.p, data.n, JSON_ALLOW_NUL, &wrong);
    if (!json_is_object(event)) {
        json_decref(event);
        return err_set(err, -EBADMSG,
                       "the endpoint's stream has an event that is no JSON");
    }
    int r = form->take_event(name, event, h->reply, err);
    json_decref(event);
    return r;
}

static int
on_body(void *context, struct span bytes, struct err *err)
{
    struct hearing *h = context;
    h->streams =
        h->answer.status == STATUS_OK && begins(h->answer.type, "text/event-stream");
    if (h->streams)
        return sse_feed(&h->sse, bytes, err);
    bool good = h->answer.status == STATUS_OK;
    if (!good && h->plain.n + bytes.n > ERROR_BODY_BYTES)
        return 0; /* of an error, the beginning is enough */
    int r = buf_append(&h->plain, bytes.p, bytes.n);
    if (r == -ENOSPC)
        return err_set(err, r, "the endpoint's answer has more than %d bytes",
                       ANSWER_BYTES_MAX);
    return r < 0 ? err_set(err, r, "no memory for the endpoint's answer") : 0;
}

/* The key is hidden before the text is cut, or a part of one could be left. */
static const char *
fit(const struct hearing *h, char said[REPLY_ERROR_BYTES])
{
    size_t n = ERROR_SHOWN_BYTES;
    key_hide(h->endpoint->key, said);
    if (strlen(said) > n) {
        while (n > 0 && ((unsigned char)said[n] & 0xC0) == 0x80)
            n--;
        said[n] = '\0';
    }
    return said;
}

static int
take_stream(struct hearing *h, struct err *err)
{
    int r = sse_finish(&h->sse, err);
    if (r < 0)
        return r;
    if (h->reply->stopped[0] != '\0')
        return err_set(err, -EAGAIN, "the endpoint broke off: %s",
                       fit(h, h->reply->stopped));
    if (!h->reply->ended)
        return err_set(err, -EAGAIN, "the endpoint's stream ends in the middle");
    return 0;
}

static int
take_plain(struct hearing *h, struct err *err)
{
    struct span text = buf_span(&h->plain);
    json_t *root = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);
    if (!root)
        return err_set(err, -EBADMSG, "the endpoint's answer is no whole JSON document");
    char said[REPLY_ERROR_BYTES];
    form_error_text(root, said, sizeof(said));
    int r = said[0] != '\0' ? err_set(err, -EPROTO, "the endpoint says: %s", fit(h, said))
                            : h->endpoint->form->take_answer(root, h->reply, err);
    json_decref(root);
    return r;
}

static int
take_error(struct hearing *h, struct err *err)
{
    char said[REPLY_ERROR_BYTES] = "";
    struct span text = buf_span(&h->plain);
    json_t *root = json_loadb(text.p, text.n, 0, NULL);
    if (root)
        form_error_text(root, said, sizeof(said));
    else
        check_printable(text, said, sizeof(said));
    json_decref(root);
    fit(h, said);
    long status = h->answer.status;
    /* Ollama and vLLM, of models that were not made for it. */
    if (status == 400 && !h->endpoint->no_tools && strcasestr(said, "tool"))
        return err_set(err, -EOPNOTSUPP, "the endpoint knows no tools: %s", said);
    bool again = status == 408 || status == 429 || (status >= 500 && status != 501);
    return err_set(err, again ? -EAGAIN : -EPROTO, "the endpoint answers %ld%s%s", status,
                   said[0] != '\0' ? ": " : "", said);
}

/* ---- one try ---- */

static uint64_t
left_ms(const struct endpoint *endpoint)
{
    uint64_t now_us = clock_now_us();
    return now_us >= endpoint->until_us ? 0 : (endpoint->until_us - now_us) / US_PER_MS;
}

static int
post(struct endpoint *endpoint, struct span body, struct hearing *h, struct err *err)
{
    char key[KEY_BYTES_MAX + 64];
    const struct form *form = endpoint->form;
    struct http_request request = {.url = endpoint->url,
                                   .body = body,
                                   .ca_file = endpoint->ca_file,
                                   .proxy = endpoint->proxy,
                                   .timeout_ms = left_ms(endpoint),
                                   .on_body = on_body,
                                   .context = h};
    /* Many servers want some key, and take any. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(key, sizeof(key), form->key_header,
             endpoint->key->n > 0 ? endpoint->key->p : "none");
#pragma GCC diagnostic pop
    request.headers[request.headers_n++] = "Content-Type: application/json";
    request.headers[request.headers_n++] =
        endpoint->stream ? "Accept: text/event-stream" : "Accept: application/json";
    request.headers[request.headers_n++] = key;
    if (form->header)
        request.headers[request.headers_n++] = form->header;
    int r = http_post(endpoint->http, &request, &h->answer, err);
    sodium_memzero(key, sizeof(key));
    if (r < 0)
        return r;
    if (h->answer.status != STATUS_OK)
        return take_error(h, err);
    return h->streams ? take_stream(h, err) : take_plain(h, err);
}

static bool
may_try_again(int r)
{
    return r == -EAGAIN || r == -EIO || r == -EBADMSG || r == -ETIMEDOUT;
}

static uint64_t
pause_ms(unsigned tried, const struct http_answer *answer)
{
    if (answer->has_retry_after)
        return answer->retry_after_ms;
    uint64_t ms = FIRST_PAUSE_MS;
    for (unsigned i = 0; i < tried && ms < PAUSE_MS_MAX; i++)
        ms *= 2;
    ms = ms < PAUSE_MS_MAX ? ms : PAUSE_MS_MAX;
    return ms - ms / 4 + randombytes_uniform((uint32_t)ms / 2);
}

static void
wait_ms(const struct endpoint *endpoint, uint64_t ms, const char *why)
{
    char line[320];
    snprintf(line, sizeof(line), "%s; trying again in %llu.%llu s", why,
             (unsigned long long)ms / 1000, (unsigned long long)ms % 1000 / 100);
    if (endpoint->on_wait)
        endpoint->on_wait(endpoint->context, line);
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000) * 1000 * US_PER_MS};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
}

static int
try_once(struct endpoint *endpoint, struct span body, struct reply *reply,
         struct http_answer *answer, struct err *err)
{
    struct hearing h = {.endpoint = endpoint, .reply = reply};
    buf_init(&h.plain, ANSWER_BYTES_MAX);
    sse_init(&h.sse, on_event, &h);
    int r = post(endpoint, body, &h, err);
    *answer = h.answer;
    buf_done(&h.plain);
    sse_done(&h.sse);
    return r;
}

static int
try_often(struct endpoint *endpoint, struct span body, struct reply *reply,
          struct err *err)
{
    for (unsigned tried = 0;; tried++) {
        struct http_answer answer;
        int r = try_once(endpoint, body, reply, &answer, err);
        if (r == 0)
            return 0;
        key_hide(endpoint->key, err->text);
        uint64_t left = left_ms(endpoint), ms = pause_ms(tried, &answer);
        if (left == 0)
            return err_wrap(err, "the time budget is used up");
        if (!may_try_again(r) || tried >= endpoint->retries)
            return err->code;
        if (ms >= left)
            return err_wrap(err, "it wants a pause that is longer than the time budget");
        wait_ms(endpoint, ms, err->text);
        reply_reset(reply);
    }
}

static int
write_body(const struct endpoint *endpoint, const char *system, json_t *messages,
           struct buf *body, struct err *err)
{
    const struct form_request request = {
        .model = endpoint->model,
        .system = system,
        .messages = messages,
        .max_tokens = endpoint->max_tokens,
        .stream = endpoint->stream,
        .tools = !endpoint->no_tools,
        .is_maker = begins(endpoint->url, endpoint->form->base_url),
    };
    json_t *root = endpoint->form->request(&request);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        return err_set(err, -ENOMEM,
                       "the request cannot be written: no memory, or the model's name is "
                       "not UTF-8");
    buf_consume(body, body->n);
    int r = buf_append(body, text, strlen(text));
    free(text);
    return r < 0 ? err_set(err, r, "the conversation has more than %d bytes",
                           ENDPOINT_BODY_BYTES_MAX)
                 : 0;
}

int
endpoint_ask(struct endpoint *endpoint, const char *system, json_t *messages,
             struct buf *body, struct reply *reply, struct err *err)
{
    if (left_ms(endpoint) == 0)
        return err_set(err, -ETIMEDOUT, "the time budget is used up");
    int r = write_body(endpoint, system, messages, body, err);
    if (r == 0)
        r = try_often(endpoint, buf_span(body), reply, err);
    if (r != -EOPNOTSUPP)
        return r;
    if (endpoint->on_wait)
        endpoint->on_wait(endpoint->context, err->text);
    endpoint->no_tools = true;
    reply_reset(reply);
    r = write_body(endpoint, system, messages, body, err);
    return r < 0 ? r : try_often(endpoint, buf_span(body), reply, err);
}
