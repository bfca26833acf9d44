"""The libraries' own tests, inside a cell and outside: `run.py BUILD [--session]`. Prints TAP.

A named part of the tests that Debian packages with numpy, pandas and matplotlib runs under the
same interpreter twice, in a cell and as an ordinary process, both at a time. Each test must come
to the same end in both; where it does not, DIFFERENCES says which wall it met. With --session the
cell is that of a session, in which all three libraries are loaded already. Debian leaves out
matplotlib's reference images: tests that compare pictures cannot run anywhere and are left out.
"""

import collections
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "warm"), os.path.join(HERE, "..", "harness")]

import host                                       # noqa: E402
from parts import stage                           # noqa: E402
from supervisor import Supervisor                 # noqa: E402

PYTHON = "/usr/bin/python3"
LIMIT_S = 900
NOBODY = 65534
MEMORY = "3G"       # of the policy

# Library; its tests, beneath its folder; what pytest is told besides.
SUITES = (
    ("numpy", ["core/tests/test_%s.py" % name for name in (
        "indexing", "numeric", "shape_base", "scalarmath", "ufunc", "umath")] +
     ["fft/tests", "ma/tests/test_core.py", "polynomial/tests", "lib/tests/test_function_base.py"],
     ()),
    ("pandas", ["tests/" + path for path in (
        "frame/test_constructors.py", "frame/methods/test_sort_values.py",
        "frame/methods/test_describe.py", "groupby/test_groupby.py", "io/parser/common",
        "reshape/merge/test_merge.py", "series/methods/test_fillna.py")], ()),
    ("matplotlib", ["tests/test_%s.py" % name for name in (
        "category", "cbook", "colors", "dates", "figure", "lines", "path", "pyplot", "rcparams",
        "scale", "ticker", "transforms")],
     # Pictures; and two that race against a clock.
     ("-k", "not png and not pdf and not svg and not image_comparison and "
            "not invisible_Line_rendering and not test_ginput")),
)
# Library, pattern of the tests, (outside, inside), and the wall.
DIFFERENCES = (
    ("numpy", r"test_identityless_reduction_huge_array|test_mean_overflow", ("passed", "failed"),
     "they read /proc/meminfo, and a cell's /proc shows its own processes alone"),
    ("matplotlib", r"test_backend_fallback_headless", ("passed", "failed"),
     "it starts another interpreter, and the policy runs no programs"),
)


def arguments(library, paths, more):
    top = os.path.dirname(importlib.util.find_spec(library).origin)
    return ["--rootdir", top, *more, *(os.path.join(top, path) for path in paths)]


def environment(folder):
    """What a cell's environment is, so that this is no difference."""
    threads = ("OPENBLAS", "OMP", "MKL", "NUMEXPR")
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "MPLBACKEND": "Agg",
            "HOME": folder, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1",
            **{name + "_NUM_THREADS": "2" for name in threads}}


def read(text):
    lines = text.rstrip().splitlines() or [""]
    try:
        return json.loads(lines[-1])
    except ValueError:
        return {"code": None, "outcomes": {}, "said": "\n".join(lines[-15:])}


def outside(folder, words):
    def as_nobody():    # the cell's user has no rights either
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
    os.makedirs(folder, mode=0o777, exist_ok=True)
    os.chmod(folder, 0o777)
    done = subprocess.run([PYTHON, os.path.join(HERE, "inside.py"), *words], cwd=folder,
                          env=environment(folder), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                          preexec_fn=as_nobody)
    return read(done.stdout)


def policy_of(made):
    policy = os.path.join(made.base, "suites.yaml")
    with open(os.path.join(HERE, "..", "policies", "suites.yaml")) as source, \
            open(policy, "w") as target:
        target.write(source.read())
    os.chmod(policy, 0o644)
    return policy


def inside(made, words, options=None):
    """In a cold cell, or where the options say."""
    options = options or ["--cold", "--policy", policy_of(made)]
    done = subprocess.run([made.program, "run", "--json", *options,
                           os.path.join(HERE, "inside.py"), "--", *words],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S)
    try:
        outcome = json.loads(done.stdout)
    except ValueError:
        return {"code": None, "outcomes": {}, "said": done.stdout[-2000:]}
    if outcome["status"] != "ok":
        return {"code": None, "outcomes": {}, "said": "%s: %s %s" % (
            outcome["status"], outcome["message"], outcome["stderr"][-2000:])}
    return read(outcome["stdout"])


def in_session(made, words):
    """In a session that has had a run before, and answers afterwards."""
    with Supervisor(made.program, made.identity, {"suites": policy_of(made)},
                    ["--memory-budget", MEMORY]) as served:
        new = served.call("session", "new", "--socket", served.socket, "--policy", "suites")
        options = ["--socket", served.socket, "--session", new.stdout.decode().strip()]
        before = served.call("run", *options, "-c", "import numpy, pandas; kept = 1")
        if new.returncode or before.returncode:
            return {"code": None, "outcomes": {}, "said": repr((new.stderr, before.stderr))}
        found = inside(made, words, options)
        after = served.call("run", *options, "-c", "print(kept)")
        if after.stdout != b"1\n":
            found["said"] = "the session does not answer: %r" % (after.stderr,)
        return found


def both(made, library, paths, more, place):
    words, found = arguments(library, paths, more), {}
    with host.scratch() as folder:
        thread = threading.Thread(target=lambda: found.update(
            outside=outside(os.path.join(folder, "outside"), words)))
        thread.start()
        try:
            found["inside"] = place(made, words)
        finally:
            thread.join()
    return found["outside"], found["inside"]


def explained(library, test, pair):
    return any(lib == library and (out, within) == pair and re.search(pattern, test)
               for lib, pattern, (out, within), _ in DIFFERENCES)


def compare(tap, library, out, within):
    count = lambda one: dict(collections.Counter(one["outcomes"].values()))    # noqa: E731
    name = "%s: outside %s, inside %s" % (library, count(out), count(within))
    problems = [one["said"] for one in (out, within) if "said" in one]
    names = sorted(set(out["outcomes"]) | set(within["outcomes"]))
    pairs = {test: (out["outcomes"].get(test, "not run"), within["outcomes"].get(test, "not run"))
             for test in names}
    different = {test: pair for test, pair in pairs.items() if pair[0] != pair[1]}
    problems += ["%s: %s outside, %s inside" % (test, *pair) for test, pair in different.items()
                 if not explained(library, test, pair)][:20]
    if count(within).get("passed", 0) < 500:
        problems.append("hardly anything has run")
    tap.point(name, problems)
    for lib, pattern, pair, wall in DIFFERENCES:
        if lib == library:
            met = [test for test in different if different[test] == pair and
                   re.search(pattern, test)]
            tap.point("%s: %d of %s: %s" % (library, len(met), pattern, wall),
                      [] if met else ["no test meets that wall any more"])


def main():
    place = in_session if "--session" in sys.argv else inside
    sys.argv = [word for word in sys.argv if word != "--session"]
    with stage(__doc__) as (tap, made):
        for library, paths, more in SUITES if made else ():
            missing = [name for name in (library, "pytest", "hypothesis")
                       if importlib.util.find_spec(name) is None]
            if missing:
                tap.point(library, skip="%s is not installed" % missing[0])
                continue
            out, within = both(made, library, paths, more, place)
            compare(tap, library, out, within)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
