"""The verbs on a disk that gets full: with no page free, with one, with two, until the call succeeds.

Run on a small file system of its own (`tests/full_disk.py`). After each call there is room again, and the same is
looked at as after a failing call (`rounds.py`).
"""
import errno
import json
import os

from tests.crash.failing.rounds import Rounds
from tests.crash.failing.state import Observer
from tests.crash.failing.verbs import VERBS

_PAGE = 4096


class Disk:
    """In the place of the library that makes calls fail."""

    def __init__(self, leave_free):
        self._leave_free = leave_free
        self.failed = None

    def run(self, function, kind, n, number):
        """Call a function with `n` free pages; return its result, its error, and a number above `n` if it failed."""
        result = error = None
        self._leave_free(n * _PAGE)
        try:
            result = function()
        except Exception as exc:
            error = exc
        self._leave_free(1 << 30)
        self.failed = None if error is None else "room"
        if getattr(error, "errno", errno.ENOSPC) != errno.ENOSPC:
            raise AssertionError("an error that is not of a full disk") from error
        return result, error, n + (error is not None)


def main(leave_free, names):
    """Print how often the disk was full, and what was found, as JSON."""
    base = os.getcwd()
    observer = Observer()
    n_full, found = 0, []
    for name in names:
        n, new = Rounds(Disk(leave_free), observer, base, name, "CALLS", "ENOSPC", VERBS[name]).run()
        n_full, found = n_full + n, found + new
    observer.close()
    print(json.dumps([n_full, found]))
