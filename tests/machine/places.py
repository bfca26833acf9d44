"""Where in the machine's control groups a program is started, and as whom.

Everything here is the test's own: the machine has no other groups. Knows nothing of runs.
"""

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
import time

import host
from image import USER_ID

TOP = "/sys/fs/cgroup"
LEAF = "/supervisor"     # where adyton steps down to, or finds itself put
ROOTS_OWN = "/adyton"    # what adyton makes at the top for root, and keeps
HANDED_OVER = ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
CONTROLLERS = "+memory +pids +cpu"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path) as file:
        return file.read()


def uid_of(pid):
    return os.stat("/proc/%s" % pid).st_uid


def groups():
    """Every group of the machine, as its path beneath the top."""
    return {path[len(TOP):] or "/" for path, _, _ in os.walk(TOP)}


class Place:
    """A group that programs are started in; the kernel's view of what else is there."""

    known = {"/", ROOTS_OWN}

    def __init__(self, path):
        self.path = path

    @classmethod
    def make(cls, path, uid=0):
        """A new group; with a uid it is delegated to that user as systemd does it."""
        os.mkdir(TOP + path, 0o755)
        cls.known.add(path)
        if uid:
            for name in ("",) + HANDED_OVER:
                os.chown(os.path.join(TOP + path, name), uid, uid)
        return cls(path)

    def join(self):
        write("%s%s/cgroup.procs" % (TOP, self.path), str(os.getpid()))

    def note(self, pid):
        """A supervisor was started; here all groups are looked at anyway."""

    @classmethod
    def strangers(cls):
        """Groups that neither the test nor a promise of adyton explains."""
        leaves = {path + LEAF for path in cls.known}
        return sorted(groups() - cls.known - leaves)

    def remove(self):
        for path in (self.path + LEAF, self.path):
            # A dead process leaves its group a moment after it was awaited.
            for _ in range(50):
                try:
                    os.rmdir(TOP + path)
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)
        self.known.discard(self.path)


def sleeper(prepare):
    """A process that does nothing; it is there when this returns."""
    code = "import time\nprint(1, flush=True)\ntime.sleep(600)"
    child = subprocess.Popen([sys.executable, "-I", "-c", code], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, preexec_fn=prepare)
    child.stdout.readline()
    child.stdout.close()
    return child


def end(child):
    child.kill()
    child.wait()


@contextlib.contextmanager
def swap():
    """Swap for the machine, in a file: a group whose share of it is not 0 would grow there."""
    path, pages = "/var/tmp/swap", 16384
    header = bytearray(4096)
    header[1024:1032] = struct.pack("<II", 1, pages - 1)   # version, last page
    header[4086:] = b"SWAPSPACE2"
    with open(path, "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        file.write(header)
        for _ in range(pages - 1):
            file.write(bytes(4096))   # swap must have no holes
        file.flush()
        os.fsync(file.fileno())
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.swapon(path.encode(), 0) < 0:
        raise OSError(ctypes.get_errno(), "swapon")
    try:
        yield
    finally:
        libc.swapoff(path.encode())
        os.unlink(path)


def open_tree():
    """The top gives its controllers on, as systemd has it."""
    write(TOP + "/cgroup.subtree_control", CONTROLLERS)


@contextlib.contextmanager
def delegated(name, uid=USER_ID):
    """A folder in a user's hands: the shell is in its leaf, as a delegated service has it."""
    folder = Place.make("/" + name, uid)
    leaf = Place.make("/" + name + LEAF, uid)
    try:
        yield leaf
    finally:
        leaf.remove()
        folder.remove()


@contextlib.contextmanager
def scope(name, uid=USER_ID, neighbour=False):
    """A folder with the program directly in it, alone or beside a shell."""
    folder = Place.make("/" + name, uid)
    other = None
    try:
        if neighbour:
            other = sleeper(folder.join)
        yield folder
    finally:
        if other:
            end(other)
        folder.remove()


def identity(label, uid, place, home=None):
    """Who shares a home asks its interpreter once: that takes seconds here."""
    who = host.Identity(home or label, uid, "/home", place)
    who.label = label
    return who
