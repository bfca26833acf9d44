/* Verdicts as people, programs and other tools read them: text, JSON, SARIF 2.1.0. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "check/finding.h"

/* One file that was checked. */
struct checked {
    const char *name;
    struct findings findings;
    bool rejected;
    char failure[256]; /* why nothing could be said of it; "" when something could */
};

int check_render_text(const struct checked *files, size_t n, bool coloured,
                      struct buf *out) MUST_USE;
/* The first `most` findings alone, as check_render_text shows them. */
int check_render_findings(const char *name, const struct findings *findings, size_t most,
                          bool coloured, struct buf *out) MUST_USE;
int check_render_json(const struct checked *files, size_t n, struct buf *out) MUST_USE;
int check_render_sarif(const struct checked *files, size_t n, struct buf *out) MUST_USE;

/* The findings as an array: of outcomes too. NULL: no memory. */
json_t *check_findings_json(const struct findings *findings);
/* The inverse, of bytes from elsewhere: false when it is no such array. */
bool check_findings_take(const json_t *list, struct findings *ret) MUST_USE;
/* The rules as the Markdown table that the manual holds. */
int check_markdown(struct buf *out) MUST_USE;
/* A document onto the end of out, indented, with a line end. Takes the reference. */
int check_append_json(json_t *document, struct buf *out) MUST_USE;
