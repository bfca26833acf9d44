/*
 * Source text as CPython sees it: its encoding (PEP 263), its lines, and columns.
 * CPython's tree counts columns in bytes of the line as UTF-8, whatever the file's
 * encoding; people and SARIF count characters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "check/finding.h"

enum source_encoding {
    SOURCE_UTF8,   /* declared, or by default */
    SOURCE_LATIN1, /* every byte is one character */
    SOURCE_OTHER,  /* another that CPython takes */
    SOURCE_HIDING, /* one in which ASCII bytes may mean something else */
    SOURCE_UNKNOWN,
};

enum { SOURCE_NAME_BYTES = 40 };

struct source {
    struct span text;
    enum source_encoding encoding;
    char encoding_name[SOURCE_NAME_BYTES]; /* as declared; "" by default */
    int cookie_line;                       /* 0: no coding comment */
    bool bom;
    /* Where the last line that was asked for begins: findings come in the order of
     * lines. */
    int line;
    size_t offset;
    size_t *starts; /* of all lines, made when somebody goes back; owned */
    size_t starts_n;
};

void source_init(struct source *source, struct span text);
void source_done(struct source *source);
/* The line without its end; false when there is none. */
bool source_line(struct source *source, int line, struct span *ret);
/* The place of a byte of the text. */
struct place source_place(struct source *source, size_t offset);
/* A column of CPython's tree (0-based bytes of the line as UTF-8) as a 1-based
 * character. */
int source_column(struct source *source, int line, int utf8_bytes);
/* Fills the excerpt of a finding from its line: around its column when the line is
 * long. */
void source_excerpt(struct source *source, struct finding *finding);
