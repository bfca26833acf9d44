/*
 * One row of the chain: its columns as data, and the bytes that its hash covers. Every
 * column goes in, in order, with its type and its length before it, so that no two rows
 * share their bytes: a value cannot be moved over the border of a column, and NULL is not
 * "".
 */
#include <sqlite3.h>
#include <string.h>

#include "ledger/ledger_parts.h"

/* clang-format off */
const struct column_row ledger_columns[COLUMNS] = {
    [C_SEQ] = {"seq", TYPE_INTEGER},
    [C_KIND] = {"kind", TYPE_TEXT},
    [C_TIME_US] = {"time_us", TYPE_INTEGER},
    [C_RUN] = {"run", TYPE_TEXT},
    [C_SESSION] = {"session", TYPE_TEXT},
    [C_INTENT] = {"intent", TYPE_INTEGER},
    [C_POLICY] = {"policy", TYPE_TEXT},
    [C_NAME] = {"name", TYPE_TEXT},
    [C_CODE] = {"code", TYPE_BLOB},
    [C_CODE_BYTES] = {"code_bytes", TYPE_INTEGER},
    [C_CODE_KEPT] = {"code_kept", TYPE_INTEGER},
    [C_OWNER] = {"owner", TYPE_INTEGER},
    [C_PID] = {"pid", TYPE_INTEGER},
    [C_STATUS] = {"status", TYPE_TEXT},
    [C_EXIT_CODE] = {"exit_code", TYPE_INTEGER},
    [C_SIGNAL] = {"signal", TYPE_INTEGER},
    [C_LIMIT_NAME] = {"limit_name", TYPE_TEXT},
    [C_LIMIT_VALUE] = {"limit_value", TYPE_INTEGER},
    [C_MESSAGE] = {"message", TYPE_TEXT},
    [C_ERROR] = {"error", TYPE_TEXT},
    [C_WALL_US] = {"wall_us", TYPE_INTEGER},
    [C_CPU_US] = {"cpu_us", TYPE_INTEGER},
    [C_PEAK_MEMORY_BYTES] = {"peak_memory_bytes", TYPE_INTEGER},
    [C_PROCESSES] = {"processes", TYPE_INTEGER},
    [C_STDOUT_BYTES] = {"stdout_bytes", TYPE_INTEGER},
    [C_STDERR_BYTES] = {"stderr_bytes", TYPE_INTEGER},
    [C_INCIDENTS] = {"incidents", TYPE_INTEGER},
    [C_INCIDENTS_DROPPED] = {"incidents_dropped", TYPE_INTEGER},
    [C_INTERPRETER] = {"interpreter", TYPE_TEXT},
    [C_ISOLATION] = {"isolation", TYPE_TEXT},
    [C_START] = {"start", TYPE_TEXT},
    [C_NUMBER] = {"number", TYPE_INTEGER},
    [C_RULE] = {"rule", TYPE_TEXT},
    [C_LAYER] = {"layer", TYPE_TEXT},
    [C_FACT] = {"fact", TYPE_INTEGER},
    [C_ACTION] = {"action", TYPE_TEXT},
    [C_ACT] = {"act", TYPE_TEXT},
    [C_REASON] = {"reason", TYPE_TEXT},
    [C_COUNT] = {"count", TYPE_INTEGER},
    [C_LINE] = {"line", TYPE_INTEGER},
    [C_COLUMN] = {"col", TYPE_INTEGER},
    [C_REMEDY] = {"remedy", TYPE_TEXT},
    [C_HASH] = {"hash", TYPE_BLOB},
};
/* clang-format on */

const char *const ledger_kinds[KINDS] = {[KIND_INTENT] = "intent",
                                         [KIND_OUTCOME] = "outcome",
                                         [KIND_INCIDENT] = "incident",
                                         [KIND_REQUEST] = "request"};

/* Hashes of this chain are hashes of nothing else. */
static const char domain_row[] = "adyton.ledger/1 row",
                  domain_code[] = "adyton.ledger/1 code";

void
row_set_integer(struct row *row, enum column column, int64_t value)
{
    row->v[column] = (struct value){.set = true, .integer = value};
}

void
row_set_count(struct row *row, enum column column, uint64_t value)
{
    row_set_integer(row, column, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

void
row_set_bytes(struct row *row, enum column column, const void *bytes, size_t n)
{
    row->v[column] = (struct value){.set = true, .bytes = {bytes, n}};
}

void
row_set_text(struct row *row, enum column column, const char *text)
{
    if (text && text[0] != '\0')
        row_set_bytes(row, column, text, strlen(text));
}

static void
hash_u64(crypto_generichash_state *state, uint64_t value)
{
    unsigned char bytes[sizeof(value)];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(value >> (8 * (sizeof(bytes) - 1 - i)));
    crypto_generichash_update(state, bytes, sizeof(bytes));
}

static void
hash_value(crypto_generichash_state *state, enum column_type type,
           const struct value *value)
{
    static const unsigned char null_tag = 0;
    const unsigned char tag = (unsigned char)(type + 1);
    crypto_generichash_update(state, value->set ? &tag : &null_tag, 1);
    if (!value->set)
        return;
    if (type == TYPE_INTEGER) {
        hash_u64(state, (uint64_t)value->integer);
        return;
    }
    hash_u64(state, value->bytes.n);
    if (value->bytes.n > 0)
        crypto_generichash_update(state, (const unsigned char *)value->bytes.p,
                                  value->bytes.n);
}

void
row_hash(const unsigned char before[LEDGER_HASH_BYTES], const struct row *row,
         unsigned char ret[LEDGER_HASH_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, LEDGER_HASH_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)domain_row,
                              sizeof(domain_row));
    crypto_generichash_update(&state, before, LEDGER_HASH_BYTES);
    for (size_t i = 0; i < COLUMNS; i++)
        if (i != C_HASH)
            hash_value(&state, ledger_columns[i].type, &row->v[i]);
    crypto_generichash_final(&state, ret, LEDGER_HASH_BYTES);
}

void
code_hash(struct span code, unsigned char ret[LEDGER_HASH_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, LEDGER_HASH_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)domain_code,
                              sizeof(domain_code));
    if (code.n > 0)
        crypto_generichash_update(&state, (const unsigned char *)code.p, code.n);
    crypto_generichash_final(&state, ret, LEDGER_HASH_BYTES);
}

int
row_bind(sqlite3_stmt *statement, const struct row *row)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < COLUMNS && rc == SQLITE_OK; i++) {
        const struct value *value = &row->v[i];
        if (!value->set)
            continue;
        /* A pointer even to nothing: NULL would be stored as NULL. */
        const char *bytes = value->bytes.n > 0 ? value->bytes.p : "";
        if (ledger_columns[i].type == TYPE_INTEGER)
            rc = sqlite3_bind_int64(statement, i + 1, value->integer);
        else if (ledger_columns[i].type == TYPE_TEXT)
            rc = sqlite3_bind_text64(statement, i + 1, bytes, value->bytes.n,
                                     SQLITE_STATIC, SQLITE_UTF8);
        else
            rc = sqlite3_bind_blob64(statement, i + 1, bytes, value->bytes.n,
                                     SQLITE_STATIC);
    }
    return rc;
}

bool
row_read(sqlite3_stmt *statement, struct row *ret)
{
    static const int stored[] = {[TYPE_INTEGER] = SQLITE_INTEGER,
                                 [TYPE_TEXT] = SQLITE_TEXT,
                                 [TYPE_BLOB] = SQLITE_BLOB};
    *ret = (struct row){0};
    for (int i = 0; i < COLUMNS; i++) {
        int type = sqlite3_column_type(statement, i);
        if (type == SQLITE_NULL)
            continue;
        if (type != stored[ledger_columns[i].type])
            return false;
        if (type == SQLITE_INTEGER)
            row_set_integer(ret, (enum column)i, sqlite3_column_int64(statement, i));
        else
            row_set_bytes(ret, (enum column)i, sqlite3_column_blob(statement, i),
                          (size_t)sqlite3_column_bytes(statement, i));
    }
    return true;
}
