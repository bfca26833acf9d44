"""Whatever dies, runs end with a sentence and nothing is left: `deaths.py BUILD`. Prints TAP.

Killed are the supervisor at many points of its life, its keeper, zygotes, factories, the two
processes of a cell, and clients. What is killed is known by its role in the tree of processes,
and when, by what can be seen from outside; a moment is waited for, never guessed.
"""

import contextlib
import glob
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from parts import cell, leftovers, ran_warm, stage, watch          # noqa: E402
from supervisor import Connection                            # noqa: E402

PYTHON = "/usr/bin/python3"
PATIENCE_S = 30.0
WAITS = "import signal, sys\nprint('up', flush=True)\nsignal.pause()"
ANY_START = ("pool", "warm", "cold")
QUICK = ("--preload", "json")   # what is imported ahead is no matter here
RUNS_BEFORE_DEATH = (1, 7, 30)


def up(process):
    """A client whose program has begun."""
    line = process.stdout.readline()
    if line != b"up\n":
        raise RuntimeError("the program did not begin: %r %r" % (line, process.stderr.read()))
    return process


def pause():
    time.sleep(0.002)


def until(condition, what, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise RuntimeError("waited in vain until " + what)
        pause()


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def ended_with_a_sentence(process):
    """What is wrong with the end of an `adyton run` whose supervisor has died."""
    out, err = process.communicate(timeout=PATIENCE_S)
    text = err.decode("utf-8", "replace")
    good = process.returncode == 125 and "supervisor" in text and "is gone" in text
    return [] if good else ["it ended with %s, %r, %r" % (process.returncode, out, text)]


# The supervisor's ------------------------------------------------------------------------------

def launched(served):
    served.launch()
    return []


def keeper_there(served):
    served.launch()
    until(lambda: served.tree().children(served.pid), "its keeper is there")
    return []


def zygote_there(served):
    served.launch()
    until(lambda: any(served.tree().zygotes()), "a zygote imports")
    return []


def answers(served):
    served.start()
    return []


def idle(served):
    served.start().await_idle()
    return []


def running(served):
    served.start().await_warm()
    return [up(served.popen(WAITS, policy="plain")), up(served.popen(WAITS, policy="plain"))]


def waiting(served):
    served.options += ["--max-runs", "1"]
    served.start().await_warm()
    clients = [up(served.popen(WAITS, policy="plain")), served.popen("print(1)", policy="plain")]
    until(lambda: served.status()["queue"]["waiting"] == 1, "a run waits")
    return clients


def draining(served):
    clients = running(served)
    served.process.send_signal(signal.SIGTERM)
    until(lambda: "told to end" in served.notes(), "it drains")
    return clients


POINTS = {"just started": launched, "its keeper is there": keeper_there,
          "a zygote imports": zygote_there, "it answers": answers, "cells are idle": idle,
          "programs run": running, "a run waits for its turn": waiting, "it drains": draining}


def check_supervisor(tap, made, point):
    before = watch(made)
    served = made.supervisor(*QUICK)
    try:
        clients = POINTS[point](served)
    finally:
        kill(served.pid)
        served.process.wait()
    problems = [text for client in clients for text in ended_with_a_sentence(client)]
    close(clients)
    tap.point("the supervisor is killed when %s" % point, problems + before.leftovers(PATIENCE_S))


def close(clients):
    for client in clients:
        client.wait(PATIENCE_S)
        client.stdout.close()
        client.stderr.close()


def check_supervisor_among_runs(tap, made, count):
    """While cells come and go as fast as they can."""
    before = watch(made)
    problems, seen = [], 0
    with made.supervisor(*QUICK) as served:
        served.await_warm()
        with Connection(served.socket) as connection:
            try:
                for _ in range(8):
                    connection.start("print('x' * 100)", policy="plain")
                while seen < 100000:
                    outcome = connection.finish()[1]
                    problems += judge_ok(outcome)
                    seen += 1
                    if seen == count:
                        kill(served.pid)
                    connection.start("print('x' * 100)", policy="plain")
            except (EOFError, OSError):
                pass
        served.process.wait(PATIENCE_S)
    tap.point("the supervisor is killed after %d runs of many" % count,
              problems[:5] + before.leftovers(PATIENCE_S))


def judge_ok(outcome, starts=ANY_START):
    start = (outcome.get("engine") or {}).get("start")
    if outcome.get("status") == "ok" and start in starts:
        return []
    return ["%s, %s: %s" % (outcome.get("status"), start, outcome.get("message"))]


def check_keeper(tap, made):
    """Without its keeper a dead supervisor leaves its groups: the next one removes them."""
    before = watch(made)
    served = made.supervisor(*QUICK)
    with served:
        served.await_idle()
        tree = served.tree()
        keepers = tree.standing() - set(tree.factories()) - set(tree.zygotes()) - {served.pid} \
            - {pid for pair in tree.cells() for pid in pair}
        for pid in keepers:
            kill(pid)
        served.kill()
    named = [] if len(keepers) == 1 else ["%d keepers were found" % len(keepers)]
    served.start()
    problems = judge_ok(served.run("print(1)", policy="plain"))
    problems += served.end()
    tap.point("its keeper is killed with it: a restart finds a clean house",
              named + problems + before.leftovers(PATIENCE_S))


def check_restart(tap, made):
    """The ledger of all those deaths: every intent has an end, and the chain is whole."""
    before = watch(made)
    with made.supervisor() as served:
        served.await_warm()
        listed = served.call("runs", "list", "--format", "json", "--limit", "10000")
        verified = served.call("runs", "verify")
        problems = judge_ok(served.run("print(1)", policy="plain"), ("pool", "warm"))
        problems += [] if b'"open"' not in listed.stdout and listed.returncode == 0 else \
            ["runs are open: %r" % listed.stdout[-500:]]
        problems += [] if verified.returncode == 0 else ["the ledger: %r" % verified.stderr]
        problems += served.end()
    tap.point("a restart finds a clean house", problems + before.leftovers(PATIENCE_S))


# Of what it keeps ------------------------------------------------------------------------------

def the_zygote(served):
    """Of the policy plain: that in whose factory a job runs."""
    factory = the_factory(served)
    tree = served.tree()
    return dict(zip(tree.factories(), tree.zygotes()))[factory]


def the_factory(served):
    name = "f%d" % time.monotonic_ns()
    client = up(served.popen(NAMED % name[-15:].encode(), policy="plain"))
    try:
        return leftovers.processes()[named(served, name[-15:])][0]
    finally:
        kill_client(client)


NAMED = "import ctypes\nctypes.CDLL(None).prctl(15, %r, 0, 0, 0)\n" + WAITS


def named(served, name):
    def look():
        mine = served.tree().pids()
        return [pid for pid, row in leftovers.processes().items()
                if row[3] == name and pid in mine]
    return until(look, "a process has the name " + name)[0]


def kill_client(client):
    client.kill()
    close([client])


def run_some(served, n=6):
    return [text for _ in range(n) for text in judge_ok(served.run("print(1)", policy="plain"))]


def run_or_say(served, words):
    """A run may be given to what has just been killed; then its outcome says so."""
    outcomes = [served.run("print(1)", policy="plain") for _ in range(6)]
    return judge_ok(outcomes[-1]) + [text for one in outcomes for text in judge_ok(one)
                                     if failed_with_a_sentence(one, words)]


def check_idle_zygote(tap, served):
    zygote = the_zygote(served)
    kill(zygote)
    problems = run_some(served)
    served.await_warm(["plain"])
    again = the_zygote(served)
    tap.point("a zygote is killed: runs go on, and another one comes",
              problems + ([] if again != zygote else ["it is the same one"]))


def check_busy_zygote(tap, served):
    """Cells that it has forked need it no more."""
    zygote = the_zygote(served)
    with Connection(served.socket) as connection:
        connection.start("import time\nprint('up', flush=True)\ntime.sleep(1)\nprint('end')",
                         policy="plain", stream=True)
        while connection.receive()["type"] != "stdout":
            continue
        kill(zygote)
        outcome = connection.finish()[1]
    problems = judge_ok(outcome, ("pool", "warm")) + run_some(served)
    if outcome.get("stdout") != "up\nend\n":
        problems.append("it has said %r" % outcome.get("stdout"))
    served.await_warm(["plain"])
    tap.point("a zygote is killed while its cell runs: the run goes on", problems)


def check_zygotes_again_and_again(tap, served):
    problems = []
    for _ in range(3):
        for zygote in filter(None, served.tree().zygotes()):
            kill(zygote)
        problems += run_some(served, 2)
    served.await_warm(["plain"])
    tap.point("zygotes are killed again and again: every run has its outcome", problems)


def check_hung_zygote(tap, served):
    """It is stopped, and asked for a cell: it gives no answer, and is replaced."""
    zygote = the_zygote(served)
    start = leftovers.processes()[zygote][1]
    kill(zygote, signal.SIGSTOP)
    problems = run_some(served)

    def is_gone():
        row = leftovers.processes().get(zygote)
        return not row or row[1] != start or row[2] in "ZX"
    until(is_gone, "the hung zygote is ended", 60)
    served.await_warm(["plain"])
    tap.point("a zygote hangs: runs go on, and it is replaced", problems)


def check_idle_factory(tap, served):
    kill(the_factory(served))
    problems = run_or_say(served, ("factory",))
    served.await_warm(["plain"])
    tap.point("a factory is killed: runs go on, or say so, and another one comes", problems)


def failed_with_a_sentence(outcome, words):
    text = outcome.get("message") or ""
    if outcome.get("status") == "failed" and any(word in text for word in words):
        return []
    return ["%s, signal %s: %r" % (outcome.get("status"), outcome.get("signal"), text)]


def check_busy(tap, served, what, victim, judge):
    """A program runs; the victim is killed; how does the outcome put it?"""
    name = "b%d" % time.monotonic_ns()
    with Connection(served.socket) as connection:
        connection.start(NAMED % name[-15:].encode(), policy="plain", stream=True)
        while connection.receive()["type"] != "stdout":
            continue
        program = named(served, name[-15:])
        for pid in victim(served, program):
            kill(pid)
        outcome = connection.finish()[1]
    problems = ran_warm(outcome) + judge(outcome) + run_some(served, 3)
    served.await_warm(["plain"])
    tap.point("%s while its program runs" % what, problems)


def program_of(served, program):
    return [program]


def init_of(served, program):
    return [pair[0] for pair in served.tree().cells() if pair[1] == program]


def factory_of(served, program):
    return [leftovers.processes()[program][0]]


def by_signal(outcome):
    """As of a cold cell: somebody has killed it, and who is not known."""
    good = outcome.get("signal") in ("SIGKILL", 9) and outcome.get("message")
    return [] if good else ["%s, signal %s: %r" % (outcome.get("status"), outcome.get("signal"),
                                                  outcome.get("message"))]


def check_idle_cells(tap, served, at, what):
    served.await_idle()
    for pair in served.tree().cells():
        if pair[at]:
            kill(pair[at])
    problems = run_or_say(served, ("from outside",))
    served.await_warm(["plain"])
    tap.point("idle cells: %s are killed: runs go on, or say so" % what, problems)


# Code that is being judged, cold --------------------------------------------------------------

DENSE = "x=[1,2,3];y=x[0]+x[1]*2;z={'a':y}\n" * 25000     # a second and more for the parser


def sealed_program(supervisor):
    """(init, program) of its cell once the program is sealed: then it begins to parse."""
    table = leftovers.processes()
    for init in [pid for pid, row in table.items() if row[0] == supervisor]:
        for program in [pid for pid, row in table.items() if row[0] == init]:
            with contextlib.suppress(OSError), open("/proc/%d/status" % program) as file:
                if "Seccomp:\t2" in file.read():
                    return init, program
    return None


def check_judged(tap, made, at, what):
    """It is nobody's verdict on the code."""
    before, path = watch(made), os.path.join(made.base, "dense.py")
    with open(path, "w") as file:
        file.write(DENSE)
    os.chmod(path, 0o644)
    run = subprocess.Popen([made.program, "run", "--cold", "--json", path],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           cwd=made.identity.home, env=made.identity.environment(),
                           preexec_fn=made.identity.prepare())
    kill(until(lambda: sealed_program(run.pid), "the cell is sealed")[at])
    outcome = json.loads(run.communicate(timeout=PATIENCE_S)[0])
    tap.point("%s is killed while code is judged" % what,
              failed_with_a_sentence(outcome, ("from outside", "without a report")) +
              before.leftovers(PATIENCE_S))


# An interpreter whose site-packages end it in a cell, before it has heard of its job.
DIES = "import os; os.path.isdir('/var/lib') or os.kill(os.getpid(), 9)\n"


def check_start(tap, made):
    name = "an interpreter dies before it has read its setup: a sentence"
    before, folder = watch(made), os.path.join(made.base, "venv")
    done = subprocess.run([PYTHON, "-m", "venv", "--without-pip", folder],
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        tap.point(name, skip="%s cannot make a venv" % PYTHON)
        return
    packages = glob.glob(os.path.join(folder, "lib", "python3*", "site-packages"))[0]
    with open(os.path.join(packages, "dies.pth"), "w") as file:
        file.write(DIES)
    problems = []
    for _ in range(5):
        result = cell.run(made.program, made.identity,
                          ["--cold", "--python", os.path.join(folder, "bin", "python")],
                          os.path.join(made.base, "pass.py"))
        problems += failed_with_a_sentence(result.outcome, ("ended before the code could run",))
    tap.point(name, problems + before.leftovers(PATIENCE_S))


# Clients ---------------------------------------------------------------------------------------

def nothing_runs(served):
    queue = served.status()["queue"]
    return queue["running"] == queue["waiting"] == 0


def check_clients(tap, served):
    """Clients that connect, wait, run or speak half a frame, and are gone."""
    for what, act in (("idle", lambda c: None), ("running", start_one), ("queued", start_many),
                      ("in a frame", lambda c: c.socket.sendall(struct.pack(">I", 1000) + b"{"))):
        for how in ("closes", "resets"):
            connection = Connection(served.socket)
            act(connection)
            if how == "resets":     # what it has not read is lost, and the other end is told so
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                             struct.pack("ii", 1, 0))
            connection.file.close()
            connection.socket.close()
            served.wait(lambda: nothing_runs(served) and served.status()["clients"] == 1,
                        "nothing runs")
            tap.point("a client that is %s %s: nothing runs for it" % (what, how),
                      run_some(served, 1))


def start_one(connection):
    connection.start(WAITS, policy="plain", stream=True)
    while connection.receive()["type"] != "stdout":
        continue


def start_many(connection):
    for _ in range(20):
        connection.start(WAITS, policy="plain")
    while connection.receive()["type"] != "accepted":
        continue


def check_killed_client(tap, served):
    clients = [up(served.popen(WAITS, policy="plain")) for _ in range(3)]
    for client in clients:
        kill_client(client)
    served.wait(lambda: nothing_runs(served), "nothing runs")
    tap.point("`adyton run` is killed: nothing runs for it", run_some(served, 1))


def check_kept(tap, made):
    whole = watch(made)
    with made.supervisor("--max-runs", "4") as served:
        served.await_warm()
        before = leftovers.Watch([made.identity], [served])
        for check in (check_idle_zygote, check_busy_zygote, check_zygotes_again_and_again,
                      check_hung_zygote, check_idle_factory, check_clients,
                      check_killed_client):
            check(tap, served)
        check_idle_cells(tap, served, 0, "their inits")
        check_idle_cells(tap, served, 1, "their programs")
        check_busy(tap, served, "a cell's program is killed", program_of, by_signal)
        check_busy(tap, served, "a cell's init is killed", init_of,
                   lambda outcome: failed_with_a_sentence(outcome, ("from outside",)))
        check_busy(tap, served, "a cell's factory is killed", factory_of,
                   lambda outcome: failed_with_a_sentence(outcome, ("factory", "zygote")))
        served.await_idle()
        tap.point("nothing is left of all that but what stands", before.leftovers(PATIENCE_S))
        problems = served.end()
    tap.point("nor of the supervisor, when it has ended", problems + whole.leftovers(PATIENCE_S))


def main():
    with stage(__doc__) as (tap, made):
        if made:
            check_start(tap, made)
            check_judged(tap, made, 0, "a cold cell's init")
            check_judged(tap, made, 1, "a cold cell's program")
            check_kept(tap, made)
            for point in POINTS:
                check_supervisor(tap, made, point)
            for count in RUNS_BEFORE_DEATH:
                check_supervisor_among_runs(tap, made, count)
            check_keeper(tap, made)
            check_restart(tap, made)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
