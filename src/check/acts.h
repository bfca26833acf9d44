/*
 * What rules match: names of the standard library and of data libraries, and what using
 * one does. Data for the validator in the cell; sorted, so that it can be searched.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "check/rules.h"

enum act_when {
    ACT_NAMED,  /* to name it is to use it: it may be passed on and called elsewhere */
    ACT_CALLED, /* only a call counts */
};

enum act_access {
    ACCESS_NONE,
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_MODE,  /* as the argument `mode`, the second one or by name, says */
    ACCESS_FLAGS, /* as os.open's flags say */
};

/* `self` stands for the path on which a method is called. */
enum { ACT_SELF = -1, ACT_PATHS = 2 };

struct check_act {
    /* "os.system"; "builtins.open"; "Path.unlink" for methods of pathlib's paths;
     * ".to_csv" for a method of whatever object. */
    const char *name;
    uint8_t rule; /* enum check_rule_id */
    uint8_t when;
    const char *does; /* "starts a shell" */
    struct act_path {
        int8_t position;
        uint8_t access;
        const char *keyword;
    } paths[ACT_PATHS];
};

extern const struct check_act check_acts[];
extern const size_t check_acts_n;

const struct check_act *check_act_by_name(const char *name);

/* Attribute names that lead from an object to what it was not given: NULL when it is
 * none. */
struct check_attribute {
    const char *name;
    uint8_t rule;
    const char *does;
};
const struct check_attribute *check_attribute_by_name(const char *name);
