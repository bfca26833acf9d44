/* door/doctor_command: what it prints, for people and for programs, and its exit status.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the headers above it. */
#include <cmocka.h>

#include "base/fd.h"
#include "door/doctor_command.h"

enum { PAGE_BYTES = 64 * 1024 };

/* Runs the command in a child with its output in a pipe; returns its exit status. */
static int
run(const char *argument, struct buf *out)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char name[] = "doctor", copy[32];
        snprintf(copy, sizeof(copy), "%s", argument ? argument : "");
        char *argv[] = {name, argument ? copy : NULL, NULL};
        dup2(ends[1], STDOUT_FILENO);
        close(STDERR_FILENO);
        int status = doctor_command(argument ? 2 : 1, argv);
        fflush(stdout);
        _exit(status);
    }
    close(ends[1]);
    buf_init(out, PAGE_BYTES);
    assert_int_equal(fd_read_all(ends[0], out), 0);
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
test_json(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {0};
    int status = run("--json", &out);
    json_t *json = json_loadb(out.p, out.n, 0, NULL);
    assert_true(json_is_object(json));
    assert_string_equal(json_string_value(json_object_get(json, "schema")),
                        "adyton.doctor/1");
    assert_int_equal(status,
                     json_is_true(json_object_get(json, "default_policy_runs")) ? 0 : 1);
    const json_t *rows = json_object_get(json, "rows");
    assert_true(json_array_size(rows) > 15);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        assert_true(json_is_string(json_object_get(row, "name")));
        assert_true(json_is_string(json_object_get(row, "state")));
        assert_true(json_is_array(json_object_get(row, "needed_for")));
    }
    json_decref(json);
}

static void
test_text(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {0};
    int status = run(NULL, &out);
    static const char *const said[] = {"user namespace", "landlock ",
                                       "seccomp ",       "cgroup memory",
                                       "core dumps",     "the default policy"};
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        assert_non_null(strstr(out.p, said[i]));
    assert_true((strstr(out.p, "does not run") != NULL) == (status == 1));
    /* A pipe is no terminal: no colours. */
    assert_null(memchr(out.p, '\x1b', out.n));
}

static void
test_use(void **state)
{
    (void)state;
    AUTO_BUF struct buf help = {0};
    AUTO_BUF struct buf wrong = {0};
    assert_int_equal(run("--help", &help), 0);
    assert_non_null(strstr(help.p, "--json"));
    assert_int_equal(run("--jsn", &wrong), 2);
    assert_int_equal(wrong.n, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
