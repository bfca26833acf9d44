/*
 * Opening and closing, and SQLite's errors as sentences. A cold run opens the ledger,
 * adds to it twice and closes it, so what SQLite would do at leisure (the checkpoint at
 * close, which waits for the disk) is done here only when the journal has grown.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ledger/ledger_parts.h"

enum {
    US_PER_MS = 1000,
    BUSY_STEP_US = 100,
    BUSY_STEPS_MAX = 50, /* a wait of 5 ms */
    /* Of who never closes it: a wait for the disk, once in several hundred runs. */
    CHECKPOINT_FRAMES_AT_ONCE = 4000,
};

static const struct {
    int result, code;
    const char *text;
} failures[] = {
    {SQLITE_FULL, -ENOSPC, "there is no space left for it"},
    {SQLITE_BUSY, -EBUSY, "another program has kept it locked for more than 5 s"},
    {SQLITE_LOCKED, -EBUSY, "another program keeps it locked"},
    {SQLITE_PROTOCOL, -EBUSY, "too many programs wait for it"},
    {SQLITE_READONLY, -EACCES, "it cannot be written"},
    {SQLITE_PERM, -EACCES, "it may not be used"},
    {SQLITE_CANTOPEN, -EACCES, "it, or a file beside it, cannot be opened"},
    {SQLITE_CORRUPT, -EBADMSG, "the file is damaged"},
    {SQLITE_NOTADB, -EBADMSG, "the file is no database"},
    {SQLITE_NOMEM, -ENOMEM, "out of memory"},
    {SQLITE_IOERR, -EIO, "it cannot be read or written"},
};

int
ledger_fail(struct ledger *ledger, const char *what, struct err *err)
{
    int result = sqlite3_extended_errcode(ledger->db);
    int code = -EIO;
    const char *text = sqlite3_errstr(result);
    for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++)
        if (failures[i].result == (result & 0xFF)) {
            code = failures[i].code;
            text = failures[i].text;
        }
    int number = sqlite3_system_errno(ledger->db);
    bool says = (result & 0xFF) == SQLITE_IOERR || (result & 0xFF) == SQLITE_CANTOPEN;
    return err_set(err, code, "the ledger %.100s: cannot %s: %s%s%s%s", ledger->path,
                   what, text, says && number ? " (" : "",
                   says && number ? strerror(number) : "", says && number ? ")" : "");
}

void
statement_drop(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

int
ledger_prepare(struct ledger *ledger, const char *sql, sqlite3_stmt **ret,
               struct err *err)
{
    if (sqlite3_prepare_v2(ledger->db, sql, -1, ret, NULL) != SQLITE_OK)
        return ledger_fail(ledger, "read it", err);
    return 0;
}

int
ledger_exec(struct ledger *ledger, const char *sql, const char *what, struct err *err)
{
    if (sqlite3_exec(ledger->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return ledger_fail(ledger, what, err);
    return 0;
}

/* Short waits first: who holds the lock has a few pages to write. */
static int
wait_for_lock(void *context, int count)
{
    struct ledger *ledger = context;
    uint64_t now_us = clock_now_us();
    if (count == 0)
        ledger->busy_since_us = now_us;
    if (now_us - ledger->busy_since_us > ledger->busy_limit_us)
        return 0;
    int steps = count < BUSY_STEPS_MAX ? count + 1 : BUSY_STEPS_MAX;
    usleep((useconds_t)(steps * BUSY_STEP_US));
    return 1;
}

static int
note_commit(void *context, sqlite3 *db, const char *name, int frames)
{
    struct ledger *ledger = context;
    ledger->is_dirty = true;
    /* Fewer than before: the journal was begun anew. */
    ledger->frames_since_tidy +=
        frames >= ledger->wal_frames ? frames - ledger->wal_frames : frames;
    ledger->wal_frames = frames;
    if (frames >= CHECKPOINT_FRAMES_AT_ONCE)
        (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

static int
open_database(struct ledger *ledger, struct err *err)
{
    static const struct {
        int setting, value;
    } settings[] = {
        {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1}, {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},   {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    };
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int rc = sqlite3_open_v2(ledger->path, &ledger->db, flags, NULL);
    if (rc != SQLITE_OK)
        return ledger_fail(ledger, "open it", err);
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        sqlite3_db_config(ledger->db, settings[i].setting, settings[i].value, NULL);
    int keep = 1;
    sqlite3_file_control(ledger->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
    sqlite3_extended_result_codes(ledger->db, 1);
    sqlite3_busy_handler(ledger->db, wait_for_lock, ledger);
    return 0;
}

/* In memory nobody else is there. */
static int
make_once(struct ledger *ledger, struct err *err)
{
    AUTO_CLOSE int lock = -1;
    bool empty = true;
    int r = ledger->path[0] == ':' ? 0 : place_lock_making(ledger->path, &lock, err);
    if (r == 0)
        r = schema_check(ledger, &empty, err);
    return r == 0 && empty ? schema_make(ledger, err) : r;
}

/* From here on the file has its tables, and the journal is there to be flushed. */
static int
prepare_for_use(struct ledger *ledger, enum ledger_mode mode, struct err *err)
{
    bool empty;
    int r = schema_check(ledger, &empty, err);
    if (r == 0 && empty && mode == LEDGER_READ)
        return err_set(err, -ENOENT, "the ledger %.160s is empty", ledger->path);
    if (r == 0 && empty)
        r = make_once(ledger, err);
    if (r == 0 && mode == LEDGER_READ)
        return ledger_exec(ledger, "PRAGMA query_only = 1", "set it up", err);
    /* NORMAL: SQLite waits for the disk when it moves the journal into the file; when a
     * commit waits is decided here. */
    if (r == 0)
        r = ledger_exec(ledger, "PRAGMA synchronous = NORMAL", "set it up", err);
    if (r < 0 || ledger->path[0] == ':')
        return r;
    char wal[LEDGER_PATH_BYTES + 8];
    snprintf(wal, sizeof(wal), "%s-wal", ledger->path);
    ledger->wal_fd = open(wal, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (ledger->wal_fd < 0)
        return err_sys(err, "cannot open %.160s", wal);
    /* The hook takes the place of SQLite's own automatic checkpoint. */
    sqlite3_wal_hook(ledger->db, note_commit, ledger);
    return 0;
}

void
ledger_set_patience(struct ledger *ledger, unsigned ms)
{
    ledger->busy_limit_us = (uint64_t)ms * US_PER_MS;
}

static struct ledger *
ledger_alloc(const char *path)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return NULL;
    ledger->wal_fd = ledger->owners_fd = -1;
    ledger_set_patience(ledger, LEDGER_PATIENCE_MS);
    /* "file:x" would be a URI to SQLite. */
    bool plain = path[0] == '/' || path[0] == ':';
    snprintf(ledger->path, sizeof(ledger->path), "%s%s", plain ? "" : "./", path);
    return ledger;
}

static int
open_at(const char *path, enum ledger_mode mode, struct ledger **ret, struct err *err)
{
    AUTO_LEDGER struct ledger *ledger = ledger_alloc(path);
    if (!ledger)
        return err_set(err, -ENOMEM, "no memory for the ledger");
    if (sodium_init() < 0)
        return err_set(err, -EIO, "the hash library cannot be used");
    int r = open_database(ledger, err);
    if (r == 0)
        r = prepare_for_use(ledger, mode, err);
    if (r == 0 && mode == LEDGER_WRITE)
        r = place_open_owners(ledger->path, &ledger->owners_fd, &ledger->owner, err);
    if (r < 0)
        return r;
    *ret = ledger;
    ledger = NULL;
    return 0;
}

int
ledger_open(const char *path, enum ledger_mode mode, struct ledger **ret, struct err *err)
{
    char own[LEDGER_PATH_BYTES];
    bool is_new;
    uint64_t closed;
    int r = 0;
    if (!path)
        r = place_make_default(own, mode == LEDGER_WRITE, err);
    if (r == 0)
        r = place_check(path ? path : own, mode, &is_new, err);
    AUTO_LEDGER struct ledger *ledger = NULL;
    if (r == 0)
        r = open_at(path ? path : own, mode, &ledger, err);
    if (r == 0 && mode == LEDGER_WRITE)
        r = ledger_close_open_intents(ledger, &closed, err);
    if (r < 0)
        return r;
    *ret = ledger;
    ledger = NULL;
    return 0;
}

void
ledger_remove(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-owners"};
    char name[LEDGER_PATH_BYTES + 8];
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

int
ledger_create(const char *path, struct ledger **ret, struct err *err)
{
    bool is_new;
    int r = place_check(path, LEDGER_WRITE, &is_new, err);
    if (r == 0 && !is_new)
        r = err_set(err, -EEXIST, "%.160s is there already: an import makes a new ledger",
                    path);
    if (r < 0)
        return r;
    r = open_at(path, LEDGER_WRITE, ret, err);
    if (r < 0)
        ledger_remove(path);
    return r;
}

int
ledger_open_scratch(struct ledger **ret, struct err *err)
{
    AUTO_LEDGER struct ledger *ledger = ledger_alloc(":memory:");
    if (!ledger)
        return err_set(err, -ENOMEM, "no memory for the ledger");
    int r = open_database(ledger, err);
    if (r == 0)
        r = prepare_for_use(ledger, LEDGER_WRITE, err);
    if (r < 0)
        return r;
    *ret = ledger;
    ledger = NULL;
    return 0;
}

const char *
ledger_path(const struct ledger *ledger)
{
    return ledger->path;
}

/* Cut to nothing, not only moved into the file: the next to open would read it again.
 * Where others are at work, one of them will do it. */
static void
empty_journal(struct ledger *ledger)
{
    sqlite3_busy_handler(ledger->db, NULL, NULL);
    if (sqlite3_wal_checkpoint_v2(ledger->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                  NULL) == SQLITE_OK)
        ledger->is_dirty = false;
}

void
ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(ledger->statements[i]);
    flush_reap(ledger, true);
    if (ledger->wal_frames >= LEDGER_CHECKPOINT_FRAMES)
        empty_journal(ledger);
    if (ledger->is_dirty)
        (void)!flush_now(ledger);
    sqlite3_close(ledger->db);
    fd_close(&ledger->wal_fd);
    fd_close(&ledger->owners_fd);
    free(ledger);
}

void
ledger_drop(struct ledger **ledger)
{
    ledger_free(*ledger);
}
