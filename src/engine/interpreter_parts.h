/*
 * The parts of interpreter_find, for its own files and its test; no other room includes
 * this. Locate the executable, ask it, build the image from its answer, keep the image in
 * the cache.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "jail/image.h"

enum { INTERPRETER_LIMIT_MS = 10 * 1000, STAMPS_MAX = 512 };

/* What must still be so for a kept answer to hold. */
enum stamp_kind {
    STAMP_SAME,   /* the file it leads to: device, inode, size and time of change */
    STAMP_THERE,  /* the name itself: device and inode */
    STAMP_ABSENT, /* still nothing there */
};

struct stamps {
    size_t n;
    bool overflowed; /* more than fit: the answer is not kept */
    struct stamp {
        enum stamp_kind kind;
        char path[IMAGE_PATH_BYTES];
    } rows[STAMPS_MAX];
};

void stamps_add(struct stamps *stamps, enum stamp_kind kind, const char *path);

/* A program that prints one JSON object, and a variable it may need ("NAME=value" or
 * NULL). */
struct question {
    const char *program;
    const char *variable;
};
/* interpreter_image.c builds on its answer. */
extern const struct question interpreter_what_it_is;
/* The answer of the interpreter itself, a JSON object; the caller decrefs it. */
int interpreter_ask(const char *executable, const struct question *question, int limit_ms,
                    json_t **ret, struct err *err) MUST_USE;
int interpreter_build(const json_t *answer, bool programs, struct image *ret,
                      struct stamps *stamps, struct err *err) MUST_USE;

/* interpreter_files.c: image->files, from an answer or from the cache. */
void interpreter_take_files(const json_t *list, struct image *image);
json_t *interpreter_files_json(const struct image *image);

/* Makes the folder that the font list of `asked` is kept in; false when nothing can be
 * kept. */
bool interpreter_cache_fonts(const char *asked, char ret[IMAGE_PATH_BYTES]);
/* Has matplotlib, where the interpreter has it, build its font list once; fills
 * image->font_list, or leaves it empty. */
void interpreter_fonts(const char *asked, struct image *image, struct stamps *stamps);
bool interpreter_cache_load(const char *asked, bool programs, struct image *ret);
/* since_ns: the wall clock when the interpreter was asked. Whatever changed later may not
 * be in the answer, so nothing is kept then. Failing to keep it is no error: it is asked
 * again. */
void interpreter_cache_save(const char *asked, bool programs, const struct image *image,
                            const struct stamps *stamps, int64_t since_ns);
