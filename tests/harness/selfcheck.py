"""The suite of cases must fail a sandbox that holds nothing: `selfcheck.py`. Prints TAP.

It builds a program that answers like ours and runs the code in the open, and asserts which
cases find it out, by what sentence, and which cases hold for it as they do for any CPython.
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import cell          # noqa: E402
import host          # noqa: E402
import leftovers     # noqa: E402
from tap import Tap  # noqa: E402

FAKE = r'''#!/usr/bin/python3
import json, os, signal, subprocess, sys
words = sys.argv[-2:] if "-c" in sys.argv else sys.argv[-1:]
run = subprocess.Popen(["/usr/bin/python3", *words], stdin=subprocess.DEVNULL, cwd=os.environ["TMPDIR"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
out, err = run.communicate()
code = run.returncode
status = "ok" if code == 0 else "crashed" if code < 0 else "exception" if code == 1 else "exit"
last = err.decode().strip().split("\n")[-1]
print(json.dumps({
    "schema": "adyton.outcome/1", "session_id": None, "status": status,
    "exit_code": code if code >= 0 else None, "limit": None, "incidents": [],
    "signal": signal.Signals(-code).name if code < 0 else None,
    "stdout": out.decode(), "stderr": err.decode(),
    "truncated": {"stdout": False, "stderr": False},
    "error": {"name": last.split(":")[0], "value": "", "line": 6} if status == "exception" else None,
    "usage": {"wall_ms": 1, "cpu_ms": 1, "peak_memory_bytes": 1, "processes": 1},
    "engine": {"interpreter": "none", "isolation": "namespaces", "start": "cold"},
    "isolation": LAYERS}))
sys.exit(code if code >= 0 else 128 - code)
'''

# Case to a sentence that must be among its diagnostics; None: it must pass.
WANTED = {
    1: "stdout must not have 'ESCAPED'", 2: "an incident", 11: None, 22: None,
    31: "stdout must not have 'ESCAPED'", 35: "stdout must not have 'ESCAPED'",
    38: "stdout must not have 'ESCAPED'", 41: "stdout must not have 'ESCAPED'",
    42: "signals reach", 55: "stdout must not have 'ESCAPED'",
    62: "a service of the host was reached", 64: "stdout must not have 'LEAK'",
    67: "second run", 74: "left behind: process", 96: None, 108: None, 112: None,
    114: None, 115: None, 121: None,
}


def run_suite(folder):
    path = os.path.join(folder, "adyton")
    with open(path, "w") as file:
        file.write(FAKE.replace("LAYERS", repr(list(cell.LAYERS["namespaces"]))))
    os.chmod(path, 0o755)
    suite = os.path.join(HERE, "..", "cases", "run.py")
    only = ",".join(str(n) for n in WANTED)
    done = subprocess.run([sys.executable, suite, path, "--only", only, "--no-controls"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def points(text):
    """(user, case number) to (held, diagnostics)."""
    found, key = {}, None
    for line in text.splitlines():
        match = re.match(r"(not ok|ok) \d+ - (root|user): (\d{3})", line)
        if match:
            key = (match.group(2), int(match.group(3)), len(found))
            found[key] = [match.group(1) == "ok" and "# SKIP" not in line, "# SKIP" in line, ""]
        elif line.startswith("# ") and key:
            found[key][2] += line + "\n"
        else:
            key = None
    return found


def check_watch(tap):
    """Each kind of leftover is seen, and seen only while it is there."""
    with host.scratch() as base:
        identity = host.as_root(base) if os.geteuid() == 0 else host.as_user(base)
        watch = leftovers.Watch([identity])
        tap.point("nothing is left of nothing", watch.leftovers())
        child = subprocess.Popen(["sleep", "60"])
        kept = os.open("/dev/null", os.O_RDONLY)
        os.mkdir(identity.tmp + "/cell")
        wanted = {"process sleep", "descriptor", "private file"}
        if identity.groups:
            os.mkdir(identity.groups.folders[0] + "/adyton-1")
            wanted.add("control group")
        found = watch.leftovers()
        os.close(kept)
        child.wait()   # ended by the watch, after it had told of it
        tap.point("each kind of leftover is told", [
            "not told: %s, of %r" % (w, found) for w in sorted(wanted)
            if not any("left behind: " + w in f for f in found)])
        tap.point("what was told of is removed", watch.leftovers())
        if identity.groups:
            identity.groups.remove()


def main():
    tap = Tap()
    host.become_subreaper()
    check_watch(tap)
    with tempfile.TemporaryDirectory(prefix="cases-self-") as folder:
        os.chmod(folder, 0o755)
        code, text = run_suite(folder)
    tap.point("the suite exits with 1", [] if code == 1 else ["exit %d" % code, text[-2000:]])
    seen = set()
    for (who, number, _), (held, skipped, notes) in points(text).items():
        seen.add(number)
        wanted, name = WANTED[number], "%s: case %03d" % (who, number)
        if skipped:
            tap.point(name, skip="the suite skipped it")
        elif wanted is None:
            tap.point(name + " holds in the open", [] if held else [notes])
        elif held or wanted not in notes:
            tap.point(name + " finds the fake out", ["no %r in:" % wanted, notes])
        else:
            tap.point(name + " finds the fake out")
    tap.point("each case was run", ["never: %d" % n for n in sorted(set(WANTED) - seen)])
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
