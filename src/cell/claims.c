/*
 * What a cell says of itself, carried into the outcome: copied once, every length
 * checked, every text made valid UTF-8. Nothing here decides anything.
 */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cell/cell_parts.h"

/* A length beyond its array, a kind that does not exist: then nothing was claimed. */
static bool
is_sound(const struct claims *claims)
{
    return claims->magic == GUEST_MAGIC && claims->kind <= CLAIM_EXIT &&
           claims->name_n < sizeof(claims->name) &&
           claims->value_n <= sizeof(claims->value) &&
           claims->traceback_n <= sizeof(claims->traceback) && claims->line >= 0 &&
           claims->acts_n <= CLAIM_ACTS_MAX;
}

void
claims_read(const struct claims *shared, struct claims *ret)
{
    *ret = (struct claims){0};
    if (!shared)
        return;
    memcpy(ret, shared, sizeof(*ret));
    if (!is_sound(ret))
        *ret = (struct claims){0};
    ret->name[sizeof(ret->name) - 1] = '\0';
    ret->name[ret->name_n] = '\0';
}

/* n bytes as valid text of at most size - 1 bytes, cut before a character, not inside
 * one. */
static void
valid_text(const char *bytes, size_t n, char *text, size_t size)
{
    enum { WORST = 3 }; /* a replaced byte becomes three */
    AUTO_BUF struct buf valid = {0};
    uint64_t replaced;
    buf_init(&valid, WORST * n + 1);
    text[0] = '\0';
    if (utf8_append_valid(&valid, (struct span){bytes, n}, &replaced) < 0)
        return;
    size_t fits = valid.n < size ? valid.n : size - 1;
    fits -= utf8_unfinished_tail((struct span){buf_span(&valid).p, fits});
    memcpy(text, buf_span(&valid).p, fits);
    text[fits] = '\0';
}

void
claims_carry_error(const struct claims *claims, struct outcome *outcome)
{
    if (claims->kind != CLAIM_EXCEPTION)
        return;
    outcome->has_error = true;
    outcome->error_line = claims->line;
    valid_text(claims->name, claims->name_n, outcome->error_name,
               sizeof(outcome->error_name));
    valid_text(claims->value, claims->value_n, outcome->error_value,
               sizeof(outcome->error_value));
    buf_init(&outcome->traceback, CLAIM_TRACEBACK_BYTES);
    (void)!buf_append(&outcome->traceback, claims->traceback, claims->traceback_n);
}

static void
carry_act(const struct claim_act *act, struct outcome *outcome)
{
    /* Cut here, between characters: the act that they are put into holds both. */
    enum { CALL_BYTES = 41, OBJECT_BYTES = 201 };
    char call[CALL_BYTES], object[OBJECT_BYTES];
    struct incident incident = {.count = act->count > 0 ? act->count : 1,
                                .line = act->line > 0 ? act->line : 0};
    valid_text(act->rule, strnlen(act->rule, sizeof(act->rule)), incident.rule,
               sizeof(incident.rule));
    valid_text(act->call, strnlen(act->call, sizeof(act->call)), call, sizeof(call));
    valid_text(act->object, strnlen(act->object, sizeof(act->object)), object,
               sizeof(object));
    snprintf(incident.layer, sizeof(incident.layer), "hook");
    snprintf(incident.action, sizeof(incident.action), "refused");
    snprintf(incident.act, sizeof(incident.act), "%s(%s)", call, object);
    outcome_add_incident(outcome, &incident);
}

void
claims_carry_acts(const struct claims *claims, struct outcome *outcome)
{
    for (uint32_t i = 0; i < claims->acts_n; i++)
        carry_act(&claims->acts[i], outcome);
    outcome->incidents_dropped += claims->acts_dropped;
}
