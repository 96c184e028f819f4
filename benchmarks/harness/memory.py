"""How much memory a call takes at its peak."""
import ctypes
import gc
import sys
from pathlib import Path


def peak_of(call):
    """Return the peak memory of a call, and its result: Linux resets the high-water mark, elsewhere it only grows."""
    if sys.platform == "linux":
        _give_back()
        Path("/proc/self/clear_refs").write_text("5", "ascii")  # 5: peak resident size := present one
        before = _status_nbytes("VmRSS:")
        result = call()
        return max(0, _status_nbytes("VmHWM:") - before), result
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, result


def _give_back():
    # What is freed while the call runs would hide what the call takes: garbage that is waiting for its collection, and
    # memory that the C library has kept. Musl has no such function.
    while gc.collect():
        pass
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status_nbytes(member):
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(member):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {member}")
