/*
 * What the supervisor and the guest say to each other: messages over a SOCK_SEQPACKET pair,
 * and one shared page range for claims. Plain data of one build: both ends come from it, and
 * the version says so.
 *
 *   supervisor -> guest   struct guest_setup + the claims memory (SCM_RIGHTS)
 *   guest -> supervisor   struct guest_ready + the seccomp listener (SCM_RIGHTS)
 *
 * and where the policy asks for validation (GUEST_CHECK)
 *
 *   supervisor -> guest   struct guest_check, right after the setup, cut to what is used
 *   guest -> supervisor   struct guest_finding, any number; struct guest_checked, once
 *   supervisor -> guest   one byte, 'g': go; or the end of the cell (in a session 'n': not this
 *                         one). Where nothing was found the guest goes by itself: there is
 *                         nothing to judge
 *
 * and in a session (GUEST_SESSION), for each run
 *
 *   supervisor -> guest   struct guest_job in a memory file, then what validation needs
 *   guest -> supervisor   struct guest_ended
 *
 * What the program shows while it runs goes through the claims memory too, an item at a time:
 * written there, then announced with a system call that the supervisor answers (the doorbell).
 *
 * After that no descriptor above 2 is open in the interpreter: what the guest has to say at
 * the end (which exception it was) it writes into the claims memory, which the supervisor
 * reads when the cell is dead. Everything in it is a claim: bounded, checked, unable to
 * change a fact.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "check/finding.h"
#include "jail/jail.h"
#include "job/outcome_display.h"

enum {
    GUEST_FD = 3,          /* the socket, in the interpreter */
    GUEST_LANDLOCK_FD = 4, /* the ruleset that seal.landlock_fd names */
    GUEST_LEFT = 113,      /* exit code of a session's guest that nobody hears any more */
    GUEST_MAGIC = 0x61647974,
    GUEST_VERSION = 8,
    GUEST_WORDS_BYTES = 48 * 1024, /* a policy's names and paths, whatever it lists */
    CLAIM_ACTS_MAX = 32,
    CLAIM_NAME_BYTES = 128,
    CLAIM_VALUE_BYTES = 1024,
    CLAIM_TRACEBACK_BYTES = 64 * 1024,
};

/* What the policy forbids, as far as the guest puts it into words (audit.c, programs.c). */
enum guest_flag {
    GUEST_NO_PROGRAMS = 1 << 0,
    GUEST_NO_FORK = 1 << 1,
    GUEST_NO_NETWORK = 1 << 2,
    GUEST_CHECK = 1 << 3,     /* validate, and wait for the go */
    GUEST_WARM = 1 << 4,      /* the guest's own: this process was forked from a zygote */
    GUEST_SHOW_LAST = 1 << 5, /* the value of the last expression is shown */
    GUEST_SVG = 1 << 6,       /* figures as SVG, too */
    GUEST_WORKSPACE = 1 << 7, /* /workspace may be written, too */
    GUEST_SESSION = 1 << 8,   /* the process stays, and waits for the next run */
    GUEST_COMPLETE = 1 << 9,  /* a question about the code, which is not run: see
                               * display_complete.py. The argument says which */
    GUEST_END_THREADS = 1 << 10, /* those that a run of a session leaves */
};

struct guest_setup {
    uint32_t magic;
    uint32_t version;
    uint32_t flags;   /* enum guest_flag */
    uint32_t threads; /* a zygote's: what its cells are told, once it has imported */
    struct seal seal;
};

struct guest_ready {
    uint32_t magic;
    struct err err; /* code 0: sealed, the code runs from now on */
};

struct guest_check {
    uint32_t magic;
    uint32_t rules_off;     /* bit by enum check_rule_id: nobody wants to hear of these */
    uint32_t has_workspace; /* 1: what is beneath /workspace may be written, too */
    uint32_t waits;         /* 1: for the supervisor's word, whatever was found */
    uint64_t memory_bytes;
    uint32_t imports_n,
        reads_n;      /* words: first the denied modules, then readable folders */
    uint32_t words_n; /* bytes of words, each ended by a NUL */
    char words[GUEST_WORDS_BYTES];
};

/* --- warm cells: see guest/zygote.c and warm/factory.c --- */

/* From a factory to its zygote, with descriptors in the order of enum zygote_fd: fork a
 * process into the namespaces of a new cell's init. */
struct zygote_request {
    uint32_t magic;
    uint32_t drop_groups; /* we are root: supplementary groups go */
};
enum zygote_fd {
    ZYGOTE_INIT,   /* pidfd of the cell's init */
    ZYGOTE_JOINED, /* pipe to the init: a byte when the process has joined it */
    ZYGOTE_LANDLOCK,
    ZYGOTE_GUEST, /* the socket to the supervisor, and so on as in a cold cell */
    ZYGOTE_CLAIMS,
    ZYGOTE_STDIN,
    ZYGOTE_STDOUT,
    ZYGOTE_STDERR,
    ZYGOTE_JOINS, /* up to three: see cgroup_join */
};
struct zygote_reply {
    int32_t pid; /* as the factory sees it; negative: err says why there is none */
    struct err err;
};

/* In the zygote: its socket to the supervisor is GUEST_FD, this one leads to the factory. */
enum { ZYGOTE_FACTORY_FD = 4 };

/* A job for a warm cell, as a memory file that comes with a byte over its socket: this, then
 * the name, the arguments (each ended by a NUL), the code, what a session's run reads from its stdin,
 * and for each file its guest_job_file, its name and its bytes. */
struct guest_job {
    uint32_t magic;
    uint32_t flags, threads;         /* instead of the setup's */
    uint64_t file_bytes, open_files; /* limits that this job has narrowed */
    uint64_t total_bytes;            /* of all of it */
    uint64_t code_n, stdin_n;
    uint32_t name_n, args_n, args_bytes, files_n;
    uint32_t run;       /* of a session: counted from 1 */
    uint32_t grace_ms;  /* of a session: how long threads may take to end */
    uint32_t has_stdin; /* 1: it may be empty; 0: the run has none of its own */
};
struct guest_job_file {
    uint32_t name_n;
    uint32_t unused;
    uint64_t data_n;
};

enum guest_columns { COLUMNS_ARE_BYTES, COLUMNS_ARE_CHARACTERS };

/* Bounded and checked like any claim: the parser has met hostile text by then. */
struct guest_finding {
    uint32_t magic;
    uint32_t rule; /* enum check_rule_id; CHECK_RULES: this is a struct guest_checked */
    uint32_t columns; /* enum guest_columns: from 0 in UTF-8, or from 1 */
    int32_t line, column, end_line, end_column;
    char text[FINDING_TEXT_BYTES];
};

struct guest_checked {
    uint32_t magic;
    uint32_t rule;              /* CHECK_RULES */
    uint32_t goes;              /* 1: nothing was found, it waits for no word */
    uint32_t more[CHECK_RULES]; /* found, but not sent */
};

enum claim_kind { CLAIM_NONE, CLAIM_EXCEPTION, CLAIM_EXIT };

/* A run of a session has ended: all of it is the guest's word. What was raised is in the claims
 * memory. */
struct guest_ended {
    uint32_t magic;
    uint32_t run;  /* which one: guest_job.run */
    uint32_t kind; /* enum claim_kind */
    int32_t exit_code;
    uint32_t how; /* enum guest_how */
};
enum guest_how {
    GUEST_RAN,
    GUEST_REFUSED,     /* it had no go, and none of it has run */
    GUEST_THREADS_STAY /* it has left threads that do not end (GUEST_END_THREADS) */
};

/* One forbidden act that the audit hook stopped, counted. Texts end with a NUL. */
struct claim_act {
    uint32_t count;
    int32_t line;
    char rule[24];
    char call[40];
    char object[256]; /* a path, a program, a family of addresses */
};

struct claims {
    uint32_t magic;
    uint32_t kind;     /* enum claim_kind; written last */
    int32_t line;      /* of the submitted file; 0: unknown */
    int32_t os_error;  /* errno of an OSError; 0: it was none */
    uint32_t security; /* 1: the exception is an adyton.SecurityError */
    uint32_t name_n, value_n, traceback_n;
    uint32_t acts_n, acts_dropped;
    struct claim_act acts[CLAIM_ACTS_MAX];
    char name[CLAIM_NAME_BYTES];
    char value[CLAIM_VALUE_BYTES];
    char traceback[CLAIM_TRACEBACK_BYTES];
};

/* --- what is shown: see guest/display.c and cell/display.c --- */

/* An item: a struct display_head; then for each of its parts a struct display_part_head, the MIME
 * type and the data. A part without a MIME type is the item's metadata, a JSON object. */
enum { DISPLAY_FRAME_BYTES = DISPLAY_ITEM_BYTES_MAX + (64 << 10) };
enum display_flag { DISPLAY_IS_MAIN = 1 << 0 };
/* What the doorbell returns. */
enum display_answer { DISPLAY_KEPT, DISPLAY_FULL, DISPLAY_UNFIT };

struct display_head {
    uint32_t flags; /* enum display_flag */
    uint32_t parts_n;
};
struct display_part_head {
    uint32_t mime_n, data_n;
    uint32_t omitted_n; /* not 0: so many bytes were left out, and data_n is 0 */
};

struct display_frame {
    uint32_t turn; /* counts items from 1: one that is rung twice is taken once */
    uint32_t n;    /* bytes of the item */
    char bytes[DISPLAY_FRAME_BYTES];
};

struct claims_memory {
    struct claims claims;
    struct display_frame display;
};
