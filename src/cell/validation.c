/*
 * The supervisor's half of validation: what the guest looks for, what it found, and the answer.
 * What it says is a claim of a process that has met hostile text; findings are bounded, checked
 * and made printable, and a cell that says nothing gets no go.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/units.h"
#include "cell/cell_parts.h"

/* Constant, and in proportion to the source: CPython takes a second for a dense MiB. */
enum { CHECK_LIMIT_MS = 2000, CHECK_BYTES_A_MS = 250 };

uint64_t
validation_limit_ms(const struct cell *cell)
{
    return CHECK_LIMIT_MS + cell->request.job->code.n / CHECK_BYTES_A_MS;
}

bool
validation_is_on(const struct cell *cell)
{
    return cell->request.validate_only ||
           cell->request.policy->validation != VALIDATION_OFF;
}

/* --- what to look for --- */

static bool
add_word(struct guest_check *check, const char *word)
{
    size_t n = strlen(word) + 1;
    if (check->words_n + n >= GUEST_WORDS_BYTES)
        return false;
    memcpy(check->words + check->words_n, word, n);
    check->words_n += (uint32_t)n;
    return true;
}

static bool
fill(const struct cell *cell, struct guest_check *check)
{
    const struct policy *policy = cell->request.policy;
    size_t n;
    const char *const *names = policy_imports_denied(policy, &n);
    check->magic = GUEST_MAGIC;
    check->waits = cell->request.validate_only ? 1 : 0;
    check->memory_bytes = policy->memory_bytes;
    check->imports_n = (uint32_t)n;
    const struct job_folders *folders = &cell->request.job->folders;
    bool has_data = job_folders_have_data(folders);
    check->has_workspace = job_folders_workspace(folders) != NULL;
    check->reads_n = (uint32_t)policy->read_paths.n + (has_data ? 1 : 0);
    for (size_t i = 0; i < CHECK_RULES; i++)
        if (cell->check.severity[i] >= CHECK_OFF)
            check->rules_off |= 1U << i;
    bool fits = true;
    for (size_t i = 0; i < n && fits; i++)
        fits = add_word(check, names[i]);
    for (size_t i = 0; i < policy->read_paths.n && fits; i++)
        fits = add_word(check, policy->read_paths.items[i]);
    if (has_data && fits)
        fits = add_word(check, job_data_place);
    return fits;
}

int
validation_send(struct cell *cell, struct err *err)
{
    if (!validation_is_on(cell))
        return 0;
    struct guest_check *check = calloc(1, sizeof(*check));
    if (!check)
        return err_set(err, -ENOMEM, "no memory for the rules of validation");
    int r = fill(cell, check) ? 0 : -E2BIG;
    if (r == 0)
        r = fd_send(cell->guest, check,
                    offsetof(struct guest_check, words) + check->words_n, NULL, 0);
    free(check);
    return r < 0 && r != -EPIPE
               ? err_set(err, r, "send the rules of validation: %s", strerrordesc_np(-r))
               : 0;
}

/* --- what was found --- */

static int
at_least_0(int32_t number)
{
    return number > 0 ? number : 0;
}

static void
add(struct cell *cell, struct finding *finding)
{
    source_excerpt(&cell->source, finding);
    if (findings_add(&cell->outcome->findings, &cell->check, finding) < 0)
        cell_fail(cell, -ENOMEM, "keep what validation found");
}

static void
take_finding(struct cell *cell, const struct guest_finding *sent)
{
    struct finding finding = {.rule = (uint8_t)sent->rule, .layer = LAYER_AST};
    struct place *at = &finding.at;
    at->line = at_least_0(sent->line);
    at->end_line = at_least_0(sent->end_line);
    if (at->line > 0 && sent->columns == COLUMNS_ARE_BYTES) {
        at->column = source_column(&cell->source, at->line, sent->column);
        at->end_column = source_column(&cell->source, at->end_line, sent->end_column);
    } else {
        at->column = at_least_0(sent->column);
        at->end_column = at_least_0(sent->end_column);
    }
    memcpy(finding.text, sent->text, sizeof(finding.text));
    finding.text[sizeof(finding.text) - 1] = '\0';
    add(cell, &finding);
}

static void
conclude(struct cell *cell, const struct guest_checked *end)
{
    struct findings *findings = &cell->outcome->findings;
    for (unsigned i = 0; i < CHECK_RULES; i++)
        findings_count(findings, &cell->check, i, end->more[i]);
    bool rejected = check_rejects(&cell->check, findings);
    if (rejected && session_is_on(cell) && end->goes != 1)
        session_refuse(cell);
    else if (rejected)
        cell_end(cell, CAUSE_REJECTED);
    else if (cell->request.validate_only)
        cell_end(cell, CAUSE_ACCEPTED);
    else
        cell_go(cell, end->goes != 1);
}

/* One message; false when there was none. */
static bool
hear_one(struct cell *cell)
{
    union {
        struct guest_finding finding;
        struct guest_checked checked;
        char longer[sizeof(struct guest_finding) + 1]; /* is nothing of ours */
    } sent;
    ssize_t n = fd_receive(cell->guest, &sent, sizeof(sent.longer), NULL, 0);
    cell->unread |= n == -ECONNRESET;
    if (n <= 0)
        return false;
    bool whole = n == (ssize_t)sizeof(sent.finding) || n == (ssize_t)sizeof(sent.checked);
    if (!whole || sent.finding.magic != GUEST_MAGIC)
        return true; /* nothing that we would have sent */
    if (n == (ssize_t)sizeof(sent.finding) && sent.finding.rule < CHECK_RULES)
        take_finding(cell, &sent.finding);
    else if (n == (ssize_t)sizeof(sent.checked) && sent.checked.rule == CHECK_RULES)
        conclude(cell, &sent.checked);
    return true;
}
_Static_assert(sizeof(struct guest_finding) != sizeof(struct guest_checked),
               "told by size");

void
validation_hear(struct cell *cell)
{
    enum { AT_ONCE = 64 };
    for (int i = 0;
         i < AT_ONCE && !cell->going && !cell->rests && cell->cause == CAUSE_NONE; i++)
        if (!hear_one(cell))
            return;
}

/* The cell died before it got its go, and not by our verdict: the parser did not survive. */
void
validation_died(struct cell *cell, bool out_of_memory)
{
    char limit[UNITS_TEXT_BYTES];
    struct finding finding = {.rule = RULE_PARSER_EXHAUSTED, .layer = LAYER_AST};
    int status = cell->wait_status;
    if (cell->cause == CAUSE_CHECK_TIME)
        snprintf(finding.text, sizeof(finding.text),
                 "CPython took longer than %s to parse it",
                 format_ms(validation_limit_ms(cell), limit));
    else if (out_of_memory)
        snprintf(finding.text, sizeof(finding.text),
                 "parsing it takes more than the memory limit of %s",
                 format_bytes(cell->request.policy->memory_bytes, limit));
    else if (cell->exited && WIFSIGNALED(status) && sigabbrev_np(WTERMSIG(status)))
        snprintf(finding.text, sizeof(finding.text),
                 "CPython's parser crashed on it (SIG%s)",
                 sigabbrev_np(WTERMSIG(status)));
    else
        snprintf(finding.text, sizeof(finding.text),
                 "the interpreter ended while parsing it");
    /* Whatever the policy makes of the rule: this code was not judged, so it did not run. */
    cell->check.severity[RULE_PARSER_EXHAUSTED] = CHECK_ERROR;
    add(cell, &finding);
    outcome_reject(cell->outcome);
}
