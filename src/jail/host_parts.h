/* Shared by host.c and host_try.c; nobody else's. */
#pragma once

#include "base/attr.h"
#include "base/err.h"

/* Each tries one thing in a child that then dies, and with it what it made. 0, or a
 * negative errno with a sentence of what refused. */
int host_try_namespace(int clone_flag, struct err *err) MUST_USE;
int host_try_mounts(struct err *err) MUST_USE;
int host_try_landlock(struct err *err) MUST_USE;
int host_try_filter(struct err *err) MUST_USE;
int host_try_notification(struct err *err) MUST_USE;
int host_try_clone3(struct err *err) MUST_USE;
