"""Runs the corpus through the real program:
`run.py BUILD [--as root,user] [--only 41,62] [--warm | --session]`.

BUILD is the folder that holds the program, or the program. Prints TAP. Each attack is run
outside of the sandbox first; then each row of expect.py runs once as root and once as an
ordinary user; after every run the host must be as it was.

With --session they run in sessions of such a supervisor, each in one of its own. With --warm the rows run in the warm cells of a supervisor, one for each identity. The same
is expected of them; the controls, which tell nothing of cells, are left to the cold suite.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "harness"), HERE]

import cell          # noqa: E402
import checks        # noqa: E402
import controls      # noqa: E402
import expect        # noqa: E402
import host          # noqa: E402
import in_session    # noqa: E402
import leftovers     # noqa: E402
import supervisor    # noqa: E402
from tap import Tap  # noqa: E402

# A build with sanitizers is slower; its time limits may be stretched.
SLOWNESS = float(os.environ.get("ADYTON_TEST_SLOWNESS", "1"))


class Context:
    """What all runs share."""

    def __init__(self, base, program, canary, who):
        self.base, self.canary = base, canary
        self.program = host.install(program, base)
        self.corpus_folder = _copy(os.path.join(HERE, "corpus"), base)
        self.policies = _copy(os.path.join(HERE, "..", "policies"), base)
        self.corpus = expect.load_corpus(self.corpus_folder)
        self.identities, self.control = {}, None
        self.who = who
        self.supervisors = {}     # label to supervisor: there rows run warm
        self.in_session = False   # … or in sessions

    def __enter__(self):
        self.control = host.as_control(self.base)
        if os.geteuid() == 0:
            self.identities["root"] = host.as_root(self.base)
        self.identities["user"] = host.as_user(self.base)
        return self

    def __exit__(self, *_):
        for identity in self.identities.values():
            if identity.groups:
                identity.groups.remove()


def _copy(folder, base):
    target = os.path.join(base, os.path.basename(folder))
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    host.open_up(target)
    return target


class Run:
    """One row as one user: what was run, where it collected, what came of it."""

    def __init__(self, ctx, row, identity, reached):
        self.ctx, self.row, self.identity = ctx, row, identity
        self.case = ctx.corpus[row.number]
        self.reached = reached   # what connected to the host's listeners
        self.out_dir, self.results, self.problems = None, [], []

    @property
    def result(self):
        return self.results[-1]

    def go(self):
        sources = [self.case.path]
        if self.row.separate or expect.PLAIN not in self.row.modes:
            sources = self._parts()
        if not self.ctx.in_session:
            self.results = [self._one(source) for source in sources]
        elif self.row.separate:
            for source in sources:
                self._in_session([source])
        else:
            self._in_session(sources)
        return self

    def again(self):
        return Run(self.ctx, self.row, self.identity, self.reached).go()

    def _parts(self):
        folder = self.identity.folder("parts")
        paths = []
        for number, part in enumerate(self.case.parts):
            paths.append(os.path.join(folder, "part%d.py" % number))
            _write(paths[-1], part)
        return paths

    def _options(self):
        row = self.row
        served = self.ctx.supervisors.get(self.identity.label)
        options = ["--policy", os.path.join(self.ctx.policies, row.policy + ".yaml")]
        if served:
            options = [] if self.ctx.in_session else served.options_for(row.policy)
        options += row.options
        if row.files:
            folder = self.identity.folder("files")
            for name, data in row.files.items():
                _write(os.path.join(folder, name), data)
                options += ["--file", os.path.join(folder, name)]
        if row.stdin is not None:
            folder = self.identity.folder("stdin")
            _write(os.path.join(folder, "stdin"), row.stdin)
            options += ["--stdin", os.path.join(folder, "stdin")]
        if row.collect:
            self.out_dir = self.identity.folder("out")
            options += [] if self.ctx.in_session else ["--out", self.out_dir]
        return options

    def _one(self, source):
        with silence() as stdin:
            return cell.run(self.ctx.program, self.identity, self._options(), source,
                            stdin=stdin, environment=self.row.environment,
                            limit_s=60 * SLOWNESS)

    def _in_session(self, sources):
        served = self.ctx.supervisors[self.identity.label]
        folder = self.identity.folder("alive")
        _write(os.path.join(folder, "alive.py"), in_session.ALIVE)
        with silence() as stdin:
            results, problems = in_session.one(
                self.ctx.program, served, self.row, sources, self._options(), self.out_dir,
                os.path.join(folder, "alive.py"), stdin, 60 * SLOWNESS)
        self.results += results
        self.problems += problems


@contextlib.contextmanager
def silence():
    """Standard input that stays open and says nothing: a cell must never wait for it."""
    reader, writer = os.pipe()
    try:
        yield reader
    finally:
        os.close(reader)
        os.close(writer)


def _write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o644)


def judge(ctx, run):
    """Every way in which this run is not what its row says."""
    row, case, result = run.row, run.case, run.result
    problems = run.problems + cell.problems_of_form(result, ctx.in_session)
    if result.outcome is None or result.hung:
        return problems + [result.describe()]
    problems += _fact_problems(row, result)
    problems += _text_problems(row, case, "".join(one.stdout for one in run.results)
                               if row.runs else result.stdout, result.stdout)
    if row.runs and [one.status for one in run.results[:-1]] != row.runs:
        problems.append("the runs before must be %r: %r"
                        % (row.runs, [one.describe() for one in run.results[:-1]]))
    problems += _incident_problems(row, result)
    if row.within and result.seconds > row.within * SLOWNESS:
        problems.append("took %.2f s, at most %.1f s" % (result.seconds, row.within))
    if ctx.canary.token.encode() in result.out + result.err:
        problems.append("the canary was read")
    problems += ["the canary's folder was changed: " + d for d in ctx.canary.damage(mend=True)]
    if row.collect:
        problems += checks.collection_problems(ctx, run)
    if row.check:
        problems += getattr(checks, row.check)(ctx, run)
    if run.identity.label in ctx.supervisors:
        problems += ["it ran %s, not in a warm cell" % result.get("engine", "start")
                     for result in run.results
                     if result.get("engine", "start") not in
                     (("session",) if ctx.in_session else ("pool", "warm"))]
    return problems + ([result.describe()] if problems else [])


def _fact_problems(row, result):
    problems = []
    if result.status not in row.status:
        problems.append("status must be %s" % " or ".join(sorted(row.status)))
    if row.exit_code is not None and result.get("exit_code") != row.exit_code:
        problems.append("exit_code must be %d" % row.exit_code)
    if row.signal and result.signal != row.signal:
        problems.append("signal must be %s" % row.signal)
    if result.limit != row.limit:
        problems.append("limit must be %s" % row.limit)
    if result.status == "exception":
        if result.get("exit_code") != 1:
            problems.append("an exception exits with 1, not %r" % result.get("exit_code"))
        if row.error and result.get("error", "name") not in row.error:
            problems.append("the error must be %s" % " or ".join(sorted(row.error)))
        if row.line and result.get("error", "line") != row.line:
            problems.append("the error's line must be %d" % row.line)
    if result.status == "ok" and result.get("error") is not None:
        problems.append("an error in an outcome that is ok")
    if result.get("truncated") != {"stdout": False, "stderr": False}:
        problems.append("output was cut: %r" % result.get("truncated"))
    if result.err:
        problems.append("adyton itself wrote to stderr")
    return problems


def _text_problems(row, case, text, last):
    has, lacks = list(row.has), list(row.lacks) + ["ESCAPED", "LEAK"]
    if row.headers:
        has, lacks = has + case.has, lacks + case.lacks
    problems = ["stdout must have %r" % words for words in has if words not in text]
    problems += ["stdout must not have %r" % words for words in sorted(set(lacks))
                 if words in text]
    if row.stdout is not None and last != row.stdout:
        problems.append("stdout must be %r" % row.stdout[:200])
    return problems


def _incident_problems(row, result):
    incidents = result.incidents()
    if row.incident == expect.NO_INCIDENT:
        return ["no incident may be recorded: %r" % incidents] if incidents else []
    if row.incident and not any(row.incident in i for i in incidents):
        return ["an incident %r must be recorded" % row.incident]
    return []


# The suite ----------------------------------------------------------------------------------

def missing_package(name):
    probe = [controls.PYTHON, "-c", "import " + name]
    return subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True).returncode != 0


def run_control(ctx, tap, row, watch):
    case = ctx.corpus[row.number]
    name = "control: " + case.file
    if case.needs_canary and ctx.canary is NO_CANARY:
        return tap.point(name, skip="only root can place the canary")
    with contextlib.ExitStack() as stack:
        if row.number in controls.SURROUNDINGS:
            stack.enter_context(controls.SURROUNDINGS[row.number]([]))
        try:
            problems = controls.find(row.control)(ctx, case)
        except controls.NoControl as exc:
            return tap.point(name, skip=str(exc))
    ctx.canary.damage(mend=True)
    return tap.point(name, problems + watch.leftovers())


def run_row(ctx, tap, row, identity, watch):
    case = ctx.corpus[row.number]
    label = case.file[:-3] + (" (%s)" % row.variant if row.variant else "")
    name = "%s: %s" % (identity.label, label)
    if case.needs_canary and ctx.canary is NO_CANARY:
        return tap.point(name, skip="only root can place the canary")
    reached = []
    with contextlib.ExitStack() as stack:
        if row.number in controls.SURROUNDINGS:
            stack.enter_context(controls.SURROUNDINGS[row.number](reached))
        run = Run(ctx, row, identity, reached).go()
        problems = judge(ctx, run)
    return tap.point(name, problems + watch.leftovers())


class NoCanary:
    """Stands in where the suite is not run by root, who alone can place the canary."""

    token = "no canary was placed"

    @staticmethod
    def damage(mend=False):
        return []


NO_CANARY = NoCanary()


def run_all(ctx, tap, rows, identity, missing, watch):
    for row in rows:
        case = ctx.corpus[row.number]
        if expect.PLAIN not in row.modes and not ctx.in_session:
            continue  # its runs are those of a session
        elif row.needs in missing:
            tap.point("%s: %s" % (identity.label, case.file[:-3]),
                      skip="%s has no %s" % (controls.PYTHON, row.needs))
        else:
            run_row(ctx, tap, row, identity, watch)


def run_warm(ctx, tap, rows, identity, missing):
    """The rows in warm cells; after the supervisor's end nothing at all may be left."""
    rows = [row.as_session() if ctx.in_session else row.as_warm() for row in rows]
    before = leftovers.Watch([identity])
    policies = {row.policy: os.path.join(ctx.policies, row.policy + ".yaml") for row in rows}
    with supervisor.Supervisor(ctx.program, identity, policies) as served:
        served.await_warm()
        ctx.supervisors[identity.label] = served
        try:
            run_all(ctx, tap, rows, identity, missing, leftovers.Watch([identity], [served]))
        finally:
            del ctx.supervisors[identity.label]
        problems = served.end()
    tap.point("%s: nothing is left of the supervisor" % identity.label,
              problems + before.leftovers(3.0))


def run_suite(ctx, tap, only, with_controls, warm):
    rows = [r for r in expect.ROWS if not only or r.number in only]
    unlisted = set(ctx.corpus) - {r.number for r in expect.ROWS}
    tap.point("every case of the corpus has a row",
              ["no row for case %d" % n for n in sorted(unlisted)])
    missing = {n for n in {r.needs for r in rows if r.needs} if missing_package(n)}
    watch = leftovers.Watch(list(ctx.identities.values()) + [ctx.control])
    for row in rows:
        if row.control and with_controls and not warm and row.needs not in missing:
            run_control(ctx, tap, row, watch)
    for label in filter(ctx.identities.__contains__, ctx.who):
        identity = ctx.identities[label]
        refused = cell.refusal(ctx.program, identity, ctx.policies + "/plain.yaml",
                               ctx.corpus[96].path)
        if refused:
            tap.point("%s: all %d rows" % (label, len(rows)), skip=refused)
            continue
        if warm:
            run_warm(ctx, tap, rows, identity, missing)
        else:
            run_all(ctx, tap, rows, identity, missing, watch)


def main():
    default = "root,user" if os.geteuid() == 0 else "user"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="the program, or the folder that holds it")
    parser.add_argument("--as", dest="who", default=default, help="root, user, both or none")
    parser.add_argument("--only", default="", help="numbers of cases, with commas between")
    parser.add_argument("--no-controls", action="store_true")
    parser.add_argument("--warm", action="store_true", help="in the cells of a supervisor")
    parser.add_argument("--session", action="store_true", help="in sessions of a supervisor")
    args = parser.parse_args()
    only = {int(n) for n in args.only.split(",") if n}
    tap = Tap()
    host.become_subreaper()
    os.umask(0o022)
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(host.scratch())
        canary = stack.enter_context(host.Canary()) if os.geteuid() == 0 else NO_CANARY
        ctx = stack.enter_context(Context(base, args.build, canary, args.who.split(",")))
        ctx.in_session = args.session
        run_suite(ctx, tap, only, not args.no_controls, args.warm or args.session)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
