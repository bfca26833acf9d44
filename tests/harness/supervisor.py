"""A supervisor (`adyton serve`) as one identity: start it, run through it, see what is its own.

What it keeps standing between runs (its keeper, factories, zygotes, idle cells) is no leftover;
`standing` tells that from what is. Knows nothing of cases or outcomes.
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import time

import leftovers

START_S = 120      # every zygote imports numpy, pandas and matplotlib; machines are busy
END_S = 60


class Supervisor:
    """`policies`: name to file; each file must say its name. Use as a context manager."""

    def __init__(self, program, identity, policies=None, options=()):
        self.program, self.identity = program, identity
        self.policies, self.options = dict(policies or {}), list(options)
        self.folder = identity.folder("serve")
        self.socket = os.path.join(self.folder, "run", "s")
        self.log = os.path.join(self.folder, "log")
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.launch()
        self.wait(lambda: self.status() is not None, "it answers", START_S)
        return self

    def launch(self):
        """Starts it and waits for nothing."""
        argv = [self.program, "serve", "--socket", self.socket, *self.options]
        for path in self.policies.values():
            argv += ["--policy", path]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.identity.home,
                env=self.identity.environment(), preexec_fn=self.identity.prepare(),
                start_new_session=True)
        if self.identity.groups:
            self.identity.groups.note(self.process.pid)

    @property
    def pid(self):
        return self.process.pid

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def notes(self):
        with contextlib.suppress(OSError), open(self.log, errors="replace") as log:
            return log.read()
        return ""

    def wait(self, condition, what, seconds=30, may_die=False):
        """Waits until `condition` gives something true, and gives that."""
        until = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if not may_die and not self.is_alive():
                raise RuntimeError("the supervisor has ended: %s" % self.notes())
            if time.monotonic() > until:
                raise RuntimeError("waited %d s until %s; it says: %s; its status: %s"
                                   % (seconds, what, self.notes(), self.status()))
            time.sleep(0.05)

    # Asking it --------------------------------------------------------------------------

    def call(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([self.program, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.identity.home, timeout=120,
                              env=self.identity.environment(),
                              preexec_fn=self.identity.prepare(), **options)

    def status(self):
        done = self.call("status", "--json", "--socket", self.socket)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def options_for(self, policy):
        """What makes `adyton run` use this supervisor under one of its policies."""
        return ["--socket", self.socket, "--policy", policy]

    def run(self, code, *options, policy="standard", arguments=()):
        """A run's outcome as a dict, with what the program itself said under "own"."""
        words = ["run", "--json", *self.options_for(policy), *options, "-c", code]
        done = self.call(*words, *(["--", *arguments] if arguments else []))
        outcome = json.loads(done.stdout) if done.stdout else {}
        outcome["own"] = (done.returncode, done.stderr.decode("utf-8", "replace"))
        return outcome

    def popen(self, code, *options, policy="standard"):
        return subprocess.Popen(
            [self.program, "run", *self.options_for(policy), *options, "-c", code],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.identity.home, env=self.identity.environment(),
            preexec_fn=self.identity.prepare())

    # Its processes ----------------------------------------------------------------------

    def tree(self):
        return Tree(self.pid)

    def settled(self):
        """Its processes when nothing runs and no cell is in the making, or None. Taken twice:
        a cell may come or go while one looks."""
        before, status, after = self.tree(), self.status(), self.tree()
        if status is None or before.pids() != after.pids():
            return None
        cells, queue = status["cells"], status["queue"]
        quiet = cells["busy"] == queue["running"] == queue["waiting"] == 0
        zygotes, pairs = after.zygotes(), after.cells()
        whole = len(zygotes) == cells["zygotes"] and len(pairs) == cells["idle"]
        return after if quiet and whole else None

    def await_idle(self, least=1, zygotes=None):
        """Waits until each zygote that is wanted is there and cells wait for jobs."""
        def ready():
            tree = self.settled()
            enough = tree and len(tree.cells()) >= least
            return tree if enough and (not zygotes or len(tree.zygotes()) >= zygotes) else None
        return self.wait(ready, "%d cells are idle" % least, START_S)

    def await_warm(self, policies=None):
        """Waits until runs under each policy (default: its own) find a warm cell."""
        for name in policies if policies is not None else self.policies:
            self.wait(lambda: self._runs_warm(name), "policy %s is warm" % name, START_S)

    def _runs_warm(self, policy):
        outcome = self.run("pass", policy=policy)
        return outcome.get("engine", {}).get("start") in ("pool", "warm")

    def standing(self):
        return Standing(self)

    # Its end ----------------------------------------------------------------------------

    def end(self):
        """Asks it to end; what it said on its way when that was no clean end."""
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return ["it did not end within %d s of SIGTERM: %s" % (END_S, self.notes())]
        return [] if code == 0 else ["it ended with %s: %s" % (code, self.notes())]

    def kill(self):
        if self.is_alive():
            self.process.kill()
            self.process.wait()


class Connection:
    """The socket itself, for many runs in a row: only the supervisor's own user may."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        self.count = 0
        self.send({"adyton": 1})
        self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, message):
        text = json.dumps(message).encode()
        self.socket.sendall(struct.pack(">I", len(text)) + text)

    def receive(self):
        head = self.file.read(4)
        if len(head) < 4:
            raise EOFError("the supervisor has closed the connection")
        return json.loads(self.file.read(struct.unpack(">I", head)[0]))

    def start(self, code, **fields):
        """Begins a run; gives its name."""
        self.count += 1
        self.send({"type": "run", "id": str(self.count), "code": code, **fields})
        return str(self.count)

    def finish(self):
        """(name, outcome) of the next run that ends, or (name, the refusal)."""
        while True:
            message = self.receive()
            if message["type"] == "finished":
                return message["id"], message["outcome"]
            if message["type"] in ("busy", "error"):
                return message.get("id"), message

    def run(self, code, **fields):
        self.start(code, **fields)
        return self.finish()[1]


class Tree:
    """The processes of one supervisor at one moment, each by its role:

        supervisor ── keeper
                   └─ factory ── zygote
                              ├─ init of a cell ── orphans of its program
                              └─ program of a cell
    """

    def __init__(self, root):
        self.root = root
        self.table = leftovers.processes()
        self.below = {}
        for pid, (parent, _, state, _) in self.table.items():
            if state not in "ZX":
                self.below.setdefault(parent, []).append(pid)

    def pids(self):
        found, more = set(), [self.root]
        while more:
            pid = more.pop()
            found.add(pid)
            more += self.below.get(pid, [])
        return found

    def children(self, pid):
        return self.below.get(pid, [])

    def factories(self):
        """Children in a pid namespace of their own that have a zygote."""
        return [pid for pid in self.children(self.root) if self._zygote_of(pid)]

    def _zygote_of(self, factory):
        return next((pid for pid in self.children(factory)
                     if any(b".zygote()" in word for word in _words(pid))
                     and _depth(pid) == _depth(factory)), None)

    def zygotes(self):
        return [self._zygote_of(pid) for pid in self.factories()]

    def cells(self):
        """(init, program) of each cell of a factory; None for what is not there."""
        found, inits, programs = {}, [], []
        for factory in self.factories():
            for pid in sorted(set(self.children(factory)) - {self._zygote_of(factory)}):
                at = 0 if _inner_pid(pid) == 1 else 1
                space = _pid_namespace(pid)
                if space is None:       # as an ordinary user we may not look
                    (inits, programs)[at].append(pid)
                else:
                    found.setdefault(space, [None, None])[at] = pid
        return [tuple(pair) for pair in found.values()] + \
            list(itertools.zip_longest(inits, programs))

    def standing(self):
        """What a supervisor keeps up: all of it but what programs have left in cells."""
        kept = {self.root, *self.factories(), *self.zygotes()}
        keepers = [pid for pid in self.children(self.root)
                   if not self.children(pid) and _depth(pid) == _depth(self.root)]
        kept |= set(sorted(keepers, key=lambda pid: self.table[pid][1])[:1])
        for pair in self.cells():
            if None not in pair:
                kept |= set(pair)
        return kept


class Standing:
    """What is no leftover while a supervisor lives, and what is wrong with that."""

    def __init__(self, supervisor):
        tree = supervisor.settled() if supervisor.is_alive() else None
        self.pids = tree.standing() if tree else set()
        self.groups = set()
        self.problems = [] if tree else ["the supervisor of %s does not come to rest"
                                         % supervisor.identity.label]
        if tree and supervisor.identity.groups:
            self.groups = {path for path in supervisor.identity.groups.strangers()
                           if _members(path) and _members(path) <= self.pids}


def _members(group):
    return {int(pid) for pid in _read(group + "/cgroup.procs").split()}


def _read(path):
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def _words(pid):
    return _read("/proc/%d/cmdline" % pid).split(b"\0")


def _inner_pids(pid):
    for line in _read("/proc/%d/status" % pid).splitlines():
        if line.startswith(b"NSpid:"):
            return [int(word) for word in line.split()[1:]]
    return []


def _depth(pid):
    return len(_inner_pids(pid))


def _inner_pid(pid):
    return (_inner_pids(pid) or [0])[-1]


def _pid_namespace(pid):
    with contextlib.suppress(OSError):
        return os.readlink("/proc/%d/ns/pid" % pid)
    return None
