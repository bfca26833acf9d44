/* Reading runs and incidents, newest first. Filters are bound, never written into the
 * SQL. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "ledger/ledger_parts.h"

/* clang-format off */
static const char sql_runs[] =
    "SELECT i.seq, i.time_us, i.run, i.session, i.policy, i.name, i.code, i.code_bytes, "
    "i.pid, i.code_kept, coalesce(o.status, 'open'), o.exit_code, o.time_us, o.signal, "
    "o.limit_value, o.wall_us, o.cpu_us, o.peak_memory_bytes, o.processes, "
    "o.stdout_bytes, o.stderr_bytes, o.incidents, o.limit_name, o.message, o.error, "
    "o.interpreter, o.isolation, o.start, o.incidents_dropped "
    "FROM entry i LEFT JOIN entry o ON o.intent = i.seq AND o.kind = 'outcome' "
    "WHERE i.kind = 'intent' "
    "AND (?1 IS NULL OR i.time_us >= ?1) "
    "AND (?2 IS NULL OR EXISTS (SELECT 1 FROM entry n WHERE n.intent = i.seq "
        "AND n.kind = 'incident' AND n.rule = ?2)) "
    "AND (?3 IS NULL OR coalesce(o.status, 'open') = ?3) "
    "AND (?4 IS NULL OR i.session = ?4) "
    "AND (?5 IS NULL OR EXISTS (SELECT 1 FROM entry n WHERE n.intent = i.seq "
        "AND n.kind = 'incident' AND n.layer = ?5)) "
    "AND (?6 IS NULL OR i.run = ?6) "
    "ORDER BY i.seq DESC LIMIT ?7";

#define SELECT_INCIDENTS \
    "SELECT n.seq, n.time_us, n.number, n.count, n.line, n.col, n.run, n.session, " \
    "i.policy, o.status, n.rule, n.layer, n.action, n.act, n.reason, n.remedy, n.fact, " \
    "n.code FROM entry n LEFT JOIN entry i ON i.seq = n.intent " \
    "LEFT JOIN entry o ON o.intent = n.intent AND o.kind = 'outcome' " \
    "WHERE n.kind = 'incident' "

static const char sql_incidents[] =
    SELECT_INCIDENTS
    "AND (?1 IS NULL OR n.time_us >= ?1) "
    "AND (?2 IS NULL OR n.rule = ?2) "
    "AND (?3 IS NULL OR o.status = ?3) "
    "AND (?4 IS NULL OR n.session = ?4) "
    "AND (?5 IS NULL OR n.layer = ?5) "
    "AND (?6 IS NULL OR n.run = ?6) "
    "ORDER BY n.seq DESC LIMIT ?7";

static const char sql_incident_of_run[] =
    SELECT_INCIDENTS "AND n.run = ?1 AND n.number = ?2";
/* clang-format on */

static void
bind_filter(sqlite3_stmt *s, const struct ledger_filter *filter)
{
    const char *const texts[] = {filter->rule, filter->status, filter->session,
                                 filter->layer, filter->run};
    if (filter->since_us != 0)
        sqlite3_bind_int64(s, 1, filter->since_us);
    for (int i = 0; i < (int)(sizeof(texts) / sizeof(*texts)); i++)
        if (texts[i])
            sqlite3_bind_text(s, 2 + i, texts[i], -1, SQLITE_STATIC);
    bool all = filter->limit == 0 || filter->limit > INT64_MAX;
    sqlite3_bind_int64(s, 7, all ? -1 : (int64_t)filter->limit);
}

static const char *
text_at(sqlite3_stmt *s, int column)
{
    return (const char *)sqlite3_column_text(s, column);
}

static void
code_at(sqlite3_stmt *s, int column, unsigned char ret[LEDGER_HASH_BYTES])
{
    if (sqlite3_column_bytes(s, column) == LEDGER_HASH_BYTES)
        memcpy(ret, sqlite3_column_blob(s, column), LEDGER_HASH_BYTES);
}

static struct ledger_run
run_at(sqlite3_stmt *s)
{
    struct ledger_run run = {
        .seq = sqlite3_column_int64(s, 0),
        .time_us = sqlite3_column_int64(s, 1),
        .id = text_at(s, 2),
        .session = text_at(s, 3),
        .policy = text_at(s, 4),
        .name = text_at(s, 5),
        .code_bytes = sqlite3_column_int64(s, 7),
        .pid = sqlite3_column_int64(s, 8),
        .code_kept = sqlite3_column_int64(s, 9) != 0,
        .status = text_at(s, 10),
        .has_exit_code = sqlite3_column_type(s, 11) != SQLITE_NULL,
        .exit_code = sqlite3_column_int64(s, 11),
        .ended_us = sqlite3_column_int64(s, 12),
        .signal = sqlite3_column_int64(s, 13),
        .limit_value = sqlite3_column_int64(s, 14),
        .wall_us = sqlite3_column_int64(s, 15),
        .cpu_us = sqlite3_column_int64(s, 16),
        .peak_memory_bytes = sqlite3_column_int64(s, 17),
        .processes = sqlite3_column_int64(s, 18),
        .stdout_bytes = sqlite3_column_int64(s, 19),
        .stderr_bytes = sqlite3_column_int64(s, 20),
        .incidents = sqlite3_column_int64(s, 21),
        .limit_name = text_at(s, 22),
        .message = text_at(s, 23),
        .error = text_at(s, 24),
        .interpreter = text_at(s, 25),
        .isolation = text_at(s, 26),
        .start = text_at(s, 27),
        .incidents_dropped = sqlite3_column_int64(s, 28),
    };
    code_at(s, 6, run.code);
    return run;
}

static struct ledger_incident
incident_at(sqlite3_stmt *s)
{
    struct ledger_incident incident = {
        .seq = sqlite3_column_int64(s, 0),
        .time_us = sqlite3_column_int64(s, 1),
        .number = sqlite3_column_int64(s, 2),
        .count = sqlite3_column_int64(s, 3),
        .line = sqlite3_column_int64(s, 4),
        .column = sqlite3_column_int64(s, 5),
        .run = text_at(s, 6),
        .session = text_at(s, 7),
        .policy = text_at(s, 8),
        .status = text_at(s, 9),
        .rule = text_at(s, 10),
        .layer = text_at(s, 11),
        .action = text_at(s, 12),
        .act = text_at(s, 13),
        .reason = text_at(s, 14),
        .remedy = text_at(s, 15),
        .fact = sqlite3_column_int64(s, 16) != 0,
    };
    code_at(s, 17, incident.code);
    snprintf(incident.id, sizeof(incident.id), "%.40s.%lld",
             incident.run ? incident.run : "", (long long)incident.number);
    return incident;
}

static int
end_walk(struct ledger *ledger, int rc, int r, struct err *err)
{
    if (r != 0 || rc == SQLITE_DONE)
        return r;
    return ledger_fail(ledger, "read it", err);
}

int
ledger_each_run(struct ledger *ledger, const struct ledger_filter *filter,
                int (*each)(void *context, const struct ledger_run *run), void *context,
                struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, sql_runs, &s, err);
    if (r < 0)
        return r;
    bind_filter(s, filter);
    int rc = SQLITE_DONE;
    while (r == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const struct ledger_run run = run_at(s);
        r = each(context, &run);
    }
    return end_walk(ledger, rc, r, err);
}

static int
walk_incidents(struct ledger *ledger, sqlite3_stmt *s,
               int (*each)(void *context, const struct ledger_incident *incident),
               void *context, struct err *err)
{
    int rc = SQLITE_DONE, r = 0;
    while (r == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const struct ledger_incident incident = incident_at(s);
        r = each(context, &incident);
    }
    return end_walk(ledger, rc, r, err);
}

int
ledger_each_incident(struct ledger *ledger, const struct ledger_filter *filter,
                     int (*each)(void *context, const struct ledger_incident *incident),
                     void *context, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, sql_incidents, &s, err);
    if (r < 0)
        return r;
    bind_filter(s, filter);
    return walk_incidents(ledger, s, each, context, err);
}

/* Counts what it hands on. */
struct counted_run {
    int (*each)(void *context, const struct ledger_run *run);
    void *context;
    bool found;
};

static int
count_run(void *context, const struct ledger_run *run)
{
    struct counted_run *counted = context;
    counted->found = true;
    return counted->each(counted->context, run);
}

int
ledger_find_run(struct ledger *ledger, const char *id,
                int (*each)(void *context, const struct ledger_run *run), void *context,
                struct err *err)
{
    struct counted_run counted = {each, context, false};
    const struct ledger_filter filter = {.run = id, .limit = 1};
    int r = ledger_each_run(ledger, &filter, count_run, &counted, err);
    if (r == 0 && !counted.found)
        return err_set(err, -ENOENT, "there is no run '%.60s' in the ledger %.100s", id,
                       ledger->path);
    return r;
}

int
ledger_asked(struct ledger *ledger, const struct ledger_run *run,
             struct ledger_asked *ret, struct err *err)
{
    static const char sql[] = "SELECT session, name, code, code_bytes FROM entry "
                              "WHERE seq > ?1 AND run = ?2 AND kind = 'request' LIMIT 1";
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, sql, &s, err);
    if (r < 0)
        return r;
    sqlite3_bind_int64(s, 1, run->seq);
    sqlite3_bind_text(s, 2, run->id, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_DONE)
        return err_set(err, -ENOENT, "no model was asked for the run %.60s", run->id);
    if (rc != SQLITE_ROW)
        return ledger_fail(ledger, "read it", err);
    const char *ask = (const char *)sqlite3_column_text(s, 0);
    const char *model = (const char *)sqlite3_column_text(s, 1);
    *ret = (struct ledger_asked){.prompt_bytes = sqlite3_column_int64(s, 3)};
    snprintf(ret->ask, sizeof(ret->ask), "%s", ask ? ask : "");
    snprintf(ret->model, sizeof(ret->model), "%s", model ? model : "");
    if (sqlite3_column_bytes(s, 2) == LEDGER_HASH_BYTES)
        memcpy(ret->prompt, sqlite3_column_blob(s, 2), LEDGER_HASH_BYTES);
    return 0;
}

struct counted_incident {
    int (*each)(void *context, const struct ledger_incident *incident);
    void *context;
    bool found;
};

static int
count_incident(void *context, const struct ledger_incident *incident)
{
    struct counted_incident *counted = context;
    counted->found = true;
    return counted->each(counted->context, incident);
}

int
ledger_find_incident(struct ledger *ledger, const char *id,
                     int (*each)(void *context, const struct ledger_incident *incident),
                     void *context, struct err *err)
{
    struct counted_incident counted = {each, context, false};
    const char *dot = strrchr(id, '.');
    uint64_t number;
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    if (!dot || parse_u64(span_of(dot + 1), &number) < 0 || number > INT64_MAX)
        return err_set(err, -EINVAL,
                       "'%.60s' is no incident: its name is a run's, a dot and "
                       "a number",
                       id);
    int r = ledger_prepare(ledger, sql_incident_of_run, &s, err);
    if (r < 0)
        return r;
    sqlite3_bind_text(s, 1, id, (int)(dot - id), SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, (int64_t)number);
    r = walk_incidents(ledger, s, count_incident, &counted, err);
    if (r == 0 && !counted.found)
        return err_set(err, -ENOENT, "there is no incident '%.60s' in the ledger %.100s",
                       id, ledger->path);
    return r;
}

int
ledger_code(struct ledger *ledger, const unsigned char hash[LEDGER_HASH_BYTES],
            struct buf *text, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, "SELECT text FROM code WHERE hash = ?1", &s, err);
    if (r < 0)
        return r;
    sqlite3_bind_blob(s, 1, hash, LEDGER_HASH_BYTES, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_DONE)
        return err_set(err, -ENOENT, "the text of that code was not kept");
    if (rc != SQLITE_ROW)
        return ledger_fail(ledger, "read it", err);
    if (buf_append(text, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0)) <
        0)
        return err_set(err, -ENOMEM, "the text of that code is too long to be shown");
    return 0;
}
