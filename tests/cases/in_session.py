"""The rows in sessions: each in a session of its own, in one run after another where it has parts.

What --out delivers of a run comes here from `adyton session get` and `files`, while the cell lives.
Afterwards a session that was kept answers, and is closed.
"""

import json

import cell

ALIVE = b"print('still here')\n"


class Refused(Exception):
    """No session could be made; its text says why."""


def one(program, served, row, sources, options, out_dir, last, stdin, limit_s):
    """Results of the sources, run one after another in one session, and what is wrong beside;
    `last` is a source that says ALIVE."""
    done = served.call("session", "new", "--socket", served.socket, "--policy", row.policy,
                       *row.limits)
    if done.returncode != 0:
        raise Refused(done.stderr.decode("utf-8", "replace"))
    session = done.stdout.decode().strip()
    words = ["--socket", served.socket, "--session", session, *options]
    results, problems = [], []
    for number, source in enumerate(sources):
        more = row.each[number] if row.each else []
        results.append(cell.run(program, served.identity, words + more, source, stdin=stdin,
                                environment=row.environment, limit_s=limit_s))
        problems += of_session(results[-1], session, len(results))
        if results[-1].get("session") != "kept":
            break
    kept = results[-1].get("session") == "kept"
    if out_dir and kept:
        problems += fetch(served, session, out_dir, results[-1])
    if kept:
        problems += alive(program, served, session, last)
    done = served.call("session", "close", session, "--socket", served.socket)
    if (done.returncode == 0) != kept:
        problems.append("a session that was %s is closed with %d: %r"
                        % (results[-1].get("session"), done.returncode, done.stderr[-300:]))
    return results, problems


def of_session(result, session, count):
    """What each outcome of a session says of it."""
    if result.outcome is None:
        return []
    wanted = {"session_id": session, "execution_count": count}
    problems = ["%s must be %r, not %r" % (name, value, result.get(name))
                for name, value in wanted.items() if result.get(name) != value]
    if result.get("session") not in ("kept", "lost"):
        problems.append("session is %r" % result.get("session"))
    if (result.get("session") == "lost") != bool(result.get("session_note")):
        problems.append("session_note is %r" % result.get("session_note"))
    return problems


def fetch(served, session, out_dir, result):
    """As --out would have it: the files into the folder, their list into the outcome."""
    listed = served.call("session", "files", session, "--json", "--socket", served.socket)
    done = served.call("session", "get", session, "--all", "--out", out_dir, "--socket",
                       served.socket)
    if listed.returncode or done.returncode not in (0, 1):
        return ["its files: %r %r" % (listed.stderr[-300:], done.stderr[-300:])]
    answer = json.loads(listed.stdout)
    result.outcome["files"] = answer["files"]
    result.outcome["files_skipped"] = answer.get("skipped", 0)
    result.outcome["files_note"] = answer.get("note")
    # One that vanishes or changes under the reader is named; whatever else is wrong is not that.
    said = done.stderr.decode("utf-8", "replace").splitlines()
    return ["get: " + line for line in said if not any(
        word in line for word in ("left out", "no such file", "it changed", "symbolic link"))]


def alive(program, served, session, source):
    result = cell.run(program, served.identity,
                      ["--socket", served.socket, "--session", session], source)
    if "still here" in result.stdout and result.get("session") == "kept":
        return []
    return ["the session was kept, and then " + result.describe()]
