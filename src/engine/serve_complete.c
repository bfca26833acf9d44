/*
 * Questions to a session about a text that is not run: which names could follow it, and whether it
 * is whole (session_complete). The session's interpreter knows, so what it says is a claim, out of
 * an item of what the question has shown: its shape is checked, and nothing is decided by it.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "engine/serve_parts.h"

enum { LIMIT_MS = 2000, MATCHES_MAX = 1000, MATCH_BYTES_MAX = 4096 };

/* What could stand at the cursor depends on what is before it. */
static int
cut(struct buf *code, uint64_t cursor, struct err *err)
{
    struct span rest = buf_span(code);
    for (uint64_t i = 0; i < cursor; i++) {
        int n = utf8_next(rest);
        if (n <= 0)
            return err_set(err, -EINVAL,
                           rest.n == 0 ? "'cursor' is behind the end of the code"
                                       : "code that has a 'cursor' is no UTF-8");
        rest.p += n;
        rest.n -= (size_t)n;
    }
    code->n -= rest.n;
    return 0;
}

int
serve_complete_prepare(struct serve_job *job, struct err *err)
{
    struct protocol_run *asked = job->asked;
    if (!asked->job.completes)
        return 0;
    job->policy.validation = VALIDATION_OFF; /* it would judge what nobody runs */
    if (job->policy.wall_ms > LIMIT_MS)
        job->policy.wall_ms = LIMIT_MS;
    int r = asked->has_cursor ? cut(&asked->job.code, asked->cursor, err) : 0;
    return r < 0 ? r
                 : job_add_arg(&asked->job, asked->has_cursor ? "matches" : "state", err);
}

static bool
is_state(const char *text)
{
    static const char *const states[] = {"complete", "incomplete", "invalid"};
    for (size_t i = 0; text && i < sizeof(states) / sizeof(*states); i++)
        if (strcmp(states[i], text) == 0)
            return true;
    return false;
}

static bool
are_matches(const json_t *list)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MATCHES_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(list, i);
        if (!json_is_string(one) || json_string_length(one) > MATCH_BYTES_MAX)
            return false;
    }
    return true;
}

/* New; NULL when the claim is none that display_complete.py makes. */
static json_t *
answer_of(const struct serve_job *job, const struct outcome *outcome)
{
    const struct displays *displays = &outcome->displays;
    const struct display_part *part =
        displays->items_n == 1 ? display_item_part(displays->items[0], "application/json")
                               : NULL;
    const json_t *claim = part ? part->json : NULL;
    const json_t *state = json_object_get(claim, "state");
    const json_t *start = json_object_get(claim, "start");
    const json_t *matches = json_object_get(claim, "matches");
    const json_t *more = json_object_get(claim, "more");
    json_int_t at = json_integer_value(start);
    if (!job->asked->has_cursor)
        return is_state(json_string_value(state))
                   ? json_pack("{s:s, s:s, s:s}", "type", "completions", "id", job->id,
                               "state", json_string_value(state))
                   : NULL;
    if (!json_is_integer(start) || at < 0 || (uint64_t)at > job->asked->cursor ||
        !are_matches(matches) || !json_is_integer(more) || json_integer_value(more) < 0)
        return NULL;
    return json_pack("{s:s, s:s, s:I, s:O, s:I}", "type", "completions", "id", job->id,
                     "start", at, "matches", matches, "more", json_integer_value(more));
}

static void
put_answer(struct serve_client *client, const json_t *answer)
{
    size_t at;
    AUTO_FREE char *text = json_dumps(answer, JSON_COMPACT);
    if (serve_reply_begin(client, &at))
        serve_reply_end(client, at,
                        text ? buf_append(&client->out, text, strlen(text)) : -ENOMEM);
}

void
serve_complete_reply(struct serve_client *client, const struct serve_job *job,
                     const struct outcome *outcome)
{
    struct err err;
    json_t *answer = outcome->session == SESSION_KEPT ? answer_of(job, outcome) : NULL;
    if (answer)
        put_answer(client, answer);
    else if (outcome->session == SESSION_KEPT)
        err_set(&err, -EIDRM, "the session has no answer: %.180s",
                outcome->message[0] ? outcome->message : "what it said makes no sense");
    else
        err_set(&err, -EIDRM, "the session has ended: %.180s", outcome->session_note);
    if (!answer)
        serve_reply_error(client, job->id, &err);
    json_decref(answer);
}
