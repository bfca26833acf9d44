/* Filters of system calls that were compiled before, in the user's cache folder. */
#pragma once

#include "jail/jail.h"

extern const struct filter_store filter_cache;
