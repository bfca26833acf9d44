/* For LD_PRELOAD: a disk that fails while the file named by NOSYNC_WHILE is there. */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int
fdatasync(int fd)
{
    const char *name = getenv("NOSYNC_WHILE");
    if (!name || access(name, F_OK) < 0)
        return (int)syscall(SYS_fdatasync, fd);
    errno = EIO;
    return -1;
}
