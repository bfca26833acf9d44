/* Writes frames straight into the buffer that is sent: no tree, one copy. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "engine/protocol.h"

int
protocol_begin(struct buf *out, size_t *ret_at)
{
    static const char header[PROTOCOL_HEADER_BYTES] = {0};
    size_t at = out->n;
    int r = buf_append(out, header, sizeof(header));
    if (r == 0)
        *ret_at = at;
    return r;
}

int
protocol_end(struct buf *out, size_t at, int r)
{
    size_t n = out->n - at - PROTOCOL_HEADER_BYTES;
    if (r == 0 && n > PROTOCOL_REPLY_BYTES_MAX)
        r = -ENOSPC;
    if (r < 0) {
        out->n = at;
        out->p[at] = '\0';
        return r;
    }
    for (size_t i = PROTOCOL_HEADER_BYTES; i-- > 0; n >>= 8)
        out->p[at + i] = (char)(n & 0xff);
    return 0;
}

/* What JSON cannot hold as it is. */
static int
put_escape(struct buf *out, unsigned char c)
{
    static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    for (size_t i = 0; i + 1 < sizeof(letters) - 1; i += 2)
        if ((unsigned char)letters[i] == c)
            return buf_append(out, (const char[]){'\\', letters[i + 1]}, 2);
    return buf_printf(out, "\\u%04x", c);
}

/* Length of what may be copied as it stands, from the front; -EILSEQ for what is not
 * UTF-8. */
static ssize_t
plain_run(struct span s)
{
    const char *p = s.p, *end = s.p + s.n;
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == '"' || c == '\\')
            break;
        if (c < 0x80) {
            p++;
            continue;
        }
        int n = utf8_next((struct span){p, (size_t)(end - p)});
        if (n <= 0)
            return -EILSEQ;
        p += n;
    }
    return p - s.p;
}

static int
put_text(struct buf *out, struct span text)
{
    int r = buf_append(out, "\"", 1);
    while (r == 0 && text.n > 0) {
        ssize_t run = plain_run(text);
        if (run < 0)
            return (int)run;
        r = buf_append(out, text.p, (size_t)run);
        text.p += run;
        text.n -= (size_t)run;
        if (r == 0 && text.n > 0) {
            r = put_escape(out, (unsigned char)text.p[0]);
            text.p++;
            text.n--;
        }
    }
    return r < 0 ? r : buf_append(out, "\"", 1);
}

int
protocol_put_text(struct buf *out, struct span text)
{
    size_t before = out->n;
    int r = put_text(out, text);
    if (r < 0)
        out->n = before;
    return r;
}

static int
put_base64(struct buf *out, struct span bytes)
{
    size_t n = sodium_base64_ENCODED_LEN(bytes.n, sodium_base64_VARIANT_ORIGINAL);
    int r = buf_append(out, "\"", 1);
    if (r == 0)
        r = buf_reserve(out, n);
    if (r < 0)
        return r;
    sodium_bin2base64(out->p + out->n, n, (const unsigned char *)bytes.p, bytes.n,
                      sodium_base64_VARIANT_ORIGINAL);
    out->n += n - 1; /* less its NUL */
    return buf_append(out, "\"", 1);
}

int
protocol_put_data(struct buf *out, const char *name, struct span bytes)
{
    size_t before = out->n;
    int r = buf_printf(out, "\"%s\":", name);
    if (r == 0)
        r = protocol_put_text(out, bytes);
    if (r != -EILSEQ)
        return r;
    out->n = before;
    r = buf_printf(out, "\"%s_base64\":", name);
    return r < 0 ? r : put_base64(out, bytes);
}

json_t *
protocol_base64(struct span bytes)
{
    size_t n = sodium_base64_ENCODED_LEN(bytes.n, sodium_base64_VARIANT_ORIGINAL);
    AUTO_FREE char *text = malloc(n);
    if (!text)
        return NULL;
    sodium_bin2base64(text, n, (const unsigned char *)bytes.p, bytes.n,
                      sodium_base64_VARIANT_ORIGINAL);
    return json_stringn(text, n - 1);
}
