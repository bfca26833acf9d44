/*
 * The memory of what was run and what was refused: one SQLite file of rows that are only
 * ever added. An intent stands before the cell gets code, an outcome and its incidents
 * after it is dead. Each row's hash covers its columns and the hash before it.
 *
 * Many processes append at once. What was committed survives the death of any of them;
 * the functions say what a power cut can take. Nothing here knows how a cell is made.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "job/outcome.h"

enum {
    LEDGER_HASH_BYTES = 32,
    LEDGER_PATH_BYTES = 1024,
    LEDGER_ID_BYTES = 64, /* of a run or an incident, NUL included */
};

struct ledger;

enum ledger_mode {
    LEDGER_READ,  /* must be there; changes nothing */
    LEDGER_WRITE, /* made when it is not there; closes what dead processes left open */
};

/* The user's own: $XDG_STATE_HOME/adyton/ledger.db, else ~/.local/state/adyton/ledger.db.
 */
int ledger_default_path(char path[LEDGER_PATH_BYTES], struct err *err) MUST_USE;
/* path NULL: the user's own, whose folders are made. Refuses a file or a folder that is
 * another user's or that others may write. -ENOENT when there is none to read. */
int ledger_open(const char *path, enum ledger_mode mode, struct ledger **ret,
                struct err *err) MUST_USE;
/* Flushes, and tidies the file when that is due. */
void ledger_free(struct ledger *ledger);
const char *ledger_path(const struct ledger *ledger);

#define AUTO_LEDGER __attribute__((cleanup(ledger_drop)))
void ledger_drop(struct ledger **ledger); /* for AUTO_LEDGER */

/* --- appending --- */
struct ledger_intent {
    const char *run;     /* the outcome's id */
    const char *session; /* NULL: none */
    const char *policy;
    const char *name; /* of the script */
    struct span code;
    bool keep_code; /* its text too, not only its hash and length */
    bool full_sync; /* on the disk before this returns */
};

/* Committed when it returns 0; *ret_seq is the row's number. */
int ledger_intent(struct ledger *ledger, const struct ledger_intent *intent,
                  int64_t *ret_seq, struct err *err) MUST_USE;
/* The outcome and its incidents in one transaction. -EEXIST: that intent has its outcome.
 */
int ledger_outcome(struct ledger *ledger, int64_t intent_seq,
                   const struct outcome *outcome, bool full_sync,
                   struct err *err) MUST_USE;
/* A prompt that a model was asked with, and what its answer led to. The prompt itself is not kept:
 * its hash and length are. */
struct ledger_request {
    const char *ask; /* the id of the question, which may take several */
    const char *run; /* what the answer was run as; NULL: nothing was run */
    const char *model, *policy;
    struct span prompt;  /* all that was sent but the key */
    const char *verdict; /* on the code of the answer: "ok", "rejected", "no-code"… */
    const char *message; /* for people; may be "" */
};
int ledger_request(struct ledger *ledger, const struct ledger_request *request,
                   bool full_sync, struct err *err) MUST_USE;
/* Closes as failed the intents whose process is gone. Opening for writing does it too. */
int ledger_close_open_intents(struct ledger *ledger, uint64_t *ret_closed,
                              struct err *err) MUST_USE;
/* Brings what was committed to the disk, and waits for it. */
int ledger_flush(struct ledger *ledger, struct err *err) MUST_USE;
/* Has the disk begin with it, so that there is less to wait for then. */
void ledger_flush_begin(const struct ledger *ledger);
/* Begins to, and does not wait: for a timer, whose period is then what a power cut can
 * take. True while it must be called again: something is not on the disk yet. */
bool ledger_flush_soon(struct ledger *ledger);
/* How long to wait for a ledger that another program has locked: 5 s, unless it is said. */
enum { LEDGER_PATIENCE_MS = 5000 };
void ledger_set_patience(struct ledger *ledger, unsigned ms);
/* The errno of the last of those that has ended; 0: it went well. */
int ledger_flush_error(const struct ledger *ledger);

/* What a model can do about an incident, or NULL. */
const char *ledger_remedy(const struct incident *incident);

/* --- keeping it small --- */
struct ledger_retention {
    uint64_t days;  /* older rows go */
    uint64_t bytes; /* then the oldest, until no more than this is in use */
};
/* Removes at most a batch from the old end; the anchor then holds the last removed hash.
 * Open intents, the newest run, and everything after the first of them stay. */
int ledger_prune(struct ledger *ledger, const struct ledger_retention *retention,
                 uint64_t *ret_rows, struct err *err) MUST_USE;
/* The same, when the journal has grown enough to be worth it: for the end of every run.
 */
int ledger_tidy(struct ledger *ledger, const struct ledger_retention *retention,
                struct err *err) MUST_USE;

/* --- reading: newest first; strings live until the callback returns --- */
struct ledger_filter {
    int64_t since_us;                                  /* Unix time; 0: all */
    const char *rule, *status, *session, *layer, *run; /* NULL: any */
    uint64_t limit;                                    /* rows; 0: all */
};

struct ledger_run {
    int64_t seq, time_us;
    const char *id, *session, *policy, *name;
    unsigned char code[LEDGER_HASH_BYTES];
    int64_t code_bytes, pid;
    bool code_kept;
    const char *status; /* "open" while there is no outcome */
    bool has_exit_code;
    int64_t ended_us, exit_code, signal, limit_value, wall_us, cpu_us, peak_memory_bytes,
        processes, stdout_bytes, stderr_bytes, incidents,
        incidents_dropped; /* acts of kinds that no longer fitted */
    const char *limit_name, *message, *error, *interpreter, *isolation, *start;
};

struct ledger_incident {
    char id[LEDGER_ID_BYTES]; /* the run's, a dot, its number in the run */
    int64_t seq, time_us, number, count, line, column;
    const char *run, *session, *policy, *status, *rule, *layer, *action, *act, *reason,
        *remedy;
    bool fact;
    unsigned char code[LEDGER_HASH_BYTES];
};

/* A callback that returns not 0 ends the walk with that value. */
int ledger_each_run(struct ledger *ledger, const struct ledger_filter *filter,
                    int (*each)(void *context, const struct ledger_run *run),
                    void *context, struct err *err) MUST_USE;
int ledger_each_incident(struct ledger *ledger, const struct ledger_filter *filter,
                         int (*each)(void *context,
                                     const struct ledger_incident *incident),
                         void *context, struct err *err) MUST_USE;
/* The request to a model that a run came from, when it is in the same ledger. */
struct ledger_asked {
    char ask[LEDGER_ID_BYTES], model[OUTCOME_TEXT_BYTES];
    unsigned char prompt[LEDGER_HASH_BYTES];
    int64_t prompt_bytes;
};
/* -ENOENT: it came from none. Reads what is newer than the run, row by row. */
int ledger_asked(struct ledger *ledger, const struct ledger_run *run,
                 struct ledger_asked *ret, struct err *err) MUST_USE;
/* One of them by its id; -ENOENT when there is none. */
int ledger_find_run(struct ledger *ledger, const char *id,
                    int (*each)(void *context, const struct ledger_run *run),
                    void *context, struct err *err) MUST_USE;
int ledger_find_incident(struct ledger *ledger, const char *id,
                         int (*each)(void *context,
                                     const struct ledger_incident *incident),
                         void *context, struct err *err) MUST_USE;
/* The text of code by its hash; -ENOENT when it was not kept. */
int ledger_code(struct ledger *ledger, const unsigned char hash[LEDGER_HASH_BYTES],
                struct buf *text, struct err *err) MUST_USE;

/* --- trust --- */
struct ledger_head {
    int64_t seq;
    unsigned char hash[LEDGER_HASH_BYTES];
};

struct ledger_verdict {
    bool sound;
    uint64_t rows, open; /* rows checked; intents without an outcome */
    struct ledger_head anchor, head;
    char table[16]; /* of the first bad row */
    int64_t row;    /* its number; of `code`, the intent that refers to it */
    char text[160]; /* what is wrong with it */
};

/* Reads everything. `noted`, when not NULL, is a head that was written down elsewhere and
 * must still be in the chain. An error is ours: it could not be read to the end. */
int ledger_verify(struct ledger *ledger, const struct ledger_head *noted,
                  struct ledger_verdict *ret, struct err *err) MUST_USE;

/* The whole ledger as JSON lines; and a new ledger (path must not exist) from such a
 * file, which may be anybody's: its size in memory is bounded, and what does not verify
 * is refused with its line. */
int ledger_export(struct ledger *ledger, int fd, struct err *err) MUST_USE;
int ledger_import(const char *path, int fd, struct err *err) MUST_USE;
