/* The shape of a JSON text before it is parsed: a parsed value costs many times its bytes, so
 * depth and number have bounds of their own. Whether it is JSON at all is the parser's to say. */
#pragma once

#include <stddef.h>

#include "base/span.h"

enum json_shape {
    JSON_SHAPE_FITS,
    JSON_SHAPE_OPEN_STRING, /* a string does not end */
    JSON_SHAPE_DEEP,
    JSON_SHAPE_MANY,
};

/* Marks are commas, colons and opening brackets outside of strings; their number goes to
 * *ret_marks, which may be NULL, when it fits. */
enum json_shape json_shape(struct span text, size_t depth_max, size_t marks_max,
                           size_t *ret_marks);
