/*
 * What a program shows, on its way out: display.py makes items of objects, this hands them to the
 * supervisor. Costs a program that shows nothing a search in its source and a look at a table.
 */
#pragma once

#include "guest/wire.h"

/* In a zygote: what cells would load each for itself. */
void display_prepare(void);
/* Before the program, and in a session before each run: where items go, and `display` among the builtins when its source (bytes)
 * has that name in it and nobody else has put one there. */
void display_start(struct claims_memory *memory, uint32_t flags, PyObject *source);
/* An import is about to happen: libraries that have been loaded by now are told where they are. */
void display_on_import(PyObject *arguments);
/* Splits a source (bytes) into the program and its last expression (NULL when there is none):
 * both new. -1 with an exception whose traceback is the program's: none. */
int display_split(PyObject *source, const char *path, PyObject **ret_body,
                  PyObject **ret_last);
/* The value of the last expression. -1 with an exception that is no Exception: an interrupt, an
 * exit; what else goes wrong is told in the item. */
int display_last(PyObject *value);
/* Figures that are still open; as display_last, but an exception that was set is kept. */
int display_end(void);
/* Answers a question about a source (bytes), in an item: which names could follow it, or whether it
 * is whole. names: of __main__. An exception is left set: there is no answer then. */
void display_complete(PyObject *source, const char *kind, PyObject *names);
