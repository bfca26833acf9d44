"""A supervisor of our own, a client that speaks its protocol byte by byte, and a TAP runner.

Everything is placed in a folder that is gone afterwards.
"""
import array
import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))

import host  # noqa: E402

PATIENCE_S = 30
MARK = "held-by-the-run"
SLEEP = ("import time\nheld = open('" + MARK + "', 'w')\nprint('up', flush=True)\n"
         "time.sleep(%g)\nprint('done')")


class Skip(Exception):
    """The host lacks what a check needs; the reason is printed and counted."""


def check(truth, what, *seen):
    if not truth:
        raise AssertionError("%s; seen: %s" % (what, ", ".join(repr(s)[:900] for s in seen)))


def same(seen, wanted, what):
    check(seen == wanted, "%s is %.600r" % (what, wanted), seen)


def wait_for(condition, what, seconds=PATIENCE_S):
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < until, what)
        time.sleep(0.02)


def children_of(root):
    """Live processes that come from `root`: pid to (name, start time)."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry, "rb") as file:
                    text = file.read()
            except OSError:
                continue
            rest = text[text.rindex(b")") + 2:].split()
            name = text[text.index(b"(") + 1:text.rindex(b")")].decode("utf-8", "replace")
            table[int(entry)] = (int(rest[1]), name, int(rest[19]), rest[0])
    found = {}
    for pid, (_, name, start, state) in table.items():
        at, seen = pid, set()
        while at in table and at not in seen:
            seen.add(at)
            at = table[at][0]
            if at == root and state not in (b"Z", b"X"):
                found[pid] = (name, start)
    return found


def cell_of(root, mark):
    """The processes of the cell in which code holds a file of that name open: those of its pid
    namespace.  Pooled cells, which wait for a job, are others."""
    found = children_of(root)
    spaces = {}
    for pid in found:
        try:
            spaces[pid] = os.readlink("/proc/%d/ns/pid" % pid)
        except OSError:
            continue
    for pid in spaces:
        try:
            held = [os.readlink("/proc/%d/fd/%s" % (pid, fd))
                    for fd in os.listdir("/proc/%d/fd" % pid)]
        except OSError:
            continue
        if any(mark in name for name in held):
            return {p: found[p] for p, space in spaces.items() if space == spaces[pid]}
    return {}


def is_alive(pid, start):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            rest = file.read().rpartition(b") ")[2].split()
    except OSError:
        return False
    return int(rest[19]) == start and rest[0] not in (b"Z", b"X")


def memory_of(pid):
    with open("/proc/%d/statm" % pid) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Client:
    """One connection."""

    def __init__(self, path, hello=True, receive_bytes=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.bytes = b""
        if hello:
            self.send({"adyton": 1})
            same(self.receive()["adyton"], 1, "the supervisor's version")

    def send_bytes(self, data, fds=()):
        if not fds:
            self.socket.sendall(data)
            return
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        sent = self.socket.sendmsg([data], rights)
        self.socket.sendall(data[sent:])

    def send(self, message, fds=()):
        text = json.dumps(message).encode()
        self.send_bytes(struct.pack(">I", len(text)) + text, fds)

    def run(self, name, code, fds=(), **fields):
        self.send({"type": "run", "id": name, "code": code, **fields}, fds)

    def _take(self, n):
        while len(self.bytes) < n:
            got = self.socket.recv(1 << 16)
            if not got:
                raise EOFError
            self.bytes += got
        taken, self.bytes = self.bytes[:n], self.bytes[n:]
        return taken

    def receive(self):
        (n,) = struct.unpack(">I", self._take(4))
        return json.loads(self._take(n))

    def until(self, kind, name=None):
        """The next message of that type (and run), and those before it."""
        before = []
        while True:
            message = self.receive()
            if message.get("type") == kind and name in (None, message.get("id")):
                return message, before
            check(kind != "stdout" or message.get("type") != "finished", "there is output",
                  message)
            before.append(message)

    def outcome(self, name):
        return self.until("finished", name)[0]["outcome"]

    def ask(self, kind):
        self.send({"type": kind})
        return self.until("pong" if kind == "ping" else kind)[0]

    def is_closed(self):
        try:
            while True:
                self.receive()
        except (EOFError, ConnectionResetError):
            return True

    def close(self):
        self.socket.close()


def data_of(message):
    if "data_base64" in message:
        return base64.b64decode(message["data_base64"])
    return message["data"].encode()


class Place:
    """A folder with a supervisor in it."""

    def __init__(self, adyton):
        self.adyton = adyton
        self.path = tempfile.mkdtemp(prefix="adyton-serve-")
        self.socket = os.path.join(self.path, "run", "s")
        self.log = os.path.join(self.path, "log")
        self.environment = {**os.environ, "XDG_STATE_HOME": os.path.join(self.path, "state"),
                            "XDG_RUNTIME_DIR": os.path.join(self.path, "runtime")}
        self.process = None

    def file(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def start(self, *args, **options):
        command = [self.adyton, "serve", "--socket", self.socket, *args]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log,
                                            env=self.environment, **options)
        wait_for(self.answers, "the supervisor answers: " + self.notes())
        return self

    def answers(self):
        check(self.process.poll() is None, "the supervisor lives", self.notes())
        try:
            Client(self.socket).close()
        except OSError:
            return False
        return True

    def notes(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log) as log:
            return log.read()

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self, seconds=PATIENCE_S):
        return self.process.wait(seconds)

    def client(self, **options):
        return Client(self.socket, **options)

    def status(self):
        client = self.client()
        try:
            return client.ask("status")
        finally:
            client.close()

    def command(self, *args):
        return [self.adyton, *args]

    def call(self, *args, stdin=b""):
        return subprocess.run(self.command(*args), input=stdin, capture_output=True,
                              timeout=PATIENCE_S, env=self.environment)

    def run(self, *args, **options):
        """Through the supervisor."""
        return self.call("run", "--socket", self.socket, *args, **options)

    def start_again(self, *args):
        self.process.kill()
        self.process.wait()
        return self.start(*args)

    def popen_bare(self, *args, **options):
        return subprocess.Popen(self.command(*args), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment, **options)

    def popen(self, *args, **options):
        return subprocess.Popen(self.command("run", "--socket", self.socket, *args),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment, **options)

    def done(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.path, ignore_errors=True)


class Suite:
    def __init__(self):
        self.tests = []

    def test(self, *serve_args, **serve_options):
        """A check with a supervisor started so; with none when the only argument is None."""
        def take(function):
            self.tests.append((function, serve_args, serve_options))
            return function
        return take

    def _run(self, adyton, function, args, options):
        place = Place(adyton)
        try:
            if args != (None,):
                args = [a(place) if callable(a) else a for a in args]
                place.start(*args, **options)
            function(place)
            check(place.process is None or place.process.poll() in (None, 0, -signal.SIGKILL),
                  "the supervisor has not crashed", place.process and place.process.poll(),
                  place.notes())
        finally:
            place.done()

    def main(self, adyton, only=()):
        """Runs them with a copy that everyone can read: a clone may lie in somebody's home."""
        with host.scratch() as base:
            return self._main(host.install(adyton, base), only)

    def _main(self, adyton, only):
        failed = skipped = number = 0
        for function, args, options in self.tests:
            if only and function.__name__ not in only:
                continue
            number += 1
            name = function.__name__.replace("_", " ")
            try:
                self._run(adyton, function, args, options)
                print("ok %d - %s" % (number, name))
            except Skip as reason:
                skipped += 1
                print("ok %d - %s # SKIP %s" % (number, name, reason))
            except Exception as error:  # a check that breaks is a check that fails
                failed += 1
                print("not ok %d - %s" % (number, name))
                text = (str(error) if isinstance(error, AssertionError)
                        else traceback.format_exc())
                print("\n".join("# " + line for line in text.splitlines()))
            sys.stdout.flush()
        print("# %d failed, %d skipped" % (failed, skipped))
        print("1..%d" % number)
        return 1 if failed else 0
