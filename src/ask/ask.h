/*
 * A question in words becomes code, the code a run, the run an answer: asks a model, takes its code
 * out of what it says, has it run, and gives it back what came of that until it answers, or a
 * budget is used up. How code is run, and what is shown, are the caller's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "ask/endpoint.h"
#include "ask/program.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "job/outcome.h"
#include "policy/policy.h"

enum {
    ASK_ID_BYTES = 40,
    ASK_ROUNDS_MAX = 16, /* answers of the model to one question */
    ASK_QUESTION_BYTES_MAX = 1 << 20,
};

struct ask_hooks {
    /* An outcome of the code, whatever it is; an error when it could not even be tried. */
    int (*execute)(void *context, struct span code, bool validate_only,
                   struct outcome *ret, struct err *err);
    /* All of these may be NULL. */
    void (*on_text)(void *context,
                    struct span text); /* of the model, as it comes: hostile */
    void (*on_step)(void *context, const char *line); /* trusted, one line */
    void (*on_code)(void *context, struct span code); /* hostile */
    void (*on_outcome)(void *context, const struct outcome *outcome, bool validated_only);
    /* Asked after validation, before the run; false: it is not to run. */
    bool (*may_run)(void *context, const struct outcome *verdict);
};

struct ask_request {
    struct endpoint *endpoint; /* initialised */
    const struct policy *policy;
    const char *system, *question; /* UTF-8 */
    const char *ledger_path;       /* NULL: the user's own */
    unsigned attempts;             /* programs that may fail */
    uint64_t token_budget;         /* of all requests */
    bool dry_run;
    /* A chat: what was said so far, to which this question and its answer are added; NULL: nothing
     * was, and it is forgotten. Code then runs in a session, and is not run again. */
    json_t *messages;
    struct ask_hooks hooks;
    void *context;
};

enum ask_end {
    ASK_ANSWERED,
    ASK_SHOWN,    /* a dry run: there is code, and its verdict */
    ASK_FAILED,   /* every attempt has */
    ASK_DECLINED, /* the person did not want it to run */
    ASK_REFUSED,  /* the model did not want to answer */
    ASK_SPENT,    /* no tokens or rounds are left */
};

struct ask_answer {
    char id[ASK_ID_BYTES]; /* "a_…", in the ledger the session of its requests */
    enum ask_end end;
    char reason[256];       /* for people, when it was not answered; "" else */
    struct buf text;        /* the model's: hostile */
    struct program program; /* what has run well, or in a dry run would be run */
    bool has_outcome;
    struct outcome outcome; /* of the code that was run, or looked at, last */
    uint64_t input_tokens, output_tokens;
    unsigned requests, runs;
    json_t *steps; /* for programs: what each request led to */
};

/* *ret is to be done whatever comes. An error is ours or the endpoint's. */
int ask(const struct ask_request *request, struct ask_answer *ret,
        struct err *err) MUST_USE;
void ask_answer_done(struct ask_answer *answer);
const char *ask_end_name(enum ask_end end);
