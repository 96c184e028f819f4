"""What the writers of frames have in common: a thread of the background, and rings of frames that wait for it.

The caller waits for the background only while the queue is full, and in `flush`. What an error has left unstored stays
in the writer; the error comes once, at the next call, which tries again.
"""
from __future__ import annotations

import atexit
import errno
import math
import os
import weakref
from _queue import SimpleQueue
from _thread import allocate_lock, get_ident
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from zcore import workers
from zcore.errors import LockError, StoreError, WriterError, ZcoreError, warn
from zcore.indexing.assign import cast_to, check_complete, check_times, in_memory
from zcore.nodes.array import allocated, read_whole
from zcore.text.arguments import room_of
from zcore.text.characters import fault_of_text

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    import numpy.typing as npt

    from zcore.engine.array_binding import ArrayBinding
    from zcore.model.metadata import ArrayMetadata
    from zcore.typing import CacheSize

_QUEUE = 64 << 20        # bytes that wait by default, or two units, up to
_MAX_QUEUE = 1 << 30
_TEXT = "TUSO"
_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}     # of kinds of numbers: what a kind holds, the later ones hold too
_open = weakref.WeakSet()


class StreamWriter:
    """Takes rows in calls and stores them by a thread of the background; the base of `Writer` and `GroupWriter`.

    A subclass has the rings, names the array whose chunks are the units (`_unit_of`), and stores rows (`_store_some`).
    Each position and each list is changed by one side alone: by the caller's, which holds `_gate`, or by the
    background's, which has one thread at a time.

    Parameters
    ----------
    place : str
        For messages.
    length : int
        Length of the array or arrays along the axis.
    n_rows : int
        Rows for which the rings have room.
    """

    _noun = "frames"

    def __init__(self, place: str, length: int, n_rows: int) -> None:
        self._place = place
        self._n_rows = n_rows
        # Positions of rows. Row `_first` comes to the end of the array as it is now.
        self._first = self._tail = self._head = self._wanted = self._length = length
        self._failure = None
        self._is_busy = self._is_closed = self._is_aborted = False
        self._gate, self._inside = allocate_lock(), None
        self._guard = allocate_lock()
        self._news = SimpleQueue()   # something when the background has come further
        self._pid = os.getpid()
        _open.add(self)

    @property
    def n_given(self) -> int:
        """Number of frames or rows that `append` has taken."""
        return self._head - self._first

    @property
    def n_stored(self) -> int:
        """Number of these that are stored. They are stored in order."""
        return self._tail - self._first

    def _unit_of(self) -> tuple[ArrayMetadata, int]:
        """Return the metadata of the array whose chunks or shards are the units, and the axis there."""
        raise NotImplementedError

    def _store_some(self) -> None:
        """Store some of the rows that are ready; the background calls it."""
        raise NotImplementedError

    def _refresh(self) -> None:
        """Let the caller's handles see what was stored."""
        raise NotImplementedError

    def _is_ready(self) -> bool:
        """Return whether the background has something to store."""
        return self._n_ready(self._length) > 0

    def _left(self) -> list[str]:
        """Return descriptions of the data that are not stored yet, for a message."""
        return [f"{self._noun} {self.n_stored} to {self.n_given - 1}"] if self._head > self._tail else []

    def flush(self) -> None:
        """Store all that was given, and return when it can be read; on the disk with ``fsync``.

        What fills no unit is stored as a part of it, and completed later. The handle has the new shape then.

        Raises : WriterError, if something could not be stored. It stays in the writer, and the next call tries again.
        """
        with self._entered():
            self._report()
            self._flush_whole()

    def close(self) -> None:
        """Flush, and take nothing more; a second call does nothing. After an error, the writer stays open."""
        if not self._is_closed and self._pid == os.getpid():
            with self._entered(closes=True):
                self._failure = None      # told by what follows, if it is still so
                if not self._is_closed:   # by another thread, meanwhile
                    self._flush_whole()
                    self._is_closed = True
        _open.discard(self)

    def abort(self) -> None:
        """Drop what waits, and take nothing more. What is being stored at the moment is waited for."""
        if not self._is_closed and self._pid == os.getpid():
            with self._entered(closes=True):
                self._is_aborted = True
                while self._is_busy:
                    self._news.get()
                self._is_closed = True
        _open.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exception: BaseException | None,
                 traceback: TracebackType | None) -> None:
        try:
            self.close()
        except ZcoreError as error:
            if exception is None:
                raise
            exception.add_note(str(error))

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} has frames and a thread of its own, so it can be neither copied nor pickled")

    def __del__(self) -> None:
        if getattr(self, "_pid", None) != os.getpid() or self._is_closed:
            return     # it was never made, or is another process's
        text = f"{self!r} was not closed" if self._left() else ""
        try:
            self.close()
        except ZcoreError as error:
            warn(f"{text}: {error}")     # not a ResourceWarning, which is hidden by default: frames are lost
        else:
            if text:
                warn(text, ResourceWarning)
        finally:
            self._is_closed = True     # at the end of the program this is called twice, and no thread runs any more

    # the caller's side

    @contextmanager
    def _entered(self, closes=False):
        if self._pid != os.getpid():
            raise StoreError(f"{self!r} belongs to the process that made it, not to one that was forked since",
                             key=self._place)
        if self._inside == get_ident():
            raise LockError(f"{self!r} is called in the middle of another call of the same thread, as by a signal "
                            "handler", key=self._place)
        with self._gate:
            if self._is_closed and not closes:
                raise ValueError(f"{self!r} is closed")
            self._inside = get_ident()
            try:
                yield
            finally:
                self._inside = None

    def _report(self):
        """Raise what has failed since the last call, once. Later calls try again."""
        failure, self._failure = self._failure, None
        if failure is None:
            return
        left = self._left()
        what = " and ".join(left[:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "")
        text = f"{what} are not stored, and wait in the writer" if left else "all was stored"
        try:
            number = errno.ENOMEM if isinstance(failure, MemoryError) else getattr(failure, "errno", None)
            raise WriterError(f"{text}; the next call tries again: {str(failure) or type(failure).__name__}",
                              place=self._place, frames=range(self.n_stored, self.n_given), errno=number) from failure
        finally:
            failure = None     # its traceback leads here

    def _flush_whole(self):
        self._flush()
        self._wait(lambda: not self._is_busy)     # it may hold a lock still
        self._report()
        try:
            self._refresh()
        except ZcoreError as error:
            self._failure = error
            self._report()

    def _put_rows(self, rows, n):
        """Put `n` rows into each ring; waits while these are full. `rows`: pairs of a ring and its rows."""
        while n:
            self._wait(lambda: self._head - self._tail < self._n_rows)
            taken = min([ring.put(self._head, given[-n:], self._tail) for ring, given in rows])
            n -= taken
            self._head += taken
            self._start()

    def _flush(self):
        """Store all rows."""
        self._wanted = self._head
        self._wait(lambda: self._tail >= self._wanted)

    def _wait(self, is_over):
        """Wait until something is so; raises what fails meanwhile."""
        while not is_over():
            self._report()
            self._start()
            self._news.get()     # what came before the look leads to one more look

    # the background's side

    def _start(self):
        """Have a thread store what is ready, unless one is at it."""
        asked = object()
        try:
            with self._guard:
                if self._is_busy or self._failure is not None or not self._is_ready():
                    return
                self._is_busy = asked
            workers.later(partial(self._store, asked), self._ended)
        except RuntimeError:     # no more threads
            try:
                self._store(asked)
            except Exception as error:
                self._ended(None, error)
        except BaseException:
            with self._guard:
                if self._is_busy is asked:     # Ctrl-C: it is not known how far this has come
                    self._is_busy = False
            raise

    def _store(self, asked):
        with self._guard:
            if self._is_busy is not asked:
                return     # the one who asked has been interrupted, and asks again
            self._is_busy = True
        while True:
            with self._guard:
                if self._is_aborted or not self._is_ready():
                    # In one step with the look: what comes from now on starts a thread again.
                    self._is_busy = False
                    return
            self._store_some()

    def _n_ready(self, length):
        """Return how many rows to append next, to an array of this length: whole units, up to half of the queue."""
        given, n_rows = self._head - self._tail, self._n_rows
        if not given:
            return 0
        n = n_of_units(*self._unit_of(), length, given, max(1, n_rows // 2), n_rows - self._tail % n_rows)
        return n or (given if self._tail < self._wanted or given == n_rows else 0)

    def _appended(self, n):
        """Note that the array has `n` rows more."""
        self._length += n
        self._tail += n
        self._tell()

    def _ended(self, value, exception):
        if exception is not None:
            with self._guard:
                self._failure, self._is_busy = exception, False
        self._tell()

    def _tell(self):
        if self._news.empty():
            self._news.put(None)


class Ring:
    """Frames of one array that wait, numbered from any number on. The axis is the first one here.

    Parameters
    ----------
    binding : ArrayBinding
    axis : int
    n_rows : int
        Frames for which there is room.

    Attributes
    ----------
    dtype : numpy.dtype
    ndim : int
    """

    def __init__(self, binding: ArrayBinding, axis: int, n_rows: int) -> None:
        shape = binding.metadata.shape
        self.dtype: np.dtype[Any] = binding.metadata.dtype
        self.ndim: int = len(shape)
        self._axis = axis
        self._frame_shape = shape[:axis] + shape[axis + 1:]
        self.n_rows: int = n_rows
        self._rows = allocated((n_rows, *self._frame_shape), self.dtype)

    def rows_of(self, frames: Any) -> npt.NDArray[Any]:
        """Return one frame, or several, as an ndarray with the axis in front; for its type see `safe`."""
        values = safe(frames, self.dtype)
        if not isinstance(values, np.ndarray) or self.dtype.kind in _TEXT or self.dtype.names is not None:
            values = cast_to(values, self.dtype)
        if fault := fault_of_text(values):
            raise ValueError(fault)      # nothing after it would be stored either
        axis = self._axis
        if values.ndim == self.ndim - 1:
            values = np.expand_dims(values, axis)
        if (values.ndim != self.ndim
                or values.shape[:axis] + values.shape[axis + 1:] != self._frame_shape):
            raise ValueError(f"a frame has shape {self._frame_shape}, cannot append values of shape {values.shape} "
                             f"along axis {axis}")
        return np.moveaxis(values, axis, 0)

    def put(self, head: int, rows: npt.NDArray[Any], tail: int) -> int:
        """Take rows as number `head` and the next ones, as far as there is room in one piece; return how many.

        `tail`: the first row that waits.
        """
        at = head % self.n_rows
        n = min(len(rows), self.n_rows - (head - tail), self.n_rows - at)
        self._rows[at:at + n] = rows[:n]
        return n

    def get(self, first: int, n: int) -> npt.NDArray[Any]:
        """Return `n` rows from number `first` on, as a part of the array."""
        at = first % self.n_rows
        rows = self._rows[at:at + n]
        if len(rows) < n:
            # Alone, NumPy would make the byte order native, and leave old memory between fields.
            rows = np.concatenate([rows, self._rows[:n - len(rows)]], out=np.zeros((n, *self._frame_shape), self.dtype))
        return np.moveaxis(rows, 0, self._axis)


def rows_in(queue: CacheSize | None, row_nbytes: int, unit: int) -> tuple[int, int]:
    """Return how many rows a queue has room for, whole units if it has room for one; and its bytes.

    `queue`: see `Array.writer`.
    """
    row_nbytes = max(1, row_nbytes)
    nbytes = max(_QUEUE, min(2 * unit * row_nbytes, _MAX_QUEUE)) if queue is None else room_of(queue, "queue")
    n_rows = max(1, nbytes // row_nbytes)
    return n_rows - n_rows % unit if n_rows > unit else n_rows, nbytes


def safe(values: Any, dtype: np.dtype[Any]) -> Any:
    """Return values whose type casts safely, or whose kind the array holds, and which fit; floats may be rounded.

    Raises : TypeError, ValueError, OverflowError.
    """
    values = read_whole(values)
    if hasattr(values, "__array__") and not isinstance(values, (np.ndarray, np.generic)):
        values = in_memory(values)
    if isinstance(values, (np.ndarray, np.generic)):
        check_complete(values, dtype.kind in _TEXT)
        found = values.dtype
        is_time = found.kind == dtype.kind and found.kind in "mM"
        is_safe = dtype.kind in _TEXT or np.can_cast(found, dtype, "same_kind" if is_time else "safe")
    else:
        found = np.asarray(values).dtype if dtype.kind in _RANKS else dtype
        is_safe = found in (dtype, object)
    if not (is_safe or _RANKS.get(found.kind, math.inf) <= _RANKS.get(dtype.kind, -1)):
        raise TypeError(f"values of type {found} do not cast safely to {dtype}, the type of the array; astype casts "
                        "them anyway")
    _check_fit(values, dtype)
    return values


def _check_fit(values, dtype):
    """Raise an error if values do not fit a type. NumPy wraps integers that have a type, and cuts text."""
    if dtype.kind in "US":
        text = np.asarray(values)
        longest = np.strings.str_len(text if text.dtype.kind in "US" else text.astype("U")).max(initial=0)
        if longest > dtype.itemsize // np.dtype(dtype.kind + "1").itemsize:
            raise ValueError(f"text of {longest} characters does not fit {dtype}, the type of the array")
    elif dtype.kind in "biufcmM":
        found, is_time = np.asarray(values), dtype.kind in "mM"
        if is_time and found.dtype.kind in "OUS":
            found = found.astype(dtype.kind + "8")      # Python's times, and text, with all they have
        # For NumPy times fit any finer unit, in which late ones wrap.
        comparable, casting = ("mM", "equiv") if is_time else ("biufc", "safe")
        if (found.dtype.kind not in comparable or np.can_cast(found.dtype, dtype, casting)
                or (is_time and found.dtype == dtype.kind + "8")):     # without a unit
            return     # NumPy looks whether Python's long integers fit
        if is_time:
            check_times(found, dtype)
        with np.errstate(over="ignore"):
            cast = found.astype(dtype)
        again = cast.astype(found.dtype) if is_time else cast
        lost = np.isfinite(found) & (~np.isfinite(cast) if dtype.kind in "fc" else again != found)
        if lost.any():
            raise OverflowError(f"{found[lost][0]} does not fit {dtype}, the type of the array")


def n_of_units(metadata: ArrayMetadata, axis: int, length: int, given: int, most: int, in_piece: int) -> int:
    """Return how many of the rows that were `given` for the end of an array of a length fill units.

    At most `most` and, if that is possible, `in_piece`, but one unit at least.
    """
    n = metadata.span_of(axis, length + given)[0] - length
    for limit in (most, in_piece):
        if n > limit:
            n = max(metadata.span_of(axis, length + limit)[0], sum(metadata.span_of(axis, length))) - length
    return max(0, n)


@atexit.register
def _close_all():
    for writer in list(_open):
        with suppress(Warning):
            writer.__del__()
