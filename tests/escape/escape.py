"""The attack probe in real cells: `escape.py ADYTON FOLDER [--as root,user] [--warm]`.
Prints TAP.

ADYTON is the program or the folder that holds it; FOLDER holds probe and probe.so. The
rows (`probe --table`) say what each verb must meet and which layer must be the one; they
are kept in expect_rows.c. First every verb is tried outside: what is refused there as
well proves nothing, and is either named and skipped, for the reason that its row gives,
or a failure. With --warm each cell is one of a supervisor's, and must answer the same;
controls, and the isolation that has no warm cells, are left to the cold run.
"""

import argparse
import collections
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))

import cell          # noqa: E402
import host          # noqa: E402
import leftovers     # noqa: E402
import supervisor    # noqa: E402
from tap import Tap  # noqa: E402

# What any layer may answer with when it keeps something out of reach.
REFUSALS = {"EPERM", "EACCES", "ENOSYS", "ESRCH", "ENOENT", "EROFS", "EXDEV", "ENXIO",
            "ECONNREFUSED", "ENETUNREACH", "EMFILE", "EFBIG", "ENOMEM"}
IN_TABLE = ("refused", "quiet", "unknown")   # by an errno of its own
POLICY = """name: %s
extends: %s
validation: off
timeout: 30s
cpu_time: 30s
read_paths: [%s, %s]
"""
SHARED = "/var/tmp/adyton-escape-shared"   # HOST_SHARED of probe.h
SURVIVED = '"survived"'
CONTROL_SECONDS = 120


@contextlib.contextmanager
def visible():
    """A folder that everyone can read and a cell can show: its /tmp is its own."""
    path = tempfile.mkdtemp(prefix="escape-", dir="/var/tmp")
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Probe:
    """The probe as built, where everyone can read it, and its rows."""

    def __init__(self, folder, base):
        self.folder = os.path.join(base, "probe")
        os.mkdir(self.folder)
        for name in ("probe", "probe.so"):
            shutil.copy(os.path.join(folder, name), self.folder)
        shutil.copy(os.path.join(HERE, "inside.py"), base)
        host.open_up(base)
        self.program = os.path.join(self.folder, "probe")
        self.source = os.path.join(base, "inside.py")
        self.rows = json.loads(subprocess.run([self.program, "--table"], check=True,
                                              stdout=subprocess.PIPE,
                                              stderr=subprocess.DEVNULL).stdout)

    def policy(self, base, name, extends, more=""):
        path = os.path.join(base, name + ".yaml")
        with open(path, "w") as file:
            file.write(POLICY % (name, extends, self.folder, SHARED) + more)
        os.chmod(path, 0o644)
        return path

    @contextlib.contextmanager
    def held(self, identity):
        """What the host holds for the verbs to reach; gives the pid that they attack."""
        holder = subprocess.Popen([self.program, "--hold"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, preexec_fn=identity.prepare())
        try:
            words = holder.stdout.readline().split()
            if len(words) != 2:
                raise RuntimeError("the host's half did not start")
            yield int(words[1])
        finally:
            holder.stdin.close()
            holder.wait(timeout=10)
            holder.stdout.close()


def answer_of(line):
    return "ok" if line["result"] == "ok" else line["errno"]


def aimed(rows, target):
    return ["%s=%d" % (row["verb"], target) if row["aimed"] else row["verb"]
            for row in rows]


def answers_in(text):
    """verb to answer, for every line that the probe printed."""
    found = {}
    for line in text.splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            line = json.loads(line)
            found[line["verb"].partition("=")[0]] = answer_of(line)
    return found


# Outside ----------------------------------------------------------------------

def control_verdict(row, answer):
    """(problems, reason to skip) of an attempt that no cell held."""
    if answer is None:
        return ["the probe did not answer"], None
    if answer == "ENOSYS":
        return [], "this kernel has no such call, or not here"
    hidden = row["decision"] == "passes" and answer in REFUSALS
    if answer not in row["answers"] and not hidden:
        return [], None
    if row["control"]:
        return [], "%s outside as well: %s" % (answer, row["control"])
    return ["outside it is %s as well: a cell proves nothing" % answer], None


def run_controls(tap, probe, identity):
    with probe.held(identity) as target:
        done = subprocess.run([probe.program] + aimed(probe.rows, target),
                              stdout=subprocess.PIPE, timeout=CONTROL_SECONDS,
                              stdin=subprocess.DEVNULL, preexec_fn=identity.prepare())
    answers = answers_in(done.stdout.decode())
    for row in probe.rows:
        if row["layer"] == "own":
            continue    # allowed inside as well: there is no refusal to doubt
        answer = answers.get(row["verb"])
        problems, skip = control_verdict(row, answer)
        tap.point("outside: %s reaches the kernel: %s" % (row["verb"], answer),
                  problems, skip)


# Inside -----------------------------------------------------------------------

class Runner:
    """Runs verbs in a cell as one identity."""

    def __init__(self, probe, program, identity, target):
        self.probe, self.program, self.identity = probe, program, identity
        self.target, self.served = target, None

    def run(self, policy, rows, how="probe_run"):
        words = [self.probe.folder, how] + aimed(rows, self.target)
        options = self.served.options_for(name_of(policy)) if self.served else \
            ["--policy", policy]
        result = cell.run(self.program, self.identity, options, self.probe.source,
                          arguments=words)
        if self.served and result.get("engine", "start") not in ("pool", "warm"):
            raise RuntimeError("it ran in no warm cell: " + result.describe())
        return result


def incidents_of(result, call):
    """Incidents of the filter whose act names the call."""
    found = []
    for incident in result.get("incidents") or []:
        act = incident.get("act") or ""
        if incident.get("layer") == "seccomp" and act.partition("(")[0] == call:
            found.append(incident)
    return found


def incident_problems(result, row, action):
    found = incidents_of(result, row["call"])
    if not found:
        return ["no incident of the layer seccomp names %s: %s"
                % (row["call"], result.incidents())]
    if not any(i.get("action") == action and i.get("fact") is True for i in found):
        return ["the incident is no fact, or not %s: %r" % (action, found)]
    return []


def batch_problems(result):
    """What is wrong with a run that nothing should have ended."""
    problems = cell.problems_of_form(result)
    if result.status != "ok" or SURVIVED not in result.stdout:
        problems.append("the run did not reach its end")
        problems.append(result.describe())
    if result.get("incidents_dropped"):
        problems.append("%s acts were not kept" % result.get("incidents_dropped"))
    return problems


def families(rows):
    grouped = collections.OrderedDict()
    for row in rows:
        grouped.setdefault(row["family"], []).append(row)
    return grouped


def run_refused(tap, runner, label, policy, rows, judge, how="probe_run"):
    """Verbs that do not end the cell: one run for a family, one point for a verb."""
    for family, members in families(rows).items():
        result = runner.run(policy, members, how)
        tap.point("%s: the run of the family %s" % (label, family),
                  batch_problems(result))
        answers = answers_in(result.stdout)
        for row in members:
            answer = answers.get(row["verb"])
            tap.point("%s: %s meets %s: %s" % (label, row["verb"], row["layer"], answer),
                      judge(result, row, answer))


def judge_full(result, row, answer):
    """All layers: the row's own answers, and an incident for what the table refuses."""
    problems = []
    if answer not in row["answers"]:
        problems.append("%s is not among %s" % (answer, row["answers"]))
    if row["decision"] == "refused":
        problems += incident_problems(result, row, "refused")
    return problems


def judge_landlock(result, row, answer):
    """Without namespaces: what another layer must refuse alone is refused here, too."""
    held_by = set(row["alone"]) | {row["layer"]}
    if not held_by & {"seccomp", "landlock", "capabilities", "rlimits"}:
        return []
    if row["decision"] == "killed":
        return [] if answer == "SIGSYS" else ["%s is not SIGSYS" % answer]
    if answer in REFUSALS or answer in row["answers"]:
        return []
    return ["%s is no refusal; %s should have held it" % (answer, sorted(held_by))]


def run_ended(tap, runner, label, policy, row):
    """Attack-only: the attempt ends the whole cell, wherever in it it was made."""
    result = runner.run(policy, [row])
    problems = cell.problems_of_form(result)
    if result.status != "violation":
        problems.append("status is %s" % result.status)
    if answers_in(result.stdout) or SURVIVED in result.stdout:
        problems.append("the cell lived on after the attempt")
    problems += incident_problems(result, row, "ended")
    if row["call"] not in (result.get("message") or ""):
        problems.append("the message does not name the call: %r" % result.get("message"))
    if problems:
        problems.append(result.describe())
    tap.point("%s: %s ends the cell" % (label, row["verb"]), problems)


def run_killed(tap, runner, label, policy, row):
    """Another architecture's door, tried by the interpreter itself."""
    result = runner.run(policy, [row], "probe_run_here")
    problems = cell.problems_of_form(result)
    if result.status != "violation":
        problems.append("status is %s" % result.status)
    if SURVIVED in result.stdout:
        problems.append("the interpreter lived on")
    if problems:
        problems.append(result.describe())
    tap.point("%s: %s ends the cell" % (label, row["verb"]), problems)


def name_of(policy):
    return os.path.basename(policy).partition(".")[0]


@contextlib.contextmanager
def served_by(tap, program, identity, policies):
    """A supervisor in whose warm cells these policies run, of which nothing is left."""
    before = leftovers.Watch([identity])
    files = {name_of(path): path for path in policies}
    with supervisor.Supervisor(program, identity, files) as served:
        served.await_warm()
        yield served
        problems = served.end()
    tap.point("%s: nothing is left of the supervisor" % identity.label,
              problems + before.leftovers(3.0))


def run_identity(tap, probe, program, base, identity, warm):
    full = probe.policy(base, "escape-full-" + identity.label, "standard")
    strict = probe.policy(base, "escape-strict-" + identity.label, "strict")
    landlock = probe.policy(base, "escape-landlock-" + identity.label, "standard",
                            "isolation: landlock\n")
    with probe.held(identity) as target:
        runner = Runner(probe, program, identity, target)
        if not warm:
            run_cells(tap, runner, full, strict)
            run_refused(tap, runner, identity.label + ", landlock", landlock,
                        [r for r in probe.rows if r["decision"] != "ended"], judge_landlock)
            return
        with served_by(tap, program, identity, [full, strict]) as runner.served:
            run_cells(tap, runner, full, strict)


def run_cells(tap, runner, full, strict):
    rows, label = runner.probe.rows, runner.identity.label
    run_refused(tap, runner, label, full, [r for r in rows if r["decision"] != "ended"],
                judge_full)
    # No fork there: the interpreter itself tries what changes nothing when refused.
    run_refused(tap, runner, label + ", strict", strict,
                [r for r in rows if r["decision"] in IN_TABLE], judge_full, "probe_run_here")
    for row in rows:
        if row["decision"] == "ended":
            run_ended(tap, runner, label, full, row)
        elif row["decision"] == "killed":
            run_killed(tap, runner, label, full, row)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("adyton")
    parser.add_argument("folder")
    parser.add_argument("--as", dest="who", default="root,user")
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    host.become_subreaper()
    tap = Tap()
    with visible() as base:
        probe = Probe(options.folder, base)
        program = host.install(options.adyton, base)
        made = []
        try:
            if os.geteuid() == 0 and "root" in options.who:
                made.append(host.as_root(base))
            if made and not options.warm:
                run_controls(tap, probe, made[0])
            elif not options.warm:
                tap.point("outside: the controls",
                          skip="only root has what a cell takes away")
            if "user" in options.who:
                made.append(host.as_user(base))
            for identity in made:
                run_identity(tap, probe, program, base, identity, options.warm)
        finally:
            for identity in made:
                if identity.groups:
                    identity.groups.remove()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
