#!/usr/bin/env python3
"""`adyton run --stream`: what happens in a run, line by line.  Usage: stream.py PATH-TO-ADYTON [NAME…]

Prints TAP.  Each check makes the same run cold and through a supervisor.
"""
import base64
import datetime
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_parts import Suite, check, data_of, same

ADYTON = os.path.abspath(sys.argv[1])
suite = Suite()
test = suite.test
HELD = "import time\nwhile True:\n    time.sleep(0.01)\n"


def ways(place):
    return (("cold", "--cold"), ("served", "--socket", place.socket))


def lines(text):
    """Every line is one JSON object with a type and a time."""
    events = [json.loads(line) for line in text.splitlines()]
    check(text.endswith(b"\n"), "the last line ends", text[-80:])
    for event in events:
        check(isinstance(event.get("type"), str), "a type", event)
        datetime.datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        check("id" not in event, "no id of a message", event)
    return events


def stream(place, way, *args):
    done = place.call("run", "--stream", *way[1:], *args)
    same(done.stderr, b"", "stderr, " + way[0])
    events = lines(done.stdout)
    same([e["type"] for e in events].count("finished"), 1, "the number of ends")
    same(events[-1]["type"], "finished", "the last event")
    return events, done.returncode


def written(events, name):
    return b"".join(data_of(e) for e in events if e["type"] == name)


def kinds(events):
    """In order; a stream may come in any number of pieces."""
    names = [e["type"] for e in events if e["type"] != "usage"]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


@test()
def output_comes_as_events_and_the_outcome_last(place):
    code = ("import os, sys\nos.write(1, b'one\\n')\n"
            "os.write(2, b'two\\n')\nos.write(1, bytes(range(256)))\nsys.exit(3)")
    for way in ways(place):
        events, exit_status = stream(place, way, "-c", code)
        same(exit_status, 3, "the exit status, " + way[0])
        same(events[0]["type"], "started", "the first event")
        outcome = events[-1]["outcome"]
        same(outcome["status"], "exit", "the status")
        same(events[0]["run"], outcome["id"], "the run's id")
        same(events[0]["start"], outcome["engine"]["start"], "the kind of start")
        same(written(events, "stdout"), b"one\n" + bytes(range(256)), "stdout")
        same(written(events, "stderr"), b"two\n", "stderr")


@test()
def an_event_is_there_before_the_run_ends(place):
    for way in ways(place):
        process = place.popen_bare("run", "--stream", *way[1:], "-c",
                                   "print('up', flush=True)\n" + HELD)
        seen = []
        while not seen or seen[-1]["type"] != "stdout":
            seen.append(json.loads(process.stdout.readline()))
        check("up\n".startswith(seen[-1]["data"]), "what was written by a run that goes on",
              way[0], seen[-1])
        check(process.poll() is None, "the run goes on")
        process.kill()
        process.communicate()


@test()
def a_character_is_never_split(place):
    code = ("import os, time\nfor b in '€é𝄞'.encode():\n    os.write(1, bytes([b]))\n"
            "    time.sleep(0.02)\nos.write(1, b'\\xe2\\x82')")
    for way in ways(place):
        events, _ = stream(place, way, "-c", code)
        texts = [e for e in events if e["type"] == "stdout"]
        same("".join(e.get("data", "") for e in texts), "€é𝄞", "the text, " + way[0])
        same(base64.b64decode(texts[-1]["data_base64"]), b"\xe2\x82", "what is no text")


@test()
def what_is_shown_stands_in_its_place(place):
    code = ("print('before')\ndisplay({'a': 1})\n"
            "print('after')\n")
    for way in ways(place):
        events, _ = stream(place, way, "-c", code)
        same(kinds(events), ["started", "stdout", "display", "stdout", "finished"],
             "the order, " + way[0])
        item = [e for e in events if e["type"] == "display"][0]["item"]
        same([item], events[-1]["outcome"]["results"], "the item")


@test()
def a_refused_call_is_told_when_it_happens(place):
    code = ("import ctypes, os\nfor _ in range(3):\n    ctypes.CDLL(None).syscall(%d, 0, 0)\n"
            "print('after', flush=True)" % (165 if os.uname().machine == "x86_64" else 40))
    policy = place.file("warn.yaml", "name: warn\nextends: standard\nvalidation: 'off'\n")
    place.start_again("--policy", policy)
    for way in ways(place):
        name = policy if way[0] == "cold" else "warn"
        events, _ = stream(place, way, "--policy", name, "-c", code)
        same(kinds(events), ["started", "incident", "stdout", "finished"],
             "the order, " + way[0])
        incident = [e for e in events if e["type"] == "incident"][0]["incident"]
        check("mount" in incident["act"], "the act", incident)
        same((incident["fact"], incident["count"]), (True, 1), "a fact, told the first time")
        same([i["count"] for i in events[-1]["outcome"]["incidents"]], [3], "the count in the end")


@test()
def what_is_known_only_in_the_end_is_told_too(place):
    for way in ways(place):
        events, exit_status = stream(place, way, "-c", "import os\nos.system('id')")
        same(exit_status, 126, "the exit status, " + way[0])
        same(kinds(events), ["incident", "finished"], "the order")
        same([e["incident"] for e in events[:-1]], events[-1]["outcome"]["incidents"],
             "the incidents")
        events, _ = stream(place, way, place.file("long.py", "#" * (2 << 20)))
        same(events[-1]["outcome"]["status"], "rejected", "code that is too long, " + way[0])


@test()
def usage_is_told_while_the_run_goes_on(place):
    code = ("held = bytearray(40 << 20)\nfor i in range(0, len(held), 4096): held[i] = 1\n" + HELD)
    for way in ways(place):
        events, _ = stream(place, way, "--timeout", "1500ms", "-c", code)
        told = [e["usage"] for e in events if e["type"] == "usage"]
        check(told, "there is usage, " + way[0], kinds(events))
        same(sorted(told[-1]), ["cpu_ms", "memory_bytes", "wall_ms"], "what it tells")
        check(any(u["memory_bytes"] > 40 << 20 for u in told), "the memory that is held", told)
        check(0 < told[-1]["wall_ms"] < 60000, "the time", told)
        same(events[-1]["outcome"]["status"], "timeout", "the end")


@test()
def the_events_have_all_that_was_kept(place):
    code = "print('x' * 70000 + 'END')"
    for way in ways(place):
        events, _ = stream(place, way, "--output", "16K", "-c", code)
        outcome = events[-1]["outcome"]
        check(outcome["stdout"].startswith(written(events, "stdout").decode()), "the head",
              way[0])
        check(outcome["stdout"].endswith("END\n"), "the tail is in the outcome", way[0])
        same(outcome["truncated"]["stdout"], True, "it says so")


@test(None)
def options_that_make_no_sense_are_refused(place):
    done = place.call("run", "--stream", "--json", "-c", "1")
    same((done.returncode, done.stdout), (2, b""), "--stream with --json")
    check(b"--stream" in done.stderr, "the sentence", done.stderr)
    done = place.call("run", "--stream", "--base64", "--cold", "-c", "print(1)")
    same(lines(done.stdout)[-1]["outcome"]["stdout_base64"], "MQo=", "--base64")


if __name__ == "__main__":
    sys.exit(suite.main(ADYTON, sys.argv[2:]))
