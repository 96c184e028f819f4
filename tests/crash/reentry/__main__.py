"""Random parts of the matrix, until the time is over; with ``--whole`` each of its cells once."""
import sys
import time
from math import inf

from tests.crash.command import main
from tests.crash.reentry.table import cells, steps


def calls(deadline, seed):
    """Yield (tried, found)."""
    parts = cells(seed) if deadline == inf else steps(lambda: time.monotonic() < deadline, seed)
    for n_tried, found in parts:
        for text in found:
            print(text, file=sys.stderr, flush=True)
        yield n_tried, len(found)


if __name__ == "__main__":
    main("re-entry", "calls", calls, has_whole=True)
