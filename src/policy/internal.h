/* What the files of this room share and no other room sees. */
#pragma once

#include "policy/policy.h"

/* NULL when there is no built-in profile of that name. */
const struct policy *profile_find(struct span name);

int policy_load_file(const char *path, struct policy *ret, struct err *err) MUST_USE;

/* Reads one scalar and checks its range, with the errors of policy_narrow but without
 * -EPERM. */
int value_parse(const struct policy_field *field, const char *who, struct span text,
                uint64_t *ret, struct err *err) MUST_USE;
const char *value_format(const struct policy_field *field, uint64_t value,
                         char text[POLICY_RANGE_BYTES]);
void value_set(struct policy *policy, const struct policy_field *field, uint64_t value);

/* The list of a FIELD_PATHS or FIELD_NAMES field. */
struct policy_list *list_of(struct policy *policy, const struct policy_field *field);
const struct policy_list *list_peek(const struct policy *policy,
                                    const struct policy_field *field);
/* Adds a copy of one item after checking it; the list is as before on failure. */
int list_add(struct policy_list *list, const struct policy_field *field, const char *who,
             struct span item, struct err *err) MUST_USE;
void list_done(struct policy_list *list);
const char *name_fault(const struct policy_list *list, struct span name);

/* One rule of a FIELD_RULES field: *ret_rule and the value that stands for a severity. */
int rule_parse(const char *who, struct span rule, struct span severity, size_t *ret_rule,
               uint64_t *ret, struct err *err) MUST_USE;
int rules_format(const struct policy *policy, struct buf *out) MUST_USE;
int rules_explain(const struct policy *policy, struct buf *out) MUST_USE;

/* Bytes from outside made fit for one line of an error: cut short, nothing that could
 * drive a terminal. */
enum { QUOTE_BYTES = 48 };
const char *quote(struct span text, char out[QUOTE_BYTES]);

/* Letters to insert, drop or change to make one word the other; long words are cut. */
size_t edit_distance(struct span a, struct span b);
