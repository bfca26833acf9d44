/*
 * What kind of data a file holds. libmagic judges by the bytes; the parsers in it that
 * unpack or follow structures (archives, ELF, OLE) stay off, because the bytes are
 * hostile and this runs outside of the cell.
 */
#include <string.h>
#include <strings.h>

#include "cell/collect_parts.h"

static const int magic_flags =
    MAGIC_MIME_TYPE | MAGIC_NO_CHECK_COMPRESS | MAGIC_NO_CHECK_ELF | MAGIC_NO_CHECK_CDF |
    MAGIC_NO_CHECK_TAR | MAGIC_NO_CHECK_APPTYPE | MAGIC_NO_CHECK_TOKENS;

static const char unknown[] = "application/octet-stream";
static const char plain[] = "text/plain";
static const char empty[] = "inode/x-empty";
static const char zip[] = "application/zip";

/* clang-format off */
/* When the bytes say only the middle column, the extension says the right one. */
static const struct {
    const char *extension, *bytes_say, *mime;
} extensions[] = {
    {"csv",     plain,              "text/csv"},
    {"tsv",     plain,              "text/tab-separated-values"},
    {"json",    plain,              "application/json"},
    {"jsonl",   plain,              "application/jsonl"},
    {"jsonl",   "application/json", "application/jsonl"},
    {"ndjson",  plain,              "application/x-ndjson"},
    {"ndjson",  "application/json", "application/x-ndjson"},
    {"geojson", plain,              "application/geo+json"},
    {"geojson", "application/json", "application/geo+json"},
    {"ipynb",   plain,              "application/x-ipynb+json"},
    {"ipynb",   "application/json", "application/x-ipynb+json"},
    {"svg",     plain,              "image/svg+xml"},
    {"svg",     "text/xml",         "image/svg+xml"},
    {"xml",     plain,              "text/xml"},
    {"html",    plain,              "text/html"},
    {"htm",     plain,              "text/html"},
    {"css",     plain,              "text/css"},
    {"js",      plain,              "text/javascript"},
    {"md",      plain,              "text/markdown"},
    {"yaml",    plain,              "application/yaml"},
    {"yml",     plain,              "application/yaml"},
    {"toml",    plain,              "application/toml"},
    {"sql",     plain,              "application/sql"},
    {"tex",     plain,              "text/x-tex"},
    {"py",      plain,              "text/x-python"},
    {"py",      "text/x-script.python", "text/x-python"},
    {"parquet", unknown,            "application/vnd.apache.parquet"},
    {"tar",     unknown,            "application/x-tar"},
    {"xlsx",    zip,  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"docx",    zip,  "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
};
/* clang-format on */

void
mime_done(struct mime *mime)
{
    if (mime->cookie)
        magic_close(mime->cookie);
    *mime = (struct mime){0};
}

static const char *
by_bytes(struct mime *mime, const void *bytes, size_t n)
{
    if (n == 0)
        return empty;
    if (!mime->tried) {
        mime->tried = true;
        mime->cookie = magic_open(magic_flags);
        if (mime->cookie && magic_load(mime->cookie, NULL) < 0) {
            magic_close(mime->cookie);
            mime->cookie = NULL;
        }
    }
    const char *said = mime->cookie ? magic_buffer(mime->cookie, bytes, n) : NULL;
    return said && strchr(said, '/') ? said : unknown;
}

/* An empty file is whatever its extension makes of text. */
static const char *
by_extension(const char *path, const char *said)
{
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    if (!dot)
        return NULL;
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (strcasecmp(extensions[i].extension, dot + 1) == 0 &&
            (strcmp(extensions[i].bytes_say, said) == 0 || strcmp(said, empty) == 0))
            return extensions[i].mime;
    return NULL;
}

void
mime_name(struct mime *mime, const char *path, const void *bytes, size_t n, char *ret,
          size_t ret_n)
{
    const char *said = by_bytes(mime, bytes, n);
    const char *better = by_extension(path, said);
    if (better)
        said = better;
    else if (strcmp(said, empty) == 0)
        said = plain;
    /* Half a name would be another one. */
    if (strlen(said) >= ret_n)
        said = unknown;
    snprintf(ret, ret_n, "%s", said);
}
