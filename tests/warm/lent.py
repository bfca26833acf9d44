"""A network namespace is lent to one cell after another: `lent.py BUILD`. Prints TAP.

A program leaves what can outlive it in one: a listening socket with an abstract name, in flight in a
cycle of sockets that only the kernel's collector ends. Programs that follow look for it. The first
program finds it itself, or the test would show nothing.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from parts import ran_warm, stage, watch          # noqa: E402

ROUNDS = 40
LEAVE = """
import array, os, socket
kept = socket.socket(socket.AF_UNIX)
kept.bind("\\0left-behind")
kept.listen()
a, b = socket.socketpair()
for one in (a, b, kept):
    for end in (a, b):
        right = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one.fileno()]))
        end.sendmsg([b"x"], [right])
print(open("/proc/self/net/unix").read().count("left-behind"))
os._exit(0)
"""
LOOK = """
import socket
lines = open("/proc/self/net/unix").read().splitlines()
try:
    socket.socket(socket.AF_UNIX).connect("\\0left-behind")
    print("met it")
except ConnectionRefusedError:
    print(len(lines) - 1, "sockets")
"""


def expect(served, code, wanted):
    outcome = served.run(code, policy="plain")
    if outcome["status"] != "ok" or outcome["stdout"] != wanted:
        return ["%s: %r, not %r; %s" % (outcome["status"], outcome["stdout"], wanted,
                                        outcome.get("message"))]
    return ran_warm(outcome)


def main():
    with stage(__doc__) as (tap, made):
        if made:
            before = watch(made)
            with made.supervisor() as served:
                served.await_idle()
                left, met = [], []
                for _ in range(ROUNDS):
                    left += expect(served, LEAVE, "1\n")
                    met += expect(served, LOOK, "0 sockets\n")
                tap.point("%d programs leave a socket in flight" % ROUNDS, left[:3])
                tap.point("the next ones find none", met[:3])
                problems = served.end()
            tap.point("nothing is left", problems + before.leftovers(3.0))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
