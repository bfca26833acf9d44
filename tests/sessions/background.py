#!/usr/bin/python3
"""What a run of a session leaves behind: `background.py BUILD [NAME…]`. Prints TAP.

Threads and processes go on, or end with their run, as the policy says (session_background).
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from run import Session  # noqa: E402
from serve_parts import Suite, check, same  # noqa: E402

suite = Suite()

LEFT = ("import os, threading, time\n"
        "def tick():\n    while True:\n        time.sleep(0.01)\n"
        "threads = [threading.Thread(target=tick, daemon=True) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "def sleep():\n    while True:\n        time.sleep(60)\n"
        "ready, told = os.pipe()\n"
        "parent = os.fork()\n"
        "if parent == 0:\n"                          # an orphan, in a session of its own
        "    if os.fork() == 0:\n        os.setsid()\n        os.write(told, b'2')\n        sleep()\n"
        "    os.write(told, b'1')\n    os._exit(0)\n"
        "os.waitpid(parent, 0)\n"
        "if os.fork() == 0:\n    os.write(told, b'3')\n    sleep()\n"
        "n = b''\nwhile len(n) < 3: n += os.read(ready, 9)\n"
        "x = 5\n")
LIVING = ("def state(pid):\n"
          "    with open('/proc/%s/stat' % pid) as file:\n"
          "        return file.read().rsplit(')', 1)[1].split()[0]\n"
          "print(x, sum(thread.is_alive() for thread in threads),\n"
          "      len([p for p in os.listdir('/proc') if p.isdigit() and state(p) != 'Z']))")


def background(place, value):
    return place.file("b.yaml", "name: b\nextends: standard\nsession_background: %s\n"
                      "validation: off\nsession_grace: 20s\n" % value)


@suite.test("--policy", lambda place: background(place, "keep"))
def what_a_run_leaves_goes_on_where_the_policy_keeps_it(place):
    session = Session(place, policy="b")
    same(session.run(LEFT)["session"], "kept", "the session")
    same(session.run(LIVING)["stdout"], "5 3 4\n", "what lives beside init and the program")


@suite.test("--policy", lambda place: background(place, "end"))
def what_a_run_leaves_is_ended_where_the_policy_ends_it(place):
    session = Session(place, policy="b")
    for _ in range(2):
        outcome = session.run(LEFT)
        same((outcome["status"], outcome["session"]), ("ok", "kept"), "the run")
        same(session.run(LIVING)["stdout"], "5 0 2\n", "what lives: init and the program")


@suite.test("--policy", lambda place: background(place, "end"))
def what_does_not_end_then_loses_the_session(place):
    session = Session(place, policy="b", limits={"session_grace": "200ms"})
    outcome = session.run("import threading\nlock = threading.Lock()\nlock.acquire()\n"
                          "threading.Thread(target=lock.acquire).start()\nprint('done')")
    same((outcome["status"], outcome["stdout"], outcome["session"]), ("ok", "done\n", "lost"),
         "the run")
    check("session_background" in outcome["session_note"], "the note", outcome["session_note"])
    shown = session.of("session_show")
    check("a thread that the run left" in shown["message"], "what is said later", shown)


@suite.test("--policy", lambda place: background(place, "end"))
def who_forks_all_the_time_is_ended_or_lost(place):
    neighbour, session = Session(place), Session(place, policy="b")
    outcome = session.run("import os\n"
                          "def flee():\n    while True:\n        try:\n"
                          "            if os.fork(): os._exit(0)\n"
                          "        except OSError: pass\n"
                          "for _ in range(8):\n    if os.fork() == 0: flee()\n")
    check(outcome["session"] in ("kept", "lost"), "an answer comes", outcome)
    if outcome["session"] == "lost":
        check("session_background" in outcome["session_note"], "why", outcome)
    neighbour.is_alive("it")


if __name__ == "__main__":
    sys.exit(suite.main(os.path.join(sys.argv[1], "adyton"), sys.argv[2:]))
