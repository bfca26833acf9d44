/*
 * What a job may do, fully resolved. One field table (policy_fields) drives YAML parsing,
 * the command line, printing, JSON Schema and the manual: a field that is not in it does
 * not exist.
 *
 * Every scalar is a uint64_t, enums too, so that a row is an offset and a range. In enums
 * the lower value is the narrower one: a job may lower a field and never raise it
 * (policy_narrow).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "check/finding.h"

enum {
    POLICY_NAME_BYTES = 64,
    POLICY_LIST_MAX = 64,           /* items in one list field */
    POLICY_PATH_BYTES = 512,        /* one path of a list, NUL included */
    POLICY_FILE_BYTES = 256 * 1024, /* a policy file larger than this is refused */
};

enum policy_validation { VALIDATION_ENFORCE, VALIDATION_WARN, VALIDATION_OFF };
enum policy_processes { PROCESSES_NONE, PROCESSES_FORK, PROCESSES_EXEC };
enum policy_network { NETWORK_NONE, NETWORK_LOOPBACK };
enum policy_workspaces { WORKSPACES_NONE, WORKSPACES_NAMED };
enum policy_isolation { ISOLATION_NAMESPACES, ISOLATION_LANDLOCK };
enum policy_cgroup { CGROUP_REQUIRED, CGROUP_OPTIONAL };
enum policy_sync { SYNC_NORMAL, SYNC_FULL };
enum policy_session_background { BACKGROUND_END, BACKGROUND_KEEP };
enum policy_session_pressure { SESSION_PRESSURE_CLOSE, SESSION_PRESSURE_KEEP };
enum policy_keep_code { KEEP_CODE_YES, KEEP_CODE_NO };

struct policy_list {
    size_t n;
    bool given; /* of FIELD_NAMES: until then the profile's own list holds */
    char *items[POLICY_LIST_MAX]; /* owned */
};

struct policy {
    char name[POLICY_NAME_BYTES];    /* of the profile, or the file's `name` */
    char extends[POLICY_NAME_BYTES]; /* the built-in profile below it, or itself */
    /* What ends a run. */
    uint64_t wall_ms;
    uint64_t cpu_ms; /* summed over all processes of the cell */
    uint64_t memory_bytes;
    uint64_t pids; /* processes and threads, without the cell's init */
    uint64_t disk_bytes;
    uint64_t disk_inodes;
    uint64_t output_bytes; /* kept for each stream: head and tail */
    uint64_t file_bytes;   /* size of one file */
    uint64_t open_files;
    uint64_t source_bytes;
    uint64_t
        cpus; /* threads that numeric libraries are told to use; 0: by pids and host */
    /* How long a session waits for its next run, and lives. */
    uint64_t session_idle_ms;
    uint64_t session_age_ms;
    uint64_t session_grace_ms;   /* from an interrupt to the end */
    uint64_t session_background; /* enum policy_session_background */
    uint64_t session_pressure;   /* enum policy_session_pressure */
    /* What is collected with --out. */
    uint64_t collect_files;
    uint64_t collect_bytes;
    /* What may be done. */
    uint64_t validation; /* enum policy_validation */
    struct policy_list imports_denied;
    uint64_t rules[CHECK_RULES]; /* enum check_severity + 1; 0: the profile's own holds */
    uint64_t processes;          /* enum policy_processes */
    uint64_t network;            /* enum policy_network */
    struct policy_list
        read_paths; /* absolute host paths, visible read-only at the same place */
    struct policy_list data_paths; /* host folders that a job may ask to see in /data */
    uint64_t workspaces;           /* enum policy_workspaces */
    uint64_t workspace_bytes;
    /* How it is held: the operator's choice, never a job's. */
    uint64_t isolation; /* enum policy_isolation */
    uint64_t cgroup;    /* enum policy_cgroup */
    /* How it is remembered. */
    uint64_t sync;      /* enum policy_sync */
    uint64_t keep_code; /* enum policy_keep_code */
    uint64_t ledger_days;
    uint64_t ledger_bytes;
};

enum policy_kind {
    FIELD_COUNT,
    FIELD_BYTES,
    FIELD_MS,
    FIELD_CHOICE,
    FIELD_SCALARS, /* those above are one uint64_t, those below are not */
    FIELD_PATHS = FIELD_SCALARS,
    FIELD_NAMES, /* dotted names of modules */
    FIELD_RULES, /* a severity for each rule of check_rules */
};
enum policy_authority { BY_JOB_NARROWING, BY_OPERATOR };

struct policy_field {
    const char *name;   /* in YAML and JSON: "memory" */
    const char *option; /* on the command line: "--memory"; NULL when there is none */
    enum policy_kind kind;
    enum policy_authority authority;
    size_t offset;
    uint64_t min, max;          /* of scalars; for choices 0 and count - 1 */
    const char *const *choices; /* names by value, narrowest first; NULL-terminated */
    const char *unit;           /* "bytes", "milliseconds", "processes"… as printed */
    bool zero_is_widest; /* 0 means "no number of ours": every other value narrows it */
    bool elsewhere;   /* of paths: the cell sees them at other places than the host's */
    const char *help; /* one sentence: what it limits and who enforces it */
};

extern const struct policy_field policy_fields[];
extern const size_t policy_fields_n;

/* A built-in profile by name, or NULL. policy_profiles lists them, the default among
 * them. */
extern const char *const policy_profiles[]; /* NULL-terminated */
extern const char policy_default[];         /* "standard" */

/* Fills *ret with a built-in profile (name), or from a YAML file (a name with a '/' or
 * ending in .yaml or .yml). -ENOENT with a sentence that lists the profiles when there is
 * none. Errors in a file read "FILE:LINE:COLUMN: …". *ret is untouched on failure; done
 * with policy_done. */
int policy_load(const char *name_or_path, struct policy *ret, struct err *err) MUST_USE;
void policy_done(struct policy *policy);
/* A copy of its own, lists and all. */
int policy_copy(const struct policy *policy, struct policy *ret,
                struct err *err) MUST_USE;

const struct policy_field *policy_field_by_option(const char *option);
const struct policy_field *policy_field_by_name(struct span name);

static inline bool
policy_is_scalar(const struct policy_field *field)
{
    return field->kind < FIELD_SCALARS;
}
/* The items of a FIELD_PATHS or FIELD_NAMES field as they hold. */
const char *const *policy_items(const struct policy *policy,
                                const struct policy_field *field, size_t *ret_n);
const char *const *policy_imports_denied(const struct policy *policy, size_t *ret_n);
/* What a rule weighs under this policy: as it says, else as its profile has it, less what
 * its other fields allow (a process may start where `processes` is exec). */
enum check_severity policy_severity(const struct policy *policy, size_t rule);
void policy_check_settings(const struct policy *policy, struct check_settings *ret);

/* The value of a field that is scalar. */
uint64_t policy_scalar(const struct policy *policy, const struct policy_field *field);
/* "8M to 1T", "none, fork, exec": what a field takes, as people write it. */
enum { POLICY_RANGE_BYTES = 96 };
const char *policy_range(const struct policy_field *field, char text[POLICY_RANGE_BYTES]);

/* Sets one field from text. -EINVAL: not such a value; -ERANGE: outside the field's
 * range; -EPERM: wider than what the policy holds now, and the field is BY_JOB_NARROWING.
 * The sentence begins with `who` (an option or a field name) and gives the range or the
 * choices. */
int policy_narrow(struct policy *policy, const struct policy_field *field,
                  const char *who, struct span text, struct err *err) MUST_USE;

/* One value as people write it ("256M", "fork"); the list as "a, b". */
int policy_format(const struct policy *policy, const struct policy_field *field,
                  struct buf *out) MUST_USE;

/* The whole policy as YAML that policy_load takes back, with unit, range and meaning as
 * comments; and the JSON Schema (draft 2020-12) of a policy file. */
int policy_explain(const struct policy *policy, struct buf *out) MUST_USE;
int policy_schema(struct buf *out) MUST_USE;
/* The fields and the profiles as two Markdown tables: what docs/POLICY.md holds. */
int policy_markdown(struct buf *out) MUST_USE;
