/*
 * libFuzzer: messages of the process that reads a hostile tree, as the supervisor takes them, alone
 * and one after another. What is taken must hold its own bounds and be fit for JSON; the end is told
 * once, and nothing after it; listings are compared with those before in bounded memory, whatever
 * their order. The input is messages, each a length of two bytes (little-endian) and so many bytes.
 */
#include <assert.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/files_parts.h"
#include "engine/serve_parts.h"

enum { MESSAGES_MAX = 64, SEEN_BYTES_MAX = 3 * 512 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
check_text(const char *text, size_t n)
{
    assert(strnlen(text, n) < n);
}

static void
check_entry(const struct collected_file *file)
{
    check_text(file->path, sizeof(file->path));
    check_text(file->mime, sizeof(file->mime));
    check_text(file->sha256, sizeof(file->sha256));
    assert(file->path[0] != '\0');
    for (const char *p = file->mime; *p; p++)
        assert(*p > 0x20 && *p < 0x7f);
    assert(strlen(file->sha256) == 0 || strlen(file->sha256) == sizeof(file->sha256) - 1);
}

static void
take(const uint8_t *bytes, size_t n)
{
    static struct files_message message;
    switch (files_take(bytes, n, &message)) {
    case FILES_ENTRY:
        check_entry(&message.entry);
        break;
    case FILES_DATA:
        assert(message.head.n > 0 && message.head.n <= sizeof(message.data));
        assert(memcmp(message.data, bytes + n - message.head.n, message.head.n) == 0);
        break;
    case FILES_END:
        check_text(message.end.note, sizeof(message.end.note));
        check_text(message.end.err.text, sizeof(message.end.err.text));
        check_text(message.end.sha256, sizeof(message.end.sha256));
        assert(message.end.err.code <= 0);
        break;
    default:
        break;
    }
}

/* --- one after another --- */

struct hearer {
    struct serve serve;
    struct serve_session session;
    struct files_work *work;
    struct serve_seen *seen;
    uint64_t entries, removed, data;
    bool ended;
};

static void
on_removed(void *context, const char *path)
{
    struct hearer *hearer = context;
    assert(strlen(path) < OUTCOME_FILE_PATH_BYTES);
    hearer->removed++;
}

static void
on_entry(void *context, const struct collected_file *file)
{
    struct hearer *hearer = context;
    assert(!hearer->ended);
    check_entry(file);
    hearer->entries++;
    (void)serve_seen_add(hearer->seen, file, on_removed, hearer);
    assert(hearer->serve.seen_bytes <= SEEN_BYTES_MAX);
}

static void
on_data(void *context, struct span bytes)
{
    struct hearer *hearer = context;
    assert(!hearer->ended && bytes.n > 0);
    hearer->data += bytes.n;
    if (hearer->data % 3 == 0) { /* a reader that is slow, for a while */
        files_pause(hearer->work, true);
        files_pause(hearer->work, false);
    }
}

static void
on_end(void *context, const struct err *err, uint64_t skipped, const char *note,
       const char *sha256)
{
    struct hearer *hearer = context;
    (void)skipped;
    assert(!hearer->ended && err->code <= 0);
    check_text(err->text, sizeof(err->text));
    check_text(note, FILES_NOTE_BYTES);
    check_text(sha256, sizeof(((struct files_end *)0)->sha256));
    hearer->ended = true;
    if (err->code == 0)
        serve_seen_finish(hearer->seen, on_removed, hearer);
}

/* All messages of one child; its death follows. */
static void
follow(struct event_base *base, struct hearer *hearer, const uint8_t *bytes, size_t n)
{
    const struct files_task task = {
        .on_entry = on_entry, .on_data = on_data, .on_end = on_end, .context = hearer};
    int ends[2];
    struct err err;
    hearer->ended = false;
    hearer->seen = serve_seen_new(&hearer->session);
    if (!hearer->seen ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        files_follow(base, &task, ends[0], 0, &hearer->work, &err) < 0)
        abort();
    for (int i = 0; i < MESSAGES_MAX && n >= 2; i++) {
        size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8;
        bytes += 2;
        n -= 2;
        length = length < n ? length : n;
        if (send(ends[1], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
            !hearer->ended)
            event_base_loop(base, EVLOOP_NONBLOCK);
        bytes += length;
        n -= length;
    }
    close(ends[1]);
    while (!hearer->ended)
        event_base_loop(base, EVLOOP_ONCE);
    serve_seen_release(hearer->seen);
    hearer->session.runs++;
}

static void
follow_twice(const uint8_t *bytes, size_t n)
{
    static struct hearer hearer;
    struct event_base *base = event_base_new();
    if (!base)
        abort();
    hearer = (struct hearer){.session = {.serve = &hearer.serve}};
    follow(base, &hearer, bytes, n);
    uint64_t before = hearer.entries;
    follow(base, &hearer, bytes, n);
    assert(hearer.removed <= before + hearer.entries);
    serve_seen_forget(&hearer.session);
    assert(hearer.serve.seen_bytes == 0);
    event_base_free(base);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    follow_twice(bytes, n);
    for (int i = 0; i < MESSAGES_MAX && n >= 2; i++) {
        size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8;
        bytes += 2;
        n -= 2;
        length = length < n ? length : n;
        take(bytes, length);
        bytes += length;
        n -= length;
    }
    return 0;
}
