"""The checks of the machine, in order: see `main` at the end."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time

import cell
import leftovers
import places
import rows
import supervisor
from image import PACKAGES, USER_ID
from tap import Tap

PROGRAM = "/opt/adyton/adyton"
WIDE = "/run/wide.yaml"   # a machine in software is slow: only what a row names is narrow
WIDE_POLICY = "name: wide\nextends: standard\nvalidation: off\ntimeout: 60s\ncpu_time: 60s\n"
PATIENCE_S = 5.0
OUR_LIMIT_S = 90
COMPLAINT = re.compile(r"BUG:|WARNING:|Oops|general protection|blocked for more than")


class Bench:
    """Runs rows and judges them; after each the machine must be as it was."""

    def __init__(self, tap, identities):
        self.tap = tap
        self.identities, self.sources = identities, 0
        self.look()

    def look(self):
        """What is there now is the test's own."""
        self.watch = leftovers.Watch(self.identities)

    def source(self, code):
        self.sources += 1
        path = "/run/source-%d.py" % self.sources
        places.write(path, code)
        return path

    def run(self, who, code, options=(), arguments=()):
        return cell.run(PROGRAM, who, ["--policy", WIDE, *options], self.source(code),
                        limit_s=OUR_LIMIT_S, arguments=arguments)

    def point(self, name, problems, result=None):
        left = self.watch.leftovers(PATIENCE_S)
        if left:
            self.look()   # each is told once
        problems = list(problems) + left
        if problems and result:
            problems.append(result.describe())
        self.tap.point(name, problems)

    def row(self, who, row, options=(), held=rows.HELD, label=None):
        result = self.run(who, row.code, row.options + list(options))
        self.point("%s: %s" % (label or who.label, row.name), judge(row, result, held),
                   result)
        return result


def judge(row, result, held):
    problems = [p for p in cell.problems_of_form(result) if not p.startswith("layer ")]
    if result.status not in row.status:
        problems.append("status must be %s" % " or ".join(row.status))
    if result.limit != row.limit:
        problems.append("limit must be %s" % row.limit)
    if row.signal and result.signal != row.signal:
        problems.append("signal must be %s" % row.signal)
    if row.error and result.get("error", "name") != row.error:
        problems.append("the error must be %s" % row.error)
    if result.get("isolation") != held:
        problems.append("held by %s" % result.get("isolation"))
    problems += ["stdout must have %r" % text for text in row.has
                 if text not in result.stdout]
    problems += ["usage: %s is %s, at least %d" % (name, result.get("usage", name), least)
                 for name, least in row.least.items()
                 if not (result.get("usage", name) or 0) >= least]
    return problems


def refused(result, *words):
    """What is wrong with a refusal: status, exit status, and a sentence with these words."""
    problems = []
    if result.status != "failed" or result.code != 125:
        problems.append("it must be refused")
    message = result.get("message") or ""
    problems += ["the sentence must say %r" % w for w in words if w not in message]
    if result.get("isolation"):
        problems.append("layers of a run that was none: %s" % result.get("isolation"))
    return problems


# The machine itself -------------------------------------------------------------------------

def check_machine(tap):
    """What the rest rests on: this is the kernel that it is said to be."""
    release = os.uname().release
    tap.point("the kernel is Debian's 6.1", [] if release.startswith("6.1.") else [release])
    with open("/proc/self/mountinfo") as lines:
        kinds = [line.partition(" - ")[2].split()[0] for line in lines]
    tap.point("cgroup v2 alone is mounted",
              [str(kinds)] if "cgroup" in kinds or "cgroup2" not in kinds else [])
    offered = places.read(places.TOP + "/cgroup.controllers").split()
    tap.point("with memory, pids and cpu",
              [str(offered)] if {"memory", "pids", "cpu"} - set(offered) else [])


def doctor(who):
    done = subprocess.run([PROGRAM, "doctor", "--json"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, preexec_fn=who.prepare(), cwd=who.home,
                          env=who.environment())
    answer = json.loads(done.stdout)
    return answer, {row["name"]: row for row in answer["rows"]}


def check_doctor(bench, who, runs, no=()):
    """`no`: (row, what its detail must say, what its remedy must say)."""
    answer, found = doctor(who)
    problems = []
    if answer["default_policy_runs"] is not runs:
        problems.append("default_policy_runs is %s" % answer["default_policy_runs"])
    if "ABI 2" not in found["landlock"]["detail"]:
        problems.append("landlock: %s" % found["landlock"])
    for name, detail, remedy in no:
        row = found[name]
        if row["state"] != "no" or detail not in row["detail"] or \
                remedy not in row.get("remedy", ""):
            problems.append("%s must be told, with %r: %s" % (name, remedy, row))
    others = [n for n, row in found.items()
              if row["state"] == "no" and n not in [entry[0] for entry in no]]
    if not no and others:
        problems.append("missing, it says: %s" % others)
    bench.point("%s: doctor" % who.label, problems)


# Runs that are not rows ---------------------------------------------------------------------

def start(who, code, options=()):
    """A run that has begun: its supervisor, and what is wrong with it."""
    argv = [PROGRAM, "run", "--policy", WIDE, *options, "-c", code]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, cwd=who.home,
                             env=who.environment(), preexec_fn=who.prepare())
    begun = child.stdout.readline()
    return child, [] if begun == b"begun\n" else ["it did not begin: %r" % begun]


def kill(child):
    child.kill()
    child.wait()
    child.stdout.close()


def check_killed(bench, who, options=(), label=""):
    """The supervisor dies without a chance to do anything; nothing may stay."""
    child, problems = start(who, rows.STAY, options)
    alive = len(leftovers.descendants())
    kill(child)
    if alive < 5:   # supervisor, keeper, init, program and its child
        problems.append("only %d processes were there to be left behind" % alive)
    bench.point("%s: a killed supervisor leaves nothing%s" % (who.label, label), problems)


def check_group(bench, who):
    """The kernel's own word: the limits of a living cell's group, and whose processes."""
    child, problems = start(who, rows.STAY, rows.GROUP_OPTIONS)
    found = bench.identities[0].groups.strangers()
    if len(found) != 1:
        problems.append("groups of one cell: %s" % found)
    for path in found:
        told = {name: places.read("%s%s/%s" % (places.TOP, path, name)).strip()
                for name in rows.GROUP}
        if told != rows.GROUP:
            problems.append("%s: %s" % (path, told))
        members = places.read("%s%s/cgroup.procs" % (places.TOP, path)).split()
        uids = {places.uid_of(pid) for pid in members}
        if len(members) != 3 or len(uids) != 1 or \
                (who.uid != 0 and uids != {who.uid}) or \
                (who.uid == 0 and min(uids) < rows.CELL_UIDS):
            problems.append("processes %s of users %s" % (members, uids))
    kill(child)
    bench.point("%s: the group of a cell" % who.label, problems)


def check_landlock(bench, who, options=(), cgroup="cgroup:v2"):
    """Without namespaces and without signal scopes (ABI 2): no signal is sent at all."""
    options = ["--isolation", "landlock", *options]
    held = [cgroup] + rows.HELD[rows.HELD.index("rlimits"):]
    label = who.label + ", landlock"
    plain = rows.Row("a program", "print(6 * 7)", "ok", has=("42",))
    bench.row(who, plain, options, held, label)
    bench.row(who, rows.LEFT, options, held, label)
    if cgroup != "watched":
        bench.row(who, rows.MEMORY, options, held, label)
        bench.row(who, rows.PIDS, options, held, label)
    check_signals(bench, who, options, label)
    check_files(bench, who, options, label)
    check_killed(bench, who, options, ", landlock")


def check_signals(bench, who, options, label):
    target = places.sleeper(who.prepare())
    result = bench.run(who, rows.SIGNALS, options, [str(target.pid)])
    problems = ["%s was not refused" % name for name in ("outside", "parent", "child", "all")
                if name + " refused" not in result.stdout]
    if target.poll() is not None:
        problems.append("the process outside is dead")
    if not any(i.startswith("seccomp system-call kill") for i in result.incidents()):
        problems.append("no incident tells of it")
    places.end(target)
    bench.point("%s: no signal is sent" % label, problems, result)


def check_files(bench, who, options, label):
    """The same code outside reads and writes all of it: what refuses inside is the cell."""
    outside = subprocess.run([sys.executable, bench.source(rows.OUTSIDE_FILES)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             preexec_fn=who.prepare(), cwd="/").stdout.decode()
    problems = [] if outside.count("READ") == 3 and "WRITTEN" in outside \
        else ["outside it is no better: %r" % outside]
    os.unlink("/var/tmp/written")
    result = bench.run(who, rows.OUTSIDE_FILES, options)
    if "READ" in result.stdout or "WRITTEN" in result.stdout or \
            result.stdout.count("Error") != 4:
        problems.append("files outside are in reach")
    bench.point("%s: files outside are out of reach" % label, problems, result)


def check_watched(bench, who):
    """Without a group: a refusal, or by the user's own word a weaker run that says so."""
    result = bench.run(who, "print(1)")
    bench.point("%s: refused without a control group" % who.label,
                refused(result, "no control group", "Delegate=yes", "--cgroup optional"),
                result)
    held = ["watched" if layer == "cgroup:v2" else layer for layer in rows.HELD]
    options = ["--cgroup", "optional"]
    plain = rows.Row("a program, watched", rows.AVERAGE, "ok", has=("Average value: 30.0",))
    memory = rows.Row("memory, watched", rows.HOG, "memory", ["--memory", "48M"], "memory")
    forks = rows.Row("processes, watched", rows.FORKS, ("pids", "exception"),
                     ["--pids", "12"])
    bench.row(who, plain, options, held)
    bench.row(who, memory, options, held)
    bench.row(who, rows.LEFT, options, held)
    result = bench.run(who, forks.code, forks.options + options)
    bench.point("%s: %s" % (who.label, forks.name),
                [] if result.status in forks.status else ["it was not stopped"], result)
    check_killed(bench, who, options, ", watched")
    check_landlock(bench, who, options, "watched")


# Groups that are somebody's session ---------------------------------------------------------

def check_scopes(bench):
    with places.scope("alone") as place:
        who = places.identity("user in a scope", USER_ID, place, "user")
        bench.row(who, rows.OK)
        who.groups = places.Place(place.path + places.LEAF)
        bench.row(who, rows.MEMORY, label="user in a scope, again")
    with places.scope("shell", neighbour=True) as place:
        who = places.identity("user beside a shell", USER_ID, place, "user")
        bench.look()
        result = bench.run(who, "print(1)")
        bench.point("%s: refused" % who.label, refused(result, "Delegate=yes"), result)
    bench.look()


def check_session(bench):
    with places.scope("session", uid=0, neighbour=True) as place:
        who = places.identity("root in a session", 0, place, "root")
        bench.look()
        bench.row(who, rows.OK)
        bench.row(who, rows.MEMORY)
    bench.look()


# User namespaces taken away -----------------------------------------------------------------

def check_closed(bench, root, user, plain):
    name = "/proc/sys/kernel/unprivileged_userns_clone"
    places.write(name, "0")
    result = bench.run(user, "print(1)")
    bench.point("user, no namespaces for users: refused",
                refused(result, "adyton doctor", "--isolation landlock"), result)
    check_doctor(bench, user, False, [("user namespace", "unprivileged_userns_clone is 0",
                                       "sysctl -w kernel.unprivileged_userns_clone=1")])
    plain_ok = rows.Row("a program, no namespaces for users", "print(6 * 7)", "ok",
                        has=("42",))
    held = rows.HELD[rows.HELD.index("rlimits"):]
    bench.row(user, plain_ok, ["--isolation", "landlock"], ["cgroup:v2"] + held)
    bench.row(plain, plain_ok, ["--isolation", "landlock", "--cgroup", "optional"],
              ["watched"] + held)
    bench.row(root, plain_ok)
    places.write(name, "1")

    name = "/proc/sys/user/max_user_namespaces"
    before = places.read(name)
    places.write(name, "0")
    result = bench.run(root, "print(1)")
    bench.point("root, no user namespaces at all: refused",
                refused(result, "adyton doctor"), result)
    check_doctor(bench, root, False, [("user namespace", "max_user_namespaces is 0",
                                       "sysctl -w user.max_user_namespaces=")])
    places.write(name, before)
    bench.row(user, rows.OK, label="user, namespaces again")


# The other programs of the tests ------------------------------------------------------------

def check_escapes(bench, who):
    """Every verb of the attack probe that does not end a cell, in one cell a family."""
    if not os.path.exists("/opt/escape/probe.so"):
        bench.tap.point("%s: attacks" % who.label, skip="tests/escape was not built")
        return
    places.write("/run/escape.yaml", WIDE_POLICY + "read_paths: [/opt/escape]\n")
    table = json.loads(subprocess.run(["/opt/escape/probe", "--table"], check=True,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL).stdout)
    held = [row for row in table if row["decision"] in ("refused", "quiet", "unknown")]
    verbs = ["%s=1" % row["verb"] if row["aimed"] else row["verb"] for row in held]
    result = cell.run(PROGRAM, who, ["--policy", "/run/escape.yaml"],
                      "/opt/escape/inside.py", limit_s=OUR_LIMIT_S,
                      arguments=["/opt/escape", "probe_run", *verbs])
    answers = {}
    for line in result.stdout.splitlines():
        if line.startswith("{"):
            line = json.loads(line)
            answers[line["verb"].partition("=")[0]] = \
                "ok" if line["result"] == "ok" else line["errno"]
    problems = ["%s met %s, not %s" % (row["verb"], answers.get(row["verb"]), row["answers"])
                for row in held if answers.get(row["verb"]) not in row["answers"]]
    if '"survived"' not in result.stdout:
        problems.append("the cell did not live to the end of it")
    bench.point("%s: %d attacks" % (who.label, len(held)), problems, result if problems else
                None)


def kernel_log():
    """All messages of the kernel so far."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    messages = []
    try:
        while True:
            messages.append(os.read(fd, 8192).decode("utf-8", "replace").splitlines()[0])
    except BlockingIOError:
        return messages
    finally:
        os.close(fd)


def have_libraries():
    return all(importlib.util.find_spec(name) for name in PACKAGES)


def check_all(bench, who):
    check_doctor(bench, who, True)
    for row in rows.ROWS:
        bench.row(who, row)
    check_group(bench, who)
    check_killed(bench, who)
    check_escapes(bench, who)
    check_landlock(bench, who)


def check_root(bench, root, user, plain):
    """Root, for whom the whole tree is open."""
    del user, plain
    check_all(bench, root)
    check_session(bench)


def check_user(bench, root, user, plain):
    """A user into whose hands a part of the tree was given."""
    del root, plain
    check_all(bench, user)
    check_scopes(bench)
    if have_libraries():
        bench.row(user, rows.NUMERIC)
    else:
        bench.tap.point("user: " + rows.NUMERIC.name, skip="the host does not have them all")
    with places.swap():
        bench.row(user, rows.SWAP)


def check_warm(bench, root, user, plain):
    """The same in warm cells of a supervisor, whose groups are made ahead of the job."""
    del plain
    for who in (root, user):
        served = supervisor.Supervisor(PROGRAM, who, {"wide": WIDE}, ["--preload", "json"])
        with served:
            served.await_warm()
            for row in rows.WARM:
                result = cell.run(PROGRAM, who, served.options_for("wide") + row.options,
                                  bench.source(row.code), limit_s=OUR_LIMIT_S)
                problems = judge(row, result, rows.HELD)
                if result.get("engine", "start") not in ("pool", "warm"):
                    problems.append("it ran %s" % result.get("engine", "start"))
                bench.tap.point("%s, warm: %s" % (who.label, row.name),
                                problems + ([result.describe()] if problems else []))
            problems = served.end()
        bench.point("%s: nothing is left of the supervisor" % who.label, problems)


def check_lacking(bench, root, user, plain):
    """Something that a cell stands on is not there."""
    check_doctor(bench, plain, False, [("cgroup memory", "no control group",
                                        "Delegate=yes")])
    check_watched(bench, plain)
    check_closed(bench, root, user, plain)


def cells(check):
    """The frame of the parts that run cells."""
    tap, started = Tap(), time.monotonic()
    said_at_boot = len(kernel_log())
    places.write(WIDE, WIDE_POLICY)
    check_machine(tap)
    places.open_tree()
    with places.delegated("delegated") as leaf, places.scope("undelegated", uid=0) as own:
        root = places.identity("root", 0, places.Place("/"))
        user = places.identity("user", USER_ID, leaf)
        plain = places.identity("user without delegation", USER_ID, own, "user")
        check(Bench(tap, [root, user, plain]), root, user, plain)
    complaints = [m for m in kernel_log()[said_at_boot:] if COMPLAINT.search(m)]
    tap.point("the kernel did not complain", complaints)
    tap.note("%.0f s of tests" % (time.monotonic() - started))
    tap.finish()


def attacks(*argv):
    """A program of tests/escape, which prints TAP itself."""
    if not os.path.exists("/opt/escape/probe.so"):
        tap = Tap()
        tap.point("attacks", skip="tests/escape was not built")
        tap.finish()
        return
    places.open_tree()
    subprocess.run(argv, stdin=subprocess.DEVNULL, cwd="/")


def layers():
    """Each layer alone against each verb of the attack probe."""
    attacks("/opt/escape/layers")


def escape():
    """Real cells against all of them, as root and as a user, by namespaces and by Landlock."""
    attacks(sys.executable, "-B", "/opt/escape/escape.py", PROGRAM, "/opt/escape")


PARTS = {"root": lambda: cells(check_root), "user": lambda: cells(check_user),
         "warm": lambda: cells(check_warm), "lacking": lambda: cells(check_lacking),
         "layers": layers, "escape": escape}
