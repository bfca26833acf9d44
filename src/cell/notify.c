/*
 * Refused system calls as facts: the kernel stops the caller and asks us. We record what
 * was called and answer with the table's errno; an attack-only call ends the cell
 * instead.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cell/cell_parts.h"
#include "kernel/kernel.h"

static void
record(struct cell *cell, const struct syscall_row *row, const struct seccomp_data *data)
{
    struct incident incident = {.fact = true, .count = 1};
    uint64_t arguments[6];
    for (int i = 0; i < 6; i++)
        arguments[i] = data->args[i];
    snprintf(incident.rule, sizeof(incident.rule), "system-call");
    snprintf(incident.layer, sizeof(incident.layer), "seccomp");
    snprintf(incident.action, sizeof(incident.action), "%s",
             row->verdict == CALL_END ? "ended" : "refused");
    char text[SYSCALL_TEXT_BYTES];
    jail_syscall_text(data->nr, arguments, text);
    snprintf(incident.act, sizeof(incident.act), "%s", text);
    snprintf(incident.reason, sizeof(incident.reason), "%s", row->why);
    outcome_add_incident(cell->outcome, &incident);
    cell_tell_incidents(cell);
}

void
cell_notified(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct cell *cell = context;
    cell_catch_up(cell);
    /* When every process with the filter is gone the descriptor only hangs up, for ever.
     * And a receive with nothing to receive would block us. */
    struct pollfd there = {fd, POLLIN, 0};
    if (poll(&there, 1, 0) == 1 && !(there.revents & POLLIN)) {
        event_free(cell->on_notify);
        cell->on_notify = NULL;
        return;
    }
    /* The kernel wants them zeroed; a newer one with larger structs refuses by EINVAL. */
    struct seccomp_notif call;
    memset(&call, 0, sizeof(call));
    if (!(there.revents & POLLIN) || ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return; /* the caller died first */
    uint64_t arguments[6];
    for (int i = 0; i < 6; i++)
        arguments[i] = call.data.args[i];
    const struct syscall_row *row =
        jail_syscall_row(cell->plan->when, call.data.nr, arguments);
    struct seccomp_notif_resp answer = {.id = call.id,
                                        .error = row ? -row->error : -ENOSYS};
    if (row && row->verdict == CALL_BELL)
        answer.val = display_rung(cell);
    else if (row)
        record(cell, row, &call.data);
    if (row && row->verdict == CALL_END) {
        /* No answer: the caller stays stopped in its call until it is killed there. */
        cell_end(cell, CAUSE_CALL);
        return;
    }
    /* Unanswered, the caller would wait for ever; ENOENT: it has died meanwhile. */
    int r;
    do
        r = ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    while (r < 0 && errno == EINTR);
    if (r < 0 && errno != ENOENT)
        cell_fail(cell, -errno, "answer a refused system call");
}
