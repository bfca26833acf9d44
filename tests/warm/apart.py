"""Two cells of one zygote know nothing of each other: `apart.py BUILD`. Prints TAP.

Whatever way two programs of a machine may meet (ways.py) must work outside, between two processes,
and must not between two cells that are alive at one time and have one zygote. And what a job had
in its memory, its code, its data and its random numbers, is in no memory that a later or a
concurrent job can read, nor in that of the zygote, the factory or an idle cell.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from parts import leftovers, ran_warm, stage, watch          # noqa: E402
from supervisor import Connection                 # noqa: E402

PYTHON = "/usr/bin/python3"
WAYS = os.path.join(HERE, "ways.py")
POLICY = "name: %s\nextends: standard\nvalidation: off\ntimeout: 60s\ncpu_time: 60s\nnetwork: %s\n"
POLICIES = {"apart": "none", "apart-loopback": "loopback"}
PATIENCE_S = 60
LATER_CELLS = 6     # more than are kept idle: some were made before the job, some after it
# What leads from cell to cell all the same, if both want it to; docs/THREATS.md says so.
KNOWN = ("lock",)


def write_policies(made):
    files = {}
    for name, network in POLICIES.items():
        files[name] = os.path.join(made.base, name + ".yaml")
        with open(files[name], "w") as file:
            file.write(POLICY % (name, network))
        os.chmod(files[name], 0o644)
    return files


def source_of(path):
    with open(path) as file:
        return file.read()


def mark():
    return secrets.token_hex(12)


def host_pid(name, among):
    """The process that has given itself this name."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for pid, (_, _, _, its) in leftovers.processes().items():
            if its == name[:15] and pid in among():
                return pid
        time.sleep(0.01)
    raise RuntimeError("no process has the name %s" % name[:15])


# Ways -----------------------------------------------------------------------------------------

class Outside:
    """ways.py as a process of the host."""

    def __init__(self, made, *words):
        self.process = subprocess.Popen(
            [PYTHON, WAYS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            cwd=made.identity.tmp, env=made.identity.environment(),
            preexec_fn=made.identity.prepare())
        self.pid = self.process.pid

    def answers(self):
        return json.loads(self.process.stdout.readline())

    def finish(self):
        self.process.send_signal(signal.SIGUSR2)
        last = json.loads(self.process.stdout.readline())
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        return last


class Inside:
    """ways.py as a job in a warm cell, on a connection of its own."""

    def __init__(self, served, policy, *words):
        self.connection = Connection(served.socket)
        self.connection.start(source_of(WAYS), policy=policy, args=list(words), stream=True)
        self.text, self.served, self.mark, self.outcome = "", served, words[1], None
        self.found_pid = None

    @property
    def pid(self):
        if not self.found_pid:
            self.found_pid = host_pid(self.mark, lambda: self.served.tree().pids())
        return self.found_pid

    def answers(self):
        while "\n" not in self.text:
            message = self.connection.receive()
            if message["type"] == "stdout":
                self.text += message["data"]
            elif message["type"] in ("finished", "error", "busy"):
                raise RuntimeError("it ended too early: %r" % message)
        line, _, self.text = self.text.partition("\n")
        return json.loads(line)

    def factory(self):
        return leftovers.processes()[self.pid][0]

    def finish(self):
        os.kill(self.pid, signal.SIGUSR2)
        self.outcome = self.connection.finish()[1]
        self.connection.socket.close()
        return json.loads(self.outcome["stdout"].splitlines()[-1])


def spell(way):
    return way.replace("_", " ")


def refusal(answer):
    return answer[4:] if isinstance(answer, str) and answer.startswith("no: ") else None


def is_met(answer):
    return answer and not refusal(answer)


def check_outside(tap, made):
    """Every way leads from process to process here, or cannot be judged at all."""
    name, reached = mark(), {}
    holder = Outside(made, "hold", name)
    tickets = holder.answers()
    seeker = Outside(made, "seek", name, json.dumps(tickets))
    found = seeker.answers()
    seeker.finish()
    found["signals"] = holder.finish()["received"]
    for way, answer in found.items():
        reached[way] = bool(is_met(answer))
        refused = refusal(tickets[way]) or refusal(answer)
        tap.point("outside, by %s: another process is met" % spell(way),
                  [] if reached[way] or refused else ["it is not: %r" % answer],
                  "not on this host: " + refused if refused else None)
    remove_ipc(tickets)
    return reached


def remove_ipc(tickets):
    for way, option in (("sysv_memory", "-m"), ("sysv_semaphores", "-s"), ("sysv_queue", "-q")):
        if isinstance(tickets[way], int):
            subprocess.run(["ipcrm", option, str(tickets[way])], check=True)


def in_one_cell(served, policy):
    """What works within one cell: there being apart is what keeps it from the others."""
    job = Inside(served, policy, "both", mark())
    answers = job.answers()
    job.connection.finish()
    job.connection.socket.close()
    return answers


def check_ways(tap, served, policy, reached):
    own = in_one_cell(served, policy)
    name = mark()
    with contextlib.ExitStack() as stack:
        holder = Inside(served, policy, "hold", name)
        stack.callback(holder.connection.socket.close)
        tickets = holder.answers()
        tickets["signals"] = [tickets["signals"], holder.pid]
        seeker = Inside(served, policy, "seek", name, json.dumps(tickets))
        found = seeker.answers()
        seeker.mark = name
        seeker.found_pid = other_pid(served, name, holder.pid)
        same = holder.factory() == seeker.factory()
        seeker.finish()
        found["signals"] = holder.finish()["received"]
    problems = ran_warm(holder.outcome) + ran_warm(seeker.outcome)
    tap.point("%s: two cells of one zygote, at one time" % policy,
              problems + ([] if same else ["they are of two"]))
    for way, answer in found.items():
        inside = "within one: " + (refusal(own[way]) or "works")
        problems = ["it is: %r" % answer] if is_met(answer) else []
        skip = None if reached[way] else "nor outside: nothing is proved"
        what = "no other cell is met"
        if way in KNOWN:
            what = "another cell is met, as docs/THREATS.md says"
            problems = [] if problems else ["it is not: then it is not to be said"]
        tap.point("%s, by %s: %s (%s)" % (policy, spell(way), what, inside), problems, skip)


def other_pid(served, name, holder):
    return host_pid(name, lambda: served.tree().pids() - {holder})


def check_later(tap, served, policy):
    """Nothing waits for the cells that come after: a network namespace is used again."""
    name = mark()
    holder = Inside(served, policy, "hold", name)
    tickets = holder.answers()
    tickets["signals"] = []
    holder.finish()
    wrong = []
    for _ in range(LATER_CELLS):
        seeker = Inside(served, policy, "seek", name, json.dumps(tickets))
        answers = seeker.answers()
        seeker.finish()
        wrong += ["by %s: %r" % item for item in answers.items()
                  if is_met(item[1]) and item[0] not in KNOWN]
    tap.point("%s: what a cell held is gone with it" % policy, wrong)


# Memory ---------------------------------------------------------------------------------------

# Bytes are compared after each was made one greater: what is sought is never in the seeker's own
# memory as it is, nor does a copy of its memory make it so.
SCAN = """
import os, sys
GREATER = bytes((i + 1) % 256 for i in range(256))
def scan(pid, needles):
    found, seen, step, overlap = set(), 0, 4 << 20, 64
    memory = os.open("/proc/%s/mem" % pid, os.O_RDONLY)
    with open("/proc/%s/maps" % pid) as file:
        maps = file.read().splitlines()
    for line in maps:
        span, access = line.split()[:2]
        if access[0] != "r" or "[v" in line:
            continue
        at, end = (int(x, 16) for x in span.split("-"))
        while at < end:
            try:
                bytes_here = os.pread(memory, min(step, end - at), at)
            except OSError:
                break
            if not bytes_here:
                break
            seen += len(bytes_here)
            greater = bytes_here.translate(GREATER)
            found |= {name for name, needle in needles.items() if needle in greater}
            at += len(bytes_here) if at + len(bytes_here) >= end or len(bytes_here) <= overlap \\
                else len(bytes_here) - overlap
    os.close(memory)
    return sorted(found), seen
"""
SCAN_SELF = SCAN + """
import json
needles = {name: bytes.fromhex(text) for name, text in json.loads(sys.argv[1]).items()}
print(json.dumps(scan("self", needles)))
"""
# MARK-code is the marker of the source alone, and so on.
JOB = """
import os, random, secrets, sys, json, struct    # MARK-code
data = bytearray("MARK" + "-", "ascii") + b"data" + bytes(1000)
with open("/tmp/in.txt") as file:
    text = file.read()
given = sys.stdin.read()
os.environ["MARK_HERE"] = "MARK-" + "environment"
with open("/tmp/left.txt", "w") as file:
    file.write("MARK-" + "written")
random.random()
drawn = secrets.token_bytes(16)
state = struct.pack("4I", *random.getstate()[1][:4])
print(json.dumps([drawn.hex(), state.hex()]), flush=True)
"""
WAIT = """
import signal, ctypes
ctypes.CDLL(None).prctl(15, b"%s", 0, 0, 0)
signal.sigwait([signal.SIGUSR2])
"""


def greater(data):
    return bytes((byte + 1) % 256 for byte in data).hex()


def job_of(name, more=""):
    """The fields of a run that has the mark in all that a job consists of."""
    return {"code": JOB.replace("MARK", name) + more, "args": [name + "-argument"],
            "stdin": name + "-stdin", "files": [{"name": "in.txt", "data": name + "-file"}],
            "name": "n%s.py" % name, "policy": "apart"}


def needles_of(name, drawn):
    return {"mark": greater(name.encode()), "secrets": greater(bytes.fromhex(drawn[0])),
            "random": greater(bytes.fromhex(drawn[1]))}


def scan_inside(connection, needles):
    outcome = connection.run(SCAN_SELF, args=[json.dumps(needles)], policy="apart")
    if outcome.get("status") != "ok":
        return None, ["the scan has failed: %s %s" % (outcome.get("message"),
                                                      outcome.get("stderr"))]
    found, seen = json.loads(outcome["stdout"])
    return found, ran_warm(outcome) + ([] if seen > 10 << 20 else ["%d bytes were seen" % seen])


def check_scan_finds(tap, connection):
    """The control: a job that looks into its own memory finds all three there."""
    name = mark()
    more = SCAN + """
needles = {"mark": bytes((b + 1) %% 256 for b in b"%s"),
           "secrets": drawn.translate(GREATER), "random": state.translate(GREATER)}
print(json.dumps(scan("self", needles)))
""" % name
    outcome = connection.run(**job_of(name, more))
    found = json.loads(outcome["stdout"].splitlines()[-1])[0] if outcome["status"] == "ok" else []
    tap.point("control: a job finds in its own memory what is sought",
              [] if found == ["mark", "random", "secrets"] else [found, outcome["stderr"]])


def check_later_memory(tap, connection):
    name = mark()
    outcome = connection.run(**job_of(name))
    needles = needles_of(name, json.loads(outcome["stdout"]))
    problems = ran_warm(outcome)
    for _ in range(LATER_CELLS):
        found, wrong = scan_inside(connection, needles)
        problems += wrong + ["a later job has: %s" % found] * bool(found)
    tap.point("a job's code, data and randomness are in no later job's memory", problems)


def check_memory_at_once(tap, served, connection):
    name = mark()
    with Connection(served.socket) as other:
        other.start(**dict(job_of(name, WAIT % name[:15]), stream=True))
        message = other.receive()
        while message["type"] != "stdout":
            message = other.receive()
        needles = needles_of(name, json.loads(message["data"]))
        pid = host_pid(name, lambda: served.tree().pids())
        found, problems = scan_inside(connection, needles)
        tap.point("nor in a concurrent job's", problems + ["it has: %s" % found] * bool(found))
        check_from_outside(tap, served, pid, needles)
        os.kill(pid, signal.SIGUSR2)
        other.finish()


def check_from_outside(tap, served, busy, needles):
    """The same, seen from the host: what has run nothing holds nothing."""
    names = "nor in that of zygotes, factories and idle cells", "control: in the busy cell's it is"
    if os.geteuid() != 0:
        for name in names:
            tap.point(name, skip="only root can read their memory")
        return
    room = {}
    exec(SCAN, room)
    needles = {key: bytes.fromhex(text) for key, text in needles.items()}
    found = room["scan"](busy, needles)[0]
    tap.point(names[1], [] if found == sorted(needles) else [found])
    tree, problems, looked = served.tree(), [], 0
    for pid in tree.factories() + tree.zygotes() + [p for pair in tree.cells() for p in pair]:
        if pid and pid != busy:
            with contextlib.suppress(OSError):      # a cell that has ended meanwhile
                found, seen = room["scan"](pid, needles)
                looked += seen > 0
                problems += ["process %d has: %s" % (pid, found)] * bool(found)
    tap.point(names[0], problems + ([] if looked > 3 else ["%d were looked at" % looked]))


def main():
    with stage(__doc__) as (tap, made):
        if made:
            before = watch(made)
            reached = check_outside(tap, made)
            served = made.supervisor()
            served.policies = write_policies(made)
            with served:
                served.await_warm()
                for policy in POLICIES:
                    check_ways(tap, served, policy, reached)
                    check_later(tap, served, policy)
                with Connection(served.socket) as connection:
                    check_scan_finds(tap, connection)
                    check_later_memory(tap, connection)
                    check_memory_at_once(tap, served, connection)
                problems = served.end()
            tap.point("nothing is left", problems + before.leftovers(3.0))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
