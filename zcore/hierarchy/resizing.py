"""Shrinks arrays, lets them grow, and appends to them, in an order that leaves no wrong data after a kill.

========  ==========================================================================================================
shrink    the document first, then objects outside are erased and border objects reset beyond the new shape
grow      objects outside the old shape are erased, border objects reset beyond it, then the document
append    the data, then the document
in parts  objects outside the old shape are erased, border objects reset beyond it; the data; then the document
========  ==========================================================================================================

Where locks exclude only this process (`Store.swaps`), the document decides among processes. It is replaced only while
it is the one that was read. An append first writes the new shape there, which reserves its rows, and then writes the
rows: another append reserves the rows behind them. Before that, remains of a killed change in these rows are reset by
compare-and-swap: an object is read, then the document is compared, then the object is replaced if it has not changed
since. So no row of another append is reset, because it was written after its reservation.

In a transaction (`Store.is_transaction`) the document has the larger shape at each step: Icechunk keeps chunks beyond a
shape, but neither shows nor takes any.

Each step runs under the whole-range lock of the document. Objects to erase are found by listing the existing ones,
never by probing the chunks of the grid.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from zcore.engine.array_binding import ArrayBinding, end_of_objects
from zcore.engine.node_binding import until_won
from zcore.engine.views import renewed, same_chunks
from zcore.errors import StoreError, ZcoreError
from zcore.hierarchy import consolidated, deletion
from zcore.kernel.select.box import Box, whole
from zcore.model.chunk_grid import number_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy.typing as npt

    from zcore.engine.views import View
    from zcore.stores.base import Identity

# Objects that are erased between two checks of the document.
_MAX_UNCHECKED = 16


def resize(binding: ArrayBinding, shape: tuple[int, ...],
           check: Callable[[tuple[int, ...]], None] | None = None) -> None:
    """Change the shape of an array. Remaining elements keep their values, new ones have the fill value.

    Costs the objects at the border and outside, and a listing of existing objects.

    Parameters
    ----------
    binding : ArrayBinding
    shape : tuple of int
    check : callable, optional
        Called with the shape that the array has, under its lock. If it raises, nothing is changed.

    Raises
    ------
    ValueError
        The number of dimensions differs, or a length is negative.
    """
    until_won(lambda: _resize(binding, shape, check))


def _resize(binding, shape, check):
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        old = metadata.shape
        if check is not None:
            check(old)
        if len(shape) != len(old):
            raise ValueError(f"the new shape {shape} has another number of dimensions than the old one, {old}")
        metadata = metadata.resized(shape)
        new = metadata.shape
        if new == old:
            return
        # First: if they cannot be listed, or lie behind a link, nothing changes.
        objects = list(binding.stored_chunks(outside=True))
        added = _outside(binding, exclusive.metadata, old, objects) if any(map(int.__gt__, new, old)) else None
        removed = _outside(binding, metadata, new, objects) if any(map(int.__lt__, new, old)) else None
        with consolidated.dropped(binding.store, binding.path, itself=True, format=binding.format):
            if binding.store.is_transaction:
                if removed is not None:
                    _reset(binding, exclusive, new, *removed)
                exclusive.replace_metadata(metadata)
                if added is not None:
                    objects = list(binding.stored_chunks(outside=True))
                    _reset(binding, exclusive, old, *_outside(binding, metadata, old, objects))
                return
            if added is not None and _compares(binding):
                _reset_in_service(binding, exclusive, old, metadata, objects)
            elif added is not None:
                _reset(binding, exclusive, old, *added)
            exclusive.replace_metadata(metadata)
            if removed is not None:
                _reset(binding, exclusive, new, *removed)


class GrowingBinding(ArrayBinding):
    """An array with the shape that it is about to have, for writes of the new elements; see `make_room`.

    Parameters
    ----------
    binding : ArrayBinding
    old, new : tuple of int
        The shapes in the document and in its place.
    """

    __slots__ = ("_old", "_new")

    writes_out = True

    def __init__(self, binding: ArrayBinding, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        self._old, self._new = old, new
        super().__init__(binding.store, binding.path, binding.format, binding.options)

    def view_of(self, raw: bytes, identity: Identity | None, ticket: int | None = None) -> View:
        view = super().view_of(raw, identity, ticket)
        if self.view is not None and view.metadata is self.view.metadata:
            return view     # the document that was read last
        if view.metadata.shape != self._old:
            raise another_writer(self, view.metadata.shape, self._old)
        return renewed(view, raw, identity, view.ticket, view.metadata.resized(self._new))


def another_writer(binding: ArrayBinding, found: tuple[int, ...], expected: tuple[int, ...]) -> StoreError:
    """Return the error for an array that another writer has resized."""
    return StoreError(f"{binding.describe()}: the array has the shape {found} by now, before it had {expected}: "
                      "another writer is at work", key=binding.document)


def make_room(binding: ArrayBinding, old: tuple[int, ...]) -> None:
    """Prepare an array of shape `old` for elements outside of it, which a `GrowingBinding` writes.

    No reader sees them before `lengthen`. Meanwhile the caller keeps out others that do the same. A writer that resizes
    the array is not kept out: then writes are errors.
    """
    with binding.exclusive() as exclusive:
        if exclusive.metadata.shape != old:
            raise another_writer(binding, exclusive.metadata.shape, old)
        _reset(binding, exclusive, old, *_outside(binding, exclusive.metadata, old,
                                                  binding.stored_chunks(outside=True)))


def lengthen(binding: ArrayBinding, shape: tuple[int, ...], check: Callable[[tuple[int, ...]], None]) -> None:
    """Give an array a shape of which all elements were written; see `resize`. Copies of its metadata stay."""
    with binding.exclusive() as exclusive:
        check(exclusive.metadata.shape)
        exclusive.replace_metadata(exclusive.metadata.resized(shape))


def append(binding: ArrayBinding, values: npt.NDArray[Any] | Callable[[int], npt.NDArray[Any] | None], axis: int,
           appended: Callable[[int], object] = int) -> tuple[int, ...]:
    """Append `values`, an ndarray of the stored type, along `axis`; return the new shape.

    `values` may be a function, which is called under the lock with the length that the array has; None appends nothing.
    ``appended(n)`` is called as soon as the array has the rows, whatever fails later.

    Appends of several threads and processes happen one after the other, each as a whole. A kill leaves the old length.
    In a service the rows are reserved first: a kill may leave rows with the fill value, and so may an error if another
    process has changed the document meanwhile, or if the service does not answer at all (`zcore.engine.stamps`).
    """
    return until_won(lambda: _append(binding, values, axis, appended))


def _append(binding, values, axis, appended):
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        has_axis = axis < metadata.ndim
        if has_axis and callable(values) and (values := values(metadata.shape[axis])) is None:
            return metadata.shape
        if not has_axis or values.dtype != metadata.dtype:
            raise StoreError(f"{binding.document}: the array was replaced by another one since it was opened; open it "
                             "again", key=binding.document)
        old = metadata.shape
        if values.ndim != len(old) or values.shape != old[:axis] + values.shape[axis:axis + 1] + old[axis + 1:]:
            raise ValueError(f"array has shape {old}, cannot append values of shape {values.shape} along axis {axis}")
        metadata = metadata.resized(old[:axis] + (old[axis] + values.shape[axis],) + old[axis + 1:])
        starts = tuple([old[d] if d == axis else 0 for d in range(len(old))])
        box = Box(starts, (1,) * len(old), values.shape)
        with consolidated.dropped(binding.store, binding.path, itself=True, format=binding.format):
            if _compares(binding) or binding.store.is_transaction:
                _append_in_service(binding, exclusive, box, values, axis, metadata)
                appended(values.shape[axis])
                return metadata.shape
            # Every object that the new elements touch is replaced or erased, so no old values appear in them.
            binding.write_once(exclusive.view, box, values, holder=exclusive, metadata=metadata, old_shape=old)
            try:
                exclusive.replace_metadata(metadata)
            finally:
                if exclusive.metadata.shape == metadata.shape:
                    appended(values.shape[axis])
        return metadata.shape


def _compares(binding):
    """Return whether only compare-and-swap prevents other processes from changing an array."""
    return binding.store.swaps and bool(binding.options.lock)


def _append_in_service(binding, exclusive, box, values, axis, metadata):
    """Reserve rows by the document, whose `metadata` has them, and write them; see the beginning of this module.

    Raises : LostRaceError, if another process has replaced the document. Nothing was reserved then.
    """
    old = exclusive.metadata
    if not values.size:
        exclusive.replace_metadata(metadata)
        return
    # Includes rows up to the end of the last object: these values do not cover it, and others may write the rest.
    end = end_of_objects(metadata, axis)
    padded = metadata.resized(tuple([end if d == axis else n for d, n in enumerate(metadata.shape)]))
    # A shrink that was cut off, or a write meanwhile, may have left objects there.
    binding.write_once(exclusive.view, box, None, holder=exclusive, metadata=padded, old_shape=old.shape,
                       check=exclusive.check)
    exclusive.replace_metadata(metadata)
    try:
        binding.write_once(exclusive.view, box, values, holder=exclusive, is_reserved=True, metadata=padded)
    except BaseException:
        # The reservation is undone, unless another process has appended behind it.
        with contextlib.suppress(ZcoreError):
            exclusive.replace_metadata(old)
        raise
    if not same_chunks(binding.look().metadata, metadata):
        raise StoreError(f"{binding.document}: another process has replaced the array while rows were appended",
                         key=binding.document)


def _reset_in_service(binding, exclusive, shape, metadata, objects):
    """Reset the elements beyond `shape` in objects of an array that grows to `metadata`.

    Objects outside the new shape stay: the next growth resets them.
    """
    grid, tasks = metadata.grid_shape, []
    for _, coords in objects:
        task = number_of(coords, grid)
        if task is not None and _extends(metadata, coords, shape):
            tasks.append(task)
    if tasks:
        binding.write_once(exclusive.view, whole(metadata.shape), None, holder=exclusive, metadata=metadata,
                           old_shape=shape, tasks=tasks, check=exclusive.check)


def _extends(metadata, coords, shape):
    """Whether a chunk has elements outside of `shape`."""
    return any([first + length > n for first, length, n in zip(*metadata.place_of(coords), shape, strict=True)])


def _outside(binding, metadata, shape, objects):
    """Return the keys of the objects outside of `shape`, and the numbers of those that extend beyond it.

    `objects`: pairs of key and coordinates, see `ArrayBinding.stored_chunks`.

    Raises : StoreError, if one of them lies behind a link to a directory: it may belong to another array.
    """
    metadata = metadata.replace(shape=shape)
    grid = metadata.grid_shape
    outside, border, links = [], [], {}
    for key, coords in objects:
        task = number_of(coords, grid)
        if task is None:
            outside.append(key)
        elif _extends(metadata, coords, shape):
            border.append(task)
        else:
            continue
        # Otherwise the error would come when it is erased or reset, after the document has changed.
        binding.store.folders.check_no_special("", (key,))
        link = deletion.link_on_the_way(binding.store, binding.prefix, key, links)
        if link is not None:
            raise StoreError(f"{link!r} of {binding.store!r} is a link to a directory: the chunks there may belong "
                             "to another array, and are not erased; replace the link by the directory",
                             key=link)
    return outside, border


def _reset(binding, exclusive, shape, outside, border):
    """Erase the objects `outside`, and reset objects at the border to the fill value beyond `shape`."""
    check = exclusive.check if _compares(binding) else None
    for i, key in enumerate(outside):
        if check is None:
            exclusive.check_place(", and objects outside its shape may have stayed")     # a store erases by path
        elif i % _MAX_UNCHECKED == 0:
            check()     # another process may have appended, and its rows may be there
        binding.store.erase(key)
    if border:
        binding.write_once(exclusive.view, whole(shape), None, holder=exclusive,
                           metadata=exclusive.metadata.replace(shape=shape), old_shape=shape, tasks=border, check=check)
