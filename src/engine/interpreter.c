/*
 * interpreter_find: which executable is meant, what the cache knows of it, and otherwise
 * what it says of itself. See interpreter.h; the work is in
 * interpreter_{ask,image,cache}.c.
 */
#include "engine/interpreter.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/interpreter_parts.h"

static const char system_python[] = "/usr/bin/python3";

static bool
is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The first program of that name in PATH. Relative folders in PATH are skipped: what lies
 * in the working folder is not what its author meant by "python3". */
static bool
search_path(const char *name, char ret[IMAGE_PATH_BYTES])
{
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
        size_t n = strcspn(p, ":");
        int len = n > 0 && p[0] == '/'
                      ? snprintf(ret, IMAGE_PATH_BYTES, "%.*s/%s", (int)n, p, name)
                      : -1;
        if (len > 0 && len < IMAGE_PATH_BYTES && is_program(ret))
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* Made absolute by text alone: resolving a virtual environment's link would lose the
 * environment. */
static int
locate_path(const char *python, char ret[IMAGE_PATH_BYTES], struct err *err)
{
    char here[PATH_MAX] = "";
    if (python[0] != '/' && !getcwd(here, sizeof(here)))
        return err_sys(err, "cannot tell the current folder");
    int n = snprintf(ret, IMAGE_PATH_BYTES, "%s%s%s", here, here[0] ? "/" : "", python);
    if (n < 0 || n >= IMAGE_PATH_BYTES)
        return err_set(err, -ENAMETOOLONG, "path of the interpreter is too long: %.150s",
                       python);
    struct stat st;
    if (stat(ret, &st) < 0)
        return err_sys(err, "no interpreter at %s", ret);
    if (!is_program(ret))
        return err_set(err, -EACCES, "%s is not an executable file", ret);
    return 0;
}

int
interpreter_locate(const char *python, char ret[IMAGE_PATH_BYTES], struct err *err)
{
    if (!python && is_program(system_python)) {
        memcpy(ret, system_python, sizeof(system_python));
        return 0;
    }
    const char *name = python ? python : "python3";
    if (strchr(name, '/'))
        return locate_path(name, ret, err);
    if (name[0] && search_path(name, ret))
        return 0;
    return err_set(err, -ENOENT, "no interpreter named \"%.100s\" in PATH", name);
}

/* Whether the answer came from the very file that was named. A launcher (pyenv's shims)
 * chooses by settings that no stamp would notice, so its answer is not kept. */
static bool
is_itself(const char *asked, const char *executable)
{
    struct stat a, b;
    return stat(asked, &a) == 0 && stat(executable, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int
ask(const char *asked, bool programs, struct image *image, struct err *err)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t since_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;

    json_t *answer = NULL;
    int r = interpreter_ask(asked, &interpreter_what_it_is, INTERPRETER_LIMIT_MS, &answer,
                            err);
    if (r < 0)
        return r;
    AUTO_FREE struct stamps *stamps = calloc(1, sizeof(*stamps));
    if (!stamps) {
        json_decref(answer);
        return err_set(err, -ENOMEM, "out of memory");
    }
    stamps_add(stamps, STAMP_SAME, asked);
    r = interpreter_build(answer, programs, image, stamps, err);
    json_decref(answer);
    if (r < 0)
        return err_wrap(err, "%s", asked);
    if (!is_itself(asked, image->executable))
        return 0;
    interpreter_fonts(asked, image, stamps);
    interpreter_cache_save(asked, programs, image, stamps, since_ns);
    return 0;
}

int
interpreter_find(const char *python, bool programs, struct image *ret, struct err *err)
{
    char asked[IMAGE_PATH_BYTES];
    int r = interpreter_locate(python, asked, err);
    if (r < 0)
        return r;
    /* Too large for the stack, and *ret stays as it is when nothing is found. */
    AUTO_FREE struct image *image = calloc(1, sizeof(*image));
    if (!image)
        return err_set(err, -ENOMEM, "out of memory");
    if (!interpreter_cache_load(asked, programs, image)) {
        memset(image, 0, sizeof(*image));
        r = ask(asked, programs, image, err);
        if (r < 0)
            return r;
    }
    memcpy(ret, image, sizeof(*ret));
    return 0;
}
