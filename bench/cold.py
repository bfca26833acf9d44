#!/usr/bin/env python3
"""How long a cold run takes as a whole process, beside bare Python and bubblewrap.

    cold.py [--adyton PATH] [--rounds N] [--warmup N] [--json]

Each round runs the three one after the other, so that what else the machine does meets all of
them; ratios are taken within a round. Nothing is asserted: see README.md.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"   # the one that adyton takes by itself
BUBBLEWRAP = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr",
              "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
              "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
# Debian's BLAS is found through a link there, and matplotlib's settings.
SETTINGS = ["--ro-bind", "/etc", "/etc"]

# Name, code, rounds as a part of those asked for (imports take half a second a run), and what
# bubblewrap needs besides.
WORK = [
    ("pass", "pass", 1.0, []),
    ("mean", "print(sum([10, 20, 30, 40, 50]) / 5)", 1.0, []),
    ("libraries", "import numpy, pandas, matplotlib", 0.2, SETTINGS),
]


def programs(adyton, options, more_of_bubblewrap):
    """Name to the command that a code is appended to; the first is what ratios are against."""
    found = {"python": [PYTHON, "-c"]}
    if adyton:
        found["adyton"] = [adyton, "run", *options, "-c"]
    if shutil.which("bwrap"):
        found["bubblewrap"] = [*BUBBLEWRAP, *more_of_bubblewrap, PYTHON, "-c"]
    return found


def run_once(command, code, environment):
    """(wall, cpu) in milliseconds, from before the fork until the process is reaped."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter_ns()
    done = subprocess.run([*command, code], stdin=subprocess.DEVNULL, env=environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wall_ns = time.perf_counter_ns() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError("%s ended with %d: %s" % (command[0], done.returncode,
                                                     done.stderr.decode()[-500:]))
    cpu_s = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return wall_ns / 1e6, cpu_s * 1e3


def measure(commands, code, rounds, warmup, environment):
    """Name to walls and CPU times, one a round; who begins changes from round to round."""
    names = list(commands)
    taken = {name: {"wall_ms": [], "cpu_ms": []} for name in names}
    for number in range(warmup + rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            wall_ms, cpu_ms = run_once(commands[name], code, environment)
            if number >= warmup:
                taken[name]["wall_ms"].append(wall_ms)
                taken[name]["cpu_ms"].append(cpu_ms)
    return taken


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def summary(taken):
    """Per program: what its times were, and what they were in relation to bare Python's."""
    base = taken["python"]["wall_ms"]
    found = {}
    for name, times in taken.items():
        wall = times["wall_ms"]
        found[name] = {
            "rounds": len(wall),
            "median_ms": statistics.median(wall),
            "p99_ms": percentile(wall, 0.99),
            "min_ms": min(wall),
            # Half of the runs lie between these two.
            "p25_ms": percentile(wall, 0.25),
            "p75_ms": percentile(wall, 0.75),
            "cpu_median_ms": statistics.median(times["cpu_ms"]),
            "ratio_of_medians": statistics.median(wall) / statistics.median(base),
            "median_of_ratios": statistics.median(a / b for a, b in zip(wall, base)),
        }
    return found


def model_name():
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith(("model name", "Model")):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def version_of(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError:
        return None
    return done.stdout.decode().strip().split("\n")[0]


def machine(adyton):
    return {
        "cores": len(os.sched_getaffinity(0)),
        "model": model_name(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "python": version_of([PYTHON, "--version"]),
        "bubblewrap": version_of(["bwrap", "--version"]),
        "adyton": version_of([adyton, "--version"]) if adyton else None,
        "user": "root" if os.geteuid() == 0 else "an ordinary user",
        "load_before": round(os.getloadavg()[0], 2),
    }


def print_table(report):
    host = report["machine"]
    print("%s, %d cores, Linux %s, %s, %s, as %s, load %.2f to %.2f"
          % (host["model"], host["cores"], host["kernel"], host["python"],
             host["bubblewrap"] or "no bubblewrap", host["user"], host["load_before"],
             host["load_after"]))
    head = "%-10s %-11s %7s %10s %10s %10s %10s %10s %10s %8s %8s"
    print(head % ("code", "program", "rounds", "median", "min", "p25", "p75", "p99", "cpu",
                  "ratio", "paired"))
    for code, rows in report["results"].items():
        for name, row in rows.items():
            times = [row[key] for key in ("median_ms", "min_ms", "p25_ms", "p75_ms", "p99_ms",
                                          "cpu_median_ms")]
            print("%-10s %-11s %7d" % (code, name, row["rounds"])
                  + "".join(" %7.2f ms" % time_ms for time_ms in times)
                  + " %8.3f %8.3f" % (row["ratio_of_medians"], row["median_of_ratios"]))


def default_adyton():
    path = os.path.join(HERE, "..", "build", "adyton")
    return os.path.normpath(path) if os.access(path, os.X_OK) else shutil.which("adyton")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adyton", default=default_adyton(), help="the program to measure")
    parser.add_argument("--rounds", type=int, default=200, help="at least 100 for a p99")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--policy", help="a policy for adyton instead of its default")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    options = ["--policy", args.policy] if args.policy else []
    report = {"machine": machine(args.adyton), "results": {}}
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        environment = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        for name, code, part, more in WORK:
            taken = measure(programs(args.adyton, options, more), code,
                            max(20, int(args.rounds * part)), args.warmup, environment)
            report["results"][name] = summary(taken)
            if args.json:
                report.setdefault("samples", {})[name] = taken
    report["machine"]["load_after"] = round(os.getloadavg()[0], 2)
    if args.json:
        json.dump(report, sys.stdout, indent=1)
        print()
    else:
        print_table(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
