"""How long a call takes, and how much memory where somebody asks."""
import contextlib
import gc
import time

from benchmarks.harness import memory

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}   # the second one counts all threads, and no waits
clock = CLOCKS["wall"]
_watchers = []


def timed(function, *arguments):
    """Call a function while no garbage is collected.

    Returns
    -------
    tuple of float and object
        Its time in seconds, and its result.
    """
    if _watchers:
        peak, (elapsed, result) = memory.peak_of(lambda: _timed(function, arguments))
        _watchers[-1] += [(peak, getattr(result, "nbytes", 0))]
        return elapsed, result
    return _timed(function, arguments)


def _timed(function, arguments):
    gc.collect()
    gc.disable()
    try:
        start = clock()
        result = function(*arguments)
        return clock() - start, result
    finally:
        gc.enable()


@contextlib.contextmanager
def watched():
    """Let `timed` measure memory too, which makes times useless: the block gets a list of (peak, result) in bytes."""
    found = []
    _watchers.append(found)
    try:
        yield found
    finally:
        _watchers.remove(found)
