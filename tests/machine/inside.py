"""The machine's only program: sets the system up, runs the checks, prints TAP, switches off.

Runs as process 1 of a machine made by run.py; nowhere else.
"""

import ctypes
import fcntl
import os
import resource
import socket
import struct
import sys
import traceback

POWER_OFF = 0x4321FEDC   # RB_POWER_OFF of reboot(2)
NOSUID, NODEV, NOEXEC = 2, 4, 8
MOUNTS = (
    ("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC, ""),
    ("sysfs", "/sys", "sysfs", NOSUID | NODEV | NOEXEC, ""),
    ("cgroup2", "/sys/fs/cgroup", "cgroup2", NOSUID | NODEV | NOEXEC, ""),
    ("securityfs", "/sys/kernel/security", "securityfs", NOSUID | NODEV | NOEXEC, ""),
    ("tmpfs", "/run", "tmpfs", NOSUID | NODEV, "mode=755"),
    ("tmpfs", "/dev/shm", "tmpfs", NOSUID | NODEV, "mode=1777"),
)
FILES = (1024, 524288)     # open files of a process, as systemd has it
IFF_UP, SIOCSIFFLAGS = 1, 0x8914
libc = ctypes.CDLL(None, use_errno=True)


def mount_all():
    os.makedirs("/dev/shm", exist_ok=True)
    for what, where, kind, flags, options in MOUNTS:
        if libc.mount(what.encode(), where.encode(), kind.encode(), flags,
                      options.encode()) < 0:
            raise OSError(ctypes.get_errno(), "mount " + where)


def set_up():
    mount_all()
    os.umask(0o022)
    for path in ("/tmp", "/var/tmp"):
        os.chmod(path, 0o1777)
    resource.setrlimit(resource.RLIMIT_NOFILE, FILES)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    os.mkdir("/run/lock")   # what the attack probe looks for there


def part():
    with open("/proc/cmdline") as file:
        words = dict(word.partition("=")[::2] for word in file.read().split())
    return words["part"]


def main():
    try:
        set_up()
        sys.path[:0] = ["/opt/harness", "/opt/machine"]
        import checks   # after /proc is there: it looks at the machine
        checks.PARTS[part()]()
    except BaseException:
        sys.stdout.write("Bail out! the test itself failed\n")
        traceback.print_exc()
    sys.stdout.flush()
    libc.sync()
    libc.reboot(POWER_OFF)


if __name__ == "__main__":
    main()
