/*
 * A file for each filter: a head, and the instructions. Its name stands for all that it was compiled
 * from (jail/seccomp.c), its hash for the bytes being those that were written; that nobody else has
 * written them, the folder says.
 */
#include "engine/filter_cache.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "engine/cache.h"

struct head {
    char name[FILTER_NAME_BYTES];
    uint32_t instructions, unused;
    unsigned char hash[crypto_hash_sha256_BYTES]; /* of name, number and instructions */
};

enum {
    FILE_BYTES_MAX = sizeof(struct head) + SEAL_FILTER_MAX * sizeof(struct sock_filter)
};

static void
hash_of(const struct head *head, const void *instructions,
        unsigned char ret[crypto_hash_sha256_BYTES])
{
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const unsigned char *)head,
                              offsetof(struct head, hash));
    crypto_hash_sha256_update(&state, instructions,
                              head->instructions * sizeof(struct sock_filter));
    crypto_hash_sha256_final(&state, ret);
}

static void
file_of(const char *name, char file[CACHE_NAME_BYTES])
{
    snprintf(file, CACHE_NAME_BYTES, "filter-%s.bpf", name);
}

static bool
find(const char *name, struct seal *ret)
{
    struct head head;
    unsigned char hash[crypto_hash_sha256_BYTES];
    char file[CACHE_NAME_BYTES];
    AUTO_BUF struct buf bytes = {0};
    buf_init(&bytes, FILE_BYTES_MAX);
    file_of(name, file);
    if (!cache_read(file, &bytes) || bytes.n < sizeof(head))
        return false;
    memcpy(&head, bytes.p, sizeof(head));
    if (strncmp(head.name, name, sizeof(head.name)) != 0 || head.instructions == 0 ||
        head.instructions > SEAL_FILTER_MAX ||
        bytes.n != sizeof(head) + head.instructions * sizeof(struct sock_filter))
        return false;
    hash_of(&head, bytes.p + sizeof(head), hash);
    if (memcmp(hash, head.hash, sizeof(hash)) != 0)
        return false;
    memcpy(ret->filter, bytes.p + sizeof(head), bytes.n - sizeof(head));
    ret->filter_n = head.instructions;
    return true;
}

static void
keep(const char *name, const struct seal *seal)
{
    struct head head = {.instructions = seal->filter_n};
    char file[CACHE_NAME_BYTES];
    AUTO_BUF struct buf bytes = {0};
    buf_init(&bytes, FILE_BYTES_MAX);
    snprintf(head.name, sizeof(head.name), "%s", name);
    hash_of(&head, seal->filter, head.hash);
    file_of(name, file);
    if (buf_append(&bytes, (const char *)&head, sizeof(head)) == 0 &&
        buf_append(&bytes, (const char *)seal->filter,
                   seal->filter_n * sizeof(struct sock_filter)) == 0)
        cache_write(file, buf_span(&bytes));
}

const struct filter_store filter_cache = {.find = find, .keep = keep};
