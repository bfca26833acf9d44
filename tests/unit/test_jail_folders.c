/* jail: folders of the host in a plan, and what they may not hide. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "jail/jail.h"

static struct image image; /* static: large */
static struct jail_plan plan;
static struct job_folders folders;

static int
place(const char *target)
{
    struct err err = {0};
    folders.n = 1;
    snprintf(folders.list[0].target, sizeof(folders.list[0].target), "%s", target);
    plan.folders = NULL;
    int r = jail_plan_folders(&plan, &folders, &err);
    assert_true(r == 0 ? plan.folders == &folders : !plan.folders);
    assert_true(r == 0 || strstr(err.text, "in the way"));
    return r;
}

static void
test_what_is_needed_is_not_hidden(void **state)
{
    (void)state;
    struct policy policy = {0};
    struct err err = {0};
    assert_int_equal(policy_load("standard", &policy, &err), 0);
    plan = (struct jail_plan){.policy = &policy, .image = &image};
    image.paths_n = 2;
    snprintf(image.paths[0], sizeof(image.paths[0]), "/usr/lib/python3");
    snprintf(image.paths[1], sizeof(image.paths[1]), "/data/venv");
    assert_int_equal(place("/data"), -EINVAL);
    assert_int_equal(place("/data/venv"), -EINVAL);
    assert_int_equal(place("/data/venv2"), 0);
    assert_int_equal(place("/workspace"), 0);
    const struct policy_field *reads = policy_field_by_name(span_of("read_paths"));
    assert_int_equal(policy_narrow(&policy, reads, "read_paths",
                                   span_of("/workspace/lib, /data"), &err),
                     0);
    assert_int_equal(place("/workspace"), -EINVAL);
    assert_int_equal(place("/data/venv2"), -EINVAL); /* no folder can be made there */
    policy_done(&policy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_needed_is_not_hidden),
    };
    return cmocka_run_group_tests_name("jail_folders", tests, NULL, NULL);
}
