/*
 * The inverse of outcome_json.c, key by key: a table says who reads which. Texts are cut
 * to what a field holds, between characters; lists have the bounds that an outcome has.
 */
#include "job/outcome_parse.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "check/render.h"

enum {
    STREAM_BYTES_MAX = 1 << 30,
    FILES_MAX = 1 << 20,
    SIGNALS = 65,
};

static int
unfit(const char *what, struct err *err)
{
    return err_set(err, -EINVAL, "the outcome's '%s' is not what it should be", what);
}

static void
copy_text(const char *text, size_t n, char *ret, size_t size)
{
    size_t fits = n < size ? n : size - 1;
    if (fits < n)
        fits -= utf8_unfinished_tail((struct span){text, fits});
    memcpy(ret, text, fits);
    ret[fits] = '\0';
}

/* A text field of a struct: true when `value` is a string, which then stands in it. */
static bool
take_text(const json_t *value, char *ret, size_t size)
{
    if (!json_is_string(value))
        return false;
    copy_text(json_string_value(value), json_string_length(value), ret, size);
    return true;
}

static bool
take_u64(const json_t *value, uint64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static bool
take_us(const json_t *value, uint64_t *ret_us)
{
    static const double ms_max = 1e15;
    if (!json_is_number(value))
        return false;
    double ms = json_number_value(value);
    if (!(ms >= 0 && ms < ms_max))
        return false;
    *ret_us = (uint64_t)(ms * 1000.0 + 0.5);
    return true;
}

/* A line or column: null is 0. */
static bool
take_place(const json_t *value, int *ret)
{
    uint64_t n = 0;
    if (!json_is_null(value) && (!take_u64(value, &n) || n > INT32_MAX))
        return false;
    *ret = (int)n;
    return true;
}

static bool
take_schema(const json_t *value, struct outcome *o)
{
    (void)o;
    return json_is_string(value) &&
           strcmp(json_string_value(value), "adyton.outcome/1") == 0;
}

static bool
take_id(const json_t *value, struct outcome *o)
{
    return take_text(value, o->id, sizeof(o->id));
}

static bool
take_status(const json_t *value, struct outcome *o)
{
    for (int i = 0; json_is_string(value) && i < STATUS_COUNT; i++)
        if (strcmp(json_string_value(value), status_name((enum status)i)) == 0) {
            o->status = (enum status)i;
            return true;
        }
    return false;
}

static bool
take_exit_code(const json_t *value, struct outcome *o)
{
    if (json_is_null(value))
        return true;
    json_int_t code = json_integer_value(value);
    if (!json_is_integer(value) || code < INT32_MIN || code > INT32_MAX)
        return false;
    o->has_exit_code = true;
    o->exit_code = (int)code;
    return true;
}

static bool
take_signal(const json_t *value, struct outcome *o)
{
    if (json_is_null(value))
        return true;
    for (int i = 1; json_is_string(value) && i < SIGNALS; i++) {
        char text[32];
        const char *name = sigabbrev_np(i);
        if (name)
            snprintf(text, sizeof(text), "SIG%s", name);
        else
            snprintf(text, sizeof(text), "SIG%d", i);
        if (strcmp(json_string_value(value), text) == 0) {
            o->signal = i;
            return true;
        }
    }
    return false;
}

static bool
take_limit(const json_t *value, struct outcome *o)
{
    return json_is_null(value) ||
           (json_object_size(value) == 2 &&
            take_text(json_object_get(value, "name"), o->limit_name,
                      sizeof(o->limit_name)) &&
            take_u64(json_object_get(value, "value"), &o->limit_value));
}

static bool
take_message(const json_t *value, struct outcome *o)
{
    return take_text(value, o->message, sizeof(o->message));
}

static bool
take_dropped(const json_t *value, struct outcome *o)
{
    return json_object_size(value) == 2 &&
           take_u64(json_object_get(value, "stdout"), &o->out.dropped_bytes) &&
           take_u64(json_object_get(value, "stderr"), &o->err.dropped_bytes);
}

static bool
take_error(const json_t *value, struct outcome *o)
{
    if (json_is_null(value))
        return true;
    const json_t *traceback = json_object_get(value, "traceback");
    if (json_object_size(value) != 4 || !json_is_string(traceback))
        return false;
    o->has_error = true;
    buf_init(&o->traceback, STREAM_BYTES_MAX);
    return take_text(json_object_get(value, "name"), o->error_name,
                     sizeof(o->error_name)) &&
           take_text(json_object_get(value, "value"), o->error_value,
                     sizeof(o->error_value)) &&
           take_place(json_object_get(value, "line"), &o->error_line) &&
           buf_append(&o->traceback, json_string_value(traceback),
                      json_string_length(traceback)) == 0;
}

static bool
take_incident(const json_t *value, struct incident *i)
{
    const json_t *fact = json_object_get(value, "fact");
    i->fact = json_is_true(fact);
    return json_object_size(value) == 9 && json_is_boolean(fact) &&
           take_text(json_object_get(value, "rule"), i->rule, sizeof(i->rule)) &&
           take_text(json_object_get(value, "layer"), i->layer, sizeof(i->layer)) &&
           take_text(json_object_get(value, "action"), i->action, sizeof(i->action)) &&
           take_text(json_object_get(value, "act"), i->act, sizeof(i->act)) &&
           take_text(json_object_get(value, "reason"), i->reason, sizeof(i->reason)) &&
           take_u64(json_object_get(value, "count"), &i->count) &&
           take_place(json_object_get(value, "line"), &i->line) &&
           take_place(json_object_get(value, "column"), &i->column);
}

static bool
take_incidents(const json_t *value, struct outcome *o)
{
    if (!json_is_array(value) || json_array_size(value) > OUTCOME_INCIDENTS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!take_incident(json_array_get(value, i), &o->incidents[o->incidents_n++]))
            return false;
    return true;
}

static bool
take_incidents_dropped(const json_t *value, struct outcome *o)
{
    return take_u64(value, &o->incidents_dropped);
}

static bool
decode(const json_t *text, char *ret, size_t size, size_t *ret_n)
{
    return json_is_string(text) &&
           sodium_base642bin((unsigned char *)ret, size, json_string_value(text),
                             json_string_length(text), NULL, ret_n, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0;
}

static bool
take_file(const json_t *value, struct collected_file *f)
{
    const json_t *bytes = json_object_get(value, "path_base64");
    size_t n = 0;
    if (json_object_size(value) != (bytes ? 5U : 4U) ||
        !take_text(json_object_get(value, "path"), f->path, sizeof(f->path)))
        return false;
    if (bytes && !decode(bytes, f->path, sizeof(f->path) - 1, &n))
        return false;
    if (bytes)
        f->path[n] = '\0';
    return take_u64(json_object_get(value, "bytes"), &f->bytes) &&
           take_text(json_object_get(value, "mime"), f->mime, sizeof(f->mime)) &&
           take_text(json_object_get(value, "sha256"), f->sha256, sizeof(f->sha256));
}

static bool
take_files(const json_t *value, struct outcome *o)
{
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n > FILES_MAX)
        return false;
    o->files = n > 0 ? calloc(n, sizeof(*o->files)) : NULL;
    for (size_t i = 0; o->files && i < n; i++)
        if (!take_file(json_array_get(value, i), &o->files[o->files_n++]))
            return false;
    return o->files_n == n;
}

static bool
take_files_skipped(const json_t *value, struct outcome *o)
{
    return take_u64(value, &o->files_skipped);
}

static bool
take_files_note(const json_t *value, struct outcome *o)
{
    return take_text(value, o->files_note, sizeof(o->files_note));
}

static bool
take_usage(const json_t *value, struct outcome *o)
{
    return json_object_size(value) == 4 &&
           take_us(json_object_get(value, "wall_ms"), &o->wall_us) &&
           take_us(json_object_get(value, "cpu_ms"), &o->cpu_us) &&
           take_u64(json_object_get(value, "peak_memory_bytes"), &o->peak_memory_bytes) &&
           take_u64(json_object_get(value, "processes"), &o->processes);
}

static bool
take_limits(const json_t *value, struct outcome *o)
{
    return json_object_size(value) == 3 &&
           take_u64(json_object_get(value, "wall_ms"), &o->wall_limit_ms) &&
           take_u64(json_object_get(value, "cpu_ms"), &o->cpu_limit_ms) &&
           take_u64(json_object_get(value, "memory_bytes"), &o->memory_limit_bytes);
}

static bool
take_layers(const json_t *value, struct outcome *o)
{
    if (!json_is_array(value) || json_array_size(value) > OUTCOME_LAYERS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!take_text(json_array_get(value, i), o->isolation[o->isolation_n++],
                       OUTCOME_LAYER_BYTES))
            return false;
    return true;
}

static bool
take_engine(const json_t *value, struct outcome *o)
{
    return json_object_size(value) == 3 &&
           take_text(json_object_get(value, "interpreter"), o->interpreter,
                     sizeof(o->interpreter)) &&
           take_text(json_object_get(value, "isolation"), o->isolation_name,
                     sizeof(o->isolation_name)) &&
           take_text(json_object_get(value, "start"), o->start, sizeof(o->start));
}

static bool
take_session_id(const json_t *value, struct outcome *o)
{
    return json_is_null(value) || take_text(value, o->session_id, sizeof(o->session_id));
}

static bool
take_session(const json_t *value, struct outcome *o)
{
    const char *word = json_is_string(value) ? json_string_value(value) : "";
    bool kept = strcmp(word, "kept") == 0;
    o->session = kept ? SESSION_KEPT : SESSION_LOST;
    return kept || strcmp(word, "lost") == 0;
}

static bool
take_session_note(const json_t *value, struct outcome *o)
{
    return take_text(value, o->session_note, sizeof(o->session_note));
}

static bool
take_result(const json_t *value, struct outcome *o)
{
    (void)o; /* it is the text of the main one among the results */
    return json_is_null(value) || json_is_string(value);
}

static bool
take_results(const json_t *value, struct outcome *o)
{
    return displays_take(value, &o->displays);
}

static bool
take_results_dropped(const json_t *value, struct outcome *o)
{
    return take_u64(value, &o->displays.dropped);
}

static bool
take_events(const json_t *value, struct outcome *o)
{
    return events_take(value, &o->events);
}

static bool
take_events_dropped(const json_t *value, struct outcome *o)
{
    return take_u64(value, &o->events.dropped);
}

static bool
take_count(const json_t *value, struct outcome *o)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1)
        return false;
    o->execution_count = (uint64_t)json_integer_value(value);
    return true;
}

static bool
take_string(const json_t *value, struct outcome *o)
{
    (void)o;
    return json_is_string(value); /* take_stream reads it */
}

static bool
take_pair(const json_t *value, struct outcome *o)
{
    (void)o;
    return json_is_object(value); /* follows from the rest, or take_stream reads it */
}

static bool
take_findings(const json_t *value, struct outcome *o)
{
    return check_findings_take(value, &o->findings);
}

static bool
take_findings_dropped(const json_t *value, struct outcome *o)
{
    return take_u64(value, &o->findings.dropped);
}

static const struct key {
    const char *name;
    bool (*take)(const json_t *value, struct outcome *outcome);
    bool may_lack;
} keys[] = {
    {"schema", take_schema, false},
    {"id", take_id, false},
    {"session_id", take_session_id, false},
    {"session", take_session, true},
    {"session_note", take_session_note, true},
    {"execution_count", take_count, false},
    {"status", take_status, false},
    {"exit_code", take_exit_code, false},
    {"signal", take_signal, false},
    {"limit", take_limit, false},
    {"message", take_message, false},
    {"stdout", take_string, false},
    {"stderr", take_string, false},
    {"truncated", take_pair, false},
    {"dropped_bytes", take_dropped, false},
    {"invalid_utf8", take_pair, false},
    {"kept", take_pair, true},
    {"result", take_result, false},
    {"results", take_results, false},
    {"results_dropped", take_results_dropped, true},
    {"events", take_events, false},
    {"events_dropped", take_events_dropped, true},
    {"error", take_error, false},
    {"findings", take_findings, false},
    {"findings_dropped", take_findings_dropped, true},
    {"incidents", take_incidents, false},
    {"incidents_dropped", take_incidents_dropped, true},
    {"files", take_files, false},
    {"files_skipped", take_files_skipped, true},
    {"files_note", take_files_note, true},
    {"usage", take_usage, false},
    {"limits", take_limits, false},
    {"isolation", take_layers, false},
    {"engine", take_engine, false},
};
enum { KEYS = sizeof(keys) / sizeof(*keys) };

static int
take_keys(const json_t *document, struct outcome *o, struct err *err)
{
    size_t known = 0;
    for (size_t i = 0; i < KEYS; i++) {
        const json_t *value = json_object_get(document, keys[i].name);
        known += value != NULL;
        if (value ? !keys[i].take(value, o) : !keys[i].may_lack)
            return unfit(keys[i].name, err);
    }
    if (known == json_object_size(document))
        return 0;
    return err_set(err, -EINVAL, "the outcome has %zu keys that are not known here",
                   json_object_size(document) - known);
}

/* The kept bytes when they came, split where the gap is; else the text. */
static bool
take_stream(const json_t *document, const char *name, struct stream *stream)
{
    const json_t *text = json_object_get(document, name);
    const json_t *kept = json_object_get(json_object_get(document, "kept"), name);
    const json_t *coded = json_object_get(kept, "data_base64");
    uint64_t head_n = 0;
    size_t n = json_string_length(coded ? coded : text);
    buf_init(&stream->head, STREAM_BYTES_MAX);
    buf_init(&stream->tail, STREAM_BYTES_MAX);
    if (buf_reserve(&stream->head, n) < 0)
        return false;
    if (!coded) {
        stream->total_bytes = n + stream->dropped_bytes;
        return !kept && buf_append(&stream->head, json_string_value(text), n) == 0;
    }
    if (!take_u64(json_object_get(kept, "head_bytes"), &head_n) ||
        !decode(coded, stream->head.p, n, &n) || head_n > n ||
        buf_append(&stream->tail, stream->head.p + head_n, n - head_n) < 0)
        return false;
    stream->head.n = head_n;
    stream->head.p[head_n] = '\0';
    stream->total_bytes = n + stream->dropped_bytes;
    return true;
}

int
outcome_from_json(const json_t *document, struct outcome *ret, struct err *err)
{
    struct outcome *o = calloc(1, sizeof(*o)); /* too large for the stack */
    if (!o)
        return err_set(err, -ENOMEM, "no memory for an outcome");
    int r = take_keys(document, o, err);
    if (r == 0 && !take_stream(document, "stdout", &o->out))
        r = unfit("stdout", err);
    if (r == 0 && !take_stream(document, "stderr", &o->err))
        r = unfit("stderr", err);
    if (r < 0)
        outcome_done(o);
    else
        memcpy(ret, o, sizeof(*ret));
    free(o);
    return r;
}
