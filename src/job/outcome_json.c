/*
 * The one JSON form of an outcome, for every door. Keys stand in the order of the manual,
 * every key is always there unless noted, and whatever bytes the cell left in a string,
 * the document is valid UTF-8: an agent that cannot parse the answer cannot be told what
 * went wrong.
 */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "check/render.h"
#include "job/outcome.h"
#include "job/outcome_parts.h"
#include "job/run_event.h"

enum {
    TEXT_BYTES_MAX =
        1 << 30,      /* of one string: streams are bounded by the policy, far lower */
    REAL_DIGITS = 15, /* 1.4 stays "1.4": no digits of the binary form */
};

json_t *
json_u64(uint64_t value)
{
    return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}

static json_t *
json_ms(uint64_t us)
{
    return json_real((double)us / 1000.0);
}

/* NUL bytes inside are kept: JSON can write them. */
static json_t *
json_text_n(struct span s, uint64_t *ret_replaced)
{
    AUTO_BUF struct buf valid = {0};
    buf_init(&valid, TEXT_BYTES_MAX);
    if (utf8_append_valid(&valid, s, ret_replaced) < 0)
        return NULL;
    struct span text = buf_span(&valid);
    return json_stringn_nocheck(text.p, text.n);
}

/* A fixed array from a struct: bounded even when the terminator is missing. */
static json_t *
json_text(const char *text, size_t size)
{
    uint64_t replaced;
    return json_text_n((struct span){text, strnlen(text, size)}, &replaced);
}

json_t *
json_base64(struct span bytes)
{
    size_t n = sodium_base64_ENCODED_LEN(bytes.n, sodium_base64_VARIANT_ORIGINAL);
    AUTO_FREE char *text = malloc(n);
    if (!text)
        return NULL;
    sodium_bin2base64(text, n, (const unsigned char *)bytes.p, bytes.n,
                      sodium_base64_VARIANT_ORIGINAL);
    return json_string_nocheck(text);
}

/* Head and tail, without the gap between them. */
static json_t *
json_kept(const struct stream *stream)
{
    AUTO_BUF struct buf whole = {0};
    buf_init(&whole, TEXT_BYTES_MAX);
    if (buf_append(&whole, stream->head.p, stream->head.n) < 0 ||
        buf_append(&whole, stream->tail.p, stream->tail.n) < 0)
        return NULL;
    return json_base64(buf_span(&whole));
}

/* NULL marks memory that ran out: it spreads to the whole document. */
static json_t *
json_line(int line)
{
    return line > 0 ? json_integer(line) : json_null();
}

static json_t *
json_signal(int number)
{
    if (number <= 0)
        return json_null();
    char text[32];
    const char *name = sigabbrev_np(number);
    if (name)
        snprintf(text, sizeof(text), "SIG%s", name);
    else
        snprintf(text, sizeof(text), "SIG%d", number);
    return json_string(text);
}

static json_t *
json_limit(const struct outcome *o)
{
    if (o->limit_name[0] == '\0')
        return json_null();
    return json_pack("{s:o, s:o}", "name",
                     json_text(o->limit_name, sizeof(o->limit_name)), "value",
                     json_u64(o->limit_value));
}

static json_t *
json_error_claim(const struct outcome *o)
{
    if (!o->has_error)
        return json_null();
    uint64_t replaced;
    return json_pack("{s:o, s:o, s:o, s:o}", "name",
                     json_text(o->error_name, sizeof(o->error_name)), "value",
                     json_text(o->error_value, sizeof(o->error_value)), "line",
                     json_line(o->error_line), "traceback",
                     json_text_n(buf_span(&o->traceback), &replaced));
}

json_t *
outcome_incident_json(const struct incident *i)
{
    return json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "rule",
                     json_text(i->rule, sizeof(i->rule)), "layer",
                     json_text(i->layer, sizeof(i->layer)), "fact", (int)i->fact,
                     "action", json_text(i->action, sizeof(i->action)), "act",
                     json_text(i->act, sizeof(i->act)), "reason",
                     json_text(i->reason, sizeof(i->reason)), "count", json_u64(i->count),
                     "line", json_line(i->line), "column", json_line(i->column));
}

static json_t *
json_file(const struct collected_file *f)
{
    uint64_t replaced = 0;
    struct span path = {f->path, strnlen(f->path, sizeof(f->path))};
    json_t *file =
        json_pack("{s:o, s:o, s:o, s:o}", "path", json_text_n(path, &replaced), "bytes",
                  json_u64(f->bytes), "mime", json_text(f->mime, sizeof(f->mime)),
                  "sha256", json_text(f->sha256, sizeof(f->sha256)));
    if (!file || replaced == 0)
        return file;
    /* The text does not say which file it was: the bytes do. */
    if (json_object_set_new(file, "path_base64", json_base64(path)) < 0) {
        json_decref(file);
        return NULL;
    }
    return file;
}

static json_t *
json_incidents(const struct outcome *o)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < o->incidents_n; i++) {
        if (json_array_append_new(list, outcome_incident_json(&o->incidents[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
json_files(const struct outcome *o)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < o->files_n; i++) {
        if (json_array_append_new(list, json_file(&o->files[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
json_layers(const struct outcome *o)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < o->isolation_n; i++) {
        if (json_array_append_new(list, json_text(o->isolation[i], OUTCOME_LAYER_BYTES)) <
            0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Adds a value that is there; a NULL, which is memory that ran out, fails. */
static int
put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

static json_t *
json_pair(json_t *out, json_t *err)
{
    return json_pack("{s:o, s:o}", "stdout", out, "stderr", err);
}

static json_t *
json_stream(const struct stream *stream, uint64_t *ret_replaced)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, TEXT_BYTES_MAX);
    if (stream_text(stream, &text, ret_replaced) < 0)
        return NULL;
    struct span s = buf_span(&text);
    return json_stringn_nocheck(s.p, s.n);
}

/* What the text does not say: the bytes that were kept, and where the gap in them is. */
static int
put_kept(json_t *kept, const char *name, const struct stream *stream, uint64_t replaced)
{
    if (replaced == 0 && !stream_is_truncated(stream))
        return 0;
    return put(kept, name,
               json_pack("{s:o, s:o}", "data_base64", json_kept(stream), "head_bytes",
                         json_u64(stream->head.n)));
}

static int
put_streams(json_t *doc, const struct outcome *o, int flags)
{
    uint64_t out_replaced = 0, err_replaced = 0;
    int r = put(doc, "stdout", json_stream(&o->out, &out_replaced));
    if (r == 0)
        r = put(doc, "stderr", json_stream(&o->err, &err_replaced));
    if (r == 0 && flags & OUTCOME_JSON_BASE64)
        r = put(doc, "stdout_base64", json_kept(&o->out));
    if (r == 0 && flags & OUTCOME_JSON_BASE64)
        r = put(doc, "stderr_base64", json_kept(&o->err));
    if (r == 0)
        r = put(doc, "truncated",
                json_pair(json_boolean(stream_is_truncated(&o->out)),
                          json_boolean(stream_is_truncated(&o->err))));
    if (r == 0)
        r = put(
            doc, "dropped_bytes",
            json_pair(json_u64(o->out.dropped_bytes), json_u64(o->err.dropped_bytes)));
    if (r == 0)
        r = put(doc, "invalid_utf8",
                json_pair(json_u64(out_replaced), json_u64(err_replaced)));
    if (r < 0 || !(flags & OUTCOME_JSON_EXACT))
        return r;
    json_t *kept = json_object();
    r = put_kept(kept, "stdout", &o->out, out_replaced);
    if (r == 0)
        r = put_kept(kept, "stderr", &o->err, err_replaced);
    if (r == 0 && json_object_size(kept) > 0)
        r = put(doc, "kept", json_incref(kept));
    json_decref(kept);
    return r;
}

static json_t *
json_usage(const struct outcome *o)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "wall_ms", json_ms(o->wall_us), "cpu_ms",
                     json_ms(o->cpu_us), "peak_memory_bytes",
                     json_u64(o->peak_memory_bytes), "processes", json_u64(o->processes));
}

static json_t *
json_limits(const struct outcome *o)
{
    return json_pack("{s:o, s:o, s:o}", "wall_ms", json_u64(o->wall_limit_ms), "cpu_ms",
                     json_u64(o->cpu_limit_ms), "memory_bytes",
                     json_u64(o->memory_limit_bytes));
}

static json_t *
json_engine(const struct outcome *o)
{
    return json_pack("{s:o, s:o, s:o}", "interpreter",
                     json_text(o->interpreter, sizeof(o->interpreter)), "isolation",
                     json_text(o->isolation_name, sizeof(o->isolation_name)), "start",
                     json_text(o->start, sizeof(o->start)));
}

/* Who it was and how it ended. */
static json_t *
json_head(const struct outcome *o)
{
    json_t *code = o->has_exit_code ? json_integer(o->exit_code) : json_null();
    json_t *session = o->session_id[0] != '\0'
                          ? json_text(o->session_id, sizeof(o->session_id))
                          : json_null();
    uint64_t count = o->execution_count > 0 ? o->execution_count : 1;
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "schema",
                     "adyton.outcome/1", "id", json_text(o->id, sizeof(o->id)),
                     "session_id", session, "execution_count", json_u64(count), "status",
                     status_name(o->status), "exit_code", code, "signal",
                     json_signal(o->signal), "limit", json_limit(o), "message",
                     json_text(o->message, sizeof(o->message)));
}

static int
put_session(json_t *doc, const struct outcome *o)
{
    static const char *const words[] = {[SESSION_KEPT] = "kept", [SESSION_LOST] = "lost"};
    if (o->session == SESSION_NONE)
        return 0;
    int r = put(doc, "session", json_string(words[o->session]));
    return r == 0 && o->session_note[0] != '\0'
               ? put(doc, "session_note",
                     json_text(o->session_note, sizeof(o->session_note)))
               : r;
}

static json_t *
json_result(const struct outcome *o)
{
    const struct buf *text = displays_result(&o->displays);
    if (!text)
        return json_null();
    struct span s = buf_span(text);
    return json_stringn_nocheck(s.p, s.n);
}

static int
put_displays(json_t *doc, const struct outcome *o)
{
    int r = put(doc, "result", json_result(o));
    if (r == 0)
        r = put(doc, "results", displays_json(&o->displays));
    if (r == 0 && o->displays.dropped > 0)
        r = put(doc, "results_dropped", json_u64(o->displays.dropped));
    if (r == 0)
        r = put(doc, "events", events_json(o));
    if (r == 0 && o->events.dropped > 0)
        r = put(doc, "events_dropped", json_u64(o->events.dropped));
    return r;
}

static int
put_acts(json_t *doc, const struct outcome *o)
{
    int r = put(doc, "error", json_error_claim(o));
    if (r == 0)
        r = put(doc, "findings", check_findings_json(&o->findings));
    if (r == 0 && o->findings.dropped > 0)
        r = put(doc, "findings_dropped", json_u64(o->findings.dropped));
    if (r == 0)
        r = put(doc, "incidents", json_incidents(o));
    if (r == 0 && o->incidents_dropped > 0)
        r = put(doc, "incidents_dropped", json_u64(o->incidents_dropped));
    if (r == 0)
        r = put(doc, "files", json_files(o));
    if (r == 0 && o->files_skipped > 0)
        r = put(doc, "files_skipped", json_u64(o->files_skipped));
    if (r == 0 && o->files_note[0] != '\0')
        r = put(doc, "files_note", json_text(o->files_note, sizeof(o->files_note)));
    return r;
}

static int
put_measures(json_t *doc, const struct outcome *o)
{
    int r = put(doc, "usage", json_usage(o));
    if (r == 0)
        r = put(doc, "limits", json_limits(o));
    if (r == 0)
        r = put(doc, "isolation", json_layers(o));
    if (r == 0)
        r = put(doc, "engine", json_engine(o));
    return r;
}

/* jansson goes on after a key that could not be written: the first failure is kept here. */
struct sink {
    struct buf *out;
    bool failed;
};

static int
dump_piece(const char *bytes, size_t n, void *context)
{
    struct sink *sink = context;
    sink->failed = sink->failed || buf_append(sink->out, bytes, n) < 0;
    return sink->failed ? -1 : 0;
}

int
outcome_json(const struct outcome *outcome, int flags, struct buf *out)
{
    json_t *doc = json_head(outcome);
    int r = doc ? 0 : -ENOMEM;
    if (r == 0)
        r = put_session(doc, outcome);
    if (r == 0)
        r = put_streams(doc, outcome, flags);
    if (r == 0)
        r = put_displays(doc, outcome);
    if (r == 0)
        r = put_acts(doc, outcome);
    if (r == 0)
        r = put_measures(doc, outcome);

    size_t layout = flags & OUTCOME_JSON_COMPACT ? JSON_COMPACT : JSON_INDENT(2);
    size_t before = out->n;
    struct sink sink = {.out = out};
    if (r == 0 && (json_dump_callback(doc, dump_piece, &sink,
                                      layout | JSON_REAL_PRECISION(REAL_DIGITS)) < 0 ||
                   sink.failed))
        r = -ENOSPC;
    if (r < 0 && out->p) { /* a failed append leaves the buffer as it was */
        out->n = before;
        out->p[before] = '\0';
    }
    json_decref(doc);
    return r;
}
