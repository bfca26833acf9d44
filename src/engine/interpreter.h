/*
 * Finds out what an interpreter needs, by asking it once: its version, prefixes, library
 * and site-packages folders, and the shared libraries it has mapped. The answer is kept
 * in the user's cache folder, keyed by what would change it (path, inode, size, times of
 * the executable, of the site-packages folders and of ld.so.cache), so that a run asks
 * nobody.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "jail/image.h"

/* python: a path or a name to look for in PATH; NULL: /usr/bin/python3, else python3 in
 * PATH. programs: also what a policy with `processes: exec` may execute (/usr/bin,
 * /bin/sh). Errors: not found, not executable, not CPython >= 3.9, gave no answer in 10
 * s. */
int interpreter_find(const char *python, bool programs, struct image *ret,
                     struct err *err) MUST_USE;
/* The absolute path of what `python` names; a symbolic link at its end is kept. */
int interpreter_locate(const char *python, char ret[IMAGE_PATH_BYTES],
                       struct err *err) MUST_USE;
