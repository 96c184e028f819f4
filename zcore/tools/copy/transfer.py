"""Copies an array: objects as they are stored where that is possible, else slabs of elements.

An object appears whole, so a later call does not write again what is there.
"""
from __future__ import annotations

import contextlib
import itertools
import math
import operator
import os
import shutil
import tempfile
from _thread import allocate_lock
from collections import Counter
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from zcore import config, workers
from zcore.engine.array_binding import ArrayBinding
from zcore.engine.options import MAX_THREADS, Options
from zcore.errors import OutOfMemoryError, ZcoreError
from zcore.formats import format_of
from zcore.hierarchy import new_nodes
from zcore.kernel.select.box import Box
from zcore.model.chunk_grid import number_of
from zcore.model.metadata import has_varying_items
from zcore.nodes.array import Array
from zcore.replacing import NewFile
from zcore.stores.base import SMALL_NBYTES, directory_at
from zcore.stores.directory.reading import check_absent
from zcore.stores.directory.staged import faults
from zcore.stores.directory.store import DirectoryStore
from zcore.tools.rechunk import n_slabs, passes, slab_at
from zcore.tools.spread import another_copy, spread
from zcore.tools.stored import Stored, is_same_fill, slabs_with_more, until_unmoved

if TYPE_CHECKING:
    from collections.abc import Callable, Set
    from typing import Any

    import numpy.typing as npt

    from zcore.tools.copy.destinations import Work
    from zcore.tools.copy.sources import SourceArray, SourceGroup
    from zcore.tools.copy.translate import CopyRequest
    from zcore.tools.rechunk import Passes

# Larger objects, in decoded bytes, are copied by the system from file to file.
_LARGE = 1 << 20
_WAITING_NBYTES = 1 << 26     # decoded bytes of objects in flight from or to a service
_SHARE_NBYTES = 1 << 26       # decoded bytes of the objects that a worker gets at once
_MAX_SHARE = 1 << 10          # the most objects that a worker gets at once
_CHECK_SECONDS = 0.1          # how often a worker checks that its copy in a service was not replaced
_VARYING_NBYTES = 64          # assumed size of an item of varying length
MAX_TOGETHER = 16     # small arrays that are copied at the same time, from or to a service


class Target:
    """A new array whose elements are written. Its `path` tells it from others of the same copy, if it has one."""

    path: str = ""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    object_shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def write(self, starts: tuple[int, ...], values: npt.NDArray[Any]) -> None:
        """Write a box of elements, the first of which is at `starts`."""
        raise NotImplementedError

    def fill(self) -> npt.NDArray[Any] | None:
        """Return the value of elements that are not written, an ndarray of one; None where all are to be written."""
        return None


class Sink:
    """Makes the groups and arrays of a destination.

    Attributes
    ----------
    documents_first : bool
        All nodes are made before elements are written: an archive has its documents at its beginning.
    keeps_enums : bool
        Names of numbers are kept.
    n_requests : int
        As of a store.
    takes : tuple of str
        The wishes of a `CopyRequest` that can be met.
    """

    documents_first: bool = False
    n_requests: int = 0
    keeps_enums: bool = False
    takes: tuple[str, ...] = ()

    def group(self, name: str, source: SourceGroup) -> None:
        """Make a group, or note the loss."""
        raise NotImplementedError

    def array(self, name: str, source: SourceArray, wanted: CopyRequest) -> Any:
        """Make an array, and return its `Target`."""
        raise NotImplementedError

    def end(self, name: str) -> None:
        """Finish the array that was made last."""

    def close(self) -> None:
        """Finish all."""

    def discard(self) -> None:
        """Release what is not finished."""
        self.close()


class Progress:
    """Counts the bytes that are done, part by part, and reports them to `tell`, if given.

    Parameters
    ----------
    tell : callable or None
    total : int
        Bytes of elements.
    """

    def __init__(self, tell: Callable[[int, int], object] | None, total: int) -> None:
        self._tell = tell
        self._total = total
        self._done = self._end = 0.0
        self._lock = allocate_lock()

    def begin(self, n_bytes: float) -> None:
        """Note that all parts so far are done, and that the next one has so many bytes."""
        if self._done < self._end:
            self.advance(self._end)
        self._end = min(self._end + n_bytes, self._total)

    def advance(self, n_bytes: float) -> None:
        """Note that more bytes of this part are done. It counts up to its end."""
        if self._tell is not None:
            with self._lock:
                self._done = min(self._done + n_bytes, self._end)
                done = round(self._done)
            self._tell(done, self._total)


def pass_objects(source: ArrayBinding, target: ArrayBinding, memory: int, is_begun: bool, progress: Progress,
                 client: Any = None) -> None:
    """Copy the objects of an array to one that has the same objects under other names.

    Parameters
    ----------
    source, target : ArrayBinding
    memory : int
        Maximum bytes of whole objects at a time, but for a single one.
    is_begun : bool
        Some objects may be there already. Each of them is whole.
    progress : Progress
    client : object, optional
        Client of dask whose workers do the copy, see `zcore.tools.spread`.
    """
    keys, prefix, n_bytes = target.metadata.chunk_keys, target.prefix, source.metadata.chunk_nbytes

    def copy():
        nonlocal is_begun
        objects = ((key, prefix + keys.encode(coords)) for key, coords in source.stored_chunks())
        if client is None:
            _pass_some(source, target, memory, is_begun, progress.advance, objects)
        else:
            size = max(1, min(_MAX_SHARE, _SHARE_NBYTES // max(1, n_bytes)))
            work = partial(_pass_on_worker, Array(source), Array(target), memory, is_begun)
            for share, _ in spread(client, work, _batched(objects, size)):
                progress.advance(len(share) * n_bytes)
        is_begun = True

    until_unmoved(source.store, source.path, copy)


def _batched(items, n):
    while batch := tuple(itertools.islice(items, n)):
        yield batch


def _pass_on_worker(source, target, memory, is_begun, objects):
    """Copy some objects; `source` and `target` are arrays, which this worker has opened."""
    target = target._binding
    # In a service a look takes as long as an object.
    pause = 0 if directory_at(target.store) is not None else _CHECK_SECONDS
    checked = -math.inf

    def checked_objects():
        nonlocal checked
        for item in objects:
            if monotonic() - checked >= pause:
                _check_place(target)
                checked = monotonic()
            yield item

    _pass_some(source._binding, target, memory, is_begun, lambda n_bytes: None, checked_objects())


def _check_place(target):
    """Raise StoreError unless the array that is being made is still at its place.

    Another copy may have begun there with an equal document, so its identity is compared.
    """
    view, store = target.view, target.store
    if (store.get(target.document) != view.raw if view.identity is None
            else store.identity(target.document) != view.identity):
        raise another_copy(target.describe())


def _pass_some(source, target, memory, is_begun, advance, objects):
    """Copy objects, an iterator of (key, new key)."""
    metadata = source.metadata
    files = directory_at(source.store), directory_at(target.store)
    by_system = None not in files and metadata.chunk_nbytes > _LARGE

    def move(item):
        key, new = item
        if not (is_begun and target.store.exists(new)):
            is_done = by_system and _copy_file(os.path.join(files[0], key), os.path.join(files[1], new))
            # An object that was erased since it was listed reads as the fill value, if the array stays the same.
            if not is_done and (value := _fetched(source, key)) is not None:
                target.store.set(new, value)
        advance(metadata.chunk_nbytes)

    n_requests = max(source.store.n_requests, target.store.n_requests)
    n_threads = max(target.options.threads or config.threads, min(n_requests, _WAITING_NBYTES // metadata.chunk_nbytes))
    if not by_system:
        n_threads = min(n_threads, max(1, memory // metadata.chunk_nbytes))
    workers.each_next(move, objects, min(n_threads, MAX_THREADS, metadata.n_chunks))


def _fetched(source, key):
    try:
        return source.store.get(key)
    except ZcoreError as error:
        error.locate(source.describe())
        raise


def _copy_file(source, target):
    """Copy a file so that the new one appears whole; return whether there was a file."""
    with faults(f"copy {source} to", target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        new = NewFile(target, follows=False, writes_out=False)     # the directory is written out as a whole
        try:
            shutil.copyfile(source, new.temporary)
            new.commit()
        except FileNotFoundError as exc:
            if exc.filename != source:
                raise
            check_absent(source)
            return False
        finally:
            new.discard()
    return True


class Slabs:
    """Copies elements from one array to another, slab by slab.

    Parameters
    ----------
    source : SourceArray
    target : Target
    memory : int
        Maximum bytes for all elements and objects in memory.
    threads : int or None
    work : Work
    progress : Progress
    client : object, optional
        On whose workers slabs are copied, see `zcore.tools.spread`; each of them has that memory.
    """

    def __init__(self, source: SourceArray, target: Any, memory: int, threads: int | None, work: Work,
                 progress: Progress, client: Any = None) -> None:
        self.source = source
        self.target = target
        self.threads = threads
        self.work = work
        self.progress = progress
        self.client = client
        itemsize = max(_itemsize(source.dtype), 1)
        per_element = itemsize + (0 if source.dtype == target.dtype else _itemsize(target.dtype))
        n_threads = min(threads or config.threads, MAX_THREADS)
        # Each thread holds an object besides its slab, encoded and decoded.
        per_thread = 2 * max(math.prod(source.object_shape) * itemsize,
                             math.prod(target.object_shape) * _itemsize(target.dtype))
        room = max(memory // 4, memory - n_threads * per_thread - (1 << 22))
        self.passes: Passes = passes(source.shape, source.object_shape, target.object_shape, per_element, room)

    def run(self) -> None:
        """Copy the slabs that are not copied yet."""
        if self.passes.between is None:
            self._pass(self.source, self.target, self.passes.write, 1.0)
        elif not (self.work.is_begun and self.target.whole_slabs(self.passes.write).issuperset(
                self._needed(self.source, self.target, self.passes.write))):
            with contextlib.ExitStack() as stack:
                folder = self.work.between or stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="zcore-copy-"))
                between = self._between(folder)
                try:
                    self._pass(self.source, between, self.passes.read, 0.5)
                    self._pass(between, self.target, self.passes.write, 0.5)
                except ZcoreError as error:
                    if self.client is not None and self.work.between is None and folder in error.message:
                        error.message += "; workers on other hosts do not see it unless TMPDIR is a directory of all"
                    raise
            self.work.drop_between()

    def _between(self, folder):
        """Return the uncompressed array between two passes: a new one, or that of a process that was killed.

        It names the array that it is for: one of the same shape and type may have been copied before.
        """
        options = Options(lock=False, threads=self.threads, cache=0)
        store = DirectoryStore(folder)
        new = new_nodes.new_array(shape=self.source.shape, dtype=self.source.dtype,
                                 fill_value=... if self.source.fill_value is None else self.source.fill_value,
                                 chunks=self.passes.between, compressors=None, checksum=False,
                                 attributes={"for": self.target.path})
        if self.work.is_begun:
            with contextlib.suppress(ZcoreError):     # that of another array, or none
                found = ArrayBinding(store, "", format_of(3), options)
                if found.view.raw == new.format.render(new.metadata):
                    return StoredTarget(found)
        return StoredTarget(new.create(store, "", options, True))

    def _pass(self, source, target, slab, weight):
        numbers = self._needed(source, target, slab)
        done = target.whole_slabs(slab) if self.work.is_begun else frozenset()

        def advance(number):
            n_elements = math.prod(slab_at(source.shape, slab, number)[1])
            self.progress.advance(n_elements * self.target.dtype.itemsize * weight)

        def undone():
            for number in numbers:
                if number in done:
                    advance(number)
                else:
                    yield number

        if self.client is None:
            memory: dict[np.dtype[Any], ElementMemory] = {}
            for number in undone():
                move_slab(source, target, slab, memory, number)
                advance(number)
        else:
            for number, _ in spread(self.client, partial(move_slab, source, target.on_worker(), slab, None), undone()):
                advance(number)

    def _needed(self, source, target, slab):
        """Return the numbers of the slabs that are copied, in C order.

        Absent objects are left out if they are absent in the target, too, and read as the same value there.
        """
        stored, fill = source.stored(), target.fill()
        if stored is not None and fill is not None:
            absent = stored.fill() if source.dtype == target.dtype else _cast(stored.fill(), np.empty(1, target.dtype))
            if is_same_fill(absent, fill):
                return slabs_with_more(source.shape, slab, [stored])
        return range(n_slabs(source.shape, slab))


def move_slab(source: SourceArray | StoredTarget, target: Any, slab: tuple[int, ...],
              memory: dict[np.dtype[Any], ElementMemory] | None, number: int) -> None:
    """Copy one slab from one array to another; see `Slabs`.

    `slab` is the shape of all slabs, and `memory` is used again for the next one. It is None on a worker, which may
    copy several at once.
    """
    def elements(shape, dtype):
        own = ElementMemory(dtype)
        return (own if memory is None else memory.setdefault(dtype, own)).of(shape)

    starts, counts = slab_at(source.shape, slab, number)
    values = elements(counts, source.dtype)
    source.read(starts, values)
    if target.dtype != source.dtype:
        values = _cast(values, elements(values.shape, target.dtype))
    target.write(starts, values)


class ElementMemory:
    """Memory for the elements of a box, which is used again for the next one as long as it is large enough."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._memory = None

    def of(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return an array of this shape, with any elements."""
        n = math.prod(shape)
        if self._memory is None or self._memory.size < n:
            self._memory = None
            try:
                self._memory = np.empty(n, self._dtype)
            except (MemoryError, ValueError) as exc:
                n_bytes = n * self._dtype.itemsize
                raise OutOfMemoryError(f"no memory for {n_bytes} bytes of elements", nbytes=n_bytes) from exc
        return self._memory[:n].reshape(shape)


def _cast(values, cast):
    with np.errstate(all="ignore"):
        np.copyto(cast, values, casting="unsafe")
    return cast


class StoredTarget(Target):
    """A new array in a store. Its binding takes no locks, as no other writer knows the array yet."""

    def __init__(self, binding: ArrayBinding) -> None:
        self.binding: ArrayBinding = binding
        self.path: str = binding.path
        metadata = binding.metadata
        self.shape: tuple[int, ...] = metadata.shape
        self.dtype: np.dtype[Any] = metadata.dtype
        self.object_shape: tuple[int, ...] = metadata.chunk_shape

    def __reduce__(self) -> tuple[Any, ...]:
        return _target_on_worker, (Array(self.binding), config.lock)

    def on_worker(self) -> StoredTarget:
        """Return the array for a worker. Another copy may have replaced it before the worker begins.

        The worker finds that out by the locks of this process.
        """
        return _target_on_worker(Array(self.binding), config.lock)

    def stored(self) -> Stored:
        """Return a `Stored` of the array."""
        return Stored(self.binding)

    def fill(self) -> npt.NDArray[Any]:
        """Return the value of elements that are not written, an ndarray of one."""
        return self.stored().fill()

    def whole_slabs(self, slab: tuple[int, ...]) -> Set[int]:
        """Return the numbers of the slabs all of whose objects are stored. Each of them was written as a whole."""
        metadata = self.binding.metadata
        if metadata.edges is not None:
            return frozenset()     # slabs are no unions of objects of different lengths
        grid = [-(-n // length) for n, length in zip(self.shape, slab, strict=True)]
        found = Counter()
        for _, coords in self.binding.stored_chunks():
            found[number_of(map(operator.floordiv, metadata.place_of(coords)[0], slab), grid)] += 1
        return {number for number, n in found.items() if n == math.prod([
            -(-count // length) for count, length in zip(slab_at(self.shape, slab, number)[1], self.object_shape,
                                                         strict=True)])}

    def read(self, starts: tuple[int, ...], out: npt.NDArray[Any]) -> None:
        self.binding.read(Box(starts, (1,) * len(starts), out.shape), out)

    def write(self, starts: tuple[int, ...], values: npt.NDArray[Any]) -> None:
        self.binding.write(Box(starts, (1,) * len(starts), values.shape), values)


class _TargetOnWorker(StoredTarget):
    """A new array in a store, on a worker that writes a part of it; see `StoredTarget.on_worker`."""

    def write(self, starts, values):
        binding = self.binding
        _check_place(binding)
        plan = binding.write_once(binding.view, Box(starts, (1,) * len(starts), values.shape), values)
        if plan.stale:
            raise another_copy(binding.describe())


def _target_on_worker(array, lock):
    binding = array._binding
    options = binding.options.changed({"lock": lock})
    return _TargetOnWorker(ArrayBinding(binding.store, binding.path, binding.format, options, binding.view))


def is_small(source: SourceArray, target: Any, memory: int) -> bool:
    """Return whether an array in a store, and each object of it, takes little memory, there and in the target."""
    bindings = source.binding, getattr(target, "binding", None)
    return None not in bindings and all([
        math.prod(shape) * _itemsize(one.metadata.dtype) <= min(SMALL_NBYTES, memory // (4 * MAX_TOGETHER))
        for one in bindings for shape in (one.metadata.shape, one.metadata.chunk_shape)])


def _itemsize(dtype):
    return _VARYING_NBYTES if has_varying_items(dtype) else dtype.itemsize
