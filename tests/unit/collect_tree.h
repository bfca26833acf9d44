/*
 * For the tests of cell/collect: three folders made anew for each test (what the cell
 * left, where it goes, and what is neither), and ways to fill them.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the headers above it. */
#include <cmocka.h>

#include "base/fd.h"
#include "cell/collect.h"

static const uint64_t mib = 1024 * 1024;

/* One test's folders, made anew for each: what the cell left, where it goes, and what is
 * neither. */
static struct {
    char path[64];
    int top, tree, out;
} at;
static struct outcome outcome;

static inline int
make(void **state)
{
    (void)state;
    snprintf(at.path, sizeof(at.path), "/tmp/adyton-test-XXXXXX");
    assert_non_null(mkdtemp(at.path));
    at.top = open(at.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(at.top, "tree", 0755), 0);
    assert_int_equal(mkdirat(at.top, "out", 0755), 0);
    at.tree = openat(at.top, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    at.out = openat(at.top, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(at.top >= 0 && at.tree >= 0 && at.out >= 0);
    outcome_init(&outcome);
    return 0;
}

/* rm, because nothing here goes deep enough for some of these trees. */
static inline int
drop(void **state)
{
    (void)state;
    close(at.top);
    close(at.tree);
    close(at.out);
    outcome_done(&outcome);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", at.path, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static inline void
put_bytes(int dir, const char *name, const void *bytes, size_t n, mode_t mode)
{
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, n), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static inline void
put(int dir, const char *name, const char *text)
{
    put_bytes(dir, name, text, strlen(text), 0644);
}

static inline const char *
text_of(int dir, const char *name)
{
    static char text[4096];
    ssize_t n = file_read(dir, name, text, sizeof(text));
    return n < 0 ? "(no such file)" : text;
}

static inline void
collect(const struct collect_limits *limits)
{
    struct err err = {0};
    if (collect_files(at.tree, limits, at.out, &outcome, &err) < 0)
        fail_msg("%s", err.text);
}

static const struct collect_limits wide = {.files = 1000, .bytes = 64 * 1024 * 1024};

static inline const struct collected_file *
file_named(const char *path)
{
    for (size_t i = 0; i < outcome.files_n; i++)
        if (strcmp(outcome.files[i].path, path) == 0)
            return &outcome.files[i];
    fail_msg("%s was not collected", path);
    return NULL;
}

/* Runs the body in a child, so that it may give up rights; cmocka's asserts do not work
 * there: the child says what it saw with its exit status. */
static inline int
in_child(int (*body)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

enum { CHILD_GOOD = 0, CHILD_BAD = 1, CHILD_SKIP = 77 };

static inline size_t
count_names(int dir)
{
    size_t n = 0;
    char command[128], text[32] = "";
    snprintf(command, sizeof(command), "ls -A /proc/%ld/fd/%d/ | wc -l", (long)getpid(),
             dir);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    assert_non_null(fgets(text, sizeof(text), pipe));
    pclose(pipe);
    n = (size_t)strtoul(text, NULL, 10);
    return n;
}
