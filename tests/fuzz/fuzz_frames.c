/*
 * Bytes of a client, as the supervisor reads them: cut into frames, each one parsed as a
 * request. What comes out must hold its own bounds, and what can be written again must
 * read the same. libFuzzer drives it (meson setup -Dfuzz=true, with clang); started with
 * names of files it runs each once.
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/protocol.h"

enum { FRAME_BYTES_MAX = 1 << 20, FRAMES_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* As a reader of ours would write the code that it was sent. */
static void
write_again(const struct job *job)
{
    AUTO_BUF struct buf out, back;
    buf_init(&out, 8 * FRAME_BYTES_MAX);
    buf_init(&back, 8 * FRAME_BYTES_MAX);
    json_t *root;
    struct err err;
    bool given;
    assert(buf_append(&out, "{", 1) == 0);
    assert(protocol_put_data(&out, "code", buf_span(&job->code)) == 0);
    assert(buf_append(&out, "}", 1) == 0);
    assert(protocol_load(buf_span(&out), PROTOCOL_REQUEST_MARKS_MAX, &root, &err) == 0);
    assert(protocol_get_data(root, "code", &back, &given, &err) == 0 && given);
    assert(back.n == job->code.n);
    assert(back.n == 0 || memcmp(back.p, job->code.p, back.n) == 0);
    json_decref(root);
}

static void
check_request(const struct protocol_request *request)
{
    assert(strlen(request->id) < sizeof(request->id));
    assert(strlen(request->path) < sizeof(request->path));
    if (!request->run)
        return;
    const struct protocol_run *run = request->run;
    assert(run->limits_n <= PROTOCOL_LIMITS_MAX);
    for (size_t i = 0; i < run->limits_n; i++)
        assert(run->limits[i].field->authority == BY_JOB_NARROWING);
    assert(run->data_n <= JOB_FOLDERS_MAX && run->job.folders.n == 0);
    for (size_t i = 0; i < run->data_n; i++)
        assert(run->data[i].path[0] == '/');
    assert(run->python[0] == '\0' || run->python[0] == '/');
    assert(run->job.files_n <= JOB_FILES_MAX && run->job.args_n <= JOB_ARGS_MAX);
    for (size_t i = 0; i < run->job.files_n; i++)
        assert(run->job.files[i].name[0] != '/');
    write_again(&run->job);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct span rest = {(const char *)bytes, n}, payload;
    for (int i = 0; i < FRAMES_MAX; i++) {
        struct err err;
        struct protocol_request request;
        if (protocol_frame(rest, FRAME_BYTES_MAX, &payload, &err) != 1)
            break;
        assert(payload.p >= rest.p && payload.p + payload.n <= rest.p + rest.n);
        if (protocol_request_parse(payload, &request, &err) == 0)
            check_request(&request);
        protocol_request_done(&request);
        rest.n -= (size_t)(payload.p + payload.n - rest.p);
        rest.p = payload.p + payload.n;
    }
    return 0;
}
