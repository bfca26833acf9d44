"""TAP on standard output: one point a check, the plan at the end, diagnostics as comments."""

import sys


class Tap:
    """Counts points; `finish` prints the plan and gives the exit status."""

    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.points = 0
        self.failed = 0
        self.skipped = 0

    def _print(self, text):
        self.out.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
        self.out.flush()

    def point(self, name, problems=(), skip=None):
        """One point: it holds when `problems` is empty; a skip is named and counted."""
        self.points += 1
        name = name.replace("#", "no.")
        if skip:
            self.skipped += 1
            self._print("ok %d - %s # SKIP %s" % (self.points, name, skip))
            return True
        problems = list(problems)
        if problems:
            self.failed += 1
        self._print("%s %d - %s" % ("not ok" if problems else "ok", self.points, name))
        for problem in problems:
            self.note(problem)
        return not problems

    def note(self, text):
        for line in str(text).splitlines() or [""]:
            self._print("# " + line)

    def finish(self):
        self.note("%d passed, %d failed, %d skipped"
                  % (self.points - self.failed - self.skipped, self.failed, self.skipped))
        self._print("1..%d" % self.points)
        return 1 if self.failed else 0
