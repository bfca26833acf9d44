/*
 * The tables. `entry` is the chain. The other three hold nothing that verify does not
 * derive from it: `chain` its two ends, `open` the intents without an outcome, so that a
 * start needs not search for them, `code` the texts that intents name by hash.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/ledger_parts.h"

enum { SCHEMA_VERSION = 1, APPLICATION_ID = 0x61647974 /* "adyt" */ };

const char sql_select_entry[] =
    "SELECT seq, kind, time_us, run, session, intent, policy, name, code, code_bytes, "
    "code_kept, owner, pid, status, exit_code, signal, limit_name, limit_value, message, "
    "error, wall_us, cpu_us, peak_memory_bytes, processes, stdout_bytes, stderr_bytes, "
    "incidents, incidents_dropped, interpreter, isolation, start, number, rule, layer, "
    "fact, action, act, "
    "reason, count, line, col, remedy, hash FROM entry ";

/* Before the first page is written: space can be given back when rows go. */
static const char sql_settings[] = "PRAGMA auto_vacuum = INCREMENTAL";

/* STRICT: a value of another type than its column's cannot be stored. */
static const char sql_tables[] =
    "CREATE TABLE entry ("
    "seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, time_us INTEGER NOT NULL, "
    "run TEXT NOT NULL, session TEXT, intent INTEGER, "
    "policy TEXT, name TEXT, code BLOB, code_bytes INTEGER, code_kept INTEGER, "
    "owner INTEGER, pid INTEGER, "
    "status TEXT, exit_code INTEGER, signal INTEGER, limit_name TEXT, limit_value "
    "INTEGER, "
    "message TEXT, error TEXT, wall_us INTEGER, cpu_us INTEGER, peak_memory_bytes "
    "INTEGER, "
    "processes INTEGER, stdout_bytes INTEGER, stderr_bytes INTEGER, incidents INTEGER, "
    "incidents_dropped INTEGER, "
    "interpreter TEXT, isolation TEXT, start TEXT, "
    "number INTEGER, rule TEXT, layer TEXT, fact INTEGER, action TEXT, act TEXT, "
    "reason TEXT, count INTEGER, line INTEGER, col INTEGER, remedy TEXT, "
    "hash BLOB NOT NULL) STRICT;"
    "CREATE INDEX entry_run ON entry(run) WHERE kind = 'intent';"
    "CREATE INDEX entry_intent ON entry(intent) WHERE intent IS NOT NULL;"
    "CREATE INDEX entry_incident ON entry(seq) WHERE kind = 'incident';"
    "CREATE TABLE chain (id INTEGER PRIMARY KEY CHECK (id = 1), "
    "anchor_seq INTEGER NOT NULL, anchor_hash BLOB NOT NULL, "
    "head_seq INTEGER NOT NULL, head_hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE open (intent INTEGER PRIMARY KEY) STRICT;"
    "CREATE TABLE code (hash BLOB PRIMARY KEY, text BLOB NOT NULL, last INTEGER NOT "
    "NULL) "
    "STRICT, WITHOUT ROWID;"
    /* Two ledgers differ from their first row on. */
    "INSERT INTO chain SELECT 1, 0, r, 0, r FROM (SELECT randomblob(32) AS r);"
    "PRAGMA application_id = 1633974644; PRAGMA user_version = 1;";

static int
read_number(struct ledger *ledger, const char *sql, int64_t *ret, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *query = NULL;
    int r = ledger_prepare(ledger, sql, &query, err);
    if (r < 0)
        return r;
    if (sqlite3_step(query) != SQLITE_ROW)
        return ledger_fail(ledger, "read its version", err);
    *ret = sqlite3_column_int64(query, 0);
    return 0;
}

struct numbers {
    int64_t version, id, tables;
};

static int
read_numbers(struct ledger *ledger, struct numbers *ret, struct err *err)
{
    int r = read_number(ledger, "PRAGMA user_version", &ret->version, err);
    if (r == 0)
        r = read_number(ledger, "PRAGMA application_id", &ret->id, err);
    if (r == 0)
        r = read_number(ledger, "SELECT count(*) FROM sqlite_schema", &ret->tables, err);
    return r;
}

/* Of one moment: another process may be making the tables just now. */
static int
read_numbers_at_once(struct ledger *ledger, struct numbers *ret, struct err *err)
{
    bool is_inside = !sqlite3_get_autocommit(ledger->db);
    int r = is_inside ? 0 : ledger_exec(ledger, "BEGIN", "read it", err);
    if (r == 0)
        r = read_numbers(ledger, ret, err);
    if (!is_inside)
        chain_abandon(ledger);
    return r;
}

/* A build of between two versions may have made it. */
static int
check_columns(struct ledger *ledger, struct err *err)
{
    const char *const queries[] = {
        sql_select_entry,
        "SELECT id, anchor_seq, anchor_hash, head_seq, head_hash FROM chain",
        "SELECT intent FROM open", "SELECT hash, text, last FROM code"};
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
        AUTO_STATEMENT sqlite3_stmt *query = NULL;
        int rc = sqlite3_prepare_v2(ledger->db, queries[i], -1, &query, NULL);
        if (rc == SQLITE_ERROR) /* no such table or column */
            return err_set(err, -EPROTONOSUPPORT,
                           "the ledger %.100s was made by another build of adyton, whose "
                           "tables are others: move it away, and a new one is made (that "
                           "build can export it)",
                           ledger->path);
        if (rc != SQLITE_OK)
            return ledger_fail(ledger, "read it", err);
    }
    return 0;
}

int
schema_check(struct ledger *ledger, bool *ret_empty, struct err *err)
{
    struct numbers n;
    int r = read_numbers_at_once(ledger, &n, err);
    if (r < 0)
        return r;
    *ret_empty = n.version == 0 && n.id == 0 && n.tables == 0;
    if (*ret_empty)
        return 0;
    if (n.id == APPLICATION_ID && n.version == SCHEMA_VERSION)
        return check_columns(ledger, err);
    if (n.id == APPLICATION_ID && n.version > SCHEMA_VERSION)
        return err_set(err, -EPROTONOSUPPORT,
                       "the ledger %.140s was made by a newer adyton: use that one",
                       ledger->path);
    return err_set(err, -EMEDIUMTYPE, "%.160s is no ledger of adyton", ledger->path);
}

static int
sync_folder(const char *path, struct err *err)
{
    char folder[LEDGER_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    AUTO_CLOSE int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fsync(dir) < 0)
        return err_sys(err, "cannot bring the new ledger in %.140s to the disk", folder);
    return 0;
}

/* Several processes may find the file empty at one time: whoever comes second under the
 * lock finds the tables. */
static int
make_tables(struct ledger *ledger, struct err *err)
{
    static const char what[] = "make its tables";
    bool empty;
    int r = ledger_exec(ledger, "BEGIN IMMEDIATE", what, err);
    if (r < 0)
        return r;
    r = schema_check(ledger, &empty, err);
    if (r == 0 && empty)
        r = ledger_exec(ledger, sql_tables, what, err);
    if (r == 0)
        return ledger_exec(ledger, "COMMIT", what, err);
    chain_abandon(ledger);
    return r;
}

int
schema_make(struct ledger *ledger, struct err *err)
{
    int r = ledger_exec(ledger, sql_settings, "set it up", err);
    if (r == 0)
        r = ledger_exec(ledger, "PRAGMA journal_mode = WAL", "set its journal up", err);
    if (r == 0)
        r = make_tables(ledger, err);
    if (r == 0)
        r = ledger_exec(ledger, "PRAGMA wal_checkpoint(FULL)", "bring it to the disk",
                        err);
    return r == 0 && ledger->path[0] != ':' ? sync_folder(ledger->path, err) : r;
}
