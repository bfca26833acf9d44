/*
 * Bytes that are not source text. CPython would meet them one by one in its tokenizer, in
 * the cell; here they cost no cell, and the sentence says what is wrong with which byte.
 */
#include "check/bytes.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"

bool
check_size(struct span text, uint64_t most_bytes, struct finding *ret)
{
    char limit[UNITS_TEXT_BYTES];
    if (text.n <= most_bytes)
        return false;
    *ret = (struct finding){.rule = RULE_SOURCE_SIZE, .layer = LAYER_BYTES};
    snprintf(ret->text, sizeof(ret->text),
             "the source has %zu bytes; the policy takes %s (source_size)", text.n,
             format_bytes(most_bytes, limit));
    return true;
}

static bool
found(struct source *source, unsigned rule, struct place at, const char *text,
      struct finding *ret)
{
    *ret = (struct finding){.rule = (uint8_t)rule, .layer = LAYER_BYTES, .at = at};
    snprintf(ret->text, sizeof(ret->text), "%s", text);
    source_excerpt(source, ret);
    return true;
}

static bool
check_nul(struct source *source, struct finding *ret)
{
    const char *nul =
        source->text.n > 0 ? memchr(source->text.p, '\0', source->text.n) : NULL;
    if (!nul)
        return false;
    return found(source, RULE_SOURCE_ENCODING,
                 source_place(source, (size_t)(nul - source->text.p)),
                 "a NUL byte, which source text cannot hold", ret);
}

static bool
check_cookie(struct source *source, struct finding *ret)
{
    char text[FINDING_TEXT_BYTES];
    const char *name = source->encoding_name;
    struct place at = {.line = source->cookie_line,
                       .column = 1,
                       .end_line = source->cookie_line,
                       .end_column = 2};
    if (source->encoding == SOURCE_HIDING) {
        snprintf(text, sizeof(text),
                 "encoding '%s' gives ordinary characters another meaning: what is read "
                 "is not "
                 "what would run",
                 name);
        return found(source, RULE_OBFUSCATION, at, text, ret);
    }
    if (source->encoding == SOURCE_UNKNOWN) {
        snprintf(text, sizeof(text),
                 "encoding '%s' is not one that is taken: save it as UTF-8", name);
        return found(source, RULE_SOURCE_ENCODING, at, text, ret);
    }
    if (source->bom && source->encoding != SOURCE_UTF8) {
        snprintf(text, sizeof(text),
                 "encoding '%s' is declared, and the byte order mark says UTF-8", name);
        return found(source, RULE_SOURCE_ENCODING, at, text, ret);
    }
    return false;
}

static bool
check_text(struct source *source, struct finding *ret)
{
    char text[FINDING_TEXT_BYTES];
    struct span left = source->text;
    bool ascii = strcmp(source->encoding_name, "ascii") == 0 ||
                 strcmp(source->encoding_name, "us-ascii") == 0;
    if (source->encoding != SOURCE_UTF8 && !ascii)
        return false;
    while (left.n > 0) {
        int length = utf8_next(left);
        if (length <= 0 || (ascii && length > 1)) {
            snprintf(text, sizeof(text), "byte 0x%02x is not %s here",
                     (unsigned)(unsigned char)left.p[0], ascii ? "ASCII" : "valid UTF-8");
            size_t offset = (size_t)(left.p - source->text.p);
            return found(source, RULE_SOURCE_ENCODING, source_place(source, offset), text,
                         ret);
        }
        left.p += length;
        left.n -= (size_t)length;
    }
    return false;
}

bool
check_bytes(struct source *source, uint64_t most_bytes, struct finding *ret)
{
    return check_size(source->text, most_bytes, ret) || check_nul(source, ret) ||
           check_cookie(source, ret) || check_text(source, ret);
}
