/* libFuzzer: a PNG of a hostile cell, drawn for a terminal. What comes out is nothing, or one whole
 * sixel string of printable characters. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "door/sixel.h"

enum { OUT_BYTES_MAX = 512 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char start[] = "\x1bPq", end[] = "\x1b\\\n";
    enum { START = sizeof(start) - 1, END = sizeof(end) - 1 };
    AUTO_BUF struct buf out = {0};
    buf_init(&out, OUT_BYTES_MAX);
    /* Of its exact size: what is read behind it is seen. */
    AUTO_FREE char *png = malloc(n + 1);
    if (!png)
        abort();
    memcpy(png, bytes, n);
    if (sixel_put((struct span){png, n}, &out) < 0)
        abort();
    if (out.n == 0)
        return 0;
    if (out.n < START + END || memcmp(out.p, start, START) != 0 ||
        memcmp(out.p + out.n - END, end, END) != 0)
        abort();
    for (size_t i = START; i < out.n - END; i++)
        if (out.p[i] < ' ' || out.p[i] > '~')
            abort();
    return 0;
}
