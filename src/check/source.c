/* Lines, columns and encodings of source text. Bytes in it are hostile and may be
 * anything. */
#include "check/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const char bom[] = "\xef\xbb\xbf";

/* Names as CPython normalises them: small letters, '-' for '_'. Those of one byte a
 * character, or in which a byte below 0x80 stands for its ASCII character wherever it
 * begins one. */
static const char *const others[] = {
    "ascii",     "us-ascii",   "big5",  "big5-hkscs", "big5hkscs", "cp125",
    "cp437",     "cp65001",    "cp720", "cp737",      "cp775",     "cp85",
    "cp86",      "cp874",      "cp932", "cp949",      "cp950",     "euc-jp",
    "euc-kr",    "eucjp",      "euckr", "gb18030",    "gb2312",    "gbk",
    "iso-8859-", "iso8859-",   "johab", "koi8-r",     "koi8-t",    "koi8-u",
    "kz1048",    "mac-",       "ms932", "ptcp154",    "shift-jis", "sjis",
    "tis-620",   "windows-125"};
static const char *const hiding[] = {"utf-7",
                                     "utf7",
                                     "u7",
                                     "unicode-1-1-utf-7",
                                     "unicode-escape",
                                     "raw-unicode-escape",
                                     "punycode",
                                     "idna",
                                     "hz",
                                     "iso-2022",
                                     "iso2022",
                                     "cp037",
                                     "cp1026",
                                     "cp1140",
                                     "cp273",
                                     "cp424",
                                     "cp500",
                                     "utf-16",
                                     "utf-32",
                                     "rot",
                                     "hex",
                                     "base64",
                                     "zip",
                                     "zlib",
                                     "bz2",
                                     "quopri",
                                     "uu"};

static bool
begins_as_one(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(name, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

static enum source_encoding
classify(const char *name)
{
    static const char *const utf8[] = {"utf-8", "utf8", "u8", "cp65001"};
    static const char *const latin1[] = {"latin-1", "iso-8859-1-", "iso-latin-1",
                                         "latin1", "l1"};
    static const char *const exactly_latin1[] = {"iso-8859-1", "iso8859-1", "8859"};
    for (size_t i = 0; i < sizeof(exactly_latin1) / sizeof(char *); i++)
        if (strcmp(name, exactly_latin1[i]) == 0)
            return SOURCE_LATIN1;
    if (begins_as_one(name, utf8, sizeof(utf8) / sizeof(char *)))
        return SOURCE_UTF8;
    if (begins_as_one(name, latin1, sizeof(latin1) / sizeof(char *)))
        return SOURCE_LATIN1;
    if (begins_as_one(name, hiding, sizeof(hiding) / sizeof(char *)))
        return SOURCE_HIDING;
    return begins_as_one(name, others, sizeof(others) / sizeof(char *)) ? SOURCE_OTHER
                                                                        : SOURCE_UNKNOWN;
}

static bool
is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_' || c == '.';
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

/* PEP 263: ^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+). */
static bool
find_cookie(struct span line, char name[SOURCE_NAME_BYTES])
{
    static const char word[] = "coding";
    size_t i = 0;
    while (i < line.n && is_blank(line.p[i]))
        i++;
    if (i == line.n || line.p[i] != '#')
        return false;
    for (; i + sizeof(word) <= line.n; i++) {
        size_t at = i + sizeof(word) - 1;
        if (memcmp(line.p + i, word, sizeof(word) - 1) != 0 ||
            (line.p[at] != ':' && line.p[at] != '='))
            continue;
        for (at++; at < line.n && (line.p[at] == ' ' || line.p[at] == '\t');)
            at++;
        size_t n = 0;
        for (; at < line.n && is_name_byte(line.p[at]) && n + 1 < SOURCE_NAME_BYTES;
             at++) {
            char c = line.p[at];
            name[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '_' ? '-' : c;
        }
        name[n] = '\0';
        if (n > 0)
            return true;
    }
    return false;
}

static bool
is_code(struct span line)
{
    size_t i = 0;
    while (i < line.n && is_blank(line.p[i]))
        i++;
    return i < line.n && line.p[i] != '#';
}

void
source_init(struct source *source, struct span text)
{
    enum { COOKIE_LINES = 2 };
    struct span line;
    *source = (struct source){.text = text, .line = 1};
    source->bom = text.n >= sizeof(bom) - 1 && memcmp(text.p, bom, sizeof(bom) - 1) == 0;
    for (int i = 1; i <= COOKIE_LINES && source_line(source, i, &line); i++) {
        if (find_cookie(line, source->encoding_name)) {
            source->cookie_line = i;
            source->encoding = classify(source->encoding_name);
            return;
        }
        if (is_code(line))
            return; /* a second line counts only below a comment */
    }
}

/* The length of the line at an offset, and of its end: "\n", "\r\n" or "\r". */
static size_t
line_length(struct span text, size_t offset, size_t *ret_end)
{
    size_t i = offset;
    while (i < text.n && text.p[i] != '\n' && text.p[i] != '\r')
        i++;
    *ret_end = i == text.n ? 0 : 1;
    if (i + 1 < text.n && text.p[i] == '\r' && text.p[i + 1] == '\n')
        *ret_end = 2;
    return i - offset;
}

/* Findings of functions' bodies jump about: no line may cost a pass over the text. */
static bool
index_lines(struct source *source)
{
    size_t lines = 1, end, at = source->bom ? sizeof(bom) - 1 : 0;
    if (source->starts)
        return true;
    for (size_t i = 0; i < source->text.n; i++)
        lines += source->text.p[i] == '\n' || source->text.p[i] == '\r';
    source->starts = calloc(lines, sizeof(*source->starts));
    if (!source->starts)
        return false;
    for (size_t i = 0; i < lines; i++) {
        source->starts[source->starts_n++] = at;
        at += line_length(source->text, at, &end) + end;
        if (end == 0)
            break;
    }
    return true;
}

void
source_done(struct source *source)
{
    free(source->starts);
    *source = (struct source){0};
}

bool
source_line(struct source *source, int line, struct span *ret)
{
    size_t end;
    if (line < 1)
        return false;
    if (line < source->line && index_lines(source)) {
        if ((size_t)line > source->starts_n)
            return false;
        source->line = line;
        source->offset = source->starts[line - 1];
    } else if (source->starts && (size_t)line > source->starts_n) {
        return false;
    } else if (source->starts) {
        source->line = line;
        source->offset = source->starts[line - 1];
    } else if (line < source->line || source->line < 1) {
        source->line = 1;
        source->offset = 0;
    }
    if (source->offset == 0 && source->bom)
        source->offset = sizeof(bom) - 1;
    while (source->line < line) {
        size_t n = line_length(source->text, source->offset, &end);
        if (end == 0)
            return false;
        source->offset += n + end;
        source->line++;
    }
    *ret = (struct span){source->text.p + source->offset,
                         line_length(source->text, source->offset, &end)};
    return true;
}

static int
count_characters(struct span bytes, bool utf8)
{
    int n = 0;
    for (size_t i = 0; i < bytes.n; i++)
        n += !utf8 || ((unsigned char)bytes.p[i] & 0xc0) != 0x80;
    return n;
}

struct place
source_place(struct source *source, size_t offset)
{
    struct place at = {.line = 1};
    size_t begin = source->bom && offset >= sizeof(bom) - 1 ? sizeof(bom) - 1 : 0;
    for (;;) {
        size_t end, n = line_length(source->text, begin, &end);
        if (end == 0 || begin + n + end > offset)
            break;
        begin += n + end;
        at.line++;
    }
    struct span before = {source->text.p + begin, offset - begin};
    at.column = count_characters(before, source->encoding == SOURCE_UTF8) + 1;
    at.end_line = at.line;
    at.end_column = at.column + 1;
    return at;
}

int
source_column(struct source *source, int line, int utf8_bytes)
{
    struct span text;
    if (utf8_bytes < 0 || !source_line(source, line, &text))
        return 0;
    int column = 1, bytes = 0;
    bool utf8 = source->encoding == SOURCE_UTF8;
    for (size_t i = 0; i < text.n && bytes < utf8_bytes; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bytes += !utf8 && c >= 0x80 ? 2 : 1;
        column += !utf8 || (c & 0xc0) != 0x80;
    }
    return column;
}

/* The byte at which the character of a 1-based column begins. */
static size_t
byte_of_column(struct span line, int column, bool utf8)
{
    size_t i = 0;
    for (int at = 1; i < line.n && at < column; at++) {
        i++;
        while (utf8 && i < line.n && ((unsigned char)line.p[i] & 0xc0) == 0x80)
            i++;
    }
    return i;
}

void
source_excerpt(struct source *source, struct finding *finding)
{
    enum { BEFORE = 60 };
    struct span line;
    finding->excerpt[0] = '\0';
    finding->excerpt_from = 1;
    if (!source_line(source, finding->at.line, &line))
        return;
    bool utf8 = source->encoding == SOURCE_UTF8;
    size_t from = 0;
    if (line.n >= FINDING_EXCERPT_BYTES && finding->at.column > BEFORE) {
        finding->excerpt_from = finding->at.column - BEFORE;
        from = byte_of_column(line, finding->excerpt_from, utf8);
    }
    struct span part = {line.p + from, line.n - from};
    if (utf8) {
        check_printable(part, finding->excerpt, FINDING_EXCERPT_BYTES);
        return;
    }
    size_t n = part.n < FINDING_EXCERPT_BYTES - 1 ? part.n : FINDING_EXCERPT_BYTES - 1;
    for (size_t i = 0; i < n; i++) /* another encoding: its ASCII is what we can show */
        finding->excerpt[i] = (unsigned char)part.p[i] < 0x80 ? part.p[i] : '?';
    finding->excerpt[n] = '\0';
}
