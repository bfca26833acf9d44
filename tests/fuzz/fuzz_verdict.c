/*
 * libFuzzer: what a hostile guest may send while it should be validating: messages of any size
 * and content, in any number. Findings stay bounded, and only a whole last message of ours
 * concludes. The input is messages, each a length of two bytes (little-endian) and so many bytes.
 */
#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cell_parts.h"

enum { MESSAGES_MAX = 48, JSON_BYTES_MAX = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
send_messages(int socket, const uint8_t *bytes, size_t n)
{
    for (int i = 0; i < MESSAGES_MAX && n >= 2; i++) {
        size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8;
        bytes += 2;
        n -= 2;
        length = length < n ? length : n;
        if (send(socket, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return;
        bytes += length;
        n -= length;
    }
}

static void
hear(const struct policy *policy, const struct job *job, const uint8_t *bytes, size_t n)
{
    struct outcome outcome;
    AUTO_BUF struct buf json = {0};
    int ends[2];
    struct event_base *base = event_base_new();
    struct cell *cell = base ? cell_new(base) : NULL;
    const struct cell_request request = {
        .policy = policy, .job = job, .validate_only = true, .collect_dir = -1};
    if (!cell || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        fd_set_nonblocking(ends[0]) < 0)
        abort();
    outcome_init(&outcome);
    cell_assign(cell, &request, &outcome);
    cell->guest = ends[0];
    send_messages(ends[1], bytes, n);
    validation_hear(cell);
    buf_init(&json, JSON_BYTES_MAX);
    if (cell->going || outcome_json(&outcome, OUTCOME_JSON_COMPACT, &json) < 0)
        abort();
    close(ends[1]);
    cell_free(cell);
    outcome_done(&outcome);
    event_base_free(base);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char code[] = "import os\nprint(os.getcwd())\n# \xc3\xa9\n";
    struct err err = {0};
    struct policy policy;
    struct job job;
    job_init(&job);
    buf_init(&job.code, sizeof(code));
    if (policy_load(policy_default, &policy, &err) < 0 ||
        buf_append(&job.code, code, sizeof(code) - 1) < 0)
        abort();
    hear(&policy, &job, bytes, n);
    policy_done(&policy);
    job_done(&job);
    return 0;
}
