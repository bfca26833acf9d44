/*
 * Everything is read before the run, into bounded buffers: a cell is given bytes, never a
 * descriptor of ours. What --file places may be as large as the cell's disk, together.
 */
#include "door/run_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"

static bool
is_dash(const char *path)
{
    return strcmp(path, "-") == 0;
}

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* -ENOSPC, with err untouched, when it is longer than the buffer may hold. */
static int
read_path(const char *path, struct buf *buf, struct err *err)
{
    AUTO_CLOSE int opened =
        is_dash(path) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (!is_dash(path) && opened < 0)
        return err_sys(err, "cannot open '%.120s'", path);
    int r = fd_read_all(is_dash(path) ? STDIN_FILENO : opened, buf);
    if (r == 0 || r == -ENOSPC)
        return r;
    errno = -r;
    return err_sys(err, "cannot read '%.120s'", is_dash(path) ? "stdin" : path);
}

int
run_input_read_code(const struct run_options *options, const struct policy *policy,
                    struct job *job, struct err *err)
{
    char size[UNITS_TEXT_BYTES];
    job->code.max = (size_t)policy->source_bytes;
    int r = options->code ? buf_append(&job->code, options->code, strlen(options->code))
                          : read_path(options->file, &job->code, err);
    if (r == -ENOSPC)
        return err_set(err, -EFBIG, "the code is longer than %s",
                       format_bytes(policy->source_bytes, size));
    if (r == -ENOMEM)
        return err_set(err, r, "no memory for the code");
    if (r < 0 || options->code || is_dash(options->file))
        return r;
    return job_set_name(job, base_name(options->file), err);
}

/* Splits PATH=NAME at its last '='; a PATH alone keeps its own name. */
int
run_input_add_file(const char *spec, uint64_t *left_bytes, struct job *job,
                   struct err *err)
{
    char path[4096];
    const char *equals = strrchr(spec, '=');
    size_t n = equals ? (size_t)(equals - spec) : strlen(spec);
    if (n == 0 || n >= sizeof(path))
        return err_set(err, -EINVAL, "'%.80s' is not PATH or PATH=NAME", spec);
    memcpy(path, spec, n);
    path[n] = '\0';
    if (is_dash(path))
        return err_set(err, -EINVAL, "'-' is not a file");

    AUTO_BUF struct buf data = {0};
    buf_init(&data, *left_bytes < JOB_BYTES_MAX ? (size_t)*left_bytes : JOB_BYTES_MAX);
    int r = read_path(path, &data, err);
    if (r == -ENOSPC)
        return err_set(err, -EFBIG,
                       "with '%.80s' the files are larger than the disk "
                       "limit of the cell",
                       path);
    if (r == 0)
        r = job_add_file(job, equals ? equals + 1 : base_name(path), &data, err);
    if (r < 0)
        return r;
    *left_bytes -= job->files[job->files_n - 1].data.n;
    return 0;
}

static int
read_stdin(const struct run_options *options, struct job *job, struct err *err)
{
    if (!options->stdin_path)
        return 0;
    int r = read_path(options->stdin_path, &job->stdin_bytes, err);
    if (r == -ENOSPC)
        return err_set(err, -EFBIG, "--stdin: more than %d bytes", JOB_BYTES_MAX);
    if (r < 0)
        return err_wrap(err, "--stdin");
    job->has_stdin = true;
    return 0;
}

int
run_input_read_rest(const struct run_options *options, const struct policy *policy,
                    struct job *job, struct err *err)
{
    int r = 0;
    uint64_t left_bytes = policy->disk_bytes;
    for (size_t i = 0; r == 0 && i < options->files_n; i++)
        r = run_input_add_file(options->files[i], &left_bytes, job, err);
    if (r < 0)
        return err_wrap(err, "--file");
    for (size_t i = 0; r == 0 && i < options->args_n; i++)
        r = job_add_arg(job, options->args[i], err);
    if (r == 0)
        r = read_stdin(options, job, err);
    job->collect = options->out_dir && !options->session; /* there we ask for them */
    job->show_last = options->show_last;
    job->svg = options->svg;
    return r;
}

int
run_input_read_data(const struct run_options *options, struct run_data *ret,
                    struct err *err)
{
    for (size_t i = 0; i < options->data_n; i++) {
        const char *spec = options->data[i];
        const char *equals = strrchr(spec, '=');
        size_t n = equals ? (size_t)(equals - spec) : strlen(spec);
        if (n == 0 || (equals && equals[1] == '\0'))
            return err_set(err, -EINVAL, "--data: '%.80s' is not DIR or DIR=NAME", spec);
        ret->paths[ret->n] = strndup(spec, n);
        if (!ret->paths[ret->n])
            return err_set(err, -ENOMEM, "no memory for --data");
        ret->folders[ret->n] =
            (struct data_folder){ret->paths[ret->n], equals ? equals + 1 : NULL};
        ret->n++;
    }
    return 0;
}

void
run_data_done(struct run_data *data)
{
    for (size_t i = 0; i < data->n; i++)
        free(data->paths[i]);
    data->n = 0;
}
