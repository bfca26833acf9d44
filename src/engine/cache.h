/*
 * Our folder in the user's cache. What is read back there decides what a cell sees of the host and
 * what it may call, so a file is read only from a folder and of a kind that nobody but this user can
 * write; anything odd is as good as nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"
#include "jail/image.h"

enum { CACHE_NAME_BYTES = 48 };

/* Its path, or an empty text. */
void cache_path(char path[IMAGE_PATH_BYTES]);
/* Makes it where it is not; a descriptor, or -1 when there is none that can be trusted. */
int cache_make(void);
/* Appends the file's bytes; false: there is none, or it has more than the buffer takes. */
bool cache_read(const char *name, struct buf *ret) MUST_USE;
/* Whole or not at all, for whoever reads meanwhile. */
void cache_write(const char *name, struct span bytes);
