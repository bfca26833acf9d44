/*
 * The pax format: a file whose path, size or time does not fit into the old header has a header of
 * its own before it, with lines of "LENGTH KEY=VALUE\n". A path that is no UTF-8 is told as such
 * (hdrcharset=BINARY), which GNU tar, bsdtar and Python read back byte for byte.
 *
 * A writer alone, and by hand: see docs/decisions/0014-a-tar-writer-of-our-own.md.
 */
#include "cell/tar.h"

#include <errno.h>
#include <stdio.h>

#include "base/utf8.h"

enum {
    NAME_BYTES = 100,
    MODE = 0644,
    RECORDS_BYTES = 8 * 1024,
};

static const uint64_t octal_max = 077777777777; /* eleven digits */

/* Of the ustar header; numbers are octal text. */
struct header {
    char name[NAME_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8],
        type, link[100], magic[6], version[2], user[32], group[32], major[8], minor[8],
        prefix[155], unused[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK_BYTES, "a header is one block");

static void
octal(char *field, size_t n, uint64_t value)
{
    for (size_t i = n - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

/* Cut where it does not fit: a record before it has the whole then. */
static int
put_block(struct buf *out, char type, const char *name, uint64_t size, uint64_t mtime)
{
    struct header header = {.type = type};
    unsigned sum = 0;
    size_t n = strlen(name);
    memcpy(header.name, name, n < NAME_BYTES ? n : NAME_BYTES);
    octal(header.mode, sizeof(header.mode), MODE);
    octal(header.uid, sizeof(header.uid), 0);
    octal(header.gid, sizeof(header.gid), 0);
    octal(header.size, sizeof(header.size), size <= octal_max ? size : 0);
    octal(header.mtime, sizeof(header.mtime), mtime);
    memcpy(header.magic, "ustar", sizeof("ustar"));
    memcpy(header.version, "00", sizeof(header.version));
    memset(header.checksum, ' ', sizeof(header.checksum));
    for (size_t i = 0; i < sizeof(header); i++)
        sum += ((const unsigned char *)&header)[i];
    octal(header.checksum, sizeof(header.checksum) - 1, sum);
    return buf_append(out, (const char *)&header, sizeof(header));
}

/* The length counts itself. */
static int
put_record(struct buf *out, const char *key, const char *value)
{
    char digits[24];
    size_t rest = strlen(key) + strlen(value) + sizeof(" =\n") - 1, n = rest;
    int width;
    do {
        width = snprintf(digits, sizeof(digits), "%zu", n);
        if (rest + (size_t)width == n)
            break;
        n = rest + (size_t)width;
    } while (true);
    return buf_printf(out, "%zu %s=%s\n", n, key, value);
}

static bool
is_text(struct span path)
{
    while (path.n > 0) {
        int length = utf8_next(path);
        if (length <= 0)
            return false;
        path.p += length;
        path.n -= (size_t)length;
    }
    return true;
}

static bool
is_ascii(struct span path)
{
    for (size_t i = 0; i < path.n; i++)
        if ((unsigned char)path.p[i] >= 0x80)
            return false;
    return true;
}

static int
put_records(struct buf *records, const char *path, uint64_t bytes)
{
    char number[24];
    struct span text = span_of(path);
    int r = 0;
    if (!is_text(text))
        r = put_record(records, "hdrcharset", "BINARY");
    if (r == 0 && (text.n > NAME_BYTES || !is_ascii(text)))
        r = put_record(records, "path", path);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
    if (r == 0 && bytes > octal_max)
        r = put_record(records, "size", number);
    return r;
}

int
tar_put_header(struct buf *out, const char *path, uint64_t bytes, int64_t mtime_s)
{
    AUTO_BUF struct buf records = {0};
    buf_init(&records, RECORDS_BYTES);
    uint64_t mtime =
        mtime_s > 0 && (uint64_t)mtime_s <= octal_max ? (uint64_t)mtime_s : 0;
    int r = put_records(&records, path, bytes);
    if (r == 0 && records.n > 0)
        r = put_block(out, 'x', "pax", records.n, mtime);
    if (r == 0 && records.n > 0)
        r = buf_append(out, records.p, records.n);
    if (r == 0 && records.n > 0)
        r = tar_put_padding(out, records.n);
    return r < 0 ? r : put_block(out, '0', path, bytes, mtime);
}

int
tar_put_padding(struct buf *out, uint64_t bytes)
{
    static const char zeros[TAR_BLOCK_BYTES];
    size_t over = bytes % TAR_BLOCK_BYTES;
    return over == 0 ? 0 : buf_append(out, zeros, TAR_BLOCK_BYTES - over);
}

int
tar_put_end(struct buf *out)
{
    static const char zeros[2 * TAR_BLOCK_BYTES];
    return buf_append(out, zeros, sizeof(zeros));
}
