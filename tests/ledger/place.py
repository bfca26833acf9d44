"""A ledger of a test's own, the program that is asked about it, and TAP."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import traceback

ADYTON, WRITER = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE_S = 60

tests = []
EXTRA = []  # options that every run needs on this host


class Skip(Exception):
    """The host lacks what a check needs; the reason is printed and counted."""


def test(function):
    """A test with a folder of its own, which holds its ledger and is gone afterwards."""
    def wrapped():
        path = tempfile.mkdtemp(prefix="adyton-ledger-")
        try:
            function(Place(path))
        finally:
            shutil.rmtree(path, ignore_errors=True)
    wrapped.__name__ = function.__name__
    tests.append(wrapped)
    return wrapped


def check(truth, what, *seen):
    if not truth:
        raise AssertionError("%s; seen: %s" % (what, ", ".join(repr(s)[:800] for s in seen)))


def same(seen, wanted, what):
    check(seen == wanted, "%s is %.400r" % (what, wanted), seen)


class Place:
    """A folder with a ledger in it."""

    def __init__(self, folder):
        self.folder = folder
        self.ledger = folder + "/ledger.db"

    def call(self, *args, ledger=None, **options):
        options = {"stdin": subprocess.DEVNULL, "timeout": PATIENCE_S, **options}
        return subprocess.run([ADYTON, *args, "--ledger", ledger or self.ledger],
                              capture_output=True, **options)

    def run(self, code, *args, **options):
        return self.call("run", "-c", code, *EXTRA, *args, **options)

    def json(self, *args, **options):
        done = self.call(*args, "--format", "json", **options)
        same((done.returncode, done.stderr), (0, b""), "the ending of %s" % (args,))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def sql(self, text, *args):
        base = sqlite3.connect(self.ledger, timeout=10, isolation_level=None)
        try:
            return base.execute(text, args).fetchall()
        finally:
            base.close()

    def sound(self):
        done = self.call("incidents", "verify")
        check(done.returncode == 0 and done.stdout.startswith(b"sound: "), "it verifies",
              done.stdout, done.stderr)
        return re.search(rb"head: (\S+)", done.stdout).group(1).decode()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        return path


def main():
    probe = tempfile.mkdtemp(prefix="adyton-ledger-")
    if b"no control group" in Place(probe).run("pass").stderr:
        EXTRA.extend(["--cgroup", "optional"])
        print("# no control group for us on this host: all runs with --cgroup optional")
    shutil.rmtree(probe)
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
