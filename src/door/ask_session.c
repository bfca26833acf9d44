/* A session that is talked about: see ask_session.h. */
#include "door/ask_session.h"

#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "engine/client.h"
#include "engine/interpreter.h"
#include "engine/protocol.h"
#include "engine/serve.h"
#include "job/outcome_parse.h"

enum { QUEUE = 256, ID_BYTES = 40, TRIES_MAX = 100, PAUSE_US = 200 * 1000 };

struct ask_session {
    const struct ask_run *run;
    struct event_base *base;
    struct client *client;
    struct serve_options serve;
    char id[ID_BYTES]; /* "": none lives */
    json_t *answer;    /* the last message to what was asked */
    bool is_gone;
    struct err why;
};

/* --- one question, one answer --- */

static void
on_gone(void *context, const struct err *err)
{
    struct ask_session *session = context;
    session->is_gone = true;
    session->why = *err;
    session->id[0] = '\0';
    event_base_loopbreak(session->base);
}

static void
hear(void *context, const json_t *message, bool last)
{
    struct ask_session *session = context;
    if (!last)
        return;
    session->answer = message ? json_deep_copy(message) : NULL;
    event_base_loopbreak(session->base);
}

static int
connect_it(struct ask_session *session, struct err *err)
{
    const struct run_options *o = session->run->options;
    const struct client_options options = {.socket = o->socket,
                                           .carry = !o->socket,
                                           .alone = !session->run->may_call,
                                           .serve = &session->serve,
                                           .on_gone = on_gone,
                                           .context = session};
    client_close(session->client);
    session->client = NULL;
    session->is_gone = false;
    return client_open(session->base, &options, &session->client, err);
}

static const char *
text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int
ask_once(struct ask_session *session, json_t *request, struct err *err)
{
    uint64_t number;
    json_decref(session->answer);
    session->answer = NULL;
    int r = session->client && !session->is_gone ? 0 : connect_it(session, err);
    if (r == 0)
        r = client_ask(session->client, request, -1, hear, session, &number, err);
    while (r == 0 && !session->answer && !session->is_gone)
        event_base_dispatch(session->base);
    if (r == 0 && !session->answer)
        r = err_set(err, -ECONNRESET, "%s", session->why.text);
    if (r == 0 && strcmp(text_of(session->answer, "type"), "error") == 0)
        r = err_set(err, -EPROTO, "%.200s", text_of(session->answer, "message"));
    return r;
}

/* A supervisor with much to do is asked again. */
static int
ask(struct ask_session *session, json_t *request, struct err *err)
{
    const struct timeval pause = {.tv_usec = PAUSE_US};
    int r = request ? 0 : err_set(err, -ENOMEM, "no memory for a request");
    for (int i = 0; r == 0 && i < TRIES_MAX; i++) {
        r = ask_once(session, request, err);
        if (r < 0 || strcmp(text_of(session->answer, "type"), "busy") != 0)
            break;
        event_base_loopexit(session->base, &pause);
        event_base_dispatch(session->base);
        if (i == TRIES_MAX - 1)
            r = err_set(err, -EBUSY, "the supervisor is busy");
    }
    json_decref(request);
    return r;
}

/* --- the session --- */

static json_t *
limits_of(const struct run_options *o)
{
    json_t *limits = json_object();
    for (size_t i = 0; i < o->limits_n; i++)
        (void)json_object_set_new(limits, o->limits[i].field->name,
                                  json_string(o->limits[i].text));
    return limits;
}

static json_t *
data_of(const struct run_data *data)
{
    json_t *list = json_array();
    for (size_t i = 0; i < data->n; i++) {
        AUTO_FREE char *path = realpath(data->folders[i].path, NULL);
        json_t *folder = json_pack("{s:s}", "path", path ? path : data->folders[i].path);
        if (folder && data->folders[i].name)
            (void)json_object_set_new(folder, "name", json_string(data->folders[i].name));
        (void)json_array_append_new(list, folder);
    }
    return list;
}

static int
begin(struct ask_session *session, struct err *err)
{
    const struct run_options *o = session->run->options;
    char python[IMAGE_PATH_BYTES];
    int r = o->python ? interpreter_locate(o->python, python, err) : 0;
    if (r < 0)
        return r;
    json_t *request =
        json_pack("{s:s, s:b, s:s, s:o}", "type", "session_new", "tied", 1, "policy",
                  session->run->policy.name, "limits", limits_of(o));
    if (request && o->python)
        (void)json_object_set_new(request, "python", json_string(python));
    if (request && session->run->data.n > 0)
        (void)json_object_set_new(request, "data", data_of(&session->run->data));
    r = ask(session, request, err);
    if (r == 0)
        snprintf(session->id, sizeof(session->id), "%s",
                 text_of(json_object_get(session->answer, "session"), "session_id"));
    return r;
}

/* Before the first piece of code. */
static int
put_files(struct ask_session *session, struct err *err)
{
    const struct job *job = &session->run->job;
    json_t *files = json_array();
    for (size_t i = 0; i < job->files_n; i++)
        (void)json_array_append_new(
            files, json_pack("{s:s, s:o}", "name", job->files[i].name, "data_base64",
                             protocol_base64(buf_span(&job->files[i].data))));
    if (json_array_size(files) == 0) {
        json_decref(files);
        return 0;
    }
    return ask(session,
               json_pack("{s:s, s:s, s:o}", "type", "session_put", "session", session->id,
                         "files", files),
               err);
}

int
ask_session_open(const struct ask_run *run, struct ask_session **ret, struct err *err)
{
    struct ask_session *session = calloc(1, sizeof(*session));
    if (!session)
        return err_set(err, -ENOMEM, "no memory for a session");
    *session = (struct ask_session){
        .run = run, .base = event_base_new(), .serve = {.queue_max = QUEUE}};
    struct serve_options *serve = &session->serve;
    if (strchr(run->options->policy, '/') || strchr(run->options->policy, '.'))
        serve->policies[serve->policies_n++] = run->options->policy;
    if (run->options->python)
        serve->pythons[serve->pythons_n++] = run->options->python;
    serve->ledger = run->options->ledger;
    int r = session->base ? 0 : err_set(err, -ENOMEM, "no memory for an event loop");
    if (r == 0)
        r = connect_it(session, err);
    if (r < 0)
        ask_session_close(session);
    else
        *ret = session;
    return r;
}

void
ask_session_close(struct ask_session *session)
{
    if (!session)
        return;
    client_close(session->client); /* the session is tied to it */
    if (session->base)
        event_base_free(session->base);
    json_decref(session->answer);
    free(session);
}

int
ask_session_execute(struct ask_session *session, struct span code, struct outcome *ret,
                    struct err *err)
{
    int r = 0;
    if (session->id[0] == '\0') {
        r = begin(session, err);
        if (r == 0)
            r = put_files(session, err);
    }
    if (r == 0)
        r = ask(session,
                json_pack("{s:s, s:s, s:o, s:b}", "type", "run", "session", session->id,
                          "code_base64", protocol_base64(code), "show_last", 1),
                err);
    if (r == 0)
        r = outcome_from_json(json_object_get(session->answer, "outcome"), ret, err);
    if (r == 0 && ret->session == SESSION_LOST)
        session->id[0] = '\0';
    return r;
}
