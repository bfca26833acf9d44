"""A thousand runs in a row, a third of them ended by limits: the host must be as it was.

    leftovers.py BUILD        ADYTON_RUNS=1000 in the environment

Two runs at a time, cycles as root and as an ordinary user in turn (unprivileged: as oneself);
among them daemons, orphans and supervisors that are killed. After every pair processes, mounts,
control groups, files and descriptors of the host are compared with the first look. Prints TAP.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))

import host          # noqa: E402
import leftovers     # noqa: E402
from cell import Result, refusal  # noqa: E402
from tap import Tap  # noqa: E402

AT_ONCE = 2
PATIENCE_S = 3.0      # for what a killed supervisor leaves to the kernel
HANG_S = 30
REPORTED = 5          # problems shown of one kind

FORKS = """
import os, time
while True:
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
"""
DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for n in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(n, signal.SIG_IGN)
    if os.fork() == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        time.sleep(60)
    os._exit(0)
os.wait()
print("left")
"""
ORPHAN = """
import os, time
if os.fork() == 0:
    time.sleep(60)
    os._exit(0)
print("left")
"""
MEMORY = """
kept = []
while True:
    kept.append(b"x" * (1 << 20))
"""
FILES = """
import os
os.makedirs("a/b/c")
for n in range(50):
    open("a/b/c/%d" % n, "w").write("x" * 1000)
os.symlink("/etc", "link")
os.mkfifo("fifo")
"""


class Kind:
    """One kind of run: what it executes, what must come of it, and whether we kill it."""

    def __init__(self, name, code, status, options=(), kill=False):
        self.name, self.code, self.options, self.kill = name, code, list(options), kill
        self.status = {status} if isinstance(status, str) else set(status)


# Twelve in a cycle, five of them ended by limits.
CYCLE = [
    Kind("ok", "print(sum(range(1000)))", "ok"),
    Kind("exception", "1 / 0", "exception"),
    Kind("timeout", "while True: pass", "timeout", ["--timeout", "200ms"]),
    Kind("exit", "import sys; sys.exit(7)", "exit"),
    Kind("daemon", DAEMON, "ok"),
    Kind("memory", MEMORY, "memory", ["--memory", "32M"]),
    Kind("files", FILES, "ok"),
    Kind("stopped", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout",
         ["--timeout", "200ms"]),
    Kind("orphan", ORPHAN, "ok"),
    Kind("pids", FORKS, "pids", ["--pids", "16"]),
    Kind("flood", "while True: print('x' * 1000)", "output", ["--output", "64K"]),
    Kind("killed", "print('begun', flush=True)\nwhile True: pass", (), kill=True),
]


class Started:
    """One run on its way."""

    def __init__(self, program, policy, kind, identity):
        self.kind = kind
        # A run that is to be killed streams, so that we see that its code runs.
        form = [] if kind.kill else ["--json"]
        argv = [program, "run", *form, "--policy", policy, *kind.options, "-c", kind.code]
        self.child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=identity.home, env=identity.environment(), preexec_fn=identity.prepare(),
            start_new_session=True)
        if identity.groups:
            identity.groups.note(self.child.pid)

    def finish(self):
        """What is wrong with this run, as sentences."""
        if self.kind.kill:
            return self._kill()
        try:
            out, err = self.child.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.communicate()
            return ["hung for %d s" % HANG_S]
        result = Result([], self.child.returncode, out, err, 0, False)
        if result.status in self.kind.status:
            return []
        return ["wanted %s, %s" % (sorted(self.kind.status), result.describe())]

    def _kill(self):
        begun = self.child.stdout.readline()
        os.kill(self.child.pid, signal.SIGKILL)
        _, err = self.child.communicate()
        if begun != b"begun\n":
            return ["was not running when it was killed: %r, %r" % (begun, err[-500:])]
        return []


def run_pair(program, policy, kinds, identity, watch, problems):
    started = [Started(program, policy, kind, identity) for kind in kinds]
    for one in started:
        problems[one.kind.name] += one.finish()
    killed = any(kind.kill for kind in kinds)
    left = watch.leftovers(PATIENCE_S if killed else 0.0)
    problems["left"] += ["after %s as %s: %s" % ([k.name for k in kinds], identity.label, item)
                         for item in left]


def run_all(program, policy, identities, watch, runs):
    problems = {kind.name: [] for kind in CYCLE}
    problems["left"], counts, done = [], dict.fromkeys(problems, 0), 0
    while done < runs:
        identity = identities[done // len(CYCLE) % len(identities)]
        at = done % len(CYCLE)
        kinds = CYCLE[at:at + min(AT_ONCE, runs - done)]
        run_pair(program, policy, kinds, identity, watch, problems)
        for kind in kinds:
            counts[kind.name] += 1
        done += len(kinds)
    return problems, counts


def report(tap, problems, counts):
    for name, count in counts.items():
        if name == "left":
            continue
        found = problems[name]
        tap.point("%s: %d runs as they must be" % (name, count),
                  ["%d of %d were not" % (len(found), count)] + found[:REPORTED]
                  if found else [])
    found = problems["left"]
    tap.point("nothing is left of %d runs" % sum(counts.values()),
              ["%d leftovers" % len(found)] + found[:4 * REPORTED] if found else [])


def write_pass(base):
    path = os.path.join(base, "pass.py")
    with open(path, "w") as file:
        file.write("pass\n")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="the program, or the folder that holds it")
    args = parser.parse_args()
    runs = int(os.environ.get("ADYTON_RUNS", "1000"))
    tap = Tap()
    host.become_subreaper()
    os.umask(0o022)
    with host.scratch() as base, contextlib.ExitStack() as stack:
        program = host.install(args.build, base)
        policy = os.path.join(base, "plain.yaml")
        with open(policy, "w") as file:
            file.write("extends: standard\nvalidation: off\n")
        os.chmod(policy, 0o644)
        identities = [host.as_user(base)]
        if os.geteuid() == 0:
            own = host.Identity("root in our own group", 0, base, host.OwnGroups())
            identities += [host.as_root(base), own]
        for identity in identities:
            if identity.groups:
                stack.callback(identity.groups.remove)
        watch = leftovers.Watch(identities)
        refused = refusal(program, identities[0], policy, write_pass(base))
        if refused:
            tap.point("a thousand runs", skip=refused)
            return tap.finish()
        report(tap, *run_all(program, policy, identities, watch, runs))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
