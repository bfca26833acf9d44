/* The state of one cell, shared by the files of this room; nobody else's. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cell.h"
#include "cell/keeper.h"
#include "check/source.h"
#include "guest/wire.h"
#include "jail/cgroup.h"
#include "jail/jail.h"
#include "warm/zygote.h"

enum {
    START_LIMIT_MS = 20 * 1000, /* not sealed by then: it never will be */
    FLOOD_FACTOR = 16, /* a stream that writes this many times its limit is ended */
    TAIL_MAX_BYTES = 64 * 1024,
    TAIL_SHARE = 4, /* the tail gets a quarter of a stream, at most TAIL_MAX_BYTES */
};

/* Why the supervisor ended the cell; what it did not end ended by itself. */
enum cause {
    CAUSE_NONE,
    CAUSE_WALL,
    CAUSE_CPU,
    CAUSE_MEMORY,
    CAUSE_OUTPUT,
    CAUSE_DISK,    /* seen in the landlock isolation; a tmpfs refuses by itself */
    CAUSE_CALL,    /* an attack-only system call */
    CAUSE_START,   /* it did not come up in time */
    CAUSE_ABANDON, /* nobody wants it any more */
    CAUSE_CHECK_TIME,
    CAUSE_REJECTED,  /* by validation */
    CAUSE_ACCEPTED,  /* by validation, and nothing more was asked */
    CAUSE_INTERRUPT, /* somebody wished it */
    CAUSE_CHANNEL,   /* a session's guest said what no guest of ours says */
};

struct output {
    int fd;
    struct event *event;
    struct stream *stream; /* in the outcome */
    uint64_t head_max, tail_max;
    int number; /* 1 or 2 */
    struct cell *cell;
};

struct cell {
    struct cell_request request;
    struct event_base *base;
    struct outcome *outcome;
    const struct jail_plan *plan;
    struct jail_plan
        *own_plan;         /* heap: two filters are large; NULL when it is the zygote's */
    struct zygote *zygote; /* NULL: a cold cell */
    uint32_t warm_id;
    struct cell_warm_events warm;
    const struct policy *prepared; /* warm: what its groups were made for */
    bool made, given;              /* warm: ready in the factory; has its job */
    bool peak_is_told;             /* warm: by its group; else only who reaps it knows */
    bool gone;                     /* warm: the factory has nothing of it any more */
    bool unwanted;                 /* freed by its owner: goes when it is gone */
    const char *start;             /* of the outcome: "cold", "warm", "pool" */
    struct cgroup cgroup;
    struct keeper keeper;
    char scratch_dir[JAIL_PATH_BYTES]; /* landlock isolation; "" when there is none */

    pid_t init;
    int init_pidfd, report, guest, notify, tmp_fd, proc_fd, oom_fd, stdin_fd, claims_fd;
    int workspace_fd; /* the folder itself; -1: none */
    struct claims *claims;
    const struct display_frame *display; /* in the same mapping */
    uint32_t display_turn;               /* of the item that was answered last */
    enum display_answer display_answer;
    struct output out, err;
    size_t stdin_done;
    struct event *on_init, *on_report, *on_guest, *on_notify, *on_oom, *on_stdin,
        *on_wall, *on_tick, *on_usage;
    size_t told_n; /* incidents that were told as they happened */

    struct check_settings check;
    struct source source; /* the job's code, with its lines */

    bool rests;    /* a session's, between runs */
    bool clears;   /* a session's run has ended, and what it has left is being ended */
    int exit_code; /* … as its guest has said it */
    bool decided;  /* … and the session ends all the same: its outcome stays */
    bool refused;  /* a session's run, by validation: its guest has yet to say so */
    enum cause
        interrupted; /* the run has been asked to end, for this; CAUSE_NONE: it was not */
    unsigned interrupts_out;     /* that the factory has not sent on yet */
    bool job_waits;              /* … and the next run for that */
    unsigned stray_n;            /* messages that no guest of ours sends */
    struct cgroup_usage earlier; /* at the beginning of the run */
    uint64_t base_meter_cpu_us;
    uint64_t rest_cpu_us; /* between runs, at the last look */
    unsigned quiet_n;     /* looks since which it has used none */

    bool sealed; /* the guest has said so */
    bool going;  /* validated, where the policy asks for it: user code runs */
    bool unread; /* … and died with words of ours in its socket: no code of the job ran */
    bool exited;   /* the program has ended: wait_status is its */
    bool finished; /* on_end was called */
    int wait_status;
    uint64_t started_us, ended_us;
    enum cause cause;
    struct err failure;                                       /* code 0: none */
    uint64_t meter_peak_bytes, meter_cpu_us, meter_processes; /* without a cgroup */
};

/* --- channels.c --- */
/* The child's ends, gone from the supervisor once the cell runs. */
struct child_ends {
    int report, guest, stdin_fd, stdout_fd, stderr_fd;
    int joins[CGROUP_SLOTS];
};
void child_ends_init(struct child_ends *child);
int child_ends_make(struct cell *cell, struct child_ends *child,
                    struct err *err) MUST_USE;
void child_ends_close(struct child_ends *child);

/* The guest's flags for a policy (enum guest_flag). */
uint32_t cell_guest_flags(const struct cell *cell);

/* --- spawn.c: from a request to a running init --- */
int cell_spawn(struct cell *cell, struct err *err) MUST_USE;

/* --- warm.c --- */
/* The guest of a warm cell has sealed itself. */
void warm_sealed(struct cell *cell);

/* Sends the job, and what validation needs. */
int warm_send(struct cell *cell, struct err *err) MUST_USE;

/* --- session.c --- */
static inline bool
session_is_on(const struct cell *cell)
{
    return cell->request.session != NULL;
}
/* The guest of a session has said something, or hung up. */
void session_hear(struct cell *cell);
/* Asks the run to end; false: that has been tried, or cannot be. */
bool session_interrupt(struct cell *cell, enum cause cause);
void session_interrupted(void *context);
/* Whether threads and processes that a run leaves are ended with it. */
static inline bool
session_ends_background(const struct cell *cell)
{
    return session_is_on(cell) &&
           cell->request.policy->session_background == BACKGROUND_END;
}
/* … and the processes are: err says why not. */
void session_cleared(void *context, const struct err *err);
/* Validation has refused the run. */
void session_refuse(struct cell *cell);
/* Before it is decided how a session's cell has ended. */
void session_prepare_end(struct cell *cell);
/* In the outcome: that it is the end of the session, and why. */
void session_tell_lost(struct cell *cell);

/* --- tick.c --- */
void cell_tick_start(struct cell *cell);
/* CPU time, memory and disk of a session between runs. */
void cell_watch_rest(struct cell *cell);

/* --- watch.c --- */
void cell_forget(struct event **event);
struct timeval cell_time_of(uint64_t us);
struct cell *cell_new(struct event_base *base);
void cell_assign(struct cell *cell, const struct cell_request *request,
                 struct outcome *outcome);
struct event *cell_watch(struct cell *cell, int fd, short what,
                         event_callback_fn callback, uint64_t timeout_us);
void cell_on_guest(evutil_socket_t fd, short what, void *context);
void cell_on_wall(evutil_socket_t fd, short what, void *context);
int cell_watch_streams(struct cell *cell, struct err *err) MUST_USE;
/* The kernel tells of the group's first death for want of memory. */
void cell_watch_memory(struct cell *cell);
/* Hears what the guest has said by now: it came before whatever the code does. */
void cell_catch_up(struct cell *cell);
/* Everything in the cell is dead: what its pipes hold is all there will be. Decides, releases,
 * and tells. */
void cell_finish(struct cell *cell);
/* The program has ended: its wait status, and what it has used as far as that is more than is
 * known. */
void cell_note_exit(struct cell *cell, int wait_status, uint64_t cpu_us,
                    uint64_t peak_bytes);
void cell_note_usage(struct cell *cell, uint64_t cpu_us, uint64_t peak_bytes);
/* After that: when the kernel counts one process, it is init, which is ours and about to die. All
 * that ran the code is dead, and nobody needs to wait for more. */
void cell_finish_early(struct cell *cell);
/* Ends the cell for a reason; the first reason counts. */
void cell_end(struct cell *cell, enum cause cause);
/* Ends it for a fault of ours: what, and why as an errno. The first one is told. */
void cell_fail(struct cell *cell, int code, const char *what);

/* Releases all that a cell has on the host; its processes are dead. */
void cell_release(struct cell *cell);
/* Validation has begun: its clock starts. */
void cell_validate(struct cell *cell);
/* The code may run: its clock starts. waits: the guest wants to be told. */
void cell_go(struct cell *cell, bool waits);

/* In /tmp, made for the interpreter before the code; NULL-terminated. */
extern const char *const cell_own_folders[];

/* --- validation.c --- */
bool validation_is_on(const struct cell *cell);
uint64_t validation_limit_ms(const struct cell *cell);
int validation_send(struct cell *cell, struct err *err) MUST_USE;
/* Takes what the guest has sent by now; the last of it brings the verdict. */
void validation_hear(struct cell *cell);
/* Fills the outcome of a cell that died before its go. */
void validation_died(struct cell *cell, bool out_of_memory);

/* --- output.c --- */
int output_start(struct cell *cell, struct output *output, int number, int fd,
                 struct stream *stream, struct err *err) MUST_USE;
void output_take(struct output *output); /* what is there by now */
/* Between runs what the code writes stays in the pipe. */
void output_pause(struct output *output);
int output_resume(struct output *output, struct err *err) MUST_USE;
/* Where it is kept from now on. */
void output_into(struct output *output, struct stream *stream);
void output_drain(struct output *output); /* to the end of the stream: writers are dead */
void output_done(struct output *output);
void cell_feed_stdin(evutil_socket_t fd, short what, void *context);

/* --- tell.c --- */
/* That the code runs; from now on also what it uses. */
void cell_tell_started(struct cell *cell);
/* Those of the outcome that were not told yet. */
void cell_tell_incidents(struct cell *cell);

/* --- notify.c --- */
void cell_notified(evutil_socket_t fd, short what, void *context);

/* --- display.c --- */
/* 1, and *ret is an item (free it, or add it); 0 when the bytes make none; -ENOMEM. */
int display_parse(struct span frame, struct displays *displays,
                  struct display_item **ret) MUST_USE;
/* The guest has rung: takes what it shows. */
enum display_answer display_rung(struct cell *cell);

/* --- meter.c --- */
struct meter {
    uint64_t cpu_us, memory_bytes, processes;
};
/* Usage now: from the cgroup, else by reading the processes of the cell's own /proc. */
void cell_meter(struct cell *cell, struct meter *ret);

/* --- disk.c --- */
/* The disk limit that a folder of the host has passed: a private one, or the workspace. NULL:
 * none. */
const char *cell_disk_over(const struct cell *cell);
/* -EDQUOT: there is more in it than the policy lets a run begin with. */
int cell_open_workspace(struct cell *cell, struct err *err) MUST_USE;

/* --- claims.c --- */
/* A checked copy: every length is within its array, or everything is zero. */
void claims_read(const struct claims *shared, struct claims *ret);
void claims_carry_error(const struct claims *claims, struct outcome *outcome);
void claims_carry_acts(const struct claims *claims, struct outcome *outcome);

/* --- decide.c --- */
void cell_decide(struct cell *cell);
/* Of a run whose cell lives: what its guest says of its end stands for a wait status. */
void cell_decide_run(struct cell *cell, int exit_code);
