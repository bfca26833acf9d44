/*
 * What validation found, as data: a finding, a bounded list of them, and the verdict.
 * Text in a finding may come from hostile code: it is made printable as it is added, so
 * that whoever shows it need not think of terminals.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "check/rules.h"

enum {
    FINDINGS_MAX = 1000, /* kept; the rest is counted */
    FINDINGS_RESERVED =
        16, /* of each rule there is room for so many, whatever floods the list */
    FINDING_TEXT_BYTES = 400,
    FINDING_EXCERPT_BYTES = 240,
};

enum finding_layer { LAYER_BYTES, LAYER_AST };

/* Lines and columns count from 1, columns in code points, the end is exclusive; 0:
 * unknown. */
struct place {
    int line, column, end_line, end_column;
};

struct finding {
    uint8_t rule;     /* enum check_rule_id */
    uint8_t severity; /* enum check_severity, never CHECK_OFF */
    uint8_t layer;    /* enum finding_layer */
    struct place at;
    char text[FINDING_TEXT_BYTES];       /* one sentence without a full stop */
    char excerpt[FINDING_EXCERPT_BYTES]; /* of the source line; "" when there is none */
    int excerpt_from; /* the excerpt's first character is this column of the line */
};

struct findings {
    struct finding *list; /* owned */
    size_t n, capacity;
    uint64_t dropped;             /* found and not kept */
    uint64_t counts[CHECK_RULES]; /* of all, kept or not, that are not off */
    uint32_t kept[CHECK_RULES];
};

enum check_mode {
    CHECK_ENFORCE,
    CHECK_WARN,
    CHECK_SILENT
}; /* as enum policy_validation */

struct check_settings {
    enum check_mode mode;
    uint8_t severity[CHECK_RULES]; /* enum check_severity */
};

/* Adds one with the severity that the settings give its rule; CHECK_OFF adds nothing.
 * -ENOMEM. */
int findings_add(struct findings *findings, const struct check_settings *settings,
                 const struct finding *finding) MUST_USE;
/* `more` of a rule that were seen and not sent: they count in the verdict. */
void findings_count(struct findings *findings, const struct check_settings *settings,
                    unsigned rule, uint64_t more);
void findings_done(struct findings *findings);

/* Enforced and an error among them: the code must not run. */
bool check_rejects(const struct check_settings *settings,
                   const struct findings *findings);
/* The first that decided the verdict, or NULL. */
const struct finding *check_reason(const struct findings *findings);
/* "line 3: process-start: …, and 2 more" for outcomes and logs. */
void check_summary(const struct findings *findings, char *text, size_t n);

/* Bytes as printable UTF-8 on one line, cut to fit before a character: what is invalid,
 * controls a terminal or changes the direction of text becomes one '?'. */
void check_printable(struct span bytes, char *text, size_t n);
