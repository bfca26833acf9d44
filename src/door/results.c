/*
 * Results on their way to a person. Everything in them is the cell's: names of files are ours,
 * text is shown and not obeyed, and an image is bytes that are saved, never decoded here but for
 * the size in its head.
 */
#include "door/results.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "door/terminal.h"

enum { NUMBER_MAX = 100000, TEXT_BYTES_MAX = 64 << 20, DISPLAY_NAME_BYTES = 32 };

/* In the order of what is preferred; the first is what terminals draw. */
static const struct image_form {
    const char *mime, *suffix;
} image_forms[] = {
    {"image/png", "png"},   {"image/jpeg", "jpg"},    {"image/gif", "gif"},
    {"image/webp", "webp"}, {"image/svg+xml", "svg"},
};
enum { IMAGE_FORMS = sizeof(image_forms) / sizeof(*image_forms) };

/* In the order in which a person would rather read them. */
static const char *const text_forms[] = {"text/plain", "text/markdown", "text/latex",
                                         "text/html"};

static const char *
folder_of(struct results *results)
{
    if (results->folder)
        return results->folder;
    if (results->made[0] != '\0' || !results->may_make)
        return results->made[0] != '\0' ? results->made : NULL;
    const char *base = getenv("TMPDIR");
    int n = snprintf(results->made, sizeof(results->made), "%s/adyton-XXXXXX",
                     base && base[0] == '/' ? base : "/tmp");
    if (n < 0 || (size_t)n >= sizeof(results->made) || !mkdtemp(results->made))
        results->made[0] = '\0';
    return results->made[0] != '\0' ? results->made : NULL;
}

/* A file that nobody has: what the code itself has left in the folder keeps its name. */
static int
make_file(struct results *results, int dir, const char *suffix,
          char name[DISPLAY_NAME_BYTES])
{
    int fd = -1;
    while (fd < 0 && results->number < NUMBER_MAX) {
        snprintf(name, DISPLAY_NAME_BYTES, "figure-%u.%s", ++results->number, suffix);
        fd =
            openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0 && errno != EEXIST)
            return -errno;
    }
    return fd < 0 ? -EEXIST : fd;
}

static int
put_saved(const char *folder, const char *name, struct span bytes, struct buf *lines)
{
    uint32_t width, height;
    int r = buf_printf(lines, "adyton: image: ");
    if (r == 0)
        r = terminal_append_line(folder, lines);
    if (r == 0)
        r = buf_printf(lines, "/%s (%zu bytes", name, bytes.n);
    if (r == 0 && images_png_size(bytes, &width, &height))
        r = buf_printf(lines, ", %" PRIu32 "x%" PRIu32, width, height);
    return r < 0 ? r : buf_printf(lines, ")\n");
}

static int
save(struct results *results, const struct image_form *form, struct span bytes,
     struct buf *lines)
{
    char name[DISPLAY_NAME_BYTES];
    const char *folder = folder_of(results);
    if (!folder) {
        results->unsaved++;
        return 0;
    }
    AUTO_CLOSE int dir = open(folder, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    int fd = dir < 0 ? -errno : make_file(results, dir, form->suffix, name);
    int r = fd < 0 ? fd : fd_write_all(fd, bytes.p, bytes.n);
    fd_close(&fd);
    if (r == 0)
        return put_saved(folder, name, bytes, lines);
    r = buf_printf(lines, "adyton: image: cannot be saved in ");
    if (r == 0)
        r = terminal_append_line(folder, lines);
    return r < 0 ? r : buf_printf(lines, "\n");
}

static int
show_text(const struct results *results, struct span text, struct buf *out)
{
    struct terminal terminal = {.held_n = 0};
    int r = results->is_terminal ? terminal_append(&terminal, text, out)
                                 : buf_append(out, text.p, text.n);
    if (r == 0 && results->is_terminal)
        r = terminal_finish(&terminal, out);
    if (r == 0 && (text.n == 0 || text.p[text.n - 1] != '\n'))
        r = buf_append(out, "\n", 1);
    return r;
}

/* An SVG is one more file beside a picture. *ret_any: the item has an image. */
static int
show_images(struct results *results, const struct display_item *item, bool *ret_any,
            struct buf *out, struct buf *lines)
{
    int r = 0;
    bool drawn = false;
    *ret_any = false;
    for (size_t i = 0; i < IMAGE_FORMS && r == 0; i++) {
        const struct display_part *part = display_item_part(item, image_forms[i].mime);
        bool is_svg = i + 1 == IMAGE_FORMS;
        if (!part || (*ret_any && !is_svg))
            continue;
        *ret_any = true;
        struct span bytes = buf_span(&part->bytes);
        r = save(results, &image_forms[i], bytes, lines);
        if (r == 0 && i == 0 && !drawn)
            r = images_put(results->protocol, bytes, out);
        drawn = true;
    }
    return r;
}

int
results_show(struct results *results, const struct display_item *item, struct buf *out,
             struct buf *lines)
{
    bool any;
    int r = show_images(results, item, &any, out, lines);
    for (size_t i = 0; i < sizeof(text_forms) / sizeof(*text_forms) && r == 0 && !any;
         i++) {
        const struct display_part *text = display_item_part(item, text_forms[i]);
        any = text != NULL;
        if (text)
            r = show_text(results, buf_span(&text->bytes), out);
    }
    for (size_t i = 0; i < item->parts_n && r == 0; i++)
        if (item->parts[i].omitted_bytes > 0)
            r = buf_printf(
                lines, "adyton: result: %s left out, %" PRIu64 " bytes are too many\n",
                item->parts[i].mime, item->parts[i].omitted_bytes);
    return r;
}

int
results_show_all(struct results *results, const struct displays *displays,
                 struct buf *out, struct buf *lines)
{
    int r = 0;
    for (size_t i = 0; i < displays->items_n && r == 0; i++)
        r = results_show(results, displays->items[i], out, lines);
    if (r == 0 && results->unsaved > 0 && results->tells_unsaved)
        r = buf_printf(lines,
                       "adyton: images: %" PRIu64 " not saved: --out DIR keeps them\n",
                       results->unsaved);
    if (r == 0 && displays->dropped > 0)
        r = buf_printf(lines, "adyton: results: %" PRIu64 " more did not fit\n",
                       displays->dropped);
    return r;
}
