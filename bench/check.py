#!/usr/bin/env python3
"""What validation adds to a run: bench/check.py ADYTON [PAIRS]

A script of 200 lines, run with validation and without, in turn, so that both meet the same noise;
then sources from 1 KiB to 1 MiB of ordinary code, each looked at by `adyton check`. Medians, in
milliseconds, of whole processes with their cells: wall time, which other work on the machine adds
to, and CPU time, which it hardly does. By size it is the least of some, since a cell that is ended
takes its CPU time with it. The target: 2 ms for the 200 lines; linear growth.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

PAIRS = 60
TARGET_MS = 2.0
SIZES_KIB = (1, 4, 16, 64, 256, 1024)
REPEATS = 5

# Ten lines of the kind that models write; numbered so that no two blocks are the same.
BLOCK = '''
def total_{n}(rows, factor={n}):
    """Sum a column, scaled; rows without a value are skipped."""
    values = [row["value"] * factor for row in rows if row.get("value") is not None]
    if not values:
        raise ValueError(f"nothing to sum in {{len(rows)}} rows")
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    table_{n} = {{"mean": round(mean, 3), "spread": spread, "label": "run %d" % {n}}}
    return table_{n}
'''
HEAD = "import json\nimport math\nimport os.path\n"


def source(lines):
    blocks = max(1, (lines - 3) // 10)
    return HEAD + "".join(BLOCK.format(n=n) for n in range(blocks))


def timed(argv):
    """(wall, CPU) of a process and of what it waited for, in milliseconds."""
    began = time.perf_counter()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    took_ms = (time.perf_counter() - began) * 1000
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit("%s: ended with %d" % (argv, child.returncode))
    return took_ms, (usage.ru_utime + usage.ru_stime) * 1000


def added(adyton, path, pairs):
    """Medians with and without validation, and the median of the differences of neighbours."""
    on, off = [], []
    for i in range(pairs + 3):
        order = (on, off) if i % 2 else (off, on)
        for times in order:
            mode = "enforce" if times is on else "off"
            times.append(timed([adyton, "run", "--validation", mode, path]))
    on, off = on[3:], off[3:]
    return [(statistics.median(a[i] for a in off), statistics.median(a[i] for a in on),
             statistics.median(a[i] - b[i] for a, b in zip(on, off))) for i in (0, 1)]


def main():
    adyton = os.path.abspath(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        path = os.path.join(folder, "script.py")
        text = source(200)
        with open(path, "w") as file:
            file.write(text)
        print("a script of %d lines, %d pairs of runs, cold cells:" % (text.count("\n"), pairs))
        for what, (off, on, more) in zip(("wall", "CPU"), added(adyton, path, pairs)):
            print("  %-4s  without validation %6.2f ms   with %6.2f ms   added %5.2f ms   "
                  "(target %.1f)" % (what, off, on, more, TARGET_MS))
        print("adyton check, by size, the least of %d:" % REPEATS)
        base = None
        for kib in SIZES_KIB:
            text = (source(200) * (kib * 1024 // len(source(200)) + 1))[:kib * 1024]
            text = text[:text.rfind("\ndef ")] if kib > 1 else source(20)
            with open(path, "w") as file:
                file.write(text)
            runs = [timed([adyton, "check", path]) for _ in range(REPEATS)]
            wall = min(run[0] for run in runs)
            base = wall if base is None else base
            print("  %5d KiB  %8.1f ms   %6.3f ms for each KiB more"
                  % (len(text) // 1024, wall, (wall - base) / max(1, len(text) / 1024)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
