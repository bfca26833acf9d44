/*
 * When what was committed reaches the disk. A commit writes to the journal, which is the
 * kernel's from then on: our death takes nothing, a power cut takes what was not flushed.
 *
 * A flush may take long, and an event loop watches deadlines meanwhile: so there is one
 * that runs in a process of its own. It holds nothing but the journal.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger_parts.h"

int
flush_now(struct ledger *ledger)
{
    if (ledger->wal_fd >= 0 && fdatasync(ledger->wal_fd) < 0)
        return -errno;
    ledger->is_dirty = false;
    return 0;
}

void
ledger_flush_begin(const struct ledger *ledger)
{
    if (ledger->wal_fd >= 0 && ledger->is_dirty) /* what fails is told by the flush */
        (void)!sync_file_range(ledger->wal_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int
ledger_flush(struct ledger *ledger, struct err *err)
{
    flush_reap(ledger, true);
    if (ledger->is_dirty && flush_now(ledger) < 0)
        return err_sys(err, "cannot bring the ledger %.140s to the disk", ledger->path);
    return 0;
}

int
ledger_flush_error(const struct ledger *ledger)
{
    return ledger->flush_error;
}

/* One that did not succeed leaves the work to the next. */
void
flush_reap(struct ledger *ledger, bool wait)
{
    if (ledger->flusher <= 0)
        return;
    int status;
    pid_t pid;
    do
        pid = waitpid(ledger->flusher, &status, wait ? 0 : WNOHANG);
    while (pid < 0 && errno == EINTR);
    if (pid == 0)
        return;
    ledger->flush_error =
        pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EIO; /* or it was killed */
    if (ledger->flush_error != 0)
        ledger->is_dirty = true;
    ledger->flusher = 0;
}

static NORETURN void
flush_and_exit(int wal_fd)
{
    setsid(); /* Ctrl-C is for the supervisor */
    prctl(PR_SET_NAME, "adyton-flush", 0, 0, 0);
    if (wal_fd > 0)
        close_range(0, (unsigned)wal_fd - 1, 0);
    close_range((unsigned)wal_fd + 1, ~0U, 0);
    _exit(fdatasync(wal_fd) < 0 ? errno : EXIT_SUCCESS);
}

bool
ledger_flush_soon(struct ledger *ledger)
{
    flush_reap(ledger, false);
    if (ledger->flusher > 0 || !ledger->is_dirty || ledger->wal_fd < 0)
        return ledger->flusher > 0;
    pid_t pid = _Fork();
    if (pid == 0)
        flush_and_exit(ledger->wal_fd);
    if (pid < 0) /* no process to be had: then it takes what it takes */
        return flush_now(ledger) < 0;
    /* What is committed while it runs sets this again. */
    ledger->is_dirty = false;
    ledger->flusher = pid;
    return true;
}
