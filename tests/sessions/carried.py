#!/usr/bin/python3
"""A supervisor that a command carries ends with it, whoever is killed, and nothing is left:
`carried.py BUILD`. As root and as an ordinary user (unprivileged: as oneself). Prints TAP."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))

import host          # noqa: E402
import leftovers     # noqa: E402
from cell import refusal  # noqa: E402
from tap import Tap  # noqa: E402

PATIENCE_S = 30
BUSY = ("import os, time\n"
        "for _ in range(3):\n    os.fork() or time.sleep(1000)\n\n"
        "open('/tmp/file', 'w').write('x' * 100000); print('up', flush=True); time.sleep(1000)\n")


class Shell:
    def __init__(self, program, policy, identity):
        self.child = subprocess.Popen(
            [program, "shell", "--policy", policy], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=identity.home, env=identity.environment(),
            preexec_fn=identity.prepare(), start_new_session=True)
        if identity.groups:
            identity.groups.note(self.child.pid)

    def say(self, text):
        self.child.stdin.write(text.encode())
        self.child.stdin.flush()

    def wait_until_up(self):
        self.say(BUSY)
        line = self.child.stdout.readline()
        if line != b"up\n":
            self.child.kill()
            raise AssertionError("it is not up: %r, %r" % (line, self.child.stderr.read()))

    def supervisor(self):
        found = [pid for pid, (parent, _, state, name) in leftovers.processes().items()
                 if parent == self.child.pid and name == "adyton-private" and state not in "ZX"]
        if len(found) != 1:
            raise AssertionError("private supervisors: %r" % found)
        return found[0]

    def finish(self, wanted, stderr=b""):
        try:
            _, err = self.child.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.communicate()
            return ["it does not end"]
        if self.child.returncode != wanted or stderr not in err:
            return ["it ended with %d and said %r" % (self.child.returncode, err[-500:])]
        return []


def ends_by_itself(shell):
    shell.say("import os\nos.fork() or __import__('time').sleep(1000)\nprint('up', flush=True)\n")
    shell.child.stdout.readline()
    return shell.finish(0)


def door_is_killed(shell):
    shell.wait_until_up()
    shell.child.kill()
    return shell.finish(-signal.SIGKILL)


def door_is_killed_at_once(shell):
    time.sleep(0.05)    # wherever its supervisor is by then
    shell.child.kill()
    return shell.finish(-signal.SIGKILL)


def supervisor_is_killed(shell):
    shell.wait_until_up()
    os.kill(shell.supervisor(), signal.SIGKILL)
    return shell.finish(125, b"the supervisor is gone")


def both_are_killed(shell):
    shell.wait_until_up()
    pids = [shell.supervisor(), shell.child.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return shell.finish(-signal.SIGKILL)


def door_is_terminated(shell):
    shell.wait_until_up()
    shell.child.terminate()
    return shell.finish(-signal.SIGTERM)


WAYS = [ends_by_itself, door_is_killed, door_is_killed_at_once, supervisor_is_killed,
        both_are_killed, door_is_terminated]


def write(base, name, text):
    path = os.path.join(base, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o644)
    return path


def run_all(tap, program, policy, identities, watch):
    for identity in identities:
        for way in WAYS:
            problems = []
            try:
                problems += way(Shell(program, policy, identity))
            except AssertionError as error:
                problems.append(str(error))
            problems += watch.leftovers(PATIENCE_S)
            tap.point("%s, as %s" % (way.__name__.replace("_", " "), identity.label), problems)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="the program, or the folder that holds it")
    args = parser.parse_args()
    tap = Tap()
    host.become_subreaper()
    os.umask(0o022)
    with host.scratch() as base, contextlib.ExitStack() as stack:
        program = host.install(args.build, base)
        policy = write(base, "fork.yaml", "extends: standard\nvalidation: off\nprocesses: fork\n")
        identities = [host.as_user(base)]
        if os.geteuid() == 0:
            identities += [host.as_root(base)]
        for identity in identities:
            if identity.groups:
                stack.callback(identity.groups.remove)
        # What a user keeps (the ledger, caches, history) is made before the first look.
        for identity in identities:
            Shell(program, policy, identity).finish(0)
        watch = leftovers.Watch(identities)
        refused = refusal(program, identities[0], policy, write(base, "pass.py", "pass\n"))
        if refused:
            tap.point("carried supervisors", skip=refused)
            return tap.finish()
        run_all(tap, program, policy, identities, watch)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
