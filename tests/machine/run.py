"""Runs the program on Debian's own kernel, in an emulated machine, and passes its TAP on.

    run.py ADYTON --part PART [--python PATH] [--keep] [--console]

Cgroup v2 without v1, and a Landlock without signal scopes (ABI 2): what Debian 12 has and the
machine that builds may not. The machine has no network, and of the host's files only copies.
"""

import argparse
import ctypes
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import debian   # noqa: E402
import image    # noqa: E402

# Of everything: the machine is ended then. A busy host may stretch it.
LIMIT_S = 420 * float(os.environ.get("ADYTON_TEST_SLOWNESS", "1"))
# Each boots a machine of its own: checks.py says what it does there.
PARTS = ("root", "user", "warm", "lacking", "layers", "escape")
MEMORY_MIB = 1536
PR_SET_PDEATHSIG = 1
TAIL_LINES = 40        # of the console, shown when the machine did not come to its end
POINT = re.compile(r"(not ok|ok) (\d+)\b")
PLAN = re.compile(r"1\.\.(\d+)$")
PASSED_ON = re.compile(r"(not ok|ok) \d+\b|1\.\.\d+$|#|Bail out!")


def command(emulator, kernel, disk, initial, part):
    # Emulated by software on purpose: the same everywhere, in need of no right on the host.
    return [emulator, "-accel", "tcg", "-M", "q35", "-cpu", "max", "-smp", "2",
            "-m", str(MEMORY_MIB), "-nodefaults", "-no-user-config", "-display", "none",
            "-serial", "stdio", "-no-reboot", "-kernel", kernel.image, "-initrd", initial,
            # panic=-1: a kernel that fails ends the machine. loglevel: the console is ours.
            "-append", "console=ttyS0 loglevel=1 panic=-1 cgroup_no_v1=all part=" + part,
            "-drive", "id=disk,file=%s,format=raw,if=none" % disk,
            "-device", "virtio-blk-pci,drive=disk"]


class Console:
    """The lines of the machine's console; what is TAP in them goes to our output."""

    def __init__(self, show):
        self.show, self.rest, self.tail = show, b"", []
        self.failed, self.points, self.plan, self.bailed = 0, 0, None, False

    def take(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace").strip("\r"))

    def _line(self, text):
        self.tail = self.tail[1 - TAIL_LINES:] + [text]
        point, plan = POINT.match(text), PLAN.match(text)
        if point:
            self.points += 1
            self.failed += point.group(1) == "not ok"
        if plan:
            self.plan = int(plan.group(1))
            return   # ours comes at the end, with what we add
        self.bailed |= text.startswith("Bail out!")
        if PASSED_ON.match(text) and not self.bailed:
            print(text, flush=True)
        elif self.show:
            print("# console: " + text, flush=True)

    def finished(self):
        return self.plan is not None and self.plan == self.points and not self.bailed


def watch(child, console, deadline):
    """Reads the console until the machine is off; False when its time was over first."""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if not selector.select(left):
                continue
            data = os.read(child.stdout.fileno(), 65536)
            if not data:
                return True
            console.take(data)


def die_with_us():
    """In the emulator, before it starts: whoever kills us ends the machine, too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_machine(argv, console, deadline):
    """Returns why the machine did not come to its end, or None."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, preexec_fn=die_with_us)
    try:
        in_time = watch(child, console, deadline)
    finally:
        if child.poll() is None:
            child.kill()   # by its id; of a machine that is off there is nothing to kill
        child.wait()
        child.stdout.close()
    if not in_time:
        return "it was ended after %d s" % LIMIT_S
    return None if console.finished() else "it went off before its tests were over"


def conclude(console, why):
    points = console.points + 1
    failed = console.failed + (why is not None)
    print("%s %d - the machine comes to the end of its tests" % ("not ok" if why else "ok",
                                                                points))
    for line in ["%s; its last lines:" % why] + console.tail if why else ():
        print("# " + line)
    print("1..%d" % points, flush=True)
    return 1 if failed else 0


def ingredients(build):
    """The first program, the emulator and the kernel; raises Missing."""
    start = os.path.join(build, "tests/machine/start")
    if os.uname().machine != "x86_64":
        raise debian.Missing("the machine is of another kind than this host")
    if not os.path.exists(start):
        raise debian.Missing("no %s: build all of the tests, without sanitizers" % start)
    return start, debian.emulator(), debian.kernel(os.path.join(build,
                                                                "tests/machine/kernel"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("adyton", help="the program, or the build folder that holds it")
    parser.add_argument("--part", required=True, choices=PARTS)
    parser.add_argument("--python", default="/usr/bin/python3", help="what goes along")
    parser.add_argument("--keep", action="store_true", help="keep the machine's files")
    parser.add_argument("--console", action="store_true", help="show all of the console")
    options = parser.parse_args()
    deadline = time.monotonic() + LIMIT_S
    program = os.path.realpath(options.adyton)
    if os.path.isdir(program):
        program = os.path.join(program, "adyton")
    if not os.path.exists(program):
        parser.error("there is no %s" % program)
    # As an exception it lets the folder be removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    build = os.path.dirname(program)
    try:
        start, emulator, kernel = ingredients(build)
        modules = kernel.modules()
    except debian.Missing as exc:
        print("1..0 # SKIP %s" % exc)
        return 0
    folder = tempfile.mkdtemp(prefix="machine-")
    try:
        disk, have = image.make_disk(folder, program, build, options.python)
        print("# Linux %s, with %s" % (kernel.release, ", ".join(have) or "no packages"))
        initial = image.make_initial(folder, start, modules)
        console = Console(options.console)
        argv = command(emulator, kernel, disk, initial, options.part)
        why = run_machine(argv, console, deadline)
        return conclude(console, why)
    finally:
        if options.keep:
            print("# kept: " + folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
