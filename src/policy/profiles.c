/* The built-in profiles, as data, and the choice between one of them and a file. */
#include "policy/internal.h"

#include <errno.h>

#define KIB (1ULL << 10)
#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

/* Narrowest first. */
const char *const policy_profiles[] = {"strict", "standard", "open", NULL};
const char policy_default[] = "standard";

/* clang-format off */
static const struct policy profiles[] = {
    /* Arithmetic on what it is given: no second process, no thread, few imports. */
    {.name = "strict", .extends = "strict",
     .session_idle_ms = 1800000, .session_age_ms = 86400000, .session_grace_ms = 500,
     .session_background = BACKGROUND_KEEP,
     .session_pressure = SESSION_PRESSURE_CLOSE,
     .wall_ms = 5000, .cpu_ms = 5000, .memory_bytes = 256 * MIB, .pids = 1,
     .disk_bytes = 64 * MIB, .disk_inodes = 4096, .output_bytes = MIB,
     .file_bytes = 64 * MIB, .open_files = 256, .source_bytes = MIB, .cpus = 0,
     .collect_files = 1000, .collect_bytes = 64 * MIB,
     .validation = VALIDATION_ENFORCE, .processes = PROCESSES_NONE,
     .network = NETWORK_NONE, .workspaces = WORKSPACES_NONE, .workspace_bytes = 64 * MIB,
     .isolation = ISOLATION_NAMESPACES,
     .cgroup = CGROUP_REQUIRED, .sync = SYNC_NORMAL, .keep_code = KEEP_CODE_YES,
     .ledger_days = 90, .ledger_bytes = 256 * MIB},
    /* Data work with numpy, pandas, matplotlib: threads and forks, no programs. */
    {.name = "standard", .extends = "standard",
     .session_idle_ms = 1800000, .session_age_ms = 86400000, .session_grace_ms = 500,
     .session_background = BACKGROUND_KEEP,
     .session_pressure = SESSION_PRESSURE_CLOSE,
     .wall_ms = 5000, .cpu_ms = 5000, .memory_bytes = 256 * MIB, .pids = 64,
     .disk_bytes = 64 * MIB, .disk_inodes = 4096, .output_bytes = MIB,
     .file_bytes = 64 * MIB, .open_files = 256, .source_bytes = MIB, .cpus = 0,
     .collect_files = 1000, .collect_bytes = 64 * MIB,
     .validation = VALIDATION_ENFORCE, .processes = PROCESSES_FORK,
     .network = NETWORK_NONE, .workspaces = WORKSPACES_NONE, .workspace_bytes = 64 * MIB,
     .isolation = ISOLATION_NAMESPACES,
     .cgroup = CGROUP_REQUIRED, .sync = SYNC_NORMAL, .keep_code = KEEP_CODE_YES,
     .ledger_days = 90, .ledger_bytes = 256 * MIB},
    /* Long and large work that may run programs; the walls are the same. */
    {.name = "open", .extends = "open",
     .session_idle_ms = 1800000, .session_age_ms = 86400000, .session_grace_ms = 500,
     .session_background = BACKGROUND_KEEP,
     .session_pressure = SESSION_PRESSURE_CLOSE,
     .wall_ms = 60000, .cpu_ms = 60000, .memory_bytes = 2 * GIB, .pids = 256,
     .disk_bytes = GIB, .disk_inodes = 64 * KIB, .output_bytes = 16 * MIB,
     .file_bytes = GIB, .open_files = 1024, .source_bytes = MIB, .cpus = 0,
     .collect_files = 1000, .collect_bytes = GIB,
     .validation = VALIDATION_WARN, .processes = PROCESSES_EXEC,
     .network = NETWORK_NONE, .workspaces = WORKSPACES_NONE, .workspace_bytes = GIB,
     .isolation = ISOLATION_NAMESPACES,
     .cgroup = CGROUP_REQUIRED, .sync = SYNC_NORMAL, .keep_code = KEEP_CODE_YES,
     .ledger_days = 90, .ledger_bytes = 256 * MIB},
};
/* clang-format on */

const struct policy *
profile_find(struct span name)
{
    for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
        if (span_is(name, profiles[i].name))
            return &profiles[i];
    return NULL;
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), end_n = strlen(end);
    return n > end_n && strcmp(text + n - end_n, end) == 0;
}

static bool
is_file_name(const char *name)
{
    return strchr(name, '/') || ends_with(name, ".yaml") || ends_with(name, ".yml");
}

int
policy_load(const char *name_or_path, struct policy *ret, struct err *err)
{
    const struct policy *profile = profile_find(span_of(name_or_path));
    if (profile) {
        *ret = *profile;
        return 0;
    }
    if (is_file_name(name_or_path))
        return policy_load_file(name_or_path, ret, err);
    char shown[QUOTE_BYTES];
    return err_set(err, -ENOENT,
                   "no policy '%s': the profiles are %s, %s and %s; "
                   "a file has a '/' in its name or ends in .yaml or .yml",
                   quote(span_of(name_or_path), shown), policy_profiles[0],
                   policy_profiles[1], policy_profiles[2]);
}

int
policy_copy(const struct policy *policy, struct policy *ret, struct err *err)
{
    struct policy copy = *policy, source = *policy;
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_fields[i].kind == FIELD_PATHS || policy_fields[i].kind == FIELD_NAMES)
            *list_of(&copy, &policy_fields[i]) = (struct policy_list){0};
    for (size_t i = 0; i < policy_fields_n; i++) {
        if (policy_fields[i].kind != FIELD_PATHS && policy_fields[i].kind != FIELD_NAMES)
            continue;
        struct policy_list *to = list_of(&copy, &policy_fields[i]);
        const struct policy_list *from = list_of(&source, &policy_fields[i]);
        *to = (struct policy_list){0};
        for (; to->n < from->n; to->n++) {
            to->items[to->n] = strdup(from->items[to->n]);
            if (to->items[to->n])
                continue;
            policy_done(&copy);
            return err_set(err, -ENOMEM, "no memory for a policy");
        }
    }
    *ret = copy;
    return 0;
}

void
policy_done(struct policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_fields[i].kind == FIELD_PATHS || policy_fields[i].kind == FIELD_NAMES)
            list_done(list_of(policy, &policy_fields[i]));
}
