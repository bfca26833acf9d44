/*
 * Bytes of an endpoint: cut into events, each one parsed as a piece of an answer, and the answer's
 * text searched for code. The first byte chooses form and size of the pieces; the same bytes in one
 * piece must say the same. libFuzzer drives it (meson setup -Dfuzz=true, with clang); started with
 * names of files it runs each once.
 */
#include <assert.h>
#include <stdlib.h>

#include "ask/extract.h"
#include "ask/form.h"
#include "ask/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct hearing {
    const struct form *form;
    struct reply reply;
    size_t events;
};

static int
on_event(void *context, const char *name, struct span data, struct err *err)
{
    struct hearing *h = context;
    assert(strlen(name) < SSE_NAME_BYTES && data.n <= SSE_DATA_BYTES_MAX);
    h->events++;
    json_t *event = json_loadb(data.p, data.n, JSON_ALLOW_NUL, NULL);
    int r = json_is_object(event) ? h->form->take_event(name, event, &h->reply, err) : 0;
    json_decref(event);
    return r;
}

static int
hear(struct hearing *h, struct span s, size_t piece)
{
    struct sse sse;
    struct err err;
    int r = 0;
    reply_init(&h->reply);
    sse_init(&sse, on_event, h);
    for (size_t at = 0; r == 0 && at < s.n; at += piece)
        r = sse_feed(&sse, (struct span){s.p + at, s.n - at < piece ? s.n - at : piece},
                     &err);
    if (r == 0)
        r = sse_finish(&sse, &err);
    sse_done(&sse);
    return r;
}

static void
look_for_code(struct span text, bool arguments)
{
    struct extract found;
    struct err err;
    extract_init(&found);
    int r = arguments ? extract_arguments(text, false, &found, &err)
                      : extract_text(text, (text.n & 1) != 0, &found, &err);
    assert(r < 0 || found.kind != EXTRACT_PROBLEM || found.problem[0] != '\0');
    assert(found.code.n <= text.n + EXTRACT_BLOCKS_MAX);
    extract_done(&found);
}

/* What is sent back to an endpoint is sound, whatever came. */
static void
send_back(const struct form *form, struct reply *reply)
{
    unsigned made = 0;
    struct form_result results[REPLY_CALLS_MAX];
    json_t *messages = json_array();
    reply_name_calls(reply, &made);
    for (size_t i = 0; i < reply->calls_n; i++) {
        results[i] = (struct form_result){span_of("x"), false};
        for (size_t k = 0; k < i; k++)
            assert(strcmp(reply->calls[i].id, reply->calls[k].id) != 0);
    }
    assert(form->add_reply(messages, reply));
    assert(reply->calls_n == 0 || form->add_results(messages, reply, results));
    json_decref(messages);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return 0;
    const struct form *form = forms[bytes[0] & 1];
    size_t piece = 1 + (size_t)bytes[0] / 2;
    struct span s = {(const char *)bytes + 1, n - 1};
    struct hearing once = {.form = form}, cut = {.form = form};
    int whole = hear(&once, s, s.n > 0 ? s.n : 1), pieces = hear(&cut, s, piece);
    assert(whole == pieces && once.events == cut.events);
    assert(once.reply.calls_n == cut.reply.calls_n &&
           once.reply.text.n == cut.reply.text.n);
    look_for_code(buf_span(&once.reply.text), false);
    look_for_code(s, false);
    for (size_t i = 0; i < once.reply.calls_n; i++)
        look_for_code(buf_span(&once.reply.calls[i].arguments), true);
    if (whole == 0)
        send_back(form, &once.reply);
    reply_done(&once.reply);
    reply_done(&cut.reply);
    return 0;
}
