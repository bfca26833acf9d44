/* Words from outside, for error sentences: shown safely, compared to known ones. */
#include "policy/internal.h"

#include "base/utf8.h"

enum { DISTANCE_WORD_MAX = 32 };

/* C0, DEL and the C1 block (as UTF-8): a terminal obeys these instead of showing them. */
static bool
is_control(struct span s, int length)
{
    unsigned char first = (unsigned char)s.p[0];
    if (length == 1)
        return first < 0x20 || first == 0x7f;
    return length == 2 && first == 0xc2 && (unsigned char)s.p[1] < 0xa0;
}

const char *
quote(struct span text, char out[QUOTE_BYTES])
{
    static const char cut[] = "...";
    size_t n = 0;
    while (text.n > 0) {
        int length = utf8_next(text);
        bool shown = length > 0 && !is_control(text, length);
        size_t step = length > 0 ? (size_t)length : 1;
        if (n + step + sizeof(cut) > QUOTE_BYTES) {
            memcpy(out + n, cut, sizeof(cut) - 1);
            n += sizeof(cut) - 1;
            break;
        }
        if (shown)
            memcpy(out + n, text.p, step);
        else
            out[n] = '?';
        n += shown ? step : 1;
        text.p += step;
        text.n -= step;
    }
    out[n] = '\0';
    return out;
}

static size_t
least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

size_t
edit_distance(struct span a, struct span b)
{
    size_t row[DISTANCE_WORD_MAX + 1];
    a.n = a.n < DISTANCE_WORD_MAX ? a.n : DISTANCE_WORD_MAX;
    b.n = b.n < DISTANCE_WORD_MAX ? b.n : DISTANCE_WORD_MAX;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a.p[i - 1] == b.p[j - 1] ? 0 : 1);
            row[j] = least(change, above + 1, row[j - 1] + 1);
            diagonal = above;
        }
    }
    return row[b.n];
}
