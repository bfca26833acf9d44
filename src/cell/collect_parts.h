/* The parts of collect_files: walking, naming the kind of data, writing. For its own
 * files. */
#pragma once

#include <magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "cell/collect.h"
#include "cell/sink.h"

enum collect_skip {
    SKIP_LINK,
    SKIP_FIFO,
    SKIP_SOCKET,
    SKIP_DEVICE,
    SKIP_UNREADABLE,
    SKIP_DEEP,
    SKIP_ELSEWHERE,
    SKIP_TAKEN,
    SKIP_UNNAMEABLE,
    SKIP_LARGE,
    SKIP_MANY,
    SKIP_COUNT,
};

struct collect_names {
    char **list; /* owned, and each path in it */
    size_t n, capacity;
};

/* --- collect_walk.c --- */
struct collect_walk {
    int root; /* borrowed */
    const struct collect_limits *limits;
    struct collect_names folders; /* a queue: those still to be read are appended */
    struct collect_names files;   /* in the end sorted by path */
    size_t names_n, names_bytes;
    bool stopped; /* more names than may be looked at */
    uint64_t skipped[SKIP_COUNT];
};

int collect_walk_run(struct collect_walk *walk, struct err *err) MUST_USE;
void collect_walk_done(struct collect_walk *walk);
/* Opens a file or folder beneath root for reading; as its owner even where its mode says
 * no. A negative errno; -EXDEV when it lies on another file system. */
int collect_open(int root, const char *path, int flags) MUST_USE;
/* The same, changing no mode. */
int collect_open_alive(int root, const char *path, int flags) MUST_USE;
/* An error that says nothing of the file: we have no memory or no descriptor left. */
bool collect_is_ours(int error);

/* --- collect_mime.c --- */
enum { MIME_SNIFF_BYTES = 64 * 1024 };
struct mime {
    magic_t
        cookie; /* opened with the first file: loading its tables takes milliseconds */
    bool tried;
};

void mime_done(struct mime *mime);
/* Names the kind of data by its first bytes, and by the file's extension where those say
 * no more than "text" or "some container". */
void mime_name(struct mime *mime, const char *path, const void *bytes, size_t n,
               char *ret, size_t ret_n);

/* --- collect_sink.c, beside cell/sink.h --- */
/* Whether that errno means only that this one name has no place there: then *ret says
 * why. */
bool sink_is_skip(int error, enum collect_skip *ret);
