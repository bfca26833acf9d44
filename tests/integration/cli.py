#!/usr/bin/env python3
"""The command line of adyton, driven as a user drives it.  Usage: cli.py PATH-TO-ADYTON

Prints TAP.  Only the standard library; every check runs the real program in a real cell.
"""
import base64
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ADYTON = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE_S = 30  # of the harness; the limits under test are far shorter

JSON_KEYS = ["schema", "id", "session_id", "execution_count", "status", "exit_code", "signal",
             "limit", "message", "stdout", "stderr", "truncated", "dropped_bytes",
             "invalid_utf8", "result", "results", "events", "error", "findings", "incidents",
             "files", "usage", "limits", "isolation", "engine"]

tests = []
EXTRA = []  # options that every run needs on this host


class Skip(Exception):
    """The host lacks what a check needs; the reason is printed and counted."""


def test(function):
    tests.append(function)
    return function


def command(*args):
    if args[:1] == ("run",):
        return [ADYTON, "run", *EXTRA, *args[1:]]
    return [ADYTON, *args]


def adyton(*args, stdin=b""):
    """Runs adyton to its end."""
    return subprocess.run(command(*args), input=stdin, capture_output=True, timeout=PATIENCE_S)


def run(code, *args, **options):
    return adyton("run", "-c", code, *args, **options)


def run_json(code, *args, **options):
    done = run(code, "--json", *args, **options)
    check(done.stderr == b"", "stderr is empty with --json", done.stderr)
    return json.loads(done.stdout), done


def start(*args, **options):
    return subprocess.Popen(command(*args), stdin=subprocess.DEVNULL, **options)


def check(truth, what, *seen):
    if not truth:
        raise AssertionError("%s; seen: %s" % (what, ", ".join(repr(s)[:600] for s in seen)))


def same(seen, wanted, what):
    check(seen == wanted, "%s is %.600r" % (what, wanted), seen)


def refused(done, *texts):
    """A wrong command line: status 2, a sentence, and nothing on stdout."""
    same(done.returncode, 2, "the exit status")
    same(done.stdout, b"", "stdout")
    for text in texts:
        check(text.encode() in done.stderr, "stderr has %r" % text, done.stderr)


def folder(function):
    """Gives the test a folder of its own, gone afterwards."""
    def wrapped():
        path = tempfile.mkdtemp(prefix="adyton-cli-")
        try:
            function(path)
        finally:
            shutil.rmtree(path)
    wrapped.__name__ = function.__name__
    return wrapped


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


# ---- the program and its options ----

@test
def help_and_version():
    done = adyton("--help")
    same(done.returncode, 0, "the exit status")
    for name in (b"run", b"doctor", b"policy", b"completion"):
        check(name in done.stdout, "--help names the command", name)
    check(re.fullmatch(rb"adyton \d+\.\d+\.\d+\n", adyton("--version").stdout), "a version")
    refused(adyton(), "a command is missing")
    refused(adyton("rnu"), "unknown command 'rnu'", "did you mean run?")
    refused(adyton("zzzz"), "unknown command 'zzzz'")
    check(b"did you mean" not in adyton("zzzz").stderr, "no far-fetched suggestion")


@test
def options_that_make_no_sense_are_refused():
    for args, texts in [
        ((), ("nothing to run",)),
        (("x.py", "y.py"), ("y.py", "after --")),
        (("-c", "pass", "--timout", "3s"), ("--timout", "did you mean --timeout?")),
        (("-c", "pass", "--frobnicate"), ("unknown option '--frobnicate'",)),
        (("-c", "pass", "--timeout"), ("--timeout needs a value",)),
        (("-c", "pass", "--json=1"), ("--json takes no value",)),
        (("-c", "pass", "--base64"), ("--base64 needs --json",)),
        (("-", "--stdin", "-"), ("--stdin",)),
        (("none.py",), ("none.py", "No such file")),
        (("/tmp",), ("/tmp", "directory")),
        (("-c", "pass", "--policy", "lax"), ("lax", "standard")),
        (("-c", "pass", "--file", "/nonexistent/x"), ("--file", "/nonexistent/x")),
        (("-c", "pass", "--stdin", "/nonexistent/x"), ("--stdin", "/nonexistent/x")),
        (("-c", "pass", "--out", "/nonexistent/x/y"), ("--out", "/nonexistent/x/y")),
    ]:
        refused(adyton("run", *args), "adyton run: ", *texts)


@test
def a_wrong_limit_names_the_option_and_the_range():
    for option, value, texts in [
        ("--timeout", "5x", ("24h",)), ("--timeout", "0", ("10ms", "24h")),
        ("--timeout", "-1s", ("10ms",)), ("--timeout", "99999h", ("24h",)),
        ("--timeout", "256M", ("10ms",)), ("--cpu-time", "soon", ("10ms",)),
        ("--memory", "1", ("8M", "1T")), ("--memory", "256s", ("8M",)),
        ("--memory", "lots", ("8M",)), ("--pids", "1.5", ("1 to",)), ("--pids", "0", ("1 to",)),
        ("--disk", "1e6", ("64K",)), ("--output", "", ("1K",)),
        ("--isolation", "chroot", ("namespaces, landlock",)),
        ("--processes", "all", ("none, fork, exec",)),
    ]:
        for args in ((option, value), ("%s=%s" % (option, value),)):
            refused(run("pass", *args), "adyton run: " + option, *texts)


@test
def limits_take_units():
    for args, key, value in [
        (("--timeout", "1.5s"), "wall_ms", 1500), (("--timeout", "1500ms"), "wall_ms", 1500),
        (("--timeout=2",), "wall_ms", 2000), (("--cpu-time", "1s"), "cpu_ms", 1000),
        (("--memory", "128MiB"), "memory_bytes", 128 << 20),
        (("--memory=131072k",), "memory_bytes", 128 << 20),
        (("--timeout", "3s", "--timeout", "2s"), "wall_ms", 2000),
    ]:
        outcome, _ = run_json("pass", *args)
        same((outcome["status"], outcome["limits"][key]), ("ok", value), "status and " + key)


@test
def a_run_may_narrow_its_policy_and_never_widen_it():
    refused(run("pass", "--timeout", "6s"), "--timeout", "6s", "5s", "standard")
    refused(run("pass", "--memory", "1G"), "--memory")
    refused(run("pass", "--processes", "exec"), "--processes")
    refused(run("pass", "--policy", "strict", "--processes", "fork"), "--processes")
    for args in (("--policy", "open", "--timeout", "6s"), ("--timeout", "6s", "--policy", "open")):
        outcome, _ = run_json("pass", *args)
        same(outcome["limits"]["wall_ms"], 6000, "the limit")


@test
def every_option_is_in_the_manual_and_in_completion():
    shown = set(re.findall(r"--[a-z][a-z0-9-]+", "\n".join(
        line for line in adyton("run", "--help").stdout.decode().splitlines()
        if re.match(r"  (-\w, )?--", line))))
    check({"--timeout", "--json", "--isolation"} <= shown and len(shown) > 20, "options", shown)
    with open(os.path.join(ROOT, "man", "adyton-run.1"), encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    paragraphs = set(re.findall(r"--[a-z][a-z0-9-]+", "\n".join(
        line for before, line in zip(page.splitlines(), page.splitlines()[1:])
        if before == ".TP")))
    same(sorted(shown ^ paragraphs), [], "what only --help or only the manual has")
    for shell in ("bash", "zsh", "fish"):
        done = adyton("completion", shell)
        same(done.returncode, 0, "the exit status")
        for option in shown:
            name = option[2:] if shell == "fish" else option
            check(name.encode() in done.stdout, "%s completes %s" % (shell, option))
    refused(adyton("completion", "tcsh"), "bash|zsh|fish")


@test
def completion_works_in_bash():
    if not shutil.which("bash"):
        raise Skip("no bash")
    script = adyton("completion", "bash").stdout.decode()
    for words, wanted in [("adyton doc", "doctor"), ("adyton run --timeo", "--timeout"),
                          ("adyton run --isolation land", "landlock")]:
        ask = "\nCOMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _adyton; echo ${COMPREPLY[@]}"
        done = subprocess.run(["bash", "-c", script + ask % words], capture_output=True)
        same(done.stdout.decode().strip(), wanted, "the completion of " + words)


# ---- endings ----

@test
def exit_statuses():
    for code, args, status in [
        ("print('fine')", (), 0), ("1/0", (), 1), ("import sys; sys.exit(7)", (), 7),
        ("import sys; sys.exit('words')", (), 1), ("import sys; sys.exit(0)", (), 0),
        ("syntax error", (), 126), ("syntax error", ("--validation", "off"), 1),
        ("import os; os.system('true')", (), 126),
        ("while True: pass", ("--timeout", "500ms"), 124),
        ("import time; time.sleep(60)", ("--timeout", "500ms"), 124),
        ("while True: pass", ("--cpu-time", "500ms"), 124),
        ("n = len('x') << 20\nb = bytearray(200 * n)\nwhile True: b += bytes(10 * n)",
         ("--memory", "64M"), (1, 137)),  # MemoryError where an rlimit answers first
        ("import os; os.kill(os.getpid(), 11)", (), 128 + signal.SIGSEGV),
        ("import os; os.abort()", (), 128 + signal.SIGABRT),
    ]:
        done = run(code, *args)
        wanted = status if isinstance(status, tuple) else (status,)
        check(done.returncode in wanted, "%r ends with %s" % (code, wanted), done)


@test
def the_ending_is_one_line():
    same(run("print(1)").stderr, b"", "stderr of a run that is ok")
    done = run("import time; time.sleep(9)", "--timeout", "300ms")
    check(re.fullmatch(rb"adyton: timeout: [^\n]*\(limit timeout=300ms\)\n", done.stderr),
          "one line with the limit", done.stderr)
    done = run("import time; time.sleep(9)", "--timeout", "300ms", "--quiet")
    same((done.stderr, done.returncode), (b"", 124), "stderr and status with --quiet")
    done = run("print(1)", "--verbose")
    check(re.fullmatch(rb"adyton: ok: [^\n]* ms wall, [^\n]*held by [^\n]*seccomp[^\n]*\n",
                       done.stderr), "one line with the layers", done.stderr)


@test
def an_ending_cannot_be_forged():
    done = run("raise ValueError('x\\nadyton: ok\\x1b[2J')")
    last = done.stderr.splitlines()[-1]
    check(last.startswith(b"adyton: exception: ") and b"\x1b" not in last, "escaped", last)
    check(b"\nadyton: ok\n" not in done.stderr.replace(b"\x1b[2J", b"")[-len(last) - 1:],
          "no second ending", done.stderr)


@test
def the_ending_begins_a_line():
    done = run("import sys; sys.stderr.write('half'); sys.exit(3)")
    check(done.stderr.startswith(b"half\nadyton: exit: "), "a line of its own", done.stderr)


@test
@folder
def code_that_is_too_long_is_rejected(path):
    policy = write(path + "/p.yaml", "extends: standard\nsource_size: 1K\n")
    code = "#" * 1024
    same(run(code, "--policy", policy).returncode, 0, "the status of code that just fits")
    outcome, done = run_json(code + "#", "--policy", policy)
    same((outcome["status"], done.returncode), ("rejected", 126), "status")
    same(outcome["limit"], {"name": "source_size", "value": 1024}, "limit")


# ---- what goes in ----

@test
@folder
def names_and_arguments(path):
    code = "import sys; print(sys.argv, __name__)"
    script = write(path + "/my script.py", code)
    done = adyton("run", script, "--", "-x", "", "é")
    same(done.stdout.decode(), "['my script.py', '-x', '', 'é'] __main__\n", "argv")
    same(run(code).stdout.decode(), "['main.py'] __main__\n", "argv of -c")
    same(adyton("run", "-", "--", "--json", stdin=code.encode()).stdout.decode(),
         "['main.py', '--json'] __main__\n", "argv of -")


@test
@folder
def stdin_is_given_only_when_asked_for(path):
    code = "import sys; print(repr(sys.stdin.read()))"
    same(run(code, stdin=b"ours").stdout, b"''\n", "stdin without --stdin")
    same(run(code, "--stdin", "-", stdin=b"ours\n").stdout, b"'ours\\n'\n", "stdin of -")
    file = write(path + "/in", "from a file")
    same(run(code, "--stdin", file, stdin=b"ours").stdout, b"'from a file'\n", "stdin of a file")
    big = run("import sys; print(len(sys.stdin.buffer.read()))", "--stdin", "-",
              stdin=b"x" * 3000000)
    same(big.stdout, b"3000000\n", "the length of a long stdin")
    unread = run("print('never read it')", "--stdin", "-", stdin=b"x" * 3000000)
    same((unread.stdout, unread.returncode), (b"never read it\n", 0), "an unread stdin")


@test
@folder
def files_are_placed(path):
    data = write(path + "/data.csv", "a,b\n")
    show = "import os; print([(f, open(f).read()) for f in %r])"
    same(run(show % ["data.csv", "in/other.txt"], "--file", data, "--file",
             data + "=in/other.txt").stdout.decode(),
         "[('data.csv', 'a,b\\n'), ('in/other.txt', 'a,b\\n')]\n", "the files")
    copy = run("open('data.csv', 'w').write('changed')", "--file", data)
    same(copy.returncode, 0, "the status of changing a copy")
    with open(data, encoding="utf-8") as file:
        same(file.read(), "a,b\n", "the original")
    for name in ("../x", "/etc/x", "a/../b", "main.py", ""):
        refused(run("pass", "--file", data + "=" + name), "--file")
    refused(run("pass", "--file", data, "--file", data), "--file", "data.csv")
    large = write(path + "/large", b"x" * (65 << 20))
    refused(run("pass", "--file", large), "--file", "large", "disk")


@test
@folder
def files_are_collected(path):
    out = path + "/out"
    code = ("import os; os.mkdir('d'); open('d/a.txt', 'w').write('kept');"
            "os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe')")
    outcome, done = run_json(code, "--out", out, "--validation", "off")
    same(done.returncode, 0, "the exit status")
    same([f["path"] for f in outcome["files"]], ["d/a.txt"], "the files")
    same(sorted(outcome["files"][0]), ["bytes", "mime", "path", "sha256"], "what is said of one")
    with open(out + "/d/a.txt", encoding="utf-8") as file:
        same(file.read(), "kept", "the file")
    same(os.listdir(out), ["d"], "the folder")


# ---- what comes out ----

@test
def output_arrives_before_the_end():
    code = ("import sys, time\nprint('first', flush=True)\ntime.sleep(2)\n"
            "print('second', file=sys.stderr)")
    began = time.monotonic()
    with start("run", "-c", code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        same(child.stdout.readline(), b"first\n", "the first line")
        check(time.monotonic() - began < 1.8 and child.poll() is None, "it came early")
        same(child.stderr.read(), b"second\n", "stderr")
        same(child.wait(PATIENCE_S), 0, "the exit status")


@test
def streams_are_passed_on_exactly():
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)"
    same(run(code).stdout, bytes(range(256)) * 100, "every byte")
    done = run("import sys; sys.stderr.buffer.write(b'\\xff\\x00\\x1b[2J')")
    same(done.stderr, b"\xff\x00\x1b[2J", "stderr when it is no terminal")


@test
def output_past_the_limit_shows_both_ends():
    # Less than the sixteen times at which a flood is ended: the tail is always written.
    code = "print('head'); print('x' * 20000); print('tail')"
    done = run(code, "--output", "2K")
    same(done.returncode, 0, "a status")
    found = re.fullmatch(rb"head\nx+\n\[adyton: (\d+) bytes of output dropped here\]\nx+\ntail\n",
                         done.stdout)
    check(found, "head, marker, tail", done.stdout[:60], done.stdout[-60:])
    kept = len(done.stdout) - len(found.group(0).split(b"\n")[2]) - 2
    same(kept + int(found.group(1)), 5 + 20001 + 5, "kept and dropped together")
    outcome, _ = run_json(code, "--output", "2K")
    same(outcome["truncated"], {"stdout": True, "stderr": False}, "truncated")
    same(outcome["dropped_bytes"]["stdout"], int(found.group(1)), "dropped_bytes")


@test
def a_reader_that_sleeps_does_not_stop_the_clock():
    code = "print('x' * 500000, flush=True)\nwhile True: pass"
    with start("run", "-c", code, "--timeout", "500ms", "--verbose", stdout=subprocess.PIPE,
               stderr=subprocess.PIPE) as child:
        time.sleep(3)  # a pipe holds 64 KiB: the rest has to wait for us
        out, err = child.communicate(timeout=PATIENCE_S)
    same((len(out), child.returncode), (500001, 124), "all of it came, and the status")
    wall = float(re.search(rb"adyton: timeout: ([\d.]+) ms wall", err).group(1))
    check(wall < 1500, "the run ended on time", wall)


@test
def a_reader_that_leaves_ends_the_run():
    code = "import itertools\nfor i in itertools.count(): print(i)"
    with start("run", "-c", code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.readline()
        inside = descendants(child.pid)
        began = time.monotonic()
        child.stdout.close()
        same(child.wait(PATIENCE_S), -signal.SIGPIPE, "the exit status")
        check(time.monotonic() - began < 2, "it ended at once")
        same(child.stderr.read(), b"", "stderr")
    none_left(inside)


@test
def signals_end_the_run():
    code = "import signal\nprint('up', flush=True)\nwhile True: pass"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with start("run", "-c", code, stdout=subprocess.PIPE) as child:
            same(child.stdout.readline(), b"up\n", "the first line")
            inside = descendants(child.pid)
            check(inside, "the cell has processes")
            began = time.monotonic()
            child.send_signal(number)
            check(child.wait(PATIENCE_S) in (-number, 128 + number), "a status of the signal")
            check(time.monotonic() - began < 2, "it ended at once")
        none_left(inside)


@test
def output_that_cannot_be_written_is_an_error():
    for args in ((), ("--json",)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command("run", "-c", "print(1)", *args), stdout=full,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        same(done.returncode, 125, "the exit status")
        check(b"stdout" in done.stderr and b"No space" in done.stderr, "a sentence", done.stderr)
    closed = ["/bin/sh", "-c", 'exec "$@" 0<&- 1>&-', "sh", *command("run", "-c", "print(1)")]
    done = subprocess.run(closed, stderr=subprocess.PIPE)
    same(done.returncode, 125, "the exit status with stdout closed")
    check(b"cannot write to stdout" in done.stderr, "a sentence", done.stderr)


# ---- JSON ----

@test
def the_json_document():
    outcome, done = run_json("print('out'); import sys; print('err', file=sys.stderr)")
    same(done.stdout.count(b"\n"), 1, "the number of lines")
    same(list(outcome), JSON_KEYS, "the keys")
    same(outcome["schema"], "adyton.outcome/1", "schema")
    check(re.fullmatch(r"r_[0-9A-HJKMNP-TV-Z]{26}", outcome["id"]), "an id", outcome["id"])
    same([outcome[k] for k in ("status", "exit_code", "signal", "limit", "stdout", "stderr",
                               "error", "incidents", "files")],
         ["ok", 0, None, None, "out\n", "err\n", None, [], []], "the values")
    same(outcome["limits"], {"wall_ms": 5000, "cpu_ms": 5000, "memory_bytes": 256 << 20}, "limits")
    check(0 < outcome["usage"]["wall_ms"] < 5000, "a wall time", outcome["usage"])
    check(outcome["usage"]["peak_memory_bytes"] > 1 << 20, "a peak", outcome["usage"])
    check("seccomp" in outcome["isolation"], "layers", outcome["isolation"])
    same(outcome["engine"]["isolation"], "namespaces", "isolation")
    check(re.fullmatch(r"cpython 3\.\d+\.\d+", outcome["engine"]["interpreter"]), "interpreter")


@test
def json_of_runs_that_end_badly():
    outcome, done = run_json("x = 1\n\nx / 0")
    same((outcome["status"], done.returncode), ("exception", 1), "status")
    same((outcome["error"]["name"], outcome["error"]["value"], outcome["error"]["line"]),
         ("ZeroDivisionError", "division by zero", 3), "the error")
    check("Traceback" in outcome["error"]["traceback"], "a traceback", outcome["error"])
    outcome, done = run_json("print('part', flush=True)\nwhile True: pass", "--timeout", "300ms")
    same((outcome["status"], outcome["limit"], outcome["stdout"], done.returncode),
         ("timeout", {"name": "timeout", "value": 300}, "part\n", 124), "status, limit, stdout")
    outcome, done = run_json("import os; os.abort()")
    same((outcome["status"], outcome["signal"], outcome["exit_code"]),
         ("crashed", "SIGABRT", None), "status, signal, exit code")
    outcome, done = run_json("import sys; sys.exit(300)")
    same((outcome["status"], outcome["exit_code"], done.returncode), ("exit", 44, 44), "status")


@test
def json_is_valid_whatever_the_bytes():
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) + b'\\xed\\xa0\\x80\\xe2\\x82')"
    data = bytes(range(256)) + b"\xed\xa0\x80\xe2\x82"
    outcome, done = run_json(code, "--base64")
    done.stdout.decode("utf-8")
    same(outcome["stdout"], data.decode("utf-8", "replace"), "stdout")
    same(outcome["invalid_utf8"]["stdout"], data.decode("utf-8", "replace").count("\ufffd"),
         "the count of what was replaced")
    same(base64.b64decode(outcome["stdout_base64"]), data, "the exact bytes")
    same(base64.b64decode(outcome["stderr_base64"]), b"", "the exact bytes of stderr")
    check("stdout_base64" not in run_json(code)[0], "base64 only when asked for")


# ---- a terminal ----

def on_terminal(*args):
    """What a terminal gets that is our stdout and stderr."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(ADYTON, command(*args))
    shown = b""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if not select.select([master], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(master, 65536)
        except OSError:  # EIO: the last writer is gone
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    _, status = os.waitpid(pid, 0)
    return shown, os.waitstatus_to_exitcode(status)


@test
def a_terminal_is_not_driven():
    code = (r"import sys;w=sys.stdout.buffer.write;"
            r"w(b'\x1b]0;evil\x07|\x1b[2J|\x1b[31mred\x1b[0m|\xc2\x9b2J|\x9b2J|\x08|\xc3\xa9');"
            r"sys.stdout.flush();sys.stderr.buffer.write(b'\x1bc|\x1b[6n\n')")
    shown, status = on_terminal("run", "-c", code)
    same(status, 0, "the exit status")
    for text in (rb"\x1b]0;evil\x07|\x1b[2J|", b"\x1b[31mred\x1b[0m", rb"|\u009b2J|\x9b2J|\x08|",
                 b"|\xc3\xa9", rb"\x1bc|\x1b[6n"):
        check(text in shown, "the terminal gets %r" % text, shown)
    left = shown.replace(b"\x1b[31m", b"").replace(b"\x1b[0m", b"")
    check(b"\x1b" not in left and b"\x07" not in left and b"\x9b" not in left, "no control", left)


@test
def characters_and_colours_in_pieces_are_whole_on_a_terminal():
    code = (r"import os, time" "\n"
            r"for b in b'\xe2\x82\xac \x1b[32mgreen\x1b[0m \x1b[2J \xe2\x82':" "\n"
            r"    os.write(1, bytes([b])); time.sleep(0.002)")
    shown, _ = on_terminal("run", "-c", code)
    same(shown, b"\xe2\x82\xac \x1b[32mgreen\x1b[0m \\x1b[2J \\xe2\\x82", "what is shown")


@test
def colours_do_not_outlive_the_run():
    shown, _ = on_terminal("run", "-c", r"print('\x1b[31mred', end='')")
    same(shown, b"\x1b[31mred\x1b[0m", "what is shown")


@test
def json_on_a_terminal_is_readable_and_harmless():
    shown, _ = on_terminal("run", "--json", "-c", r"print('\x1b[2J \x9b2J \x7f')")
    check(b"\x1b" not in shown and b"\xc2\x9b" not in shown and b"\x7f" not in shown, "no control")
    same(json.loads(shown)["stdout"], "\x1b[2J \x9b2J \x7f\n", "stdout")
    check(shown.count(b"\n") > 20, "indented")


# ---- what is left ----

def process_stat(pid):
    """(parent, start time) of a living process, or None."""
    try:
        with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (int(fields[1]), fields[19])


def descendants(pid):
    everyone = {int(p): process_stat(p) for p in os.listdir("/proc") if p.isdigit()}
    found, frontier = {}, {pid}
    while frontier:
        frontier = {p for p, stat in everyone.items() if stat and stat[0] in frontier}
        found.update({p: everyone[p][1] for p in frontier})
    return found


def none_left(inside):
    until = time.monotonic() + 3
    while True:
        left = [p for p, began in inside.items()
                if (process_stat(p) or (0, None))[1] == began]
        if not left:
            return
        check(time.monotonic() < until, "no process of the cell is left", left)
        time.sleep(0.05)


def main():
    # An ordinary user without a delegated control group: the same command line, one layer less.
    if b"no control group" in run("pass").stderr:
        EXTRA.extend(["--cgroup", "optional"])
        print("# no control group for us on this host: all runs with --cgroup optional")
    failed = 0
    for number, function in enumerate(tests, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print("ok %d - %s" % (number, name))
        except Skip as reason:
            print("ok %d - %s # SKIP %s" % (number, name, reason))
        except Exception as error:  # a check that breaks is a check that fails
            failed += 1
            print("not ok %d - %s" % (number, name))
            text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            print("\n".join("# " + line for line in text.splitlines()))
        sys.stdout.flush()
    print("1..%d" % len(tests))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
