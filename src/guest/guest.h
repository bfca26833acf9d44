/* Between the two files of the guest; nobody else's. */
#pragma once

#include "base/attr.h"
#include "guest/wire.h"

/* Runs the submitted file as __main__ and ends the process as `python3 FILE` would have
 * ended. sys.argv is ['-c', FILE NAME, FOLDER, ARGUMENTS…] as boot.h left it. */
NORETURN void program_run(struct claims *claims);

/* Where nothing may be executed: see programs.c. */
void programs_stand_in(void);
