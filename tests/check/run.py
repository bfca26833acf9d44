#!/usr/bin/env python3
"""Validation, through the real program: run.py ADYTON [--only WORD]

Ordinary scripts are accepted and run; hostile ones are rejected, or named here as unseen, and then
the kernel refuses; bombs, encodings and positions; CPython's own library; text, JSON and SARIF.
Prints TAP. Only the standard library.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path[1:1] = [os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "cases")]

import corpus       # noqa: E402
import expect       # noqa: E402
import positions    # noqa: E402
from tap import Tap  # noqa: E402

PYTHON = "/usr/bin/python3"
PATIENCE_S = 120
BATCH = 100
REJECTED = 126

# Cases of the other corpus that try to get out and of which validation sees nothing: what each of
# them does is allowed, and what it tries is refused by the kernel.
CASES_UNSEEN = {
    "008": "executes at definition: nothing forbidden, and validation executes nothing",
    "019": "leaves a pickle; nobody opens it",
    "023": "writes to descriptors that are not there",
    "042": "asks for signals of other processes",
    "057": "text that breaks templates; there is none",
}
KINDS = ("escape", "unicode")
OWN_TMP = re.compile(rb"(?<!\w)/tmp/")


class Host:
    """A place outside of every cell, and a listener, for scripts to try."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="adyton-check-", dir="/var/tmp")
        self.outside = os.path.join(self.folder, "out")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        body = b"a,b\n1,2\n"
        head = b"HTTP/1.0 200 OK\r\nContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n"
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(1)
                peer.sendall(head % len(body) + body)
                try:    # a client that is told nothing more must not meet a reset
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(4096):
                        pass
                except OSError:
                    pass

    def renew(self):
        """The outside as each script finds it: one that anybody may change."""
        shutil.rmtree(self.outside, ignore_errors=True)
        os.makedirs(os.path.join(self.outside, "tree"))
        for name in ("secret", "victim"):
            with open(os.path.join(self.outside, name), "w") as file:
                file.write("kept out of cells\n")
            os.chmod(os.path.join(self.outside, name), 0o666)
        for folder in (self.folder, self.outside):
            os.chmod(folder, 0o777)

    def done(self):
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Suite:
    def __init__(self, adyton, only):
        self.adyton, self.only, self.tap, self.host = adyton, only, Tap(), Host()
        self.work = tempfile.mkdtemp(prefix="adyton-check-")
        self.extra = []    # what this host needs, to run a cell at all
        self.environment = dict(os.environ, XDG_STATE_HOME=os.path.join(self.work, "state"))
        self.host.renew()
        if b"--cgroup optional" in self.call("run", "-c", "pass").stderr:
            self.extra = ["--cgroup", "optional"]

    def point(self, name, problems=(), skip=None):
        self.tap.point(name, problems, skip)

    def call(self, *args, stdin=b"", limit_s=PATIENCE_S):
        args = [*args[:1], *(self.extra if len(args) > 1 else []), *args[1:]]
        return subprocess.run([self.adyton, *args], input=stdin, capture_output=True,
                              timeout=limit_s, env=self.environment)

    def check(self, sources, *options):
        """{name: what `adyton check` says of it} for {name: bytes}."""
        said, names = {}, sorted(sources)
        for at in range(0, len(names), BATCH):
            paths = []
            for i, name in enumerate(names[at:at + BATCH]):
                paths.append(os.path.join(self.work, "%03d.py" % i))
                with open(paths[-1], "wb") as file:
                    file.write(sources[name])
            done = self.call("check", "--format", "json", *options, *paths, limit_s=600)
            for name, result in zip(names[at:at + BATCH], json.loads(done.stdout)["files"]):
                said[name] = result
        return said

    def run(self, source, *options):
        path = os.path.join(self.work, "main.py")
        with open(path, "wb") as file:
            file.write(source)
        done = self.call("run", "--json", *options, path)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {"status": "no outcome", "stdout": "", "message": repr(done.stderr[-300:])}

    def outside(self, source):
        """The script without a cell: what it does there is the control of its refusal."""
        folder = tempfile.mkdtemp(prefix="adyton-control-")
        try:
            path = os.path.join(folder, "main.py")
            with open(path, "wb") as file:
                file.write(OWN_TMP.sub(folder.encode() + b"/", source))
            done = subprocess.run([PYTHON, "-B", path], cwd=folder, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=PATIENCE_S)
            return done.stdout + done.stderr
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def done(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.host.done()
        return self.tap.finish()


def rules_of(said):
    return sorted({"%s:%s" % (f["rule"], f["severity"]) for f in said["findings"]})


def lacks(text):
    """The name of a library that is not on this host, or None."""
    for name in ("numpy", "pandas", "matplotlib", "scipy"):
        if name in text and subprocess.run([PYTHON, "-c", "import " + name],
                                           capture_output=True).returncode != 0:
            return name
    return None


def ordinary(suite):
    scripts = corpus.load("ordinary")
    said = suite.check({s.name: s.text.encode() for s in scripts})
    suite.point("at least 150 ordinary scripts", [] if len(scripts) >= 150 else [len(scripts)])
    for script in scripts:
        verdict = said[script.name]
        problems = []
        if verdict["verdict"] != "accepted":
            problems.append("%s: %s" % (verdict["verdict"], [f["message"] for f in verdict["findings"]]))
        missing = lacks(script.text)
        if not missing:
            outcome = suite.run(script.text.encode())
            if outcome["status"] != "ok":
                problems.append("ran to %s: %s %s" % (outcome["status"], outcome["message"],
                                                      outcome.get("stderr", "")[-300:]))
        suite.point("ordinary: " + script.name, problems,
                    skip="no %s here" % missing if missing and not problems else None)


def hostile(suite):
    scripts = corpus.load("hostile")
    host = suite.host
    sources = {s.name: s.bytes(host.outside, host.port) for s in scripts}
    said = suite.check(sources)
    suite.point("at least 150 hostile scripts", [] if len(scripts) >= 150 else [len(scripts)])
    for script in scripts:
        source, marks = sources[script.name], script.marks
        missing = lacks(script.text)
        if missing:
            suite.point("hostile: " + script.name, skip="no %s here" % missing)
            continue
        problems = judge(said[script.name], "unseen" in marks)
        if not marks & {"inside"}:
            problems += refused(suite, source, "danger" in marks)
        suite.point("hostile: " + script.name, problems)


def judge(verdict, unseen):
    """Rejected by validation, unless it is listed as unseen: then the list must be true."""
    wanted = "accepted" if unseen else "rejected"
    if verdict["verdict"] == wanted:
        return []
    return ["validation: %s, with %s" % (verdict["verdict"], rules_of(verdict))]


def refused(suite, source, dangerous):
    """Without validation: the kernel refuses; outside of a cell it would have worked."""
    problems = []
    suite.host.renew()
    before = sorted(os.listdir(suite.host.outside))
    outcome = suite.run(source, "--validation", "off", "--timeout", "3s", "--cpu-time", "3s")
    if "ESCAPED" in outcome["stdout"] or outcome["status"] in ("failed", "rejected", "no outcome"):
        problems.append("without validation: %s %r %s" % (
            outcome["status"], outcome["stdout"][-200:], outcome["message"]))
    if sorted(os.listdir(suite.host.outside)) != before:
        problems.append("the outside was changed")
    if not dangerous:
        seen = suite.outside(source)
        if b"ESCAPED" not in seen:
            problems.append("control: outside of a cell it does not work either: %r" % seen[-300:])
    return problems


def cases(suite):
    """The escapes and unicode tricks of the other corpus, and what its table asks of validation."""
    asked = {row.number for row in expect.ROWS if expect.VALIDATION in row.modes}
    folder = os.path.join(HERE, "..", "cases", "corpus")
    sources = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            text = file.read()
        kind = text.partition(b"# kind: ")[2].partition(b"\n")[0].decode()
        if name.endswith(".py") and (kind in KINDS or int(name[:3]) in asked):
            sources[name] = (kind, text)
    said = suite.check({name: text for name, (_, text) in sources.items()})
    harmless = {"131", "133", "135", "140"}    # text of all kinds, and nothing else
    for name, (kind, _) in sources.items():
        verdict, number = said[name], name[:3]
        if number in harmless:
            suite.point("case %s is harmless" % name, judge(verdict, True))
        elif number in CASES_UNSEEN:
            suite.point("case %s is not seen by validation: %s" % (name, CASES_UNSEEN[number]),
                        judge(verdict, True))
        else:
            suite.point("case %s is rejected" % name, judge(verdict, False))


def library(suite):
    """Every file of the interpreter's own library is looked at, and none ends the parser."""
    folder = subprocess.run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"],
                            capture_output=True, text=True).stdout.strip()
    paths = [os.path.join(top, name) for top, folders, names in os.walk(folder) for name in names
             if name.endswith(".py") and "site-packages" not in top and "dist-packages" not in top]
    problems, seen = [], 0
    for at in range(0, len(paths), BATCH):
        done = suite.call("check", "--format", "json", "--policy",
                          os.path.join(HERE, "library.yaml"), *sorted(paths)[at:at + BATCH],
                          limit_s=600)
        for result in json.loads(done.stdout)["files"]:
            seen += 1
            rules = {f["rule"] for f in result["findings"]}
            bad = rules & {"parser-exhausted", "syntax-error", "source-encoding", "source-size"}
            if result["verdict"] == "failed" or bad:
                problems.append("%s: %s %s" % (result["file"], result["verdict"], bad))
    suite.point("CPython's library: %d files, each parsed" % seen, problems[:10])
    suite.point("CPython's library has files", [] if seen > 200 else ["only %d" % seen])


SECTIONS = {"positions": positions.positions, "formats": positions.formats,
            "policies": positions.policies, "bombs": positions.bombs, "cases": cases,
            "ordinary": ordinary, "hostile": hostile, "library": library}


def main():
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else None
    suite = Suite(os.path.abspath(sys.argv[1]), only)
    try:
        for name, section in SECTIONS.items():
            if not only or only == name:
                section(suite)
    finally:
        status = suite.done()
    return status


if __name__ == "__main__":
    sys.exit(main())
