/* The supervisor's state, shared by the files serve_*.c; nobody else's. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "engine/pool.h"
#include "engine/pressure.h"
#include "engine/protocol.h"
#include "engine/queue.h"
#include "engine/serve.h"
#include "job/outcome.h"
#include "ledger/ledger.h"
#include "policy/policy.h"

enum {
    SERVE_CLIENTS_MAX = 1024,
    SERVE_FDS_MAX = 16,            /* received and not yet taken by a run, each client */
    SERVE_LARGE_BYTES = 64 * 1024, /* frames above this are counted against the next */
    SERVE_HELD_MAX = 512 * 1024 * 1024, /* large frames and their jobs, all clients */
    /* A client with this much unread output gets no more of it as it comes, and is not
     * read either: what it asks would only add to it. */
    SERVE_STREAM_PENDING_MAX = 1024 * 1024,
    /* With this much unread, the next outcome finds the connection closed. */
    SERVE_PENDING_MAX = 64 * 1024 * 1024,
    SERVE_PENDING_ALL_MAX = 512 * 1024 * 1024, /* of all clients */
    SERVE_RATE_SECONDS = 64,
    /* One part in so many of the memory budget is what sessions at rest may hold. */
    SERVE_SESSIONS_SHARE = 2,
    SERVE_SESSION_BUCKETS = 1024,
    SERVE_POLICIES = SERVE_POLICIES_MAX + 8, /* the built-in ones, too */
};

/* Lives as long as a run uses it, whatever is reloaded meanwhile. */
struct serve_policy {
    size_t refs;
    const char *path; /* NULL: built in */
    struct policy policy;
};

struct serve_rates {
    uint64_t second; /* of the newest slot */
    uint32_t ended[SERVE_RATE_SECONDS];
    double run_ms; /* moving average of what a run takes here, start to end */
};

/* What was given back because memory was short, in the order in which it goes. */
enum serve_given {
    SERVE_GIVEN_CELLS,
    SERVE_GIVEN_ZYGOTES,
    SERVE_GIVEN_SESSIONS,
    SERVE_GIVEN
};

enum serve_session_state { SESSION_OPENING, SESSION_OPEN, SESSION_ENDED };

struct serve_session {
    struct serve_session *after, *next_in_bucket;
    struct serve *serve;
    char id[OUTCOME_ID_BYTES];
    enum serve_session_state state;
    char reason[OUTCOME_TEXT_BYTES]; /* why it has ended */
    const struct serve_client *tied; /* ends with this one; NULL: with none */
    struct serve_policy *loaded;
    struct policy policy; /* narrowed when it was made; its lists are those of `loaded` */
    char python[PROTOCOL_PATH_BYTES];
    struct job_folders *folders;         /* owned; found when it was made; NULL: none */
    struct pool_run *run;                /* its cell; NULL: none any more */
    struct serve_job *current, *waiting; /* what runs in it, or takes its turn */
    size_t users;                        /* jobs that point here */
    uint32_t runs;
    uint64_t opened_us, last_us; /* last: when its last run ended */
    uint64_t rest_bytes;         /* while it waits: what it held when we looked last */
    struct event *on_time;
    int64_t intent;
    struct serve_seen *before, *latest; /* listings of its files: serve_files.c's */
};

struct serve {
    const struct serve_options *options;
    struct event_base *base;
    struct pool *pool;
    struct ledger *ledger;
    int flush_error; /* of the ledger, as it was told last */
    struct queue queue;
    struct serve_policy *policies[SERVE_POLICIES];
    size_t policies_n;

    bool is_private; /* serves one client, and ends with it */
    int listener;
    ino_t socket_inode; /* of the one that we made, and remove; 0: none */
    char socket[SERVE_PATH_BYTES];
    struct event *on_accept, *on_accept_again, *on_signals[3], *on_flush, *on_last;

    struct serve_client *clients;
    size_t clients_n;
    struct serve_job *jobs;
    size_t jobs_n;
    struct serve_session *sessions;                       /* those that have ended, too */
    struct serve_session *buckets[SERVE_SESSION_BUCKETS]; /* the same, by their ids */
    size_t sessions_n;                                    /* alive */
    struct serve_session *measured; /* whose memory is read next; NULL: the first's */
    struct serve_files *files;      /* work on files of sessions that goes on */
    size_t files_n, seen_bytes;
    struct pressure pressure;
    uint64_t given[SERVE_GIVEN];
    uint64_t held_bytes, pending_bytes;
    bool draining;

    uint64_t started_us, refused; /* refused: answered with busy */
    struct serve_rates rates;
};

struct serve_client {
    struct serve_client *before, *after;
    struct serve *serve;
    int fd;
    /* later: flushes what nobody was in a hurry to send; frees a client that is closed. */
    struct event *on_read, *on_gone, *on_write, *later;
    struct buf in, out;
    size_t out_done;       /* sent from the front of out */
    size_t counted_bytes;  /* our part of serve->pending_bytes */
    size_t reserved_bytes; /* for the frame that is being read; of serve->held_bytes */
    int fds[SERVE_FDS_MAX];
    size_t fds_n;
    struct queue_lane lane;
    bool greeted, reading, wants_room;
    bool last_words; /* closes when all is sent; nothing more is read */
    bool closed;     /* waits to be freed */
};

struct serve_job {
    struct serve_job *before, *after;
    struct serve *serve;
    struct serve_client *client; /* NULL: gone */
    struct queue_item turn;
    char id[PROTOCOL_ID_BYTES];
    char run_id[OUTCOME_ID_BYTES]; /* ours, as in the ledger */
    struct protocol_run *asked;
    struct serve_policy *loaded;
    struct policy policy; /* narrowed; its lists are those of `loaded` */
    int collect_dir;
    size_t held_bytes;
    struct pool_run *run; /* while it runs */
    /* While another program has the ledger locked: the loop goes on, and it is tried again. */
    struct event *again;
    uint64_t locked_us;            /* since when; 0: it is not */
    struct pool_run *late;         /* has ended; held until that is recorded */
    struct outcome late_outcome;   /* borrows from it */
    struct serve_session *session; /* NULL: a run of its own */
    struct serve_job *next_in_session;
    bool opens; /* the session, or opens it again */
    bool was_submitted;
    int64_t intent;
    uint64_t started_us;
    bool dropped[3]; /* by stream: no more of it is sent as it comes */
};

/* --- serve.c --- */
PRINTF(2, 3) void serve_note(struct serve *serve, const char *format, ...);
/* After a run or a client is gone: stops a supervisor that drains when nothing is left.
 */
void serve_check_drained(struct serve *serve);

/* --- serve_socket.c --- */
int serve_socket_open(struct serve *serve, struct err *err) MUST_USE;
void serve_socket_close(struct serve *serve);
/* Whether the other end may ask anything of us: the same user, or root. */
int serve_check_peer(int fd, struct err *err) MUST_USE;

/* --- serve_systemd.c --- */
/* The socket that systemd listens on for us; -1: there is none. */
int serve_systemd_socket(int *ret_fd, struct err *err) MUST_USE;
void serve_systemd_notify(const char *state);

/* --- serve_client.c --- */
void serve_accept(evutil_socket_t fd, short what, void *context);
/* One that is connected already; takes *fd over. */
int serve_client_welcome(struct serve *serve, int *fd, struct err *err) MUST_USE;
/* Sends what is pending, now or when the client reads. May close it. */
void serve_client_flush(struct serve_client *client);
/* Within a few milliseconds, with whatever follows until then. */
void serve_client_flush_soon(struct serve_client *client);
/* Cancels its jobs; the memory goes a turn of the loop later. */
void serve_client_close(struct serve_client *client);
/* Those that wait for room to read a large frame may look again. */
void serve_client_wake_all(struct serve *serve);
size_t serve_client_pending(const struct serve_client *client);
void serve_client_free(struct serve_client *client);

/* --- serve_reply.c: into client->out; a client they find no memory for is closed --- */
/* For the frames of other files: false when the client is closed, or r was negative. */
bool serve_reply_begin(struct serve_client *client, size_t *at);
bool serve_reply_end(struct serve_client *client, size_t at, int r);
/* A JSON string of bytes that may be no UTF-8; *ret_replaced: how many characters were not. */
int serve_reply_put_text(struct buf *out, struct span text,
                         uint64_t *ret_replaced) MUST_USE;
void serve_reply_hello(struct serve_client *client);
void serve_reply_pong(struct serve_client *client);
void serve_reply_accepted(struct serve_client *client, const char *id, size_t ahead);
void serve_reply_busy(struct serve_client *client, const char *id, uint64_t retry_ms);
/* id "": of no run. The code is the protocol's word for err->code. */
void serve_reply_error(struct serve_client *client, const char *id,
                       const struct err *err);
void serve_reply_display(struct serve_client *client, const char *id,
                         const struct display_item *item);
void serve_reply_output(struct serve_client *client, const char *id, int stream,
                        struct span bytes);
void serve_reply_event(struct serve_client *client, const char *id,
                       const struct run_event *event);
void serve_reply_dropped(struct serve_client *client, const char *id, int stream);
void serve_reply_finished(struct serve_client *client, const char *id,
                          const struct outcome *outcome);
/* What is known of one; as long as it is remembered. */
void serve_reply_session(struct serve_client *client, const char *id,
                         const struct serve_session *session);
void serve_reply_sessions(struct serve_client *client, const char *id);
/* What a session says of a text; see serve_complete.c. */
void serve_complete_reply(struct serve_client *client, const struct serve_job *job,
                          const struct outcome *outcome);
/* Of a question: it is given little time, and nothing is validated. */
int serve_complete_prepare(struct serve_job *job, struct err *err) MUST_USE;
void serve_reply_status(struct serve_client *client);
/* An error frame on a socket that never becomes a client. */
void serve_reply_refusal(int fd, const struct err *err);

/* --- serve_status.c --- */
void serve_count_run(struct serve *serve, uint64_t took_us);
uint64_t serve_retry_ms(const struct serve *serve);
int serve_status_json(struct serve *serve, struct buf *out) MUST_USE;

/* --- serve_job.c --- */
/* Takes request->run over. */
void serve_job_ask(struct serve_client *client, struct protocol_request *request);
void serve_job_cancel(struct serve_client *client, const char *id);
/* It is the turn of a run that has waited for its session. */
void serve_job_go_on(struct serve_job *job);
/* Starts what may start. */
void serve_job_pump(struct serve *serve);
/* Of a client that is gone. */
void serve_job_abandon(struct serve_client *client);
/* Those that wait are told that they will not run here. */
void serve_job_refuse_waiting(struct serve *serve);
/* At the end, while the pool is there: what has ended and is not recorded yet. */
void serve_job_record_late(struct serve *serve);
/* At the very end, when the pool is gone. */
void serve_job_free_all(struct serve *serve);

/* --- serve_examine.c --- */
int serve_job_examine(struct serve_job *job, const char *session,
                      struct err *err) MUST_USE;

/* --- serve_policies.c --- */
int serve_policies_load(struct serve *serve, struct err *err) MUST_USE;
void serve_policies_reload(struct serve *serve);
struct serve_policy *serve_policies_find(struct serve *serve, const char *name);
void serve_policy_release(struct serve_policy *policy);
void serve_policies_done(struct serve *serve);

/* --- serve_pressure.c --- */
/* From here on memory is watched, and given back when it is short. */
int serve_pressure_open(struct serve *serve, struct err *err) MUST_USE;

/* --- serve_record.c --- */
int serve_record_open(struct serve *serve, struct err *err) MUST_USE;
/* -EBUSY: another program has the ledger locked; nothing has happened. */
int serve_record_begin(struct serve_job *job, struct err *err) MUST_USE;
/* As above, with the outcome as it was. */
int serve_record_try_end(struct serve_job *job, struct outcome *outcome) MUST_USE;
/* Turns the outcome into a failure of ours when it cannot be recorded. */
void serve_record_end(struct serve_job *job, struct outcome *outcome);
void serve_record_session_end(struct serve_session *session, struct outcome *outcome);
void serve_record_close(struct serve *serve);

/* --- serve_session.c --- */
/* Makes the session that the job opens, or finds its own. */
int serve_session_enter(struct serve_job *job, const char *id, struct err *err) MUST_USE;
/* A new one takes its policy from the job that opens it. */
void serve_session_open(struct serve_job *job);
/* True: it is this job's turn in its session. Else it awaits it: how many are ahead, or -EBUSY. */
bool serve_session_take_turn(struct serve_job *job) MUST_USE;
int serve_session_await(struct serve_job *job) MUST_USE;
/* The job is nobody's any more: the next one has its turn. */
void serve_session_leave(struct serve_job *job);
int serve_session_submit(struct serve_job *job, struct pool_request *request,
                         struct err *err) MUST_USE;
/* What the end of a run is for its session, into both. */
void serve_session_take_end(struct serve_job *job, struct outcome *outcome);
/* Reads what the next `most` of those at rest hold. */
void serve_session_measure(struct serve *serve, size_t most);
/* Closes those that have been idle for longest, if their policy lets them be closed, until they
 * held so much together; how many. */
uint64_t serve_session_close_idle(struct serve *serve, uint64_t bytes, size_t most,
                                  const char *reason);
/* How many may live at once: what there are descriptors for. */
size_t serve_session_max(const struct serve *serve);
void serve_session_count(const struct serve *serve, size_t *ret_idle);
/* What needs no turn: show, list, interrupt, close. */
int serve_session_ask(struct serve_client *client, const struct protocol_request *request,
                      struct err *err) MUST_USE;
/* Work on its files may begin: it is there and has a cell. */
int serve_session_find(struct serve *serve, const char *id, struct serve_session **ret,
                       struct err *err) MUST_USE;
/* Of a client that is gone: those that are tied to it end. */
void serve_session_abandon(const struct serve_client *client);
/* When the pool is gone. */
void serve_session_end_all(struct serve *serve, const char *reason);
void serve_session_free_all(struct serve *serve);

/* --- serve_files.c --- */
void serve_files_ask(struct serve_client *client, const struct protocol_request *request);
/* False: there is no such work. */
bool serve_files_cancel(struct serve_client *client, const char *id);
/* The client has read: what waited for that goes on. */
void serve_files_go_on(const struct serve_client *client);
/* Of a client that is gone. */
void serve_files_abandon(const struct serve_client *client);
/* The session has ended, or begins again: its work is told so, its listings are forgotten. */
void serve_files_end(struct serve_session *session, const char *why);

/* --- serve_seen.c: what a listing of a session's files had, for the next one --- */
struct serve_seen;
enum serve_change { CHANGE_NONE, CHANGE_ADDED, CHANGE_MODIFIED };
/* Begins one: what it had of the runs before is what it is compared with. refs: one. NULL: no
 * memory. */
struct serve_seen *serve_seen_new(struct serve_session *session);
void serve_seen_release(struct serve_seen *seen);
/* In the order of their paths. *ret_removed is called for what comes before and is gone. */
enum serve_change serve_seen_add(struct serve_seen *seen,
                                 const struct collected_file *file,
                                 void (*removed)(void *context, const char *path),
                                 void *context);
/* It is whole: what is left of the one before is gone. The session's latest from now on. */
void serve_seen_finish(struct serve_seen *seen,
                       void (*removed)(void *context, const char *path), void *context);
/* The runs that the session had had when the one was made that it is compared with; -1: there
 * is none, because it was too large to be kept. */
int64_t serve_seen_since(const struct serve_seen *seen);
void serve_seen_forget(struct serve_session *session);
