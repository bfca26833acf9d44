/*
 * Files of sessions, asked for over the socket: each request is a child that works on the cell's tree
 * (cell/files.h), between runs and during one. What it reads goes to the client as it comes; while
 * the client does not read, the child waits. A request ends with its answer, with its client, or with
 * its session.
 */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/serve_parts.h"

enum {
    FILES_MAX = 32,           /* at once */
    FILES_OF_SESSION_MAX = 4, /* … in one session */
    RETRY_MS = 200,
    /* Unread bytes of a client at which its work waits, and at which it goes on. */
    UNREAD_MAX = 256 * 1024,
    UNREAD_LOW = 64 * 1024,
    LISTING_BYTES = 16 * 1024 * 1024,
};

struct serve_files {
    struct serve_files *after;
    struct serve *serve;
    struct serve_client *client;
    struct serve_session *session;
    struct files_work *work;
    char id[PROTOCOL_ID_BYTES];
    enum files_kind kind;
    bool paused;
    uint64_t bytes;    /* of what was sent */
    struct buf list;   /* of a listing: its files, as JSON */
    uint64_t unlisted; /* … that it had no room for */
    struct serve_seen *seen;
};

/* --- its life --- */

static void
unlink_files(struct serve_files *files)
{
    struct serve_files **at = &files->serve->files;
    while (*at != files)
        at = &(*at)->after;
    *at = files->after;
    files->serve->files_n--;
    files->session->last_us = clock_now_us();
}

static void
free_files(struct serve_files *files)
{
    buf_done(&files->list);
    serve_seen_release(files->seen);
    free(files);
}

static void
tell_error(struct serve_client *client, const char *id, int code, const char *text)
{
    struct err err;
    err_set(&err, code, "%s", text);
    serve_reply_error(client, id, &err);
    serve_client_flush(client);
}

/* Before its end: says so, unless nobody is there to hear it. */
static void
stop(struct serve_files *files, int code, const char *why)
{
    struct serve *serve = files->serve;
    unlink_files(files);
    files_cancel(files->work);
    if (code != 0)
        tell_error(files->client, files->id, code, why);
    free_files(files);
    serve_check_drained(serve);
}

bool
serve_files_cancel(struct serve_client *client, const char *id)
{
    for (struct serve_files *at = client->serve->files; at; at = at->after)
        if (at->client == client && strcmp(at->id, id) == 0) {
            stop(at, -ECANCELED, "the work on files was cancelled");
            return true;
        }
    return false;
}

void
serve_files_abandon(const struct serve_client *client)
{
    struct serve_files *after;
    for (struct serve_files *at = client->serve->files; at; at = after) {
        after = at->after;
        if (at->client == client)
            stop(at, 0, NULL);
    }
}

void
serve_files_end(struct serve_session *session, const char *why)
{
    struct serve *serve = session->serve;
    struct serve_files *at = serve->files;
    char text[OUTCOME_TEXT_BYTES];
    snprintf(text, sizeof(text), "the session has ended: %.180s", why);
    serve_seen_forget(session);
    while (
        at) { /* from the front each time: a client that is closed takes its others along */
        bool meant = at->session == session;
        struct serve_files *after = at->after;
        if (meant)
            stop(at, -EIDRM, text);
        at = meant ? serve->files : after;
    }
}

void
serve_files_go_on(const struct serve_client *client)
{
    if (client->closed)
        return;
    for (struct serve_files *at = client->serve->files; at; at = at->after)
        if (at->client == client && at->paused &&
            serve_client_pending(client) <= UNREAD_LOW) {
            at->paused = false;
            files_pause(at->work, false);
        }
}

/* --- what is said --- */

static int
put_path(struct buf *out, const char *path)
{
    uint64_t replaced;
    int r = buf_printf(out, "\"path\":");
    if (r == 0)
        r = serve_reply_put_text(out, span_of(path), &replaced);
    if (r < 0 || replaced == 0)
        return r;
    size_t n = strlen(path), coded_n = sodium_base64_ENCODED_LEN(n, 1);
    r = buf_printf(out, ",\"path_base64\":\"");
    if (r == 0)
        r = buf_reserve(out, coded_n);
    if (r < 0)
        return r;
    sodium_bin2base64(out->p + out->n, coded_n, (const unsigned char *)path, n,
                      sodium_base64_VARIANT_ORIGINAL);
    out->n += coded_n - 1;
    return buf_append(out, "\"", 1);
}

static int
put_header(struct buf *out, const char *id, const struct collected_file *file)
{
    int r = buf_printf(out, "{\"type\":\"file\",\"id\":\"%s\",\"file\":{", id);
    if (r == 0)
        r = put_path(out, file->path);
    return r < 0 ? r : buf_printf(out, ",\"bytes\":%" PRIu64 "}}", file->bytes);
}

static int
put_data(struct buf *out, const char *id, struct span bytes)
{
    int r = buf_printf(out, "{\"type\":\"data\",\"id\":\"%s\",", id);
    if (r == 0)
        r = protocol_put_data(out, "data", bytes);
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
put_left_out(struct buf *out, uint64_t skipped, const char *note)
{
    uint64_t replaced;
    if (skipped == 0)
        return 0;
    int r = buf_printf(out, ",\"skipped\":%" PRIu64 ",\"note\":", skipped);
    return r < 0 ? r : serve_reply_put_text(out, span_of(note), &replaced);
}

static int
put_done(struct buf *out, const struct serve_files *files, uint64_t skipped,
         const char *note, const char *sha256)
{
    int r = buf_printf(out, "{\"type\":\"done\",\"id\":\"%s\"", files->id);
    if (r == 0 && files->kind != FILES_PUT)
        r = buf_printf(out, ",\"bytes\":%" PRIu64, files->bytes);
    if (r == 0 && sha256[0] != '\0')
        r = buf_printf(out, ",\"sha256\":\"%s\"", sha256);
    if (r == 0)
        r = put_left_out(out, skipped, note);
    return r < 0 ? r : buf_append(out, "}", 1);
}

static int
put_listing(struct buf *out, const struct serve_files *files, int64_t since,
            uint64_t skipped, const char *note)
{
    int r = buf_printf(out, "{\"type\":\"files\",\"id\":\"%s\",\"files\":[", files->id);
    if (r == 0)
        r = buf_append(out, buf_span(&files->list).p, files->list.n);
    if (r == 0)
        r = buf_append(out, "]", 1);
    if (r == 0 && since >= 0)
        r = buf_printf(out, ",\"since\":%" PRId64, since);
    if (r == 0)
        r = put_left_out(out, skipped + files->unlisted,
                         files->unlisted > 0 ? "the list would be too long" : note);
    return r < 0 ? r : buf_append(out, "}", 1);
}

/* --- what the child says --- */

static int
put_entry(struct buf *out, const struct collected_file *file, enum serve_change change)
{
    static const char *const words[] = {[CHANGE_NONE] = "",
                                        [CHANGE_ADDED] = ",\"change\":\"added\"",
                                        [CHANGE_MODIFIED] = ",\"change\":\"modified\""};
    int r = buf_printf(out, "%s{", out->n > 0 ? "," : "");
    if (r == 0)
        r = put_path(out, file->path);
    if (r == 0)
        r = buf_printf(out, ",\"bytes\":%" PRIu64 ",\"mime\":", file->bytes);
    if (r == 0)
        r = protocol_put_text(out, span_of(file->mime));
    return r < 0 ? r
                 : buf_printf(out, ",\"sha256\":\"%s\"%s}", file->sha256, words[change]);
}

static void
keep_entry(struct serve_files *files, size_t before, int r)
{
    if (r == 0)
        return;
    files->list.n = before;
    files->unlisted++;
}

static void
on_removed(void *context, const char *path)
{
    struct serve_files *files = context;
    struct buf *out = &files->list;
    size_t before = out->n;
    int r = buf_printf(out, "%s{", before > 0 ? "," : "");
    if (r == 0)
        r = put_path(out, path);
    keep_entry(files, before, r < 0 ? r : buf_printf(out, ",\"change\":\"removed\"}"));
}

static void
on_entry(void *context, const struct collected_file *file)
{
    struct serve_files *files = context;
    size_t at;
    if (files->kind == FILES_READ) {
        if (serve_reply_begin(files->client, &at))
            serve_reply_end(files->client, at,
                            put_header(&files->client->out, files->id, file));
        return;
    }
    enum serve_change change = serve_seen_add(files->seen, file, on_removed, files);
    size_t before = files->list.n;
    keep_entry(files, before, put_entry(&files->list, file, change));
}

static void
on_data(void *context, struct span bytes)
{
    struct serve_files *files = context;
    struct serve_client *client = files->client;
    size_t at;
    files->bytes += bytes.n;
    files->session->last_us = clock_now_us();
    /* With its client the work may be gone, at each of these. */
    if (!serve_reply_begin(client, &at) ||
        !serve_reply_end(client, at, put_data(&client->out, files->id, bytes)))
        return;
    serve_client_flush(client);
    if (client->closed || serve_client_pending(client) <= UNREAD_MAX)
        return;
    files->paused = true;
    files_pause(files->work, true);
}

static void
say_end(struct serve_files *files, uint64_t skipped, const char *note, const char *sha256)
{
    struct serve_client *client = files->client;
    size_t at;
    int64_t since = 0;
    if (files->kind == FILES_LIST) {
        since = serve_seen_since(files->seen);
        serve_seen_finish(files->seen, on_removed, files);
    }
    if (!serve_reply_begin(client, &at))
        return;
    struct buf *out = &client->out;
    serve_reply_end(client, at,
                    files->kind == FILES_LIST
                        ? put_listing(out, files, since, skipped, note)
                        : put_done(out, files, skipped, note, sha256));
    serve_client_flush(client);
}

static void
on_end(void *context, const struct err *err, uint64_t skipped, const char *note,
       const char *sha256)
{
    struct serve_files *files = context;
    struct serve *serve = files->serve;
    unlink_files(files);
    if (err->code < 0)
        tell_error(files->client, files->id, -ENODATA, err->text);
    else
        say_end(files, skipped, note, sha256);
    free_files(files);
    serve_check_drained(serve);
}

/* --- what is asked --- */

/* As the code would call it: /tmp is where it is. */
static const char *
beneath_tmp(const char *path)
{
    static const char tmp[] = "/tmp/";
    return strncmp(path, tmp, sizeof(tmp) - 1) == 0 ? path + sizeof(tmp) - 1 : path;
}

static struct serve_files *
files_new(struct serve_client *client, struct serve_session *session,
          const struct protocol_request *request)
{
    struct serve_files *files = calloc(1, sizeof(*files));
    if (!files)
        return NULL;
    *files = (struct serve_files){
        .serve = client->serve, .client = client, .session = session, .kind = FILES_PUT};
    if (request->kind == PROTOCOL_SESSION_FILES)
        files->kind = FILES_LIST;
    else if (request->kind == PROTOCOL_SESSION_GET)
        files->kind = request->path[0] != '\0' ? FILES_READ : FILES_TAR;
    memcpy(files->id, request->id, sizeof(files->id));
    buf_init(&files->list, LISTING_BYTES);
    if (files->kind == FILES_LIST && !(files->seen = serve_seen_new(session))) {
        free_files(files);
        return NULL;
    }
    return files;
}

static int
start(struct serve_files *files, const struct protocol_request *request, struct err *err)
{
    struct serve_session *session = files->session;
    struct files_task task = {.kind = files->kind,
                              .files_max = session->policy.collect_files,
                              .bytes_max = session->policy.collect_bytes,
                              .path = beneath_tmp(request->path),
                              .on_entry = on_entry,
                              .on_data = on_data,
                              .on_end = on_end,
                              .context = files};
    if (files->kind == FILES_PUT) {
        task.put = request->run->job.files;
        task.put_n = request->run->job.files_n;
    }
    int r = session->run ? pool_files(session->run, &task, &files->work, err)
                         : err_set(err, -ECHILD, "the session is still being made");
    return r == -ECHILD ? err_set(err, -EIDRM, "%s", err->text) : r;
}

/* Each is a process: what is too much is told to come again. */
static bool
is_too_much(const struct serve *serve, const struct serve_session *session)
{
    size_t n = 0;
    for (const struct serve_files *at = serve->files; at; at = at->after)
        n += at->session == session;
    return serve->draining || serve->files_n >= FILES_MAX || n >= FILES_OF_SESSION_MAX;
}

static int
begin(struct serve_client *client, const struct protocol_request *request,
      struct err *err)
{
    struct serve *serve = client->serve;
    struct serve_session *session;
    for (const struct serve_files *at = serve->files; at; at = at->after)
        if (at->client == client && strcmp(at->id, request->id) == 0)
            return err_set(err, -EINVAL, "there is a request of that 'id' already");
    int r = serve_session_find(serve, request->session, &session, err);
    if (r < 0)
        return r;
    if (is_too_much(serve, session)) {
        serve_reply_busy(client, request->id, RETRY_MS);
        return 0;
    }
    struct serve_files *files = files_new(client, session, request);
    if (!files)
        return err_set(err, -ENOMEM, "no memory for work on files");
    r = start(files, request, err);
    if (r < 0) {
        free_files(files);
        return r;
    }
    files->after = serve->files;
    serve->files = files;
    serve->files_n++;
    return 0;
}

void
serve_files_ask(struct serve_client *client, const struct protocol_request *request)
{
    struct err err = {0};
    if (begin(client, request, &err) < 0)
        serve_reply_error(client, request->id, &err);
    serve_client_flush(client);
}
