"""A mixed load for a long time: `soak.py BUILD [RUNS]`. Prints TAP, and its figures as notes.

Runs of every kind of ending, several at a time, each outcome checked against what its program must
come to; meanwhile clients vanish, and zygotes and factories are killed. At rest, before and after,
the supervisor, its factories and zygotes are measured: nothing of them may have grown.
"""

import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from parts import leftovers, stage, watch, WARM              # noqa: E402
from supervisor import Connection                            # noqa: E402

RUNS = 1500         # what a change must pass
WARM_UP = 600       # runs before the first measurement: caches fill, the pool finds its size
STEADY = 600        # runs at the end during which nothing is killed
AHEAD = 6           # on their way at a time
SEED = 20261201
# What may have grown at rest, in KiB: an allocator's slack, whatever the number of runs.
KINDS_OF_CELLS = 2  # the policy of the runs, and the default one
NETWORKS_KEPT = 64
FDS_OF_A_CELL, GROUPS_OF_A_CELL = 12, 3
SLACK_KIB = {"supervisor": 5120, "factory": 256, "zygote": 1024}
FEW = 12            # wrong outcomes that are told

NUMBERS = """
try:
    import numpy
    total = int(numpy.arange(1000).sum())
except ImportError:
    total = 499500
print(total, %r)
"""
CHILDREN = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        time.sleep(60)
print(%r)
"""
ATTACK = "import ctypes\nctypes.CDLL(None).ptrace(16, 1, 0, 0)\nprint('lived on')"
FILES = """
import sys
with open('in.txt') as file:
    print(file.read(), sys.stdin.read(), sys.argv[1])
with open('left.txt', 'w') as file:
    file.write('x' * 100000)
"""
THREADS = """
import threading
out = []
threads = [threading.Thread(target=out.append, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(out), %r)
"""


def says(text):
    def judge(outcome):
        return outcome["status"] == "ok" and outcome["stdout"] == text + "\n"
    return judge


def ends(status, **facts):
    """With a status, and with these values of the outcome: limit, signal, exit_code, error."""
    def judge(outcome):
        seen = {"limit": (outcome.get("limit") or {}).get("name"),
                "signal": outcome.get("signal"), "exit_code": outcome.get("exit_code"),
                "error": (outcome.get("error") or {}).get("value")}
        return outcome["status"] == status and all(seen[k] == v for k, v in facts.items())
    return judge


# name, weight, token -> (fields of the run, judge of its outcome)
KINDS = (
    ("ok", 45, lambda t: ({"code": "print(%r)" % t}, says(t))),
    ("numpy", 10, lambda t: ({"code": NUMBERS % t}, says("499500 " + t))),
    ("threads", 4, lambda t: ({"code": THREADS % t}, says("8 " + t))),
    ("children", 4, lambda t: ({"code": CHILDREN % t}, says(t))),
    ("files", 6, lambda t: ({"code": FILES, "args": [t], "stdin": t,
                             "files": [{"name": "in.txt", "data": t}]},
                            says(" ".join([t] * 3)))),
    ("exception", 10, lambda t: ({"code": "raise ValueError(%r)" % t},
                                 ends("exception", error=t))),
    ("exit", 4, lambda t: ({"code": "import sys; sys.exit(7)"}, ends("exit", exit_code=7))),
    ("crash", 4, lambda t: ({"code": "import os; os.abort()"}, ends("crashed", signal="SIGABRT"))),
    ("attack", 3, lambda t: ({"code": ATTACK}, ends("violation"))),
    ("timeout", 3, lambda t: ({"code": "while True: pass", "limits": {"timeout": "100ms"}},
                              ends("timeout", limit="timeout"))),
    ("memory", 3, lambda t: ({"code": "x = bytearray(400 << 20)\nx[::4096] = b'1' * (100 << 10)",
                              "limits": {"memory": "64M"}}, ends("memory", limit="memory"))),
    ("flood", 3, lambda t: ({"code": "while True: print('x' * 1000)",
                             "limits": {"output": "16K"}}, ends("output", limit="output"))),
    ("output cut", 1, lambda t: ({"code": "print('y' * 100000)", "limits": {"output": "16K"}},
                                 lambda o: o["status"] == "ok" and o["truncated"]["stdout"])),
)
# What a run may end with instead when what it ran in was killed.
KILLED = ("the factory of warm cells has died", "killed from outside", "the zygote")
LIVES = "import signal\nprint('up', flush=True)\nsignal.pause()"


class Load:
    def __init__(self, served, seed, tell):
        self.tell = tell
        self.served, self.random = served, random.Random(seed)
        self.connection = Connection(served.socket)
        self.waiting, self.counts, self.starts = {}, {}, {}
        self.wrong, self.killed, self.started = [], 0, 0
        self.factories_killed = self.zygotes_killed = self.clients_gone = 0

    def start_one(self):
        kind, _, make = self.random.choices(KINDS, [kind[1] for kind in KINDS])[0]
        fields, judge = make("t%d" % self.started)
        name = self.connection.start(policy="plain", **fields)
        self.waiting[name] = (kind, judge)
        self.started += 1

    def finish_one(self):
        name, outcome = self.connection.finish()
        kind, judge = self.waiting.pop(name)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        start = (outcome.get("engine") or {}).get("start") or "none"
        self.starts[start] = self.starts.get(start, 0) + 1
        if judge(outcome):
            return
        text = outcome.get("message") or ""
        if outcome.get("status") == "failed" and any(words in text for words in KILLED):
            self.killed += 1
        else:
            told = {k: outcome.get(k) for k in ("status", "message", "limit", "signal", "error",
                                                "exit_code", "stdout", "stderr", "code")}
            self.wrong.append("%s, %s: %.400r" % (kind, start, told))

    def go(self, runs, killing=False):
        end = self.started + runs
        self.zygotes_every = max(400, runs // 100)
        self.factories_every = self.zygotes_every * 4 + 100
        while self.started < end or self.waiting:
            while self.started < end and len(self.waiting) < AHEAD:
                self.start_one()
                if killing:
                    self.disturb()
            self.finish_one()

    def disturb(self):
        if self.started % self.zygotes_every == 0:
            zygotes = [pid for pid in self.served.tree().zygotes() if pid]
            self.zygotes_killed += self.kill(zygotes)
        if self.started % self.factories_every == 0:
            self.factories_killed += self.kill(self.served.tree().factories())
        if self.started % 50 == 0:
            self.vanish()
        if self.started % 5000 == 0:
            self.tell("%d runs, %d wrong" % (self.started, len(self.wrong)))

    def kill(self, pids):
        if pids:
            os.kill(self.random.choice(pids), signal.SIGKILL)
        return bool(pids)

    def vanish(self):
        """A client that has a run, and hangs up."""
        client = Connection(self.served.socket)
        client.start(LIVES, policy="plain", stream=True)
        while self.random.random() < 0.5 and client.receive()["type"] in ("accepted",):
            continue
        client.file.close()
        client.socket.close()
        self.clients_gone += 1


# At rest --------------------------------------------------------------------------------------

def anonymous_kib(pid):
    """Memory that it alone has written: of a zygote, what its cells do not share is no growth."""
    with open("/proc/%d/status" % pid) as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


def fd_count(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def mount_count(pid):
    with open("/proc/%d/mountinfo" % pid) as file:
        return len(file.readlines())


class Rest:
    """The supervisor and what it keeps, when nothing runs."""

    def __init__(self, served):
        tree = served.await_idle()
        self.time, self.roles = time.monotonic(), {"supervisor": [served.pid],
                                                   "factory": tree.factories(),
                                                   "zygote": tree.zygotes()}
        self.cells = len(tree.cells())
        look = {"KiB": anonymous_kib, "descriptors": fd_count, "mounts": mount_count}
        self.seen = {(role, pid): {name: function(pid) for name, function in look.items()}
                     for role, pids in self.roles.items() for pid in pids}
        self.groups = len(served.identity.groups.strangers()) if served.identity.groups else 0

    def text(self):
        return "%d idle cells, %d groups; %s" % (self.cells, self.groups, "; ".join(
            "%s: %s" % (role, ", ".join("%d %s" % (v, k) for k, v in seen.items()))
            for (role, _), seen in sorted(self.seen.items())))


def grown(before, after):
    """What has grown of processes that were there both times."""
    problems = []
    for key in before.seen.keys() & after.seen.keys():
        role, (old, new) = key[0], (before.seen[key], after.seen[key])
        if new["KiB"] > old["KiB"] + SLACK_KIB[role]:
            problems.append("%s: memory was %d KiB, is %d" % (role, old["KiB"], new["KiB"]))
        if new["mounts"] > old["mounts"]:
            problems.append("%s: mounts were %d, are %d" % (role, old["mounts"], new["mounts"]))
    return problems


def check_counts(first, last):
    """As many idle cells have as many descriptors and groups. A factory keeps the network
    namespaces of cells that are gone for the next ones, and no more than it may."""
    problems = []
    for key in first.seen.keys() & last.seen.keys():
        old, new = first.seen[key]["descriptors"], last.seen[key]["descriptors"]
        most = old + max(0, last.cells - first.cells) * FDS_OF_A_CELL
        most += NETWORKS_KEPT if key[0] == "factory" else 0
        if new > most:
            problems.append("%s: descriptors were %d, are %d" % (key[0], old, new))
    most = first.groups + max(0, last.cells - first.cells) * GROUPS_OF_A_CELL
    if last.groups > most:
        problems.append("groups were %d, are %d" % (first.groups, last.groups))
    return problems


def soak(tap, served, runs):
    load = Load(served, SEED, tap.note)
    load.go(WARM_UP)
    first = Rest(served)
    started = time.monotonic()
    load.go(runs, killing=True)
    took = time.monotonic() - started
    served.await_warm()
    steady = Rest(served)
    load.go(STEADY)
    last = Rest(served)
    load.connection.socket.close()
    report(tap, load, runs, took, (first, steady, last))
    tap.point("%d runs: every outcome is right" % load.started, load.wrong[:FEW] +
              (["%d are wrong" % len(load.wrong)] if load.wrong else []))
    most = AHEAD * (load.factories_killed + load.zygotes_killed)
    tap.point("those that were killed say so, and are few",
              [] if load.killed <= most else ["%d of at most %d" % (load.killed, most)])
    tap.point("every kind was there, and nearly all ran warm",
              ["no %s" % kind[0] for kind in KINDS if kind[0] not in load.counts] +
              ([] if load.starts.get("cold", 0) < load.started / 2 else [str(load.starts)]))
    tap.point("memory and mounts have not grown", grown(first, last) + grown(steady, last))
    tap.point("retired zygotes have gone", [] if len(last.roles["zygote"]) <= KINDS_OF_CELLS else
              ["%d are there" % len(last.roles["zygote"])])
    tap.point("descriptors and groups have not grown",
              check_counts(first, last) + check_counts(steady, last))


def report(tap, load, runs, took, rests):
    tap.note("%d runs in %.0f s (%.0f a second); %s" % (
        runs, took, runs / took, ", ".join("%s %d" % it for it in sorted(load.counts.items()))))
    tap.note("started: %s; %d zygotes, %d factories killed, %d clients gone, %d runs killed" % (
        ", ".join("%s %d" % it for it in sorted(load.starts.items())),
        load.zygotes_killed, load.factories_killed, load.clients_gone, load.killed))
    for name, rest in zip(("first", "after the kills", "last"), rests):
        tap.note("%s: %s" % (name, rest.text()))


def main():
    runs = int(sys.argv.pop(2)) if len(sys.argv) > 2 else RUNS
    with stage(__doc__) as (tap, made):
        if made:
            before = watch(made)
            with made.supervisor("--max-runs", str(AHEAD + 2)) as served:
                served.await_warm()
                standing = leftovers.Watch([made.identity], [served])
                soak(tap, served, runs)
                tap.point("nothing is left of them but what stands", standing.leftovers(30.0))
                verified = served.call("runs", "verify")
                tap.point("the ledger verifies", [] if verified.returncode == 0 else
                          [verified.stderr.decode()])
                problems = served.end()
            tap.point("nor of the supervisor", problems + before.leftovers(5.0))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
