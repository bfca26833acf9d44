#!/usr/bin/env python3
"""Every CPython from 3.9 on that this machine has runs a program in a cell and ends it as it
would have ended outside:  tests/integration/interpreters.py ADYTON

Looked for in PATH and among the versions of pyenv; a machine with one interpreter tests one.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = """
import atexit, inspect, sys, threading, time
class Late:
    def __del__(self): print("freed")
def twice(x): return 2 * x
atexit.register(print, "bye")
late = Late()
print(sys._getframe().f_back, inspect.getsource(twice).strip(), __name__, sys.argv)
def slowly():
    time.sleep(0.2)
    print("thread", twice(21))
threading.Thread(target=slowly).start() # nobody joins it: the end of the program does
sys.exit(4)
"""
WANTED = {"None def twice(x): return 2 * x __main__ ['main.py', 'x']", "thread 42", "bye",
          "freed"}


def version_of(python):
    try:
        answer = subprocess.run([python, "-E", "-c",
                                 "import platform, sys; print(platform.python_implementation(), "
                                 "'%d.%d' % sys.version_info[:2])"],
                                capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"CPython 3\.(\d+)\n", answer.stdout)
    return int(match.group(1)) if match else None


def interpreters():
    found = {}
    places = [folder + "/python3*" for folder in os.environ.get("PATH", "").split(":")]
    places += ["/usr/bin/python3", os.path.expanduser("~/.pyenv/versions/*/bin/python3")]
    for place in places:
        for path in sorted(glob.glob(place)):
            if not re.fullmatch(r"python3(\.\d+)?", os.path.basename(path)) or "shims" in path:
                continue
            minor = version_of(path)
            if minor is not None and minor >= 9:
                found.setdefault(minor, path)
    return sorted(found.items())


def problems(adyton, path, policy):
    run = subprocess.run([adyton, "run", "--cold", "--policy", policy, "--python", path, "-c",
                          PROGRAM, "--", "x"], capture_output=True, text=True, timeout=120)
    lines = set(run.stdout.splitlines())
    wrong = ["%r is missing in %r" % (line, run.stdout) for line in WANTED - lines]
    if run.returncode != 4:
        wrong.append("exit %d, not 4; stderr %r" % (run.returncode, run.stderr))
    return wrong


def main():
    found = interpreters()
    failed = 0
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy:
        policy.write("extends: standard\nvalidation: off\n")
        policy.flush()
        for number, (minor, path) in enumerate(found, 1):
            wrong = problems(os.path.abspath(sys.argv[1]), path, policy.name)
            failed += bool(wrong)
            print("%sok %d - CPython 3.%d" % ("not " if wrong else "", number, minor))
            for line in wrong:
                print("# " + line)
    print("1..%d" % len(found))
    return 1 if failed or not found else 0


sys.exit(main())
