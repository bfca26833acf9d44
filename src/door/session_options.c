/* See session_options.h. */
#include "door/session_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

const char *
session_option_value(const char *name, int argc, char **argv, int *at)
{
    size_t n = strlen(name);
    if (strncmp(argv[*at], name, n) == 0 && argv[*at][n] == '=')
        return argv[*at] + n + 1;
    return strcmp(argv[*at], name) == 0 && *at + 1 < argc ? argv[++*at] : NULL;
}

bool
session_option_limit(json_t *limits, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return false;
    AUTO_FREE char *name = strndup(text, (size_t)(equals - text));
    return name && json_object_set_new(limits, name, json_string(equals + 1)) == 0;
}

int
session_option_policy(const char **name, const char *socket, bool *alone,
                      struct serve_options *serve, struct policy *policy, struct err *err)
{
    const char *asked = *name ? *name : policy_default;
    bool is_file = strchr(asked, '/') != NULL || strchr(asked, '.') != NULL;
    int r = policy_load(asked, policy, err);
    if (!is_file)
        return r < 0 && !*alone ? 0 : r;
    if (r < 0)
        return r;
    if (socket)
        return err_set(err, -EINVAL,
                       "--policy with a file needs a supervisor of its own: leave "
                       "--socket out");
    serve->policies[serve->policies_n++] = asked;
    *name = policy->name;
    *alone = true;
    return 0;
}
