/* engine/interpreter: real interpreters, and what only looks like one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the headers above it. */
#include <cmocka.h>

#include "base/clock.h"
#include "engine/interpreter.h"
#include "engine/interpreter_parts.h"

static char folder[64];
static struct image image; /* static: too large for a stack frame that is checked */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int
make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/adyton-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    return 0;
}

static int
drop_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *
in_folder(const char *name)
{
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
    return path[turn];
}

static void
write_file(const char *name, const char *text, mode_t mode)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* Runs a program and waits; its exit status. */
static int
run(const char *const argv[])
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static bool
covers(const char *above, const char *path)
{
    size_t n = strlen(above);
    return strncmp(above, path, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool
shows(const struct image *it, const char *path)
{
    for (size_t i = 0; i < it->paths_n; i++)
        if (covers(it->paths[i], path))
            return true;
    return false;
}

static const char *
link_target(const struct image *it, const char *path)
{
    for (size_t i = 0; i < it->links_n; i++)
        if (strcmp(it->links[i].path, path) == 0)
            return it->links[i].target;
    return "";
}

/* What image.h promises of any image: real absolute paths, none beneath another, links
 * that are links on this host with that very target. */
static void
check_promises(const struct image *it)
{
    assert_true(it->paths_n > 3);
    for (size_t i = 0; i < it->paths_n; i++) {
        char *real = realpath(it->paths[i], NULL);
        assert_non_null(real);
        assert_string_equal(real, it->paths[i]);
        free(real);
        for (size_t j = 0; j < it->paths_n; j++)
            assert_false(i != j && covers(it->paths[i], it->paths[j]));
    }
    for (size_t i = 0; i < it->links_n; i++) {
        char target[IMAGE_PATH_BYTES] = "";
        assert_true(readlink(it->links[i].path, target, sizeof(target) - 1) > 0);
        assert_string_equal(target, it->links[i].target);
        assert_false(shows(it, it->links[i].path));
    }
    assert_true(it->hex_version >= 0x03090000);
    assert_int_equal(it->executable[0], '/');
}

/* Nothing that holds a host's secrets or its users' files. */
static void
check_hidden(const struct image *it)
{
    static const char *const hidden[] = {
        "/etc/passwd", "/etc/shadow",  "/etc/ssh", "/root/.ssh",       "/home/anybody",
        "/var/lib",    "/usr/bin/env", "/proc",    "/etc/ssl/private", "/usr/share/doc"};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        assert_false(shows(it, hidden[i]));
}

static void
find_or_fail(const char *python, bool programs)
{
    struct err err = {0};
    if (interpreter_find(python, programs, &image, &err) < 0)
        fail_msg("%s", err.text);
    check_promises(&image);
}

static void
test_system(void **state)
{
    (void)state;
    find_or_fail("/usr/bin/python3", false);
    check_hidden(&image);
    assert_string_equal(image.executable, "/usr/bin/python3");
    assert_string_equal(image.venv, "");
    assert_false(shows(&image, "/usr"));
    assert_false(shows(&image, "/usr/lib"));
    char *real = realpath("/usr/bin/python3", NULL);
    assert_non_null(real);
    assert_true(shows(&image, real));
    free(real);
    char stdlib[64];
    snprintf(stdlib, sizeof(stdlib), "/usr/lib/python3.%d/os.py",
             (image.hex_version >> 16) & 255);
    assert_true(shows(&image, stdlib));
    assert_true(shows(&image, "/etc/ld.so.cache"));
}

static void
test_usrmerge_links(void **state)
{
    (void)state;
    struct stat st;
    if (lstat("/lib64", &st) < 0 || !S_ISLNK(st.st_mode))
        skip();
    find_or_fail("/usr/bin/python3", false);
    assert_string_not_equal(link_target(&image, "/lib64"), "");
    assert_string_not_equal(link_target(&image, "/usr/bin/python3"), "");
}

static void
test_programs_widen(void **state)
{
    (void)state;
    find_or_fail("/usr/bin/python3", true);
    assert_true(shows(&image, "/usr/bin/env"));
    assert_false(shows(&image, "/usr/sbin"));
    assert_false(shows(&image, "/etc/passwd"));
    /* And the two answers are not mixed up in the cache. */
    find_or_fail("/usr/bin/python3", false);
    assert_false(shows(&image, "/usr/bin/env"));
}

static void
test_default_is_system(void **state)
{
    (void)state;
    find_or_fail(NULL, false);
    assert_string_equal(image.executable, "/usr/bin/python3");
}

/* A Python of its own prefix: pyenv's, found the way pyenv lays them out. */
static bool
find_own_prefix(char ret[IMAGE_PATH_BYTES])
{
    const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
    char versions[256];
    snprintf(versions, sizeof(versions), "%s%s/versions",
             root   ? root
             : home ? home
                    : "",
             root ? "" : "/.pyenv");
    DIR *dir = opendir(versions);
    bool found = false;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        if (strncmp(e->d_name, "3.1", 3) != 0)
            continue;
        int n = snprintf(ret, IMAGE_PATH_BYTES, "%s/%s/bin/python3", versions, e->d_name);
        found = n > 0 && n < IMAGE_PATH_BYTES && access(ret, X_OK) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

static void
test_own_prefix_is_whole(void **state)
{
    (void)state;
    char python[IMAGE_PATH_BYTES];
    if (!find_own_prefix(python))
        skip();
    find_or_fail(python, false);
    check_hidden(&image);
    assert_string_equal(image.executable, python);
    /* The prefix is shown, and nothing above it. */
    char *prefix = realpath(python, NULL);
    assert_non_null(prefix);
    for (int up = 0; up < 2; up++)
        *strrchr(prefix, '/') = '\0';
    assert_true(shows(&image, prefix));
    *strrchr(prefix, '/') = '\0';
    assert_false(shows(&image, prefix));
    free(prefix);
}

static void
make_venv(const char *name)
{
    const char *const argv[] = {"/usr/bin/python3", "-m", "venv", "--without-pip",
                                in_folder(name),    NULL};
    if (run(argv) != 0)
        skip(); /* Debian without python3-venv */
}

static void
test_venv_stays_one(void **state)
{
    (void)state;
    make_venv("venv");
    write_file("venv/secret.env", "TOKEN=1", 0600);
    find_or_fail(in_folder("venv/bin/python3"), false);
    assert_string_equal(image.executable, in_folder("venv/bin/python3"));
    assert_string_equal(image.venv, in_folder("venv"));
    assert_true(shows(&image, in_folder("venv/pyvenv.cfg")));
    assert_true(shows(&image, in_folder("venv/bin/python3")));
    assert_true(shows(&image, in_folder("venv/lib/python3")) ||
                shows(&image, in_folder("venv/lib")));
    /* The base it leads to is there, a project's other files are not. */
    char *real = realpath(in_folder("venv/bin/python3"), NULL);
    assert_true(real && shows(&image, real));
    free(real);
    assert_false(shows(&image, in_folder("venv/secret.env")));
    assert_false(shows(&image, folder));
}

static void
site_folder(const char *venv, char ret[512])
{
    snprintf(ret, 512, "%s/lib/python3.%d/site-packages", venv,
             (image.hex_version >> 16) & 255);
}

static void
test_pth_target_is_seen_at_once(void **state)
{
    (void)state;
    make_venv("venv");
    assert_int_equal(mkdir(in_folder("project"), 0755), 0);
    const char *python = in_folder("venv/bin/python3");
    find_or_fail(python, false);
    assert_false(shows(&image, in_folder("project")));
    char pth[600], line[300];
    site_folder(in_folder("venv"), pth);
    snprintf(line, sizeof(line), "%s\n", in_folder("project"));
    size_t skip_n = strlen(folder) + 1;
    snprintf(pth + strlen(pth), 32, "/project.pth");
    write_file(pth + skip_n, line, 0644);
    /* Although the answer before it was kept. */
    find_or_fail(in_folder("venv/bin/python3"), false);
    assert_true(shows(&image, in_folder("project")));
    /* A home, or the whole of /tmp, is no package. */
    write_file(pth + skip_n, "/tmp\n/root\n/home\n/\n", 0644);
    find_or_fail(in_folder("venv/bin/python3"), false);
    assert_false(shows(&image, "/tmp"));
    assert_false(shows(&image, "/root"));
}

static void
test_not_a_python(void **state)
{
    (void)state;
    write_file("noise", "#!/bin/sh\necho oops >&2\n", 0755);
    write_file("claims",
               "#!/bin/sh\necho '{\"implementation\": \"PyPy\", \"version\": \"7\"}'",
               0755);
    write_file("flood", "#!/bin/sh\nexec /bin/cat /dev/zero\n", 0755);
    write_file("plain", "no program", 0644);
    const struct {
        const char *python, *says;
    } rows[] = {
        {"/bin/true", "/bin/true did not say what it is (it wrote nothing)"},
        {in_folder("noise"), "did not say what it is (oops)"},
        {"/nonexistent/python", "no interpreter at /nonexistent/python"},
        {"no-such-python", "no interpreter named \"no-such-python\" in PATH"},
        {"/", "/ is not an executable file"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = {0};
        image.paths_n = 77; /* stays: *ret is written on success only */
        assert_true(interpreter_find(rows[i].python, false, &image, &err) < 0);
        if (!strstr(err.text, rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].says);
        assert_int_equal(image.paths_n, 77);
    }
    struct err err = {0};
    assert_int_equal(interpreter_find(in_folder("claims"), false, &image, &err), -EINVAL);
    assert_non_null(strstr(err.text, "it is PyPy 7; CPython 3.9 or newer is needed"));
    assert_true(interpreter_find(in_folder("flood"), false, &image, &err) < 0);
    assert_non_null(strstr(err.text, "is it a Python?"));
    assert_int_equal(interpreter_find(in_folder("plain"), false, &image, &err), -EACCES);
}

/* Hangs, ignores SIGTERM, and holds its output open in a grandchild. */
static void
test_hanging_one_ends(void **state)
{
    (void)state;
    write_file("hangs",
               "#!/bin/sh\ntrap '' TERM\nsleep 60 &\necho $! >\"$0.pid\"\nwait\n", 0755);
    struct err err = {0};
    json_t *answer = NULL;
    uint64_t began_us = clock_now_us();
    assert_int_equal(
        interpreter_ask(in_folder("hangs"), &interpreter_what_it_is, 300, &answer, &err),
        -ETIMEDOUT);
    assert_true(clock_now_us() - began_us < 5U * 1000 * 1000);
    assert_non_null(strstr(err.text, "gave no answer in 0.3 s"));
    FILE *file = fopen(in_folder("hangs.pid"), "re");
    long pid = 0;
    assert_true(file && fscanf(file, "%ld", &pid) == 1 && pid > 1);
    fclose(file);
    /* The orphan is dead, or about to be reaped by whoever inherited it. */
    for (int i = 0; i < 100 && kill((pid_t)pid, 0) == 0; i++)
        usleep(10 * 1000);
    char state_path[64], text[256] = "";
    snprintf(state_path, sizeof(state_path), "/proc/%ld/stat", pid);
    file = fopen(state_path, "re");
    if (file) {
        assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
        fclose(file);
        assert_non_null(strstr(text, ") Z "));
    }
}

/* The folder that is current, and the environment, have no say. */
static void
test_surroundings_have_no_say(void **state)
{
    (void)state;
    write_file("json.py", "raise SystemExit('taken over')", 0644);
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(folder), 0);
    setenv("PYTHONPATH", folder, 1);
    setenv("PYTHONHOME", "/nonexistent", 1);
    struct err err = {0};
    int r = interpreter_find("/usr/bin/python3", false, &image, &err);
    unsetenv("PYTHONPATH");
    unsetenv("PYTHONHOME");
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_int_equal(r, 0);
    assert_false(shows(&image, folder));
}

/* The one file of the cache folder, beside the folder of font lists. */
static const char *
cache_file(void)
{
    static char path[512];
    char dir_path[128];
    snprintf(dir_path, sizeof(dir_path), "%s/adyton", folder);
    path[0] = '\0';
    DIR *dir = opendir(dir_path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.' && e->d_type == DT_REG)
            snprintf(path, sizeof(path), "%s/%s", dir_path, e->d_name);
    if (dir)
        closedir(dir);
    return path;
}

static void
test_cache_is_used_and_private(void **state)
{
    (void)state;
    find_or_fail("/usr/bin/python3", false);
    struct stat st;
    assert_int_equal(stat(cache_file(), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(in_folder("adyton"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);

    static struct image kept;
    assert_true(interpreter_cache_load("/usr/bin/python3", false, &kept));
    check_promises(&kept);
    assert_string_equal(kept.executable, image.executable);
    assert_string_equal(kept.version, image.version);
    assert_int_equal(kept.paths_n, image.paths_n);
    for (size_t i = 0; i < kept.paths_n; i++)
        assert_string_equal(kept.paths[i], image.paths[i]);
    assert_int_equal(kept.links_n, image.links_n);
    for (size_t i = 0; i < kept.links_n; i++)
        assert_string_equal(kept.links[i].target,
                            link_target(&image, kept.links[i].path));
    assert_false(interpreter_cache_load("/usr/bin/python3", true, &kept));
    assert_false(interpreter_cache_load("/usr/bin/python3.11", false, &kept));
}

static void
test_cache_is_distrusted(void **state)
{
    (void)state;
    static struct image kept;
    find_or_fail("/usr/bin/python3", false);
    /* Each row is undone before the next, and the file is good in between. */
    assert_int_equal(chmod(in_folder("adyton"), 0720), 0);
    assert_false(interpreter_cache_load("/usr/bin/python3", false, &kept));
    assert_int_equal(chmod(in_folder("adyton"), 0700), 0);
    assert_true(interpreter_cache_load("/usr/bin/python3", false, &kept));

    assert_int_equal(chmod(cache_file(), 0602), 0);
    assert_false(interpreter_cache_load("/usr/bin/python3", false, &kept));
    assert_int_equal(chmod(cache_file(), 0600), 0);
    assert_true(interpreter_cache_load("/usr/bin/python3", false, &kept));

    if (geteuid() == 0) {
        assert_int_equal(chown(cache_file(), 12345, 0), 0);
        assert_false(interpreter_cache_load("/usr/bin/python3", false, &kept));
        assert_int_equal(chown(cache_file(), 0, 0), 0);
    }
    char link[512];
    snprintf(link, sizeof(link), "%s", cache_file());
    assert_int_equal(rename(link, in_folder("elsewhere")), 0);
    assert_int_equal(symlink(in_folder("elsewhere"), link), 0);
    assert_false(interpreter_cache_load("/usr/bin/python3", false, &kept));
    assert_int_equal(unlink(link), 0);

    write_file("elsewhere", "{\"schema\": \"adyton.interpreter/1\", \"asked\": 3}", 0600);
    assert_int_equal(rename(in_folder("elsewhere"), link), 0);
    assert_false(interpreter_cache_load("/usr/bin/python3", false, &kept));
    /* And what was odd is asked again and replaced. */
    find_or_fail("/usr/bin/python3", false);
    assert_true(interpreter_cache_load("/usr/bin/python3", false, &kept));
}

static void
test_cache_notices_change(void **state)
{
    (void)state;
    static struct image kept;
    make_venv("venv");
    char asked[256], site[512];
    snprintf(asked, sizeof(asked), "%s", in_folder("venv/bin/python3"));
    usleep(50 * 1000); /* only what is older than the clock's slack is kept */
    find_or_fail(asked, false);
    assert_true(interpreter_cache_load(asked, false, &kept));
    /* A package more. */
    site_folder(in_folder("venv"), site);
    snprintf(site + strlen(site), 32, "/more.py");
    write_file(site + strlen(folder) + 1, "", 0644);
    assert_false(interpreter_cache_load(asked, false, &kept));

    usleep(50 * 1000);
    find_or_fail(asked, false);
    assert_true(interpreter_cache_load(asked, false, &kept));
    /* A folder that is no longer there. */
    assert_int_equal(unlink(in_folder("venv/pyvenv.cfg")), 0);
    assert_false(interpreter_cache_load(asked, false, &kept));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_system),
        TEST(test_usrmerge_links),
        TEST(test_programs_widen),
        TEST(test_default_is_system),
        TEST(test_own_prefix_is_whole),
        TEST(test_venv_stays_one),
        TEST(test_pth_target_is_seen_at_once),
        TEST(test_not_a_python),
        TEST(test_hanging_one_ends),
        TEST(test_surroundings_have_no_say),
        TEST(test_cache_is_used_and_private),
        TEST(test_cache_is_distrusted),
        TEST(test_cache_notices_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
