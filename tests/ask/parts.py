"""What the points of `adyton ask` stand on: a home of its own, the program, what it should say."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import traceback

import tap

LIMIT_S = 120
KEY = "sk-test-0123456789abcdef"


class Wrong(Exception):
    pass


def check(holds, what, *seen):
    if not holds:
        raise Wrong("%s: %s" % (what, " ".join(repr(s)[:600] for s in seen)))


def same(seen, wanted, what):
    check(seen == wanted, what, seen, "instead of", wanted)


class Place:
    """One home: state, files, the environment that the program gets."""

    def __init__(self, program):
        self.program = program
        self.home = tempfile.mkdtemp(prefix="ask-")
        self.environment = {
            name: value for name, value in os.environ.items()
            if not re.search(r"proxy|OPENAI|ANTHROPIC|SSL_CERT", name, re.I)}
        self.environment.update(HOME=self.home, XDG_STATE_HOME=self.home, OPENAI_API_KEY=KEY,
                                ANTHROPIC_API_KEY=KEY,
                                XDG_RUNTIME_DIR=self.home)   # no supervisor listens there
        # What was found out about the interpreter is the same for every home.
        self.environment.setdefault("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))

    def file(self, name, text="", mode=0o600):
        path = os.path.join(self.home, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def run(self, *args, stdin=None, **environment):
        env = dict(self.environment, **environment)
        done = subprocess.run(
            [self.program, *args], env=env, cwd=self.home, input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, text=True)
        return done

    def ask(self, endpoint, *args, question="What is it?", **more):
        return self.run("ask", "--base-url", endpoint.base, "--model", "scripted", *args,
                        question, **more)

    def ledger(self):
        done = self.run("runs", "export")
        same(done.returncode, 0, "the export of the ledger " + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def rows(self, kind):
        return [row for row in self.ledger() if row.get("kind") == kind]

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)


class Points:
    def __init__(self):
        self.list = []

    def point(self, function):
        self.list.append(function)
        return function

    def run(self, build, names):
        out = tap.Tap()
        for function in self.list:
            if names and function.__name__ not in names:
                continue
            place = Place(os.path.join(build, "adyton"))
            problems = []
            try:
                function(place)
            except Wrong as wrong:
                problems = [str(wrong)]
            except Exception:   # pylint: disable=broad-except
                problems = traceback.format_exc().splitlines()[-12:]
            finally:
                place.close()
            out.point(function.__name__.replace("_", " "), problems)
        return out.finish()


points = Points()
point = points.point


def answered(done, text):
    same(done.returncode, 0, "the exit status; stderr: %s" % done.stderr[-500:])
    same(done.stdout, text, "stdout")


def last_text(request):
    """What the model was told last, in either form."""
    content = request["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for block in content for part in block["content"])
