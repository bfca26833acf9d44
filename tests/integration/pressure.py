#!/usr/bin/env python3
"""What the supervisor gives back when memory is short.  Usage: pressure.py PATH-TO-ADYTON

Prints TAP.  It is short in a control group made for this: the host notices nothing.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_parts import Skip, Suite, check, host, same, wait_for

MIB = 1 << 20
LIMIT = 1024 * MIB      # low from 128 MiB on, high from 64
LOW_LEAVES, HIGH_LEAVES = 96 * MIB, 36 * MIB
BALLAST = """
import sys
held = []
for line in sys.stdin:
    held.append(b"\\1" * int(line))
    print("held", flush=True)
"""

suite = Suite()
test = suite.test


class Group:
    """A limited group; the supervisor's cells come beneath it."""

    def __init__(self):
        self.groups = host.Groups("adyton-pressure")
        self.folder = next((f for f in self.groups.folders
                            if os.path.exists(f + "/memory.limit_in_bytes")
                            or os.path.exists(f + "/memory.max")), None)
        if not self.folder:
            self.groups.remove()
            raise Skip("no control group for memory can be made")
        name = "memory.max" if os.path.exists(self.folder + "/memory.max") \
            else "memory.limit_in_bytes"
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(str(LIMIT))

    def left(self):
        """What it has left, pages of files not counted."""
        numbers, old = {}, not os.path.exists(self.folder + "/memory.max")
        with open(self.folder + "/memory.stat") as file:
            numbers = {name: int(n) for name, n in (line.split() for line in file)}
        with open(self.folder + ("/memory.usage_in_bytes" if old else "/memory.current")) as file:
            usage = int(file.read())
        files = [("total_" if old else "") + name for name in ("inactive_file", "active_file")]
        return LIMIT - usage + sum(numbers[name] for name in files)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.groups.remove()


class Ballast:
    """A program in the same group that holds memory."""

    def __init__(self, group):
        self.group = group
        self.process = subprocess.Popen([sys.executable, "-c", BALLAST], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=group.groups.join)
        self.hold(LIMIT // 2)   # from here on no room is tighter than the group

    def hold(self, size):
        self.process.stdin.write("%d\n" % size)
        self.process.stdin.flush()
        same(self.process.stdout.readline(), "held\n", "the ballast's answer")

    def leave(self, left):
        """Holds so much that there is `left` for all others."""
        self.hold(max(self.group.left() - left, 0))

    def drop(self):
        self.process.kill()
        self.process.wait()


def new_session(client, name, **fields):
    client.send({"type": "session_new", "id": name, **fields})
    return client.until("session", name)[0]["session"]["session_id"]


def shown(client, session):
    client.send({"type": "session_show", "id": "show", "session": session})
    while True:
        message = client.receive()
        if message.get("id") == "show":
            return message


def kinds(place):
    return {kind["policy"]: kind for kind in place.status()["pool"]}


def second(place):
    return place.file("second.yaml", "name: second\nextends: standard\ndisk: 8M\n")


def keeps(place):
    return place.file("keeps.yaml", "name: keeps\nextends: standard\nsession_pressure: keep\n")


@test(None)
def what_is_idle_is_given_back_and_comes_again(place):
    with Group() as group:
        ballast = Ballast(group)
        try:
            story(place, group, ballast)
        finally:
            ballast.drop()
            place.process and place.process.kill()


def story(place, group, ballast):
    place.start("--preload", "none", "--policy", second(place), "--policy", keeps(place),
                preexec_fn=group.groups.join)
    all_idle = lambda: all(k["idle"] >= 2 for k in kinds(place).values()) and len(kinds(place)) == 2
    wait_for(all_idle, "both kinds have idle cells")
    client = place.client()
    oldest, newer, kept = (new_session(client, "1"), new_session(client, "2"),
                           new_session(client, "3", policy="keeps"))
    wait_for(all_idle, "their cells are replaced")
    same(place.status()["pressure"]["level"], "none", "the level")
    sessions = place.status()["sessions"]
    same((sessions["open"], sessions["idle"]), (3, 3), "the sessions")
    check(sessions["idle_bytes"] > 0, "what they hold", sessions)

    ballast.leave(LOW_LEAVES)
    wait_for(lambda: place.status()["pressure"]["level"] == "low", "memory is short")
    wait_for(lambda: all(k["idle"] <= 1 for k in kinds(place).values()), "idle cells go")
    status = place.status()
    check(status["pressure"]["given_back"]["cells"] >= 2, "they are counted", status["pressure"])
    check("idle cells given back" in place.notes(), "and told", place.notes())
    same(status["pressure"]["where"], group.folder, "where it is short")
    same((status["sessions"]["open"], status["cells"]["zygotes"]), (3, 2), "all else stays")

    ballast.leave(HIGH_LEAVES)
    wait_for(lambda: place.status()["pressure"]["level"] == "high", "memory is very short")
    wait_for(lambda: place.status()["sessions"]["open"] == 1, "sessions go")
    wait_for(lambda: place.status()["cells"]["zygotes"] == 1, "an unused zygote goes")
    check(kinds(place)["second"]["given_back"], "it was that of the unused kind", kinds(place))
    same([k["idle"] for k in kinds(place).values()], [0, 0], "the idle cells")
    for session in (oldest, newer):
        message = shown(client, session)
        check("the host ran short of memory" in message.get("message", ""), "why", message)
    same(shown(client, kept)["session"]["state"], "idle", "one whose policy says keep")
    done = place.call("runs", "--session", oldest, "--format", "json")
    check(b"the host ran short of memory" in done.stdout, "it is recorded", done)
    done = place.run("-c", "print('still')")
    same(done.stdout, b"still\n", "a run, in the midst of it: %r" % done.stderr)

    ballast.drop()
    wait_for(lambda: place.status()["pressure"]["level"] == "none", "memory is there again")
    wait_for(all_idle, "both kinds have idle cells again")
    same(place.status()["pressure"]["given_back"]["sessions"], 2, "the sessions that went")
    check("memory is there again" in place.notes(), "it is told", place.notes())


@test("--preload", "none", "--memory-budget", "300M")
def idle_sessions_have_a_part_of_the_budget(place):
    client = place.client()
    first, second_one = new_session(client, "1"), new_session(client, "2")
    for name, session in (("a", first), ("b", second_one)):
        client.run(name, "x = bytearray(100 << 20)", session=session)
        same(client.outcome(name)["status"], "ok", "a run that keeps much")
    wait_for(lambda: place.status()["sessions"]["open"] == 1, "one has to go")
    check("memory budget" in shown(client, first)["message"], "the older one, and why",
          shown(client, first))
    client.run("c", "print(len(x))", session=second_one)
    same(client.outcome("c")["stdout"], "%d\n" % (100 << 20), "the other")


if __name__ == "__main__":
    sys.exit(suite.main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
