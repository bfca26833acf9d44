/*
 * Cuts frames out of a stream of bytes and turns them into JSON. Everything is from
 * outside: the length is checked before a byte is kept for it, depth and number of values
 * before the parser sees them.
 */
#include "engine/protocol.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/json_shape.h"

int
protocol_frame(struct span bytes, size_t max, struct span *ret_payload, struct err *err)
{
    *ret_payload = (struct span){NULL, 0};
    if (bytes.n < PROTOCOL_HEADER_BYTES)
        return 0;
    size_t n = 0;
    for (size_t i = 0; i < PROTOCOL_HEADER_BYTES; i++)
        n = n << 8 | (unsigned char)bytes.p[i];
    if (n == 0)
        return err_set(err, -EBADMSG, "a frame is empty");
    if (n > max)
        return err_set(err, -EMSGSIZE, "a frame of %zu bytes is larger than %zu", n, max);
    *ret_payload = (struct span){bytes.p + PROTOCOL_HEADER_BYTES, n};
    return bytes.n - PROTOCOL_HEADER_BYTES >= n;
}

int
protocol_load(struct span payload, size_t marks_max, json_t **ret, struct err *err)
{
    static const char *const faults[] = {
        [JSON_SHAPE_OPEN_STRING] = "a string does not end",
        [JSON_SHAPE_DEEP] = "it is nested too deep",
        [JSON_SHAPE_MANY] = "it holds too many values",
    };
    enum json_shape shape = json_shape(payload, PROTOCOL_DEPTH_MAX, marks_max, NULL);
    if (shape != JSON_SHAPE_FITS)
        return err_set(err, -EBADMSG, "a frame is refused: %s", faults[shape]);
    json_error_t why;
    json_t *root =
        json_loadb(payload.p, payload.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!root)
        return err_set(err, -EBADMSG, "a frame is not JSON: %s", why.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(err, -EBADMSG, "a frame is not a JSON object");
    }
    *ret = root;
    return 0;
}

static int
append_base64(struct span text, const char *name, struct buf *out, struct err *err)
{
    size_t most = text.n / 4 * 3 + 3, n;
    int r = buf_reserve(out, most);
    if (r < 0)
        return err_set(err, r, "no room for '%s'", name);
    if (sodium_base642bin((unsigned char *)out->p + out->n, most, text.p, text.n, NULL,
                          &n, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
        return err_set(err, -EINVAL, "'%s_base64' is not base64", name);
    out->n += n;
    out->p[out->n] = '\0';
    return 0;
}

int
protocol_get_data(const json_t *object, const char *name, struct buf *out,
                  bool *ret_given, struct err *err)
{
    char other[64];
    snprintf(other, sizeof(other), "%s_base64", name);
    const json_t *text = json_object_get(object, name);
    const json_t *coded = json_object_get(object, other);
    *ret_given = text || coded;
    if (text && coded)
        return err_set(err, -EINVAL, "'%s' and '%s' are both given", name, other);
    if (!text && !coded)
        return 0;
    const json_t *given = text ? text : coded;
    if (!json_is_string(given))
        return err_set(err, -EINVAL, "'%s' is not a string", text ? name : other);
    struct span s = {json_string_value(given), json_string_length(given)};
    if (coded)
        return append_base64(s, name, out, err);
    int r = buf_append(out, s.p, s.n);
    return r < 0 ? err_set(err, r, "no room for '%s'", name) : 0;
}
