/* Between files.c, files_child.c and their fuzz target; nobody else's. */
#pragma once

#include <sys/types.h>

#include "cell/files.h"

enum files_word { FILES_ENTRY = 1, FILES_DATA, FILES_END };

enum {
    FILES_DATA_BYTES = 32 * 1024,
    FILES_NOTE_BYTES = OUTCOME_TEXT_BYTES,
    FILES_CHILD_FD = 3, /* in the child: its socket */
    FILES_TREE_FD,      /* … and the tree */
};

/* One message of the child: the head and what its word says. */
struct files_head {
    uint32_t word;
    uint32_t n; /* bytes of FILES_DATA; 0 otherwise */
};
struct files_end {
    uint64_t skipped;
    struct err err;
    char note[FILES_NOTE_BYTES];
    char sha256[65];
};
struct files_message {
    struct files_head head;
    union {
        struct collected_file entry;
        struct files_end end;
        char data[FILES_DATA_BYTES];
    };
};

/* A checked copy of n bytes from the child: 0 when they are no message, else its word. Texts are
 * terminated, MIME types and hashes what they should be. */
enum files_word files_take(const void *bytes, size_t n, struct files_message *ret);

/* Hears what comes over the socket, which it takes, and in the end ends the child; 0: none. */
int files_follow(struct event_base *base, const struct files_task *task, int socket,
                 pid_t child, struct files_work **ret, struct err *err) MUST_USE;

/* In the child; does not return. */
NORETURN void files_child(const struct files_task *task, int socket);
