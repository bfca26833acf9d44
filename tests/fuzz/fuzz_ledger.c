/*
 * libFuzzer: an export of anybody's, imported into a ledger in memory. What is accepted must
 * verify, and must be exported and imported again as it was.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/ledger_parts.h"

enum { INPUT_BYTES_MAX = 256 * 1024, EXPORT_BYTES_MAX = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int
file_of(const void *bytes, size_t n)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, bytes, n) < 0 || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    return fd;
}

static void
export_to(struct ledger *ledger, struct buf *text)
{
    struct err err;
    AUTO_CLOSE int fd = memfd_create("export", MFD_CLOEXEC);
    buf_init(text, EXPORT_BYTES_MAX);
    if (ledger_export(ledger, fd, &err) < 0 || lseek(fd, 0, SEEK_SET) != 0 ||
        fd_read_all(fd, text) < 0)
        abort();
}

/* What one import took, another takes from its export, to the byte. */
static void
take_again(struct ledger *ledger)
{
    AUTO_BUF struct buf first = {0}, second = {0};
    AUTO_LEDGER struct ledger *other = NULL;
    struct err err;
    struct ledger_verdict verdict;
    if (ledger_verify(ledger, NULL, &verdict, &err) < 0 || !verdict.sound)
        abort();
    export_to(ledger, &first);
    AUTO_CLOSE int fd = file_of(first.p, first.n);
    if (ledger_open_scratch(&other, &err) < 0 || import_into(other, fd, &err) < 0)
        abort();
    export_to(other, &second);
    if (first.n != second.n || memcmp(first.p, second.p, first.n) != 0)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_LEDGER struct ledger *ledger = NULL;
    struct err err = {0};
    if (n > INPUT_BYTES_MAX)
        return 0;
    AUTO_CLOSE int fd = file_of(bytes, n);
    if (ledger_open_scratch(&ledger, &err) < 0)
        abort();
    if (import_into(ledger, fd, &err) == 0)
        take_again(ledger);
    else
        assert(err.code < 0 && err.text[0] != '\0');
    return 0;
}
