"""One fault a run: what fails inside adyton is told as `failed`, and leaves nothing.

    run.py ADYTON INJECT ALLOC_SO [--only TEXT]

First a run is recorded: each system call of the supervisor, the keeper, the cell's init and the
guest, and each different way to an allocation. Then one after the other is made to fail. What
must come of it: status `failed`, exit status 125, a sentence, no process, control group or file.
A run may still be `ok`, with its whole output, when the call is one that OPTIONAL names. Prints
TAP, one point for each call of each process.
"""

import argparse
import bisect
import collections
import concurrent.futures
import contextlib
import errno
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
POLICIES = os.path.join(HERE, "..", "policies")

import host          # noqa: E402
import leftovers     # noqa: E402
from cell import Result  # noqa: E402
from tap import Tap  # noqa: E402

AT_ONCE = 2
HANG_S = 60
HANG_ALLOCATION_S = 8
SLOW_S = 15        # a fault that is only found by waiting
PATIENCE_S = 3.0   # for what a killed process leaves to the kernel or the keeper
REPORTED = 5
WRONG = 99         # of inject: the program was not traced
FAILED = 125

# Reads its stdin and makes one call that is refused: both must have worked in a run that is
# ok.
CODE = """import os, sys
try:
    os.chroot("/")
except OSError:
    print(sys.stdin.read(), end="")
open("left.txt", "w").write("left")
display({"text/plain": "shown", "application/json": {"a": [1]}, "image/png": "aGk="}, raw=True)
"""
# The same for where the code is looked at first, and such a call would be rejected.
TAME = """import sys
print(sys.stdin.read(), end="")
"""
GIVEN = "given"

ERRORS = {
    "EMFILE": "openat openat2 open pipe2 socketpair memfd_create socket eventfd2 epoll_create1 "
              "signalfd4 inotify_init1 fcntl dup2 dup3",
    "ENOSPC": "mkdir mkdirat write symlink symlinkat pwrite64 ftruncate renameat",
    "EAGAIN": "clone clone3 fork vfork",
    "ENOMEM": "mmap mprotect mremap poll epoll_ctl sendmsg fsopen fsmount fsconfig open_tree "
              "move_mount mount_setattr mount landlock_add_rule landlock_create_ruleset seccomp",
    "EACCES": "newfstatat access",
    "ENOEXEC": "execve",
    "EBUSY": "unlinkat",
}
ERROR_OF = {call: getattr(errno, name) for name, calls in ERRORS.items() for call in calls.split()}

# Calls that cannot fail with arguments such as ours, or whose failure the C library hides.
NEVER = set("rt_sigaction rt_sigprocmask rt_sigreturn getpid getuid geteuid getgid getegid brk "
            "umask exit_group munmap set_robust_list set_tid_address rseq epoll_wait wait4 lseek "
            "getrandom futex close madvise".split())

# Many of one kind: each so-manieth. The cache's stamps, and SQLite's locks.
SAMPLED = {("supervisor", "newfstatat"): 4, ("supervisor", "fcntl"): 4}

# What a run can do without: a pattern of "role call about", and why it may end as ok.
OPTIONAL = [
    (r"door (ioctl|newfstatat|fstat|getrandom)", "whether a stream is a terminal or a file"),
    (r"door rt_sig", "the default stays"),
    (r"supervisor (newfstatat|access) ", "what the cache says is not believed then"),
    (r"supervisor (openat|read|mkdir|renameat|write|unlinkat) .*"
     r"(\.cache|python-\w+\S*\.json|filter-\w+\.bpf)",
     "without a cache the interpreter is asked again, and the filter compiled"),
    (r"supervisor uname", "a filter's name without the kernel's"),
    (r"supervisor openat \.$", "the keeper removes it, or it is looked at once more"),
    (r"supervisor ftruncate .*/ledger\.db-wal$", "it is cut another time"),
    (r"supervisor (openat|read) /dev/urandom", "jansson's hash takes the time instead"),
    (r"supervisor (openat|read) /proc/\w+/mountinfo", "no v2 was found, v1 may serve"),
    (r"supervisor (openat|read) .*cgroup", "v1 may serve, an orphan stays, usage is not told"),
    (r"supervisor (openat|read) (memory|pids|cpu|cpuacct)\.", "usage that is not told"),
    (r"supervisor (openat|read) /proc/\d+/stat", "an orphan stays for the next run"),
    (r"supervisor getdents64", "an orphan stays for the next run"),
    (r"supervisor unlinkat adyton-", "tried again"),
    (r"supervisor (eventfd2|write .*event_control|inotify)", "the counter tells in the end"),
    (r"supervisor (epoll_create1|eventfd2|pipe2|fcntl)", "libevent knows another way"),
    (r"supervisor mmap 0,", "malloc knows another way"),
    (r"supervisor seccomp", "libseccomp asks what the kernel knows"),
    (r"supervisor recvmsg", "received again"),
    (r"supervisor poll", "asked again"),
    (r"supervisor sched_getaffinity", "one CPU is assumed"),
    (r"supervisor epoll_ctl", "libevent forgets what is closed anyway"),
    (r"supervisor ioctl .*seccomp notify", "received again"),
    (r"supervisor write pipe:", "the keeper looks once more"),
    (r"keeper (setsid|prctl)", "it only stands apart less"),
    (r"keeper fdatasync .*/ledger\.db-wal", "only a machine that loses its power needs it"),
    (r"keeper (dup2|read|close_range)", "it leaves, or removes what is gone already"),
    (r"init read (anon_inode:\[signalfd\]|0x)", "read again"),
    (r"(init|guest) prctl 0x17,", "whether the kernel knows more capabilities than we"),
    (r"starter (setpgid|prctl 0x4,|.*oom_score_adj)", "who goes first when memory is full"),
    (r"init read .*/children", "read again"),
    (r"init faccessat2", "the interpreter's own file is seen"),
    (r"starter prctl 0x1, 0x9", "init ends it anyway"),
    (r"supervisor (openat|unlink|unlinkat|rmdir|chmod|renameat2|getdents64) .*/tmp/adyton-",
     "the keeper removes it"),
    (r"supervisor unlinkat [\w.]+$", "the keeper removes it"),
    (r"supervisor read /(tmp/)?[\w.]+$", "collecting notes what cannot be read"),
    (r"supervisor (fchown .*ledger|fdatasync .*/adyton$)", "SQLite only likes it better"),
    (r"supervisor (pwrite64|fdatasync|ftruncate) .*/ledger\.db$", "the log before it has it"),
    (r"supervisor sync_file_range .*/ledger\.db-wal$", "the flush after it waits for the whole"),
    (r"supervisor openat .*/ledger\.db-shm", "SQLite reads without it, and opens it again to write"),
    (r"supervisor (openat|read|mprotect|mmap) .*(magic|0x0?7)", "files of an unknown kind"),
    (r"supervisor (openat|read|readlink|newfstatat|access) /(usr|lib|etc|bin)",
     "a file that an interpreter may lack"),
    (r"supervisor openat /nonexistent", "there is no cache"),
]


# Libraries that do not survive a failed allocation. libseccomp 2.5 follows a null pointer, never
# ends, or leaves rows out without a word (and what is left out is refused); a regular expression
# of libmagic is freed twice. Only leftovers are looked for then, and the runs are counted.
# They are linked into the program: what names them is the call into them that is on the stack.
BREAKS = re.compile(r" seccomp_(init|rule_add|export|attr|arch|load|api|syscall)\w*$", re.MULTILINE)
CRASHES = re.compile(r" (magic_(open|load|descriptor|buffer|setflags|close)|file_apprentice)\w*$", re.MULTILINE)
FRAME = re.compile(r"/adyton\(\+0x([0-9a-f]+)\).*$", re.MULTILINE)


# A file of the code that cannot be looked at counts as one that it has hidden from its limit.
HIDDEN = re.compile(r"supervisor (newfstatat|openat) (main\.py|left\.txt|given\.txt|/tmp/adyton-)")


class Symbols:
    """The functions of a program by address, for the frames of a trail."""

    def __init__(self, program):
        listed = subprocess.run(["nm", "--numeric-sort", "--defined-only", program], check=True,
                                stdout=subprocess.PIPE, encoding="utf-8").stdout
        rows = [line.split() for line in listed.splitlines()]
        self.rows = [(int(row[0], 16), row[2]) for row in rows if row[1] in "tTwW"]
        self.addresses = [address for address, name in self.rows]

    def named(self, trail):
        return FRAME.sub(self._with_name, trail)

    def _with_name(self, match):
        at = bisect.bisect_right(self.addresses, int(match[1], 16)) - 1
        return match[0] + " " + (self.rows[at][1] if at >= 0 else "?")


class Fault:
    """One call that is to fail, as the recording named it."""

    def __init__(self, role, call, nth, about):
        self.role, self.call, self.nth, self.about = role, call, int(nth), about

    def key(self):
        """The same for the same thing in another run: numbers differ."""
        return self.role, self.call, re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", self.about)

    def __str__(self):
        return "%s %s no. %d (%s)" % (self.role, self.call, self.nth, self.about)


class Setup:
    """One way to run: who, with which options."""

    def __init__(self, name, identity, options=(), environment=None, roles=(),
                 policy="plain.yaml", code=CODE):
        self.name, self.identity, self.options = name, identity, list(options)
        self.environment, self.policy = environment or {}, policy
        self.roles = roles   # all of these; of others only what no setup before had
        self.code, self.incidents = code, 1 if code is CODE else 0


class Bench:
    """The programs, and the folder where everyone can read them."""

    def __init__(self, base, program, inject, alloc):
        self.base, self.program, self.inject, self.alloc = base, program, inject, alloc
        self.symbols = Symbols(program)

    def command(self, setup):
        return [self.program, "run", "--json", "--timeout", "3s", "--policy",
                os.path.join(self.base, setup.policy), "--stdin",
                os.path.join(self.base, "given.txt"), *setup.options, "-c", setup.code]

    def run(self, argv, setup, environment=None, rlimits=(), patience_s=HANG_S):
        started = time.monotonic()
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=setup.identity.home, preexec_fn=setup.identity.prepare(rlimits),
            env=setup.identity.environment({**setup.environment, **(environment or {})}),
            start_new_session=True)
        hung = False
        try:
            out, err = child.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            hung = True
            child.kill()
            out, err = child.communicate()
        return Result(argv, child.returncode, out, err, time.monotonic() - started, hung)

    def traced(self, setup, fault=None, error=0):
        """(Result, recorded lines as lists)."""
        fd, record = tempfile.mkstemp(prefix="record-", dir=setup.identity.home)
        os.close(fd)
        os.chown(record, setup.identity.uid, -1) if os.geteuid() == 0 else None
        words = [fault.role, fault.call, str(fault.nth), str(error)] if fault else []
        result = self.run([self.inject, record, *words, "--", *self.command(setup)], setup)
        with open(record, errors="replace") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        os.unlink(record)
        return result, [row for row in rows if len(row) == 5]


# What must come of a fault ------------------------------------------------------------------

def is_whole(result, setup):
    """A run that is ok has its whole output, and its incident."""
    return result.stdout == GIVEN and len(result.get("incidents") or []) == setup.incidents


def is_complaint(result):
    """Without an outcome: one sentence of ours on stderr."""
    return result.outcome is None and b"adyton" in result.err


def judge(result, setup, about, optional):
    """Sentences about what should not be; `about`: "role call about" of what failed."""
    if result.hung or result.seconds > SLOW_S:
        return ["took %.1f s" % result.seconds]
    if result.status == "failed":
        sentence = result.get("message") or ""
        return ([] if result.code == FAILED and len(sentence) > 10
                else ["no sentence: " + result.describe()])
    if is_complaint(result):
        before = about.startswith("door")   # there it may be the caller's mistake
        return [] if result.code == FAILED or (before and result.code == 2) else \
            ["exit status without an outcome: " + result.describe()]
    if result.status == "disk" and HIDDEN.match(about):
        return []
    if result.status != "ok" or not is_whole(result, setup):
        return ["taken for the code's doing: " + result.describe()]
    return [] if optional else ["ran as if nothing had failed: " + result.describe()]


def is_optional(about):
    return any(re.match(pattern, about) for pattern, _ in OPTIONAL)


def fail_call(bench, setup, fault, messages):
    """One run; what is wrong with it, or None when the call never came."""
    result, rows = bench.traced(setup, fault, ERROR_OF.get(fault.call, errno.EIO))
    hits = [row for row in rows if row[3] == "hit"]
    if not hits:
        return None
    # What was hit counts, not what the recording had at that place.
    about = "%s %s %s" % (fault.role, fault.call, hits[0][4])
    messages.add(result.get("message") or "")
    problems = judge(result, setup, about, is_optional(about))
    problems += ["left behind: %s (pid %s)" % (row[1], row[2]) for row in rows if row[0] == "left"]
    return ["%s, %s: %s" % (fault, hits[0][4], text) for text in problems]


# The passes ---------------------------------------------------------------------------------

def together(function, items):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, items))


def point(tap, watch, name, results):
    """`results`: a list of problems for each run, None for a fault that was not met."""
    met = [found for found in results if found is not None]
    problems = [text for found in met for text in found]
    # Files that other programs of the host name like ours are none of ours.
    left = [text for text in watch.leftovers(PATIENCE_S)
            if not re.search(r"left behind: file .*/adyton-(?!\d+-)", text)]
    if not met:
        tap.point(name, skip="never called again")
        return
    tap.point("%s (%d runs)" % (name, len(met)), problems[:REPORTED] + left)


def pass_calls(tap, bench, watch, setup, seen, messages):
    """Each system call of the setup that is new, or of a role that is wanted as a whole."""
    bench.run(bench.command(setup), setup)   # asks the interpreter; the next finds the cache
    result, rows = bench.traced(setup)
    if result.code == WRONG:
        tap.point(setup.name, skip="this process may not trace: %r" % result.err[:200])
        return
    if result.status != "ok" or not is_whole(result, setup):
        tap.point(setup.name + ": runs without a fault", [result.describe()])
        return
    faults = collections.OrderedDict()
    for role, call, nth, _, about in rows:
        fault = Fault(role, call, nth, about)
        if role in ("python", "asked") or call in NEVER:
            continue
        if (fault.nth - 1) % SAMPLED.get((role, call), 1):
            continue
        if role in setup.roles or fault.key() not in seen:
            faults.setdefault((role, call), []).append(fault)
        seen.add(fault.key())
    for (role, call), list_of in faults.items():
        found = together(lambda fault: fail_call(bench, setup, fault, messages), list_of)
        point(tap, watch, "%s: %s: %s fails" % (setup.name, role, call), found)


def pass_steps(tap, bench, messages):
    """Every row of the two tables of steps was seen to fail, by name."""
    steps = subprocess.run([bench.inject, "--steps"], check=True, stdout=subprocess.PIPE)
    for step in steps.stdout.decode().splitlines():
        if step == "enter, step user" and os.geteuid() != 0:
            tap.point(step + ": was seen to fail", skip="it does nothing for an ordinary user")
            continue
        seen = any(message.startswith(step + ":") for message in messages)
        tap.point(step + ": was seen to fail", [] if seen else ["no message begins so"])


def fail_allocation(bench, setup, number):
    report = tempfile.mktemp(prefix="alloc-", dir=setup.identity.home)
    result = bench.run(bench.command(setup), setup, {
        "LD_PRELOAD": bench.alloc, "ADYTON_FAULT_ALLOC": str(number),
        "ADYTON_FAULT_REPORT": report}, patience_s=HANG_ALLOCATION_S)
    trail = ""
    if os.path.exists(report):
        with open(report) as lines:
            trail = lines.read()
        os.unlink(report)
    if number == 0:
        return result, [int(line) for line in trail.split()]
    if not trail:
        return None
    trail = bench.symbols.named(trail)
    if BREAKS.search(trail) or (CRASHES.search(trail) and result.code < 0):
        return None
    # Whatever has another way may take it; half a result is what must not be.
    return ["allocation %d: %s\n%s" % (number, text, trail)
            for text in judge(result, setup, "door", True)]


def pass_allocations(tap, bench, watch, setup):
    result, numbers = fail_allocation(bench, setup, 0)
    if result.status != "ok" or len(numbers) < 50:
        tap.point("allocations are counted", [result.describe(), "%d ways" % len(numbers)])
        return
    found = together(lambda number: fail_allocation(bench, setup, number), numbers)
    point(tap, watch, setup.name + ": each way to an allocation fails", found)
    tap.note("%d more in libraries that do not survive it, or never met" % found.count(None))


def pass_descriptors(tap, bench, watch, setup):
    """As many descriptors as given: also what is received finds no room then."""
    def run(number):
        limit = [(resource.RLIMIT_NOFILE, number)]
        result = bench.run(bench.command(setup), setup, rlimits=limit)
        return judge(result, setup, "door", True)
    point(tap, watch, setup.name + ": only so many descriptors", together(run, range(5, 48)))


def pass_late(tap, bench, watch, setup):
    """A supervisor that is held until all is over meets everything at once, in any order."""
    setup = Setup(setup.name, setup.identity, setup.options, {"EVENT_NOEPOLL": "1"})

    def run(_):
        result, rows = bench.traced(setup, Fault("supervisor", "poll", 1, ""), 0)
        held = any(row[3] == "hit" for row in rows)
        whole = result.status == "ok" and result.stdout == GIVEN
        return ([] if whole else [result.describe()]) if held else None
    point(tap, watch, setup.name + ": a supervisor that is held up", together(run, range(10)))


def setups_for(base, root, user):
    """In this order; the first is recorded as a whole."""
    given = os.path.join(base, "given.txt")
    first, everything = root or user, ("door", "supervisor", "keeper", "init", "starter", "guest")
    found = [
        Setup(first.label, first, ["--file", given, "--out", first.folder("out")],
              roles=everything),
        Setup(first.label + ", loopback", first, policy="loopback.yaml"),
        Setup(first.label + ", validated", first, policy="validated.yaml", code=TAME),
        Setup(first.label + ", landlock", first, ["--isolation", "landlock"],
              roles=("init", "starter")),
        Setup(first.label + ", folders", first,
              ["--data", base, "--workspaces", "named", "--workspace", "w"], code=TAME),
        Setup(first.label + ", no cache", first,
              environment={"XDG_CACHE_HOME": "/nonexistent"}),
    ]
    if root:
        found.append(Setup(user.label, user))
    return found


def run_all(tap, bench, root, user, only):
    identities = [i for i in (root, user) if i]
    setups = setups_for(bench.base, root, user)
    watch = leftovers.Watch(identities)
    seen, messages = set(), set()
    for setup in setups:
        if only in setup.name:
            pass_calls(tap, bench, watch, setup, seen, messages)
    if not only:
        pass_steps(tap, bench, messages)
    for identity in identities:
        setup = Setup(identity.label, identity)
        pass_descriptors(tap, bench, watch, setup)
        pass_late(tap, bench, watch, setup)
    pass_allocations(tap, bench, watch, setups[0])


def install(base, args):
    """Where an ordinary user can read it all."""
    program = host.install(args.program, base)
    for path in (args.inject, args.alloc):
        subprocess.run(["cp", path, base], check=True)
    for name in ("plain.yaml", "loopback.yaml"):
        subprocess.run(["cp", os.path.join(POLICIES, name), base], check=True)
    for name, text in (("given.txt", GIVEN), ("validated.yaml", "extends: standard\n")):
        with open(os.path.join(base, name), "w") as file:
            file.write(text)
    host.open_up(base)
    return Bench(base, program, os.path.join(base, os.path.basename(args.inject)),
                 os.path.join(base, os.path.basename(args.alloc)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("program", "inject", "alloc"):
        parser.add_argument(name)
    parser.add_argument("--only", default="", help="setups whose name has this text")
    args = parser.parse_args()
    tap = Tap()
    host.become_subreaper()
    os.umask(0o022)
    with host.scratch() as base, contextlib.ExitStack() as stack:
        bench = install(base, args)
        root = host.as_root(base) if os.geteuid() == 0 else None
        user = host.as_user(base)
        for identity in (root, user):
            if identity and identity.groups:
                stack.callback(identity.groups.remove)
        run_all(tap, bench, root, user, args.only)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
