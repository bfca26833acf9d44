/* Stricter than the filter for a cell's output: no colours, no carriage returns, no bidi. */
#include "door/ask_text.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

/* First and last of what is shown instead of obeyed. */
static const struct {
    uint32_t first, last;
} shown[] = {
    {0x00, 0x08},     {0x0B, 0x1F},     {0x7F, 0x9F},       {0xAD, 0xAD},
    {0x061C, 0x061C}, {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x2069},
    {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
};

static uint32_t
decode(const char *p, int n)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = (unsigned char)p[0] & masks[n];
    for (int i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3FU);
    return c;
}

static bool
is_shown(uint32_t c)
{
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        if (c >= shown[i].first && c <= shown[i].last)
            return true;
    return false;
}

int
ask_text_append(struct span text, struct buf *out)
{
    int r = 0;
    while (r == 0 && text.n > 0) {
        int n = utf8_next(text);
        uint32_t c = n > 0 ? decode(text.p, n) : (unsigned char)text.p[0];
        if (n > 0 && !is_shown(c))
            r = buf_append(out, text.p, (size_t)n);
        else
            r = buf_printf(out, n > 0 ? "\\u%04x" : "\\x%02x", c);
        text.p += n > 0 ? n : 1;
        text.n -= n > 0 ? (size_t)n : 1;
    }
    return r;
}
