"""Proof that nothing is left of a run: processes, mounts, control groups, files, descriptors."""

import contextlib
import os
import shutil
import signal
import time

GRACE_SECONDS = 3.0   # for what other programs of the host may have made under the same names
SETTLE_SECONDS = 20.0  # for a supervisor that makes new idle cells
OURS = ("adyton", "sbx-")   # what the program names its own, and what the cases write
# What other suites place on the host, maybe meanwhile.
NOT_OURS = ("adyton-escape", "adyton-serve-", "adyton-ledger-", "adyton-check-", "adyton-cli-",
            "adyton-control-")


def processes():
    """pid to (parent, start time, state, name) of every process that can be read."""
    table = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, "rb") as file:
                text = file.read()
        except OSError:
            continue
        name = text[text.index(b"(") + 1:text.rindex(b")")]
        rest = text[text.rindex(b")") + 2:].split()
        table[int(entry)] = (int(rest[1]), int(rest[19]), rest[0].decode(),
                             name.decode("utf-8", "replace"))
    return table


def descendants():
    """Live processes that come from this one; pid to "name started at ticks"."""
    table, me, found = processes(), os.getpid(), {}
    for pid, (parent, start, state, name) in table.items():
        seen = set()
        while parent in table and parent != me and parent not in seen:
            seen.add(parent)
            parent = table[parent][0]
        if parent == me and state not in "ZX":
            found[pid] = "%s (pid %d, started at tick %d)" % (name, pid, start)
    return found


def reap_orphans():
    """Collects adopted children that are dead; call only when no child of ours is awaited."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_descendants(names=None):
    """Kills processes that come from this one: all, or those of these names."""
    for pid, name in descendants().items():
        if names is None or name in names:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    reap_orphans()


def _mounts():
    with open("/proc/self/mountinfo") as lines:
        return {line.split(" ", 3)[3].rstrip("\n") for line in lines}


def _named_files(folders):
    found = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            found |= {os.path.join(folder, n) for n in os.listdir(folder)
                      if n.startswith(OURS) and not n.startswith(NOT_OURS)}
    return found


def _descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink("/proc/self/fd/" + name)
    return {(fd, target) for fd, target in found.items() if "/proc/" not in target}


class Watch:
    """Remembers the host as it is; `leftovers` tells what has been added since. What the
    supervisors keep standing (see supervisor.py) is none."""

    def __init__(self, identities, supervisors=()):
        self.identities, self.supervisors = identities, list(supervisors)
        self.before = self._look()

    def _look(self):
        standing = [s.standing() for s in self.supervisors]
        pids = {pid for one in standing for pid in one.pids}
        groups = {path for one in standing for path in one.groups}
        folders = ["/tmp", "/var/tmp", "/dev/shm", "/run"]
        private = {os.path.join(i.tmp, n) for i in self.identities for n in os.listdir(i.tmp)}
        return {
            "process": {name for pid, name in descendants().items() if pid not in pids},
            "mount": _mounts(),
            "control group": {path for i in self.identities if i.groups
                              for path in i.groups.strangers() if path not in groups},
            "supervisor's": {problem for one in standing for problem in one.problems},
            "file": _named_files(folders),
            "private file": private,
            "descriptor": _descriptors(),
        }

    def leftovers(self, patience=0.0):
        """Sentences, one a leftover. `patience`: seconds that the kernel may take to end what
        nobody waits for; what is only ours to make is not waited for beyond that."""
        reap_orphans()
        patience = max(patience, SETTLE_SECONDS if self.supervisors else 0.0)
        shared = ("mount", "file")
        started = time.monotonic()
        while True:
            now = self._look()
            added = {what: now[what] - self.before[what] for what in now}
            if not any(added.values()):
                return []
            waited = time.monotonic() - started
            strict = any(added[what] for what in added if what not in shared)
            if waited >= (patience if strict else max(patience, GRACE_SECONDS)):
                self._mend(added)
                return sorted("left behind: %s %s" % (what, item)
                              for what, items in added.items() for item in items)
            time.sleep(0.05)
            reap_orphans()

    @staticmethod
    def _mend(added):
        """Removes what was just reported, so that the next run is judged for itself; but not
        from shared folders what may be another program's."""
        if added["process"]:
            end_descendants(added["process"])
        ours = {path for path in added["file"] if os.path.basename(path).startswith("sbx-")}
        for path in added["private file"] | ours:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        for path in sorted(added["control group"], reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(path)
