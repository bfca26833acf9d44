#!/usr/bin/python3
"""A guest that attacks on every channel it has: `hostile.py BUILD [NAME…]`. Prints TAP.

The code of a session has its socket, its streams, the claims memory, the doorbell and its files, and
threads that go on between runs. It writes garbage, gigabytes, wrong lengths and right words at the wrong
time. What may come of it is said in each row; a neighbour's session, new sessions and the supervisor
must not notice: each attack is followed by an honest run in all of them, so that a supervisor that is
merely dead does not pass.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import hostile_tools  # noqa: E402
from files import Session  # noqa: E402
from serve_parts import Suite, check, memory_of, same  # noqa: E402

suite = Suite()
KEPT, LOST = "kept", "lost"

# Name; what runs one after another in one session; what may become of the last of them.
ATTACKS = (
    # --- the socket ---
    ("descriptors over the socket", ["""
fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
for _ in range(20):
    send_fds(b"z" * 20, fds)
print("on")
""", "print('on')"], {("ok", KEPT)}),
    ("gigabytes over the socket", ["""
big = b"\\0" * (64 << 10)
try:
    for _ in range(1 << 14): say(big)
except OSError: pass
"""], {("ok", KEPT), ("crashed", LOST)}),
    ("a flood over the socket between runs", ["""
background(lambda: say(b"q" * 20))
""", "print('on')"], {None}),
    ("ends of runs that have not begun", ["""
background(lambda: [say(ended(n)) for n in range(2, 9)])
""", "print('on')", "print('on')"], {None}),
    ("verdicts of validation at the wrong time", ["""
verdict = struct.pack("=II", MAGIC, 16) + bytes(64)
finding = struct.pack("=IIIiiii400s", MAGIC, 1, 0, 1, 0, 1, 9, b"\\xff\\0\\x1b[2J" * 99)
say(verdict); say(finding); say(finding * 2)
print("on")
print("on")
""", "print('on')"], {("ok", KEPT)}),
    ("what the supervisor sends, read by the code", ["""
def read():
    try: os.read(top, 1 << 16)
    except BlockingIOError: time.sleep(0.001)
background(read)
""", "print('on')"], {None}),
    # --- the claims memory ---
    ("claims that change all the time", ["""
background(lambda: write(random.randrange(size), random.randbytes(random.randrange(1, 300))))
""", "raise ValueError('mine')", "import sys; sys.exit(7)"], {("exit", KEPT)}),
    ("claims of another kind", ["""
def lie():
    write(0, struct.pack("=IIiiIIIIII", MAGIC, random.randrange(5), random.getrandbits(31), 9,
                         0xffffffff, 1 << 31, 4, 1 << 20, 33, 0))
background(lie)
""", "print('on')"], {("ok", KEPT)}),
    ("claims that say that all is well", ["""
background(lambda: write(0, bytes(40)))
""", "raise ValueError('mine')"], {("exception", KEPT), ("exit", KEPT)}),
    # --- the doorbell ---
    ("a bell between runs", ["""
background(lambda: ring(item(part(b"text/plain", b"late"))))
""", "print('on')"], {("ok", KEPT)}),
    ("a bell with garbage, from many threads", ["""
for _ in range(4):
    background(lambda: ring(random.randbytes(random.randrange(3000)), n=random.getrandbits(32)))
""", "print('on')"], {("ok", KEPT)}),
    ("gigabytes through the bell", ["""
big = item(part(b"image/png", bytes((4 << 20) - 100)))
for _ in range(300): ring(big)
""", "display('mine')"], {("ok", KEPT)}),
    # --- the streams ---
    ("a stream that is written between runs", ["""
background(lambda: os.write(1, b"late" * 10000))
""", "print('on')"], {("ok", KEPT), ("output", LOST), ("timeout", KEPT), ("timeout", LOST)}),
    ("gigabytes on a stream", ["""
block = b"x" * (1 << 20)
for _ in range(2048): os.write(2, block)
"""], {("output", LOST)}),
    ("streams that are closed", ["os.close(1); os.close(2)", "print('on')"], {None}),
    ("streams that are something else", ["""
os.dup2(top, 1); os.dup2(top, 2)
for _ in range(20): os.write(1, b"text")
""", "pass"], {None}),
    ("streams that do not block and hold a page", ["""
import fcntl
for fd in (1, 2):
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK | os.O_ASYNC)
    try: fcntl.fcntl(fd, 1031, 4096)    # F_SETPIPE_SZ
    except OSError: pass
""", "print('on')"], {("ok", KEPT)}),
    # --- the program ---
    ("signals to whoever can be reached", ["""
import signal
for number in (signal.SIGSTOP, signal.SIGKILL):
    try: os.kill(-1, number)
    except OSError: pass
try: os.kill(1, signal.SIGKILL)
except OSError: pass
""", "print('on')"], {None}),
    ("a program that stops itself", ["""
import signal
os.kill(os.getpid(), signal.SIGSTOP)
"""], {("timeout", LOST)}),
    ("children that outlive it and hold all", ["""
for _ in range(5):
    if os.fork() == 0:
        while True:
            try: say(ended(1)); ring(b"x"); os.write(1, b"child")
            except OSError: time.sleep(0.01)
os._exit(3)
"""], {("exit", LOST), ("ok", KEPT), ("exit", KEPT)}),
)

# What its files may do to the process that works on them: the tools of the code, then this.
TREES = (
    ("what a put has made is taken away", """
def take():
    for name in os.listdir("."):
        if name.startswith(".adyton-"):
            try: os.remove(name); os.symlink("/etc/passwd", name)
            except OSError: pass
background(take)
"""),
    ("names are pipes when they are opened", """
def swap():
    for name in ("a", "b"):
        try: os.remove(name)
        except OSError: pass
        try: os.mkfifo(name)
        except OSError: pass
        try: os.remove(name); open(name, "w").write("plain")
        except OSError: pass
background(swap)
"""),
    ("folders move while they are walked", """
os.makedirs("x/" + "d/" * 40)
def move():
    for a, b in (("x", "y"), ("y/d", "z"), ("z", "y/d"), ("y", "x")):
        try: os.rename(a, b)
        except OSError: pass
background(move)
"""),
    ("modes change while it is read", """
os.mkdir("m"); open("m/f", "w").write("f")
def change():
    for mode in (0, 0o700, 0o400, 0o111):
        os.chmod("m", mode)
background(change)
"""),
    ("a file grows and shrinks", """
f = open("grows", "wb")
def grow():
    f.seek(random.randrange(1 << 20)); f.write(b"g" * 5000); f.truncate(random.randrange(1 << 20))
background(grow)
"""),
)


def lax(place):
    return place.file("lax.yaml", "name: lax\nextends: standard\nvalidation: 'off'\ntimeout: 3s\n"
                      "pids: 64\n")


def warns(place):
    return place.file("warns.yaml", "name: warns\nextends: standard\nvalidation: warn\ntimeout: 3s\n")


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def honest(place, neighbour, name):
    outcome = neighbour.run("x += 1\nprint(x)\ndisplay('mine')")
    same((outcome["status"], outcome["session"]), ("ok", KEPT), "a neighbour after " + name)
    same([one["data"] for one in outcome["results"]], [{"text/plain": "'mine'"}],
         "what it shows")
    same(outcome["stdout"], "%d\n" % outcome["execution_count"], "its state")


def attack(place, neighbour, name, runs, wanted, policy):
    session = Session(place, policy=policy)
    for number, code in enumerate(runs):
        answer = session.ask("run", session=session.id, show_last=False,
                             code=(hostile_tools.TOOLS if number == 0 else "") + code)
        check(answer["type"] in ("finished", "error"), "%s: an answer comes" % name, answer)
        if answer["type"] == "error":
            same(answer["code"], "session", "%s: it is lost" % name)
            break
    if None not in wanted:
        outcome = answer.get("outcome") or {}
        check((outcome.get("status"), outcome.get("session")) in wanted,
              "%s ends as it may: %r" % (name, wanted), answer)
    honest(place, neighbour, name)
    fresh = Session(place)
    fresh.is_alive(name)
    fresh.of("session_close")
    fresh.client.close()
    session.of("session_close")
    session.client.close()


def attack_all(place, policy, attacks):
    neighbour = Session(place)
    neighbour.run("x = 1")
    pid = place.process.pid
    before = memory_of(pid)
    for name, runs, wanted in attacks:
        attack(place, neighbour, name, runs, wanted, policy)
    check(place.status()["cells"]["busy"] == 0, "nothing runs any more", place.status())
    check(memory_of(pid) - before < 64 << 20, "the supervisor holds no more", memory_of(pid) - before)
    check(descriptors(pid) < 400, "nor more descriptors", descriptors(pid))


@suite.test("--policy", lax)
def every_channel_of_a_session(place):
    attack_all(place, "lax", ATTACKS)


@suite.test("--policy", warns)
def every_channel_while_runs_are_validated(place):
    attack_all(place, "warns", ATTACKS[:9])  # the socket, and what is claimed


@suite.test("--policy", lax)
def a_message_of_another_length_ends_nothing(place):
    session = Session(place, policy="lax")
    outcome = session.run(hostile_tools.TOOLS + "say(ended(1, 0, 5) + b'longer'); say(ended(1, 0, 6)[:19])\n"
                          "time.sleep(0.1)\nsys.exit(7)")
    same((outcome["status"], outcome["exit_code"], outcome["session"]), ("exit", 7, KEPT), "the run")
    outcome = session.run("say(ended(2, 0, 5)); time.sleep(0.1); sys.exit(7)")
    same((outcome["status"], outcome["exit_code"], outcome["session"]), ("exit", 5, KEPT),
         "one of its own length, the control")


@suite.test("--policy", lax)
def the_process_that_reads_the_files(place):
    neighbour = Session(place)
    neighbour.run("x = 1")
    for name, code in TREES:
        session = Session(place, policy="lax")
        same(session.run(hostile_tools.TOOLS + code)["session"], KEPT, name)
        for n in range(15):
            for kind, fields in (("session_files", {}), ("session_get", {}),
                                 ("session_get", {"name": "a"}), ("session_get", {"name": "grows"}),
                                 ("session_put", {"files": [{"name": "put%d" % n, "data": "p" * 9999},
                                                            {"name": "x/put", "data": "p"}]})):
                answer = session.ask(kind, session=session.id, **fields)
                check(answer["type"] in ("files", "done") or answer.get("code") in ("file", "session"),
                      "%s: %s is answered" % (name, kind), answer)
        honest(place, neighbour, name)
        session.of("session_close")
        session.client.close()


if __name__ == "__main__":
    sys.exit(suite.main(os.path.join(sys.argv[1], "adyton"), sys.argv[2:]))
