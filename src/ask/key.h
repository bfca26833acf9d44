/* The key of an endpoint: from a file that only its owner can read, or from the environment. It is
 * never an argument, never printed, never recorded. */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

enum { KEY_BYTES_MAX = 4096 };

/* *ret is empty when neither gives one. file: NULL for the variable alone. */
int key_read(const char *file, const char *variable, struct buf *ret,
             struct err *err) MUST_USE;
/* Wipes it, too. */
void key_done(struct buf *key);
/* Every occurrence of the key in the text becomes stars: endpoints quote it in their errors. */
void key_hide(const struct buf *key, char *text);
