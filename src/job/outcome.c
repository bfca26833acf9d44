/*
 * What came of a job, as data: the status table, the id, incidents counted by what they
 * are. Knows nothing of how a cell is made or watched.
 */
#include "job/outcome.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum exit_rule { EXITS_WITH, EXITS_WITH_ITS_CODE, EXITS_WITH_ITS_SIGNAL };

/* The exit statuses are those that shells, timeout(1) and env(1) use for the same events.
 */
static const struct status_row {
    const char *name;
    enum exit_rule rule;
    int number;
    const char *meaning;
} statuses[STATUS_COUNT] = {
    /* clang-format off */
    [STATUS_OK]        = {"ok",        EXITS_WITH,              0, "ended by itself with 0"},
    [STATUS_EXCEPTION] = {"exception", EXITS_WITH,              1, "ended by an exception"},
    [STATUS_EXIT]      = {"exit",      EXITS_WITH_ITS_CODE,     0, "ended by itself, not with 0"},
    [STATUS_REJECTED]  = {"rejected",  EXITS_WITH,            126, "refused before it ran"},
    [STATUS_VIOLATION] = {"violation", EXITS_WITH,            126, "stopped for a forbidden act"},
    [STATUS_TIMEOUT]   = {"timeout",   EXITS_WITH,            124, "stopped at a time limit"},
    [STATUS_MEMORY]    = {"memory",    EXITS_WITH,            137, "stopped at the memory limit"},
    [STATUS_OUTPUT]    = {"output",    EXITS_WITH,            137, "stopped at the output limit"},
    [STATUS_DISK]      = {"disk",      EXITS_WITH,            137, "stopped at the disk limit"},
    [STATUS_PIDS]      = {"pids",      EXITS_WITH,            137, "stopped at the process limit"},
    [STATUS_CRASHED]   = {"crashed",   EXITS_WITH_ITS_SIGNAL, 128, "ended by a signal of its own"},
    [STATUS_FAILED]    = {"failed",    EXITS_WITH,            125, "not run to its end by adyton"},
    /* clang-format on */
};

/* A status from outside the enum is a bug of ours, and must not read past the table. */
static const struct status_row *
status_row(enum status status)
{
    return &statuses[(unsigned)status < STATUS_COUNT ? status : STATUS_FAILED];
}

const char *
status_name(enum status status)
{
    return status_row(status)->name;
}

const char *
status_meaning(enum status status)
{
    return status_row(status)->meaning;
}

int
outcome_exit_status(const struct outcome *outcome)
{
    const struct status_row *row = status_row(outcome->status);
    if (row->rule == EXITS_WITH)
        return row->number;
    if (row->rule == EXITS_WITH_ITS_SIGNAL)
        return row->number + (outcome->signal & 0x7F);
    /* Never 0 for what did not end well, whatever the number was modulo 256. */
    int code = outcome->exit_code & 0xFF;
    return code != 0 ? code : 1;
}

enum { ULID_TIME_CHARACTERS = 10, ULID_RANDOM_BYTES = 10, ULID_RANDOM_CHARACTERS = 16 };

/* Crockford's alphabet keeps the order of the bits, so ids sort by the millisecond. */
static void
put_base32(char *text, uint64_t value, size_t n)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for (size_t i = n; i-- > 0; value >>= 5)
        text[i] = alphabet[value & 31];
}

static void
make_id(char id[OUTCOME_ID_BYTES])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;

    unsigned char random[ULID_RANDOM_BYTES];
    ssize_t got;
    do
        got = getrandom(random, sizeof(random), 0);
    while (got < 0 && errno == EINTR);
    assert(got ==
           sizeof(random)); /* the kernel never gives less than 256 bytes once seeded */

    char *p = id;
    *p++ = 'r';
    *p++ = '_';
    put_base32(p, ms & 0xFFFFFFFFFFFFU, ULID_TIME_CHARACTERS);
    p += ULID_TIME_CHARACTERS;
    for (size_t half = 0; half < 2; half++, p += ULID_RANDOM_CHARACTERS / 2) {
        uint64_t bits = 0;
        for (size_t i = 0; i < ULID_RANDOM_BYTES / 2; i++)
            bits = bits << 8 | random[half * (ULID_RANDOM_BYTES / 2) + i];
        put_base32(p, bits, ULID_RANDOM_CHARACTERS / 2);
    }
    *p = '\0';
}

void
outcome_init(struct outcome *outcome)
{
    *outcome = (struct outcome){.status = STATUS_FAILED};
    make_id(outcome->id);
    buf_init(&outcome->traceback, OUTCOME_TRACEBACK_BYTES);
}

void
outcome_done(struct outcome *outcome)
{
    if (!outcome)
        return;
    buf_done(&outcome->out.head);
    buf_done(&outcome->out.tail);
    buf_done(&outcome->err.head);
    buf_done(&outcome->err.tail);
    buf_done(&outcome->traceback);
    displays_done(&outcome->displays);
    events_done(&outcome->events);
    findings_done(&outcome->findings);
    free(outcome->files);
    outcome->files = NULL;
    outcome->files_n = 0;
}

void
outcome_add_layer(struct outcome *outcome, const char *format, ...)
{
    if (outcome->isolation_n >= OUTCOME_LAYERS_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(outcome->isolation[outcome->isolation_n++], OUTCOME_LAYER_BYTES, format,
              args);
    va_end(args);
}

static bool
same_act(const struct incident *a, const struct incident *b)
{
    return strncmp(a->rule, b->rule, sizeof(a->rule)) == 0 &&
           strncmp(a->layer, b->layer, sizeof(a->layer)) == 0 &&
           strncmp(a->action, b->action, sizeof(a->action)) == 0 &&
           strncmp(a->act, b->act, sizeof(a->act)) == 0;
}

static void
add_count(uint64_t *count, uint64_t more)
{
    if (__builtin_add_overflow(*count, more, count))
        *count = UINT64_MAX;
}

/* Distinct acts are bounded, so that code that tries a thousand paths cannot fill our
 * memory. */
void
outcome_add_incident(struct outcome *outcome, const struct incident *incident)
{
    uint64_t count = incident->count > 0 ? incident->count : 1;
    for (size_t i = 0; i < outcome->incidents_n; i++) {
        if (same_act(&outcome->incidents[i], incident)) {
            add_count(&outcome->incidents[i].count, count);
            return;
        }
    }
    if (outcome->incidents_n >= OUTCOME_INCIDENTS_MAX) {
        add_count(&outcome->incidents_dropped, count);
        return;
    }
    struct incident *row = &outcome->incidents[outcome->incidents_n++];
    *row = *incident;
    row->count = count;
    /* What a cell sent may fill a field to its last byte. */
    row->rule[sizeof(row->rule) - 1] = '\0';
    row->layer[sizeof(row->layer) - 1] = '\0';
    row->action[sizeof(row->action) - 1] = '\0';
    row->act[sizeof(row->act) - 1] = '\0';
}

static void
add_finding(struct outcome *outcome, const struct finding *finding)
{
    bool bytes = finding->layer == LAYER_BYTES;
    struct incident incident = {.fact =
                                    bytes, /* the tree was looked at inside the cell */
                                .count = 1,
                                .line = finding->at.line,
                                .column = finding->at.column};
    snprintf(incident.rule, sizeof(incident.rule), "%s", check_rules[finding->rule].id);
    snprintf(incident.layer, sizeof(incident.layer), "%s", bytes ? "bytes" : "ast");
    snprintf(incident.action, sizeof(incident.action), "refused");
    check_printable(span_of(finding->text), incident.act, sizeof(incident.act));
    outcome_add_incident(outcome, &incident);
}

void
outcome_reject(struct outcome *outcome)
{
    const struct findings *findings = &outcome->findings;
    for (size_t i = 0; i < findings->n; i++)
        if (findings->list[i].severity == CHECK_ERROR)
            add_finding(outcome, &findings->list[i]);
    outcome->status = STATUS_REJECTED;
    check_summary(findings, outcome->message, sizeof(outcome->message));
}

void
outcome_fail(struct outcome *outcome, const struct err *err)
{
    outcome->status = STATUS_FAILED;
    snprintf(outcome->message, sizeof(outcome->message), "%s", err->text);
}
