/*
 * Files of sessions, from the command line. What comes from a session is written beneath one folder,
 * through no link, each file whole or not at all (cell/sink.h), whatever its name is.
 */
#include "door/session_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cell/sink.h"
#include "door/run_input.h"
#include "door/terminal.h"
#include "engine/call.h"
#include "engine/protocol.h"

enum {
    EXIT_WRONG = 1,
    EXIT_WRONG_USE = 2,
    EXIT_OUR_FAULT = 125,
    LINE_BYTES = 8192,
    PATH_BYTES = OUTCOME_FILE_PATH_BYTES,
    FOLDER_BYTES = 4096,
    FOLDER_MODE = 0777,
};

/* In base64 and with what stands around it, this fits into a request. */
static const uint64_t put_bytes_max = PROTOCOL_REQUEST_BYTES_MAX / 4 * 3 - (1 << 20);

static int
complain(int exit_status, const char *text)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES);
    if (terminal_append_line(text, &line) == 0)
        fprintf(stderr, "adyton session: %s\n", line.p);
    return exit_status;
}

static int
fail(int r, const struct err *err)
{
    bool told = r == -ENOENT || r == -EPROTO || r == -EIDRM || r == -ENODATA;
    return complain(told ? EXIT_WRONG : EXIT_OUR_FAULT, err->text);
}

static int
finish_output(void)
{
    return fflush(stdout) == 0
               ? 0
               : complain(EXIT_OUR_FAULT, "standard output cannot be written");
}

/* --- put --- */

static int
read_files(const struct session_files *wish, struct job *job, struct err *err)
{
    uint64_t left_bytes = put_bytes_max;
    int r = 0;
    job->name[0] = '\0'; /* no script has a name there */
    for (size_t i = 0; i < wish->words_n && r == 0; i++)
        r = run_input_add_file(wish->words[i], &left_bytes, job, err);
    return r == -EFBIG ? err_set(err, r,
                                 "the files have more than the %d MiB that go into one "
                                 "request: put them one after the other",
                                 (int)(put_bytes_max >> 20))
                       : r;
}

int
session_files_put(const struct session_files *wish)
{
    struct job job;
    struct err err;
    if (wish->words_n == 0 || wish->out || wish->all)
        return complain(EXIT_WRONG_USE, "put: takes the session's id and FILE[=NAME]…");
    job_init(&job);
    int status = EXIT_WRONG_USE;
    int r = read_files(wish, &job, &err);
    if (r < 0)
        complain(status, err.text);
    else if ((r = call_put_session(wish->socket, wish->session, &job, &err)) < 0)
        status = r == -EINVAL || r == -EFBIG ? complain(status, err.text) : fail(r, &err);
    job_done(&job);
    return r < 0 ? status : 0;
}

/* --- files --- */

static const char *
text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Of a path that is no UTF-8 its bytes are told as well. */
static bool
path_of(const json_t *file, char path[PATH_BYTES])
{
    const char *coded = text_of(file, "path_base64");
    size_t n = 0;
    if (coded[0] == '\0') {
        snprintf(path, PATH_BYTES, "%s", text_of(file, "path"));
        return path[0] != '\0';
    }
    if (sodium_base642bin((unsigned char *)path, PATH_BYTES - 1, coded, strlen(coded),
                          NULL, &n, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
        return false;
    path[n] = '\0';
    return n > 0;
}

static void
print_file(const json_t *file)
{
    char path[PATH_BYTES];
    AUTO_BUF struct buf line = {0};
    buf_init(&line, 4 * PATH_BYTES);
    bool gone = strcmp(text_of(file, "change"), "removed") == 0;
    if (!path_of(file, path) || terminal_append_line(path, &line) < 0)
        return;
    if (gone)
        printf("%12s", "-");
    else
        printf("%12lld", (long long)json_integer_value(json_object_get(file, "bytes")));
    printf("  %-8s  %-24s  %s\n", text_of(file, "change"),
           gone ? "-" : text_of(file, "mime"), line.p);
}

static void
warn_left_out(const json_t *answer)
{
    char text[LINE_BYTES / 4];
    json_int_t n = json_integer_value(json_object_get(answer, "skipped"));
    if (n == 0)
        return;
    snprintf(text, sizeof(text), "%lld left out: %s", (long long)n,
             text_of(answer, "note"));
    complain(0, text);
}

int
session_files_list(const struct session_files *wish)
{
    struct err err;
    json_t *answer;
    size_t i;
    json_t *file;
    if (wish->words_n > 0 || wish->out || wish->all)
        return complain(EXIT_WRONG_USE, "files: takes the session's id only");
    int r = call_list_session(wish->socket, wish->session, &answer, &err);
    if (r < 0)
        return fail(r, &err);
    if (wish->json) {
        json_object_del(answer, "type");
        json_object_del(answer, "id");
        json_dumpf(answer, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        json_array_foreach(json_object_get(answer, "files"), i, file)
        {
            print_file(file);
        }
        warn_left_out(answer);
    }
    json_decref(answer);
    return finish_output();
}

/* --- get --- */

static int
to_stdout(void *context, struct span bytes, struct err *err)
{
    (void)context;
    return fwrite(bytes.p, 1, bytes.n, stdout) == bytes.n
               ? 0
               : err_sys(err, "standard output cannot be written");
}

static int
to_sink(void *context, struct span bytes, struct err *err)
{
    int r = sink_write(context, bytes.p, bytes.n);
    return r < 0 ? err_set(err, r, "cannot write: %s", strerrordesc_np(-r)) : 0;
}

/* Where a file goes: a folder that is there, and a path beneath it. */
struct target {
    int dir;
    const char *name;
};

/* What this one name cannot be is -ENOTDIR, and others may go on. */
static int
fetch_into(const struct session_files *wish, const char *path, const struct target *place,
           json_t **ret, struct err *err)
{
    struct sink sink;
    const struct call_data to = {to_sink, &sink};
    int r = sink_open(place->dir, place->name, &sink);
    if (r == 0) {
        r = call_get_session(wish->socket, wish->session, path, &to, ret, err);
        if (r < 0) {
            sink_done(&sink);
            return r;
        }
        r = sink_finish(&sink);
        if (r < 0)
            json_decref(*ret);
    }
    sink_done(&sink);
    if (r < 0)
        err_set(err, sink_has_no_place(r) ? -ENOTDIR : r, "cannot write '%.120s': %s",
                place->name,
                r == -EEXIST ? "something else is there" : strerrordesc_np(-r));
    return r < 0 ? err->code : 0;
}

static const char *
last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The folder that --out names, or in which the file lies that it names. */
static int
find_place(const struct session_files *wish, const char *path, struct target *ret,
           struct err *err)
{
    const char *out = wish->out ? wish->out : ".";
    char folder[FOLDER_BYTES];
    struct stat is;
    ret->name = path ? last_part(path) : last_part(out);
    snprintf(folder, sizeof(folder), "%s", out);
    if (!path || stat(out, &is) < 0 || !S_ISDIR(is.st_mode)) {
        ret->name = last_part(out);
        snprintf(folder, sizeof(folder), "%.*s", (int)(ret->name - out), out);
    }
    ret->dir = open(folder[0] != '\0' ? folder : ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (ret->dir < 0)
        return err_sys(err, "--out: cannot open the folder of '%.120s'", out);
    if (!wish->out && fstatat(ret->dir, ret->name, &is, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(
            err, -EEXIST,
            "'%.120s' is there already: --out says where else, or what to replace",
            ret->name);
    return 0;
}

static int
get_one(const struct session_files *wish, const char *path)
{
    static const struct call_data to = {to_stdout, NULL};
    struct err err;
    json_t *done;
    struct target place = {.dir = -1};
    bool is_dash = wish->out && strcmp(wish->out, "-") == 0;
    int r = is_dash ? 0 : find_place(wish, path, &place, &err);
    if (r < 0) {
        fd_close(&place.dir);
        return complain(r == -EEXIST ? EXIT_WRONG : EXIT_WRONG_USE, err.text);
    }
    r = is_dash ? call_get_session(wish->socket, wish->session, path, &to, &done, &err)
                : fetch_into(wish, path, &place, &done, &err);
    fd_close(&place.dir);
    if (r < 0)
        return r == -ENOTDIR ? complain(EXIT_WRONG, err.text) : fail(r, &err);
    warn_left_out(done);
    json_decref(done);
    return finish_output();
}

/* One by one: what has changed or gone meanwhile is said, and the rest comes all the same. */
static int
get_each(const struct session_files *wish, int dir, const json_t *files)
{
    size_t i;
    json_t *file;
    int status = 0;
    json_array_foreach(files, i, file)
    {
        char path[PATH_BYTES];
        struct err err;
        json_t *done;
        if (strcmp(text_of(file, "change"), "removed") == 0 || !path_of(file, path))
            continue;
        const struct target place = {dir, path};
        int r = fetch_into(wish, path, &place, &done, &err);
        if (r == 0)
            json_decref(done);
        else if (r == -ENODATA || r == -ENOTDIR)
            status = complain(EXIT_WRONG, err.text);
        else
            return fail(r, &err);
    }
    return status;
}

static int
get_folder(const struct session_files *wish)
{
    struct err err;
    json_t *answer;
    if (mkdir(wish->out, FOLDER_MODE) < 0 && errno != EEXIST)
        return complain(EXIT_WRONG_USE, "--out: the folder cannot be made");
    AUTO_CLOSE int dir = open(wish->out, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (dir < 0)
        return complain(EXIT_WRONG_USE, "--out: it is no folder that can be opened");
    int r = call_list_session(wish->socket, wish->session, &answer, &err);
    if (r < 0)
        return fail(r, &err);
    warn_left_out(answer);
    int status = get_each(wish, dir, json_object_get(answer, "files"));
    json_decref(answer);
    return status;
}

/* --- for a run --- */

static int
keep(struct outcome *outcome, const json_t *file, const char *path)
{
    struct collected_file *files =
        reallocarray(outcome->files, outcome->files_n + 1, sizeof(*files));
    if (!files)
        return -ENOMEM;
    outcome->files = files;
    struct collected_file *kept = &files[outcome->files_n++];
    *kept = (struct collected_file){
        .bytes = (uint64_t)json_integer_value(json_object_get(file, "bytes"))};
    snprintf(kept->path, sizeof(kept->path), "%s", path);
    snprintf(kept->mime, sizeof(kept->mime), "%s", text_of(file, "mime"));
    snprintf(kept->sha256, sizeof(kept->sha256), "%s", text_of(file, "sha256"));
    return 0;
}

static int
collect_one(const struct session_files *wish, int dir, const json_t *file,
            struct outcome *outcome, struct err *err)
{
    char path[PATH_BYTES];
    json_t *done;
    if (strcmp(text_of(file, "change"), "removed") == 0 || !path_of(file, path))
        return 0;
    const struct target target = {dir, path};
    int r = fetch_into(wish, path, &target, &done, err);
    if (r == -ENODATA || r == -ENOTDIR) {
        outcome->files_skipped++;
        snprintf(outcome->files_note, sizeof(outcome->files_note), "%s", err->text);
        return 0;
    }
    if (r < 0)
        return r;
    r = keep(outcome, file, path);
    if (r == 0) /* what came, should it have changed since it was listed */
        snprintf(outcome->files[outcome->files_n - 1].sha256,
                 sizeof(outcome->files->sha256), "%s", text_of(done, "sha256"));
    if (r == 0)
        outcome->files[outcome->files_n - 1].bytes =
            (uint64_t)json_integer_value(json_object_get(done, "bytes"));
    json_decref(done);
    return r < 0 ? err_set(err, r, "no memory for the list of files") : 0;
}

int
session_files_collect(const struct session_files *wish, int dir, struct outcome *outcome,
                      struct err *err)
{
    json_t *answer, *file;
    size_t i;
    int r = call_list_session(wish->socket, wish->session, &answer, err);
    if (r < 0)
        return r;
    outcome->files_skipped =
        (uint64_t)json_integer_value(json_object_get(answer, "skipped"));
    snprintf(outcome->files_note, sizeof(outcome->files_note), "%s",
             text_of(answer, "note"));
    json_array_foreach(json_object_get(answer, "files"), i, file)
    {
        r = collect_one(wish, dir, file, outcome, err);
        if (r < 0)
            break;
    }
    json_decref(answer);
    return r;
}

/* --- */

static bool
is_archive(const char *out)
{
    size_t n = strlen(out);
    return strcmp(out, "-") == 0 || (n > 4 && strcmp(out + n - 4, ".tar") == 0);
}

int
session_files_get(const struct session_files *wish)
{
    if (wish->all && (wish->words_n > 0 || !wish->out))
        return complain(EXIT_WRONG_USE,
                        "get: --all takes --out DIR, FILE.tar or -, and no name");
    if (!wish->all && wish->words_n != 1)
        return complain(EXIT_WRONG_USE,
                        "get: takes the session's id and one NAME, or --all");
    if (!wish->all)
        return get_one(wish, wish->words[0]);
    return is_archive(wish->out) ? get_one(wish, NULL) : get_folder(wish);
}
