/* From start-up to a sealed cell: see cell.c. Knows nothing of Python. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "guest/wire.h"

/* Tells the supervisor, which says it to people: nobody reads a cell's stderr for this. */
NORETURN void cell_give_up(const struct err *err);
/* ret_claims_fd: -1 when none came along. */
int cell_receive_setup(struct guest_setup *setup, int *ret_claims_fd,
                       struct err *err) MUST_USE;
/* Seals this process and says so; the claims memory is mapped, its descriptor closed. Does
 * not return when it fails. */
struct claims_memory *cell_seal(const struct seal *seal, int claims_fd);
