"""Arrays of zcore for the ranks of an MPI program.

Each function is collective: all ranks of a communicator call it, and an error on one rank is raised on all ranks, so no
rank hangs. The communicator is one of mpi4py (extra "mpi"), or has its methods `Get_rank`, `Get_size`, `bcast`,
`allgather` and `alltoall`.

Ranks write and read by the array's own methods, which are not collective. Ranks that write parts of one chunk lose
nothing, as zcore locks it. Ranks that write whole chunks, see `aligned_box`, do not wait for each other. If locks do
not work between the hosts, write parts of chunks by `write`.

Examples
--------
>>> class One:
...     Get_rank, Get_size = int, lambda self: 1
...     bcast, allgather = lambda self, value, root=0: value, lambda self, value: [value]
>>> import tempfile, zcore.mpi
>>> with tempfile.TemporaryDirectory() as folder:
...     z = zcore.mpi.create(One(), folder + "/a", shape=(10, 4), chunks=(2, 4), dtype="f4")
...     zcore.mpi.append(One(), z, [[1, 2, 3, 4]])
(11, 4)
"""
from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.errors import StoreError
from zcore.hierarchy import consolidated
from zcore.indexing.assign import cast_to
from zcore.kernel.io.files import sync_files
from zcore.mpi.exchange import Exchange, bounds_of, write_in_turns
from zcore.nodes.appending import PendingAppend

if TYPE_CHECKING:
    from typing import Any, Unpack

    import numpy.typing as npt

    from zcore.nodes.keywords import CreateKeywords, OpenArrayKeywords
    from zcore.typing import Mode, Shape, StrPath

__all__ = ["aligned_box", "append", "box_of", "create", "flush", "open", "resize", "write"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


def create(comm: Any, place: StrPath, **keywords: Unpack[CreateKeywords]) -> zcore.Array:
    """Create an array, and open it on all ranks.

    Rank 0 creates it. The others get the document from there, and ask no file system.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    place : str or os.PathLike
        All ranks see the same files there; or the URL of a service.
    **keywords
        Those of `zcore.create_array`.

    Returns
    -------
    Array

    Raises
    ------
    NodeExistsError, ValueError, StoreError
        As `zcore.create_array`, on all ranks.
    """
    return _from_first(comm, lambda: zcore.create_array(place, **keywords))


def open(comm: Any, place: StrPath, mode: Mode = "r", **keywords: Unpack[OpenArrayKeywords]) -> zcore.Array:
    """Open an array on all ranks; one of them reads the document.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    place : str or os.PathLike
    mode : str
        ``"r"`` or ``"r+"``; or one of those that create an array, which rank 0 does.
    **keywords
        Those of `zcore.open_array`.

    Returns
    -------
    Array

    Raises
    ------
    NodeNotFoundError, MetadataError, StoreError
        As `zcore.open_array`, on all ranks.
    """
    return _from_first(comm, lambda: zcore.open_array(place, mode=mode, **keywords))


def aligned_box(comm: Any, array: zcore.Array, axis: int = 0) -> tuple[slice, ...]:
    """Return the part of an array that this rank should write: whole stored objects, shards or chunks, of its own.

    Not collective. The parts of all ranks cover the array, and are as equal as objects allow; with fewer objects than
    ranks some parts are empty.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    array : Array
    axis : int
        Along which the array is cut.

    Returns
    -------
    tuple of slice

    Raises
    ------
    ValueError
        There is no such axis.
    """
    return box_of(comm.Get_rank(), comm.Get_size(), array, axis)


def box_of(rank: int, size: int, array: zcore.Array, axis: int = 0) -> tuple[slice, ...]:
    """Return what `aligned_box` returns to a rank of so many.

    Parameters
    ----------
    rank, size : int
    array : Array
    axis : int

    Returns
    -------
    tuple of slice

    Raises
    ------
    ValueError
        There is no such axis, or no such rank.

    Examples
    --------
    >>> z = zcore.zeros((10, 4), chunks=(3, 4))
    >>> [box_of(rank, 2, z)[0] for rank in range(2)]
    [slice(0, 6, None), slice(6, 10, None)]
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank is {rank}, expected 0 or more, and less than {size}")
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis is {axis}, the array has the shape {array.shape}")
    axis %= array.ndim
    borders = np.cumsum([0, *array.write_chunk_sizes[axis]], dtype=np.int64)
    length = array.shape[axis]

    def border(k):
        """The border of an object that is next to the k-th part of the whole."""
        i = bisect.bisect_left(borders, length * k / size)
        if 0 < i < len(borders) and length * k / size - borders[i - 1] < borders[i] - length * k / size:
            i -= 1
        return int(borders[min(i, len(borders) - 1)])

    box = [slice(None)] * array.ndim
    box[axis] = slice(border(rank), border(rank + 1))
    return tuple(box)


def resize(comm: Any, array: zcore.Array, shape: Shape) -> None:
    """Change the shape of an array; all ranks have the new one, without a `refresh` of their own.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    array : Array
        The same array on all ranks, open for writing.
    shape : tuple of int

    Raises
    ------
    ValueError, ReadOnlyError, StoreError
        As `Array.resize`, on all ranks.
    """
    def change():
        array.resize(shape)

    _change(comm, array, change)


def append(comm: Any, array: zcore.Array, values: npt.ArrayLike, axis: int = 0) -> tuple[int, ...]:
    """Add elements of all ranks behind the last ones along an axis, in the order of ranks; returns the new shape.

    All ranks write at the same time, and then the array is made longer once. A rank may have no elements. While ranks
    append, no other program may append to the array.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    array : Array
        The same array on all ranks, open for writing.
    values : array_like
        Of this rank; of the array's shape in all other dimensions.
    axis : int

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        The values of a rank do not fit; then nothing is changed.
    StoreError
        A rank could not write. The array has its old shape then. At a service it is made longer first: there it stays
        longer, and new elements that were not written have the fill value.
    """
    error = None
    n = 0
    try:
        values = cast_to(values, array.dtype)
        if not -array.ndim <= axis < array.ndim:
            raise ValueError(f"axis is {axis}, the array has the shape {array.shape}")
        axis %= array.ndim
        if (len(values.shape) != array.ndim
                or values.shape[:axis] + values.shape[axis + 1:] != array.shape[:axis] + array.shape[axis + 1:]):
            raise ValueError(f"values have shape {values.shape}, expected that of the array, {array.shape}, but along "
                             f"axis {axis}")
        n = values.shape[axis]
    except Exception as exc:
        error = exc
    _agree(comm, error)
    lengths = comm.allgather(n)

    _change(comm, array, array.refresh)
    old, binding = array.shape, array._binding
    pending = PendingAppend(array, old, (*old[:axis], old[axis] + sum(lengths), *old[axis + 1:]))
    is_first = binding.store.swaps or binding.store.is_transaction
    _change(comm, array, pending.reserve if is_first else pending.make_room)
    start = old[axis] + sum(lengths[:comm.Get_rank()])
    try:
        if n:
            (array if is_first else pending)[(slice(None),) * axis + (slice(start, start + n),)] = values
    except Exception as exc:
        error = exc
    _agree(comm, error)

    def lengthen():
        with consolidated.dropped(binding.store, binding.path, itself=True, format=binding.format):
            pending.lengthen()

    if not is_first:
        _change(comm, array, lengthen)
    return array.shape


def write(comm: Any, array: zcore.Array, box: tuple[slice, ...] | None, values: npt.ArrayLike) -> None:
    """Write a box of each rank, without locks: ranks exchange elements first, so one rank alone writes each object.

    For file systems whose locks do not reach from host to host (``zcore doctor --meet`` tells). Elsewhere ``array[box]
    = values`` is faster, and not collective. No other program may write to the array meanwhile. Of elements that lie
    in the boxes of several ranks, those of the highest rank stay.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    array : Array
        The same array on all ranks, open for writing.
    box : tuple of slice, or None
        Of this rank, with steps of 1. None: it has nothing to write.
    values : array_like
        Of the shape of the box, or of one that is broadcast to it.

    Raises
    ------
    ValueError, TypeError, ReadOnlyError
        On all ranks, if the box or the values of one are wrong. Then nothing is written.
    StoreError, ChunkError
        On all ranks, if one could not write. All other objects are written.
    """
    error, bounds, elements = None, (None, None), None
    try:
        array._binding.check_writable()
        starts, stops = bounds = bounds_of(box, array.shape)
        if starts is not None and stops is not None:
            shape = tuple([b - a for a, b in zip(starts, stops, strict=True)])
            elements = np.broadcast_to(cast_to(values, array.dtype), shape)
    except Exception as exc:
        error = exc
    _agree(comm, error)
    plan = Exchange(comm.allgather(bounds), array.write_chunk_sizes)
    binding = array._binding
    alone = zcore.Array(type(binding)(binding.store, binding.path, binding.format,
                                      binding.options.changed({"lock": None}), binding.view))
    nbytes = array.dtype.itemsize * math.prod([max(lengths, default=1) for lengths in array.write_chunk_sizes])
    _agree(comm, write_in_turns(comm, plan, elements, alone.__setitem__, alone.__getitem__, nbytes))


def flush(comm: Any, array: zcore.Array) -> None:
    """Return when all that any rank has written is on the disk.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    array : Array

    Raises
    ------
    OSError
        On all ranks, if the system of one could not write it.
    """
    error = None
    try:
        directory = array._binding.locks().directory
        if directory is not None:
            sync_files(directory)
    except Exception as exc:
        error = exc
    _agree(comm, error)


def _from_first(comm, make):
    """Return what rank 0 makes, on all ranks; or raise there what it raises."""
    made = error = None
    if comm.Get_rank() == 0:
        try:
            made = make()
        except Exception as exc:
            error = exc
    _agree(comm, error)
    sent = comm.bcast(made, root=0)
    return sent if made is None else made


def _change(comm, array, change):
    """Let rank 0 change the document of an array, and the others take it over from there."""
    error = said = None
    binding = array._binding
    if comm.Get_rank() == 0:
        try:
            change()
            said = binding.view.raw, binding.view.identity
        except Exception as exc:
            error = exc
    _agree(comm, error)
    raw, identity = comm.bcast(said, root=0)
    if comm.Get_rank() != 0:
        binding.adopt(binding.view_of(raw, identity))


def _agree(comm, error):
    """Raise the error of this rank, or that of the first rank that has one."""
    found = comm.allgather(_sendable(error))
    if error is not None:
        raise error
    for rank, other in enumerate(found):
        if other is not None:
            other.add_note(f"raised on rank {rank}")
            raise other


def _sendable(error):
    """Return an exception that can be pickled: the same, or a StoreError of its words."""
    import pickle

    if error is None:
        return None
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return StoreError(f"{type(error).__name__}: {error}")
