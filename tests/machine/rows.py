"""What is run in the machine, and what must come of it. Data; knows nothing of who runs it."""

HELD = ["user", "mount", "pid", "net", "ipc", "uts", "cgroup-ns", "cgroup:v2", "rlimits",
        "capabilities", "no_new_privs", "landlock:2", "seccomp"]
MIB = 1 << 20
CELL_UIDS = 1879048192   # where the uids begin that root gives to cells

AVERAGE = """
numbers = [10, 20, 30, 40, 50]
print("Average value:", sum(numbers) / len(numbers))
print(open("/proc/self/cgroup").read().strip())
"""
BURN = """
import os
for n in range(3):
    if os.fork() == 0:
        break
while True:
    pass
"""
HOG = """
kept = []
while True:
    kept.append(b"x" * (1 << 20))
"""
# No child is over the limit by itself; only what they have together is.
HOGS = """
import os, time
for n in range(6):
    if os.fork() == 0:
        kept = b"x" * (16 << 20)
        time.sleep(60)
time.sleep(60)
"""
# More than its memory, less than that and the machine's swap.
LARGE = """
kept = b"x" * (80 << 20)
print("it fits")
"""
# Stays as it is until it is looked at.
STAY = """
import os, time
if os.fork() == 0:
    time.sleep(600)
print("begun", flush=True)
time.sleep(600)
"""
FILES = """
with open("big", "wb") as file:
    while True:
        file.write(b"x" * (1 << 20))
"""
FORKS = """
import os, time
while True:
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
"""
THREADS = """
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
"""
BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for n in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(n, signal.SIG_IGN)
    if os.fork() == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        time.sleep(600)
    os._exit(0)
os.wait()
print("left")
"""
LIBRARIES = """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy
import pandas
table = pandas.DataFrame({"x": numpy.arange(100), "y": numpy.arange(100) ** 2})
table.plot(x="x", y="y")
plt.savefig("plot.png")
print(int(table.y.sum()), open("plot.png", "rb").read(4))
"""
# Arguments: the id of a process outside, of the same user where there is one.
SIGNALS = """
import os, signal, sys, time
child = os.fork()
if child == 0:
    time.sleep(60)
for name, pid in (("outside", int(sys.argv[1])), ("parent", os.getppid()),
                  ("child", child), ("all", -1)):
    try:
        os.kill(pid, signal.SIGKILL)
        print(name, "reached")
    except PermissionError:
        print(name, "refused")
"""
OUTSIDE_FILES = """
for path in ("/etc/passwd", "/proc/1/cmdline", "/opt/machine/inside.py"):
    try:
        open(path).read()
        print(path, "READ")
    except OSError as exc:
        print(path, type(exc).__name__)
try:
    open("/var/tmp/written", "w")
    print("WRITTEN")
except OSError as exc:
    print("write", type(exc).__name__)
"""


class Row:
    """One run: its code and options; the status, limit and output that must come of it."""

    def __init__(self, name, code, status, options=(), limit=None, has=(), least=None,
                 signal=None, error=None):
        self.name, self.code, self.options = name, code, list(options)
        self.status = (status,) if isinstance(status, str) else status
        self.limit, self.has, self.signal, self.error = limit, has, signal, error
        self.least = least or {}   # usage: at least


OK = Row("a program", AVERAGE, "ok", has=("Average value: 30.0", "0::/\n"),
         least={"peak_memory_bytes": MIB, "cpu_ms": 1})
MEMORY = Row("memory of one process", HOG, "memory", ["--memory", "48M"], "memory",
             least={"peak_memory_bytes": 44 * MIB})
PIDS = Row("processes", FORKS, "pids", ["--pids", "12"], "pids")
LEFT = Row("a daemon", DAEMON, "ok", has=("left",))
NUMERIC = Row("numpy, pandas, matplotlib", LIBRARIES, "ok", has=("328350 b'\\x89PNG'",))

ROWS = (
    OK,
    Row("an exception", "1 / 0", "exception", error="ZeroDivisionError"),
    Row("an exit code", "import sys; sys.exit(7)", "exit"),
    Row("a crash", "import os; os.abort()", "crashed", signal="SIGABRT"),
    Row("wall time", "import time; time.sleep(60)", "timeout", ["--timeout", "1s"],
        "timeout"),
    Row("wall time of a stopped process",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout",
        ["--timeout", "1s"], "timeout"),
    Row("CPU time of children", BURN, "timeout", ["--cpu-time", "2s"], "cpu_time",
        least={"cpu_ms": 2000}),
    MEMORY,
    Row("memory of children together", HOGS, "memory", ["--memory", "64M"], "memory"),
    Row("memory of files in /tmp", FILES, "memory", ["--memory", "48M", "--disk", "64M"],
        "memory"),
    Row("too much asked at once", "bytes(1 << 40)", "exception", error="MemoryError"),
    PIDS,
    Row("threads", THREADS, "pids", ["--pids", "12"], "pids"),
    Row("a full /tmp", FILES, "disk", ["--disk", "4M"], "disk"),
    Row("a flood of output", "while True: print('x' * 1000)", "output",
        ["--output", "16K"], "output"),
    LEFT,
    Row("a fork bomb", BOMB, "timeout", ["--pids", "32", "--timeout", "3s"], "timeout"),
)
# A job that narrows its /tmp is of another kind than those that wait.
WARM = tuple(row for row in ROWS if "--disk" not in row.options)
SWAP = Row("memory, where the machine has swap", LARGE, "memory", ["--memory", "48M"],
           "memory")
# What the group of a cell must say with these options: one more process is the cell's init.
GROUP_OPTIONS = ["--memory", "48M", "--pids", "12"]
GROUP = {"memory.max": str(48 * MIB), "memory.swap.max": "0", "memory.oom.group": "1",
         "pids.max": "13"}
