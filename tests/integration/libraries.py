"""The libraries that people use, as the distribution packages them: `libraries.py BUILD`.

Each program runs under each profile that allows it, with the limits as shipped, as root and as
an ordinary user. It must succeed, say nothing on stderr and meet no wall by accident: filters and
process limits that break libraries are the first complaint about any sandbox. Prints TAP.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))

import cell          # noqa: E402
import host          # noqa: E402
import leftovers     # noqa: E402
from tap import Tap  # noqa: E402

PYTHON = "/usr/bin/python3"
ALL = ("strict", "standard", "open")

# What importing them may be refused: platform.processor() asks `uname -p`, and matplotlib's font
# manager `fc-list`. They take the refusal for an answer, and the record of it stays.
PROBES = re.compile(r"seccomp system-call (execve|vfork|clone)\b.*the policy allows no")

# Prints how many threads a matrix product leaves in the process, and whether OpenBLAS did it.
NUMPY = """
import os
import numpy as np
a = np.random.default_rng(1).random((700, 700))
b = a @ a
print(b.shape, bool(np.allclose(b[0, 0], a[0] @ a[:, 0])))
print(round(float(np.linalg.det(np.eye(50) * 2) / 2 ** 50), 6))
print("openblas" in open("/proc/self/maps").read(), len(os.listdir("/proc/self/task")))
"""
PANDAS = """
import pandas as pd
df = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], "n": [2, 3, 4],
                   "day": pd.date_range("2024-01-01", periods=3, tz="Europe/Rome")})
df.to_csv("/tmp/cities.csv", index=False)
back = pd.read_csv("/tmp/cities.csv", parse_dates=["day"])
print(back.groupby("city")["n"].sum().to_dict())
print(back.merge(df[["city"]].drop_duplicates()).shape, df["n"].rolling(2).mean().tolist()[1:])
"""
MATPLOTLIB = """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [4, 1, 5], label="\\N{GREEK SMALL LETTER ALPHA} $x^2$")
plt.title("title")
plt.legend()
plt.savefig("/tmp/plot.png")
plt.savefig("/tmp/plot.pdf")
print(open("/tmp/plot.png", "rb").read(4), open("/tmp/plot.pdf", "rb").read(5))
"""
SCIPY = """
import os
import numpy as np
from scipy import integrate, linalg, optimize, signal, sparse, stats
a = np.random.default_rng(1).random((400, 400)) + 400 * np.eye(400)
x = linalg.solve(a, np.ones(400))
print(bool(np.allclose(a @ x, 1)))
print(round(optimize.minimize(lambda v: (v[0] - 3) ** 2, [0.0]).x[0], 3))
print(round(integrate.quad(np.sin, 0, np.pi)[0], 6), round(stats.norm.cdf(0), 3))
print(sparse.eye(3).nnz, signal.butter(2, 0.5)[0].shape)
"""
SKLEARN = """
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
x, y = make_classification(300, random_state=1)
x = StandardScaler().fit_transform(x)
print(RandomForestClassifier(20, n_jobs=%(jobs)d, random_state=1).fit(x, y).score(x, y) > 0.9)
print(LogisticRegression().fit(x, y).score(x, y) > 0.8)
print(KMeans(3, n_init=2, random_state=1).fit(x).cluster_centers_.shape)
"""
# Worker processes of joblib are programs of their own: only `open` may execute.
LOKY = """
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
if __name__ == "__main__":
    x, y = make_classification(200, random_state=1)
    found = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, n_jobs=2).fit(x, y)
    print(found.best_score_ > 0.7)
"""
# What setuptools' *-nspkg.pth does at every start, in a cell without importlib.util.
NAMESPACE = """
import sys
module = sys.modules["mpl_toolkits"]
print(module.__name__, type(module).__name__, [p.rpartition("/")[2] for p in module.__path__])
print("importlib.util" in sys.modules)
import mpl_toolkits.mplot3d
print(mpl_toolkits is module, mpl_toolkits.mplot3d.__name__)
"""
TOGETHER = """
import numpy, pandas, matplotlib.pyplot, scipy.stats, sklearn.linear_model
print("imported")
"""


class Program:
    """One program: the packages that it needs and what it prints."""

    def __init__(self, name, needs, code, wanted, profiles=ALL, check=None):
        self.name, self.needs, self.code, self.wanted = name, needs, code, wanted
        self.profiles, self.check = profiles, check


class NoOpenBlas(Exception):
    """Debian's numpy works with any BLAS; the reference one has no threads to lose."""


def threads_used(profile, stdout):
    """Where there is OpenBLAS and a second CPU, it must use it, and under strict must not."""
    openblas, threads = stdout.splitlines()[-1].split()
    threads, cpus = int(threads), len(os.sched_getaffinity(0))
    if openblas != "True":
        raise NoOpenBlas()
    if profile == "strict":
        return [] if threads == 1 else ["%d threads under strict" % threads]
    if cpus > 1 and threads < 2:
        return ["OpenBLAS used one thread of %d CPUs" % cpus]
    return []


PROGRAMS = [
    Program("numpy", ["numpy"], NUMPY, "(700, 700) True\n1.0\n", check=threads_used),
    Program("pandas", ["pandas"], PANDAS, "{'Oslo': 3, 'Rome': 6}\n(3, 3) [2.5, 3.5]\n"),
    Program("matplotlib", ["matplotlib"], MATPLOTLIB, "b'\\x89PNG' b'%PDF-'\n"),
    Program("scipy", ["scipy"], SCIPY, "True\n3.0\n2.0 0.5\n3 (3,)\n"),
    Program("scikit-learn", ["sklearn"], SKLEARN % {"jobs": 2}, "True\nTrue\n(3, 20)\n",
            profiles=("standard", "open")),
    Program("scikit-learn, one job", ["sklearn"], SKLEARN % {"jobs": 1},
            "True\nTrue\n(3, 20)\n", profiles=("strict",)),
    Program("scikit-learn, worker processes", ["sklearn"], LOKY, "True\n", profiles=("open",)),
    Program("a namespace package", ["matplotlib"], NAMESPACE,
            "mpl_toolkits module ['mpl_toolkits']\nFalse\nTrue mpl_toolkits.mplot3d\n"),
    Program("all of them", ["numpy", "pandas", "matplotlib", "scipy", "sklearn"], TOGETHER,
            "imported\n"),
]


def missing(name):
    probe = [PYTHON, "-c", "import " + name]
    return subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True).returncode != 0


def problems_of(program, profile, result):
    problems = cell.problems_of_form(result)
    if result.outcome is None or result.hung:
        return problems + [result.describe()]
    if result.status != "ok":
        problems.append("status must be ok")
    if not result.stdout.startswith(program.wanted):
        problems.append("stdout must begin with %r" % program.wanted)
    elif not program.check and result.stdout != program.wanted:
        problems.append("stdout must be %r" % program.wanted)
    if result.stderr:
        problems.append("stderr must be empty")
    problems += ["no such incident may be recorded: " + text for text in result.incidents()
                 if profile == "open" or not PROBES.match(text)]
    return problems + ([result.describe()] if problems else [])


def write_program(base, name, code):
    # Never the library's own name: the program's folder comes first on sys.path.
    source = os.path.join(base, "programs", "use_%s.py" % re.sub(r"\W+", "_", name))
    os.makedirs(os.path.dirname(source), exist_ok=True)
    with open(source, "w") as file:
        file.write(code)
    host.open_up(os.path.dirname(source))
    return source


def read_once(program):
    """The libraries' files come from the disk once outside: scipy's are a hundred megabytes, and
    what is tested is the cell, in five seconds, not how fast this machine's disk is."""
    imports = [line for line in program.code.splitlines()
               if line.startswith(("import ", "from "))]
    subprocess.run([PYTHON, "-c", "\n".join(imports)], stdin=subprocess.DEVNULL,
                   capture_output=True, timeout=300)


def run_program(tap, adyton, base, program, profile, identity, watch):
    source = write_program(base, program.name, program.code)
    policy = os.path.join(base, "policies", "plain.yaml" if profile == "standard"
                          else "plain-%s.yaml" % profile)
    result = cell.run(adyton, identity, ["--policy", policy], source, limit_s=120)
    problems = problems_of(program, profile, result)
    used = result.get("usage") or {}
    tap.point("%s under %s as %s" % (program.name, profile, identity.label),
              problems + watch.leftovers())
    if program.check and not problems:
        name = "OpenBLAS threads under %s as %s" % (profile, identity.label)
        try:
            tap.point(name, program.check(profile, result.stdout))
        except NoOpenBlas:
            tap.point(name, skip="numpy here does not use OpenBLAS (libopenblas0-pthread)")
    tap.note("%.2f s, %s ms of CPU, peak %s MiB" % (
        result.seconds, used.get("cpu_ms"), (used.get("peak_memory_bytes") or 0) >> 20))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="the program, or the folder that holds it")
    parser.add_argument("--only", help="one program's name")
    args = parser.parse_args()
    tap = Tap()
    host.become_subreaper()
    os.umask(0o022)
    with host.scratch() as base, contextlib.ExitStack() as stack:
        adyton = host.install(args.build, base)
        shutil.copytree(os.path.join(HERE, "..", "policies"), base + "/policies")
        host.open_up(base + "/policies")
        identities = [host.as_root(base)] if os.geteuid() == 0 else []
        identities.append(host.as_user(base))
        for identity in identities:
            if identity.groups:
                stack.callback(identity.groups.remove)
        watch = leftovers.Watch(identities)
        refused = cell.refusal(adyton, identities[0], base + "/policies/plain.yaml",
                               write_program(base, "nothing", "pass\n"))
        if refused:
            tap.point("all libraries", skip=refused)
            return tap.finish()
        for program in PROGRAMS:
            if args.only and program.name != args.only:
                continue
            absent = [name for name in program.needs if missing(name)]
            if not absent:
                read_once(program)
            for profile in program.profiles:
                for identity in identities:
                    if absent:
                        tap.point("%s under %s as %s" % (program.name, profile, identity.label),
                                  skip="%s has no %s" % (PYTHON, ", ".join(absent)))
                    else:
                        run_program(tap, adyton, base, program, profile, identity, watch)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
