"""zcore and the oracle, each reading what the other has written."""
import tempfile

import numpy as np

import zcore
from tests import oracle


def ask_the_oracle(stored, expected, bytes_of=np.ndarray.tobytes, **keywords):
    """Check that the oracle reads what zcore has stored, and zcore what the oracle writes under the same document.

    Parameters
    ----------
    stored : Store, dict of bytes, or path of a directory
        An array, at the root.
    expected : ndarray
        All of it.
    bytes_of : callable
        Of an array, the bytes to compare.
    **keywords
        For `zcore.open`.
    """
    if isinstance(stored, zcore.MemoryStore | zcore.DirectoryStore):
        stored = {key: bytes(stored.get(key)) for key in stored.list()}
    assert_same(oracle.read(stored), expected, bytes_of)
    for leave_out in (False, True):
        in_memory = zcore.MemoryStore()
        with tempfile.TemporaryDirectory() as folder:
            for key, value in oracle.rewritten(stored, leave_out=leave_out).items():
                in_memory.set(key, value)
                oracle.put(folder, key, value)
            for place in (folder, in_memory):
                assert_same(np.asarray(zcore.open(place, **keywords)[...]), expected, bytes_of)


def assert_same(found, expected, bytes_of=np.ndarray.tobytes):
    """Check type, shape and all bits; Zarr v3 has a byte order for what is stored, not for the type.

    Items of varying length are objects to the oracle, and text of NumPy's own type to zcore.
    """
    expected = np.asarray(expected)
    if expected.dtype.kind in ("O", "T"):
        assert found.dtype.kind in ("O", "T") and found.shape == expected.shape
        assert repr(found.tolist()) == repr(expected.tolist())
        return
    assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
    assert found.shape == expected.shape
    assert bytes_of(found.astype(expected.dtype)) == bytes_of(expected)
