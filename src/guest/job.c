/* Receives and places a job in a warm cell: see job.h. Knows nothing of Python. */
#include "guest/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/span.h"

enum { JOB_BYTES_MAX = 1 << 30, NAME_MAX_BYTES = 1024, FILES_MAX = 4096 };

/* The next n bytes of the memory at *at, or NULL when they are not there. */
static const char *
take(const struct job_view *job, size_t *at, uint64_t n)
{
    if (n > job->memory_n - *at)
        return NULL;
    const char *p = job->memory + *at;
    *at += (size_t)n;
    return p;
}

static bool
ends_with_nul(const char *p, uint64_t n)
{
    return p && n > 0 && p[n - 1] == '\0';
}

static int
parse(struct job_view *job, struct err *err)
{
    size_t at = 0;
    const char *head = take(job, &at, sizeof(job->head));
    if (!head)
        return err_set(err, -EPROTO, "a job of %zu bytes", job->memory_n);
    memcpy(&job->head, head, sizeof(job->head));
    job->name = take(job, &at, job->head.name_n);
    job->arguments = take(job, &at, job->head.args_bytes);
    job->code = take(job, &at, job->head.code_n);
    job->stdin_bytes = take(job, &at, job->head.stdin_n);
    job->files = job->memory + at;
    bool whole =
        job->head.magic == GUEST_MAGIC && job->head.total_bytes == job->memory_n &&
        ends_with_nul(job->name, job->head.name_n) && job->arguments && job->code &&
        job->stdin_bytes && job->head.files_n <= FILES_MAX &&
        (job->head.args_n == 0 || ends_with_nul(job->arguments, job->head.args_bytes));
    return whole ? 0 : err_set(err, -EPROTO, "a job that is not one of this build");
}

bool
job_comes(int socket, int wait_ms)
{
    struct pollfd waited = {.fd = socket, .events = POLLIN};
    return poll(&waited, 1, wait_ms) > 0;
}

int
job_receive(int socket, struct job_view *ret, struct err *err)
{
    char go;
    int fd = -1;
    struct stat is;
    ssize_t n = fd_receive(socket, &go, 1, &fd, 1);
    AUTO_CLOSE int memory_fd = fd;
    if (n <= 0)
        return err_set(err, n == 0 ? -EPIPE : (int)n, "no job came");
    if (memory_fd < 0 || fstat(memory_fd, &is) < 0 || is.st_size <= 0 ||
        is.st_size > JOB_BYTES_MAX)
        return err_set(err, -EPROTO, "a job without its memory");
    void *memory = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, memory_fd, 0);
    if (memory == MAP_FAILED)
        return err_sys(err, "map a job");
    *ret = (struct job_view){.memory = memory, .memory_n = (size_t)is.st_size};
    return parse(ret, err);
}

static int
write_bytes(int fd, const char *name, const char *data, size_t n, struct err *err)
{
    int r = fd_write_all(fd, data, n);
    return r < 0 ? err_set(err, r, "write %s into the cell's /tmp: %s", name,
                           strerrordesc_np(-r))
                 : 0;
}

static int
write_file(int dir, const char *name, struct span data, int how, struct err *err)
{
    char part[NAME_MAX_BYTES];
    for (const char *p = strchr(name, '/'); p; p = strchr(p + 1, '/')) {
        size_t part_n = (size_t)(p - name);
        if (part_n >= sizeof(part))
            return err_set(err, -ENAMETOOLONG, "a file name of more than %d bytes",
                           NAME_MAX_BYTES);
        memcpy(part, name, part_n);
        part[part_n] = '\0';
        if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
            return err_sys(err, "make the folder %s in the cell's /tmp", part);
    }
    AUTO_CLOSE int fd =
        openat(dir, name, O_CREAT | how | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    return fd < 0 ? err_sys(err, "make %s in the cell's /tmp", name)
                  : write_bytes(fd, name, data.p, data.n, err);
}

static int
place_files(const struct job_view *job, int dir, int how, struct err *err)
{
    size_t at = (size_t)(job->files - job->memory);
    for (uint32_t i = 0; i < job->head.files_n; i++) {
        struct guest_job_file file;
        const char *head = take(job, &at, sizeof(file));
        if (!head)
            return err_set(err, -EPROTO, "a job with half a file");
        memcpy(&file, head, sizeof(file));
        const char *name = take(job, &at, file.name_n);
        const char *data = take(job, &at, file.data_n);
        if (!ends_with_nul(name, file.name_n) || !data)
            return err_set(err, -EPROTO, "a job with half a file");
        int r = write_file(dir, name, (struct span){data, (size_t)file.data_n}, how, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Code may have gone to another folder since: its own files are placed where they always are. */
static int
open_tmp(struct err *err)
{
    int dir = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? err_sys(err, "open the cell's /tmp") : dir;
}

int
job_place_again(const struct job_view *job, struct err *err)
{
    AUTO_CLOSE int dir = job->head.files_n > 0 ? open_tmp(err) : -1;
    if (job->head.files_n == 0)
        return 0;
    return dir < 0 ? dir : place_files(job, dir, O_TRUNC, err);
}

int
job_place_stdin(const struct job_view *job, struct err *err)
{
    AUTO_CLOSE int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "make a file for stdin in the cell's /tmp");
    int r = write_bytes(fd, "stdin", job->stdin_bytes, (size_t)job->head.stdin_n, err);
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, "rewind stdin");
    if (r == 0 && (r = fd_move(&fd, STDIN_FILENO)) < 0)
        err_set(err, r, "put stdin into its place: %s", strerrordesc_np(-r));
    return r;
}

static int
narrow(int resource, uint64_t value, struct err *err)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        return err_sys(err, "read resource limit %d", resource);
    if (value >= limit.rlim_max)
        return 0;
    limit.rlim_cur = limit.rlim_max = value;
    return setrlimit((__rlimit_resource_t)resource, &limit) < 0
               ? err_sys(err, "narrow resource limit %d", resource)
               : 0;
}

int
job_narrow(const struct job_view *job, struct err *err)
{
    int r = narrow(RLIMIT_FSIZE, job->head.file_bytes, err);
    return r < 0 ? r : narrow(RLIMIT_NOFILE, job->head.open_files, err);
}

int
job_place(const struct job_view *job, struct err *err)
{
    int r = write_file(AT_FDCWD, job->name,
                       (struct span){job->code, (size_t)job->head.code_n}, O_EXCL, err);
    if (r == 0)
        r = place_files(job, AT_FDCWD, O_EXCL, err);
    return r < 0 ? r : job_narrow(job, err);
}

void
job_done(struct job_view *job)
{
    munmap((void *)(uintptr_t)job->memory, job->memory_n);
    *job = (struct job_view){0};
}
