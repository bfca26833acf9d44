/* From the words of the command line to a job: reads the code, the files and stdin. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "door/run_options.h"
#include "engine/data_folders.h"
#include "job/job.h"
#include "policy/policy.h"

/* The folders of --data, split into DIR and NAME. */
struct run_data {
    struct data_folder folders[JOB_FOLDERS_MAX];
    size_t n;
    char *paths[JOB_FOLDERS_MAX]; /* owned; the names are the options' */
};
int run_input_read_data(const struct run_options *options, struct run_data *ret,
                        struct err *err) MUST_USE;
void run_data_done(struct run_data *data);

/* FILE or FILE=NAME. -EFBIG: with it there is more than *left_bytes. */
int run_input_add_file(const char *spec, uint64_t *left_bytes, struct job *job,
                       struct err *err) MUST_USE;

/* -EFBIG: the code is longer than the policy takes, which is a verdict on the code and no
 * mistake on the command line. */
int run_input_read_code(const struct run_options *options, const struct policy *policy,
                        struct job *job, struct err *err) MUST_USE;
/* Files, arguments and stdin; the name of the script is known by then. */
int run_input_read_rest(const struct run_options *options, const struct policy *policy,
                        struct job *job, struct err *err) MUST_USE;
