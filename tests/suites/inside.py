"""Runs tests of a library and prints what came of each, as JSON, on the last line."""

import json
import sys

import pytest


class Report:
    """Outcomes by name of the test; of its phases the one that did not pass counts."""

    def __init__(self):
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "wasxfail"):
            self.outcomes[report.nodeid] = "xfailed" if report.skipped else "xpassed"
        elif report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome

    def pytest_collectreport(self, report):
        if report.outcome != "passed":
            self.outcomes[report.nodeid + " (collection)"] = report.outcome


def main():
    report = Report()
    code = pytest.main(["-q", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore", *sys.argv[1:]],
                       plugins=[report])
    print()
    print(json.dumps({"code": int(code), "outcomes": report.outcomes}))


if __name__ == "__main__":
    main()
