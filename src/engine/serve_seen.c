/*
 * What changed among the files of a session: each listing is compared with the last one that was made
 * before the session's latest run began. A listing is remembered as its paths and hashes, in few bytes
 * and not at all when it has too many: then nothing is said of changes, rather than something that
 * may be wrong.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "engine/serve_parts.h"

enum {
    SEEN_MAX = 512 * 1024,            /* of one listing */
    SEEN_ALL_MAX = 128 * 1024 * 1024, /* of all sessions */
    DIGEST_BYTES = crypto_hash_sha256_BYTES,
};

/* A record: the digest, the path and its NUL. */
struct serve_seen {
    size_t refs;
    struct serve *serve;
    struct serve_session *session;
    struct serve_seen
        *before;  /* what it is compared with; NULL: no listing, nothing then */
    bool unknown; /* … or there was one, and it was not kept */
    size_t at;    /* in `before`: what has not been compared yet */
    uint32_t run;
    struct buf records;
    bool lost; /* it did not fit */
};

void
serve_seen_release(struct serve_seen *seen)
{
    while (seen && --seen->refs == 0) {
        struct serve_seen *before = seen->before;
        seen->serve->seen_bytes -= seen->records.n;
        buf_done(&seen->records);
        free(seen);
        seen = before;
    }
}

static struct serve_seen *
take_ref(struct serve_seen *seen)
{
    if (seen)
        seen->refs++;
    return seen;
}

struct serve_seen *
serve_seen_new(struct serve_session *session)
{
    struct serve_seen *seen = calloc(1, sizeof(*seen));
    if (!seen)
        return NULL;
    if (session->latest && session->latest->run < session->runs) {
        serve_seen_release(session->before);
        session->before = session->latest;
        session->latest = NULL;
    }
    *seen = (struct serve_seen){.refs = 1,
                                .serve = session->serve,
                                .session = session,
                                .before = take_ref(session->before),
                                .unknown = session->before && session->before->lost,
                                .run = session->runs};
    buf_init(&seen->records, SEEN_MAX);
    return seen;
}

static void
lose(struct serve_seen *seen)
{
    seen->serve->seen_bytes -= seen->records.n;
    buf_done(&seen->records);
    seen->lost = true;
}

static void
remember(struct serve_seen *seen, const unsigned char *digest, const char *path)
{
    size_t n = strlen(path) + 1;
    if (seen->lost)
        return;
    if (seen->records.n + DIGEST_BYTES + n > SEEN_MAX ||
        seen->serve->seen_bytes + DIGEST_BYTES + n > SEEN_ALL_MAX ||
        buf_reserve(&seen->records, DIGEST_BYTES + n) < 0) {
        lose(seen);
        return;
    }
    memcpy(seen->records.p + seen->records.n, digest, DIGEST_BYTES);
    memcpy(seen->records.p + seen->records.n + DIGEST_BYTES, path, n);
    seen->records.n += DIGEST_BYTES + n;
    seen->serve->seen_bytes += DIGEST_BYTES + n;
}

/* The next record of the one before, or NULL. */
static const char *
next_before(const struct serve_seen *seen)
{
    const struct serve_seen *before = seen->before;
    return before && !before->lost && seen->at < before->records.n
               ? before->records.p + seen->at
               : NULL;
}

static void
pass(struct serve_seen *seen, const char *record)
{
    seen->at += DIGEST_BYTES + strlen(record + DIGEST_BYTES) + 1;
}

enum serve_change
serve_seen_add(struct serve_seen *seen, const struct collected_file *file,
               void (*removed)(void *context, const char *path), void *context)
{
    unsigned char digest[DIGEST_BYTES] = {0};
    const char *record;
    int order = 1;
    /* Checked where it came in: 64 hexadecimal digits, or none. */
    (void)sodium_hex2bin(digest, sizeof(digest), file->sha256, strlen(file->sha256), NULL,
                         NULL, NULL);
    remember(seen, digest, file->path);
    if (seen->unknown)
        return CHANGE_NONE;
    while ((record = next_before(seen)) &&
           (order = strcmp(record + DIGEST_BYTES, file->path)) < 0) {
        removed(context, record + DIGEST_BYTES);
        pass(seen, record);
    }
    if (!record || order > 0)
        return CHANGE_ADDED;
    pass(seen, record);
    return memcmp(record, digest, sizeof(digest)) == 0 ? CHANGE_NONE : CHANGE_MODIFIED;
}

void
serve_seen_finish(struct serve_seen *seen,
                  void (*removed)(void *context, const char *path), void *context)
{
    struct serve_session *session = seen->session;
    const char *record;
    while ((record = next_before(seen))) {
        removed(context, record + DIGEST_BYTES);
        pass(seen, record);
    }
    serve_seen_release(seen->before); /* a chain of them would never end */
    seen->before = NULL;
    if (session->latest && session->latest->run > seen->run)
        return;
    serve_seen_release(session->latest);
    session->latest = take_ref(seen);
}

int64_t
serve_seen_since(const struct serve_seen *seen)
{
    if (seen->unknown)
        return -1;
    return seen->before ? (int64_t)seen->before->run : 0;
}

void
serve_seen_forget(struct serve_session *session)
{
    serve_seen_release(session->before);
    serve_seen_release(session->latest);
    session->before = session->latest = NULL;
}
