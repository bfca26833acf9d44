/*
 * From a PNG to sixels. The file is a hostile cell's: sizes are bounded before anything is
 * allocated for them, zlib inflates into exactly the bytes that the sizes call for, and a file
 * that says anything else is not drawn.
 */
#include "door/sixel.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fd.h"
#include "door/results.h"

enum {
    PIXELS_MAX = 16 << 20,
    SHOWN_WIDTH_MAX = 1000, /* a wider one is shown with every second, third… pixel */
    CHUNKS_MAX = 100000,
    HEAD_BYTES = 8,
    CHUNK_BYTES = 12, /* length, name, checksum */
    BAND = 6,
    LEVELS = 6,
    COLOURS = LEVELS * LEVELS * LEVELS,
    OPAQUE = 255,
};

/* --- the question --- */

/* "\e[?62;4;22c": 4 among the numbers. */
static bool
says_sixel(const char *answer, size_t n)
{
    const char *p = memchr(answer, '?', n), *end = answer + n;
    while (p && p < end && *p != 'c') {
        bool four = end - p > 2 && p[1] == '4' && (p[2] == ';' || p[2] == 'c');
        if (four)
            return true;
        p = memchr(p + 1, ';', (size_t)(end - p - 1));
    }
    return false;
}

static size_t
read_answer(int fd, char *answer, size_t size)
{
    enum { PATIENCE_MS = 200 };
    size_t n = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (n < size && poll(&ready, 1, PATIENCE_MS) == 1) {
        ssize_t got = read(fd, answer + n, 1);
        if (got <= 0 || answer[n++] == 'c')
            break;
    }
    return n;
}

bool
sixel_is_known(int terminal_fd)
{
    static const char question[] = "\x1b[c";
    struct termios before, quiet;
    char answer[128];
    /* In the background it would stop us to change the terminal's manners. */
    if (tcgetpgrp(terminal_fd) != getpgrp() || tcgetattr(terminal_fd, &before) < 0)
        return false;
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (tcsetattr(terminal_fd, TCSAFLUSH, &quiet) < 0)
        return false;
    bool asked = write(terminal_fd, question, sizeof(question) - 1) > 0;
    size_t n = asked ? read_answer(terminal_fd, answer, sizeof(answer)) : 0;
    tcsetattr(terminal_fd, TCSAFLUSH, &before);
    return says_sixel(answer, n);
}

/* --- the picture --- */

struct picture {
    uint32_t width, height, channels; /* of 8 bits */
    uint8_t *rows;                    /* each begins with the number of its filter */
    const uint8_t *palette;           /* of three bytes a colour, or NULL */
    size_t palette_n;
};

static uint32_t
big_end(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Grey, red-green-blue, palette, grey with alpha, all four; 8 bits, not interlaced. */
static bool
take_head(struct span head, struct picture *picture)
{
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    enum { DEPTH = 8, TYPE = 9, INTERLACED = 12, BYTES = 13, PALETTE = 3 };
    if (head.n != BYTES || head.p[DEPTH] != 8 || head.p[INTERLACED] != 0 ||
        (unsigned char)head.p[TYPE] >= sizeof(channels))
        return false;
    picture->width = big_end(head.p);
    picture->height = big_end(head.p + 4);
    picture->channels = channels[(unsigned char)head.p[TYPE]];
    if (head.p[TYPE] == PALETTE)
        picture->palette = (const uint8_t *)head.p; /* PLTE must follow */
    return picture->channels > 0 && picture->width > 0 && picture->height > 0 &&
           picture->width <= PIXELS_MAX && picture->height <= PIXELS_MAX / picture->width;
}

static bool
take_chunks(struct span png, struct picture *picture, struct buf *packed)
{
    bool has_head = false;
    png.p += HEAD_BYTES;
    png.n -= HEAD_BYTES;
    for (int i = 0; i < CHUNKS_MAX && png.n >= CHUNK_BYTES; i++) {
        size_t n = big_end(png.p);
        const char *name = png.p + 4;
        struct span data = {png.p + 8, n};
        if (n > png.n - CHUNK_BYTES)
            return false;
        if (memcmp(name, "IHDR", 4) == 0)
            has_head = take_head(data, picture);
        else if (memcmp(name, "PLTE", 4) == 0) {
            picture->palette = (const uint8_t *)data.p;
            picture->palette_n = n / 3;
        } else if (memcmp(name, "IDAT", 4) == 0 && buf_append(packed, data.p, n) < 0)
            return false;
        if (memcmp(name, "IEND", 4) == 0)
            break;
        png.p += CHUNK_BYTES + n;
        png.n -= CHUNK_BYTES + n;
    }
    return has_head && (!picture->palette || picture->palette_n > 0);
}

static uint8_t
paeth(int left, int up, int corner)
{
    int p = left + up - corner;
    int a = abs(p - left), b = abs(p - up), c = abs(p - corner);
    return (uint8_t)(a <= b && a <= c ? left : b <= c ? up : corner);
}

/* Undoes the filter of each row, in place. */
static bool
unfilter(struct picture *picture)
{
    size_t step = picture->channels, n = step * picture->width;
    const uint8_t *above = NULL;
    for (uint32_t y = 0; y < picture->height; y++) {
        uint8_t *row = picture->rows + y * (n + 1) + 1;
        if (row[-1] > 4)
            return false;
        for (size_t x = 0; x < n; x++) {
            uint8_t left = x >= step ? row[x - step] : 0, up = above ? above[x] : 0;
            uint8_t corner = above && x >= step ? above[x - step] : 0;
            const uint8_t guesses[] = {0, left, up, (uint8_t)((left + up) / 2),
                                       paeth(left, up, corner)};
            row[x] = (uint8_t)(row[x] + guesses[row[-1]]);
        }
        above = row;
    }
    return true;
}

static bool
decode(struct span png, struct picture *picture)
{
    AUTO_BUF struct buf packed = {0};
    buf_init(&packed, png.n);
    if (!take_chunks(png, picture, &packed))
        return false;
    size_t n = ((size_t)picture->channels * picture->width + 1) * picture->height;
    uLongf unpacked = n;
    picture->rows = malloc(n);
    return picture->rows &&
           uncompress(picture->rows, &unpacked, (const Bytef *)buf_span(&packed).p,
                      packed.n) == Z_OK &&
           unpacked == n && unfilter(picture);
}

/* One of the COLOURS, on white where it is transparent. */
static uint8_t
colour_at(const struct picture *picture, uint32_t x, uint32_t y)
{
    size_t n = picture->channels;
    const uint8_t *p = picture->rows + y * (n * picture->width + 1) + 1 + x * n;
    unsigned alpha = n == 2 || n == 4 ? p[n - 1] : OPAQUE, colour = 0;
    const uint8_t *rgb = p;
    if (picture->palette)
        rgb = picture->palette + 3 * (*p < picture->palette_n ? *p : 0U);
    for (size_t i = 0; i < 3; i++) {
        unsigned value = rgb[n <= 2 && !picture->palette ? 0 : i];
        value = (value * alpha + OPAQUE * (OPAQUE - alpha)) / OPAQUE;
        colour = colour * LEVELS + (value * (LEVELS - 1) + OPAQUE / 2) / OPAQUE;
    }
    return (uint8_t)colour;
}

/* --- sixels --- */

static int
put_run(struct buf *out, char sixel, size_t n)
{
    enum { WORTH_IT = 4 };
    if (n >= WORTH_IT)
        return buf_printf(out, "!%zu%c", n, sixel);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = buf_append(out, &sixel, 1);
    return r;
}

/* One colour of a band: six rows of colours, `width` wide. */
static int
put_colour(struct buf *out, const uint8_t *band, size_t width, unsigned colour)
{
    char last = 0;
    size_t run = 0;
    int r = buf_printf(out, "#%u", colour);
    for (size_t x = 0; x <= width && r == 0; x++) {
        unsigned bits = 0;
        for (size_t y = 0; y < BAND && x < width; y++)
            bits |= (unsigned)(band[y * width + x] == colour) << y;
        char sixel = (char)('?' + bits);
        if (x < width && sixel == last) {
            run++;
            continue;
        }
        r = put_run(out, last, run);
        last = sixel;
        run = 1;
    }
    return r < 0 ? r : buf_append(out, "$", 1);
}

static int
put_band(struct buf *out, const struct picture *picture, uint8_t *band, size_t width,
         uint32_t step, uint32_t top)
{
    bool used[COLOURS] = {false};
    for (size_t y = 0; y < BAND; y++)
        for (size_t x = 0; x < width; x++) {
            size_t row = (top + y) * step;
            bool there = row < picture->height;
            uint8_t colour = COLOURS; /* none */
            if (there)
                colour = colour_at(picture, (uint32_t)x * step, (uint32_t)row);
            band[y * width + x] = colour;
            if (there)
                used[colour] = true;
        }
    int r = 0;
    for (unsigned i = 0; i < COLOURS && r == 0; i++)
        if (used[i])
            r = put_colour(out, band, width, i);
    return r < 0 ? r : buf_append(out, "-", 1);
}

static int
put_palette(struct buf *out)
{
    enum { WHOLE = 100, STEP = WHOLE / (LEVELS - 1) };
    int r = 0;
    for (unsigned i = 0; i < COLOURS && r == 0; i++)
        r = buf_printf(out, "#%u;2;%u;%u;%u", i, i / (LEVELS * LEVELS) * STEP,
                       i / LEVELS % LEVELS * STEP, i % LEVELS * STEP);
    return r;
}

static int
put_picture(struct buf *out, const struct picture *picture)
{
    uint32_t step = (picture->width + SHOWN_WIDTH_MAX - 1) / SHOWN_WIDTH_MAX;
    uint32_t width = (picture->width + step - 1) / step;
    uint32_t height = (picture->height + step - 1) / step;
    AUTO_FREE uint8_t *band = malloc((size_t)BAND * width);
    if (!band)
        return -ENOMEM;
    int r = buf_printf(out, "\x1bPq\"1;1;%u;%u", width, height);
    if (r == 0)
        r = put_palette(out);
    for (uint32_t top = 0; top < height && r == 0; top += BAND)
        r = put_band(out, picture, band, width, step, top);
    return r < 0 ? r : buf_append(out, "\x1b\\\n", 3);
}

int
sixel_put(struct span png, struct buf *out)
{
    struct picture picture = {0};
    uint32_t width, height;
    int r = 0;
    if (images_png_size(png, &width, &height) && decode(png, &picture))
        r = put_picture(out, &picture);
    free(picture.rows);
    return r;
}
