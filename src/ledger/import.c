/*
 * A new ledger from an export, which may be anybody's. Lines are bounded, the long ones
 * are read by a fixed form and never by a parser; a row goes in only when its hash
 * follows from the row before it; what is left (texts, relations, the file) is verified
 * in the end. All of it is one transaction.
 */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "ledger/ledger_parts.h"

enum {
    ROW_LINE_BYTES = 64 * 1024,
    TEXT_LINE_BYTES =
        90 * 1024 * 1024, /* 64 MiB of code, the most that a policy allows */
    READ_BYTES = 64 * 1024,
    HEX_BYTES = 2 * LEDGER_HASH_BYTES,
};

/* {"code":"HEX","base64":"…"} */
static const char text_begin[] = "{\"code\":\"", text_middle[] = "\",\"base64\":\"",
                  text_end[] = "\"}";
enum {
    TEXT_HEX_AT = sizeof(text_begin) - 1,
    TEXT_MIDDLE_AT = TEXT_HEX_AT + HEX_BYTES,
    TEXT_BASE64_AT = TEXT_MIDDLE_AT + sizeof(text_middle) - 1,
};

struct import {
    struct ledger *ledger;
    sqlite3_stmt *insert_text;
    uint64_t line;
    bool ended; /* the last line was read */
    struct err *err;
};

static int PRINTF(3, 4) refuse(struct import *import, int code, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return err_set(import->err, code, "line %llu: %s", (unsigned long long)import->line,
                   text);
}

static bool
read_hex(const json_t *value, unsigned char ret[LEDGER_HASH_BYTES])
{
    size_t n = 0;
    return json_string_length(value) == HEX_BYTES &&
           sodium_hex2bin(ret, LEDGER_HASH_BYTES, json_string_value(value), HEX_BYTES,
                          NULL, &n, NULL) == 0 &&
           n == LEDGER_HASH_BYTES;
}

/* --- the two ends --- */

static int
take_first(struct import *import, json_t *object)
{
    const char *schema = NULL;
    json_int_t seq = -1;
    json_t *hash = NULL;
    struct ledger_head anchor;
    if (json_unpack(object, "{s:s, s:I, s:o !}", "schema", &schema, "anchor_seq", &seq,
                    "anchor_hash", &hash) < 0 ||
        strcmp(schema, "adyton.ledger/1") != 0 || seq < 0 || seq == INT64_MAX ||
        !read_hex(hash, anchor.hash))
        return refuse(import, -EBADMSG,
                      "an export begins with its schema (adyton.ledger/1) "
                      "and its anchor");
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(import->ledger,
                           "UPDATE chain SET anchor_seq = ?1, anchor_hash = ?2", &s,
                           import->err);
    if (r < 0)
        return r;
    anchor.seq = seq;
    sqlite3_bind_int64(s, 1, seq);
    sqlite3_bind_blob(s, 2, anchor.hash, LEDGER_HASH_BYTES, SQLITE_STATIC);
    if (sqlite3_step(s) != SQLITE_DONE)
        return ledger_fail(import->ledger, "write to it", import->err);
    import->ledger->head = anchor;
    return 0;
}

static int
take_last(struct import *import, json_t *object)
{
    json_int_t seq = -1;
    json_t *hash = NULL;
    struct ledger_head head;
    if (json_unpack(object, "{s:I, s:o !}", "head_seq", &seq, "head_hash", &hash) < 0 ||
        !read_hex(hash, head.hash))
        return refuse(import, -EBADMSG, "the last line is no head of a chain");
    if (seq != import->ledger->head.seq ||
        memcmp(head.hash, import->ledger->head.hash, LEDGER_HASH_BYTES) != 0)
        return refuse(import, -EBADMSG, "the chain ends at row %lld, its head is %lld",
                      (long long)import->ledger->head.seq, (long long)seq);
    import->ended = true;
    return 0;
}

/* --- rows --- */

static int
find_column(const char *name)
{
    for (int i = 0; i < COLUMNS; i++)
        if (strcmp(ledger_columns[i].name, name) == 0)
            return i;
    return -1;
}

/* Hashes are decoded into `hashes`, two at most: of the code and of the row. */
static bool
take_value(struct row *row, int column, const json_t *value,
           unsigned char hashes[2][LEDGER_HASH_BYTES])
{
    if (ledger_columns[column].type == TYPE_INTEGER) {
        if (!json_is_integer(value))
            return false;
        row_set_integer(row, (enum column)column, json_integer_value(value));
        return true;
    }
    if (!json_is_string(value))
        return false;
    if (ledger_columns[column].type == TYPE_TEXT) {
        row_set_bytes(row, (enum column)column, json_string_value(value),
                      json_string_length(value));
        return true;
    }
    unsigned char *hash = hashes[column == C_HASH];
    if (!read_hex(value, hash))
        return false;
    row_set_bytes(row, (enum column)column, hash, LEDGER_HASH_BYTES);
    return true;
}

static int
take_row(struct import *import, json_t *object)
{
    struct row row = {0};
    unsigned char hashes[2][LEDGER_HASH_BYTES], hash[LEDGER_HASH_BYTES];
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        int column = find_column(name);
        if (column < 0 || !take_value(&row, column, value, hashes))
            return refuse(import, -EBADMSG, "'%.40s' is no value of a row", name);
    }
    struct ledger_head *head = &import->ledger->head;
    if (!row.v[C_SEQ].set || !row.v[C_HASH].set ||
        row.v[C_SEQ].integer != head->seq + 1 || head->seq + 1 == INT64_MAX)
        return refuse(import, -EBADMSG, "row %lld is missing", (long long)head->seq + 1);
    row_hash(head->hash, &row, hash);
    if (memcmp(hash, hashes[1], LEDGER_HASH_BYTES) != 0)
        return refuse(import, -EBADMSG,
                      "the hash of row %lld does not follow from it and the "
                      "row before it",
                      (long long)head->seq + 1);
    sqlite3_stmt *s = statement(import->ledger, S_INSERT, import->err);
    if (!s)
        return import->err->code;
    int rc = row_bind(s, &row);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    /* A row whose hash is right can still lack what a row must have. */
    int r =
        rc == SQLITE_DONE ? 0 : ledger_fail(import->ledger, "write to it", import->err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    head->seq++;
    memcpy(head->hash, hash, sizeof(hash));
    return r;
}

/* --- texts --- */

static int
take_text(struct import *import, struct span line)
{
    struct span base64 = {line.p + TEXT_BASE64_AT, line.n - TEXT_BASE64_AT};
    unsigned char hash[LEDGER_HASH_BYTES];
    size_t n = 0;
    if (base64.n < sizeof(text_end) - 1 ||
        memcmp(line.p + line.n - (sizeof(text_end) - 1), text_end,
               sizeof(text_end) - 1) ||
        sodium_hex2bin(hash, sizeof(hash), line.p + TEXT_HEX_AT, HEX_BYTES, NULL, &n,
                       NULL) ||
        n != sizeof(hash))
        return refuse(import, -EBADMSG, "it is no text of code");
    base64.n -= sizeof(text_end) - 1;
    AUTO_FREE unsigned char *text = malloc(base64.n / 4 * 3 + 3);
    if (!text)
        return refuse(import, -ENOMEM, "no memory for a text");
    if (sodium_base642bin(text, base64.n / 4 * 3 + 3, base64.p, base64.n, NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return refuse(import, -EBADMSG, "the text is not in base 64");
    sqlite3_stmt *s = import->insert_text;
    sqlite3_bind_blob(s, 1, hash, sizeof(hash), SQLITE_STATIC);
    sqlite3_bind_blob64(s, 2, text, n, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if ((rc & 0xFF) == SQLITE_CONSTRAINT)
        return refuse(import, -EBADMSG, "the text is there already, or no row names it");
    return rc == SQLITE_DONE ? 0
                             : ledger_fail(import->ledger, "write to it", import->err);
}

/* --- lines --- */

static int
take_object(struct import *import, json_t *object)
{
    if (import->line == 1)
        return take_first(import, object);
    if (json_object_get(object, "head_seq"))
        return take_last(import, object);
    return take_row(import, object);
}

static int
take_line(struct import *import, struct span line)
{
    import->line++;
    if (import->ended)
        return refuse(import, -EBADMSG, "there is more after the head of the chain");
    if (import->line > 1 && line.n > TEXT_BASE64_AT &&
        memcmp(line.p, text_begin, TEXT_HEX_AT) == 0 &&
        memcmp(line.p + TEXT_MIDDLE_AT, text_middle, sizeof(text_middle) - 1) == 0)
        return take_text(import, line);
    if (line.n > ROW_LINE_BYTES)
        return refuse(import, -EMSGSIZE, "it has more than %d bytes", ROW_LINE_BYTES);
    json_error_t error;
    json_t *object =
        json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!json_is_object(object)) {
        json_decref(object);
        return refuse(import, -EBADMSG, "it is no JSON object");
    }
    int r = take_object(import, object);
    json_decref(object);
    return r;
}

/* Whole lines from the front of `in`; what is left is the start of the next. */
static int
take_lines(struct import *import, struct buf *in, size_t *scanned)
{
    size_t done = 0;
    int r = 0;
    char *end;
    while (r == 0 && (end = memchr(in->p + *scanned, '\n', in->n - *scanned))) {
        size_t at = (size_t)(end - in->p);
        r = take_line(import, (struct span){in->p + done, at - done});
        done = *scanned = at + 1;
    }
    buf_consume(in, done);
    *scanned = in->n;
    return r;
}

static int
read_lines(struct import *import, int fd)
{
    AUTO_BUF struct buf in = {0};
    size_t scanned = 0;
    buf_init(&in, TEXT_LINE_BYTES);
    for (;;) {
        import->line++; /* of which a refusal here would speak */
        if (buf_reserve(&in, READ_BYTES) < 0)
            return refuse(import, -EMSGSIZE, "it has more than %d bytes",
                          TEXT_LINE_BYTES);
        import->line--;
        ssize_t n = read(fd, in.p + in.n, READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(import->err, "cannot read the export");
        if (n == 0)
            break;
        in.n += (size_t)n;
        int r = take_lines(import, &in, &scanned);
        if (r < 0)
            return r;
    }
    if (in.n > 0 || !import->ended)
        return err_set(import->err, -EBADMSG,
                       "the export ends before the head of its chain "
                       "(after line %llu)",
                       (unsigned long long)import->line);
    return 0;
}

/* --- the whole --- */

static const char insert_text[] =
    "INSERT INTO code VALUES (?1, ?2, (SELECT max(seq) FROM entry WHERE code = ?1 AND "
    "kind = 'intent' AND code_kept))";
static const char index_make[] = "CREATE INDEX import_code ON entry(code) "
                                 "WHERE kind = 'intent'";
static const char fill_open[] =
    "DROP INDEX import_code; "
    "INSERT INTO open SELECT seq FROM entry i WHERE kind = 'intent' AND NOT EXISTS "
    "(SELECT 1 FROM entry o WHERE o.intent = i.seq AND o.kind = 'outcome')";

static int
check_import(struct ledger *ledger, struct err *err)
{
    struct ledger_verdict verdict;
    int r = ledger_verify(ledger, NULL, &verdict, err);
    if (r == 0 && !verdict.sound)
        r = err_set(err, -EBADMSG, "%s %lld: %s", verdict.table, (long long)verdict.row,
                    verdict.text);
    return r;
}

static int
import_lines(struct import *import, int fd)
{
    struct ledger *ledger = import->ledger;
    /* A text asks which intents name it: without an index, each would walk the chain. */
    int r = ledger_exec(ledger, index_make, "write to it", import->err);
    if (r < 0)
        return r;
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    r = ledger_prepare(ledger, insert_text, &s, import->err);
    import->insert_text = s;
    return r < 0 ? r : read_lines(import, fd);
}

int
import_into(struct ledger *ledger, int fd, struct err *err)
{
    struct import import = {.ledger = ledger, .err = err};
    int r = chain_begin(ledger, err);
    if (r < 0)
        return r;
    r = import_lines(&import, fd);
    if (r == 0)
        r = ledger_exec(ledger, fill_open, "write to it", err);
    if (r == 0)
        r = chain_commit(ledger, true, err);
    if (r < 0) {
        chain_abandon(ledger);
        return r;
    }
    return check_import(ledger, err);
}

int
ledger_import(const char *path, int fd, struct err *err)
{
    struct ledger *ledger;
    int r = ledger_create(path, &ledger, err);
    if (r < 0)
        return r;
    r = import_into(ledger, fd, err);
    if (r < 0)
        ledger_remove(path); /* while we hold it: nobody else has begun to use it */
    ledger_free(ledger);
    return r;
}
