/*
 * What came of a job. Facts (status, exit code, signal, limit, usage, isolation, files)
 * come from the kernel and the supervisor; `error` is a claim of the cell: bounded text
 * that changes no fact.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "check/finding.h"
#include "job/outcome_display.h"

enum status {
    STATUS_OK,        /* ended by itself with 0 */
    STATUS_EXCEPTION, /* an uncaught Python exception */
    STATUS_EXIT,      /* sys.exit(n), n not 0 */
    STATUS_REJECTED,  /* validation refused it; nothing ran */
    STATUS_VIOLATION, /* stopped for a forbidden act */
    STATUS_TIMEOUT,   /* wall or CPU limit */
    STATUS_MEMORY,
    STATUS_OUTPUT,
    STATUS_DISK,
    STATUS_PIDS,
    STATUS_CRASHED, /* a signal of its own making */
    STATUS_FAILED,  /* adyton itself could not do its job */
    STATUS_COUNT,
};

/* What became of the session that a run was in. */
enum outcome_session { SESSION_NONE, SESSION_KEPT, SESSION_LOST };

enum {
    OUTCOME_ID_BYTES = 40,
    OUTCOME_LAYERS_MAX = 16,
    OUTCOME_LAYER_BYTES = 32,
    OUTCOME_INCIDENTS_MAX = 64, /* distinct acts a run; more are counted, not kept */
    OUTCOME_TEXT_BYTES = 256,
    OUTCOME_TRACEBACK_BYTES = 64 * 1024,
    OUTCOME_FILE_PATH_BYTES = 1024,
};

/* One stream: the head as it came, the last bytes of what did not fit, and how much is
 * lost. */
struct stream {
    struct buf head;
    struct buf tail;
    uint64_t dropped_bytes; /* between head and tail; 0: nothing is missing */
    uint64_t total_bytes;   /* what the cell wrote */
};

struct incident {
    char rule[48];  /* "system-call", "memory-limit"… */
    char layer[24]; /* "seccomp", "cgroup", "limit", "supervisor", "hook", "ast",
                     * "bytes" */
    bool fact;      /* seen by the kernel or the supervisor; false: claimed by the cell */
    char action[24]; /* "refused" or "ended" */
    char
        act[OUTCOME_TEXT_BYTES]; /* the call, path or host: "ptrace", "socket(AF_INET)" */
    char reason[96];             /* why that is forbidden, for people; may be empty */
    uint64_t count;
    int line, column; /* 0: unknown */
};

struct collected_file {
    char path[OUTCOME_FILE_PATH_BYTES]; /* relative to /tmp; any bytes but NUL */
    uint64_t bytes;
    char mime[128];
    char sha256[65];
};

struct outcome {
    char id[OUTCOME_ID_BYTES]; /* "r_" and 26 characters of Crockford base 32,
                                  time-ordered */
    enum status status;
    bool has_exit_code;
    int exit_code;
    int signal;          /* 0: none */
    char limit_name[32]; /* a policy field's name, "" when no limit ended it */
    uint64_t limit_value;
    char message[OUTCOME_TEXT_BYTES]; /* for people: why it ended; "" when ok */

    struct stream out, err;

    struct displays displays; /* what was shown: a claim; owned */
    struct events events;     /* the order of all of it; owned */

    bool has_error; /* the claim */
    char error_name[128];
    char error_value[1024];
    int error_line; /* of the submitted file; 0: unknown */
    struct buf traceback;

    struct findings findings; /* of validation; owned */

    struct incident incidents[OUTCOME_INCIDENTS_MAX];
    size_t incidents_n;
    uint64_t incidents_dropped; /* acts of kinds that no longer fitted */

    struct collected_file *files; /* owned */
    size_t files_n;
    uint64_t files_skipped; /* not regular, unreadable, or past the collection limits */
    char files_note[OUTCOME_TEXT_BYTES]; /* why, when some were skipped */

    uint64_t wall_us, cpu_us, peak_memory_bytes, processes;
    uint64_t wall_limit_ms, cpu_limit_ms, memory_limit_bytes;

    char isolation[OUTCOME_LAYERS_MAX][OUTCOME_LAYER_BYTES];
    size_t isolation_n;
    char interpreter[64];    /* "cpython 3.11.2" */
    char isolation_name[24]; /* "namespaces" or "landlock" */
    char start[8];           /* "cold", "warm", "pool", "session" */

    enum outcome_session session;
    char session_id[OUTCOME_ID_BYTES];     /* "": none */
    uint64_t execution_count;              /* runs of the session, this one included */
    char session_note[OUTCOME_TEXT_BYTES]; /* why it is lost */
};

/* STATUS_FAILED until somebody decides; fresh id. The streams may hold nothing until
 * whoever fills them has given their buffers a maximum. */
void outcome_init(struct outcome *outcome);
void outcome_done(struct outcome *outcome);

const char *status_name(enum status status);
/* What the status says, as the end of "the run …": "stopped at the memory limit". */
const char *status_meaning(enum status status);
/* The process exit status that `adyton run` ends with, as the status table says. */
int outcome_exit_status(const struct outcome *outcome);

void outcome_add_layer(struct outcome *outcome, const char *format, ...) PRINTF(2, 3);
/* Counts an act: a row with the same rule, layer, action and act is raised by its count
 * (a count of 0 means once). */
void outcome_add_incident(struct outcome *outcome, const struct incident *incident);
/* Makes it STATUS_REJECTED for the errors among its findings, each an incident too. */
void outcome_reject(struct outcome *outcome);
/* Makes it STATUS_FAILED with the error's sentence as its message. */
void outcome_fail(struct outcome *outcome, const struct err *err);

bool stream_is_truncated(const struct stream *stream);
/* What follows the head for somebody who has it: a marker line when bytes are missing,
 * and the tail, as raw bytes. */
int stream_rest(const struct stream *stream, struct buf *out) MUST_USE;
/* The stream as valid UTF-8: head, a marker line where bytes are missing, tail.
 * Characters that the cut went through count as missing. */
int stream_text(const struct stream *stream, struct buf *out,
                uint64_t *ret_replaced) MUST_USE;

enum outcome_json_flags {
    OUTCOME_JSON_BASE64 = 1, /* adds the kept bytes of the streams, exactly */
    OUTCOME_JSON_COMPACT = 2,
    /* Adds "kept" for streams whose text is not all that is known of them: with it
     * outcome_from_json makes the same outcome again. */
    OUTCOME_JSON_EXACT = 4,
};
/* The one JSON form (schema "adyton.outcome/1"). */
int outcome_json(const struct outcome *outcome, int flags, struct buf *out) MUST_USE;
