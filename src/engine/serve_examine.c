/*
 * Whatever is wrong with a run, before it waits for anything: which policy it is under, in which
 * session, and whether what it asks for may be asked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/data_folders.h"
#include "engine/serve_parts.h"
#include "engine/workspace.h"

static int
narrow(struct serve_job *job, struct err *err)
{
    const struct protocol_run *asked = job->asked;
    int r = 0;
    for (size_t i = 0; r == 0 && i < asked->limits_n; i++)
        r = policy_narrow(&job->policy, asked->limits[i].field,
                          asked->limits[i].field->name, span_of(asked->limits[i].text),
                          err);
    return r;
}

/* That of the session, and of its limits those that are not fixed in its cell. */
static int
take_session_policy(struct serve_job *job, struct err *err)
{
    static const char *const may[] = {"timeout", "cpu_time", "memory",
                                      "pids",    "output",   "source_size"};
    const struct protocol_run *asked = job->asked;
    job->loaded = job->session->loaded;
    job->loaded->refs++;
    job->policy = job->session->policy;
    for (size_t i = 0; i < asked->limits_n; i++) {
        const char *name = asked->limits[i].field->name;
        size_t at = 0;
        while (at < sizeof(may) / sizeof(*may) && strcmp(may[at], name) != 0)
            at++;
        if (at == sizeof(may) / sizeof(*may))
            return err_set(err, -EINVAL,
                           "'%s' is fixed when a session is made: give it to session_new",
                           name);
    }
    return narrow(job, err);
}

static int
take_policy(struct serve_job *job, struct err *err)
{
    const struct protocol_run *asked = job->asked;
    if (job->session && job->session->loaded)
        return take_session_policy(job, err);
    struct serve_policy *loaded = serve_policies_find(job->serve, asked->policy);
    if (!loaded)
        return err_set(err, -ENOENT,
                       "this supervisor has no policy of that name: it knows the "
                       "built-in ones and those of its own --policy");
    loaded->refs++;
    job->loaded = loaded;
    job->policy = loaded->policy;
    int r = narrow(job, err);
    if (r == 0 && job->session)
        serve_session_open(job);
    return r;
}

/* Only interpreters that the operator named: others would be started, outside a cell, to
 * be asked what they are. */
static int
check_python(const struct serve_job *job, struct err *err)
{
    const struct serve_options *options = job->serve->options;
    const char *asked = job->asked->python;
    if (asked[0] == '\0')
        return 0;
    for (size_t i = 0; i < options->pythons_n; i++)
        if (strcmp(options->pythons[i], asked) == 0)
            return 0;
    return err_set(err, -ENOEXEC,
                   "this supervisor does not serve the interpreter %.120s: start it with "
                   "--python, or run without it (--cold)",
                   asked);
}

/* The descriptor came with the frame, or with one before it that did not want it. */
static int
take_collect_dir(struct serve_job *job, struct err *err)
{
    struct serve_client *client = job->client;
    struct stat st;
    if (!job->asked->job.collect)
        return 0;
    if (client->fds_n == 0)
        return err_set(err, -EINVAL, "'collect' without a descriptor of a folder");
    job->collect_dir = client->fds[0];
    client->fds_n--;
    memmove(client->fds, client->fds + 1, client->fds_n * sizeof(*client->fds));
    if (fstat(job->collect_dir, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, -EINVAL, "'collect' with a descriptor that is no folder");
    return 0;
}

/* A client is not the operator: what the policy lists, and nothing else. */
static int
take_data(struct serve_job *job, struct err *err)
{
    struct protocol_run *asked = job->asked;
    struct data_folder folders[JOB_FOLDERS_MAX];
    for (size_t i = 0; i < asked->data_n; i++)
        folders[i] = (struct data_folder){
            asked->data[i].path, asked->data[i].name[0] ? asked->data[i].name : NULL};
    int r =
        data_folders_take(folders, asked->data_n, &job->policy, false, &asked->job, err);
    return r == 0 && asked->workspace[0] != '\0'
               ? workspace_take(asked->workspace, &job->policy, &asked->job, err)
               : r;
}

/* A session that begins again has those that it had. */
static int
keep_folders(struct serve_job *job, bool again, struct err *err)
{
    struct job_folders *asked = &job->asked->job.folders;
    struct serve_session *session = job->session;
    if (again && session->folders)
        *asked = *session->folders;
    if (again || asked->n == 0)
        return 0;
    session->folders = malloc(sizeof(*session->folders));
    if (!session->folders)
        return err_set(err, -ENOMEM, "no memory for a session");
    *session->folders = *asked;
    return 0;
}

int
serve_job_examine(struct serve_job *job, const char *session, struct err *err)
{
    int r = 0;
    if (job->opens || session[0] != '\0')
        r = serve_session_enter(job, session, err);
    if (r == 0)
        r = take_collect_dir(job, err);
    if (r == 0)
        r = take_policy(job, err);
    if (r == 0)
        r = serve_complete_prepare(job, err);
    if (r == 0)
        r = check_python(job, err);
    if (r == 0)
        r = take_data(job, err);
    if (r == 0 && job->opens)
        r = keep_folders(job, session[0] != '\0', err);
    return r;
}
