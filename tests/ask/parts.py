"""What the points of `adyton ask` stand on: a home of its own, the program, what it should say."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor

import tap

LIMIT_S = 120
AT_ONCE = 2     # each in a home of its own; most of their time they wait
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
                                ANTHROPIC_API_KEY=KEY, XDG_RUNTIME_DIR=self.home)
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
        if "--socket" not in args:
            args = ("--cold", *args)    # root's supervisor may listen, whatever the environment
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
        out, program = tap.Tap(), os.path.join(build, "adyton")
        chosen = [f for f in self.list if not names or f.__name__ in names]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for function, problems in zip(chosen, pool.map(
                    lambda f: problems_of(f, program), chosen)):
                out.point(function.__name__.replace("_", " "), problems)
        return out.finish()


def problems_of(function, program):
    place = Place(program)
    try:
        function(place)
    except Wrong as wrong:
        return [str(wrong)]
    except Exception:   # pylint: disable=broad-except
        return traceback.format_exc().splitlines()[-12:]
    finally:
        place.close()
    return []


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
