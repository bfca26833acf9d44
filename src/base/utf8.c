/* Strict UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF). */
#include "base/utf8.h"

static const char replacement[] = "\xEF\xBF\xBD";

/* Row: lead byte range, length, and the range that the second byte must be in. */
static const struct lead {
    unsigned char from, to, length, second_from, second_to;
} leads[] = {
    {0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

/* Like utf8_next, and says how many bytes belong together when ill-formed or
 * unfinished. */
static int
scan(struct span s, size_t *ret_subpart)
{
    const unsigned char *p = (const unsigned char *)s.p;
    const struct lead *lead = NULL;
    *ret_subpart = 1;
    for (size_t i = 0; i < sizeof(leads) / sizeof(*leads) && !lead; i++)
        if (p[0] >= leads[i].from && p[0] <= leads[i].to)
            lead = &leads[i];
    if (!lead)
        return 0;
    for (size_t i = 1; i < lead->length; i++) {
        if (i == s.n) {
            *ret_subpart = i;
            return -1;
        }
        unsigned char from = i == 1 ? lead->second_from : 0x80;
        unsigned char to = i == 1 ? lead->second_to : 0xBF;
        if (p[i] < from || p[i] > to) {
            *ret_subpart = i;
            return 0;
        }
    }
    *ret_subpart = lead->length;
    return lead->length;
}

int
utf8_next(struct span s)
{
    size_t subpart;
    return s.n == 0 ? 0 : scan(s, &subpart);
}

int
utf8_append_valid(struct buf *out, struct span s, uint64_t *ret_replaced)
{
    uint64_t replaced = 0;
    const char *run = s.p; /* the valid bytes not copied yet start here */
    while (s.n > 0) {
        size_t subpart;
        if (*(const unsigned char *)s.p < 0x80) {
            s.p++, s.n--;
            continue;
        }
        int length = scan(s, &subpart);
        if (length <= 0) {
            int r = buf_append(out, run, (size_t)(s.p - run));
            if (r == 0)
                r = buf_append(out, replacement, sizeof(replacement) - 1);
            if (r < 0)
                return r;
            replaced++;
            run = s.p + subpart;
        }
        s.p += subpart;
        s.n -= subpart;
    }
    int r = buf_append(out, run, (size_t)(s.p - run));
    if (r == 0)
        *ret_replaced = replaced;
    return r;
}

size_t
utf8_unfinished_tail(struct span s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        struct span end = {s.p + s.n - back, back};
        if ((*(const unsigned char *)end.p & 0xC0) == 0x80)
            continue; /* a continuation byte: its lead is further left */
        return utf8_next(end) == -1 ? back : 0;
    }
    return 0;
}
