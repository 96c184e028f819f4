"""The arrays that are written and read, reproducible from a seed."""
import numpy as np

KINDS = ("smooth", "random", "constant")
_RESOLUTION = np.float32(1 / 64)


def make(kind, shape, seed=0, dtype="float32"):
    """Return a new C-contiguous array.

    Parameters
    ----------
    kind : {"smooth", "random", "constant"}
        ``smooth`` is a slow oscillation plus noise, recorded at a resolution of 1/64 as an instrument does (blosc-lz4
        level 5 with shuffle stores 4 MB of it in a little less than half); ``random`` fills all bits of the mantissa;
        ``constant`` is one value, not the fill value.
    shape : tuple of int
    seed : int
    dtype : {"float32", "int16"}
        Integers are the same elements in units of the resolution.
    """
    if dtype == "int16":
        out = make(kind, shape, seed)
        out *= 2**15 if kind == "random" else 1 / _RESOLUTION
        return out.astype(dtype)
    out = np.empty(shape, np.float32)
    if kind == "constant":
        out[...] = 1.5
        return out
    rng = np.random.default_rng(seed)
    flat = out.reshape(-1)
    piece = 2**20  # elements made at a time, so that no temporary is large
    period = max(out.shape[-1], 1) if out.ndim > 1 else 1024
    for start in range(0, flat.size, piece):
        part = flat[start:start + piece]
        rng.random(dtype=np.float32, out=part) if kind == "random" else rng.standard_normal(dtype=np.float32, out=part)
        if kind == "random":
            continue
        index = np.arange(start, start + part.size)
        column = (index % period).astype(np.float32) / np.float32(period)
        row = (index // period).astype(np.float32) / np.float32(1024)
        part *= np.float32(0.1)
        part += np.float32(100) * np.sin(6 * column) * np.cos(5 * row)
        part += np.float32(20) * np.sin(40 * column * (row % 1))
        np.rint(part / _RESOLUTION, out=part)
        part *= _RESOLUTION
    return out


def same(result, expected):
    """Return whether `result` is an array of the same shape, dtype and bytes, compared in pieces of 4 MB.

    Bytes, not values: so that NaN equals itself and -0.0 is not 0.0.
    """
    if not isinstance(result, np.ndarray) or result.shape != expected.shape or result.dtype != expected.dtype:
        return False
    found = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
    wanted = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    piece = 2**22
    return all(np.array_equal(found[i:i + piece], wanted[i:i + piece]) for i in range(0, wanted.size, piece))
