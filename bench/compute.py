#!/usr/bin/env python3
"""How fast programs compute in a warm cell:  bench/compute.py ADYTON [--rounds N] [--json]

Each workload (workloads.py) runs in a warm cell and outside, in turn, the next round the other way
round; the program itself measures its work, so that starting it does not count. Told are medians,
the median of the ratios within each pair, and what the work has added to the process's own memory
in pages, inside and outside. Figures are reported, never judged.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import warm         # noqa: E402
import workloads    # noqa: E402

POLICY = "name: compute\nextends: standard\nvalidation: off\ntimeout: 60s\ncpu_time: 60s\nmemory: 1G\n"
MEASURE = """
import gc as _gc, json as _json, time as _time
def _pages():
    with open("/proc/self/status") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("RssAnon")) // 4
_gc.collect()
_before = _pages()
_wall, _cpu = _time.perf_counter(), _time.process_time()
_result = work()
_wall, _cpu = _time.perf_counter() - _wall, _time.process_time() - _cpu
print(_json.dumps([_wall * 1e3, _cpu * 1e3, _pages() - _before, repr(_result)]))
"""


def inside(client, code):
    client.count += 1
    client.send({"type": "run", "id": "c%d" % client.count, "policy": "compute", "code": code})
    outcome = client.finish()
    if outcome["status"] != "ok" or outcome["engine"]["start"] == "cold":
        raise RuntimeError("%r" % outcome)
    return json.loads(outcome["stdout"])


def outside(code, threads):
    done = subprocess.run([warm.PYTHON, "-B", "-c", code], stdout=subprocess.PIPE, check=True,
                          env={**warm.BARE_ENVIRONMENT, "OPENBLAS_NUM_THREADS": threads})
    return json.loads(done.stdout)


def pair(client, code, threads, inside_first):
    """(inside, outside), run in that order or the other."""
    if inside_first:
        first = inside(client, code)
        return first, outside(code, threads)
    first = outside(code, threads)
    return inside(client, code), first


def measure(client, rounds, names, threads):
    pairs = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names:
            code = workloads.ALL[name] + MEASURE
            both = pair(client, code, threads, number % 2 == 0)
            if both[0][3] != both[1][3]:
                raise RuntimeError("%s: %s inside, %s outside" % (name, both[0][3], both[1][3]))
            if number > 0:      # the first is to warm up
                pairs[name].append(both)
    return pairs


def summary(pairs):
    rows = {}
    for name, both in pairs.items():
        column = lambda side, at: statistics.median(pair[side][at] for pair in both)
        ratio = lambda at: statistics.median(a[at] / b[at] for a, b in both)
        least = min(a[1] for a, _ in both) / min(b[1] for _, b in both)
        rows[name] = {"inside_ms": column(0, 0), "outside_ms": column(1, 0),
                      "wall_ratio": ratio(0), "cpu_ratio": ratio(1), "least_cpu_ratio": least,
                      "inside_pages": column(0, 2), "outside_pages": column(1, 2)}
    return rows


def show(rows, rounds):
    print("%d rounds, load %.1f\n" % (rounds, os.getloadavg()[0]))
    print("%-28s %9s %9s %7s %7s %7s  %s" % ("", "inside", "outside", "wall", "CPU", "least",
                                             "pages added, inside and outside"))
    for name, row in rows.items():
        print("%-28s %6.1f ms %6.1f ms %7.3f %7.3f %7.3f  %d, %d" % (
            name, row["inside_ms"], row["outside_ms"], row["wall_ratio"], row["cpu_ratio"],
            row["least_cpu_ratio"], row["inside_pages"], row["outside_pages"]))
    means = [statistics.geometric_mean(row[key] for row in rows.values())
             for key in ("wall_ratio", "cpu_ratio", "least_cpu_ratio")]
    print("%-28s %9s %9s %7.3f %7.3f %7.3f" % ("geometric mean", "", "", *means))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("adyton")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--threads", default=str(len(os.sched_getaffinity(0))),
                        help="of BLAS outside; inside it is what the policy leaves")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = [name for name in workloads.ALL if options.only in name]
    with tempfile.TemporaryDirectory(prefix="compute-") as folder:
        policy = os.path.join(folder, "compute.yaml")
        with open(policy, "w") as file:
            file.write(POLICY)
        supervisor = warm.Supervisor(options.adyton, folder, "s", "--policy", policy)
        try:
            client = warm.Client(supervisor.path)
            while True:     # until its cells are warm
                try:
                    inside(client, "print([0, 0, 0, 0])")
                    break
                except RuntimeError:
                    continue
            rows = summary(measure(client, options.rounds, names, options.threads))
        finally:
            supervisor.stop()
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
