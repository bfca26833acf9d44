/*
 * What a client asks, field by field: a request is of one kind, a kind has its fields,
 * and a field that is in no table is an error with its name. Whether a policy of that
 * name exists, and whether a limit is narrower, is not known here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "engine/protocol.h"

struct field {
    const char *name;
    /* root: for fields whose bytes come under one of two names. */
    int (*take)(struct protocol_request *request, const json_t *root, const json_t *value,
                struct err *err);
};

enum { NAME_SHOWN_BYTES = 40 };

/* Names from outside go into sentences: cut, and no byte of theirs drives a terminal. */
static const char *
shown(const char *name, char text[NAME_SHOWN_BYTES])
{
    size_t i;
    for (i = 0; i + 1 < NAME_SHOWN_BYTES && name[i] != '\0'; i++)
        text[i] = name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?';
    text[i] = '\0';
    return text;
}

/* A string without NUL that fits, NUL included. */
static int
take_string(const json_t *value, const char *name, char *ret, size_t size,
            struct err *err)
{
    if (!json_is_string(value))
        return err_set(err, -EINVAL, "'%s' is not a string", name);
    const char *text = json_string_value(value);
    size_t n = json_string_length(value);
    if (strlen(text) != n)
        return err_set(err, -EINVAL, "'%s' has a NUL in it", name);
    if (n >= size)
        return err_set(err, -EINVAL, "'%s' is longer than %zu bytes", name, size - 1);
    memcpy(ret, text, n + 1);
    return 0;
}

static int
take_id(struct protocol_request *request, const json_t *root, const json_t *value,
        struct err *err)
{
    static const char signs[] = "._:-";
    char id[PROTOCOL_ID_BYTES];
    (void)root;
    int r = take_string(value, "id", id, sizeof(id), err);
    if (r < 0)
        return r;
    bool sound = id[0] != '\0';
    for (const char *p = id; *p != '\0'; p++)
        sound = sound && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
                          (*p >= 'A' && *p <= 'Z') || strchr(signs, *p));
    if (!sound)
        return err_set(err, -EINVAL,
                       "'id' is not 1 to %d letters, digits, '.', '_', ':' and '-'",
                       PROTOCOL_ID_BYTES - 1);
    memcpy(request->id, id, sizeof(id));
    return 0;
}

static int
take_session(struct protocol_request *request, const json_t *root, const json_t *value,
             struct err *err)
{
    (void)root;
    return take_string(value, "session", request->session, sizeof(request->session), err);
}

static int
take_type(struct protocol_request *request, const json_t *root, const json_t *value,
          struct err *err)
{
    (void)request, (void)root, (void)value, (void)err;
    return 0; /* it has chosen the table already */
}

static int
take_policy(struct protocol_request *request, const json_t *root, const json_t *value,
            struct err *err)
{
    (void)root;
    return take_string(value, "policy", request->run->policy,
                       sizeof(request->run->policy), err);
}

static int
take_python(struct protocol_request *request, const json_t *root, const json_t *value,
            struct err *err)
{
    (void)root;
    int r = take_string(value, "python", request->run->python,
                        sizeof(request->run->python), err);
    if (r == 0 && request->run->python[0] != '/')
        return err_set(err, -EINVAL, "'python' is not an absolute path");
    return r;
}

/* The operator's fields are not a client's to set, narrower or not. */
static int
take_limit(struct protocol_run *run, const char *name, const json_t *value,
           struct err *err)
{
    char quoted[NAME_SHOWN_BYTES];
    const struct policy_field *field = policy_field_by_name(span_of(name));
    if (!field)
        return err_set(err, -EINVAL, "'limits' has an unknown field '%s'",
                       shown(name, quoted));
    if (field->authority != BY_JOB_NARROWING || !policy_is_scalar(field))
        return err_set(err, -EINVAL, "'%s' is not a job's to set", field->name);
    if (run->limits_n == PROTOCOL_LIMITS_MAX)
        return err_set(err, -EINVAL, "more than %d limits", PROTOCOL_LIMITS_MAX);
    struct protocol_limit *limit = &run->limits[run->limits_n];
    int r = take_string(value, field->name, limit->text, sizeof(limit->text), err);
    if (r < 0)
        return r;
    limit->field = field;
    run->limits_n++;
    return 0;
}

static int
take_limits(struct protocol_request *request, const json_t *root, const json_t *value,
            struct err *err)
{
    (void)root;
    if (!json_is_object(value))
        return err_set(err, -EINVAL, "'limits' is not an object");
    int r = 0;
    /* The iterators take no const, and change nothing. */
    json_t *limits = (json_t *)(uintptr_t)value;
    for (void *at = json_object_iter(limits); r == 0 && at;
         at = json_object_iter_next(limits, at))
        r = take_limit(request->run, json_object_iter_key(at), json_object_iter_value(at),
                       err);
    return r;
}

static int
take_code(struct protocol_request *request, const json_t *root, const json_t *value,
          struct err *err)
{
    bool given;
    (void)value;
    struct buf *code = &request->run->job.code;
    return code->n > 0 ? 0 : protocol_get_data(root, "code", code, &given, err);
}

static int
take_stdin(struct protocol_request *request, const json_t *root, const json_t *value,
           struct err *err)
{
    (void)value;
    struct job *job = &request->run->job;
    return job->has_stdin ? 0
                          : protocol_get_data(root, "stdin", &job->stdin_bytes,
                                              &job->has_stdin, err);
}

static int
take_name(struct protocol_request *request, const json_t *root, const json_t *value,
          struct err *err)
{
    char name[JOB_NAME_BYTES];
    (void)root;
    int r = take_string(value, "name", name, sizeof(name), err);
    return r < 0 ? r : job_set_name(&request->run->job, name, err);
}

static int
take_folder(struct protocol_run *run, const json_t *value, struct err *err)
{
    const json_t *name = json_object_get(value, "name");
    if (run->data_n == JOB_FOLDERS_MAX)
        return err_set(err, -EINVAL, "more than %d data folders", JOB_FOLDERS_MAX);
    if (!json_is_object(value) || !json_object_get(value, "path") ||
        json_object_size(value) > 1U + (name != NULL))
        return err_set(err, -EINVAL, "'data' has something other than {path, name}");
    struct protocol_data *data = &run->data[run->data_n];
    int r = take_string(json_object_get(value, "path"), "path", data->path,
                        sizeof(data->path), err);
    if (r == 0 && data->path[0] != '/')
        return err_set(err, -EINVAL, "'path' of a data folder is not absolute");
    if (r == 0 && name)
        r = take_string(name, "name", data->name, sizeof(data->name), err);
    if (r == 0 && name && data->name[0] == '\0')
        return err_set(err, -EINVAL, "'name' of a data folder is empty");
    run->data_n += r == 0;
    return r;
}

static int
take_data(struct protocol_request *request, const json_t *root, const json_t *value,
          struct err *err)
{
    (void)root;
    if (!json_is_array(value))
        return err_set(err, -EINVAL, "'data' is not an array");
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(value); i++)
        r = take_folder(request->run, json_array_get(value, i), err);
    return r;
}

static int
take_workspace(struct protocol_request *request, const json_t *root, const json_t *value,
               struct err *err)
{
    (void)root;
    struct protocol_run *run = request->run;
    int r = take_string(value, "workspace", run->workspace, sizeof(run->workspace), err);
    return r == 0 && run->workspace[0] == '\0'
               ? err_set(err, -EINVAL, "'workspace' is an empty name")
               : r;
}

/* A path has any bytes but NUL, so it comes in both forms. */
static int
take_path(struct protocol_request *request, const json_t *root, const json_t *value,
          struct err *err)
{
    bool given;
    AUTO_BUF struct buf path = {0};
    (void)value;
    buf_init(&path, sizeof(request->path) - 1);
    int r = protocol_get_data(root, "name", &path, &given, err);
    if (r == -ENOSPC)
        return err_set(err, -EINVAL, "'name' is longer than %zu bytes",
                       sizeof(request->path) - 1);
    if (r < 0)
        return r;
    struct span text = buf_span(&path);
    if (text.n == 0 || memchr(text.p, '\0', text.n))
        return err_set(err, -EINVAL, "'name' is empty, or has a NUL in it");
    memcpy(request->path, text.p, text.n);
    request->path[text.n] = '\0';
    return 0;
}

static int
take_args(struct protocol_request *request, const json_t *root, const json_t *value,
          struct err *err)
{
    (void)root;
    if (!json_is_array(value))
        return err_set(err, -EINVAL, "'args' is not an array");
    AUTO_FREE char *arg = malloc(JOB_ARGS_BYTES);
    if (!arg)
        return err_set(err, -ENOMEM, "no memory for the arguments");
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(value); i++) {
        r = take_string(json_array_get(value, i), "args", arg, JOB_ARGS_BYTES, err);
        if (r == 0)
            r = job_add_arg(&request->run->job, arg, err);
    }
    return r;
}

static int
take_file(struct job *job, const json_t *file, struct err *err)
{
    char name[JOB_PATH_BYTES];
    bool given;
    AUTO_BUF struct buf data = {0};
    buf_init(&data, JOB_BYTES_MAX);
    if (!json_is_object(file) || json_object_size(file) != 2)
        return err_set(err, -EINVAL,
                       "an item of 'files' is not an object of 'name' and 'data' or "
                       "'data_base64'");
    int r = take_string(json_object_get(file, "name"), "name", name, sizeof(name), err);
    if (r == 0)
        r = protocol_get_data(file, "data", &data, &given, err);
    if (r == 0 && !given)
        return err_set(err, -EINVAL, "an item of 'files' has no 'data'");
    return r < 0 ? r : job_add_file(job, name, &data, err);
}

static int
take_files(struct protocol_request *request, const json_t *root, const json_t *value,
           struct err *err)
{
    (void)root;
    if (!json_is_array(value))
        return err_set(err, -EINVAL, "'files' is not an array");
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(value); i++)
        r = take_file(&request->run->job, json_array_get(value, i), err);
    return r;
}

static int
take_bool(const json_t *value, const char *name, bool *ret, struct err *err)
{
    if (!json_is_boolean(value))
        return err_set(err, -EINVAL, "'%s' is not true or false", name);
    *ret = json_is_true(value);
    return 0;
}

static int
take_collect(struct protocol_request *request, const json_t *root, const json_t *value,
             struct err *err)
{
    (void)root;
    return take_bool(value, "collect", &request->run->job.collect, err);
}

static int
take_stream(struct protocol_request *request, const json_t *root, const json_t *value,
            struct err *err)
{
    (void)root;
    return take_bool(value, "stream", &request->run->stream, err);
}

static int
take_show_last(struct protocol_request *request, const json_t *root, const json_t *value,
               struct err *err)
{
    (void)root;
    return take_bool(value, "show_last", &request->run->job.show_last, err);
}

static int
take_svg(struct protocol_request *request, const json_t *root, const json_t *value,
         struct err *err)
{
    (void)root;
    return take_bool(value, "svg", &request->run->job.svg, err);
}

static int
take_check(struct protocol_request *request, const json_t *root, const json_t *value,
           struct err *err)
{
    (void)root;
    return take_bool(value, "check", &request->run->check, err);
}

static int
take_tied(struct protocol_request *request, const json_t *root, const json_t *value,
          struct err *err)
{
    (void)root;
    return take_bool(value, "tied", &request->run->tied, err);
}

static int
take_cursor(struct protocol_request *request, const json_t *root, const json_t *value,
            struct err *err)
{
    (void)root;
    json_int_t cursor = json_integer_value(value);
    if (!json_is_integer(value) || cursor < 0)
        return err_set(err, -EINVAL, "'cursor' is not a number of characters");
    request->run->has_cursor = true;
    request->run->cursor = (uint64_t)cursor;
    return 0;
}

static int
take_version(struct protocol_request *request, const json_t *root, const json_t *value,
             struct err *err)
{
    (void)request, (void)root;
    if (!json_is_integer(value))
        return err_set(err, -EBADMSG, "'adyton' is not a version number");
    json_int_t version = json_integer_value(value);
    return version == PROTOCOL_VERSION
               ? 0
               : err_set(err, -EPROTONOSUPPORT,
                         "version %lld of the protocol is not known: this is %d",
                         (long long)version, PROTOCOL_VERSION);
}

static const struct field hello_fields[] = {{"adyton", take_version}, {NULL, NULL}};
static const struct field plain_fields[] = {{"type", take_type}, {NULL, NULL}};
static const struct field cancel_fields[] = {
    {"type", take_type}, {"id", take_id}, {NULL, NULL}};
static const struct field run_fields[] = {
    {"type", take_type},
    {"id", take_id},
    {"policy", take_policy},
    {"limits", take_limits},
    {"code", take_code},
    {"code_base64", take_code},
    {"name", take_name},
    {"args", take_args},
    {"stdin", take_stdin},
    {"files", take_files},
    {"python", take_python},
    {"stdin_base64", take_stdin},
    {"data", take_data},
    {"workspace", take_workspace},
    {"collect", take_collect},
    {"stream", take_stream},
    {"show_last", take_show_last},
    {"svg", take_svg},
    {"session", take_session},
    {"check", take_check},
    {NULL, NULL},
};
static const struct field new_fields[] = {
    {"type", take_type},     {"id", take_id},
    {"policy", take_policy}, {"limits", take_limits},
    {"python", take_python}, {"tied", take_tied},
    {"data", take_data},     {NULL, NULL},
};
static const struct field session_fields[] = {
    {"type", take_type}, {"id", take_id}, {"session", take_session}, {NULL, NULL}};
static const struct field complete_fields[] = {
    {"type", take_type}, {"id", take_id},         {"session", take_session},
    {"code", take_code}, {"cursor", take_cursor}, {"code_base64", take_code},
    {NULL, NULL},
};
static const struct field put_fields[] = {{"type", take_type},
                                          {"id", take_id},
                                          {"session", take_session},
                                          {"files", take_files},
                                          {NULL, NULL}};
static const struct field get_fields[] = {{"type", take_type},        {"id", take_id},
                                          {"session", take_session},  {"name", take_path},
                                          {"name_base64", take_path}, {NULL, NULL}};

static const struct kind {
    const char *type;
    enum protocol_kind kind;
    const struct field *fields;
    bool needs_id, needs_session;
} kinds[] = {
    {"run", PROTOCOL_RUN, run_fields, true, false},
    {"cancel", PROTOCOL_CANCEL, cancel_fields, true, false},
    {"status", PROTOCOL_STATUS, plain_fields, false, false},
    {"ping", PROTOCOL_PING, plain_fields, false, false},
    {"session_new", PROTOCOL_SESSION_NEW, new_fields, true, false},
    {"session_restart", PROTOCOL_SESSION_RESTART, session_fields, true, true},
    {"session_list", PROTOCOL_SESSION_LIST, cancel_fields, true, false},
    {"session_show", PROTOCOL_SESSION_SHOW, session_fields, true, true},
    {"session_interrupt", PROTOCOL_SESSION_INTERRUPT, session_fields, true, true},
    {"session_close", PROTOCOL_SESSION_CLOSE, session_fields, true, true},
    {"session_complete", PROTOCOL_SESSION_COMPLETE, complete_fields, true, true},
    {"session_put", PROTOCOL_SESSION_PUT, put_fields, true, true},
    {"session_get", PROTOCOL_SESSION_GET, get_fields, true, true},
    {"session_files", PROTOCOL_SESSION_FILES, session_fields, true, true},
};

static const struct kind hello = {"", PROTOCOL_HELLO, hello_fields, false, false};

static int
find_kind(const json_t *root, const struct kind **ret, struct err *err)
{
    if (json_object_get(root, "adyton")) {
        *ret = &hello;
        return 0;
    }
    const json_t *type = json_object_get(root, "type");
    if (!json_is_string(type))
        return err_set(err, -EINVAL, "a request without a 'type'");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(json_string_value(type), kinds[i].type) == 0) {
            *ret = &kinds[i];
            return 0;
        }
    char text[NAME_SHOWN_BYTES];
    return err_set(err, -EINVAL, "no request has the type '%s'",
                   shown(json_string_value(type), text));
}

static int
take_fields(const struct kind *kind, json_t *root, struct protocol_request *request,
            struct err *err)
{
    int r = 0;
    for (void *at = json_object_iter(root); r == 0 && at;
         at = json_object_iter_next(root, at)) {
        const char *name = json_object_iter_key(at);
        char text[NAME_SHOWN_BYTES];
        const struct field *field = kind->fields;
        while (field->name && strcmp(field->name, name) != 0)
            field++;
        r = field->name ? field->take(request, root, json_object_iter_value(at), err)
                        : err_set(err, -EINVAL, "unknown field '%s'", shown(name, text));
    }
    return r;
}

/* What is chosen when a session is made, and what needs a cell of its own. */
static int
check_for_session(const json_t *root, struct err *err)
{
    static const char *const fields[] = {"policy",    "python",  "data",
                                         "workspace", "collect", "check"};
    if (!json_object_get(root, "session"))
        return 0;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (json_object_get(root, fields[i]))
            return err_set(err, -EINVAL, "a run in a session has no '%s' of its own",
                           fields[i]);
    return 0;
}

static bool
has_run(enum protocol_kind kind)
{
    return kind == PROTOCOL_RUN || kind == PROTOCOL_SESSION_NEW ||
           kind == PROTOCOL_SESSION_RESTART || kind == PROTOCOL_SESSION_PUT ||
           kind == PROTOCOL_SESSION_COMPLETE;
}

static int
make_run(struct protocol_request *request, struct err *err)
{
    request->run = calloc(1, sizeof(*request->run));
    if (!request->run)
        return err_set(err, -ENOMEM, "no memory for a run");
    job_init(&request->run->job);
    if (request->kind == PROTOCOL_SESSION_PUT) /* no script has a name there */
        request->run->job.name[0] = '\0';
    request->run->job.completes = request->kind == PROTOCOL_SESSION_COMPLETE;
    memcpy(request->run->policy, policy_default, strlen(policy_default) + 1);
    return 0;
}

static int
parse(json_t *root, struct protocol_request *ret, struct err *err)
{
    const struct kind *kind = &hello;
    struct err ignored;
    const json_t *id = json_object_get(root, "id");
    if (id) /* first, so that whatever is wrong is told under its id */
        (void)!take_id(ret, root, id, &ignored);
    int r = find_kind(root, &kind, err);
    if (r < 0)
        return r;
    ret->kind = kind->kind;
    if (kind->needs_id && !id)
        return err_set(err, -EINVAL, "a %s without an 'id'", kind->type);
    if (kind->needs_session && !json_object_get(root, "session"))
        return err_set(err, -EINVAL, "a %s without a 'session'", kind->type);
    r = ret->kind == PROTOCOL_RUN ? check_for_session(root, err) : 0;
    if (r < 0)
        return r;
    r = has_run(kind->kind) ? make_run(ret, err) : 0;
    if (r == 0)
        r = take_fields(kind, root, ret, err);
    if (r == 0 && ret->kind == PROTOCOL_RUN && !json_object_get(root, "code") &&
        !json_object_get(root, "code_base64"))
        return err_set(err, -EINVAL, "a run without 'code'");
    if (r == 0 && ret->kind == PROTOCOL_SESSION_PUT && ret->run->job.files_n == 0)
        return err_set(err, -EINVAL, "a session_put without 'files'");
    return r;
}

int
protocol_request_parse(struct span payload, struct protocol_request *ret, struct err *err)
{
    *ret = (struct protocol_request){0};
    json_t *root;
    int r = protocol_load(payload, PROTOCOL_REQUEST_MARKS_MAX, &root, err);
    if (r < 0)
        return r;
    r = parse(root, ret, err);
    json_decref(root);
    /* What job_add_… may say (E2BIG, EEXIST…) is a wrong request like any other. */
    return r < 0 && r != -EBADMSG && r != -EPROTONOSUPPORT && r != -ENOMEM ? -EINVAL : r;
}

void
protocol_run_free(struct protocol_run *run)
{
    if (run)
        job_done(&run->job);
    free(run);
}

void
protocol_request_done(struct protocol_request *request)
{
    protocol_run_free(request->run);
    request->run = NULL;
}
