"""Positive controls: each attack run once outside of any sandbox, where it must work.

A control runs as a user of its own, under resource limits, in a scratch folder, with a time
limit. Bombs have none, and nothing is ever ARMED. A control that this host cannot have says why.
"""

import contextlib
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import host
import leftovers
from expect import SECRETS

PYTHON = "/usr/bin/python3"
LIMIT_S = 30
RLIMITS = ((resource.RLIMIT_CPU, 20), (resource.RLIMIT_AS, 8 << 30),
           (resource.RLIMIT_FSIZE, 64 << 20), (resource.RLIMIT_CORE, 0),
           (resource.RLIMIT_NPROC, 256))
# The attack's parent must be of the same user, as a sandbox's runner would be.
LAUNCHER = ("import subprocess, sys; sys.exit(subprocess.run([sys.executable, *sys.argv[1:]],"
            " close_fds=False).returncode)")

# Runners with the faults that three of the cases look for.
WRAPS_BUILTINS = """
import builtins, runpy, sys
plain = builtins.print
def wrapped(*args, **keys):
    return plain(*args, **keys)
builtins.print = wrapped
runpy.run_path(sys.argv[1], run_name="__main__")
"""
KEEPS_TOKEN = """
import runpy, sys
kept = {"token": []}   # a dict of plain strings is unknown to gc
runpy.run_path(sys.argv[1], run_name="__main__")
"""
EPILOGUE_IN_PYTHON = """
import runpy, sys
def epilogue():
    pass
runpy.run_path(sys.argv[1], run_name="__main__")
epilogue()
"""


class NoControl(Exception):
    """This host cannot show that the attack works; the text says why."""


class Plain:
    """One run outside: what it printed, and the folder that it ran in."""

    def __init__(self, code, out, folder):
        self.code, self.out, self.folder = code, out.decode("utf-8", "replace"), folder


def _start(ctx, source, runner=None, environment=None, root=False, folder=None, pass_fds=()):
    who = ctx.identities["root"] if root else ctx.control
    folder = folder or who.folder("plain")
    argv = [PYTHON, "-c", LAUNCHER]
    if runner:
        path = os.path.join(folder, "runner.py")
        with open(path, "w") as file:
            file.write(runner)
        os.chmod(path, 0o644)
        argv.append(path)
    child = subprocess.Popen(argv + [source], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, cwd=folder, pass_fds=pass_fds,
                             env=who.environment(environment), preexec_fn=who.prepare(RLIMITS),
                             start_new_session=True)
    return child, folder


def run_plain(ctx, case, **keys):
    """`case` is a case, or the path of a program."""
    child, folder = _start(ctx, getattr(case, "path", case), **keys)
    try:
        out, _ = child.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
    return Plain(child.returncode, out, folder)


def _expect(plain, *texts):
    missing = [t for t in texts if t not in plain.out]
    return ["control: no %r in %r" % (t, plain.out[-500:]) for t in missing]


# Surroundings that a case looks for, during its control and during its run -------------------

def _loopbacks():
    found = [(socket.AF_INET, "127.0.0.1")]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        found.append((socket.AF_INET6, "::1"))
    return found


@contextlib.contextmanager
def host_listeners(reached):
    """Services on 8765 of both loopback addresses; `reached` collects who connected."""
    servers = []
    try:
        for family, address in _loopbacks():
            server = socket.socket(family)
            servers.append(server)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((address, 8765))
            server.listen()
            threading.Thread(target=_serve, args=(server, address, reached),
                             daemon=True).start()
        yield
    finally:
        for server in servers:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)  # wakes the accept
            server.close()
        time.sleep(0.05)


def _serve(server, address, reached):
    with contextlib.suppress(OSError):
        while True:
            client, _ = server.accept()
            reached.append(address)
            client.sendall(b"service of the host")
            client.close()


SERVICE = "/run/containerd/containerd.sock"


@contextlib.contextmanager
def service_socket(reached):
    """One of the sockets that the case tries, where no such service is: nobody else asks it."""
    folder = os.path.dirname(SERVICE)
    if os.geteuid() != 0 or os.path.lexists(folder):
        yield
        return
    os.mkdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(SERVICE)
            os.chmod(SERVICE, 0o666)
            server.listen()
            threading.Thread(target=_serve, args=(server, SERVICE, reached),
                             daemon=True).start()
            try:
                yield
            finally:
                server.shutdown(socket.SHUT_RDWR)
                os.unlink(SERVICE)
    finally:
        os.rmdir(folder)


SURROUNDINGS = {59: service_socket, 62: host_listeners}


# Controls -----------------------------------------------------------------------------------

def none(ctx, case):
    raise NoControl("the kernel refuses this outside of a sandbox too")


def escapes(ctx, case):
    plain = run_plain(ctx, case)
    if "ESCAPED" in plain.out or "LEAK" in plain.out:
        return []
    if case.number == 41 and _yama():
        return _expect(run_plain(ctx, case, root=True), "ESCAPED")
    return _expect(plain, "ESCAPED")


def _yama():
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            return int(file.read())
    return 0


def io_uring(ctx, case):
    plain = run_plain(ctx, case)
    if "not implemented" in plain.out or "not permitted" in plain.out:
        raise NoControl("this kernel offers no io_uring to users")
    return _expect(plain, "ESCAPED")


def wrapped_builtins(ctx, case):
    return (_expect(run_plain(ctx, case), "CLEAN")
            + _expect(run_plain(ctx, case, runner=WRAPS_BUILTINS), "WRAPPED print"))


def planted_token(ctx, case):
    return (_expect(run_plain(ctx, case), "CLEAN")
            + _expect(run_plain(ctx, case, runner=KEEPS_TOKEN), "LEAK token"))


def epilogue_in_python(ctx, case):
    return (_expect(run_plain(ctx, case), "EPILOGUE []")
            + _expect(run_plain(ctx, case, runner=EPILOGUE_IN_PYTHON), "runner.py']"))


def inherited_pipe(ctx, case):
    reader, writer = os.pipe()
    try:
        plain = run_plain(ctx, case, pass_fds=(writer,))
    finally:
        os.close(reader)
        os.close(writer)
    return _expect(plain, "OPEN [%d] WROTE []" % writer)


def reaches_others(ctx, case):
    return _expect(run_plain(ctx, case), "REACHABLE [(")


def pickle_is_live(ctx, case):
    plain = run_plain(ctx, case)
    loader = os.path.join(plain.folder, "load.py")
    with open(loader, "w") as file:
        file.write("import pickle; pickle.load(open('result.pkl', 'rb'))")
    os.chmod(loader, 0o644)
    return _expect(run_plain(ctx, loader, folder=plain.folder), "HOST-UNPICKLED")


def link_is_followed(ctx, case):
    plain = run_plain(ctx, case)
    with open(os.path.join(plain.folder, "out.txt")) as file:
        text = file.read()
    return [] if ctx.canary.token in text else ["control: the link did not lead to the canary"]


def hard_link(ctx, case):
    """On the canary's own file system, by root: users may not link to files of others."""
    if os.geteuid() != 0:
        raise NoControl("needs root")
    folder = host.CANARY + "/work"
    os.mkdir(folder)
    plain = run_plain(ctx, case, root=True, folder=folder)
    ctx.canary.damage(mend=True)
    return _expect(plain, "ESCAPED " + host.CANARY)


def dangling_link(ctx, case):
    plain = run_plain(ctx, case)
    made = ctx.canary.damage(mend=True)
    return _expect(plain, "ESCAPED write") + (
        [] if made == ["created"] else ["control: nothing was created through the link"])


def writes_outside(ctx, case):
    return _expect(run_plain(ctx, case), "ESCAPED wrote " + host.CANARY)


def race_is_won(ctx, case):
    """A collector that opens by name reads the canary sooner or later."""
    child, folder = _start(ctx, case.path)
    won = 0
    while child.poll() is None:
        with contextlib.suppress(OSError):
            with open(os.path.join(folder, "race.txt")) as file:
                won += ctx.canary.token in file.read()
    child.communicate()
    return [] if won else ["control: a collector by name never met the link"]


def service_socket_control(ctx, case):
    plain = run_plain(ctx, case)
    if "ESCAPED" not in plain.out and not os.path.exists(SERVICE):
        raise NoControl("none of these services runs here, and none may be put in its place")
    return _expect(plain, "ESCAPED")


def datagram_leaves(ctx, case):
    plain = run_plain(ctx, case)
    if "BLOCKED 53" in plain.out:
        raise NoControl("this host has no route to anywhere")
    return _expect(plain, "ESCAPED sent 53")


def listener_reached(ctx, case):
    return _expect(run_plain(ctx, case), *("ESCAPED " + a for _, a in _loopbacks()))


def secrets_seen(ctx, case):
    return _expect(run_plain(ctx, case, environment=SECRETS), "LEAK", "SBX_CANARY_KEY")


def residue_stays(ctx, case):
    folder = ctx.control.folder("plain")
    parts = []
    for number, part in enumerate(case.parts):
        path = os.path.join(folder, "part%d.py" % number)
        with open(path, "wb") as file:
            file.write(part)
        os.chmod(path, 0o644)
        parts.append(run_plain(ctx, path, folder=folder))
    for place in ("/tmp", "/dev/shm", "/var/tmp"):
        path = os.path.join(place, "sbx-residue.txt")
        with contextlib.suppress(OSError):
            if os.stat(path).st_uid == ctx.control.uid:
                os.unlink(path)
    return _expect(parts[0], "left") + _expect(parts[1], "LEAK")


def orphan_holds_pipe(ctx, case):
    child, _ = _start(ctx, case.path)
    child.wait(LIMIT_S)
    held = True
    while held and select.select([child.stdout], [], [], 0.5)[0]:
        held = bool(os.read(child.stdout.fileno(), 4096))
    child.stdout.close()
    leftovers.end_descendants()
    return [] if held else ["control: no orphan held the pipe"]


def daemon_lives_on(ctx, case):
    plain = run_plain(ctx, case)
    beat = os.path.join(plain.folder, "beat.txt")
    before = os.path.getsize(beat)
    time.sleep(1.3)
    grown = os.path.getsize(beat) > before
    leftovers.end_descendants()
    return [] if grown else ["control: the daemon did not live on"]


def find(name):
    """The control of that name; "service_socket" is a surrounding's name too."""
    if name == "service_socket":
        return service_socket_control
    return getattr(sys.modules[__name__], name)
