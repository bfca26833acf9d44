/*
 * The first program of the test machine: from the kernel's initial file system to the real
 * one. Loads the modules that the disk needs, mounts the disk, and becomes the interpreter
 * that runs inside.py. Statically linked, because nothing else is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"

enum { DISK_TRIES = 200, DISK_PAUSE_NS = 10 * 1000 * 1000, MODULES_MAX = 32 };

static const char disk[] = "/dev/vda";
static const char top[] = "/disk";

/* A message on the console, and no machine any more: its driver reads both. */
static NORETURN void
give_up(const char *what)
{
    printf("Bail out! the machine cannot %s: %s\n", what, strerrordesc_np(errno));
    fflush(stdout);
    reboot(RB_POWER_OFF);
    _exit(1);
}

/* /modules holds them as 00, 01, … in the order in which they need each other. */
static void
load_modules(void)
{
    for (int i = 0; i < MODULES_MAX; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/modules/%02d", i);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
            give_up("load a module of its disk");
        close(fd);
    }
}

/* The kernel may find the disk a moment after its module was loaded. */
static void
mount_disk(void)
{
    struct timespec pause = {0, DISK_PAUSE_NS};
    for (int i = 0; i < DISK_TRIES && access(disk, F_OK) < 0; i++)
        nanosleep(&pause, NULL);
    if (mount(disk, top, "ext4", MS_NODEV, NULL) < 0)
        give_up("mount its disk");
}

int
main(void)
{
    char path[] = "PATH=/usr/bin:/bin", language[] = "LANG=C.UTF-8";
    char *const environment[] = {path, language, NULL};
    if (mount("dev", "/dev", "devtmpfs", MS_NOSUID, NULL) < 0)
        give_up("mount /dev");
    load_modules();
    mount_disk();
    if (mount("/dev", "/disk/dev", NULL, MS_MOVE, NULL) < 0 || chdir(top) < 0 ||
        mount(top, "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
        give_up("enter its file system");
    execle("/usr/bin/python3", "python3", "-B", "/opt/machine/inside.py", NULL,
           environment);
    give_up("start python3");
}
