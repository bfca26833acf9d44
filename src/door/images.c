/*
 * Images in a terminal's text. Kitty's and iTerm2's protocols take the file as it is; for sixel
 * see sixel.c. Only a terminal that says so is sent any: to another they are pages of noise. What
 * stands between us and it (tmux, screen) passes none of them on.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "door/results.h"
#include "door/sixel.h"

/* A variable that a terminal sets, and the value it begins with; "" is any. */
static const struct sign {
    const char *variable, *value;
    enum images_protocol protocol;
} signs[] = {
    {"KITTY_WINDOW_ID", "", IMAGES_KITTY},
    {"TERM", "xterm-kitty", IMAGES_KITTY},
    {"TERM_PROGRAM", "ghostty", IMAGES_KITTY},
    {"TERM_PROGRAM", "iTerm.app", IMAGES_ITERM2},
    {"LC_TERMINAL", "iTerm2", IMAGES_ITERM2},
    {"TERM_PROGRAM", "WezTerm", IMAGES_ITERM2},
};

static bool
begins(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

enum images_protocol
images_ask(int terminal_fd)
{
    const char *term = getenv("TERM");
    if (!term || strcmp(term, "dumb") == 0 || getenv("TMUX") || begins(term, "screen") ||
        begins(term, "tmux"))
        return IMAGES_NONE;
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
        if (begins(getenv(signs[i].variable), signs[i].value))
            return signs[i].protocol;
    return sixel_is_known(terminal_fd) ? IMAGES_SIXEL : IMAGES_NONE;
}

static uint32_t
big_end(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

bool
images_png_size(struct span png, uint32_t *ret_width, uint32_t *ret_height)
{
    static const char head[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    enum { HEAD_BYTES = sizeof(head) - 1, SIZES_BYTES = 8, SIDE_MAX = 1 << 20 };
    if (png.n < HEAD_BYTES + SIZES_BYTES || memcmp(png.p, head, HEAD_BYTES) != 0)
        return false;
    *ret_width = big_end(png.p + HEAD_BYTES);
    *ret_height = big_end(png.p + HEAD_BYTES + 4);
    return *ret_width > 0 && *ret_height > 0 && *ret_width <= SIDE_MAX &&
           *ret_height <= SIDE_MAX;
}

/* Kitty takes base64 in pieces of at most 4096 characters. */
static int
put_kitty(const char *coded, size_t n, struct buf *out)
{
    enum { PIECE = 4096 };
    int r = 0;
    for (size_t at = 0; at < n && r == 0; at += PIECE) {
        size_t piece = n - at < PIECE ? n - at : PIECE;
        r = buf_printf(out, "\x1b_G%sm=%d;", at == 0 ? "a=T,f=100,q=2," : "",
                       at + piece < n);
        if (r == 0)
            r = buf_append(out, coded + at, piece);
        if (r == 0)
            r = buf_append(out, "\x1b\\", 2);
    }
    return r < 0 ? r : buf_append(out, "\n", 1);
}

static int
put_iterm2(const char *coded, size_t n, size_t bytes_n, struct buf *out)
{
    int r = buf_printf(out, "\x1b]1337;File=inline=1;size=%zu:", bytes_n);
    if (r == 0)
        r = buf_append(out, coded, n);
    return r < 0 ? r : buf_append(out, "\a\n", 2);
}

int
images_put(enum images_protocol protocol, struct span png, struct buf *out)
{
    uint32_t width, height;
    if (protocol == IMAGES_NONE || !images_png_size(png, &width, &height))
        return 0;
    if (protocol == IMAGES_SIXEL)
        return sixel_put(png, out);
    size_t n = sodium_base64_ENCODED_LEN(png.n, sodium_base64_VARIANT_ORIGINAL);
    AUTO_FREE char *coded = malloc(n);
    if (!coded)
        return 0; /* it is saved, and named */
    sodium_bin2base64(coded, n, (const unsigned char *)png.p, png.n,
                      sodium_base64_VARIANT_ORIGINAL);
    return protocol == IMAGES_KITTY ? put_kitty(coded, n - 1, out)
                                    : put_iterm2(coded, n - 1, png.n, out);
}
