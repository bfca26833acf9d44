/*
 * Writes a tar archive (POSIX.1-2001, "pax") of regular files: any path, any length. Makes bytes and
 * knows no descriptor.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

enum { TAR_BLOCK_BYTES = 512 };

/* What stands before a file's bytes. path: relative, any bytes but NUL, at most 4096. */
int tar_put_header(struct buf *out, const char *path, uint64_t bytes,
                   int64_t mtime_s) MUST_USE;
/* What fills the last block of a file of that length. */
int tar_put_padding(struct buf *out, uint64_t bytes) MUST_USE;
int tar_put_end(struct buf *out) MUST_USE;
