"""What is measured in a process of its own: a first read, and the peak memory of a read, write or open."""
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

from benchmarks.harness import timing
from benchmarks.harness.memory import peak_of

_ROOT = Path(__file__).resolve().parents[2]

_FIRST_READ = """
import sys, time
path, n = sys.argv[1], int(sys.argv[2])
import numpy
start = time.{clock}()
{program}
print(time.{clock}() - start)
print(*first)
"""


def first_read(program, path, n):
    """Return the seconds that a new process takes from its import to its first `n` elements, and these as floats.

    NumPy has been imported before.
    """
    program = _FIRST_READ.format(program=program, clock=timing.clock.__name__)
    seconds, found = _run(["-c", program, path, str(n)]).splitlines()
    return float(seconds), list(map(float, found.split()))


def peak_of_read(name, threads, path, view):
    """Return the peak memory (bytes above that before the read) and the digest of a full read in a new process."""
    answer = json.loads(_run(["-m", __name__, name, str(threads), path, view]))
    return answer["peak_nbytes"], answer["digest"]


def peak_of_write(name, threads, path, view, source):
    """Return the peak memory (bytes above that before the write) of a full write of a ``.npy`` in a new process."""
    return json.loads(_run(["-m", __name__, name, str(threads), path, view, source]))["peak_nbytes"]


def peak_of_set(name, threads, path):
    """Return the peak memory (bytes above that before) of opening a reference set in a new process, and its length."""
    answer = json.loads(_run(["-m", __name__, "--set", name, str(threads), path]))
    return answer["peak_nbytes"], answer["n_references"]


def digest(array):
    """Return the CRC-32 of an array's bytes with shape and dtype, as text."""
    body = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return f"{array.dtype.str} {array.shape} {body:08x}"


def _run(arguments):
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    # Compiled modules are kept, as for every user: the first import, which nobody measures, is to leave them.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-P", *arguments], capture_output=True, text=True, check=False,
                          env=environment)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return done.stdout


def _answer(name, threads, path, view, source=None):
    """Return what the child says: of a read, or of a write of `source`."""
    from benchmarks import adapters

    adapter = adapters.load(name, int(threads))
    adapter.activate()
    if source is None:
        handle = adapter.open(path, view)
        peak, result = peak_of(lambda: adapter.read(handle))
        return {"peak_nbytes": peak, "digest": digest(result)}
    handle, values = adapter.open_to_write(path, view), np.load(source)
    return {"peak_nbytes": peak_of(lambda: adapter.write(handle, values))[0]}


def _answer_of_set(name, threads, path):
    from benchmarks import adapters

    adapter = adapters.load(name, int(threads))
    adapter.activate()
    peak, handle = peak_of(lambda: adapter.open_set(path))
    return {"peak_nbytes": peak, "n_references": adapter.length_of_set(handle)}


if __name__ == "__main__":
    if sys.argv[1] == "--set":
        print(json.dumps(_answer_of_set(*sys.argv[2:])))
    else:
        print(json.dumps(_answer(*sys.argv[1:])))
