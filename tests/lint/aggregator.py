"""tests/run must not take silence for a pass: programs that fail in each way, and what it counts.
"""

import importlib.machinery
import importlib.util
import sys
import tempfile

# name, a program, seconds it may take, (passed, failed, skipped), what must be said
PROGRAMS = (
    ("passes", "print('ok 1 - a\\nok 2 - b\\n1..2')", 60, (2, 0, 0), ""),
    ("fails", "print('1..2\\nok 1 - a\\nnot ok 2 - b\\n# why it did\\n'); exit(1)", 60,
     (1, 1, 0), "why it did"),
    ("skips", "print('1..2\\nok 1 - a # SKIP no such thing\\nok 2 # SKIP test_name')", 60,
     (0, 0, 2), "no such thing"),
    ("skips everything", "print('1..0 # SKIP only root can')", 60, (0, 0, 1), "only root can"),
    ("says nothing", "pass", 60, (0, 1, 0), "0 plans"),
    ("makes fewer points than planned", "print('1..3\\nok 1 - a')", 60, (1, 1, 0),
     "planned 3 points and made 1"),
    ("has two plans", "print('1..1\\nok 1 - a\\n1..1')", 60, (1, 1, 0), "2 plans"),
    ("exits with 1 and no failed point", "print('1..1\\nok 1 - a'); exit(1)", 60, (1, 1, 0),
     "exited with 1"),
    ("fails and crashes", "print('1..1\\nnot ok 1 - a', flush=True)\nimport os; os.abort()", 60,
     (0, 2, 0), "exited with -6"),
    ("gives up", "print('1..1\\nok 1 - a\\nBail out! no room')", 60, (1, 1, 0), "no room"),
    ("hangs", "print('1..1\\nok 1 - a', flush=True)\nimport time; time.sleep(60)", 1, (1, 1, 0),
     "killed after 1 s"),
    ("complains", "import sys; print('oops', file=sys.stderr)", 60, (0, 1, 0), "oops"),
)


def _load(path):
    loader = importlib.machinery.SourceFileLoader("adyton_tests_run", path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def check(tap, path):
    run = _load(path)
    with tempfile.TemporaryDirectory(prefix="lint-") as logs:
        for name, program, limit_s, counts, said in PROGRAMS:
            suite = run.Suite(name, [run.Program(name, [sys.executable, "-c", program])], limit_s)
            suite.run(logs)
            notes = repr([suite.points("failed"), suite.points("skipped")])
            problems = [] if tuple(suite.counts()) == counts and said in notes else \
                ["counted %r, wanted %r and %r in %s" % (suite.counts(), counts, said, notes)]
            tap.point("tests/run, when a program " + name, problems)
        missing = run.Suite("a", [run.Program("a", ["/nonexistent/program"])], 60).run(logs)
        tap.point("tests/run, when there is no such program",
                  [] if missing.counts()[1] == 1 else [str(missing.counts())])
