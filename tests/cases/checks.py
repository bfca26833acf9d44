"""What single cases must be asked beyond status and text. Each returns the problems it found."""

import json
import os
import re
import stat


def _lines(run, word):
    return [line for line in run.result.stdout.splitlines() if line.startswith(word)]


def _collected(run):
    """Relative path (bytes) to content of all that --out delivered; None for what is no file."""
    found = {}
    top = os.fsencode(run.out_dir)
    for path, folders, names in os.walk(top):
        for name in names + [f for f in folders if os.path.islink(os.path.join(path, f))]:
            full = os.path.join(path, name)
            if stat.S_ISREG(os.lstat(full).st_mode):
                with open(full, "rb") as file:
                    found[os.path.relpath(full, top)] = file.read()
            else:
                found[os.path.relpath(full, top)] = None
    return found


def collection_problems(ctx, run):
    """Of every run with --out: only regular files came, as many as the outcome lists, and the
    sizes and sums of the outcome are those of the files."""
    found, problems = _collected(run), []
    listed = run.result.get("files") or []
    for path, data in found.items():
        if data is None:
            problems.append("collected something that is no file: %r" % path)
        elif ctx.canary.token.encode() in data or b"root:x:0:0:root:" in data:
            problems.append("content of the host was collected in %r" % path)
    if len(listed) != len(found):
        problems.append("the outcome lists %d files, --out has %d: %r and %r"
                        % (len(listed), len(found), [f.get("path") for f in listed][:12],
                           sorted(found)[:12]))
    problems += _sum_problems(listed, found)
    return problems


def _sum_problems(listed, found):
    import hashlib
    sums = {hashlib.sha256(d).hexdigest(): len(d) for d in found.values() if d is not None}
    return ["the outcome's entry fits no collected file: %r" % entry for entry in listed
            if sums.get(entry.get("sha256")) != entry.get("bytes")]


def _skips(run):
    """How many files were left out, as the outcome says."""
    return run.result.get("files_skipped") or 0


def _skip_problems(run, least):
    if _skips(run) >= least and run.result.get("files_note"):
        return []
    return ["the outcome must say that at least %d files were skipped, and why: %r, %r"
            % (least, run.result.get("files_skipped"), run.result.get("files_note"))]


def pickle_is_opaque(ctx, run):
    data = _collected(run).get(b"result.pkl") or b""
    problems = [] if b"HOST-UNPICKLED" in data else ["result.pkl was not delivered as it is"]
    if b"HOST-UNPICKLED" in run.result.out + run.result.err:
        problems.append("something unpickled the cell's file")
    return problems


def forgery_is_text(ctx, run):
    problems = []
    for mark in ("__SANDBOX_RESULT__", "<<RESULT>>", "###END###", "\x1eRESULT\x1e"):
        if run.result.stdout.count(mark) != 2:
            problems.append("the marker %r is not plain text of stdout" % mark)
    if run.result.get("result") is not None or run.result.get("results"):
        problems.append("a forged result was taken: %r" % run.result.get("result"))
    return problems


def proc_shows_the_cell(ctx, run):
    lines = _lines(run, "BLOCKED") + _lines(run, "READ")
    return [] if len(lines) == 8 else ["eight answers expected: %r" % lines]


def three_refusals(ctx, run):
    blocked = _lines(run, "BLOCKED")
    return [] if len(blocked) == 3 else ["three refusals expected: %r" % blocked]


def reaches_only_itself(ctx, run):
    match = re.search(r"REACHABLE (\[.*\])", run.result.stdout)
    pids = re.findall(r"\((\d+),", match.group(1)) if match else ["none printed"]
    problems = [] if set(pids) <= {"1"} else ["signals reach %r" % pids]
    # The session is that of the cell's init, which has no terminal; the group is its own.
    if "own process group True" not in run.result.stdout:
        problems.append("not in a process group of its own")
    return problems


def links_are_skipped(ctx, run):
    names = {b"out.txt", b"passwd.csv", b"up", b"later.txt"} & set(_collected(run))
    problems = ["collected through a link: %r" % names] if names else []
    least = 3 if run.case.number == 47 else 1
    return problems + _skip_problems(run, least)


def race_never_won(ctx, run):
    data = _collected(run).get(b"race.txt")
    return [] if data in (None, b"mine", b"") else ["race.txt came as %r" % data[:80]]


def race_never_won_often(ctx, run):
    problems = race_never_won(ctx, run)
    for _ in range(5):
        again = run.again()
        problems += race_never_won(ctx, again) + collection_problems(ctx, again)
        if again.result.status != "timeout":
            problems.append(again.result.describe())
    return problems


def only_real_file(ctx, run):
    found = _collected(run)
    problems = [] if found.get(b"real.txt") == b"ok" else ["real.txt was not delivered"]
    extra = {b"plot.png", b"sock.txt"} & set(found)
    if extra:
        problems.append("collected what is no file: %r" % extra)
    return problems + _skip_problems(run, 1)


STRANGE = [b"line\nbreak.txt", b"-rf", b"bad\xff\xfe.bin", b"n" * 255, b"back\\slash", b" lead",
           "emoji\N{SNOWMAN}.txt".encode(), b"..hidden", b"%2e%2e"]


def names_kept(ctx, run):
    found = _collected(run)
    problems = ["%r was not delivered under its name" % name for name in STRANGE
                if found.get(name) != name]
    try:
        run.result.out.decode("utf-8")
    except UnicodeDecodeError:
        problems.append("the outcome is not UTF-8")
    listed = [f.get("path") for f in run.result.get("files") or []]
    if len(set(listed)) != len(listed):
        problems.append("two files share one name in the outcome")
    return problems


def nothing_reached(ctx, run):
    return ["a service of the host was reached: %r" % run.reached] if run.reached else []


def second_is_clean(ctx, run):
    first, second = run.results
    problems = []
    if first.status != "ok" or first.stdout != "left\n":
        problems.append("first run: " + first.describe())
    if second.stdout != "CLEAN\n":
        problems.append("second run: " + second.describe())
    return problems


def collection_is_bounded(ctx, run):
    found = _collected(run)
    problems = [] if 0 < len(found) <= 100 else ["%d files were collected" % len(found)]
    made = re.search(r"made (\d+)", run.result.stdout)
    if not made or not 500 < int(made.group(1)) <= 1000:
        problems.append("the inode limit did not hold: %r" % run.result.stdout)
    return problems + _skip_problems(run, 1)


def both_streams_whole(ctx, run):
    problems = []
    if run.result.stdout != "o" * 300_000 + "\n":
        problems.append("stdout has %d characters" % len(run.result.stdout))
    if run.result.stderr != "e" * 300_000 + "\ndone\n":
        problems.append("stderr has %d characters" % len(run.result.stderr))
    return problems


def crash_is_named(ctx, run):
    if run.result.status == "crashed":
        name = run.result.signal
        return [] if name == "SIGSEGV" else ["a stack overflow is named %s" % name]
    name = run.result.get("error", "name")
    return [] if name in ("RecursionError", "MemoryError") else ["the exception is %s" % name]


def parser_says_nested(ctx, run):
    text = run.result.stderr
    return [] if "too many nested parentheses" in text else ["stderr ends %r" % text[-300:]]


def traceback_is_plain(ctx, run):
    """The traceback that python3 prints, frame for frame: no frame of the runner in it."""
    text, problems = run.result.stderr, []
    frames = re.findall(r'^  File "([^"]*)", line (\d+), in (\S+)$', text, re.M)
    if [(int(line), name) for _, line, name in frames] != [
            (10, "<module>"), (8, "outer"), (6, "inner")]:
        problems.append("frames are %r" % frames)
    name = "<run 1>" if ctx.in_session else run.case.file
    if any(os.path.basename(file) != name for file, _, _ in frames):
        problems.append("frames name other files than the submitted one: %r" % frames)
    for wanted in ('return values["total"] / values["count"]', "~~~^~~~",
                   "ZeroDivisionError: division by zero"):
        if wanted not in text:
            problems.append("no %r in the traceback %r" % (wanted, text[-600:]))
    return problems


def caret_and_line(ctx, run):
    text, problems = run.result.stderr, []
    for wanted in ("line 7", "value = (1 + 2", "^", "SyntaxError"):
        if wanted not in text:
            problems.append("no %r in %r" % (wanted, text[-400:]))
    if "Traceback" in text:
        problems.append("a syntax error has no traceback: %r" % text[-400:])
    return problems


def json_is_ascii_safe(ctx, run):
    """Control bytes leave as escapes: printing the document moves no cursor. (DEL needs no
    escape in JSON, and no terminal acts on it.)"""
    raw = [b for b in run.result.out if b < 32 and b not in b"\n\r\t"]
    return ["raw control bytes in the document: %r" % sorted(set(raw))] if raw else []


def json_is_utf8(ctx, run):
    try:
        json.loads(run.result.out.decode("utf-8", "strict"))
    except ValueError as exc:
        return ["the document is broken: %s" % exc]
    value = run.result.get("error", "value") or ""
    if not value.startswith("bad ") or any("\ud800" <= c <= "\udfff" for c in value):
        return ["the error's text is %r" % value]
    return []


def stderr_is_empty(ctx, run):
    return ["stderr is %r" % run.result.stderr[:500]] if run.result.stderr else []


def summary_returned(ctx, run):
    data = _collected(run).get(b"summary.csv")
    problems = [] if data == b"city,n\nOslo,3\nRome,6\n" else ["summary.csv is %r" % data]
    return problems + stderr_is_empty(ctx, run)
