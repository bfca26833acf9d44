#!/usr/bin/env python3
"""The supervisor, as users and hostile clients meet it.  Usage: serve.py PATH-TO-ADYTON [NAME…]

Prints TAP.  Every check has a supervisor of its own, and runs real cells.
"""
import json
import os
import resource
import signal
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_parts import (MARK, SLEEP, Suite, cell_of, check, children_of, data_of, is_alive,
                         memory_of, same, wait_for)

ADYTON = os.path.abspath(sys.argv[1])
suite = Suite()
test = suite.test


# ---- the same as without a supervisor ----

def files(place):
    return ["--file", place.file("a.txt", "text") + "=d/a.txt",
            "--file", place.file("b.bin", bytes(range(256))) + "=b.bin"]


CASES = {
    "ok": lambda p: ["-c", "print('sum', 1 + 2)"],
    "both streams": lambda p: ["-c", "import sys\nprint('é€')\nprint('no', file=sys.stderr)"],
    "bytes": lambda p: ["-c", "import os\nos.write(1, bytes(range(256)) * 9)\nos.write(2, b'\\xff')"],
    "exception": lambda p: ["-c", "def f():\n    1 / 0\nf()"],
    "exit": lambda p: ["-c", "import sys\nsys.exit(7)"],
    "crash": lambda p: ["-c", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"],
    "timeout": lambda p: ["-c", "while True: pass", "--timeout", "300ms"],
    "memory": lambda p: ["-c", "b = bytearray(1 << 30)", "--memory", "64M"],
    "truncated": lambda p: ["-c", "print('x' * 99 + 'é', end='') or print('y' * 50000)",
                            "--output", "4K"],
    "rejected": lambda p: ["-c", "import socket"],
    "syntax": lambda p: ["-c", "print("],
    "too long": lambda p: [p.file("long.py", "#" * (1 << 20) + "\n")],
    "incident": lambda p: ["-c", "import os\ntry:\n    os.system('id')\nexcept Exception as e:\n"
                           "    print(type(e).__name__)"],
    "files": lambda p: ["-c", "print(open('d/a.txt').read(), open('b.bin', 'rb').read())",
                        *files(p)],
    "args": lambda p: ["-c", "import sys\nprint(sys.argv)", "--", "a", "", "é", "--json"],
    "name": lambda p: [p.file("tool.py", "print(__file__)")],
    "bytes of code": lambda p: [p.file("l.py", b"# coding: latin-1\nprint('\xe9')")],
    "no stdin": lambda p: ["-c", "import sys\nprint(repr(sys.stdin.read()))"],
    "stdin": lambda p: ["-c", "import sys\nprint(sys.stdin.buffer.read())", "--stdin",
                        p.file("in", b"a\0\xff\n")],
    "strict": lambda p: ["--policy", "strict", "-c", "import os\nprint(os.sep)"],
}
VARIES = ("id", "usage")


def facts(done):
    outcome = json.loads(done.stdout)
    for name in VARIES:
        del outcome[name]
    del outcome["engine"]["start"]
    return outcome


@test()
def outcomes_are_those_of_a_cold_run(place):
    for name, arguments in CASES.items():
        args = arguments(place)
        cold = place.call("run", "--cold", "--json", "--base64", *args)
        served = place.run("--json", "--base64", *args)
        check(cold.stdout, "a cold outcome of " + name, cold.stderr)
        check(served.stdout, "an outcome of " + name, served.stderr)
        same(facts(served), facts(cold), "the outcome of " + name)
        same(served.returncode, cold.returncode, "the exit status of " + name)
    check(place.status()["runs"]["started"] > len(CASES) / 2, "the supervisor ran them")


@test()
def what_is_printed_is_that_of_a_cold_run(place):
    for name, arguments in CASES.items():
        args = arguments(place)
        cold = place.call("run", "--cold", *args)
        served = place.run(*args)
        for what in ("returncode", "stdout", "stderr"):
            same(getattr(served, what), getattr(cold, what), "%s of %s" % (what, name))


@test()
def files_are_collected_by_the_supervisor(place):
    out = os.path.join(place.path, "out")
    code = "import os\nos.mkdir('d')\nopen('d/x', 'wb').write(b'\\xff')\nopen('y', 'w').write('1')"
    done = place.run("--json", "--out", out, "-c", code)
    paths = [f["path"] for f in json.loads(done.stdout)["files"]]
    same(paths, ["d/x", "y"], "the list of files")
    with open(os.path.join(out, "d/x"), "rb") as file:
        same(file.read(), b"\xff", "a file")


@test()
def output_comes_while_the_run_goes_on(place):
    client = place.client()
    client.run("1", SLEEP % 1, stream=True)
    began = time.monotonic()
    seen = b""
    while seen != b"up\n":
        check(b"up\n".startswith(seen), "the first output", seen)
        seen += data_of(client.until("stdout", "1")[0])
    check(time.monotonic() - began < 0.9, "output comes before the end")
    same(client.outcome("1")["stdout"], "up\ndone\n", "the outcome has it, too")
    process = place.popen("-c", SLEEP % 1)
    same(process.stdout.readline(), b"up\n", "a line of adyton run")
    check(process.poll() is None, "adyton run goes on")
    same(process.communicate()[0], b"done\n", "the rest")


# ---- the protocol ----

@test()
def several_runs_on_one_connection(place):
    client = place.client()
    for i in range(6):
        client.run("r%d" % i, "import time\ntime.sleep(%g)\nprint(%d)" % (0.3 - i / 20, i))
    outcomes = {}
    while len(outcomes) < 6:
        message, _ = client.until("finished")
        outcomes[message["id"]] = message["outcome"]["stdout"]
    same(outcomes, {"r%d" % i: "%d\n" % i for i in range(6)}, "each answer under its id")
    same(client.ask("ping"), {"type": "pong"}, "the answer to a ping")


@test()
def a_run_is_cancelled(place):
    client = place.client()
    client.run("1", SLEEP % 30, stream=True)
    client.until("stdout", "1")
    began = time.monotonic()
    client.send({"type": "cancel", "id": "1"})
    outcome = client.outcome("1")
    same((outcome["status"], outcome["message"]), ("failed", "the run was cancelled"), "it")
    check(time.monotonic() - began < 5, "it ends at once")
    client.send({"type": "cancel", "id": "1"})
    same(client.until("error")[0]["code"], "id", "a second one is told")


def refusal(client, name="1"):
    message, before = client.until("error", name)
    check(not [m for m in before if m.get("type") == "accepted"], "it was not accepted", before)
    return message


@test("--policy", lambda p: p.file("data.yaml", "extends: standard\nmemory: 128M\n"))
def a_client_narrows_and_never_widens(place):
    client = place.client()
    code = "print(1)"
    for fields, word, text in (
            ({"limits": {"memory": "1G"}}, "limit", "more than policy 'standard' allows"),
            ({"limits": {"memory": "a lot"}}, "request", "not a size"),
            ({"limits": {"isolation": "landlock"}}, "request", "not a job's"),
            ({"policy": "nosuch"}, "policy", "no policy of that name"),
            ({"policy": os.path.join(place.path, "data.yaml")}, "policy", "no policy"),
            ({"policy": "data.yaml", "limits": {"memory": "256M"}}, "limit", "'data.yaml'"),
            ({"python": "/bin/sh"}, "python", "does not serve the interpreter"),
            ({"collect": True}, "request", "without a descriptor"),
            ({"mode": "x"}, "request", "unknown field 'mode'")):
        client.run("1", code, **fields)
        message = refusal(client)
        check(message["code"] == word and text in message["message"], "refused", fields, message)
    client.run("1", code, policy="data.yaml", limits={"memory": "64M"})
    same(client.outcome("1")["limits"]["memory_bytes"], 64 << 20, "the narrower limit")
    client.run("1", "#" * 5000, limits={"source_size": "4K"})
    outcome = client.outcome("1")
    same((outcome["status"], outcome["exit_code"]), ("rejected", None), "code that is too long")


@test("--policy", lambda p: p.file("p.yaml", "name: data\nmemory: 128M\n"))
def a_policy_that_only_the_supervisor_knows(place):
    done = place.run("--policy", "data", "--json", "--memory", "64M", "-c", "print(1)")
    same(json.loads(done.stdout)["limits"]["memory_bytes"], 64 << 20, "the limit")
    done = place.run("--policy", "data", "--memory", "1G", "-c", "print(1)")
    check(done.returncode == 2 and b"more than policy 'data'" in done.stderr, "refused", done)
    done = place.run("--policy", "dada", "-c", "print(1)")
    check(done.returncode == 2 and b"no policy of that name" in done.stderr, "refused", done)


@test()
def what_is_given_by_path_or_cold_asks_no_supervisor(place):
    policy = place.file("p.yaml", "memory: 128M\n")
    for args in (["--cold"], ["--policy", policy], ["--isolation", "namespaces"],
                 ["--ledger", os.path.join(place.path, "l.db")]):
        done = place.call("run", *args, "-c", "print(1)")
        same((done.returncode, done.stdout), (0, b"1\n"), " ".join(args))
        done = place.run(*args, "-c", "print(1)")
        check(done.returncode == 2 and b"--socket" in done.stderr, "a contradiction", args, done)
    same(place.status()["runs"]["started"], 0, "runs of the supervisor")


@test()
def garbage_is_told_and_hurts_nobody(place):
    hello = b'{"adyton":1}'
    frame = lambda text: struct.pack(">I", len(text)) + text
    greeting = frame(hello)
    for data, code in ((b"GET / HTTP/1.1\r\n\r\n", "protocol"), (b"\0\0\0\0", "protocol"),
                       (b"\xff" * 64, "protocol"), (frame(b"x"), "protocol"),
                       (frame(b"[]"), "protocol"), (frame(b'{"type":"ping"}'), "protocol"),
                       (frame(b'{"adyton":2}'), "version"), (greeting * 2, "protocol"),
                       (greeting + frame(b"[" * 100000), "protocol"),
                       (greeting + frame(b'{"a":[' + b"0," * 50000 + b"0]}"), "protocol"),
                       (greeting + frame(b'{"type":"run","id":"1","code":"\xff"}'), "protocol"),
                       (greeting + struct.pack(">I", 1 << 30), "protocol")):
        client = place.client(hello=False)
        client.send_bytes(data)
        message, _ = client.until("error")
        same(message["code"], code, "the answer to %.40r" % data)
        check(client.is_closed(), "the connection is closed")
    for cut in range(1, 40, 3):  # half a frame, and gone
        client = place.client(hello=False)
        client.send_bytes((greeting + frame(b'{"type":"run","id":"1","code":"1"}'))[:cut])
        client.close()
    client = place.client()
    client.run("1", "print(1)")
    same(client.outcome("1")["stdout"], "1\n", "it still runs")
    client.run("2", "1", fds=[client.socket.fileno()] * 4)
    for i in range(4):
        client.send_bytes(frame(b'{"type":"ping"}'), [client.socket.fileno()] * 4)
    same(client.until("error")[0]["code"], "protocol", "descriptors that nobody takes")
    same(place.status()["clients"], 1, "clients that are left")


@test()
def a_frame_may_come_in_any_pieces(place):
    client = place.client()
    text = json.dumps({"type": "run", "id": "1", "code": "print('é')"}).encode()
    data = struct.pack(">I", len(text)) + text
    for i in range(len(data)):
        client.send_bytes(data[i:i + 1])
    same(client.outcome("1")["stdout"], "é\n", "the output")


# ---- many at once ----

@test()
def thirty_two_clients_at_once(place):
    processes = [place.popen("-c", "print(%d ** 2)" % i) for i in range(32)]
    for i, process in enumerate(processes):
        out, err = process.communicate(timeout=60)
        same((process.returncode, out, err), (0, b"%d\n" % i ** 2, b""), "run %d" % i)
    same(place.status()["runs"]["started"], 32, "runs")


@test("--max-runs", "2", "--queue", "200")
def a_flood_does_not_starve_others(place):
    flood, other = place.client(), place.client()
    for i in range(100):
        flood.run("f%d" % i, "import time\ntime.sleep(0.05)")
    wait_for(lambda: place.status()["queue"]["waiting"] > 90, "the flood waits")
    other.run("1", "print('here')")
    same(other.outcome("1")["stdout"], "here\n", "the other's outcome")
    left = place.status()["queue"]["waiting"]
    check(left > 80, "the other did not wait for the flood", left)


@test("--max-runs", "1", "--queue", "4")
def a_full_queue_says_busy_and_is_fair(place):
    flood = place.client()
    for i in range(8):
        flood.run("f%d" % i, "import time\ntime.sleep(0.4)")
    refused = {flood.until("busy")[0]["id"] for _ in range(3)}
    same(refused, {"f5", "f6", "f7"}, "those that found it full")
    other = place.client()
    other.run("1", "print(1)")
    same(flood.until("busy")[0]["id"], "f4", "the newest of the flood gives way")
    same(other.outcome("1")["status"], "ok", "the other's run")
    done = place.run("-c", "print(2)")
    same((done.returncode, done.stdout), (0, b"2\n"), "adyton run waits its turn")


@test("--max-runs", "1", "--queue", "0")
def adyton_run_asks_a_busy_supervisor_again(place):
    client = place.client()
    client.run("1", SLEEP % 1.5, stream=True)
    client.until("stdout")
    done = place.run("--timeout", "300ms", "-c", "print(2)")
    check(done.returncode == 125 and b"busy" in done.stderr, "it gives up in the end", done)
    done = place.run("-c", "print(2)")
    same((done.returncode, done.stdout, done.stderr), (0, b"2\n", b""), "it waits")


@test("--memory-budget", "600M")
def the_memory_budget_holds(place):
    client = place.client()
    for i in range(4):
        client.run(str(i), "import time\ntime.sleep(0.6)")
    wait_for(lambda: place.status()["queue"]["running"] == 2, "two run")
    status = place.status()
    same((status["queue"]["waiting"], status["memory"]["reserved_bytes"]), (2, 512 << 20), "rest")
    client.run("large", "pass", policy="open")
    same(client.until("error", "large")[0]["code"], "memory", "what can never fit")
    for i in range(4):
        client.until("finished")


# ---- clients that go, or do not read ----

@test("--max-runs", "1")
def a_client_that_vanishes_takes_its_runs_along(place):
    client = place.client()
    client.run("1", SLEEP % 60, stream=True)
    client.run("2", "print(2)")
    client.until("stdout", "1")
    cell = cell_of(place.process.pid, MARK)
    check(len(cell) >= 2, "a cell is there", cell)
    client.close()
    wait_for(lambda: not any(is_alive(p, s) for p, (_, s) in cell.items()), "the cell ends", 5)
    status = place.status()
    same((status["queue"]["running"], status["queue"]["waiting"]), (0, 0), "runs that are left")
    same(status["runs"]["started"], 1, "what waited never began")


@test()
def adyton_run_that_is_killed_takes_its_run_along(place):
    process = place.popen("-c", SLEEP % 60)
    process.stdout.readline()
    cell = cell_of(place.process.pid, MARK)
    check(len(cell) >= 2, "a cell is there", cell)
    process.kill()
    process.communicate()
    wait_for(lambda: not any(is_alive(p, s) for p, (_, s) in cell.items()), "the cell ends", 5)


FLOOD = "import sys\nfor i in range(128): sys.stdout.write('x' * 65535 + '\\n')"


@test()
def a_slow_reader_blocks_nobody_and_costs_little(place):
    slow = place.client(receive_bytes=4096)
    before = memory_of(place.process.pid)
    slow.run("1", FLOOD, stream=True, policy="open")
    wait_for(lambda: place.status()["queue"]["running"] == 0, "its run ends all the same")
    began = time.monotonic()
    same(place.run("-c", "print(1)").stdout, b"1\n", "somebody else's run")
    check(time.monotonic() - began < 5, "nobody waits for a slow reader")
    # The outcome, and what of the stream was there before it was dropped: not the whole of both.
    unread = place.status()["memory"]["unread_bytes"]
    check(8 << 20 < unread < 10 << 20, "what waits for it is bounded", unread)
    held = memory_of(place.process.pid) - before
    check(held < 160 << 20, "memory is bounded", held)
    message, before = slow.until("finished")
    streamed = b"".join(data_of(m) for m in before if m.get("type") == "stdout")
    kinds = [m["type"] for m in before]
    same(kinds.count("dropped"), 1, "the note that output was dropped")
    check(kinds.index("dropped") > len(kinds) - 3, "nothing of the stream follows", kinds[-4:])
    check(len(streamed) <= 2 << 20, "what was sent as it came", len(streamed))
    same(len(message["outcome"]["stdout"]), 8 << 20, "the outcome's stdout")


@test()
def adyton_run_prints_what_was_dropped_on_the_way(place):
    process = place.popen("--policy", "open", "-c", FLOOD)
    wait_for(lambda: place.status()["runs"]["started"] == 1, "it runs")
    os.kill(process.pid, signal.SIGSTOP)
    wait_for(lambda: place.status()["queue"]["running"] == 0, "its run ends all the same")
    os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate(timeout=30)
    same((len(out), err, process.returncode), (8 << 20, b"", 0), "all of it is printed")


@test()
def one_that_never_reads_is_let_go(place):
    client = place.client(receive_bytes=4096)
    try:
        for i in range(12):
            client.run(str(i), FLOOD, policy="open")
        wait_for(lambda: place.status()["clients"] == 1, "the connection is closed", 60)
    except BrokenPipeError:
        pass
    check(client.is_closed(), "it is told by the end of the connection")
    wait_for(lambda: place.status()["memory"]["unread_bytes"] < 4096, "its memory is given back")


def descriptors_of(pid):
    folder = "/proc/%d/fd" % pid
    found = []
    for fd in os.listdir(folder):
        try:
            found.append(os.readlink(os.path.join(folder, fd)))
        except FileNotFoundError:
            pass
    return found


@test("--preload", "none")
def nothing_is_left_of_many_runs(place):
    def hundred():
        client = place.client()
        out = os.open(place.path, os.O_RDONLY)
        for i in range(100):
            client.run(str(i), "open('%s', 'w')" % MARK, fds=[out], collect=True)
        os.close(out)
        for i in range(100):
            same(client.until("finished")[0]["outcome"]["status"], "ok", "an outcome")
        client.close()
        wait_for(lambda: place.status()["clients"] == 1, "the client is gone")
        held = descriptors_of(place.process.pid)
        check(place.path not in held, "no folder of a client is held", held)
        return len(held), len(children_of(place.process.pid))
    # The pool keeps more or fewer cells ready; one leak a run would be far more than that.
    before = hundred()
    after = hundred()
    check(after[0] < before[0] + 60, "descriptors", before, after)
    check(after[1] < before[1] + 20, "processes", before, after)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(suite.main(ADYTON, sys.argv[2:]))
