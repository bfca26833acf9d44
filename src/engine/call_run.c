/* One run, asked of a supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/call.h"
#include "engine/call_parts.h"
#include "engine/interpreter.h"
#include "job/outcome_parse.h"

enum { US_PER_MS = 1000, RETRY_MS_MIN = 1, RETRY_MS_MAX = 5000, CLIENTS_RETRY_MS = 200 };

struct reading {
    const struct call_request *request;
    size_t seen[3];  /* bytes of each stream that on_output was given */
    bool dropped[3]; /* the rest of it comes with the outcome */
    uint64_t retry_ms;
    bool greeted;
};

/* ---- asking ---- */

static int
put_member(struct buf *out, const char *name, const char *text)
{
    int r = buf_printf(out, ",\"%s\":", name);
    return r < 0 ? r : protocol_put_text(out, span_of(text));
}

static int
put_limits(struct buf *out, const struct call_request *request)
{
    int r = buf_printf(out, ",\"limits\":{");
    for (size_t i = 0; r == 0 && i < request->limits_n; i++) {
        r = buf_printf(out, "%s\"%s\":", i > 0 ? "," : "", request->limits[i].name);
        if (r == 0)
            r = protocol_put_text(out, span_of(request->limits[i].text));
    }
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
put_args(struct buf *out, const struct job *job)
{
    int r = buf_printf(out, ",\"args\":[");
    for (size_t i = 0; r == 0 && i < job->args_n; i++) {
        r = i > 0 ? buf_append(out, ",", 1) : 0;
        if (r == 0)
            r = protocol_put_text(out, span_of(job->args[i]));
    }
    return r < 0 ? r : buf_append(out, "]", 1);
}

int
call_put_files(struct buf *out, const struct job *job)
{
    int r = buf_printf(out, ",\"files\":[");
    for (size_t i = 0; r == 0 && i < job->files_n; i++) {
        r = buf_printf(out, "%s{\"name\":", i > 0 ? "," : "");
        if (r == 0)
            r = protocol_put_text(out, span_of(job->files[i].name));
        if (r == 0)
            r = buf_append(out, ",", 1);
        if (r == 0)
            r = protocol_put_data(out, "data", buf_span(&job->files[i].data));
        if (r == 0)
            r = buf_append(out, "}", 1);
    }
    return r < 0 ? r : buf_append(out, "]", 1);
}

static int
put_folder(struct buf *out, const struct data_folder *folder)
{
    AUTO_FREE char *path = realpath(folder->path, NULL);
    int r = buf_printf(out, "{\"path\":");
    if (r == 0) /* one that is not there is refused there, in words */
        r = protocol_put_text(out, span_of(path ? path : folder->path));
    if (r == 0 && folder->name)
        r = put_member(out, "name", folder->name);
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
put_data(struct buf *out, const struct call_request *request)
{
    int r = buf_printf(out, ",\"data\":[");
    for (size_t i = 0; r == 0 && i < request->data_n; i++) {
        r = i > 0 ? buf_append(out, ",", 1) : 0;
        if (r == 0)
            r = put_folder(out, &request->data[i]);
    }
    return r < 0 ? r : buf_append(out, "]", 1);
}

static int
put_job(struct buf *out, const struct job *job)
{
    int r = buf_append(out, ",", 1);
    if (r == 0)
        r = protocol_put_data(out, "code", buf_span(&job->code));
    if (r == 0)
        r = put_member(out, "name", job->name);
    if (r == 0 && job->args_n > 0)
        r = put_args(out, job);
    if (r == 0 && job->has_stdin)
        r = buf_append(out, ",", 1);
    if (r == 0 && job->has_stdin)
        r = protocol_put_data(out, "stdin", buf_span(&job->stdin_bytes));
    if (r == 0 && job->files_n > 0)
        r = call_put_files(out, job);
    return r;
}

static int
put_run(struct buf *out, const struct call_request *request, const char *python)
{
    const struct job *job = request->job;
    int r = buf_printf(out, "{\"type\":\"run\",\"id\":\"1\"");
    if (r == 0)
        r = request->session ? put_member(out, "session", request->session)
                             : put_member(out, "policy", request->policy);
    if (r == 0 && request->limits_n > 0)
        r = put_limits(out, request);
    if (r == 0)
        r = put_job(out, job);
    if (r == 0 && request->data_n > 0)
        r = put_data(out, request);
    if (r == 0 && request->workspace)
        r = put_member(out, "workspace", request->workspace);
    if (r == 0 && python)
        r = put_member(out, "python", python);
    if (r == 0 && job->collect)
        r = buf_printf(out, ",\"collect\":true");
    if (r == 0 && job->show_last)
        r = buf_printf(out, ",\"show_last\":true");
    if (r == 0 && job->svg)
        r = buf_printf(out, ",\"svg\":true");
    if (r == 0 && (request->on_output || request->on_message))
        r = buf_printf(out, ",\"stream\":true");
    return r < 0 ? r : buf_append(out, "}", 1);
}

/* -EILSEQ is a name or an argument that is no UTF-8: JSON cannot say it. */
static int
put_request(struct buf *out, const struct call_request *request, struct err *err)
{
    char python[IMAGE_PATH_BYTES];
    size_t at;
    int r = 0;
    if (request->python)
        r = interpreter_locate(request->python, python, err);
    if (r < 0)
        return r;
    r = call_put_hello(out);
    if (r == 0)
        r = protocol_begin(out, &at);
    if (r == 0)
        r = protocol_end(out, at, put_run(out, request, request->python ? python : NULL));
    if (r == 0 && out->n > PROTOCOL_REQUEST_BYTES_MAX)
        r = -ENOSPC;
    if (r == -EILSEQ)
        return err_set(err, r,
                       "a name or an argument is not UTF-8, and a supervisor cannot be "
                       "told of it: run with --cold");
    if (r == -ENOSPC)
        return err_set(err, r,
                       "the run has more bytes than a supervisor takes (%d MiB): run "
                       "with --cold",
                       PROTOCOL_REQUEST_BYTES_MAX >> 20);
    return r < 0 ? err_set(err, r, "no memory for a request") : 0;
}

/* ---- hearing ---- */

static int
take_output(struct reading *reading, int stream, const json_t *message, struct err *err)
{
    bool given;
    AUTO_BUF struct buf bytes = {0};
    buf_init(&bytes, PROTOCOL_REPLY_BYTES_MAX);
    const struct call_request *request = reading->request;
    int r = protocol_get_data(message, "data", &bytes, &given, err);
    if (r < 0 || reading->dropped[stream])
        return r;
    reading->seen[stream] += bytes.n;
    if (request->on_message)
        request->on_message(request->context, message);
    else if (request->on_output)
        request->on_output(request->context, stream, buf_span(&bytes));
    return 0;
}

static void
pass_rest(struct reading *reading, int stream, const struct stream *kept)
{
    struct span head = buf_span(&kept->head);
    size_t seen = reading->seen[stream];
    if (reading->request->on_output && head.n > seen)
        reading->request->on_output(reading->request->context, stream,
                                    (struct span){head.p + seen, head.n - seen});
}

static int
take_outcome(struct reading *reading, const json_t *message, struct outcome *ret,
             struct err *err)
{
    int r = outcome_from_json(json_object_get(message, "outcome"), ret, err);
    if (r < 0)
        return r;
    pass_rest(reading, 1, &ret->out);
    pass_rest(reading, 2, &ret->err);
    return 0;
}

enum verdict { GO_ON, ENDED, BUSY, REFUSED };

static int
hear_stdout(struct reading *reading, const json_t *message, struct outcome *ret,
            struct err *err)
{
    (void)ret;
    int r = take_output(reading, 1, message, err);
    return r < 0 ? r : GO_ON;
}

static int
hear_stderr(struct reading *reading, const json_t *message, struct outcome *ret,
            struct err *err)
{
    (void)ret;
    int r = take_output(reading, 2, message, err);
    return r < 0 ? r : GO_ON;
}

static int
hear_dropped(struct reading *reading, const json_t *message, struct outcome *ret,
             struct err *err)
{
    (void)ret, (void)err;
    reading->dropped[strcmp(call_text(message, "stream"), "stdout") == 0 ? 1 : 2] = true;
    return GO_ON;
}

static int
hear_finished(struct reading *reading, const json_t *message, struct outcome *ret,
              struct err *err)
{
    int r = take_outcome(reading, message, ret, err);
    return r < 0 ? r : ENDED;
}

static int
hear_busy(struct reading *reading, const json_t *message, struct outcome *ret,
          struct err *err)
{
    (void)ret, (void)err;
    json_int_t ms = json_integer_value(json_object_get(message, "retry_after_ms"));
    ms = ms < RETRY_MS_MIN ? RETRY_MS_MIN : ms;
    reading->retry_ms = (uint64_t)(ms > RETRY_MS_MAX ? RETRY_MS_MAX : ms);
    return BUSY;
}

static int
hear_error(struct reading *reading, const json_t *message, struct outcome *ret,
           struct err *err)
{
    (void)ret;
    const char *code = call_text(message, "code");
    if (strcmp(code, "clients") == 0) { /* as busy as with too many runs */
        reading->retry_ms = CLIENTS_RETRY_MS;
        return BUSY;
    }
    err_set(err, -EPROTO, "%.200s", call_text(message, "message"));
    return REFUSED;
}

static int
hear_event(struct reading *reading, const json_t *message, struct outcome *ret,
           struct err *err)
{
    (void)ret, (void)err;
    if (reading->request->on_message)
        reading->request->on_message(reading->request->context, message);
    return GO_ON;
}

static int
hear_nothing(struct reading *reading, const json_t *message, struct outcome *ret,
             struct err *err)
{
    (void)reading, (void)message, (void)ret, (void)err;
    return GO_ON;
}

static const struct {
    const char *type;
    int (*hear)(struct reading *reading, const json_t *message, struct outcome *ret,
                struct err *err);
} messages[] = {
    {"stdout", hear_stdout},     {"stderr", hear_stderr}, {"dropped", hear_dropped},
    {"finished", hear_finished}, {"busy", hear_busy},     {"error", hear_error},
    {"accepted", hear_nothing},  {"pong", hear_nothing},  {"started", hear_event},
    {"incident", hear_event},    {"usage", hear_event},   {"display", hear_event},
};

/* A verdict, or a negative errno. */
static int
hear(struct reading *reading, const json_t *message, struct outcome *ret, struct err *err)
{
    const char *type = call_text(message, "type");
    for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
        if (strcmp(type, messages[i].type) == 0)
            return messages[i].hear(reading, message, ret, err);
    if (!reading->greeted && json_object_get(message, "adyton")) {
        reading->greeted = true;
        return GO_ON;
    }
    return err_set(err, -EPROTO, "the supervisor says what is not known here: '%.60s'",
                   type);
}

/* ---- one after the other ---- */

static int
converse(struct call *call, struct reading *reading, struct outcome *ret, struct err *err)
{
    int r = GO_ON;
    while (r == GO_ON) {
        json_t *message;
        r = call_receive(call, &message, err);
        if (r < 0)
            return r;
        r = hear(reading, message, ret, err);
        json_decref(message);
    }
    return r;
}

static enum call_result
ask_once(const struct call_request *request, struct span frames, struct reading *reading,
         struct outcome *ret, struct err *err)
{
    struct call call;
    int r = call_open(request->socket, &call, err);
    if (r < 0)
        return r == -ENOENT ? CALL_NOBODY : CALL_FAILED;
    r = call_send(&call, frames, request->job->collect ? request->collect_dir : -1, err);
    if (r == 0)
        r = converse(&call, reading, ret, err);
    call_close(&call);
    if (r < 0)
        return CALL_FAILED;
    return r == REFUSED ? CALL_REFUSED : CALL_ENDED;
}

enum call_result
call_run(const struct call_request *request, struct outcome *ret, struct err *err)
{
    AUTO_BUF struct buf frames = {0};
    buf_init(&frames, PROTOCOL_REQUEST_BYTES_MAX + 4096);
    int r = put_request(&frames, request, err);
    if (r < 0)
        return r == -EILSEQ || r == -ENOSPC ? CALL_UNFIT : CALL_REFUSED;
    uint64_t until_us = clock_now_us() + request->patience_ms * US_PER_MS;
    for (;;) {
        struct reading reading = {.request = request};
        enum call_result result =
            ask_once(request, buf_span(&frames), &reading, ret, err);
        if (reading.retry_ms == 0)
            return result;
        uint64_t wait_us = reading.retry_ms * US_PER_MS;
        if (clock_now_us() + wait_us > until_us) {
            err_set(err, -EBUSY, "the supervisor is busy, and was so for %llu ms",
                    (unsigned long long)request->patience_ms);
            return CALL_FAILED;
        }
        const struct timespec pause = {.tv_sec = (time_t)(wait_us / 1000000U),
                                       .tv_nsec = (long)(wait_us % 1000000U) * 1000};
        nanosleep(&pause, NULL);
    }
}
