#!/usr/bin/env python3
"""Sessions, many and idle, and one at work:  bench/session.py ADYTON [options]

Starts a supervisor of its own on a socket in a temporary folder, opens sessions that import
pandas and keep a small table, and reports what each holds while it waits; then times runs in one
of them, and interrupts. Figures are reported, never judged. The ledger is on.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time

import warm

LOADED = "import pandas as pd\n"
WORKED = ("import pandas as pd\n"
          "frame = pd.DataFrame({'a': range(1000), 'b': [i * 0.5 for i in range(1000)]})\n"
          "print(len(frame.describe()))\n")    # a table, and much of pandas called once
PLAIN = "x = 1\n"
SPIN = "print('up', flush=True)\nwhile True:\n    pass\n"
SLEEP = "import time\nprint('up', flush=True)\ntime.sleep(60)\n"
MIB = 1 << 20
BESIDE = 100        # runs of their own, before and after, to see what many sessions cost them


class Sessions(warm.Client):
    """A connection that makes sessions and runs in them."""

    def ask(self, kind, **fields):
        self.count += 1
        self.send({"type": kind, "id": "b%d" % self.count, **fields})
        while True:
            message = self.receive()
            if message.get("id") != "b%d" % self.count:
                continue
            if message["type"] in ("error", "busy"):
                raise RuntimeError("%r" % message)
            if message["type"] in ("session", "sessions", "finished"):
                return message

    def open(self, policy):
        return self.ask("session_new", policy=policy)["session"]["session_id"]

    def run_in(self, session, code):
        began = time.perf_counter()
        outcome = self.ask("run", session=session, code=code)["outcome"]
        if outcome["session"] != "kept" or outcome["status"] != "ok":
            raise RuntimeError("%r" % outcome)
        return (time.perf_counter() - began) * 1e3

    def interrupt(self, session, code):
        """From the request to the outcome."""
        self.count += 1
        name = "b%d" % self.count
        self.send({"type": "run", "id": name, "session": session, "code": code, "stream": True})
        while self.receive()["type"] != "stdout":
            pass
        began = time.perf_counter()
        self.send({"type": "session_interrupt", "id": "i" + name, "session": session})
        while True:
            message = self.receive()
            if message["type"] == "finished" and message["id"] == name:
                took = (time.perf_counter() - began) * 1e3
                if message["outcome"]["session"] != "kept":
                    raise RuntimeError("%r" % message["outcome"])
                return took

    def status(self):
        self.send({"type": "status"})
        while True:
            message = self.receive()
            if message["type"] == "status":
                return message


def meminfo(name):
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    return 0


def rollup(pid):
    """Private and proportional bytes of a process."""
    values = {}
    with open("/proc/%d/smaps_rollup" % pid) as file:
        for line in file:
            words = line.split()
            if len(words) == 3:
                values[words[0]] = int(words[1]) << 10
    private = values.get("Private_Clean:", 0) + values.get("Private_Dirty:", 0)
    return private, values.get("Pss:", 0)


def programs(supervisor):
    """The processes of cells below the supervisor: those in a third pid namespace."""
    parents, spaces = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/status" % entry) as file:
                lines = dict(line.split(":", 1) for line in file if ":" in line)
        except OSError:
            continue
        parents[int(entry)] = int(lines["PPid"])
        spaces[int(entry)] = lines["NSpid"].split()
    found = []
    for pid, numbers in spaces.items():
        at = pid
        while at > 1 and at != supervisor:
            at = parents.get(at, 0)
        if at == supervisor and len(numbers) == len(spaces[supervisor]) + 2 and numbers[-1] != "1":
            found.append(pid)
    return found


def summary(samples):
    samples = sorted(samples)
    at = lambda share: samples[min(len(samples) - 1, int(len(samples) * share))]
    return {"p50": at(0.5), "p99": at(0.99), "max": samples[-1], "n": len(samples)}


def hold(client, supervisor, policy, n, code):
    """Opens n sessions in which code has run: their ids, and what they hold at rest."""
    client.run_in(client.open(policy), code)      # pages of files are in memory after that
    before, own, free = set(programs(supervisor)), rollup(supervisor)[0], meminfo("MemAvailable")
    took, sessions = [], []
    for i in range(n):
        began = time.perf_counter()
        sessions.append(client.open(policy))
        took.append((time.perf_counter() - began) * 1e3)
        client.run_in(sessions[-1], code)
        if sys.stderr.isatty() and i % 50 == 0:
            print("\r%d sessions" % (i + 1), end="", file=sys.stderr)
    time.sleep(2)
    listed = {s["session_id"]: s for s in client.ask("session_list")["sessions"]}
    rolls = [rollup(pid) for pid in set(programs(supervisor)) - before]
    held = [listed[s]["memory_bytes"] for s in sessions]
    return sessions, {
        "sessions": n,
        "code": code,
        "open_ms": summary(took),
        "group_mib": statistics.median(held) / MIB,
        "private_mib": statistics.median(r[0] for r in rolls) / MIB,
        "proportional_mib": statistics.median(r[1] for r in rolls) / MIB,
        "host_mib": (free - meminfo("MemAvailable")) / n / MIB,
        "supervisor_kib": (rollup(supervisor)[0] - own) / n / 1024,
        "descriptors": len(os.listdir("/proc/%d/fd" % supervisor)) / (n + 1),
        "status": {key: client.status()[key] for key in ("sessions", "pressure", "memory")},
    }


def say_memory(memory, text):
    print("%d idle sessions, %s:" % (memory["sessions"], text))
    for name, what in (("group", "memory of its control group"),
                       ("private", "private pages of the program"),
                       ("proportional", "with its share of the rest"),
                       ("host", "what the host has less, each")):
        print("  %-30s%8.2f MiB" % (what, memory[name + "_mib"]))
    print("  %-30s%8.1f KiB" % ("in the supervisor, each", memory["supervisor_kib"]))
    print("  %-30s%8.1f" % ("its descriptors, each", memory["descriptors"]))
    print("  %-30s%8.2f ms p50 %8.2f p99" % ("opening one", memory["open_ms"]["p50"],
                                            memory["open_ms"]["p99"]))


def say(found):
    say_memory(found["idle"], "pandas imported in each")
    say_memory(found["worked"], "a table made and described in each")
    for name, text in (("run", "a run in a session, x = 1"),
                       ("run_loaded", "a run, frame.mean()"),
                       ("beside_before", "a run of its own, before"),
                       ("beside", "… and beside the sessions"),
                       ("interrupt_spin", "interrupt of a busy loop"),
                       ("interrupt_sleep", "interrupt of a sleep")):
        row = found[name]
        print("%-32s%8.2f ms p50 %8.2f p99 %8.2f max  (%d)"
              % (text, row["p50"], row["p99"], row["max"], row["n"]))
    print("%-32s%8.2f ms each" % ("closing them", found["close_ms"]))


def measure(client, supervisor, options):
    beside = lambda: summary([client.run("pass")[0] for _ in range(BESIDE)])
    found = {"host": platform.platform(), "load": os.getloadavg(), "beside_before": beside()}
    some = max(options.sessions // 20, 1)
    worked, found["worked"] = hold(client, supervisor, options.policy, some, WORKED)
    sessions, found["idle"] = hold(client, supervisor, options.policy, options.sessions, LOADED)
    one = worked[0]
    for _ in range(20):
        client.run_in(one, PLAIN)
    found["run"] = summary([client.run_in(one, PLAIN) for _ in range(options.runs)])
    found["run_loaded"] = summary([client.run_in(one, "frame.mean()")
                                   for _ in range(options.runs)])
    found["beside"] = beside()
    for name, code in (("interrupt_spin", SPIN), ("interrupt_sleep", SLEEP)):
        found[name] = summary([client.interrupt(one, code) for _ in range(options.interrupts)])
    began = time.perf_counter()
    for session in sessions + worked:
        client.ask("session_close", session=session)
    found["close_ms"] = (time.perf_counter() - began) * 1e3 / len(sessions + worked)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("adyton")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--interrupts", type=int, default=200)
    parser.add_argument("--policy", default="standard")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="adyton-bench-") as folder:
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
        supervisor = warm.Supervisor(os.path.abspath(options.adyton), folder, "session")
        try:
            found = measure(Sessions(supervisor.path), supervisor.process.pid, options)
        finally:
            supervisor.stop()
    print(json.dumps(found, indent=1)) if options.json else say(found)


if __name__ == "__main__":
    main()
