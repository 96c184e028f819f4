"""The judge of concurrent writes: a log of every write, and what may be left of them.

Each write is noted with the moments before and after the call, on the clock that all processes share. An element's
value at the end must come from a write after whose end no other write of that element began. Writes that overlapped
may have come in any order; a write that began later and is not seen has been lost, and a value that nobody wrote has
been invented.
"""
import numpy as np

# Runs in each worker: `noted(first_row, last_row, columns, value)` as a context manager.
NOTED = """
import contextlib, time
log = []
@contextlib.contextmanager
def noted(rows, columns, value):
    start = time.monotonic_ns()
    yield
    log.append([start, time.monotonic_ns(), rows, columns, value])
"""


class WritersLog:
    """The writes to the elements of an array of `shape`, first of all the fill value everywhere.

    Parameters
    ----------
    shape : tuple of int
        Two dimensions.
    fill_value : int
    """

    def __init__(self, shape, fill_value):
        self.shape = shape
        self.writes = [(-1, -1, slice(None), slice(None), fill_value)]

    def extend(self, entries):
        """Add what `noted` has noted: (start, end, rows, columns, value), the ranges as [start, stop, step]."""
        for start, end, rows, columns, value in entries:
            self.writes.append((start, end, slice(*rows), slice(*columns), value))

    def check(self, values):
        """Judge the elements that are left at the end."""
        assert values.shape == self.shape
        last_start = np.full(self.shape, -1, np.int64)
        for start, _, rows, columns, _ in self.writes:
            part = last_start[rows, columns]
            np.maximum(part, start, out=part)
        explained = np.zeros(self.shape, bool)
        for _, end, rows, columns, value in self.writes:
            explained[rows, columns] |= (values[rows, columns] == value) & (last_start[rows, columns] <= end)
        lost = np.argwhere(~explained)
        assert len(lost) == 0, f"{len(lost)} elements lost, the first at {lost[0]}: {self._history(*lost[0], values)}"

    def _history(self, row, column, values):
        """Return the last writes of one element, for the message."""
        covering = []
        for start, end, rows, columns, value in self.writes:
            if (row in range(self.shape[0])[rows]) and (column in range(self.shape[1])[columns]):
                covering.append((start, end, value))
        return f"found {values[row, column]}, last writes (start, end, value) {sorted(covering)[-4:]}"
