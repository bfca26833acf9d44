/* The libraries that code finds: the distributions in an interpreter's folders, by their metadata.
 * Executes nothing. */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "jail/image.h"

/* "numpy 1.24.2, pandas 1.5.3, …, and 40 more": those that people compute with come first. */
int libraries_describe(const struct image *image, struct buf *out) MUST_USE;
