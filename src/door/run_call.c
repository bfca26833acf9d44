/* From the options of `adyton run` to a request of a supervisor. */
#include "door/run_call.h"

#include <errno.h>
#include <string.h>

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), end_n = strlen(end);
    return n > end_n && strcmp(text + n - end_n, end) == 0;
}

/* As policy_load tells files from names. */
static bool
is_path(const char *policy)
{
    return strchr(policy, '/') || ends_with(policy, ".yaml") || ends_with(policy, ".yml");
}

/* The first option that only the operator of a supervisor may set there, or NULL. */
static const char *
own_option(const struct run_options *options)
{
    if (options->cold)
        return "--cold";
    if (is_path(options->policy))
        return "--policy with a file";
    if (options->ledger)
        return "--ledger";
    if (options->data_n > 0 && !options->socket)
        return "--data"; /* whoever starts a run of his own may show it what he likes */
    for (size_t i = 0; i < options->limits_n; i++)
        if (options->limits[i].field->authority != BY_JOB_NARROWING)
            return options->limits[i].field->option;
    return NULL;
}

int
run_call_is_for(const struct run_options *options, bool *ret, struct err *err)
{
    const char *own = own_option(options);
    if (own && options->socket)
        return err_set(err, -EINVAL,
                       "%s makes a run of our own, and --socket one of a supervisor's: "
                       "leave one of them out",
                       own);
    if (own && options->session)
        return err_set(err, -EINVAL,
                       "%s makes a run of our own, and --session one in a supervisor's "
                       "session: leave one of them out",
                       own);
    if (options->session && strcmp(options->policy, policy_default) != 0)
        return err_set(
            err, -EINVAL,
            "--policy: a session has its own since it was made (adyton session "
            "new --policy)");
    *ret = !own;
    return 0;
}

enum call_result
run_call(const struct run_call *call, struct outcome *ret, struct err *err)
{
    const struct run_options *options = call->options;
    struct call_request request = {.socket = options->socket,
                                   .session = options->session,
                                   .policy = options->policy,
                                   .job = call->job,
                                   .data = call->data->folders,
                                   .data_n = call->data->n,
                                   .workspace = options->workspace,
                                   .python = options->python,
                                   .collect_dir = call->collect_dir,
                                   .patience_ms = call->policy->wall_ms,
                                   .on_output = call->on_output,
                                   .on_message = call->on_message,
                                   .context = call->context};
    for (size_t i = 0; i < options->limits_n && i < CALL_LIMITS_MAX; i++)
        request.limits[request.limits_n++] =
            (struct call_limit){options->limits[i].field->name, options->limits[i].text};
    return call_run(&request, ret, err);
}
