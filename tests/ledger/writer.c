/*
 * A writer to be killed: appends runs to a ledger for ever (or COUNT of them) and says on
 * stdout what the ledger has acknowledged, one write a line: "intent RUN" and "outcome
 * RUN". Usage: writer PATH [COUNT]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "ledger/ledger.h"

enum { LINE_BYTES = 128, INCIDENTS_MOST = 3 };

static int
say(const char *what, const char *run)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof(line), "%s %s\n", what, run);
    return write(STDOUT_FILENO, line, (size_t)n) == n ? 0 : -1;
}

static void
fill(struct outcome *outcome, uint64_t i)
{
    outcome->status = i % 2 == 0 ? STATUS_OK : STATUS_VIOLATION;
    for (uint64_t n = 0; n < i % (INCIDENTS_MOST + 1); n++) {
        struct incident incident = {.fact = true, .count = n + 1};
        snprintf(incident.rule, sizeof(incident.rule), "system-call");
        snprintf(incident.layer, sizeof(incident.layer), "seccomp");
        snprintf(incident.action, sizeof(incident.action), "refused");
        snprintf(incident.act, sizeof(incident.act), "ptrace(%d)", (int)n);
        outcome_add_incident(outcome, &incident);
    }
}

static int
append(struct ledger *ledger, uint64_t i, struct err *err)
{
    struct outcome outcome;
    char code[LINE_BYTES];
    int64_t seq;
    outcome_init(&outcome);
    int n = snprintf(code, sizeof(code), "print(%d, %llu)\n", (int)getpid() % 4,
                     (unsigned long long)i % 50);
    const struct ledger_intent intent = {.run = outcome.id,
                                         .policy = "standard",
                                         .name = "main.py",
                                         .code = {code, (size_t)n},
                                         .keep_code = i % 3 != 0,
                                         .full_sync = i % 16 == 0};
    int r = ledger_intent(ledger, &intent, &seq, err);
    if (r == 0 && say("intent", outcome.id) < 0)
        exit(EXIT_FAILURE);
    fill(&outcome, i);
    if (r == 0)
        r = ledger_outcome(ledger, seq, &outcome, false, err);
    if (r == 0 && say("outcome", outcome.id) < 0)
        exit(EXIT_FAILURE);
    if (i % 8 == 0)
        ledger_flush_soon(ledger);
    outcome_done(&outcome);
    return r;
}

int
main(int argc, char **argv)
{
    AUTO_LEDGER struct ledger *ledger = NULL;
    struct err err;
    uint64_t count = UINT64_MAX;
    if (argc < 2 || (argc > 2 && parse_u64(span_of(argv[2]), &count) < 0)) {
        fprintf(stderr, "usage: writer PATH [COUNT]\n");
        return 2;
    }
    int r = ledger_open(argv[1], LEDGER_WRITE, &ledger, &err);
    for (uint64_t i = 0; i < count && r == 0; i++)
        r = append(ledger, i, &err);
    if (r < 0)
        fprintf(stderr, "writer: %s\n", err.text);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
