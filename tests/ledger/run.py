#!/usr/bin/env python3
"""The ledger: writers that are killed, and what the command line makes of it.

    run.py PATH-TO-ADYTON PATH-TO-WRITER      KILLS=200 SEED=n in the environment

Prints TAP. Only the standard library; every check runs the real programs.
"""
import csv
import io
import json
import os
import pty
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time

import chain
from place import ADYTON, EXTRA, PATIENCE_S, WRITER, Skip, check, main, same, test

KILLS = int(os.environ.get("KILLS", "200"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1 << 32))))
WRITERS = 4
SMALL_BYTES = 200 * 1024


# ---- killed at any instant ----

class Writers:
    """Keeps WRITERS of them going, kills one after another, and notes what each was told."""

    def __init__(self, place, seed):
        self.place, self.random = place, random.Random(seed)
        self.said = {"intent": set(), "outcome": set()}
        self.errors = b""
        self.living = [self.start() for _ in range(WRITERS)]

    def start(self):
        return subprocess.Popen([WRITER, self.place.ledger], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def note(self, child):
        out, err = child.communicate(timeout=PATIENCE_S)
        self.errors += err
        lines = out.decode().splitlines()
        for line in lines:
            what, run = line.split(" ", 1)
            self.said[what].add(run)
        return len(lines)

    def kill_one(self):
        """After a random time: while it opens, appends, waits for another, flushes."""
        at = self.random.randrange(WRITERS)
        time.sleep(self.random.expovariate(1 / 0.008))
        self.living[at].kill()
        told = self.note(self.living[at])
        self.living[at] = self.start()
        return told

    def end(self):
        for child in self.living:
            child.kill()
            self.note(child)


@test
def writers_that_are_killed_lose_nothing(place):
    print("# SEED=%d KILLS=%d" % (SEED, KILLS))
    writers = Writers(place, SEED)
    killed_early = 0
    for number in range(1, KILLS + 1):
        killed_early += writers.kill_one() == 0
        if number % 50 == 0:
            place.sound()  # also while the others write
    writers.end()
    same(writers.errors, b"", "what the writers complained of")
    # The next to start closes what the dead left open.
    open_before = place.sql("SELECT count(*) FROM open")[0][0]
    same(subprocess.run([WRITER, place.ledger, "1"], capture_output=True).returncode, 0, "a start")
    place.sound()
    same(place.sql("SELECT count(*) FROM open"), [(0,)], "the open intents")
    intents = {r for (r,) in place.sql("SELECT run FROM entry WHERE kind = 'intent'")}
    outcomes = dict(place.sql("SELECT run, message FROM entry WHERE kind = 'outcome'"))
    same(writers.said["intent"] - intents, set(), "acknowledged intents that are lost")
    lost = {r for r in writers.said["outcome"] if outcomes.get(r, "lost") is not None}
    same(lost, set(), "acknowledged outcomes that are lost")
    same(set(outcomes), intents, "the runs with an outcome")
    closed = [r for r, message in outcomes.items() if message]
    print("# %d runs, %d acknowledged, %d closed as failed, %d killed before their first"
          % (len(intents), len(writers.said["outcome"]), len(closed), killed_early))
    # Controls: the kills met writers in the middle of their work.
    check(len(writers.said["outcome"]) > KILLS, "the writers wrote", writers.said["outcome"])
    check(len(closed) >= open_before > 0 or len(closed) > 0, "some were killed amid a run", closed)


@test
def a_run_that_is_killed_is_open_and_then_failed(place):
    child = subprocess.Popen(
        [ADYTON, "run", "-c", "import time\nprint('up', flush=True)\ntime.sleep(30)", *EXTRA,
         "--policy", "open", "--ledger", place.ledger], stdout=subprocess.PIPE)
    same(child.stdout.readline(), b"up\n", "its output")
    same([run["status"] for run in place.json("runs")], ["open"], "the status of a living run")
    same(place.run("print(1)").returncode, 0, "another run meanwhile")
    same([run["status"] for run in place.json("runs")], ["ok", "open"], "both")
    child.kill()
    child.communicate()
    # The cell's init holds the lock until it is dead, too: that is when the run is over.
    deadline = time.monotonic() + 5
    while True:
        same(place.run("print(2)").returncode, 0, "the next start")
        runs = place.json("runs")
        if runs[-1]["status"] == "failed" or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    same(runs[-1]["status"], "failed", "the status of the dead")
    check("ended before this run did" in runs[-1]["message"], "a sentence", runs[-1])
    same(place.json("runs", "--status", "open"), [], "the open runs")
    place.sound()


@test
def many_runs_at_once(place):
    children = [subprocess.Popen([ADYTON, "run", "-c", "print(%d)" % i, *EXTRA, "--timeout", "5s",
                                  "--ledger", place.ledger], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE) for i in range(12)]
    for i, child in enumerate(children):
        out, err = child.communicate(timeout=PATIENCE_S)
        same((out, child.returncode), (b"%d\n" % i, 0), "output and status (%r)" % err)
    same([run["status"] for run in place.json("runs")], ["ok"] * 12, "the runs")
    place.sound()


@test
def several_may_make_it_at_one_time(place):
    """SQLite alone lets two wait for each other there, once in some hundred times."""
    for number in range(40):
        ledger = "%s/%d.db" % (place.folder, number)
        children = [subprocess.Popen([WRITER, ledger, "1"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE) for _ in range(16)]
        for child in children:
            err = child.communicate(timeout=PATIENCE_S)[1]
            same((child.returncode, err), (0, b""), "the ending of a writer")
        same(len(place.json("runs", ledger=ledger)), 16, "the runs")


@test
def code_that_is_too_long_is_recorded(place):
    path = place.write("long.py", "# " + "x" * (2 << 20) + "\n")
    done = place.call("run", path, *EXTRA)
    check(done.returncode == 126 and b"longer than 1M" in done.stderr, "it is rejected", done)
    (run,) = place.json("runs")
    same(run["status"], "rejected", "what is recorded")
    check("longer than 1M" in run["message"], "a sentence", run)


# ---- what cannot be recorded does not happen ----

def did_not_happen(done, *parts):
    same((done.returncode, done.stdout), (125, b""), "status and output (%r)" % done.stderr[:300])
    check(done.stderr.startswith(b"adyton: failed: "), "the status is told", done.stderr)
    for part in parts:
        check(part.encode() in done.stderr, "stderr has %r" % part, done.stderr)


@test
def an_untrusted_place_is_refused(place):
    same(place.run("print('ran')").stdout, b"ran\n", "the control")
    did_not_happen(place.run("print('ran')", ledger="/tmp/adyton-none.db"), "written by others")
    os.chmod(place.ledger, 0o622)
    did_not_happen(place.run("print('ran')"), "written by others")
    done = place.call("incidents", "verify")
    same(done.returncode, 125, "reading it, too")
    os.chmod(place.ledger, 0o600)
    os.chmod(place.folder, 0o777)
    did_not_happen(place.run("print('ran')"), "written by others", "--ledger")
    os.chmod(place.folder, 0o700)
    if os.geteuid() == 0:
        os.chown(place.ledger, 12345, -1)
        did_not_happen(place.run("print('ran')"), "another user")
        os.chown(place.ledger, 0, -1)
    other = place.folder + "/link.db"
    os.symlink(place.ledger, other)
    did_not_happen(place.run("print('ran')", ledger=other), "not a regular file")
    did_not_happen(place.run("print('ran')", ledger=place.folder + "/none/x.db"), "No such file")
    did_not_happen(place.run("print('ran')", ledger=place.write("text", "no database\n" * 99)),
                   "no database")
    same(place.run("print('ran')").stdout, b"ran\n", "the control afterwards")
    same(len(place.json("runs")), 2, "the runs that are recorded")


@test
def a_home_is_not_made(place):
    """No place of our own to write to: no run; and nothing is made outside a home."""
    for environment, part in [({}, "XDG_STATE_HOME nor HOME"),
                              ({"HOME": place.folder + "/none"}, "cannot make"),
                              ({"HOME": "relative", "XDG_STATE_HOME": "relative"}, "HOME")]:
        done = subprocess.run([ADYTON, "run", "-c", "print('ran')", *EXTRA], env=environment,
                              capture_output=True, timeout=PATIENCE_S)
        did_not_happen(done, part)
    same(os.listdir(place.folder), [], "what was made")
    done = subprocess.run([ADYTON, "run", "-c", "print('ran')", *EXTRA],
                          env={"HOME": place.folder}, capture_output=True, timeout=PATIENCE_S)
    same(done.stdout, b"ran\n", "the control (%r)" % done.stderr)
    made = os.stat(place.folder + "/.local/state/adyton")
    same(made.st_mode & 0o777, 0o700, "the mode of the folder")
    same(os.stat(place.folder + "/.local/state/adyton/ledger.db").st_mode & 0o777, 0o600,
         "the mode of the file")


@test
def a_full_disk_stops_the_run_before_its_code(place):
    def limited(limit):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    def run(text, limit):
        code = place.write("main.py", text + "#" * SMALL_BYTES)
        return place.call("run", code, *EXTRA, preexec_fn=limited(limit) if limit else None)
    # SQLite needs 32 KiB beside the ledger; then the text of the code does not fit.
    did_not_happen(run("print('ran')", 4096), "ledger")
    same(run("print('ran')", 100 * SMALL_BYTES).stdout, b"ran\n", "the control")
    same(run("print('ran')", None).stdout, b"ran\n", "the control without a limit")
    size = os.path.getsize(place.ledger + "-wal")
    did_not_happen(run("print('ran too')", size + 4096), "ledger")
    place.sound()
    same([run["status"] for run in place.json("runs")], ["ok", "ok"], "the runs that are recorded")


@test
def a_full_file_system_stops_it_too(place):
    """A tmpfs of 512 KiB in a mount namespace of its own."""
    script = ("mount -t tmpfs -o size=512k,mode=700 tmpfs {folder} && "
              "{adyton} run -c \"print('control')\" {extra} --ledger {folder}/l.db && "
              "{{ head -c 600000 /dev/zero > {folder}/fill; true; }} && "
              "{adyton} run -c \"print('ran')\" {extra} --ledger {folder}/l.db").format(
                  folder=place.folder, adyton=ADYTON, extra=" ".join(EXTRA))
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise Skip("no mount namespace of our own here")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True,
                          timeout=PATIENCE_S)
    same((done.stdout, done.returncode), (b"control\n", 125), "output, status %r" % done.stderr)
    check(b"no space left" in done.stderr or b"No space left" in done.stderr, "a sentence",
          done.stderr)


@test
def a_locked_ledger_is_waited_for_and_then_refused(place):
    same(place.run("print('ran')").stdout, b"ran\n", "the control")
    base = sqlite3.connect(place.ledger, isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    did_not_happen(place.run("print('ran')"), "locked for more than 5 s")
    check(4.5 < time.monotonic() - began < 20, "it was waited for", time.monotonic() - began)
    child = subprocess.Popen([ADYTON, "run", "-c", "print('ran')", *EXTRA, "--ledger",
                              place.ledger], stdout=subprocess.PIPE)
    time.sleep(0.5)
    base.execute("ROLLBACK")
    base.close()
    same(child.communicate(timeout=PATIENCE_S)[0], b"ran\n", "one that waited")
    place.sound()


@test
def an_outcome_that_cannot_be_recorded_is_a_failure(place):
    """The ledger is made unusable while the code runs."""
    code = "print('up', flush=True)\nimport time\ntime.sleep(1)"
    child = subprocess.Popen([ADYTON, "run", "-c", code, *EXTRA, "--ledger", place.ledger],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    same(child.stdout.readline(), b"up\n", "its output")
    base = sqlite3.connect(place.ledger, isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    out, err = child.communicate(timeout=PATIENCE_S)
    base.close()
    same(child.returncode, 125, "the status (%r)" % err)
    check(b"could not be recorded" in err, "a sentence", err)
    same(place.run("print(1)").returncode, 0, "the next run")
    same([run["status"] for run in place.json("runs")], ["ok", "failed"], "the runs")
    place.sound()


# ---- the policy ----

@test
def code_is_not_kept_when_the_policy_says_so(place):
    secret = "print('SECRET-' + 'a1b2')"
    policy = place.write("p.yaml", "name: quiet\nkeep_code: false\nsync: full\n")
    same(place.run(secret, "--policy", policy).stdout, b"SECRET-a1b2\n", "the output")
    run = place.json("runs")[0]
    same((run["policy"], run["code_kept"], run["code_bytes"]), ("quiet", False, len(secret)),
         "what is recorded")
    shown = place.call("runs", "show", run["id"])
    check(b"SECRET" not in shown.stdout and b"not kept" in shown.stdout, "nothing of it", shown)

    def in_files():
        return any(b"SECRET" in open(os.path.join(place.folder, name), "rb").read()
                   for name in os.listdir(place.folder) if name.startswith("ledger.db"))
    check(not in_files(), "no byte of it in the files")
    place.run(secret)
    check(in_files(), "the control: kept, it is found there")
    place.sound()


@test
def old_rows_leave_by_themselves(place):
    """More than the policy's size is written; the oldest go, and the chain holds."""
    policy = place.write("p.yaml", "name: small\nledger_bytes: 16M\nsource_size: 8M\n")
    for i in range(6):
        code = place.write("big%d.py" % i, "print(%d)\n" % i + "#%d\n" % i * 1500000)
        done = place.call("run", code, *EXTRA, "--policy", policy)
        same(done.returncode, 0, "the status (%r)" % done.stderr)
        place.sound()
    runs = place.json("runs")
    check(1 <= len(runs) < 6, "some left", [run["id"] for run in runs])
    size = os.path.getsize(place.ledger)
    check(size < 40 << 20, "the file does not grow for ever", size)


# ---- the command line ----

def some_runs(place):
    same(place.run("print(1)").returncode, 0, "a run")
    same(place.run("import time\ntime.sleep(9)", "--timeout", "200ms").returncode, 124, "another")
    code = "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)\nx = 1\n"
    place.run(code, "--validation", "off")
    return place.json("runs")


@test
def runs_and_incidents_are_listed(place):
    runs = some_runs(place)
    same([run["status"] for run in runs], ["ok", "timeout", "ok"], "newest first")
    same(runs[1]["limit"], {"name": "timeout", "value": 200}, "the limit")
    check(runs[0]["isolation"] and runs[0]["engine"]["interpreter"], "what held it", runs[0])
    incidents = place.json("incidents")
    same([(i["rule"], i["layer"], i["fact"]) for i in incidents if i["fact"]],
         [("system-call", "seccomp", True), ("wall-limit", "limit", True)], "the facts")
    fact = next(i for i in incidents if i["layer"] == "seccomp")
    check(fact["act"].startswith("ptrace") and fact["remedy"] and fact["code"] == runs[0]["code"],
          "the act, a remedy, the code", fact)
    same(fact["run"] + ".1", fact["id"], "its id")
    for args, wanted in [
        (("incidents", "--layer", "seccomp"), 1), (("incidents", "--layer", "nowhere"), 0),
        (("incidents", "--rule", "wall-limit"), 1), (("incidents", "--status", "timeout"), 1),
        (("incidents", "--run", runs[1]["id"]), 1), (("incidents", "--session", "s_1"), 0),
        (("incidents", "--since", "1h", "--limit", "1"), 1),
        (("incidents", "--since", "2999-01-01"), 0), (("runs", "--status", "ok"), 2),
        (("runs", "--rule", "system-call"), 1), (("runs", "--layer", "limit"), 1),
        (("runs", "--limit", "2"), 2), (("runs", "--since", "2001-01-01T12:30"), 3),
    ]:
        same(len(place.json(*args)), wanted, "the rows of %s" % (args,))
    text = place.call("incidents").stdout.decode()
    check(text.startswith("TIME ") and len(text.splitlines()) == len(incidents) + 1, "a table",
          text)
    rows = list(csv.DictReader(io.StringIO(place.call("incidents", "--format",
                                                      "csv").stdout.decode())))
    same([row["id"] for row in rows], [i["id"] for i in incidents], "the rows of the CSV")
    rows = list(csv.DictReader(io.StringIO(place.call("runs", "--format",
                                                      "csv").stdout.decode())))
    same([(row["id"], row["status"]) for row in rows], [(r["id"], r["status"]) for r in runs],
         "the runs as CSV")


@test
def one_is_shown_with_its_code(place):
    runs = some_runs(place)
    incident = place.json("incidents", "--layer", "seccomp")[0]
    shown = place.call("incidents", "show", incident["id"]).stdout.decode()
    for part in ("ptrace", "seccomp (a fact", "remedy", "1 | import ctypes", runs[0]["id"]):
        check(part in shown, "show has %r" % part, shown)
    same(place.json("incidents", "show", incident["id"])[0]["text"].splitlines()[0],
         "import ctypes", "the text in JSON")
    shown = place.call("runs", "show", runs[1]["id"]).stdout.decode()
    for part in ("timeout: ", "wall-limit", "time.sleep(9)", "held by"):
        check(part in shown, "show has %r" % part, shown)
    done = place.call("incidents", "show", runs[0]["id"] + ".99")
    same((done.returncode, done.stdout), (1, b""), "one that there is not")
    same(place.call("runs", "show", "r_none").returncode, 1, "a run that there is not")


@test
def tampering_is_told_with_its_row(place):
    some_runs(place)
    head = place.sound()
    same(place.call("incidents", "verify", "--head", head).returncode, 0, "with its head")
    place.run("print('more')")
    same(place.call("runs", "verify", "--head", head).returncode, 0, "with a head of before")
    place.sql("UPDATE entry SET wall_us = wall_us + 1 WHERE seq = 4")
    done = place.call("incidents", "verify")
    check(done.returncode == 1 and b"entry row 4" in done.stdout, "row 4 is named", done)
    verdict = json.loads(place.call("incidents", "verify", "--format", "json").stdout)
    same((verdict["sound"], verdict["bad"]["table"], verdict["bad"]["row"]), (False, "entry", 4),
         "the same in JSON")
    place.sql("UPDATE entry SET wall_us = wall_us - 1 WHERE seq = 4")
    place.sound()
    seq = int(head.split(":")[0])
    place.sql("DELETE FROM entry WHERE seq > ?", seq - 1)
    done = place.call("incidents", "verify")
    check(done.returncode == 1 and b"entry row %d" % seq in done.stdout, "a cut tail", done)
    for wrong in ("x", "1:zz", ":", "9999999999999999999999:" + "0" * 64):
        same(place.call("incidents", "verify", "--head", wrong).returncode, 2, "a wrong --head")


@test
def a_ledger_of_another_build_is_told(place):
    same(place.run("print(1)").returncode, 0, "the control")
    place.sql("ALTER TABLE entry DROP COLUMN remedy")
    did_not_happen(place.run("print('ran')"), "another build of adyton", "move it away")
    done = place.call("runs")
    check(done.returncode == 125 and b"another build of adyton" in done.stderr, "told", done)


@test
def a_damaged_file_is_told(place):
    some_runs(place)
    place.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(place.ledger, "r+b") as file:
        data = file.read()
        for page in range(8192 - 512, len(data), 4096):  # where the cells are
            file.seek(page)
            file.write(b"\xff" * 512)
    done = place.call("incidents", "verify")
    check(done.returncode in (1, 125) and b"damaged" in done.stdout + done.stderr, "told", done)
    did_not_happen(place.run("print('ran')"), "damaged")


@test
def an_export_is_taken_back(place):
    some_runs(place)
    done = place.call("incidents", "export")
    same(done.returncode, 0, "the status of export")
    same(chain.problems(done.stdout), [], "what another implementation finds wrong with it")
    check(chain.problems(done.stdout.replace(b'"timeout"', b'"ok"', 1)), "the control")
    new = place.folder + "/new.db"
    path = place.write("export", done.stdout.decode())
    taken = place.call("incidents", "import", path, ledger=new)
    same((taken.returncode, taken.stderr), (0, b""), "the status of import")
    same(place.call("incidents", "export", ledger=new).stdout, done.stdout, "the export of it")
    same(place.call("incidents", "import", path, ledger=new).returncode, 125, "over another")
    changed = place.write("changed", done.stdout.decode().replace('"timeout"', '"ok"', 1))
    taken = place.call("incidents", "import", changed, ledger=place.folder + "/other.db")
    check(taken.returncode == 1 and b"line " in taken.stderr, "one that was changed", taken)
    check(not os.path.exists(place.folder + "/other.db"), "nothing is left of it")
    piped = place.call("incidents", "import", "-", ledger=place.folder + "/piped.db", stdin=None,
                       input=done.stdout)
    same(piped.returncode, 0, "from a pipe")


@test
def an_export_of_another_implementation_is_taken(place):
    code = "print('é')\n".encode()
    intent = {"kind": "intent", "time_us": 1, "run": "r_1", "policy": "p", "name": "main.py",
              "code": chain.code_hash(code), "code_bytes": len(code), "code_kept": 1, "owner": 1}
    outcome = {"kind": "outcome", "time_us": 2, "run": "r_1", "intent": 9, "status": "ok",
               "message": "€", "wall_us": 0, "incidents": 0}
    for rows, sound in [([intent, outcome], True),
                        ([intent, dict(outcome, intent=10)], False),  # an intent of its own
                        ([intent, dict(outcome, run="r_2")], False),  # of another run
                        ([intent, outcome, outcome], False),          # two of one
                        ([dict(intent, kind="other"), outcome], False),
                        ([dict(intent, code_bytes=3), outcome], False),
                        ([dict(intent, code_kept=0), outcome], False)]:
        path = place.write("export", chain.write(rows, [code], anchor=(8, "ab" * 32)).decode())
        done = place.call("incidents", "import", path, ledger=place.folder + "/new.db")
        same(done.returncode, 0 if sound else 1, "the status for %r (%r)" % (rows, done.stderr))
        if sound:
            same(place.call("runs", "show", "r_1", "--format", "json",
                            ledger=place.folder + "/new.db").returncode, 0, "reading it")
            for name in os.listdir(place.folder):
                os.unlink(os.path.join(place.folder, name))


@test
def a_terminal_is_not_driven(place):
    name = place.write("\x1b]0;evil\x07\x9b.py", "'\x1b[2J'\nimport os\nos.abort()\n")
    place.call("run", name, *EXTRA, "--validation", "off")
    run = place.json("runs")[0]["id"]
    for args in (("runs",), ("runs", "show", run), ("runs", "--format", "csv"),
                 ("runs", "--format", "json"), ("runs", "show", run, "--format", "json"),
                 ("incidents",), ("incidents", "export")):
        shown, status = on_terminal(place, *args)
        same(status, 0, "the status of %s" % (args,))
        if args[-1] != "export":  # a file format: JSON escapes what matters
            check(b"\x1b" not in shown and b"\x07" not in shown and b"\x9b" not in shown.replace(
                b"\xc2\x9b", b""), "no control in %s" % (args,), shown)
    check(b"evil" in on_terminal(place, "runs")[0], "the control: the name is shown")


def on_terminal(place, *args):
    pid, master = pty.fork()
    if pid == 0:
        os.execv(ADYTON, [ADYTON, *args, "--ledger", place.ledger])
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # EIO: the last writer is gone
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@test
def a_spreadsheet_gets_no_formula(place):
    name = place.write("=cmd|x!A1,\"q\".py", "import time\ntime.sleep(9)\n")
    place.call("run", name, *EXTRA, "--timeout", "200ms")
    text = place.call("runs", "--format", "csv").stdout.decode()
    row = next(csv.DictReader(io.StringIO(text)))
    same(row["name"], "'" + os.path.basename(name), "the name")


@test
def wrong_usage_is_told(place):
    for args, part in [
        (("incidents", "frob"), "no such verb"), (("incidents", "show"), "show needs ID"),
        (("incidents", "--since", "soon"), "--since"), (("runs", "--status", "well"), "timeout"),
        (("runs", "--limit", "many"), "--limit"), (("runs", "--format", "xml"), "csv"),
        (("incidents", "--frob", "x"), "unknown option"), (("incidents", "list", "x"), "'x'"),
        (("incidents", "--since", "99999999999999999999d"), "--since"),
    ]:
        done = place.call(*args)
        same((done.returncode, done.stdout), (2, b""), "the status of %s" % (args,))
        check(part.encode() in done.stderr, "a sentence for %s" % (args,), done.stderr)
    done = place.call("incidents")
    same((done.returncode, done.stdout), (0, b""), "without a ledger")
    check(b"nothing is recorded yet" in done.stderr, "a sentence", done.stderr)
    same(place.call("incidents", "verify").returncode, 125, "verify without a ledger")
    for name in ("incidents", "runs"):
        shown = subprocess.run([ADYTON, name, "--help"], capture_output=True).stdout.decode()
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "man", "adyton-%s.1" % name),
                  encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        for option in re.findall(r"^  (--[a-z]+)", shown, re.M):
            check(option in page, "the manual has %s" % option)
        for verb in ("list", "show", "verify", "export", "import"):
            check(verb in shown and verb in page, "both have %s" % verb)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
