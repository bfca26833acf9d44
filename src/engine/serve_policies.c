/*
 * The policies that clients may name: the built-in ones and the files of the command
 * line. A client never names a path. A file that is broken when it is read again leaves
 * what it was before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/serve_parts.h"

void
serve_policy_release(struct serve_policy *policy)
{
    if (!policy || --policy->refs > 0)
        return;
    policy_done(&policy->policy);
    free(policy);
}

struct serve_policy *
serve_policies_find(struct serve *serve, const char *name)
{
    for (size_t i = 0; i < serve->policies_n; i++)
        if (strcmp(serve->policies[i]->policy.name, name) == 0)
            return serve->policies[i];
    return NULL;
}

/* name: of a profile, or a path. */
static int
load(const char *name, const char *path, struct serve_policy **ret, struct err *err)
{
    struct serve_policy *loaded = calloc(1, sizeof(*loaded));
    if (!loaded)
        return err_set(err, -ENOMEM, "no memory for a policy");
    loaded->refs = 1;
    loaded->path = path;
    int r = policy_load(name, &loaded->policy, err);
    if (r < 0) {
        free(loaded);
        return r;
    }
    *ret = loaded;
    return 0;
}

/* replaced: the one whose place it takes, or NULL. */
static int
check_name(struct serve *serve, const struct serve_policy *loaded,
           const struct serve_policy *replaced, struct err *err)
{
    const struct serve_policy *other = serve_policies_find(serve, loaded->policy.name);
    return !other || other == replaced
               ? 0
               : err_set(err, -EEXIST, "%.120s: there is a policy '%s' already",
                         loaded->path, loaded->policy.name);
}

/* Without a '/', what is a path to the operator could be a profile to policy_load. */
static int
load_file(const char *path, struct serve_policy **ret, struct err *err)
{
    char plain[PROTOCOL_PATH_BYTES];
    if (strchr(path, '/'))
        return load(path, path, ret, err);
    if (snprintf(plain, sizeof(plain), "./%s", path) >= (int)sizeof(plain))
        return err_set(err, -ENAMETOOLONG, "--policy: the path is too long: %.80s…",
                       path);
    return load(plain, path, ret, err);
}

static int
add(struct serve *serve, const char *name, bool is_file, struct err *err)
{
    struct serve_policy *loaded;
    int r = is_file ? load_file(name, &loaded, err) : load(name, NULL, &loaded, err);
    if (r == 0 && is_file) {
        r = check_name(serve, loaded, NULL, err);
        if (r < 0)
            serve_policy_release(loaded);
    }
    if (r == 0)
        serve->policies[serve->policies_n++] = loaded;
    return r;
}

int
serve_policies_load(struct serve *serve, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && policy_profiles[i]; i++)
        r = add(serve, policy_profiles[i], false, err);
    for (size_t i = 0; r == 0 && i < serve->options->policies_n; i++)
        r = add(serve, serve->options->policies[i], true, err);
    return r;
}

void
serve_policies_reload(struct serve *serve)
{
    size_t kept = 0;
    for (size_t i = 0; i < serve->policies_n; i++) {
        struct serve_policy *old = serve->policies[i], *loaded;
        struct err err = {0};
        if (!old->path)
            continue;
        int r = load_file(old->path, &loaded, &err);
        if (r == 0) {
            r = check_name(serve, loaded, old, &err);
            if (r < 0)
                serve_policy_release(loaded);
        }
        if (r < 0) {
            kept++;
            serve_note(serve, "policy '%s' stays as it was: %s", old->policy.name,
                       err.text);
            continue;
        }
        serve->policies[i] = loaded;
        serve_policy_release(old);
    }
    serve_note(serve, "policies are reloaded%s", kept > 0 ? ", but for those" : "");
}

void
serve_policies_done(struct serve *serve)
{
    for (size_t i = 0; i < serve->policies_n; i++)
        serve_policy_release(serve->policies[i]);
    serve->policies_n = 0;
}
