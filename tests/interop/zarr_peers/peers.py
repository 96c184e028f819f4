"""The peers as the tests see them, and what each of them cannot do."""
import os
import pickle
import subprocess
import sys
from pathlib import Path

SERVED = Path(__file__).with_name("served.py")


class PeerError(Exception):
    """The peer raised; the message has what."""


class Peer:
    """One library in its own process; a method of `served.py` is called by its name."""

    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", str(SERVED), name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": ""})
        self.version = tuple(int(part) for part in self._answer().split(".")[:2])

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _answer(self):
        done, answer = pickle.load(self.process.stdout)
        if not done:
            raise PeerError(answer)
        return answer

    def __getattr__(self, method):
        def call(*arguments):
            pickle.dump((method, arguments), self.process.stdin)
            self.process.stdin.flush()
            return self._answer()

        return call


_TIMES = ("datetime", "timedelta")
_BYTES = ("bytes5", "text3", "raw7")
_BIG_ENDIAN = ("int16", "uint32", "float64", "complex128")  # in `cases.DTYPES`
_ALL = (0, 0)
_NEVER = (1000, 0)

# (peer, from version, before version, which cases it cannot do, why)
REFUSALS = [
    ("zarr", _ALL, (3, 2), lambda case: case.format == 3 and case.dtype == "struct",
     "knows the older name `structured` alone"),
    ("zarr", _ALL, (3, 2), lambda case: case.dtype == "raw7" and case.shards != "none",
     "cannot hash the fill value of raw bytes, which its sharding does"),
    ("tensorstore", _ALL, _NEVER, lambda case: case.dtype in ("text3", "string", *_TIMES), "has no such types"),
    ("tensorstore", _ALL, _NEVER, lambda case: case.dtype in ("bytes5", "raw7"),
     "makes a dimension of the bytes of an item, or ends the process"),
    ("tensorstore", _ALL, _NEVER, lambda case: case.dtype == "struct", "opens one field of a structure alone"),
    ("tensorstore", _ALL, _NEVER, lambda case: case.format == 2 and case.chain in ("delta zlib", "shuffle zlib"),
     "has no filters in Zarr v2"),
    ("tensorstore", _ALL, _NEVER, lambda case: case.chain == "lz4", "has no LZ4 without blosc"),
    ("zarrs", _ALL, _NEVER, lambda case: case.dtype in ("string", "struct", *_BYTES, *_TIMES),
     "hands such types back to zarr-python"),
    ("zarrs", _ALL, _NEVER, lambda case: case.format == 3 and case.dtype == "complex128",
     "swaps the two parts of big-endian complex numbers where it reads a chunk in part"),
    ("zarrs", _ALL, _NEVER, lambda case: case.format == 2 and case.dtype in _BIG_ENDIAN,
     "has native byte order alone in Zarr v2"),
    ("zarrs", _ALL, _NEVER, lambda case: case.format == 2 and case.order == "F", "has no order F in Zarr v2"),
    ("zarrs", _ALL, _NEVER, lambda case: case.format == 2 and case.dtype == "complex64" and case.fill == "undefined",
     "needs a fill value of complex numbers"),
    ("zarrs", _ALL, _NEVER, lambda case: case.chain in ("delta zlib", "lz4"), "has no delta, and no LZ4 without blosc"),
]


def refusal(peer, case):
    """Return why a peer cannot do a case, or None."""
    for name, first, end, concerns, why in REFUSALS:
        if peer.name == name and first <= peer.version < end and concerns(case):
            return why
    return None
