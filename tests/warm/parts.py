"""What the suites of warm cells share: a supervisor to ask, and where to run it."""

import argparse
import contextlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))

import cell          # noqa: E402
import host          # noqa: E402
import leftovers     # noqa: E402
from supervisor import Supervisor  # noqa: E402
from tap import Tap  # noqa: E402

POLICIES = os.path.join(HERE, "..", "policies")
WARM = ("pool", "warm")


class Stage:
    """A program, a policy, and who runs them."""

    def __init__(self, build, base, stack, policy):
        self.base, self.program = base, host.install(build, base)
        self.policy = os.path.join(base, "plain.yaml")
        with open(os.path.join(POLICIES, policy)) as source, open(self.policy, "w") as target:
            target.write(source.read())
        os.chmod(self.policy, 0o644)
        self.identity = host.as_root(base) if os.geteuid() == 0 else host.as_user(base)
        if self.identity.groups:
            stack.callback(self.identity.groups.remove)

    def refusal(self):
        source = os.path.join(self.base, "pass.py")
        with open(source, "w") as file:
            file.write("pass\n")
        return cell.refusal(self.program, self.identity, self.policy, source)

    def supervisor(self, *options):
        return Supervisor(self.program, self.identity, {"plain": self.policy}, options)

    def cold(self, served, code, *options, arguments=()):
        """The outcome of the same code in a cold cell."""
        import json
        words = ["run", "--json", "--cold", "--policy", self.policy, *options, "-c", code]
        done = served.call(*words, *(["--", *arguments] if arguments else []))
        return json.loads(done.stdout)


@contextlib.contextmanager
def stage(description, policy="plain.yaml"):
    """Reads the command line; gives (tap, stage), or (tap, None) where cells are refused."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", help="the program, or the folder that holds it")
    args = parser.parse_args()
    host.become_subreaper()
    os.umask(0o022)
    with host.scratch() as base, contextlib.ExitStack() as stack:
        made = Stage(args.build, base, stack, policy)
        refused = made.refusal()
        tap = Tap()
        if refused:
            tap.point("warm cells", skip=refused)
        yield tap, None if refused else made


def watch(made):
    return leftovers.Watch([made.identity])


def ran_warm(outcome):
    """What is wrong with where this ran."""
    start = (outcome.get("engine") or {}).get("start")
    return [] if start in WARM else ["it ran %s: %s" % (start, outcome.get("message"))]
