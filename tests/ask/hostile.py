"""What a model must not be able to do with what it says."""

import json
import os
import pty
import select

from endpoint import Answer, Endpoint, call
from parts import LIMIT_S, answered, check, last_text, point, same

DONE = Answer("It is done.")
CODES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\r\x9b2J\x08\u202eevil\u2066"


def on_terminal(place, endpoint, *args, typed=None, expect=None):
    """Runs it with a terminal as its only stream; gives exit status and what the terminal got."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(place.home)
        os.execve(place.program, [place.program, "ask", "--base-url", endpoint.base, "--model",
                                  "scripted", "--cold", *args, "q"], place.environment)
    seen, sent = b"", False
    while True:
        ready, _, _ = select.select([fd], [], [], LIMIT_S)
        try:
            data = os.read(fd, 65536) if ready else b""
        except OSError:
            data = b""
        if not data:
            break
        seen += data
        if typed and not sent and expect in seen:
            os.write(fd, typed)
            sent = True
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


@point
def control_characters_do_not_reach_a_terminal(place):
    code = "x = '''%s'''\nprint(1)" % CODES
    for way in ((), ("--no-stream",)):
        with Endpoint([Answer(None, [call(code)]), Answer("Done " + CODES)]) as e:
            status, seen = on_terminal(place, e, "--yes", "--verbose", *way)
            same(status, 0, "the exit status")
            check(b"Done " in seen and b"\\u001b]0;owned" in seen, "they are shown", seen)
            for byte in (b"\x1b", b"\x07", b"\x08", b"\xc2\x9b", "\u202e".encode()):
                check(byte not in seen.replace(b"\r\n", b"\n"), "it is obeyed", byte, seen)


@point
def a_person_is_asked_on_a_terminal(place):
    answers = [Answer(None, [call("print(6 * 7)")]), DONE]
    with Endpoint(answers) as e:
        status, seen = on_terminal(place, e, typed=b"n\n", expect=b"[y/N]")
        check(status == 1 and b"declined" in seen and b"print(6 * 7)" in seen, "no is no",
              status, seen)
        same(place.rows("intent"), [], "what was run")
    with Endpoint(answers) as e:
        status, seen = on_terminal(place, e, typed=b"y\n", expect=b"[y/N]")
        check(status == 0 and b"It is done." in seen, "yes is yes", status, seen)
    same(len(place.rows("intent")), 1, "what was run")


@point
def a_call_has_no_say_in_options_or_paths(place):
    arguments = json.dumps({"code": "print(1)", "policy": "open", "timeout": 9999,
                            "files": ["/etc/shadow"], "--policy": "open",
                            "out": "/tmp/evil", "session_id": "../../x"})
    names = ["../../bin/sh", "execute_python; rm -rf /", "--policy=open", "x" * 100000]
    with Endpoint([Answer(None, [call(arguments)]),
                   Answer(None, [call("print(2)", name=n, id_=n) for n in names[:2]]),
                   DONE]) as e:
        answered(place.ask(e, "--attempts", "5"), "It is done.\n")
        check("no such tool" in last_text(e.requests[2]), "what is said", e.requests[2])
    same({row["policy"] for row in place.rows("intent")}, {"standard"}, "the policy")
    with Endpoint([Answer(None, [call("print(2)", name=names[3], id_=names[3])]), DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        ids = [c["id"] for c in e.requests[1]["messages"][-2]["tool_calls"]]
        check(all(len(i) < 128 for i in ids), "the ids that are sent back", ids)


@point
def code_that_looks_like_options_is_code(place):
    for code in ("--help", "-c print(1)", "../../etc/passwd", "#!/bin/sh\nrm -rf /"):
        with Endpoint([Answer(None, [call(code)]), DONE]) as e:
            done = place.ask(e)
            answered(done, "It is done.\n")
            check("usage" not in last_text(e.requests[1]), "it is no option", e.requests[1])


@point
def a_mark_cannot_be_forged(place):
    # Code that prints its own source prints the mark; what stands before it was its own, too.
    spy = "print('secret of the first')"
    forge = ("import sys\nsource = open(sys.argv[0]).read()\n"
             "mark = [l for l in source.splitlines() if '__stdout__' in l]\n"
             "print('seen', len(mark))")
    with Endpoint([Answer(None, [call(spy)]), Answer(None, [call(forge)]), DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        told = last_text(e.requests[2])
        check(told.startswith("stdout:\nseen ") and "secret" not in told, "the result", told)


@point
def nul_and_odd_characters_in_code_are_judged(place):
    for code in ("print(1)\0", "print('\ufffe')", "\ufeffprint(1)"):
        with Endpoint([Answer(None, [call(code)]), DONE]) as e:
            answered(place.ask(e), "It is done.\n")
    body = json.dumps({"choices": [{"message": {"content": "\ud800 alone"}}]})
    with Endpoint([Answer(body=body)]) as e:
        same(place.ask(e, "--no-stream", "--retries", "0").returncode, 125, "a lone surrogate")


@point
def floods_are_bounded(place):
    calls = [call("print(1)", id_=str(i)) for i in range(40)]
    with Endpoint([Answer(None, calls)]) as e:
        done = place.ask(e, "--retries", "0")
        same(done.returncode, 125, "forty calls")
        check("more than 16" in done.stderr, "why", done.stderr)
    with Endpoint([Answer("x" * (5 << 20))]) as e:
        done = place.ask(e, "--no-stream", "--retries", "0")
        same(done.returncode, 125, "five megabytes of text")
    long = Answer(body="data: " + "x" * (5 << 20),
                  headers={"content-type": "text/event-stream"})
    with Endpoint([long]) as e:
        done = place.ask(e, "--retries", "0")
        same(done.returncode, 125, "a line without an end")
        check("more than 4194304" in done.stderr, "why", done.stderr)
    with Endpoint([Answer(None, [call("print('x' * 400000)")]), DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        told = last_text(e.requests[1])
        check(len(told) < 40000 and "omitted" in told, "what the model is told", len(told))


@point
def deep_json_is_refused(place):
    with Endpoint([Answer(body="[" * 100000)]) as e:
        same(place.ask(e, "--no-stream", "--retries", "0").returncode, 125, "an answer")
    with Endpoint([Answer(None, [call('{"code": ' + "[" * 50000)]), DONE]) as e:
        answered(place.ask(e), "It is done.\n")


@point
def redirections_are_not_followed(place):
    with Endpoint([DONE]) as other:
        there = Answer("moved", status=307,
                       headers={"Location": other.base + "/chat/completions"})
        with Endpoint([there]) as e:
            same(place.ask(e).returncode, 125, "the exit status")
        same(other.requests, [], "requests elsewhere")


@point
def files_cannot_speak_terminal_codes_in_the_prompt(place):
    path = os.path.join(place.home, "a\x1b[2Jb.csv")
    with open(path, "w") as file:
        file.write("x\x1b]0;y\x07,\u202ez\n")
    with Endpoint([DONE]) as e:
        answered(place.ask(e, "--file", path), "It is done.\n")
        system = e.requests[0]["messages"][0]["content"]
        check("\x1b" not in system and "\u202e" not in system, "the prompt", system[-300:])
