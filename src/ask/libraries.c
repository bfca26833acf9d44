/* Reads the names of NAME-VERSION.dist-info and .egg-info in site-packages and its like. */
#include "ask/libraries.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FOUND_MAX = 512, NAME_BYTES = 64, SHOWN_MAX = 40, ENTRIES_MAX = 20000 };

/* What a model wants to know of first. */
static const char *const first[] = {
    "numpy",          "pandas",     "matplotlib",  "scipy",  "scikit-learn",
    "scikit_learn",   "seaborn",    "statsmodels", "sympy",  "networkx",
    "pillow",         "plotly",     "altair",      "bokeh",  "openpyxl",
    "xlrd",           "xlsxwriter", "pyarrow",     "polars", "lxml",
    "beautifulsoup4", "tqdm",
};
static const char *const folders[] = {"site-packages", "dist-packages"};

struct library {
    char name[NAME_BYTES], version[NAME_BYTES];
    size_t rank;
};

struct found {
    size_t n;
    struct library list[FOUND_MAX];
};

static size_t
rank_of(const char *name)
{
    size_t i = 0;
    while (i < sizeof(first) / sizeof(*first) && strcasecmp(name, first[i]) != 0)
        i++;
    return i;
}

/* Names of files may be anything; those of distributions are words. */
static bool
is_word(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+",
                    text[i]) ||
            text[i] == '\0')
            return false;
    return n > 0 && n < NAME_BYTES;
}

static void
take_entry(const char *entry, struct found *found)
{
    static const char *const ends[] = {".dist-info", ".egg-info"};
    size_t n = strlen(entry), cut = 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (n > strlen(ends[i]) && strcmp(entry + n - strlen(ends[i]), ends[i]) == 0)
            cut = n - strlen(ends[i]);
    const char *dash = cut > 0 ? memchr(entry, '-', cut) : NULL;
    if (!dash || found->n >= FOUND_MAX)
        return;
    size_t name_n = (size_t)(dash - entry), version_n = cut - name_n - 1;
    const char *tag = memchr(dash + 1, '-', version_n); /* "-py3.11", of eggs */
    if (tag)
        version_n = (size_t)(tag - dash) - 1;
    if (!is_word(entry, name_n) || !is_word(dash + 1, version_n))
        return;
    struct library *library = &found->list[found->n];
    snprintf(library->name, NAME_BYTES, "%.*s", (int)name_n, entry);
    snprintf(library->version, NAME_BYTES, "%.*s", (int)version_n, dash + 1);
    library->rank = rank_of(library->name);
    found->n++;
}

static void
look_into(const char *path, struct found *found)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    for (int i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)); i++)
        take_entry(entry->d_name, found);
    if (dir)
        closedir(dir);
}

/* A path of the image is such a folder, or has one in it. */
static void
look_at(const char *path, struct found *found)
{
    char below[IMAGE_PATH_BYTES + 32];
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        if (slash && strcmp(slash + 1, folders[i]) == 0)
            look_into(path, found);
        snprintf(below, sizeof(below), "%s/%s", path, folders[i]);
        look_into(below, found);
    }
}

static int
compare(const void *a, const void *b)
{
    const struct library *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcasecmp(x->name, y->name);
}

/* Some are packaged without their version. */
static int
put(const struct library *library, bool follows, struct buf *out)
{
    bool known = strcmp(library->version, "0.0.0") != 0;
    return buf_printf(out, "%s%s%s%s", follows ? ", " : "", library->name,
                      known ? " " : "", known ? library->version : "");
}

int
libraries_describe(const struct image *image, struct buf *out)
{
    struct found *found = calloc(1, sizeof(*found));
    if (!found)
        return -ENOMEM;
    for (size_t i = 0; i < image->paths_n; i++)
        look_at(image->paths[i], found);
    qsort(found->list, found->n, sizeof(*found->list), compare);
    int r = 0;
    size_t shown = 0, distinct = 0;
    for (size_t i = 0; r == 0 && i < found->n; i++) {
        const struct library *one = &found->list[i];
        if (i > 0 && strcasecmp(one->name, one[-1].name) == 0)
            continue;
        distinct++;
        if (shown < SHOWN_MAX)
            r = put(one, shown++ > 0, out);
    }
    if (r == 0 && distinct > shown)
        r = buf_printf(out, ", and %zu more", distinct - shown);
    free(found);
    return r;
}
