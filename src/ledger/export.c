/*
 * The ledger as lines of JSON: a head, the rows of the chain in their order, the texts
 * that were kept, an end. Names are those of the columns; what is NULL is left out;
 * hashes are in hexadecimal, texts in base 64. Read in one transaction: it is the ledger
 * of one moment.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "ledger/ledger_parts.h"

enum { OUT_BYTES_MAX = 256 * 1024 * 1024, OUT_FLUSH_BYTES = 64 * 1024 };

static int
no_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "no memory to export the ledger");
}

static int
flush_out(struct buf *out, int fd, size_t least, struct err *err)
{
    if (out->n < least)
        return 0;
    int r = fd_write_all(fd, out->p, out->n);
    if (r < 0) {
        errno = -r;
        return err_sys(err, "cannot write the export of the ledger");
    }
    out->n = 0;
    return 0;
}

static json_t *
json_hex(struct span bytes)
{
    char text[2 * LEDGER_HASH_BYTES + 1];
    if (bytes.n > LEDGER_HASH_BYTES)
        return NULL;
    sodium_bin2hex(text, sizeof(text), (const unsigned char *)bytes.p, bytes.n);
    return json_string(text);
}

static json_t *
json_value(enum column_type type, const struct value *value)
{
    if (type == TYPE_INTEGER)
        return json_integer(value->integer);
    if (type == TYPE_BLOB)
        return json_hex(value->bytes);
    return json_stringn(value->bytes.p ? value->bytes.p : "", value->bytes.n);
}

static int
append_json(struct buf *out, json_t *object, struct err *err)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    int r = text ? buf_printf(out, "%s\n", text) : -ENOMEM;
    free(text);
    return r < 0 ? no_memory(err) : 0;
}

static int
export_row(sqlite3_stmt *s, struct buf *out, struct err *err)
{
    struct row row;
    if (!row_read(s, &row))
        return err_set(err, -EBADMSG,
                       "row %lld is damaged: see `adyton incidents verify`",
                       (long long)sqlite3_column_int64(s, 0));
    json_t *object = json_object();
    for (size_t i = 0; i < COLUMNS && object; i++) {
        if (!row.v[i].set)
            continue;
        json_t *value = json_value(ledger_columns[i].type, &row.v[i]);
        if (!value) {
            json_decref(object);
            return err_set(err, -EBADMSG,
                           "row %lld is damaged: see `adyton incidents verify`",
                           (long long)row.v[C_SEQ].integer);
        }
        json_object_set_new(object, ledger_columns[i].name, value);
    }
    return append_json(out, object, err);
}

static int
export_rows(struct ledger *ledger, struct buf *out, int fd, struct err *err)
{
    char sql[1024];
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    snprintf(sql, sizeof(sql), "%s ORDER BY seq", sql_select_entry);
    int r = ledger_prepare(ledger, sql, &s, err);
    int rc = SQLITE_DONE;
    while (r == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        r = export_row(s, out, err);
        if (r == 0)
            r = flush_out(out, fd, OUT_FLUSH_BYTES, err);
    }
    return r < 0 || rc == SQLITE_DONE ? r : ledger_fail(ledger, "read it", err);
}

/* Written by hand: the import reads this form and no other, for these lines may be long.
 */
static int
export_text(sqlite3_stmt *s, struct buf *out, struct err *err)
{
    size_t n = (size_t)sqlite3_column_bytes(s, 1);
    size_t text_n = sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_ORIGINAL);
    char hash[2 * LEDGER_HASH_BYTES + 1];
    if (sqlite3_column_bytes(s, 0) != LEDGER_HASH_BYTES)
        return err_set(err, -EBADMSG,
                       "a text of code is damaged: see `adyton incidents "
                       "verify`");
    sodium_bin2hex(hash, sizeof(hash), sqlite3_column_blob(s, 0), LEDGER_HASH_BYTES);
    int r = buf_printf(out, "{\"code\":\"%s\",\"base64\":\"", hash);
    if (r == 0)
        r = buf_reserve(out, text_n);
    if (r < 0)
        return no_memory(err);
    const void *bytes = sqlite3_column_blob(s, 1);
    sodium_bin2base64(out->p + out->n, text_n, bytes ? bytes : (const void *)"", n,
                      sodium_base64_VARIANT_ORIGINAL);
    out->n += text_n - 1;
    return buf_printf(out, "\"}\n") < 0 ? no_memory(err) : 0;
}

static int
export_texts(struct ledger *ledger, struct buf *out, int fd, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, "SELECT hash, text FROM code ORDER BY last", &s, err);
    int rc = SQLITE_DONE;
    while (r == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        r = export_text(s, out, err);
        if (r == 0)
            r = flush_out(out, fd, OUT_FLUSH_BYTES, err);
    }
    return r < 0 || rc == SQLITE_DONE ? r : ledger_fail(ledger, "read it", err);
}

/* The first line has the anchor, the last the head. */
static int
export_end(struct ledger *ledger, bool first, struct buf *out, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger,
                           first ? "SELECT anchor_seq, anchor_hash FROM chain"
                                 : "SELECT head_seq, head_hash FROM chain",
                           &s, err);
    if (r < 0)
        return r;
    if (sqlite3_step(s) != SQLITE_ROW)
        return ledger_fail(ledger, "read it", err);
    json_t *hash = json_hex(
        (struct span){sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1)});
    json_int_t seq = sqlite3_column_int64(s, 0);
    return append_json(out,
                       first
                           ? json_pack("{s:s, s:I, s:o}", "schema", "adyton.ledger/1",
                                       "anchor_seq", seq, "anchor_hash", hash)
                           : json_pack("{s:I, s:o}", "head_seq", seq, "head_hash", hash),
                       err);
}

static int
export_all(struct ledger *ledger, struct buf *out, int fd, struct err *err)
{
    int r = export_end(ledger, true, out, err);
    if (r == 0)
        r = export_rows(ledger, out, fd, err);
    if (r == 0)
        r = export_texts(ledger, out, fd, err);
    if (r == 0)
        r = export_end(ledger, false, out, err);
    return r < 0 ? r : flush_out(out, fd, 0, err);
}

int
ledger_export(struct ledger *ledger, int fd, struct err *err)
{
    AUTO_BUF struct buf out = {0};
    buf_init(&out, OUT_BYTES_MAX);
    int r = ledger_exec(ledger, "BEGIN", "read it", err);
    if (r < 0)
        return r;
    r = export_all(ledger, &out, fd, err);
    chain_abandon(ledger);
    return r;
}
