#!/usr/bin/python3
"""A supervisor that `adyton mcp` carries ends with it, whoever is killed and whatever goes on, and
nothing is left, no process, mount, control group or file: `carried.py BUILD [NAME…]`. As root and as an
ordinary user (unprivileged: as oneself). Prints TAP. (For a command on a terminal:
tests/sessions/carried.py.)"""

import argparse
import contextlib
import json
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
FLOOD = "while True:\n    print('x' * 10000)\n"


class Server:
    def __init__(self, program, policy, identity):
        self.identity = identity
        self.child = subprocess.Popen(
            [program, "mcp", "--private", "--policy", policy], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd=identity.home,
            env=identity.environment(), preexec_fn=identity.prepare(), start_new_session=True)
        if identity.groups:
            identity.groups.note(self.child.pid)

    def send(self, **members):
        self.child.stdin.write(json.dumps(dict({"jsonrpc": "2.0"}, **members)).encode() + b"\n")
        self.child.stdin.flush()

    def start(self, id_, code, **more):
        self.send(id=id_, method="tools/call",
                  params=dict({"name": "execute_python", "arguments": {"code": code}}, **more))

    def receive(self):
        line = self.child.stdout.readline()
        if not line.endswith(b"\n"):
            raise AssertionError("no answer, but %r" % line)
        return json.loads(line)

    def value(self, code, wanted):
        self.start("value", code)
        seen = self.receive().get("result", {}).get("structuredContent", {})
        if seen.get("result") != wanted:
            raise AssertionError("%r, not %r" % (seen, wanted))

    def run_busy(self):
        """A call that goes on, with children and a file; it has said so."""
        self.start("busy", BUSY, _meta={"progressToken": "p"})
        told = self.receive()
        if "up" not in json.dumps(told.get("params", {}).get("message", "")):
            raise AssertionError("it is not up: %r" % told)

    def supervisor(self):
        found = [pid for pid, (parent, _, state, name) in leftovers.processes().items()
                 if parent == self.child.pid and name == "adyton-private" and state not in "ZX"]
        if len(found) != 1:
            raise AssertionError("private supervisors: %r" % found)
        return found[0]

    def finish(self, wanted):
        try:
            self.child.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.communicate()
            return ["it does not end"]
        if self.child.returncode != wanted:
            return ["it ended with %d" % self.child.returncode]
        return []


def what_is_to_go_is_there_before(server):
    """The control: while it runs, the look that finds nothing afterwards finds something."""
    server.run_busy()
    problems = []
    if len(leftovers.descendants()) < 6:
        problems.append("processes: %r" % leftovers.descendants())
    if server.identity.groups and not list(server.identity.groups.strangers()):
        problems.append("no control group is seen")
    return problems + server.finish(0)


def input_ends_before_anything_is_asked(server):
    return server.finish(0)


def input_ends_while_a_session_opens(server):
    server.start(1, "1")
    return server.finish(0)


def input_ends_in_calls(server):
    server.run_busy()
    for i in range(4):
        server.start(i, FLOOD)
    return server.finish(0)


def input_ends_after_calls(server):
    for i in range(3):
        server.value("%d + 1" % i, str(i + 1))
    return server.finish(0)


def client_stops_reading_and_goes(server):
    for i in range(4):
        server.start(i, FLOOD, _meta={"progressToken": i})
    server.receive()
    server.child.stdout.close()
    server.child.stdin.close()
    try:
        server.child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.child.kill()
        server.child.wait()
        return ["it does not end"]
    return []


def server_is_killed(server):
    server.run_busy()
    server.child.kill()
    return server.finish(-signal.SIGKILL)


def server_is_killed_at_once(server):
    server.start(1, "1")
    time.sleep(0.05)    # wherever its supervisor is by then
    server.child.kill()
    return server.finish(-signal.SIGKILL)


def server_is_terminated(server):
    server.run_busy()
    server.child.terminate()
    return server.finish(-signal.SIGTERM)


def supervisor_is_killed_and_replaced(server):
    server.run_busy()
    os.kill(server.supervisor(), signal.SIGKILL)
    answer = server.receive()
    text = json.dumps(answer)
    if answer.get("id") != "busy" or "ended unexpectedly" not in text:
        raise AssertionError("it is not told: %s" % text[:500])
    server.value("6 * 7", "42")
    return server.finish(0)


def both_are_killed(server):
    server.run_busy()
    pids = [server.supervisor(), server.child.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return server.finish(-signal.SIGKILL)


def calls_are_cancelled_at_every_point(server):
    """Before it is there, while it opens, while it runs, after its answer."""
    def cancel(id_):
        server.send(method="notifications/cancelled", params={"requestId": id_})
    cancel("early")
    server.start("early", "'early'")
    if "early" not in json.dumps(server.receive().get("result")):
        raise AssertionError("a cancellation of what was not there yet hits it")
    server.start("opens", "1")
    cancel("opens")
    server.run_busy()
    cancel("busy")
    server.value("6 * 7", "42")
    cancel("value")
    server.value("6 * 8", "48")
    return server.finish(0)


WAYS = [what_is_to_go_is_there_before, input_ends_before_anything_is_asked,
        input_ends_while_a_session_opens, input_ends_in_calls, input_ends_after_calls,
        client_stops_reading_and_goes, server_is_killed, server_is_killed_at_once,
        server_is_terminated, supervisor_is_killed_and_replaced, both_are_killed,
        calls_are_cancelled_at_every_point]


def write(base, name, text):
    path = os.path.join(base, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o644)
    return path


def run_way(way, program, policy, identity, watch):
    problems, server = [], Server(program, policy, identity)
    try:
        problems += way(server)
    except AssertionError as error:
        problems.append(str(error))
    finally:
        if server.child.poll() is None:
            server.child.kill()
            server.child.wait()
    return problems + watch.leftovers(PATIENCE_S)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="the program, or the folder that holds it")
    parser.add_argument("only", nargs="*", help="names of ways")
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
        refused = refusal(program, identities[0], policy, write(base, "pass.py", "pass\n"))
        if refused:
            tap.point("carried supervisors of adyton mcp", skip=refused)
            return tap.finish()
        # What a user keeps (the ledger, caches) is made before the first look.
        for identity in identities:
            server = Server(program, policy, identity)
            server.value("1", "1")
            server.finish(0)
        watch = leftovers.Watch(identities)
        for identity in identities:
            for way in (w for w in WAYS if not args.only or w.__name__ in args.only):
                tap.point("%s, as %s" % (way.__name__.replace("_", " "), identity.label),
                          run_way(way, program, policy, identity, watch))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
