"""A fork is a fresh interpreter: `fork.py BUILD`. Prints TAP.

A thousand warm cells draw as many different numbers from every source of them; the numeric
libraries work; the zygote keeps to one thread; nothing of it can be reached from a program; and
what a program sees of itself is what it sees in a cold cell, but for DIFFERENCES.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from parts import ran_warm, stage, watch          # noqa: E402
from supervisor import Connection                 # noqa: E402

CELLS = 1000
PYTHON = "/usr/bin/python3"

DRAW = """
import random, uuid, secrets, tempfile, os
drawn = {"random.random": random.random(), "uuid.uuid4": str(uuid.uuid4()),
         "secrets.token_hex": secrets.token_hex(), "tempfile.mktemp": tempfile.mktemp(),
         "os.urandom": os.urandom(16).hex()}
try:
    import numpy
except ImportError:
    pass
else:
    drawn["numpy.random.rand"] = float(numpy.random.rand())
    drawn["numpy.random.default_rng"] = float(numpy.random.default_rng().random())
import json
print(json.dumps(drawn))
"""
# The fault that is looked for, made on purpose: a fork without a new seed.
CONTROL = """
import os, sys, numpy.random
for _ in range(2):
    if os.fork() == 0:
        print(numpy.random.rand(), flush=True)
        os._exit(0)
    os.wait()
"""
# Of whole numbers: the product is exact, however it is divided among threads.
PRODUCT = """
import numpy, hashlib
a = numpy.arange(250000, dtype=float).reshape(500, 500) % 97
print(hashlib.sha256((a @ a).tobytes()).hexdigest())
print(round(float(numpy.linalg.slogdet(a + numpy.eye(500) * 5000)[1]), 6))
"""
THREADS = """
import numpy, os
a = numpy.ones((700, 700))
b = a @ a
print(len(os.listdir("/proc/self/task")))
"""
SPIN = """
import os, time
import numpy
time.sleep(0.3)
ticks = []
for thread in os.listdir("/proc/self/task"):
    with open("/proc/self/task/%s/stat" % thread) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    if int(thread) != os.getpid():
        ticks.append(int(fields[11]) + int(fields[12]))
print(len(ticks), max(ticks, default=0))
"""
NO_THREADS = "import os\nprint(len(os.listdir('/proc/self/task')))"
REACH = """
import gc, os, sys, types, json
chain, frame = [], sys._getframe()
while frame:
    chain.append(frame.f_code.co_filename)
    frame = frame.f_back
def theirs():
    found = []
    for it in gc.get_objects():
        if isinstance(it, types.FrameType) and it.f_code.co_filename != __file__:
            found.append("a frame of " + it.f_code.co_filename)
        elif isinstance(it, types.ModuleType) and vars(it).get("__name__") == "_adyton":
            found.append(repr(it))
        elif type(it) is types.BuiltinFunctionType and it.__name__ in ("zygote", "main"):
            found.append(repr(it))
        elif type(it) is dict and it is not globals() and "m" in it and "f" in it and \\
                getattr(it["f"], "__name__", "") == "_frozen_importlib":
            found.append("the globals of the boot program")
    return found
held = theirs()
gc.unfreeze()       # what the zygote has set aside
held += theirs()
fds = {}
for name in os.listdir("/proc/self/fd"):
    try:
        fds[name] = os.readlink("/proc/self/fd/" + name).partition(":")[0]
    except OSError:
        pass        # that of the listing itself
print(json.dumps({"chain": chain, "held": held, "fds": fds,
                  "frames": len(sys._current_frames()), "modules": "_adyton" in sys.modules}))
"""
# Keys of SEEN that may differ, and why.
DIFFERENCES = {
    "ppid": "the factory, which stands outside of the cell, is the parent: 0 instead of 1",
    "session": "a session of its own instead of its init's",
    "frozen": "gc.freeze keeps the collector from writing to shared pages",
    "command line": "the kernel shows that of the zygote; sys.argv is the program's",
    "first environment": "the kernel shows the zygote's block; os.environ is the program's",
    "bounding set": "a warm cell has dropped what a cold one cannot use",
    "modules": "those of the preload list are imported",
    "meta path": "six, a library of the preload list, adds a finder",
    "warning filters": "numpy, a library of the preload list, adds filters",
    "mounts": "the factory's lie beneath the cell's own, out of reach",
    "filters of paths": "folders of modules that were imported are known",
}
SEEN = """
import sys, os, json, gc, signal, threading, resource, tempfile, locale, warnings
def read(name):
    with open("/proc/self/" + name) as file:
        return file.read()
def kind(it):
    return getattr(it, "__name__", type(it).__name__)
status = dict(line.split(":\\t", 1) for line in read("status").splitlines())
own = {k: repr(v).partition(" at 0x")[0] for k, v in globals().items()
       if k.startswith("__")}
seen = {
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "main": own,
    "environ": dict(os.environ), "cwd": os.getcwd(), "umask": os.umask(0o22),
    "pid": os.getpid(), "ppid": os.getppid(), "session": os.getsid(0), "group": os.getpgid(0),
    "users": [os.getresuid(), os.getresgid(), os.getgroups()], "flags": str(sys.flags),
    "executable": [sys.executable, sys.prefix, sys.base_prefix],
    "warn options": sys.warnoptions, "bytecode": sys.dont_write_bytecode,
    "switch": sys.getswitchinterval(), "recursion": sys.getrecursionlimit(),
    "collector": [gc.isenabled(), gc.get_threshold()], "frozen": gc.get_freeze_count() > 0,
    "streams": [[s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through]
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "threads": [t.name for t in threading.enumerate()],
    "main thread": threading.main_thread().ident == threading.get_ident()
                   and threading.main_thread().native_id == threading.get_native_id(),
    "handlers": {int(n): repr(signal.getsignal(n)) for n in signal.valid_signals()
                 if signal.getsignal(n) not in (signal.SIG_DFL, None)},
    "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    "timers": [signal.getitimer(n) for n in (0, 1, 2)],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource)
               if n.startswith("RLIMIT_")},
    "name": read("comm"), "command line": read("cmdline"), "oom": read("oom_score_adj"),
    "first environment": sorted(read("environ").split("\\0")),
    "caps": [status.get(k) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")],
    "bounding set": status.get("CapBnd"),
    "status": [status.get(k) for k in ("NoNewPrivs", "Seccomp", "Threads", "SigIgn", "Groups")],
    "nice": os.nice(0), "cpus": len(os.sched_getaffinity(0)),
    "temporary": [tempfile.tempdir, sorted(os.listdir("/tmp")), tempfile.gettempdir()],
    "root": sorted(os.listdir("/")), "run": sorted(os.listdir("/run")),
    "dev": sorted(os.listdir("/dev")), "locale": locale.setlocale(locale.LC_ALL),
    "processes": sorted(n for n in os.listdir("/proc") if n.isdigit()),
    "modules": len(sys.modules), "meta path": [kind(f) for f in sys.meta_path],
    "hooks": [kind(h) for h in sys.path_hooks], "warning filters": len(warnings.filters),
    "mounts": len(read("mounts").splitlines()), "hook": repr(sys.excepthook).split(" at")[0],
    "filters of paths": len(sys.path_importer_cache), "profile": [sys.getprofile(), sys.gettrace()],
}
print(json.dumps(seen))
"""


def draw(connection):
    """Outcomes of CELLS runs, a few of them on their way at a time."""
    outcomes, started, ahead = [], 0, 3
    while len(outcomes) < CELLS:
        while started < CELLS and started - len(outcomes) < ahead:
            connection.start(DRAW, policy="plain")
            started += 1
        outcomes.append(connection.finish()[1])
    return outcomes


def check_draws(tap, served):
    with Connection(served.socket) as connection:
        outcomes = draw(connection)
    wrong = [o.get("message") or o.get("stderr") for o in outcomes if o.get("status") != "ok"]
    wrong += [text for o in outcomes for text in ran_warm(o)]
    tap.point("%d warm cells have run" % CELLS, wrong[:5])
    drawn = [json.loads(o["stdout"]) for o in outcomes if o.get("status") == "ok"]
    for name in drawn[0] if drawn else ():
        different = len({one[name] for one in drawn})
        tap.point("%s: %d cells, as many values" % (name, CELLS),
                  [] if different == CELLS else ["%d different ones" % different])


def check_control(tap):
    name = "control: a fork without a new seed repeats numpy's numbers"
    done = subprocess.run([PYTHON, "-c", CONTROL], capture_output=True, text=True)
    if done.returncode != 0:
        tap.point(name, skip="%s has no numpy" % PYTHON)
        return
    lines = done.stdout.split()
    tap.point(name, [] if len(lines) == 2 and lines[0] == lines[1] else [done.stdout])


def has_numpy():
    return subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True).returncode == 0


def check_product(tap, made, served):
    name = "a product of matrices is that of a cold cell"
    if not has_numpy():
        tap.point(name, skip="%s has no numpy" % PYTHON)
        return
    warm, cold = served.run(PRODUCT, policy="plain"), made.cold(served, PRODUCT)
    problems = ran_warm(warm)
    if warm["status"] != "ok" or warm["stdout"] != cold["stdout"]:
        problems.append("%r, not %r (%s)" % (warm["stdout"], cold["stdout"], warm["stderr"]))
    tap.point(name, problems)


def check_product_threads(tap, made, served):
    """OpenBLAS has one thread in the zygote, and in a cell as many as in a cold one."""
    name = "a product of matrices has as many threads as in a cold cell"
    if not has_numpy():
        tap.point(name, skip="%s has no numpy" % PYTHON)
        return
    warm, cold = served.run(THREADS, policy="plain"), made.cold(served, THREADS)
    problems = ran_warm(warm) + ([] if warm["stdout"] == cold["stdout"] and warm["stdout"] else
                                 ["%r, not %r" % (warm["stdout"], cold["stdout"])])
    tap.point(name, problems, None if problems or cold["stdout"] != "1\n" else
              "a cold cell has one here, too")
    idle = served.run(SPIN, policy="plain")
    threads, ticks = (int(word) for word in idle["stdout"].split() or (0, 99))
    tap.point("a thread that has nothing to compute sleeps soon", ran_warm(idle) +
              ([] if ticks <= 1 and (threads > 0 or cold["stdout"] == "1\n") else
               ["%d threads, the busiest of them used %d ticks" % (threads, ticks)]))
    none = served.run(NO_THREADS, policy="plain")
    tap.point("a program without matrices has one thread", ran_warm(none) +
              ([] if none["stdout"] == "1\n" else [none["stdout"]]))


def check_threads(tap, served):
    tree, problems = served.await_idle(), []
    for pid in tree.zygotes():
        with open("/proc/%d/status" % pid) as file:
            threads = [line.split()[1] for line in file if line.startswith("Threads:")]
        if threads != ["1"]:
            problems.append("the zygote %d has %s threads" % (pid, threads))
    if not tree.zygotes():
        problems.append("there is no zygote to look at")
    tap.point("each zygote has one thread after them", problems)


def check_reach(tap, served):
    outcome = served.run(REACH, policy="plain")
    problems = ran_warm(outcome)
    if outcome["status"] != "ok":
        tap.point("nothing of the zygote can be reached", problems + [outcome["stderr"]])
        return
    seen = json.loads(outcome["stdout"])
    tap.point("frames: the program's own alone",
              problems + ([] if len(seen["chain"]) == seen["frames"] == 1 else [seen["chain"]]))
    tap.point("objects: gc shows none of the guest's, frozen ones included", seen["held"])
    tap.point("modules: the guest's is none", ["it is"] if seen["modules"] else [])
    tap.point("descriptors: the three streams",
              [] if seen["fds"] == {n: "pipe" for n in "012"} else [seen["fds"]])


def check_seen(tap, made, served):
    arguments = ["a", "", "b c"]
    warm = served.run(SEEN, policy="plain", arguments=arguments)
    cold = made.cold(served, SEEN, arguments=arguments)
    if warm["status"] != "ok" or cold["status"] != "ok":
        tap.point("what a program sees of itself", [warm["stderr"], cold["stderr"]])
        return
    ours, theirs = json.loads(warm["stdout"]), json.loads(cold["stdout"])
    for name in ours:
        problems = ran_warm(warm)
        if ours[name] != theirs[name] and name not in DIFFERENCES:
            problems.append("warm %r, cold %r" % (ours[name], theirs[name]))
        tap.point("seen: %s%s" % (name, " (may differ)" if name in DIFFERENCES else ""), problems)
    tap.point("every difference is one of something seen",
              [name for name in DIFFERENCES if name not in ours])


def main():
    with stage(__doc__) as (tap, made):
        if made:
            before = watch(made)
            with made.supervisor() as served:
                served.await_idle()
                check_control(tap)
                check_draws(tap, served)
                check_threads(tap, served)
                check_product(tap, made, served)
                check_product_threads(tap, made, served)
                check_reach(tap, served)
                check_seen(tap, made, served)
                problems = served.end()
            tap.point("nothing is left", problems + before.leftovers(3.0))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
