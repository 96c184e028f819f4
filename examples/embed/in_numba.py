"""A compiled loop of numba that reads boxes of an array: no Python object is made for them."""
import ctypes

import numba
import numpy as np

import zcore
import zcore.embed

_lengths, _pointer = ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
read = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _pointer, _pointer, _pointer, _pointer, _pointer, ctypes.c_int,
                        _pointer)(zcore.embed.addresses["zcore_read"])
expect = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, ctypes.c_char_p, ctypes.c_int, _pointer)(
    zcore.embed.addresses["zcore_expect"])
from_object = ctypes.PYFUNCTYPE(_pointer, ctypes.py_object, _pointer)(zcore.embed.addresses["zcore_from_object"])
close = ctypes.CFUNCTYPE(None, _pointer)(zcore.embed.addresses["zcore_close"])


@numba.njit(nogil=True)
def means(array, length, n, width):
    """Return the means of windows of `width` elements, and how many could not be read."""
    start, count = np.zeros(1, np.int64), np.full(1, width, np.int64)
    window = np.empty(width)
    result = np.empty(n)
    n_failed = 0
    for i in range(n):
        start[0] = i * (length - width) // max(1, n - 1)
        n_failed += read(array, start.ctypes.data, count.ctypes.data, 0, window.ctypes.data, 0, 1, 0) != 0
        result[i] = window.mean()
    return result, n_failed


def main(place):
    """Print the means of ten windows of a one-dimensional array of float64."""
    array = zcore.open(place)
    handle = from_object(array, None)
    try:
        # The windows are memory of this type, and `start` and `count` have one number.
        if expect(handle, b"f8", 1, None) != 0:
            raise SystemExit(f"{array!r} is not one-dimensional float64")
        found, n_failed = means(handle, array.shape[0], 10, 100)
    finally:
        close(handle)
    assert n_failed == 0
    print(*found)


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
