/*
 * The field table: what a policy can say, in what range, and who holds the code to it. It
 * knows nothing of how a value is written, nor of how a limit is applied.
 */
#include "policy/policy.h"

#include <assert.h>
#include <string.h>

#define KIB     (1ULL << 10)
#define MIB     (1ULL << 20)
#define GIB     (1ULL << 30)
#define TIB     (1ULL << 40)
#define HOUR_MS 3600000ULL

static const char *const validation_names[] = {"enforce", "warn", "off", NULL};
static const char *const processes_names[] = {"none", "fork", "exec", NULL};
static const char *const network_names[] = {"none", "loopback", NULL};
static const char *const workspaces_names[] = {"none", "named", NULL};
static const char *const isolation_names[] = {"namespaces", "landlock", NULL};
static const char *const cgroup_names[] = {"required", "optional", NULL};
static const char *const sync_names[] = {"normal", "full", NULL};
static const char *const background_names[] = {"end", "keep", NULL};
static const char *const pressure_names[] = {"close", "keep", NULL};
static const char *const keep_code_names[] = {"true", "false", NULL};

/* clang-format off */
const struct policy_field policy_fields[] = {
    /* What ends a run. The rows of /tmp begin above 0: to a tmpfs, 0 is "no limit". */
    {.name = "timeout", .option = "--timeout", .kind = FIELD_MS,
     .offset = offsetof(struct policy, wall_ms), .min = 10, .max = 24 * HOUR_MS,
     .unit = "milliseconds",
     .help = "Wall-clock time of one run; the supervisor's clock ends it."},
    {.name = "cpu_time", .option = "--cpu-time", .kind = FIELD_MS,
     .offset = offsetof(struct policy, cpu_ms), .min = 10, .max = 168 * HOUR_MS,
     .unit = "milliseconds",
     .help = "CPU time of all processes of the cell together; the supervisor reads it "
             "from the kernel, and ends the run."},
    {.name = "memory", .option = "--memory", .kind = FIELD_BYTES,
     .offset = offsetof(struct policy, memory_bytes), .min = 8 * MIB, .max = TIB,
     .unit = "bytes",
     .help = "Memory of the whole cell, files in /tmp included; the kernel enforces it "
             "(cgroup, rlimit)."},
    {.name = "pids", .option = "--pids", .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, pids), .min = 1, .max = 32768,
     .unit = "processes and threads",
     .help = "Processes and threads alive at one time; the kernel enforces it (cgroup, "
             "rlimit)."},
    {.name = "disk", .option = "--disk", .kind = FIELD_BYTES,
     .offset = offsetof(struct policy, disk_bytes), .min = 64 * KIB, .max = TIB,
     .unit = "bytes",
     .help = "All that /tmp may hold; the kernel enforces it (tmpfs size)."},
    {.name = "disk_inodes", .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, disk_inodes), .min = 16, .max = 16 * MIB,
     .unit = "inodes",
     .help = "Files and folders that /tmp may hold; the kernel enforces it (tmpfs "
             "inodes)."},
    {.name = "output", .option = "--output", .kind = FIELD_BYTES,
     .offset = offsetof(struct policy, output_bytes), .min = KIB, .max = GIB,
     .unit = "bytes",
     .help = "What is kept of each of stdout and stderr, head and tail; the supervisor "
             "enforces it."},
    {.name = "file_size", .option = "--file-size", .kind = FIELD_BYTES,
     .offset = offsetof(struct policy, file_bytes), .min = KIB, .max = TIB,
     .unit = "bytes",
     .help = "Size of any one file that the code writes; the kernel enforces it "
             "(rlimit)."},
    {.name = "open_files", .option = "--open-files", .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, open_files), .min = 16, .max = 65536,
     .unit = "descriptors",
     .help = "Descriptors open at one time in each process; the kernel enforces it "
             "(rlimit)."},
    {.name = "source_size", .kind = FIELD_BYTES,
     .offset = offsetof(struct policy, source_bytes), .min = KIB, .max = 64 * MIB,
     .unit = "bytes",
     .help = "Size of the submitted code; the supervisor refuses what is longer before "
             "it runs."},
    {.name = "cpus", .option = "--cpus", .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, cpus), .min = 0, .max = 1024,
     .zero_is_widest = true, .unit = "threads",
     .help = "Threads that numeric libraries are told to start, 0 for what pids and the "
             "host allow; advice that the supervisor puts into the environment, no "
             "wall."},
    /* Of sessions. */
    {.name = "session_idle", .kind = FIELD_MS,
     .offset = offsetof(struct policy, session_idle_ms), .min = 100, .max = 168 * HOUR_MS,
     .unit = "milliseconds",
     .help = "How long a session may wait for its next run before it is closed; the "
             "supervisor's clock closes it."},
    {.name = "session_age", .kind = FIELD_MS,
     .offset = offsetof(struct policy, session_age_ms), .min = 100, .max = 720 * HOUR_MS,
     .unit = "milliseconds",
     .help = "How long a session may live, with its runs; the supervisor's clock closes "
             "it."},
    {.name = "session_grace", .kind = FIELD_MS,
     .offset = offsetof(struct policy, session_grace_ms), .min = 10, .max = 60000,
     .unit = "milliseconds",
     .help = "How long a run of a session has to end after it was told KeyboardInterrupt; "
             "then the supervisor ends the session."},
    {.name = "session_background", .kind = FIELD_CHOICE,
     .offset = offsetof(struct policy, session_background), .max = BACKGROUND_KEEP,
     .choices = background_names,
     .help = "Whether threads and child processes go on when the run that left them has "
             "ended: with end the supervisor kills the processes, and threads are told "
             "SystemExit, by feedback from inside; one that stays loses the session."},
    {.name = "session_pressure", .kind = FIELD_CHOICE,
     .offset = offsetof(struct policy, session_pressure), .max = SESSION_PRESSURE_KEEP,
     .choices = pressure_names,
     .help = "Whether a session that waits may be closed when the host runs short of "
             "memory, those that have waited for longest first; the supervisor closes it."},
    /* What is collected with --out. */
    {.name = "collect_files", .kind = FIELD_COUNT,
     .offset = offsetof(struct policy, collect_files), .min = 0, .max = 100000,
     .unit = "files",
     .help = "Files that are collected from /tmp after a run; the supervisor enforces "
             "it."},
    {.name = "collect_size", .kind = FIELD_BYTES,
     .offset = offsetof(struct policy, collect_bytes), .min = 0, .max = TIB,
     .unit = "bytes",
     .help = "Bytes of all collected files together; the supervisor enforces it."},
    /* What may be done. */
    {.name = "validation", .option = "--validation", .kind = FIELD_CHOICE,
     .authority = BY_OPERATOR, .offset = offsetof(struct policy, validation),
     .max = VALIDATION_OFF, .choices = validation_names,
     .help = "What a finding in the code does before it runs: refuse the run, only "
             "report, or nothing is looked for; feedback from inside the cell, no wall."},
    {.name = "imports_denied", .kind = FIELD_NAMES, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, imports_denied),
     .help = "Modules whose import, and that of what is in them, is the finding "
             "import-denied; feedback from inside the cell, no wall."},
    {.name = "rules", .kind = FIELD_RULES, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, rules),
     .help = "What a finding of each rule of validation weighs: an error refuses the run "
             "where validation enforces; feedback from inside the cell, no wall."},
    {.name = "processes", .option = "--processes", .kind = FIELD_CHOICE,
     .offset = offsetof(struct policy, processes), .max = PROCESSES_EXEC,
     .choices = processes_names,
     .help = "Whether the code may fork, or also execute programs that the cell holds; "
             "the kernel enforces it (seccomp)."},
    {.name = "network", .option = "--network", .kind = FIELD_CHOICE,
     .offset = offsetof(struct policy, network), .max = NETWORK_LOOPBACK,
     .choices = network_names,
     .help = "Whether the code has no network, or the cell's own loopback interface and "
             "nothing beyond; the kernel enforces it (network namespace, seccomp)."},
    {.name = "read_paths", .kind = FIELD_PATHS, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, read_paths),
     .help = "Files and folders of the host that the code may read, at the same place; "
             "the kernel enforces it (read-only mounts, Landlock)."},
    {.name = "data_paths", .kind = FIELD_PATHS, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, data_paths), .elsewhere = true,
     .help = "Folders of the host that a run may ask to see in /data, with all that is "
             "beneath them; the kernel enforces it (read-only mounts, Landlock)."},
    {.name = "workspaces", .option = "--workspaces", .kind = FIELD_CHOICE,
     .authority = BY_OPERATOR, .offset = offsetof(struct policy, workspaces),
     .max = WORKSPACES_NAMED, .choices = workspaces_names,
     .help = "Whether a run may ask for a folder that stays, by a name, as /workspace; the "
             "supervisor refuses."},
    {.name = "workspace_size", .option = "--workspace-size", .kind = FIELD_BYTES,
     .offset = offsetof(struct policy, workspace_bytes), .min = 64 * KIB, .max = TIB,
     .unit = "bytes",
     .help = "What a workspace may hold when a run begins, and while it runs; the "
             "supervisor looks at it, 50 times a second, and ends the run."},
    /* How it is held. */
    {.name = "isolation", .option = "--isolation", .kind = FIELD_CHOICE,
     .authority = BY_OPERATOR, .offset = offsetof(struct policy, isolation),
     .max = ISOLATION_LANDLOCK, .choices = isolation_names,
     .help = "All namespaces around the cell, or, for hosts that refuse them, Landlock, "
             "seccomp and rlimits alone; the kernel enforces it."},
    {.name = "cgroup", .option = "--cgroup", .kind = FIELD_CHOICE,
     .authority = BY_OPERATOR, .offset = offsetof(struct policy, cgroup),
     .max = CGROUP_OPTIONAL, .choices = cgroup_names,
     .help = "Whether a host on which no cgroup can be made is refused, or rlimits are "
             "enough there; the supervisor refuses."},
    /* How it is remembered. */
    {.name = "sync", .kind = FIELD_CHOICE, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, sync), .max = SYNC_FULL, .choices = sync_names,
     .help = "Whether a power cut may take the last second of the ledger, or each row is "
             "on the disk before the run goes on, which costs two disk flushes a run; "
             "the supervisor waits."},
    {.name = "keep_code", .kind = FIELD_CHOICE, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, keep_code), .max = KEEP_CODE_NO,
     .choices = keep_code_names,
     .help = "Whether the ledger holds the text of the code, or its hash and length "
             "alone; the supervisor writes it."},
    {.name = "ledger_days", .kind = FIELD_COUNT, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, ledger_days), .min = 1, .max = 36500,
     .unit = "days",
     .help = "Age at which rows leave the ledger; the supervisor removes them after a "
             "run."},
    {.name = "ledger_bytes", .kind = FIELD_BYTES, .authority = BY_OPERATOR,
     .offset = offsetof(struct policy, ledger_bytes), .min = 16 * MIB, .max = TIB,
     .unit = "bytes",
     .help = "Size at which the oldest rows leave the ledger; the supervisor removes "
             "them after a run."},
};
/* clang-format on */

const size_t policy_fields_n = sizeof(policy_fields) / sizeof(*policy_fields);

const struct policy_field *
policy_field_by_option(const char *option)
{
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_fields[i].option && strcmp(policy_fields[i].option, option) == 0)
            return &policy_fields[i];
    return NULL;
}

const struct policy_field *
policy_field_by_name(struct span name)
{
    for (size_t i = 0; i < policy_fields_n; i++)
        if (span_is(name, policy_fields[i].name))
            return &policy_fields[i];
    return NULL;
}

uint64_t
policy_scalar(const struct policy *policy, const struct policy_field *field)
{
    assert(policy_is_scalar(field));
    uint64_t value;
    memcpy(&value, (const char *)policy + field->offset, sizeof(value));
    return value;
}
