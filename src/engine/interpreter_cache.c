/*
 * Keeps an interpreter's image between runs: asking takes longer than the whole rest of a
 * cold run. What is read back decides what a cell sees of the host, so it is trusted only
 * from a folder and a file that nobody but this user can write; anything odd means asking
 * again.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "engine/cache.h"
#include "engine/interpreter_parts.h"

enum { CACHE_BYTES_MAX = 512 * 1024, CACHE_STAMP_FIELDS = 6 };

/* Raised whenever the answer, the image or what is looked for changes. */
static const char schema[] = "adyton.interpreter/3";
/* Clocks of file systems tick slower than the wall clock. */
static const int64_t clock_slack_ns = 20 * 1000 * 1000;

void
stamps_add(struct stamps *stamps, enum stamp_kind kind, const char *path)
{
    if (stamps->n == STAMPS_MAX || strlen(path) >= IMAGE_PATH_BYTES) {
        stamps->overflowed = true;
        return;
    }
    struct stamp *stamp = &stamps->rows[stamps->n++];
    stamp->kind = kind;
    snprintf(stamp->path, sizeof(stamp->path), "%s", path);
}

/* A short name for a path (FNV-1a). Two paths may share one: the path stands in the file
 * too. */
static void
file_name(const char *asked, bool programs, char name[CACHE_NAME_BYTES])
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (const char *p = asked; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3U;
    snprintf(name, CACHE_NAME_BYTES, "python-%016" PRIx64 "%s.json", hash,
             programs ? "-programs" : "");
}

static int64_t
time_ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The four numbers that a stamp of this kind compares; false when there is nothing to
 * stamp. */
static bool
measure(enum stamp_kind kind, const char *path, int64_t ret[4])
{
    struct stat st;
    int r = kind == STAMP_SAME ? stat(path, &st) : lstat(path, &st);
    memset(ret, 0, 4 * sizeof(ret[0]));
    if (kind == STAMP_ABSENT) /* a link that leads nowhere is as good as nothing */
        return r < 0 || (S_ISLNK(st.st_mode) && stat(path, &st) < 0);
    if (r < 0)
        return kind == STAMP_SAME; /* all zero: not there, and that must stay so */
    ret[0] = (int64_t)st.st_dev;
    ret[1] = (int64_t)st.st_ino;
    if (kind == STAMP_SAME) {
        ret[2] = st.st_size;
        ret[3] = time_ns(st.st_mtim);
    }
    return true;
}

static bool
stamp_holds(const json_t *row)
{
    const char *path = json_string_value(json_array_get(row, 1));
    json_int_t kind = json_integer_value(json_array_get(row, 0));
    int64_t now[4];
    if (json_array_size(row) != CACHE_STAMP_FIELDS || !path || kind < STAMP_SAME ||
        kind > STAMP_ABSENT || !measure((enum stamp_kind)kind, path, now))
        return false;
    for (size_t i = 0; i < 4; i++)
        if (json_integer_value(json_array_get(row, i + 2)) != now[i])
            return false;
    return true;
}

static bool
take_text(const json_t *value, char *ret, size_t n)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= n)
        return false;
    memcpy(ret, text, strlen(text) + 1);
    return true;
}

static bool
take_image(const json_t *kept, struct image *image)
{
    const json_t *paths = json_object_get(kept, "paths");
    const json_t *links = json_object_get(kept, "links");
    json_int_t hex = json_integer_value(json_object_get(kept, "hex_version"));
    if (json_array_size(paths) > IMAGE_PATHS_MAX ||
        json_array_size(links) > IMAGE_PATHS_MAX || json_array_size(paths) == 0 ||
        hex <= 0 || hex > INT32_MAX)
        return false;
    image->hex_version = (int)hex;
    bool whole =
        take_text(json_object_get(kept, "executable"), image->executable,
                  sizeof(image->executable)) &&
        take_text(json_object_get(kept, "version"), image->version,
                  sizeof(image->version)) &&
        take_text(json_object_get(kept, "venv"), image->venv, sizeof(image->venv)) &&
        take_text(json_object_get(kept, "font_list"), image->font_list,
                  sizeof(image->font_list));
    image->paths_n = json_array_size(paths);
    for (size_t i = 0; whole && i < image->paths_n; i++)
        whole = take_text(json_array_get(paths, i), image->paths[i], IMAGE_PATH_BYTES) &&
                image->paths[i][0] == '/';
    interpreter_take_files(json_object_get(kept, "files"), image);
    image->links_n = json_array_size(links);
    for (size_t i = 0; whole && i < image->links_n; i++) {
        const json_t *pair = json_array_get(links, i);
        whole =
            take_text(json_array_get(pair, 0), image->links[i].path, IMAGE_PATH_BYTES) &&
            take_text(json_array_get(pair, 1), image->links[i].target,
                      IMAGE_PATH_BYTES) &&
            image->links[i].path[0] == '/';
    }
    return whole;
}

static json_t *
read_kept(const char *asked, bool programs)
{
    char name[CACHE_NAME_BYTES];
    AUTO_BUF struct buf text = {0};
    buf_init(&text, CACHE_BYTES_MAX);
    file_name(asked, programs, name);
    return cache_read(name, &text) ? json_loadb(text.p, text.n, 0, NULL) : NULL;
}

bool
interpreter_cache_fonts(const char *asked, char ret[IMAGE_PATH_BYTES])
{
    char folder[IMAGE_PATH_BYTES], name[CACHE_NAME_BYTES];
    AUTO_CLOSE int dir = cache_make();
    cache_path(folder);
    file_name(asked, false, name);
    int n = snprintf(ret, IMAGE_PATH_BYTES, "%s/%s.fonts", folder, name);
    return dir >= 0 && n > 0 && n < IMAGE_PATH_BYTES &&
           (mkdir(ret, 0700) == 0 || errno == EEXIST);
}

bool
interpreter_cache_load(const char *asked, bool programs, struct image *ret)
{
    json_t *kept = read_kept(asked, programs);
    const char *form = json_string_value(json_object_get(kept, "schema"));
    const char *whose = json_string_value(json_object_get(kept, "asked"));
    const json_t *stamps = json_object_get(kept, "stamps");
    bool holds = form && strcmp(form, schema) == 0 && whose &&
                 strcmp(whose, asked) == 0 && json_is_array(stamps) &&
                 json_array_size(stamps) > 0 &&
                 json_is_true(json_object_get(kept, "programs")) == programs;
    for (size_t i = 0; holds && i < json_array_size(stamps); i++)
        holds = stamp_holds(json_array_get(stamps, i));
    holds = holds && take_image(kept, ret);
    json_decref(kept);
    return holds;
}

static json_t *
stamps_json(const struct stamps *stamps, int64_t since_ns)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < stamps->n; i++) {
        int64_t now[4];
        const struct stamp *stamp = &stamps->rows[i];
        if (!measure(stamp->kind, stamp->path, now) ||
            now[3] >= since_ns - clock_slack_ns) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list,
                              json_pack("[i,s,I,I,I,I]", (int)stamp->kind, stamp->path,
                                        (json_int_t)now[0], (json_int_t)now[1],
                                        (json_int_t)now[2], (json_int_t)now[3]));
    }
    return list;
}

static json_t *
image_json(const char *asked, bool programs, const struct image *image)
{
    json_t *paths = json_array(), *links = json_array();
    for (size_t i = 0; i < image->paths_n; i++)
        json_array_append_new(paths, json_string(image->paths[i]));
    for (size_t i = 0; i < image->links_n; i++)
        json_array_append_new(
            links, json_pack("[s,s]", image->links[i].path, image->links[i].target));
    return json_pack("{s:s,s:s,s:b,s:s,s:s,s:i,s:s,s:s,s:o,s:o,s:o}", "schema", schema,
                     "asked", asked, "programs", (int)programs, "executable",
                     image->executable, "version", image->version, "hex_version",
                     image->hex_version, "venv", image->venv, "font_list",
                     image->font_list, "paths", paths, "links", links, "files",
                     interpreter_files_json(image));
}

void
interpreter_cache_save(const char *asked, bool programs, const struct image *image,
                       const struct stamps *stamps, int64_t since_ns)
{
    if (stamps->overflowed)
        return;
    json_t *list = stamps_json(stamps, since_ns);
    if (!list)
        return;
    json_t *json = image_json(asked, programs, image);
    int r = json_object_set_new(json, "stamps", list);
    AUTO_FREE char *text = r == 0 ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    char name[CACHE_NAME_BYTES];
    file_name(asked, programs, name);
    if (text)
        cache_write(name, span_of(text));
}
