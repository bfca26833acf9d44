/*
 * From what was seen to a status. The rules are tried in order; the first that holds
 * decides. Facts come first. The claims memory is read last, and only to tell apart what
 * is the same to the kernel: an exit with 1 by an exception, by sys.exit(1), or by a
 * limit that a counter or the file system confirms.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "cell/cell_parts.h"

struct facts {
    struct cell *cell;
    struct outcome *outcome;
    const struct policy *policy;
    struct cgroup_usage usage;
    struct claims claims; /* checked copy: see claims_read */
};

static void
set_limit(const struct facts *facts, enum status status, const char *name, uint64_t value)
{
    facts->outcome->status = status;
    snprintf(facts->outcome->limit_name, sizeof(facts->outcome->limit_name), "%s", name);
    facts->outcome->limit_value = value;
}

static void PRINTF(2, 3) say(const struct facts *facts, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(facts->outcome->message, sizeof(facts->outcome->message), format, args);
    va_end(args);
}

static void
add_limit_incident(const struct facts *facts, const char *rule, const char *layer,
                   const char *act)
{
    struct incident incident = {.fact = true, .count = 1};
    snprintf(incident.rule, sizeof(incident.rule), "%s", rule);
    snprintf(incident.layer, sizeof(incident.layer), "%s", layer);
    snprintf(incident.action, sizeof(incident.action), "ended");
    snprintf(incident.act, sizeof(incident.act), "%s", act);
    outcome_add_incident(facts->outcome, &incident);
}

/* --- the rules --- */

enum { SAID_BYTES = 160 };

/* The last line that an interpreter wrote before it died: of a traceback, the one that
 * tells. */
static size_t
last_line(const struct buf *text, char said[SAID_BYTES])
{
    size_t end = text->n;
    while (end > 0 && (text->p[end - 1] == '\n' || text->p[end - 1] == ' '))
        end--;
    size_t start = end;
    while (start > 0 && text->p[start - 1] != '\n' && end - start < SAID_BYTES - 1)
        start--;
    int n = end > start
                ? snprintf(said, SAID_BYTES, "%.*s", (int)(end - start), text->p + start)
                : snprintf(said, SAID_BYTES, "it said nothing");
    return n > 0 ? (size_t)n : 0;
}

static bool
failed_before_code(const struct facts *facts)
{
    struct cell *cell = facts->cell;
    if (cell->failure.code != 0) {
        outcome_fail(facts->outcome, &cell->failure);
        return true;
    }
    if (cell->sealed)
        return false;
    struct err err;
    char said[SAID_BYTES];
    if (cell->cause == CAUSE_START)
        err_set(&err, -ETIMEDOUT, "the interpreter was not ready after %d s",
                START_LIMIT_MS / 1000);
    else if (facts->usage.oom_kills > 0)
        err_set(&err, -ENOMEM,
                "the memory limit is too small for the interpreter itself to "
                "start: choose a larger --memory");
    else
        err_set(&err, -ECHILD, "the interpreter ended before the code could run: %.*s",
                (int)last_line(&facts->outcome->err.head, said), said);
    outcome_fail(facts->outcome, &err);
    return true;
}

static bool
ended_for_call(const struct facts *facts)
{
    if (facts->cell->cause != CAUSE_CALL)
        return false;
    const struct outcome *outcome = facts->outcome;
    const char *act = "a system call";
    for (size_t i = 0; i < outcome->incidents_n; i++)
        if (strcmp(outcome->incidents[i].action, "ended") == 0)
            act = outcome->incidents[i].act;
    facts->outcome->status = STATUS_VIOLATION;
    say(facts, "stopped for a forbidden system call: %.200s", act);
    return true;
}

/* Numbers of another architecture (i386, x32) are killed by the filter itself. */
static bool
ended_by_filter(const struct facts *facts)
{
    const struct cell *cell = facts->cell;
    if (!cell->exited || !WIFSIGNALED(cell->wait_status) ||
        WTERMSIG(cell->wait_status) != SIGSYS)
        return false;
    add_limit_incident(facts, "system-call", "seccomp",
                       "a system call of another architecture (i386 or x32)");
    facts->outcome->status = STATUS_VIOLATION;
    facts->outcome->signal = SIGSYS;
    say(facts, "stopped for a system call of another architecture");
    return true;
}

/* It died of somebody's signal before it had read what we sent last: the job, or its go. */
static bool
died_unasked(const struct facts *facts)
{
    const struct cell *cell = facts->cell;
    struct err err;
    if (!cell->unread || cell->cause != CAUSE_NONE || facts->usage.oom_kills > 0)
        return false;
    err_set(&err, -ECHILD, "the cell was killed from outside before the code could run");
    outcome_fail(facts->outcome, &err);
    return true;
}

/* Neither code nor parser can do that to themselves: init is gone, or somebody has killed the
 * interpreter. */
static bool
killed_in_validation(const struct facts *facts)
{
    const struct cell *cell = facts->cell;
    struct err err;
    bool killed = !cell->exited || (WIFSIGNALED(cell->wait_status) &&
                                    WTERMSIG(cell->wait_status) == SIGKILL);
    if (cell->going || cell->cause != CAUSE_NONE || facts->usage.oom_kills > 0 || !killed)
        return false;
    err_set(&err, -ECHILD, "the cell was killed from outside while its code was judged");
    outcome_fail(facts->outcome, &err);
    return true;
}

/* Validation's verdicts, and a cell that died under it: none of the code has run. */
static bool
judged(const struct facts *facts)
{
    struct cell *cell = facts->cell;
    if (cell->going || cell->cause == CAUSE_ABANDON)
        return false;
    if (cell->cause == CAUSE_REJECTED)
        outcome_reject(facts->outcome);
    else if (cell->cause == CAUSE_ACCEPTED)
        facts->outcome->status = STATUS_OK;
    else
        validation_died(cell, cell->cause == CAUSE_MEMORY || facts->usage.oom_kills > 0);
    return true;
}

static bool
out_of_memory(const struct facts *facts)
{
    char text[UNITS_TEXT_BYTES];
    if (facts->cell->cause != CAUSE_MEMORY && facts->usage.oom_kills == 0)
        return false;
    set_limit(facts, STATUS_MEMORY, "memory", facts->policy->memory_bytes);
    say(facts, "used more memory than its limit of %s",
        format_bytes(facts->policy->memory_bytes, text));
    add_limit_incident(facts, "memory-limit",
                       facts->cell->cgroup.version != 0 ? "cgroup" : "supervisor",
                       facts->outcome->message);
    return true;
}

static bool
out_of_time(const struct facts *facts)
{
    char text[UNITS_TEXT_BYTES];
    bool wall = facts->cell->cause == CAUSE_WALL;
    if (!wall && facts->cell->cause != CAUSE_CPU)
        return false;
    uint64_t limit_ms = wall ? facts->policy->wall_ms : facts->policy->cpu_ms;
    set_limit(facts, STATUS_TIMEOUT, wall ? "timeout" : "cpu_time", limit_ms);
    say(facts, "stopped after %s of %s time", format_ms(limit_ms, text),
        wall ? "wall" : "CPU");
    add_limit_incident(facts, wall ? "wall-limit" : "cpu-limit", "limit",
                       facts->outcome->message);
    return true;
}

static bool
too_much_output(const struct facts *facts)
{
    char text[UNITS_TEXT_BYTES];
    if (facts->cell->cause != CAUSE_OUTPUT)
        return false;
    set_limit(facts, STATUS_OUTPUT, "output", facts->policy->output_bytes);
    say(facts, "wrote more than 16 times its output limit of %s",
        format_bytes(facts->policy->output_bytes, text));
    add_limit_incident(facts, "output-limit", "limit", facts->outcome->message);
    return true;
}

static bool
too_much_disk(const struct facts *facts)
{
    if (facts->cell->cause != CAUSE_DISK)
        return false;
    const char *name = cell_disk_over(facts->cell);
    bool inodes = name && strcmp(name, "disk_inodes") == 0;
    bool workspace = facts->cell->workspace_fd >= 0;
    const char *bytes = workspace ? "workspace_size" : "disk";
    set_limit(facts, STATUS_DISK, inodes ? "disk_inodes" : bytes,
              inodes      ? facts->policy->disk_inodes
              : workspace ? facts->policy->workspace_bytes
                          : facts->policy->disk_bytes);
    say(facts, "%s",
        inodes      ? "made more files than it may"
        : workspace ? "filled its workspace, or hid a part of it"
                    : "filled its folder, or hid a part of it");
    add_limit_incident(facts, "disk-limit", "supervisor", facts->outcome->message);
    return true;
}

static bool
interrupted(const struct facts *facts)
{
    struct err err;
    if (facts->cell->cause != CAUSE_INTERRUPT)
        return false;
    err_set(&err, -ECANCELED, "interrupted, and ended because it did not stop");
    outcome_fail(facts->outcome, &err);
    return true;
}

static bool
broke_channel(const struct facts *facts)
{
    if (facts->cell->cause != CAUSE_CHANNEL)
        return false;
    facts->outcome->status = STATUS_CRASHED;
    say(facts, "broke the channel of its session");
    return true;
}

static bool
lost(const struct facts *facts)
{
    if (facts->cell->exited)
        return false;
    struct err err;
    err_set(&err, -ECHILD, "%s",
            facts->cell->cause == CAUSE_ABANDON
                ? "the run was given up"
                : "the cell's init ended without a report");
    outcome_fail(facts->outcome, &err);
    return true;
}

static bool
crashed(const struct facts *facts)
{
    int status = facts->cell->wait_status;
    if (!WIFSIGNALED(status))
        return false;
    const char *name = sigabbrev_np(WTERMSIG(status));
    facts->outcome->status = STATUS_CRASHED;
    facts->outcome->signal = WTERMSIG(status);
    say(facts, "ended by signal SIG%s of its own making", name ? name : "?");
    return true;
}

static bool
ended_well(const struct facts *facts)
{
    if (WEXITSTATUS(facts->cell->wait_status) != 0)
        return false;
    facts->outcome->status = STATUS_OK;
    return true;
}

static bool
claims_exception(const struct facts *facts)
{
    return facts->claims.kind == CLAIM_EXCEPTION;
}

/* It did not catch what the guest's hook stopped it for: a claim, and a refusal all the
 * same. */
static bool
died_of_refusal(const struct facts *facts)
{
    if (!claims_exception(facts) || !facts->claims.security || facts->claims.acts_n == 0)
        return false;
    facts->outcome->status = STATUS_VIOLATION;
    say(facts, "ended with an uncaught SecurityError: %.180s",
        facts->outcome->error_value);
    return true;
}

/* The kernel says ENOSPC to the code; that /tmp is full is a fact we can still see. */
static bool
disk_full(const struct facts *facts)
{
    struct statvfs disk;
    const struct policy *policy = facts->policy;
    if (!claims_exception(facts) || facts->claims.os_error != ENOSPC ||
        facts->cell->tmp_fd < 0 || policy->isolation != ISOLATION_NAMESPACES ||
        fstatvfs(facts->cell->tmp_fd, &disk) < 0)
        return false;
    bool no_inodes = disk.f_ffree == 0;
    if (disk.f_bfree != 0 && !no_inodes)
        return false;
    set_limit(facts, STATUS_DISK, no_inodes ? "disk_inodes" : "disk",
              no_inodes ? policy->disk_inodes : policy->disk_bytes);
    say(facts, no_inodes ? "made more files in its /tmp than it may" : "filled its /tmp");
    add_limit_incident(facts, "disk-limit", "limit", facts->outcome->message);
    return true;
}

static bool
pids_refused(const struct facts *facts)
{
    if (!claims_exception(facts) || facts->usage.pids_refused == 0 ||
        (facts->claims.os_error != EAGAIN &&
         strcmp(facts->claims.name, "RuntimeError") != 0))
        return false;
    set_limit(facts, STATUS_PIDS, "pids", facts->policy->pids);
    say(facts, "met its limit of %llu processes and threads",
        (unsigned long long)facts->policy->pids);
    add_limit_incident(facts, "pids-limit", "cgroup", facts->outcome->message);
    return true;
}

/* What is left is an exit status and what the interpreter says of it. These two limits
 * leave no trace that we could see, so they are named and the status stays the program's
 * own. */
static bool
ended_badly(const struct facts *facts)
{
    bool exception = claims_exception(facts);
    facts->outcome->status = exception ? STATUS_EXCEPTION : STATUS_EXIT;
    if (exception && facts->claims.os_error == EMFILE)
        set_limit(facts, STATUS_EXCEPTION, "open_files", facts->policy->open_files);
    if (exception && facts->claims.os_error == EFBIG)
        set_limit(facts, STATUS_EXCEPTION, "file_size", facts->policy->file_bytes);
    if (exception)
        say(facts, "ended with an uncaught %s", facts->outcome->error_name);
    else
        say(facts, "ended with exit code %d", facts->outcome->exit_code);
    return true;
}

/* clang-format off */
static bool (*const rules[])(const struct facts *) = {
    failed_before_code, /* ours: nothing of the user's has run */
    ended_for_call,     /* what we ended, and why */
    ended_by_filter,
    died_unasked,
    killed_in_validation,
    judged, /* before limits: none of them is the program's */
    out_of_memory, /* before time: a cell in its death throes may meet both */
    out_of_time,
    too_much_output,
    too_much_disk,
    interrupted,
    broke_channel,
    lost,
    crashed, /* what ended by itself */
    ended_well,
    died_of_refusal,
    disk_full,
    pids_refused,
    ended_badly,
};
/* clang-format on */

/* --- facts --- */

static void
carry_usage(const struct facts *facts)
{
    const struct cell *cell = facts->cell;
    const struct cgroup_usage *usage = &facts->usage;
    struct outcome *outcome = facts->outcome;
    bool counted = cell->cgroup.version != 0;
    if (cell->going)
        outcome->wall_us = cell->ended_us - cell->started_us;
    outcome->cpu_us = counted && usage->cpu_us > 0
                          ? usage->cpu_us
                          : cell->meter_cpu_us - cell->base_meter_cpu_us;
    outcome->peak_memory_bytes = counted && usage->memory_peak_bytes > 0
                                     ? usage->memory_peak_bytes
                                     : cell->meter_peak_bytes;
    uint64_t seen = counted ? usage->pids_peak : cell->meter_processes;
    outcome->processes = seen > 1 ? seen - 1 : 1; /* without init */
    outcome->wall_limit_ms = facts->policy->wall_ms;
    outcome->cpu_limit_ms = facts->policy->cpu_ms;
    outcome->memory_limit_bytes = facts->policy->memory_bytes;
}

static void
carry_layers(const struct facts *facts)
{
    static const char *const namespaces[] = {"user", "mount", "pid",      "net",
                                             "ipc",  "uts",   "cgroup-ns"};
    struct outcome *outcome = facts->outcome;
    const struct cell *cell = facts->cell;
    bool all = facts->policy->isolation == ISOLATION_NAMESPACES;
    if (!cell->sealed)
        return; /* nothing ran, nothing held */
    for (size_t i = 0; i < sizeof(namespaces) / sizeof(*namespaces) && all; i++)
        outcome_add_layer(outcome, "%s", namespaces[i]);
    if (cell->cgroup.version != 0)
        outcome_add_layer(outcome, "cgroup:%s", cgroup_label(&cell->cgroup));
    else
        outcome_add_layer(outcome, "watched");
    outcome_add_layer(outcome, "rlimits");
    outcome_add_layer(outcome, "capabilities");
    outcome_add_layer(outcome, "no_new_privs");
    outcome_add_layer(outcome, "landlock:%d", cell->plan->landlock_abi);
    outcome_add_layer(outcome, "seccomp");
    if (cell->workspace_fd >= 0)
        outcome_add_layer(outcome, "workspace:watched");
}

/* What a session's earlier runs have met is not this one's. */
static void
without_earlier_runs(struct facts *facts)
{
    const struct cgroup_usage *base = &facts->cell->earlier;
    struct cgroup_usage *usage = &facts->usage;
    usage->cpu_us -= base->cpu_us < usage->cpu_us ? base->cpu_us : usage->cpu_us;
    usage->oom_kills -=
        base->oom_kills < usage->oom_kills ? base->oom_kills : usage->oom_kills;
    usage->pids_refused -= base->pids_refused < usage->pids_refused ? base->pids_refused
                                                                    : usage->pids_refused;
}

void
cell_decide_run(struct cell *cell, int exit_code)
{
    enum { CODE_SHIFT = 8, CODE_MASK = 0xff }; /* wait(2) */
    cell->exited = true;
    cell->wait_status = (exit_code & CODE_MASK) << CODE_SHIFT;
    cell->cause = cell->interrupted == CAUSE_INTERRUPT ? CAUSE_NONE : cell->interrupted;
    cell_decide(cell);
    cell->exited = false;
    cell->wait_status = 0;
    cell->cause = CAUSE_NONE;
}

void
cell_decide(struct cell *cell)
{
    struct facts facts = {
        .cell = cell, .outcome = cell->outcome, .policy = cell->request.policy};
    struct outcome *outcome = cell->outcome;
    cgroup_usage(&cell->cgroup, &facts.usage);
    without_earlier_runs(&facts);
    claims_read(cell->claims, &facts.claims);
    claims_carry_acts(&facts.claims, outcome);
    if (cell->exited && WIFEXITED(cell->wait_status)) {
        outcome->has_exit_code = true;
        outcome->exit_code = WEXITSTATUS(cell->wait_status);
    }
    /* An exception ends an interpreter with 1, whatever it claims. */
    if (!outcome->has_exit_code || outcome->exit_code != 1)
        facts.claims.kind = CLAIM_NONE;
    claims_carry_error(&facts.claims, outcome);
    carry_usage(&facts);
    carry_layers(&facts);
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (rules[i](&facts))
            break;
    snprintf(outcome->interpreter, sizeof(outcome->interpreter), "cpython %s",
             cell->request.image->version);
    snprintf(outcome->isolation_name, sizeof(outcome->isolation_name), "%s",
             facts.policy->isolation == ISOLATION_NAMESPACES ? "namespaces" : "landlock");
    snprintf(outcome->start, sizeof(outcome->start), "%s", cell->start);
}
