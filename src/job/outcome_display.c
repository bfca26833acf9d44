/*
 * Items that a run has shown, as data and as JSON. A form is what its MIME type says: JSON is
 * parsed here, with bounds on its depth and on its number of values, so that whoever reads the
 * outcome need not fear it; text is made valid UTF-8; the rest are bytes, written as base64.
 */
#include "job/outcome_display.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json_shape.h"
#include "base/utf8.h"
#include "job/outcome_parts.h"

enum { WORST_UTF8 = 3 }; /* a replaced byte becomes three */

static bool
begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool
ends(const char *text, const char *with)
{
    size_t n = strlen(text), with_n = strlen(with);
    return n >= with_n && strcmp(text + n - with_n, with) == 0;
}

enum display_form
display_form_of(const char *mime)
{
    static const char *const binary[] = {"image/", "audio/", "video/", "application/pdf",
                                         "application/octet-stream"};
    if (strcmp(mime, "application/json") == 0 || ends(mime, "+json"))
        return DISPLAY_JSON;
    if (ends(mime, "+xml"))
        return DISPLAY_TEXT;
    for (size_t i = 0; i < sizeof(binary) / sizeof(*binary); i++)
        if (begins(mime, binary[i]))
            return DISPLAY_BINARY;
    return DISPLAY_TEXT;
}

bool
display_mime_is_sound(const char *mime)
{
    static const char signs[] = "!#$&^_.+-";
    const char *slash = strchr(mime, '/');
    if (!slash || slash == mime || slash[1] == '\0' || strlen(mime) >= DISPLAY_MIME_BYTES)
        return false;
    for (const char *p = mime; *p != '\0'; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z' && p > slash);
        if (p != slash && !letter && !(*p >= '0' && *p <= '9') && !strchr(signs, *p))
            return false;
    }
    return true;
}

/* --- JSON from outside --- */

static json_t *
load(struct displays *displays, struct span text, size_t bytes_max)
{
    size_t marks;
    if (text.n > bytes_max ||
        json_shape(text, DISPLAY_JSON_DEPTH_MAX, DISPLAY_MARKS_MAX - displays->marks,
                   &marks) != JSON_SHAPE_FITS)
        return NULL;
    json_t *value = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (value)
        displays->marks += marks;
    return value;
}

/* --- items --- */

struct display_item *
display_item_new(bool is_main)
{
    struct display_item *item = calloc(1, sizeof(*item));
    if (item)
        item->is_main = is_main;
    return item;
}

void
display_item_free(struct display_item *item)
{
    if (!item)
        return;
    for (size_t i = 0; i < item->parts_n; i++) {
        buf_done(&item->parts[i].bytes);
        json_decref(item->parts[i].json);
    }
    json_decref(item->metadata);
    free(item);
}

void
displays_done(struct displays *displays)
{
    for (size_t i = 0; i < displays->items_n; i++)
        display_item_free(displays->items[i]);
    *displays = (struct displays){0};
}

bool
displays_are_full(const struct displays *displays)
{
    return displays->items_n + displays->dropped >= DISPLAY_ITEMS_MAX ||
           displays->bytes >= DISPLAY_BYTES_MAX;
}

static bool
is_there(const struct display_item *item, const char *mime)
{
    for (size_t i = 0; i < item->parts_n; i++)
        if (strcmp(item->parts[i].mime, mime) == 0)
            return true;
    return false;
}

static int
put_bytes(struct display_part *part, enum display_form form, struct span bytes)
{
    uint64_t replaced;
    if (form == DISPLAY_BINARY) {
        buf_init(&part->bytes, bytes.n);
        return buf_append(&part->bytes, bytes.p, bytes.n);
    }
    buf_init(&part->bytes, WORST_UTF8 * bytes.n + 1);
    return utf8_append_valid(&part->bytes, bytes, &replaced);
}

int
display_item_put(struct displays *displays, struct display_item *item, const char *mime,
                 struct span bytes, uint64_t omitted_bytes)
{
    if (!display_mime_is_sound(mime) || is_there(item, mime) ||
        item->parts_n == DISPLAY_PARTS_MAX)
        return 0;
    struct display_part *part = &item->parts[item->parts_n++];
    enum display_form form = display_form_of(mime);
    memcpy(part->mime, mime, strlen(mime) + 1);
    part->omitted_bytes = omitted_bytes;
    if (omitted_bytes > 0)
        return 0;
    bool fits = bytes.n <= DISPLAY_ITEM_BYTES_MAX &&
                bytes.n <= DISPLAY_BYTES_MAX - displays->bytes;
    if (fits && form == DISPLAY_JSON)
        part->json = load(displays, bytes, DISPLAY_JSON_BYTES_MAX);
    if (!fits || (form == DISPLAY_JSON && !part->json)) {
        part->omitted_bytes = bytes.n > 0 ? bytes.n : 1;
        return 0;
    }
    displays->bytes += bytes.n;
    return form == DISPLAY_JSON ? 0 : put_bytes(part, form, bytes);
}

void
display_item_describe(struct displays *displays, struct display_item *item,
                      struct span json)
{
    if (item->metadata)
        return;
    item->metadata = load(displays, json, DISPLAY_METADATA_BYTES_MAX);
    if (item->metadata && json_is_object(item->metadata) &&
        json_object_size(item->metadata) > 0)
        return;
    json_decref(item->metadata);
    item->metadata = NULL;
}

bool
displays_add(struct displays *displays, struct display_item *item)
{
    if (item->parts_n == 0 || displays->items_n == DISPLAY_ITEMS_MAX) {
        displays->dropped++;
        display_item_free(item);
        return false;
    }
    for (size_t i = 0; i < displays->items_n && item->is_main; i++)
        item->is_main = !displays->items[i]->is_main; /* a run has one */
    displays->items[displays->items_n++] = item;
    return true;
}

const struct display_part *
display_item_part(const struct display_item *item, const char *mime)
{
    for (size_t i = 0; i < item->parts_n; i++)
        if (item->parts[i].omitted_bytes == 0 && strcmp(item->parts[i].mime, mime) == 0)
            return &item->parts[i];
    return NULL;
}

const struct buf *
displays_result(const struct displays *displays)
{
    for (size_t i = 0; i < displays->items_n; i++) {
        const struct display_part *text =
            display_item_part(displays->items[i], "text/plain");
        if (displays->items[i]->is_main)
            return text ? &text->bytes : NULL;
    }
    return NULL;
}

/* --- to JSON --- */

static json_t *
part_json(const struct display_part *part)
{
    struct span bytes = buf_span(&part->bytes);
    if (part->json)
        return json_incref(part->json);
    if (display_form_of(part->mime) != DISPLAY_BINARY)
        return json_stringn_nocheck(bytes.p, bytes.n);
    return json_base64(bytes);
}

static bool
put_parts(const struct display_item *item, json_t *data, json_t *omitted)
{
    for (size_t i = 0; i < item->parts_n; i++) {
        const struct display_part *part = &item->parts[i];
        bool gone = part->omitted_bytes > 0;
        if (json_object_set_new(gone ? omitted : data, part->mime,
                                gone ? json_u64(part->omitted_bytes) : part_json(part)) <
            0)
            return false;
    }
    return true;
}

json_t *
display_item_json(const struct display_item *item)
{
    json_t *data = json_object(), *omitted = json_object();
    json_t *object = json_pack("{s:s, s:O}", "type", item->is_main ? "result" : "display",
                               "data", data);
    bool whole = object && omitted && put_parts(item, data, omitted);
    if (whole && item->is_main)
        whole = json_object_set_new(object, "main", json_true()) == 0;
    if (whole && item->metadata)
        whole = json_object_set(object, "metadata", item->metadata) == 0;
    if (whole && json_object_size(omitted) > 0)
        whole = json_object_set(object, "omitted", omitted) == 0;
    json_decref(data);
    json_decref(omitted);
    if (whole)
        return object;
    json_decref(object);
    return NULL;
}

int
display_item_write(const struct display_item *item, struct buf *out)
{
    enum { REAL_DIGITS = 15 };
    json_t *value = display_item_json(item);
    AUTO_FREE char *text =
        value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
    json_decref(value);
    return text ? buf_append(out, text, strlen(text)) : -ENOMEM;
}

json_t *
displays_json(const struct displays *displays)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < displays->items_n; i++)
        if (json_array_append_new(list, display_item_json(displays->items[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* --- and back --- */

static bool
take_part(struct displays *displays, struct display_item *item, const char *mime,
          const json_t *value)
{
    enum display_form form = display_form_of(mime);
    size_t before = item->parts_n, n = json_string_length(value);
    if (form == DISPLAY_JSON) {
        AUTO_FREE char *text =
            json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        return text && display_item_put(displays, item, mime, span_of(text), 0) == 0 &&
               item->parts_n > before;
    }
    if (!json_is_string(value))
        return false;
    if (form == DISPLAY_TEXT)
        return display_item_put(displays, item, mime,
                                (struct span){json_string_value(value), n}, 0) == 0 &&
               item->parts_n > before;
    AUTO_FREE char *bytes = malloc(n + 1);
    return bytes &&
           sodium_base642bin((unsigned char *)bytes, n + 1, json_string_value(value), n,
                             NULL, &n, NULL, sodium_base64_VARIANT_ORIGINAL) == 0 &&
           display_item_put(displays, item, mime, (struct span){bytes, n}, 0) == 0 &&
           item->parts_n > before;
}

static bool
take_omitted(struct displays *displays, struct display_item *item, const char *mime,
             const json_t *value)
{
    static const struct span nothing;
    return json_is_integer(value) && json_integer_value(value) > 0 &&
           display_item_put(displays, item, mime, nothing,
                            (uint64_t)json_integer_value(value)) == 0;
}

static bool
take_each(struct displays *displays, struct display_item *item, const json_t *object,
          bool (*take)(struct displays *, struct display_item *, const char *,
                       const json_t *))
{
    /* The iterators take no const, and change nothing. */
    json_t *parts = (json_t *)(uintptr_t)object;
    for (void *at = json_object_iter(parts); at; at = json_object_iter_next(parts, at))
        if (!take(displays, item, json_object_iter_key(at), json_object_iter_value(at)))
            return false;
    return json_is_object(object);
}

struct display_item *
display_item_take(struct displays *displays, const json_t *value)
{
    const json_t *main = json_object_get(value, "main");
    const json_t *metadata = json_object_get(value, "metadata");
    const json_t *omitted = json_object_get(value, "omitted");
    size_t keys = 2U + (main != NULL) + (metadata != NULL) + (omitted != NULL);
    struct display_item *item = display_item_new(json_is_true(main));
    bool whole = item && json_object_size(value) == keys &&
                 json_is_string(json_object_get(value, "type")) &&
                 (!metadata || json_is_object(metadata)) &&
                 take_each(displays, item, json_object_get(value, "data"), take_part) &&
                 (!omitted || take_each(displays, item, omitted, take_omitted));
    if (!whole) {
        display_item_free(item);
        return NULL;
    }
    item->metadata = json_incref((json_t *)(uintptr_t)metadata);
    return item;
}

bool
displays_take(const json_t *list, struct displays *ret)
{
    if (!json_is_array(list) || json_array_size(list) > DISPLAY_ITEMS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct display_item *item = display_item_take(ret, json_array_get(list, i));
        if (!item || !displays_add(ret, item))
            return false;
    }
    return true;
}
