#!/usr/bin/env python3
"""Warm cells beside what users would otherwise run:  bench/warm.py ADYTON [options]

Starts supervisors of its own on sockets in a temporary folder, one that imports nothing ahead
and one with the usual modules, and times in turn, so that a machine that grows slower is slower
for all: a run through the socket, the whole process `adyton run`, bare python3, bubblewrap, and
runc or crun where they are installed. Figures are reported, never judged. The ledger is on.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

PYTHON = "/usr/bin/python3"
FEW, PAUSE_US = 10, "3000"
MEAN = ("data = [10, 20, 30, 40, 50]\n"
        "total = sum(data)\n"
        "count = len(data)\n"
        "mean = total / count\n"
        "print('Average value:', mean)\n")
LIBRARIES = "import numpy, pandas, matplotlib.pyplot\n" + MEAN
BUBBLEWRAP = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr",
              "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
              "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", PYTHON, "-c"]
BARE_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg",
                    "HOME": os.environ.get("HOME", "/tmp")}


class Client:
    """One connection to a supervisor; frames as docs/PROTOCOL.md says."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.pending = b""
        self.send({"adyton": 1})
        self.receive()
        self.count = 0

    def send(self, value):
        body = json.dumps(value).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def receive(self):
        while True:
            if len(self.pending) >= 4:
                size, = struct.unpack(">I", self.pending[:4])
                if len(self.pending) >= 4 + size:
                    body = self.pending[4:4 + size]
                    self.pending = self.pending[4 + size:]
                    return json.loads(body)
            got = self.socket.recv(65536)
            if not got:
                raise EOFError("the supervisor has closed the connection")
            self.pending += got

    def start(self, code):
        self.count += 1
        self.send({"type": "run", "id": "b%d" % self.count, "policy": "standard", "code": code})

    def finish(self):
        """The next outcome; what else comes is passed over."""
        while True:
            message = self.receive()
            if message["type"] == "finished":
                return message["outcome"]
            if message["type"] in ("error", "busy"):
                raise RuntimeError("%r" % message)

    def run(self, code):
        began = time.perf_counter()
        self.start(code)
        outcome = self.finish()
        if outcome["status"] != "ok":
            raise RuntimeError("%r" % outcome)
        return (time.perf_counter() - began) * 1e3, outcome["engine"]["start"]


class Supervisor:
    def __init__(self, program, folder, name, *options):
        self.path = os.path.join(folder, name + ".sock")
        self.process = subprocess.Popen(
            [program, "serve", "--socket", self.path, *options], stderr=subprocess.DEVNULL)
        for _ in range(600):
            if os.path.exists(self.path):
                break
            time.sleep(0.05)
        client = Client(self.path)
        for _ in range(600):        # until cells come warm
            if client.run("pass")[1] != "cold":
                break
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def process_ms(command, environment=None):
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return (time.perf_counter() - began) * 1e3


def container(folder, program, code):
    """A bundle for an OCI runtime whose root is this host's /usr, read-only."""
    bundle = os.path.join(folder, program + "-bundle")
    os.makedirs(os.path.join(bundle, "rootfs"), exist_ok=True)
    if subprocess.run([program, "spec"], cwd=bundle, capture_output=True).returncode != 0 and \
            not os.path.exists(os.path.join(bundle, "config.json")):
        return None
    path = os.path.join(bundle, "config.json")
    with open(path) as file:
        spec = json.load(file)
    spec["process"].update(terminal=False, args=[PYTHON, "-c", code], cwd="/")
    for name in ("usr", "lib", "lib64"):
        os.makedirs(os.path.join(bundle, "rootfs", name), exist_ok=True)
    spec["mounts"] += [{"destination": "/" + name, "type": "bind",
                        "source": os.path.realpath("/" + name), "options": ["rbind", "ro"]}
                       for name in ("usr", "lib", "lib64")]
    with open(path, "w") as file:
        json.dump(spec, file)
    command = [program, "run", "--bundle", bundle, "adyton-bench"]
    tried = subprocess.run(command, capture_output=True)
    return command if tried.returncode == 0 else None


def summary(samples):
    samples = sorted(samples)
    at = lambda share: samples[min(len(samples) - 1, int(len(samples) * share))]
    return {"n": len(samples), "p50": at(.5), "p99": at(.99), "min": samples[0],
            "max": samples[-1]}


class Load:
    """bench/load.c: a client in C, whose own work does not count for adyton's."""

    def __init__(self, program, folder, build):
        self.program = program
        subprocess.run(["ninja", "-C", build, "bench/load"], check=True,
                       stdout=subprocess.DEVNULL)
        self.files = {}
        for name, code in (("mean", MEAN), ("libraries", LIBRARIES)):
            self.files[name] = os.path.join(folder, name + ".py")
            with open(self.files[name], "w") as file:
                file.write(code)

    def run(self, supervisor, name, runs, connections=1, *more):
        return subprocess.run(
            [self.program, supervisor.path, self.files[name], str(runs), str(connections),
             *more], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout

    def each_ms(self, supervisor, name):
        """A few runs, a moment apart, as an agent sends them."""
        text = self.run(supervisor, name, FEW, 1, PAUSE_US, "each")
        return [float(line) / 1e3 for line in text.split()]


def rows_of(program, folder, plain, full, load):
    """Name to (function that gives milliseconds, or several, share of the rounds)."""
    rows = {
        "socket, plain": (lambda: load.each_ms(plain, "mean"), FEW),
        "socket, libraries loaded": (lambda: load.each_ms(full, "libraries"), FEW),
        "process `adyton run`, warm": (lambda: process_ms(
            [program, "run", "--socket", plain.path, "-c", MEAN]), 10),
        "process `adyton run --cold`": (lambda: process_ms(
            [program, "run", "--cold", "-c", MEAN]), 20),
        "bare python3": (lambda: process_ms([PYTHON, "-c", MEAN], BARE_ENVIRONMENT), 10),
        "bare python3, libraries": (lambda: process_ms(
            [PYTHON, "-c", LIBRARIES], BARE_ENVIRONMENT), 100),
    }
    if shutil.which("bwrap"):
        rows["bubblewrap + python3"] = (lambda: process_ms(BUBBLEWRAP + [MEAN]), 20)
    for runtime in ("crun", "runc"):
        command = shutil.which(runtime) and container(folder, runtime, MEAN)
        if command:
            rows[runtime + " run"] = (lambda command=command: process_ms(command), 50)
    return rows


def latency(program, folder, plain, full, load, rounds):
    rows = rows_of(program, folder, plain, full, load)
    samples = {name: [] for name in rows}
    for i in range(rounds):
        for name, (measure, every) in rows.items():
            if i % every == 0:
                value = measure()
                samples[name] += value if isinstance(value, list) else [value]
    return {name: summary(values) for name, values in samples.items()}


def throughput(supervisor, load, seconds):
    """Runs a second and latency with 1, 2, 4 … 256 connections, each with one run at a time."""
    result, width, rate = {}, 1, 200.0
    while width <= 256:
        row = json.loads(load.run(supervisor, "mean", max(4 * width, int(rate * seconds)), width))
        rate = row["per_second"]
        result[width] = {"n": row["runs"], "p50": row["p50"] / 1e3, "p99": row["p99"] / 1e3,
                         "per_second": rate}
        width *= 2
    return result


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return "%s, %d cores, Linux %s, load %.1f" % (model, os.cpu_count(), platform.release(),
                                                  os.getloadavg()[0])


def show(report):
    print(report["machine"])
    print("\n%-30s %8s %9s %9s %9s" % ("milliseconds", "n", "p50", "p99", "min"))
    for name, row in report["latency"].items():
        print("%-30s %8d %9.2f %9.2f %9.2f" % (name, row["n"], row["p50"], row["p99"],
                                               row["min"]))
    rows = report["latency"]
    print("\nbare python3 / socket, plain: %.1f" % (
        rows["bare python3"]["p50"] / rows["socket, plain"]["p50"]))
    print("bare python3 with libraries / socket, libraries loaded: %.0f" % (
        rows["bare python3, libraries"]["p50"] / rows["socket, libraries loaded"]["p50"]))
    print("\n%-10s %12s %9s %9s" % ("at once", "runs/second", "p50 ms", "p99 ms"))
    for width, row in report["throughput"].items():
        print("%-10s %12.0f %9.2f %9.2f" % (width, row["per_second"], row["p50"], row["p99"]))


def plot(report, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    rows = report["latency"]
    names = sorted(rows, key=lambda name: rows[name]["p50"], reverse=True)
    figure, axes = plt.subplots(figsize=(8, 0.45 * len(names) + 1.2))
    bars = axes.barh(names, [rows[name]["p50"] for name in names], color="#4878a8")
    for name, bar in zip(names, bars):
        axes.text(bar.get_width() * 1.08, bar.get_y() + bar.get_height() / 2,
                  "%.1f" % rows[name]["p50"], va="center", fontsize=8)
        if "socket" in name or "adyton" in name:
            bar.set_color("#c0504d")
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds, median (logarithmic)")
    axes.set_title("Five lines of Python, start to end")
    axes.margins(x=0.15)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("adyton")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each width of throughput")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="FILE", help="an SVG or PNG of the medians")
    options = parser.parse_args()
    program = os.path.abspath(options.adyton)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        plain = Supervisor(program, folder, "plain", "--preload", "none")
        full = Supervisor(program, folder, "full")
        try:
            build = os.path.dirname(program)
            load = Load(os.path.join(build, "bench/load"), folder, build)
            report = {"machine": machine(),
                      "latency": latency(program, folder, plain, full, load, options.rounds),
                      "throughput": throughput(plain, load, options.seconds)}
        finally:
            plain.stop()
            full.stop()
    show(report)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    if options.plot:
        plot(report, options.plot)


if __name__ == "__main__":
    main()
