/*
 * From an interpreter's answer to the list of what a cell sees. As little as makes the
 * real libraries work: an installation of its own (pyenv, uv, conda, /usr/local) is shown
 * whole, of a prefix that it shares with the system only its own folders; then the
 * loader, the folders of shared libraries, and a table of data files that libraries look
 * for. Never a home folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/interpreter_ask.py.h"
#include "engine/interpreter_parts.h"

enum { CHASE_LINKS_MAX = 40, OLDEST_HEX_VERSION = 0x03090000 };

enum need { NEEDED, IF_THERE };

struct builder {
    struct image *image;
    struct stamps *stamps;
    struct err *err;
};

struct place {
    const char *path;
    const char *why;
};

/* clang-format off */
static const struct place data_places[] = {
    {"/etc/ld.so.cache",            "the loader finds libraries by it"},
    {"/etc/alternatives",           "Debian's libblas.so.3 and liblapack.so.3 lead through it"},
    {"/etc/localtime",              "local time"},
    {"/etc/mime.types",             "mimetypes"},
    {"/etc/matplotlibrc",           "Debian's matplotlib reads its defaults there"},
    {"/etc/python3",                "Debian's interpreter settings"},
    {"/etc/fonts",                  "fontconfig's settings"},
    {"/usr/lib/locale",             "setlocale"},
    {"/usr/lib/ssl/openssl.cnf",    "the host's TLS settings; Debian's place of it"},
    {"/usr/share/zoneinfo",         "zoneinfo, pytz"},
    {"/usr/share/matplotlib",       "fonts and styles of Debian's matplotlib"},
    {"/usr/share/fonts",            "text in plots"},
    {"/usr/local/share/fonts",      "text in plots"},
    {"/usr/share/fontconfig",       "what /etc/fonts leads to"},
    {"/usr/share/mime",             "what kind of data a file holds"},
    {"/usr/share/python3",          "Debian's interpreter support"},
};

static const struct place program_places[] = {
    {"/bin",             "/bin/sh"},
    {"/usr/bin",         "programs"},
    {"/usr/lib",         "what programs load and start, gcc's passes among it"},
    {"/usr/lib64",       "the same where the system is laid out so"},
    {"/usr/libexec",     "the same"},
    {"/usr/share/perl",  "perl's own modules"},
    {"/usr/share/perl5", "perl's packaged modules"},
};

/* Prefixes that are shared with others: never shown whole. */
static const char *const shared_places[] = {
    "/",    "/usr", "/usr/lib", "/usr/lib64", "/usr/bin", "/usr/share", "/usr/local/lib",
    "/bin", "/lib", "/etc",     "/var",       "/opt",     "/srv",       "/tmp",
    "/run", "/mnt", "/media",   "/home",      "/root",    "/proc",      "/sys",
    "/dev", "/var/lib", "/var/tmp",
};

static const char *const venv_parts[] = {"pyvenv.cfg", "bin", "lib", "lib64", "share"};
/* clang-format on */

static const char *
get(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));
    return text ? text : "";
}

/* path is `above` or lies beneath it. */
static bool
covers(const char *above, const char *path)
{
    size_t n = strlen(above);
    return strncmp(above, path, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool
is_home(const char *path)
{
    if (strncmp(path, "/home/", 6) == 0 && !strchr(path + 6, '/'))
        return true;
    /* The caller's own home, and that of whoever owns the folder: homes are not all in
     * /home. */
    struct stat st;
    uid_t owners[2] = {getuid(), stat(path, &st) == 0 ? st.st_uid : getuid()};
    for (size_t i = 0; i < 2; i++) {
        const struct passwd *entry = getpwuid(owners[i]);
        if (entry && entry->pw_dir && strcmp(entry->pw_dir, path) == 0)
            return true;
    }
    return false;
}

static bool
is_shared(const char *path)
{
    for (size_t i = 0; i < sizeof(shared_places) / sizeof(shared_places[0]); i++)
        if (strcmp(path, shared_places[i]) == 0)
            return true;
    /* ~/.local holds a user's programs, and their keyrings. */
    size_t n = strlen(path);
    static const char local[] = "/.local";
    char home[IMAGE_PATH_BYTES];
    snprintf(home, sizeof(home), "%s", path);
    if (n > sizeof(local) && strcmp(path + n - (sizeof(local) - 1), local) == 0)
        home[n - (sizeof(local) - 1)] = '\0';
    return is_home(home);
}

static bool
in_a_home(const char *path)
{
    return covers("/home", path) || covers("/root", path);
}

static int
add_link(struct builder *b, const char *path, const char *target)
{
    struct image *image = b->image;
    for (size_t i = 0; i < image->links_n; i++)
        if (strcmp(image->links[i].path, path) == 0)
            return 0;
    if (image->links_n == IMAGE_PATHS_MAX)
        return err_set(b->err, -E2BIG, "more than %d symbolic links lead to this Python",
                       IMAGE_PATHS_MAX);
    struct image_link *link = &image->links[image->links_n++];
    snprintf(link->path, sizeof(link->path), "%s", path);
    snprintf(link->target, sizeof(link->target), "%s", target);
    return 0;
}

static int
too_long(struct builder *b, const char *path)
{
    return err_set(b->err, -ENAMETOOLONG, "path of this Python is too long: %.160s",
                   path);
}

/* Appends the next component of *rest to done: 1 when there was one, 0 at the end. */
static int
chase_step(struct builder *b, char done[IMAGE_PATH_BYTES], const char **rest)
{
    *rest += strspn(*rest, "/");
    size_t n = strcspn(*rest, "/"), at = strlen(done);
    if (n == 0)
        return 0;
    if (at + n + 2 > IMAGE_PATH_BYTES)
        return too_long(b, *rest);
    const char *name = *rest;
    *rest += n;
    if (n == 1 && name[0] == '.')
        return 1;
    if (n == 2 && name[0] == '.' && name[1] == '.') {
        char *slash = strrchr(done, '/');
        if (slash)
            *slash = '\0';
        return 1;
    }
    done[at] = '/';
    memcpy(done + at + 1, name, n);
    done[at + 1 + n] = '\0';
    return 1;
}

/* Walks to what path leads to, and notes each symbolic link on the way under its own real
 * name, so that the same walk succeeds inside. -ENOENT, without a sentence, when nothing
 * is there. */
static int
chase(struct builder *b, const char *path, char done[IMAGE_PATH_BYTES])
{
    char left[2][PATH_MAX];
    int use = 0, links = 0;
    if (snprintf(left[use], PATH_MAX, "%s", path) >= PATH_MAX)
        return too_long(b, path);
    const char *rest = left[use];
    done[0] = '\0';
    for (;;) {
        int r = chase_step(b, done, &rest);
        if (r <= 0)
            return r;
        char target[IMAGE_PATH_BYTES];
        ssize_t n = done[0] ? readlink(done, target, sizeof(target)) : -1;
        if (n < 0 && done[0] && errno != EINVAL)
            return -ENOENT;
        if (n < 0)
            continue;
        if (n == (ssize_t)sizeof(target) || ++links > CHASE_LINKS_MAX)
            return too_long(b, done);
        target[n] = '\0';
        r = add_link(b, done, target);
        if (r < 0)
            return r;
        if (snprintf(left[!use], PATH_MAX, "%s/%s", target, rest) >= PATH_MAX)
            return too_long(b, done);
        use = !use;
        rest = left[use];
        char *slash = strrchr(done, '/');
        if (target[0] == '/')
            done[0] = '\0';
        else if (slash)
            *slash = '\0';
    }
}

/* Keeps the list such that no path lies beneath another. */
static int
add_real(struct builder *b, const char *real)
{
    struct image *image = b->image;
    size_t kept = 0;
    for (size_t i = 0; i < image->paths_n; i++)
        if (covers(image->paths[i], real))
            return 0;
    for (size_t i = 0; i < image->paths_n; i++) {
        if (covers(real, image->paths[i]))
            continue;
        if (kept != i)
            memcpy(image->paths[kept], image->paths[i], IMAGE_PATH_BYTES);
        kept++;
    }
    image->paths_n = kept;
    if (kept == IMAGE_PATHS_MAX)
        return err_set(b->err, -E2BIG, "this Python needs more than %d paths of the host",
                       IMAGE_PATHS_MAX);
    snprintf(image->paths[kept], IMAGE_PATH_BYTES, "%s", real);
    image->paths_n++;
    return 0;
}

static int
add(struct builder *b, const char *path, enum need need)
{
    char real[IMAGE_PATH_BYTES];
    size_t links_n = b->image->links_n;
    int r = chase(b, path, real);
    if (r == 0 && !real[0])
        r = -ENOENT; /* the root itself is never meant */
    if (r == -ENOENT && need == IF_THERE) {
        /* Links that lead nowhere are of no use inside. */
        b->image->links_n = links_n;
        stamps_add(b->stamps, STAMP_ABSENT, path);
        return 0;
    }
    if (r == -ENOENT)
        return err_set(b->err, r, "this Python names %s, which is not there", path);
    return r < 0 ? r : add_real(b, real);
}

static int
add_places(struct builder *b, const struct place *places, size_t n)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add(b, places[i].path, IF_THERE);
    return r;
}

/* Where packages are: site-packages, what .pth files and editable installs point to. */
static int
add_search(struct builder *b, const json_t *answer)
{
    const json_t *search = json_object_get(answer, "search");
    for (size_t i = 0; i < json_array_size(search); i++) {
        const char *path = json_string_value(json_array_get(search, i));
        char real[PATH_MAX];
        if (!path || path[0] != '/' || (realpath(path, real) && is_shared(real)))
            continue;
        stamps_add(b->stamps, STAMP_SAME, path);
        int r = add(b, path, IF_THERE);
        if (r < 0)
            return r;
    }
    const json_t *markers = json_object_get(answer, "markers");
    for (size_t i = 0; i < json_array_size(markers); i++) {
        const char *path = json_string_value(json_array_get(markers, i));
        stamps_add(b->stamps, STAMP_SAME, path ? path : "");
    }
    interpreter_take_files(json_object_get(answer, "files"), b->image);
    return 0;
}

static int
add_prefix(struct builder *b, const char *prefix)
{
    char real[PATH_MAX];
    if (prefix[0] != '/' || !realpath(prefix, real) || is_shared(real))
        return 0;
    return add(b, prefix, NEEDED);
}

/* The folder of a library where that is a folder of libraries; else, in /usr/lib and the
 * like, nothing: on a Debian host those hold everything else too. */
static int
add_library_folder(struct builder *b, const char *folder, const char *const *mapped_in)
{
    const char *last = strrchr(folder, '/');
    /* Second architectures are closed to the cell. */
    if (!last || strcmp(last, "/lib32") == 0 || strcmp(last, "/libx32") == 0)
        return 0;
    char real[PATH_MAX];
    if (!realpath(folder, real) || in_a_home(real))
        return 0;
    for (; *mapped_in; mapped_in++)
        if (strcmp(real, *mapped_in) == 0)
            return add(b, folder, IF_THERE);
    return is_shared(real) ? 0 : add(b, folder, IF_THERE);
}

static int
add_libraries(struct builder *b, const json_t *answer)
{
    const json_t *mapped = json_object_get(answer, "mapped");
    const json_t *folders = json_object_get(answer, "library_folders");
    char libc_folder[IMAGE_PATH_BYTES] = "";
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(mapped); i++) {
        const char *path = json_string_value(json_array_get(mapped, i));
        if (!path || path[0] != '/')
            continue;
        r = add(b, path, NEEDED);
        const char *name = strrchr(path, '/');
        bool libc = strncmp(name, "/libc.", 6) == 0 || strncmp(name, "/ld-musl", 8) == 0;
        if (libc && (size_t)(name - path) < sizeof(libc_folder))
            snprintf(libc_folder, sizeof(libc_folder), "%.*s", (int)(name - path), path);
    }
    /* Where libc is, the libraries are, even when that is /usr/lib itself (Arch, Alpine).
     */
    const char *mapped_in[] = {libc_folder[0] ? libc_folder : NULL, NULL};
    if (r == 0 && libc_folder[0])
        r = add_library_folder(b, libc_folder, mapped_in);
    for (size_t i = 0; r == 0 && i < json_array_size(folders); i++) {
        const char *folder = json_string_value(json_array_get(folders, i));
        if (folder && folder[0] == '/')
            r = add_library_folder(b, folder, mapped_in);
    }
    const char *loader = get(answer, "loader");
    if (r == 0 && loader[0] == '/')
        r = add(b, loader, NEEDED);
    return r;
}

static int
add_interpreter(struct builder *b, const json_t *answer)
{
    int r = add_prefix(b, get(answer, "base_prefix"));
    if (r == 0)
        r = add_prefix(b, get(answer, "exec_prefix"));
    if (r == 0)
        r = add(b, get(answer, "stdlib"), NEEDED);
    if (r == 0)
        r = add(b, get(answer, "platstdlib"), NEEDED);
    for (size_t i = 0;
         b->image->venv[0] && i < sizeof(venv_parts) / sizeof(venv_parts[0]); i++) {
        char path[IMAGE_PATH_BYTES + 16];
        snprintf(path, sizeof(path), "%s/%s", b->image->venv, venv_parts[i]);
        if (r == 0)
            r = add(b, path, IF_THERE);
    }
    const char *base = get(answer, "base_executable");
    if (r == 0 && base[0] == '/')
        r = add(b, base, IF_THERE);
    return r == 0 ? add(b, b->image->executable, NEEDED) : r;
}

/* Links inside of what is shown anyway need not be made. */
static void
drop_inner_links(struct image *image)
{
    size_t kept = 0;
    for (size_t i = 0; i < image->links_n; i++) {
        bool inner = false;
        for (size_t j = 0; j < image->paths_n && !inner; j++)
            inner = covers(image->paths[j], image->links[i].path);
        if (!inner)
            image->links[kept++] = image->links[i];
    }
    image->links_n = kept;
}

static int
take_version(const json_t *answer, struct image *image, struct err *err)
{
    const char *what = get(answer, "implementation"), *version = get(answer, "version");
    json_int_t hex = json_integer_value(json_object_get(answer, "hexversion"));
    if (strcmp(what, "CPython") != 0)
        return err_set(err, -EINVAL, "it is %.40s %.31s; CPython 3.9 or newer is needed",
                       what[0] ? what : "an unknown implementation,", version);
    if (hex < OLDEST_HEX_VERSION || hex > INT_MAX)
        return err_set(err, -EINVAL, "it is CPython %.31s; 3.9 or newer is needed",
                       version);
    image->hex_version = (int)hex;
    snprintf(image->version, sizeof(image->version), "%s", version);
    const char *executable = get(answer, "executable"), *prefix = get(answer, "prefix");
    if (executable[0] != '/')
        return err_set(err, -EINVAL, "it does not know its own path (sys.executable)");
    if (strlen(executable) >= IMAGE_PATH_BYTES || strlen(prefix) >= IMAGE_PATH_BYTES)
        return err_set(err, -ENAMETOOLONG, "its path is too long");
    snprintf(image->executable, sizeof(image->executable), "%s", executable);
    if (strcmp(prefix, get(answer, "base_prefix")) != 0)
        snprintf(image->venv, sizeof(image->venv), "%s", prefix);
    return 0;
}

const struct question interpreter_what_it_is = {interpreter_program, interpreter_nspkg};

int
interpreter_build(const json_t *answer, bool programs, struct image *ret,
                  struct stamps *stamps, struct err *err)
{
    struct builder b = {ret, stamps, err};
    *ret = (struct image){0};
    int r = take_version(answer, ret, err);
    if (r == 0)
        r = add_interpreter(&b, answer);
    if (r == 0)
        r = add_search(&b, answer);
    if (r == 0)
        r = add_libraries(&b, answer);
    if (r == 0)
        r = add_places(&b, data_places, sizeof(data_places) / sizeof(data_places[0]));
    if (r == 0) {
        /* Debian keeps sitecustomize.py in /etc/python3.X. */
        char settings[64];
        snprintf(settings, sizeof(settings), "/etc/python3.%d",
                 (ret->hex_version >> 16) & 255);
        r = add(&b, settings, IF_THERE);
    }
    if (r == 0 && programs)
        r = add_places(&b, program_places,
                       sizeof(program_places) / sizeof(program_places[0]));
    if (r < 0)
        return r;
    drop_inner_links(ret);
    stamps_add(stamps, STAMP_SAME, "/etc/ld.so.cache");
    for (size_t i = 0; i < ret->paths_n; i++)
        stamps_add(stamps, STAMP_THERE, ret->paths[i]);
    for (size_t i = 0; i < ret->links_n; i++)
        stamps_add(stamps, STAMP_THERE, ret->links[i].path);
    return 0;
}
