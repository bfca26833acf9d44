/* Results for a person: what is text, what becomes a file, what a terminal is sent; and PNG files
 * of a hostile cell on their way to sixels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fd.h"
#include "door/results.h"
#include "door/sixel.h"

enum { TEXT_MAX = 32 << 20, PNG_MAX = 1 << 20 };

static void
put_u32(struct buf *out, uint32_t value)
{
    const unsigned char bytes[] = {(unsigned char)(value >> 24),
                                   (unsigned char)(value >> 16),
                                   (unsigned char)(value >> 8), (unsigned char)value};
    assert_int_equal(buf_append(out, bytes, sizeof(bytes)), 0);
}

static void
put_chunk(struct buf *out, const char *name, const void *data, size_t n)
{
    put_u32(out, (uint32_t)n);
    assert_int_equal(buf_append(out, name, 4), 0);
    assert_int_equal(buf_append(out, data, n), 0);
    put_u32(out, 0); /* nobody looks at the checksum */
}

/* rows_n: bytes of unpacked rows, which may be others than the sizes call for. */
static void
make_png(struct buf *out, uint32_t width, uint32_t height, char type, const char *rows,
         size_t rows_n)
{
    AUTO_BUF struct buf head = {0};
    AUTO_FREE Bytef *packed = malloc(compressBound(rows_n));
    uLongf packed_n = compressBound(rows_n);
    buf_init(&head, 64);
    put_u32(&head, width);
    put_u32(&head, height);
    const char rest[] = {8, type, 0, 0, 0};
    assert_int_equal(buf_append(&head, rest, sizeof(rest)), 0);
    assert_int_equal(compress(packed, &packed_n, (const Bytef *)rows, rows_n), Z_OK);
    assert_int_equal(buf_append(out, "\x89PNG\r\n\x1a\n", 8), 0);
    put_chunk(out, "IHDR", head.p, head.n);
    if (type == 3)
        put_chunk(out, "PLTE", "\xff\0\0\0\0\xff", 6);
    put_chunk(out, "IDAT", packed, packed_n);
    put_chunk(out, "IEND", "", 0);
}

static void
draw(const struct buf *png, struct buf *out)
{
    /* Of its exact size: what is read behind it is seen. */
    AUTO_FREE char *exact = malloc(png->n + 1);
    memcpy(exact, png->p, png->n);
    buf_consume(out, out->n);
    assert_int_equal(sixel_put((struct span){exact, png->n}, out), 0);
}

static void
test_sixels_of_each_kind(void **state)
{
    (void)state;
    static const struct {
        char type;
        const char *pixel;
        size_t pixel_n;
        const char *band;
    } rows[] = {
        {0, "\xff", 1, "#215@$"},       {2, "\xff\0\0", 3, "#180@$"},
        {3, "\1", 1, "#5@$"},           {3, "\xff", 1, "#180@$"},
        {4, "\0\0", 2, "#215@$"},       {6, "\0\0\xff\xff", 4, "#5@$"},
        {6, "\0\0\xff\0", 4, "#215@$"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AUTO_BUF struct buf png = {0}, out = {0};
        char row[8] = {0};
        buf_init(&png, PNG_MAX);
        buf_init(&out, TEXT_MAX);
        memcpy(row + 1, rows[i].pixel, rows[i].pixel_n);
        make_png(&png, 1, 1, rows[i].type, row, 1 + rows[i].pixel_n);
        draw(&png, &out);
        if (out.n == 0 || !strstr(out.p, rows[i].band))
            fail_msg("row %zu: %s", i, out.n ? out.p : "nothing");
    }
}

static void
test_sixels_of_wrong_files(void **state)
{
    (void)state;
    static const struct {
        uint32_t width, height;
        char type;
        size_t rows_n;
    } rows[] = {
        {2, 2, 2, 13},        {2, 2, 2, 15},         {0, 2, 2, 14},        {2, 0, 2, 14},
        {1U << 31, 2, 2, 14}, {65536, 65536, 2, 14}, {2, 2, 1, 14},        {2, 2, 5, 14},
        {2, 2, 7, 14},        {2, 2, -1, 14},        {16384, 1025, 2, 14},
    };
    static const char zeros[16];
    AUTO_BUF struct buf png = {0}, out = {0};
    buf_init(&png, PNG_MAX);
    buf_init(&out, TEXT_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        buf_consume(&png, png.n);
        make_png(&png, rows[i].width, rows[i].height, rows[i].type, zeros,
                 rows[i].rows_n);
        draw(&png, &out);
        if (out.n > 0)
            fail_msg("row %zu was drawn", i);
    }
    buf_consume(&png, png.n);
    make_png(&png, 2, 2, 2, "\5\0\0\0\0\0\0\0\0\0\0\0\0\0", 14); /* no such filter */
    draw(&png, &out);
    assert_int_equal(out.n, 0);
}

/* Cut at each place, and each byte changed: drawn or not, within the bounds (the sanitizers
 * look). */
static void
test_sixels_of_changed_files(void **state)
{
    (void)state;
    static const char rows[] = "\0abcabc\1abcabc\2abcabc\3abcabc\4abcabc";
    AUTO_BUF struct buf png = {0}, out = {0};
    buf_init(&png, PNG_MAX);
    buf_init(&out, TEXT_MAX);
    make_png(&png, 2, 5, 2, rows, sizeof(rows) - 1);
    draw(&png, &out);
    assert_true(out.n > 0);
    size_t n = png.n;
    for (size_t i = 0; i < n; i++) {
        static const unsigned char changes[] = {0x01, 0x80, 0xff};
        png.n = i;
        draw(&png, &out);
        png.n = n;
        for (size_t j = 0; j < sizeof(changes); j++) {
            png.p[i] = (char)(png.p[i] ^ changes[j]);
            draw(&png, &out);
            png.p[i] = (char)(png.p[i] ^ changes[j]);
        }
    }
}

/* --- files and text --- */

struct shown {
    char folder[64];
    struct results results;
    struct displays displays;
    struct buf out, lines;
};

static int
setup(void **state)
{
    struct shown *shown = calloc(1, sizeof(*shown));
    snprintf(shown->folder, sizeof(shown->folder), "/tmp/test-results-XXXXXX");
    assert_non_null(mkdtemp(shown->folder));
    shown->results.folder = shown->folder;
    buf_init(&shown->out, TEXT_MAX);
    buf_init(&shown->lines, TEXT_MAX);
    *state = shown;
    return 0;
}

static int
teardown(void **state)
{
    struct shown *shown = *state;
    AUTO_CLOSE int dir = open(shown->folder, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 10; i++) {
        static const char *const suffixes[] = {"png", "svg"};
        for (size_t j = 0; j < 2; j++) {
            char name[32];
            snprintf(name, sizeof(name), "figure-%d.%s", i, suffixes[j]);
            (void)unlinkat(dir, name, 0);
        }
    }
    assert_int_equal(rmdir(shown->folder), 0);
    displays_done(&shown->displays);
    buf_done(&shown->out);
    buf_done(&shown->lines);
    free(shown);
    return 0;
}

static void
add(struct shown *shown, size_t n, const char *const mimes[], const char *const data[])
{
    struct display_item *item = display_item_new(false);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(
            display_item_put(&shown->displays, item, mimes[i], span_of(data[i]), 0), 0);
    assert_true(displays_add(&shown->displays, item));
}

static void
show_all(struct shown *shown)
{
    assert_int_equal(
        results_show_all(&shown->results, &shown->displays, &shown->out, &shown->lines),
        0);
}

static void
test_text_is_shown(void **state)
{
    struct shown *shown = *state;
    add(shown, 2, (const char *const[]){"text/html", "text/plain"},
        (const char *const[]){"<b>", "plain"});
    add(shown, 1, (const char *const[]){"text/latex"}, (const char *const[]){"$x$\n"});
    add(shown, 1, (const char *const[]){"text/plain"}, (const char *const[]){"\x1b]0;t"});
    show_all(shown);
    assert_string_equal(shown->out.p, "plain\n$x$\n\x1b]0;t\n");
    assert_int_equal(shown->lines.n, 0);
    buf_consume(&shown->out, shown->out.n);
    shown->results.is_terminal = true;
    show_all(shown);
    assert_null(strchr(shown->out.p, '\x1b'));
}

static void
test_images_are_saved(void **state)
{
    struct shown *shown = *state;
    AUTO_CLOSE int dir = open(shown->folder, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    assert_int_equal(symlinkat("elsewhere", dir, "figure-1.png"), 0);
    add(shown, 3, (const char *const[]){"text/plain", "image/png", "image/svg+xml"},
        (const char *const[]){"<Figure>", "png", "<svg/>"});
    show_all(shown);
    struct stat is;
    assert_int_equal(fstatat(dir, "figure-2.png", &is, 0), 0);
    assert_int_equal(is.st_size, 3);
    assert_int_equal(fstatat(dir, "figure-3.svg", &is, 0), 0);
    assert_int_equal(faccessat(AT_FDCWD, "elsewhere", F_OK, 0), -1);
    assert_int_equal(shown->out.n, 0);
    assert_non_null(strstr(shown->lines.p, "figure-2.png (3 bytes"));
}

static void
test_images_without_a_place(void **state)
{
    struct shown *shown = *state;
    shown->results.folder = NULL;
    shown->results.tells_unsaved = true;
    add(shown, 1, (const char *const[]){"image/png"}, (const char *const[]){"png"});
    shown->displays.dropped = 7;
    show_all(shown);
    assert_non_null(strstr(shown->lines.p, "1 not saved"));
    assert_non_null(strstr(shown->lines.p, "7 more did not fit"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sixels_of_each_kind),
        cmocka_unit_test(test_sixels_of_wrong_files),
        cmocka_unit_test(test_sixels_of_changed_files),
        cmocka_unit_test_setup_teardown(test_text_is_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_images_are_saved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_images_without_a_place, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
