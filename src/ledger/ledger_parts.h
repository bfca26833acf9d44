/* What the files of this room share and no other room sees. */
#pragma once

#include <sodium.h>
#include <sqlite3.h>
#include <sys/types.h>

#include "ledger/ledger.h"

/* Every opening reads the journal, page by page: 200 take a tenth of a millisecond. */
enum { LEDGER_CHECKPOINT_FRAMES = 200 };

/* The columns of `entry`, in the order in which they are stored and hashed. Adding one is
 * a new version of the schema. */
enum column {
    C_SEQ,
    C_KIND,
    C_TIME_US,
    C_RUN,
    C_SESSION,
    C_INTENT,
    /* of an intent */
    C_POLICY,
    C_NAME,
    C_CODE,
    C_CODE_BYTES,
    C_CODE_KEPT,
    C_OWNER,
    C_PID,
    /* of an outcome */
    C_STATUS,
    C_EXIT_CODE,
    C_SIGNAL,
    C_LIMIT_NAME,
    C_LIMIT_VALUE,
    C_MESSAGE,
    C_ERROR,
    C_WALL_US,
    C_CPU_US,
    C_PEAK_MEMORY_BYTES,
    C_PROCESSES,
    C_STDOUT_BYTES,
    C_STDERR_BYTES,
    C_INCIDENTS,
    C_INCIDENTS_DROPPED,
    C_INTERPRETER,
    C_ISOLATION,
    C_START,
    /* of an incident */
    C_NUMBER,
    C_RULE,
    C_LAYER,
    C_FACT,
    C_ACTION,
    C_ACT,
    C_REASON,
    C_COUNT,
    C_LINE,
    C_COLUMN,
    C_REMEDY,
    C_HASH,
    COLUMNS,
};

enum column_type { TYPE_INTEGER, TYPE_TEXT, TYPE_BLOB };

extern const struct column_row {
    const char *name;
    enum column_type type;
} ledger_columns[COLUMNS];

enum kind { KIND_INTENT, KIND_OUTCOME, KIND_INCIDENT, KIND_REQUEST, KINDS };
extern const char *const ledger_kinds[KINDS];

struct value {
    bool set; /* false: NULL */
    int64_t integer;
    struct span bytes; /* of text and blobs; borrowed */
};

struct row {
    struct value v[COLUMNS];
};

enum statement {
    S_BEGIN,
    S_COMMIT,
    S_ROLLBACK,
    S_HEAD,
    S_SET_HEAD,
    S_INSERT,
    S_INTENT,
    S_OPEN_ADD,
    S_OPEN_REMOVE,
    S_OPEN_LIST,
    S_CODE_ADD,
    STATEMENTS,
};

struct ledger {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS]; /* prepared when first used */
    char path[LEDGER_PATH_BYTES];
    int wal_fd;    /* to bring it to the disk */
    int owners_fd; /* holds our byte of the file of owners for as long as we live */
    int64_t owner; /* that byte's place; 0: a reader */
    bool is_dirty; /* committed, and not known to be on the disk */
    int wal_frames, frames_since_tidy;
    pid_t flusher;
    int flush_error; /* errno of the last flush in a process of its own; 0: it went well */
    uint64_t busy_since_us, busy_limit_us;
    struct ledger_head head; /* within a transaction */
};

/* --- row.c --- */
void row_set_integer(struct row *row, enum column column, int64_t value);
void row_set_count(struct row *row, enum column column,
                   uint64_t value); /* kept in range */
void row_set_bytes(struct row *row, enum column column, const void *bytes, size_t n);
/* NULL and "" are left unset. */
void row_set_text(struct row *row, enum column column, const char *text);
void row_hash(const unsigned char before[LEDGER_HASH_BYTES], const struct row *row,
              unsigned char ret[LEDGER_HASH_BYTES]);
int row_bind(sqlite3_stmt *statement, const struct row *row);
/* The columns of a SELECT of all of them, borrowed until its next step. False when a
 * value is not of its column's type. */
bool row_read(sqlite3_stmt *statement, struct row *ret);
void code_hash(struct span code, unsigned char ret[LEDGER_HASH_BYTES]);

/* --- place.c: where it is, and that nobody else can write there --- */
int place_check(const char *path, enum ledger_mode mode, bool *ret_is_new,
                struct err *err) MUST_USE;
/* As place_check; makes the user's own folders. */
int place_make_default(char path[LEDGER_PATH_BYTES], bool make, struct err *err) MUST_USE;
int place_open_owners(const char *path, int *ret_fd, int64_t *ret_owner,
                      struct err *err) MUST_USE;
/* One process at a time makes a ledger's tables; who comes second waits. Closing releases. */
int place_lock_making(const char *path, int *ret_fd, struct err *err) MUST_USE;
bool place_owner_lives(const struct ledger *ledger, int64_t owner);

/* --- open.c --- */
/* An error of SQLite as a sentence with the path: "what: why". */
int ledger_fail(struct ledger *ledger, const char *what, struct err *err);
int ledger_exec(struct ledger *ledger, const char *sql, const char *what,
                struct err *err) MUST_USE;
int ledger_prepare(struct ledger *ledger, const char *sql, sqlite3_stmt **ret,
                   struct err *err) MUST_USE;
/* A ledger in memory: for tests of the import that leave no file. */
int ledger_open_scratch(struct ledger **ret, struct err *err) MUST_USE;
/* The file and those beside it. */
void ledger_remove(const char *path);
/* A new, empty file; -EEXIST when there is one. */
int ledger_create(const char *path, struct ledger **ret, struct err *err) MUST_USE;

/* --- schema.c --- */
int schema_make(struct ledger *ledger, struct err *err) MUST_USE;
/* Refuses a file of another program or version. *ret_empty: it has no schema yet. */
int schema_check(struct ledger *ledger, bool *ret_empty, struct err *err) MUST_USE;

/* --- chain.c --- */
int chain_begin(struct ledger *ledger, struct err *err) MUST_USE;
/* Completes the row (seq, time, hash) and adds it. */
int chain_append(struct ledger *ledger, struct row *row, enum kind kind,
                 struct err *err) MUST_USE;
/* Commits; with full_sync it is on the disk. */
int chain_commit(struct ledger *ledger, bool full_sync, struct err *err) MUST_USE;
void chain_abandon(struct ledger *ledger);
/* A prepared statement of the table above, reset and with nothing bound; NULL: err is
 * set. */
sqlite3_stmt *statement(struct ledger *ledger, enum statement which, struct err *err);
/* To its end, for statements without a result; it is reset whatever comes. */
int statement_run(struct ledger *ledger, sqlite3_stmt *s, const char *what,
                  struct err *err) MUST_USE;
/* The same with one number bound. */
int statement_run_numbered(struct ledger *ledger, enum statement which, int64_t number,
                           struct err *err) MUST_USE;

/* --- flush.c --- */
/* Waits for the disk. 0 or a negative errno. */
int flush_now(struct ledger *ledger) MUST_USE;
void flush_reap(struct ledger *ledger, bool wait);

/* --- import.c --- */
int import_into(struct ledger *ledger, int fd, struct err *err) MUST_USE;

/* "SELECT seq, kind, … FROM entry", the columns in their order. */
extern const char sql_select_entry[];

#define AUTO_STATEMENT __attribute__((cleanup(statement_drop)))
void statement_drop(sqlite3_stmt **statement);
