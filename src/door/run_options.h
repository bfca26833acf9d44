/* The options of `adyton run`, as data: for parsing, --help, completion and the manual's
 * check. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "job/job.h"
#include "policy/policy.h"

enum { RUN_LIMITS_MAX = 128 };

enum run_verbosity { RUN_QUIET, RUN_NORMAL, RUN_VERBOSE };

struct run_limit {
    const struct policy_field *field;
    const char *text;
};

/* Everything in it is borrowed from argv. */
struct run_options {
    const char *file; /* "-": the code comes from stdin */
    const char *code;
    const char *policy;
    const char *session; /* NULL: a run of its own */
    const char *out_dir;
    const char *stdin_path; /* "-": our stdin */
    const char *python;
    const char *ledger;               /* NULL: the user's own */
    const char *socket;               /* of a supervisor; NULL: the user's own */
    const char *files[JOB_FILES_MAX]; /* PATH or PATH=NAME */
    size_t files_n;
    const char *workspace;             /* NULL: none */
    const char *data[JOB_FOLDERS_MAX]; /* DIR or DIR=NAME */
    size_t data_n;
    struct run_limit limits[RUN_LIMITS_MAX];
    size_t limits_n;
    char **args;
    size_t args_n;
    enum run_verbosity verbosity;
    bool cold;
    bool json;
    bool stream;
    bool base64;
    bool show_last;
    bool svg;
    bool no_images;
    bool
        one_of_many; /* a shell's: a traceback says enough, and what was interrupted is known */
    bool help;
};

struct run_option {
    const char *name;  /* "--policy" */
    const char *brief; /* "-c", or NULL */
    const char *value; /* what it takes, as --help shows it; NULL: nothing */
    const char *help;
    int (*handle)(struct run_options *options, const char *value, struct err *err);
};

/* The limits are not in it: those are the rows of policy_fields that have an option. */
extern const struct run_option run_option_table[];
extern const size_t run_option_table_n;

/* argv[0] is the command's own name. */
int run_options_parse(int argc, char **argv, struct run_options *ret,
                      struct err *err) MUST_USE;
/* What the option of a field takes: "TIME", "none|fork|exec". */
const char *run_limit_value(const struct policy_field *field,
                            char text[POLICY_RANGE_BYTES]);
int run_options_help(struct err *err) MUST_USE;
