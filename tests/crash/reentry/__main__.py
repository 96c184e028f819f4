"""Random parts of the matrix, until the time is over."""
import sys
import time

from tests.crash.command import main
from tests.crash.reentry.table import steps


def calls(deadline, seed):
    """Yield (tried, found)."""
    for n_tried, found in steps(lambda: time.monotonic() < deadline, seed):
        for text in found:
            print(text, file=sys.stderr, flush=True)
        yield n_tried, len(found)


if __name__ == "__main__":
    main("re-entry", "calls", calls)
