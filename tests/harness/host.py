"""What the suites need of the host: users, control groups, a canary, a place to install to.

It makes nothing that it does not remove, and touches no group, process or file of others.
Knows nothing of cases, policies or outcomes.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import secrets
import shutil
import signal
import tempfile
import time

TEST_UID = 64999      # an ordinary user without an account: adyton must need none
CONTROL_UID = 64998   # who runs the positive controls
CANARY = "/var/lib/sbx-canary"
LEAF = "/supervisor"   # a name that adyton knows: it has stepped down already
V1_CONTROLLERS = ("memory", "pids", "cpuacct", "cpu")
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper():
    """Orphans of whatever we start become our children: ancestry then proves what is ours."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


# Control groups -----------------------------------------------------------------------------

def _own_paths():
    """Controller name ("" for v2) to this process's path in that hierarchy."""
    paths = {}
    with open("/proc/self/cgroup") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                paths[controller] = path
    return paths


def _hierarchies():
    """(mount point, this process's folder in it, is v2) of each hierarchy that adyton uses."""
    own, seen, found = _own_paths(), set(), []
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            left, _, right = line.rstrip("\n").partition(" - ")
            root, point = left.split()[3:5]
            kind, _, options = right.split()[:3]
            if kind == "cgroup2":
                names = [""]
            elif kind == "cgroup":
                names = [c for c in options.split(",") if c in V1_CONTROLLERS]
            else:
                continue
            if not names or names[0] not in own or own[names[0]] in ("/..", None):
                continue
            inside = os.path.relpath(own[names[0]], root)
            folder = os.path.normpath(os.path.join(point, inside))
            if (kind, folder) not in seen and os.path.isdir(folder):
                seen.add((kind, folder))
                found.append((point, folder, kind == "cgroup2"))
    return found


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _read_words(path):
    with open(path) as file:
        return file.read().split()


def _offers(folder):
    """True when v2 groups made beneath `folder` have the controllers that the host has on v2."""
    wanted = {"memory", "pids", "cpu"} & set(_read_words(folder + "/cgroup.controllers"))
    missing = wanted - set(_read_words(folder + "/cgroup.subtree_control"))
    if missing:
        try:
            _write(folder + "/cgroup.subtree_control", " ".join("+" + c for c in missing))
        except OSError:
            return False
    return True


class Groups:
    """A private group in every hierarchy, with a LEAF in which adyton is started.

    A group of v2 that holds processes may not hand controllers to groups below it, hence the
    leaf: there adyton makes its cells' groups beside it, in v1 beneath it. Whatever else is
    found in the private group is a leftover.
    """

    def __init__(self, name, uid=0):
        self.folders = []
        for point, own, unified in _hierarchies():
            bases = [own] + ([point] if unified and own != point else [])
            base = next((b for b in bases if not unified or _offers(b)), None)
            if base is None:
                continue
            folder = os.path.join(base, "%s-%d" % (name, os.getpid()))
            for path in (folder, folder + LEAF):
                os.mkdir(path, 0o755)
                self._hand_over(path, uid)
            self.folders.append(folder)

    @staticmethod
    def _hand_over(path, uid):
        os.chown(path, uid, uid)
        for name in ("cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control"):
            with contextlib.suppress(FileNotFoundError):
                os.chown(os.path.join(path, name), uid, uid)

    def join(self):
        """Moves the calling process into every leaf; for a child, before it drops privilege."""
        for folder in self.folders:
            _write(folder + LEAF + "/cgroup.procs", str(os.getpid()))

    def note(self, pid):
        """A supervisor was started; in a private group all is ours anyway."""

    def strangers(self):
        """Groups other than the leaves: whatever adyton made there and did not remove."""
        found = []
        for folder in self.folders:
            for path, _, _ in os.walk(folder):
                if path not in (folder, folder + LEAF):
                    found.append(path)
        return found

    def remove(self):
        for folder in self.folders:
            for path, _, _ in os.walk(folder, topdown=False):
                _kill_members(path)
                for _ in range(50):
                    try:
                        os.rmdir(path)
                        break
                    except OSError as exc:
                        if exc.errno != errno.EBUSY:
                            break
                        time.sleep(0.02)
        self.folders = []


class OwnGroups:
    """Our own groups as they are, which other programs may share: nothing is moved or made.
    A cell's group is named after its supervisor, so those of our own runs can be told."""

    def __init__(self):
        self.folders = [folder for _, folder, _ in _hierarchies()]
        self.pids = set()

    def join(self):
        pass

    def note(self, pid):
        self.pids.add(str(pid))

    def strangers(self):
        # At the top of v2 the folder `adyton` is kept; the groups in it are not.
        places = self.folders + [folder + "/adyton" for folder in self.folders]
        return [os.path.join(place, name) for place in places if os.path.isdir(place)
                for name in os.listdir(place)
                if name.startswith("adyton-") and name.split("-")[1] in self.pids]

    def remove(self):
        pass


def _kill_members(path):
    """Ends what is left in a group of ours: only processes that we started can be in it."""
    with contextlib.suppress(OSError):
        for pid in _read_words(path + "/cgroup.procs"):
            if pid != "0" and int(pid) != os.getpid():
                os.kill(int(pid), signal.SIGKILL)


# Who runs a program -------------------------------------------------------------------------

class Identity:
    """Who starts programs: uid, a private HOME and TMPDIR, and control groups of their own."""

    def __init__(self, label, uid, base, groups=None):
        self.label, self.uid, self.groups = label, uid, groups
        self.home = os.path.join(base, "home-" + label)
        self.tmp = os.path.join(self.home, "tmp")
        for path in (self.home, self.tmp):
            os.makedirs(path, 0o700, exist_ok=True)
            if os.geteuid() == 0:
                os.chown(path, uid, uid)

    def environment(self, extra=None):
        env = {"HOME": self.home, "TMPDIR": self.tmp, "PATH": "/usr/local/bin:/usr/bin:/bin",
               "LANG": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE"):
            if name in os.environ:
                env[name] = os.environ[name]
        env.update(extra or {})
        return env

    def prepare(self, rlimits=()):
        """The function that a child calls before exec: joins the groups, drops privilege."""
        def before_exec():
            if self.groups:
                self.groups.join()
            for which, value in rlimits:
                resource.setrlimit(which, (value, value))
            if os.geteuid() == 0 and self.uid != 0:
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
        return before_exec

    def folder(self, name):
        """A fresh folder of this user's."""
        path = tempfile.mkdtemp(prefix=name + "-", dir=self.home)
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.uid)
        return path


def as_root(base):
    return Identity("root", 0, base, Groups("cases-root"))


def as_user(base):
    """An ordinary user with delegated control groups; run unprivileged, that is ourselves."""
    if os.geteuid() != 0:
        return Identity("user", os.geteuid(), base)
    return Identity("user", TEST_UID, base, Groups("cases-user", TEST_UID))


def as_control(base):
    uid = CONTROL_UID if os.geteuid() == 0 else os.geteuid()
    return Identity("control", uid, base)


# Where it is run from -----------------------------------------------------------------------

@contextlib.contextmanager
def scratch():
    """A world-readable folder: a checkout may lie where an ordinary user cannot reach it."""
    path = tempfile.mkdtemp(prefix="cases-", dir="/tmp")
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def install(program, base):
    """Copies the program and its guest extension; returns the copy's path.

    `program` is the executable, or the build folder that holds it. A build may have read-only
    or private modes: the copy is readable by everyone.
    """
    if os.path.isdir(program):
        program = os.path.join(program, "adyton")
    target = os.path.join(base, "bin")
    os.makedirs(target, exist_ok=True)
    shutil.copy2(program, target + "/adyton")
    beside = os.path.dirname(os.path.realpath(program))
    for place in ("src/guest", "guest", "../lib/adyton"):
        guest = os.path.join(beside, place, "_adyton.abi3.so")
        if os.path.exists(guest):
            os.makedirs(target + "/guest", exist_ok=True)
            shutil.copy2(guest, target + "/guest")
            break
    open_up(target)
    return target + "/adyton"


def open_up(top):
    """Makes a tree of ours readable by everyone."""
    for path, _, names in os.walk(top):
        os.chmod(path, 0o755)
        for name in names:
            full = os.path.join(path, name)
            if not os.path.islink(full):
                os.chmod(full, 0o755 if os.access(full, os.X_OK) else 0o644)


# The canary ---------------------------------------------------------------------------------

class Canary:
    """A file outside every folder that a cell may see, which everyone on the host may read,
    in a folder in which everyone may write: what stops an attack is then not the file's mode."""

    def __init__(self):
        self.token = "canary-" + secrets.token_hex(16)
        self._lock = -1

    def __enter__(self):
        # One suite at a time: the name is fixed by the cases.
        self._lock = os.open("/var/lib", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if os.path.isdir(CANARY):
            shutil.rmtree(CANARY)  # of a suite that was killed
        os.mkdir(CANARY)
        os.chmod(CANARY, 0o777)
        _write(CANARY + "/secret", self.token + "\n")
        os.chmod(CANARY + "/secret", 0o644)
        return self

    def __exit__(self, *_):
        shutil.rmtree(CANARY, ignore_errors=True)
        os.close(self._lock)

    def damage(self, mend=False):
        """What was written into or beside the canary."""
        found = [n for n in os.listdir(CANARY) if n != "secret"]
        if mend:
            for name in found:
                path = os.path.join(CANARY, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        with open(CANARY + "/secret") as file:
            if file.read() != self.token + "\n":
                found.append("secret was changed")
        return found
