"""Tests of pytest as a part: `python -m tests.campaign.nodes --unit kills --seconds 60 tests/crash/test_kill.py`.

The tests are run one after the other, again and again until the time is over, and at least one of them. Those that the
time did not suffice for are named as skipped. What counts is said on the first page (`__init__.py`).
"""
import argparse
import itertools
import json
import os
import sys
import time

import pytest

_OPTIONS = ("-p", "no:cacheprovider", "-n", "0", "-m", "slow or not slow", "-v", "--tb", "short")


class Counter:
    """A plugin that counts what the tests tell, and leaves the rest out when the time is over."""

    def __init__(self, end):
        self.end = end
        self.tried = self.found = 0
        self.ran = set()
        self.skipped = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        if (self.ran or self.found) and time.monotonic() > self.end:
            if item.nodeid not in self.ran:
                self.skipped[item.nodeid] = "no time was left"
            return True
        return None

    def pytest_collectreport(self, report):
        if report.failed:
            self.found += 1

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            reason = report.longrepr
            self.skipped[report.nodeid] = reason[2] if isinstance(reason, tuple) else str(reason)
        elif report.failed:
            self.found += 1
        if report.when == "call" and not report.skipped:
            self.tried += sum(map(tried_of, report.capstdout.splitlines())) or 1
            self.ran.add(report.nodeid)


def tried_of(line):
    """Return the number in a line such as ``{"tried": 200}``; 0 in any other."""
    try:
        return int(json.loads(line)["tried"])
    except (ValueError, TypeError, KeyError):
        return 0


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.nodes", description=__doc__.partition("\n")[0])
    parser.add_argument("nodes", nargs="+")
    parser.add_argument("--unit", default="tests", help="what is counted")
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    start = time.monotonic()
    counter = Counter(start + given.seconds)
    for number in itertools.count():
        os.environ["ZCORE_TEST_ROUND"] = str(number)
        status = pytest.main([*_OPTIONS, *given.nodes], [counter])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return f"pytest did not come to its end: {status!r}"
        if time.monotonic() > counter.end or not counter.ran:
            break
    result = {"part": " ".join(given.nodes), "tried": counter.tried, "unit": given.unit, "found": counter.found,
              "seconds": round(time.monotonic() - start, 1)}
    if counter.skipped:
        n = len(counter.skipped)
        result["skipped"] = f"{n} of {n + len(counter.ran)} tests: {next(iter(counter.skipped.values()))}"
    print(json.dumps(result))
    return int(counter.found > 0)


if __name__ == "__main__":
    sys.exit(main())
