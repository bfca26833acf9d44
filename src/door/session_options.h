/* Options of the commands that talk to a session: `session`, `shell`, `mcp`, the chat of `ask`. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/serve.h"
#include "policy/policy.h"

/* The value of `--NAME VALUE` or `--NAME=VALUE` at argv[*at], or NULL. */
const char *session_option_value(const char *name, int argc, char **argv, int *at);
/* FIELD=VALUE into an object of texts; false: it is no such text. */
bool session_option_limit(json_t *limits, const char *text);
/* A policy that is a file is known to a supervisor of our own alone: then *alone is set, it is among
 * the policies of `serve`, and *name is the name in it. *policy is loaded where it can be; one that is
 * not known here may be known there. */
int session_option_policy(const char **name, const char *socket, bool *alone,
                          struct serve_options *serve, struct policy *policy,
                          struct err *err) MUST_USE;
