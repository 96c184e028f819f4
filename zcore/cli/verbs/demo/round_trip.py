"""Write data to an array and read them back, whole and in part: seconds, and differences down to the bit."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli.show.printed import ProgressLine
from zcore.cli.slabs import SLAB_NBYTES, slab_of, slabs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import numpy.typing as npt

    from zcore.typing import BasicSelection

SHORT_NBYTES = 2**26           # up to this a measurement is repeated
N_REPEATS = 3


class RoundTrip:
    """The result of writing data to a new array or file and reading them back.

    Parameters
    ----------
    path : str
        Of the array or file; an old one is replaced.
    data : ndarray
    label : str
        The name of the array in messages of progress.
    make : callable
        Makes the array with the data at its argument, the path; returns the seconds, or None to have them measured.
    inside : str
        Path of the array in a file.
    *more : str
        Paths of files that the file points to.

    Attributes
    ----------
    path, label : str
        As above.
    paths : tuple of str
        Of all that is stored for it.
    nbytes : int
        Of the data.
    array : zcore.Array
        The array that was read back.
    write_seconds, read_seconds : float
        For all of the data.
    n_windows : int
        Number of selections that were compared beside the whole.
    differences : list of str
        The selections that came back different, as they are typed between brackets.

    Raises
    ------
    ValueError
        The elements have another type.
    """

    def __init__(self, path: str, data: npt.NDArray[Any], label: str, make: Callable[[str], float | None],
                 inside: str = "", *more: str) -> None:
        self.path: str = path
        self.paths: tuple[str, ...] = (path, *more)
        self.label: str = label
        self.nbytes: int = data.nbytes
        start = time.perf_counter()
        seconds = make(path)
        self.write_seconds: float = time.perf_counter() - start if seconds is None else seconds
        found = zcore.open(path)
        array: Any = found[inside] if inside else found
        self.array: zcore.Array = array
        if array.dtype != data.dtype:
            raise ValueError(f"its elements would be {array.dtype}")
        self.read_seconds: float
        self.read_seconds, differences = _read(array, data, f"{label}: reading")
        windows = list(windows_of(data.shape, array.chunks))
        self.n_windows: int = len(windows)
        # Short reads are repeated: no selection is named twice.
        self.differences: list[str] = list(dict.fromkeys([
            *differences, *(window_text(window) for window in windows if not is_equal(array[window], data[window]))]))


def is_repeated(nbytes: int) -> bool:
    """Return whether a measurement of so many bytes is the best of `N_REPEATS`."""
    return nbytes <= SHORT_NBYTES


def written(path: str, data: npt.NDArray[Any], label: str, **keywords: Any) -> float:
    """Create an array by keywords of `zcore.create_array`, write data to it, and return the seconds of the writing."""
    array = zcore.create_array(path, shape=data.shape, dtype=data.dtype, overwrite=True, **keywords)

    def write(slab):
        values = np.asarray(data[slab], order="C")
        start = time.perf_counter()
        array[slab] = values
        return time.perf_counter() - start

    # Whole shards: a part of one would be read, merged and written again.
    return _best_time(write, data, array.shards or array.chunks, f"{label}: writing")


def _read(array, data, label):
    differences = []

    def read(slab):
        start = time.perf_counter()
        found = array[slab]
        taken = time.perf_counter() - start
        if not is_equal(found, data[slab]):
            differences.append(window_text(slab))
        return taken

    return _best_time(read, data, array.chunks, label), differences


def _best_time(move, data, chunk_shape, label):
    """Return the seconds of all slabs together, each as ``move(slab)`` measured it."""
    slabs = list(slabs_of(data.shape, slab_of(data.shape, chunk_shape, data.itemsize, SLAB_NBYTES)))
    times = []
    for _ in range(N_REPEATS if is_repeated(data.nbytes) else 1):
        times.append(0.0)
        with ProgressLine(label, len(slabs)) as progress:
            for slab in slabs:
                times[-1] += move(slab)
                progress.advance()
    return min(times)


def is_equal(found: npt.ArrayLike, expected: npt.ArrayLike) -> bool:
    """Return whether two arrays have the same type, shape and bits: NaN is equal to itself, -0.0 is not 0.0."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if found.dtype.names is not None:
        # Field by field: the bytes between them are no data, and NumPy's own copies leave them out.
        return all(is_equal(found[name], expected[name]) for name in found.dtype.names)
    return np.array_equal(_bytes_of(found), _bytes_of(expected))


def _bytes_of(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def windows_of(shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> Iterator[tuple[int | slice, ...]]:
    """Yield selections that a read in part has to get right: elements, lines, boxes across chunk borders, steps.

    No window is larger than about three chunks in each dimension.

    >>> [window_text(window) for window in windows_of((100,), (40,))]
    ['50', '0:1', '99:100', '0:100', '99::-1', '1:100:2', '98::-3', '60:100']
    """
    if not shape:
        yield ()
    elif 0 in shape:
        yield (slice(None),) * len(shape)
        yield (slice(None, None, -1),) * len(shape)
    else:
        yield from zip(*map(_windows_of_one, shape, chunk_shape), strict=True)


def _windows_of_one(length, chunk):
    """Return the windows in one dimension: middle, first, last, region, downwards, steps, back, across a border."""
    centre, half = length // 2, max(1, chunk // 2)
    low, high = max(0, centre - 3 * chunk // 2), min(length, centre + 3 * chunk // 2 + 1)
    border = min(max(1, -(-centre // chunk)) * chunk, length) if chunk < length else length
    return (centre, slice(0, 1), slice(length - 1, length), slice(low, high), _downwards(high - 1, low, 1),
            slice(min(low + 1, high - 1), high, 2), _downwards(max(high - 2, low), low, 3),
            slice(max(0, border - half), min(length, border + half)))


def _downwards(high, low, step):
    return slice(high, low - 1 if low else None, -step)


def window_text(window: BasicSelection) -> str:
    """Return a selection as it is typed between brackets."""
    parts = []
    for part in window if isinstance(window, tuple) else (window,):
        if isinstance(part, slice):
            start, stop, step = ("" if n is None else str(n) for n in (part.start, part.stop, part.step))
            part = f"{start}:{stop}" + (f":{step}" if step else "")
        parts.append("..." if part is ... else str(part))
    return ", ".join(parts)
