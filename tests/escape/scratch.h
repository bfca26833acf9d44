/* Where attempts that are let through do no harm, and what the host holds for them to
 * reach. */
#pragma once

/* Puts this process into a mount namespace without propagation and a UTS namespace of its
 * own. Returns 0; 1 when this user may not, in which case no mount can succeed either; or
 * -errno. */
int scratch_enter(void);

/* Makes what the verbs reach for (probe.h, HOST_*), prints "holding <pid>", waits for the
 * end of stdin and takes it all away again. Returns an exit status. */
int host_hold(void);
