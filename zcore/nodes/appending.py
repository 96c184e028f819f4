"""Appends of several arrays of a group that a kill leaves whole: all of them get their new shapes, or none.

The new elements of all arrays are written first, beyond the shapes that the documents have. Then a record is made
beside the group's document, the documents get their new shapes one after the other, copies of the metadata are renewed,
and the record is removed. A kill before the record leaves the dataset as it was. After it, readers without a copy find
arrays of two lengths, and by the record the one to go by; and the next append goes back to what readers found.

In a session of Icechunk there is no record: a commit is one step.

At a service locks do not hold back other processes, so documents get their shapes first: they reserve the rows.
"""
from __future__ import annotations

import json
import os
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from zcore.errors import LockError, ZcoreError
from zcore.hierarchy import resizing
from zcore.nodes.array import Array
from zcore.stores.keys import prefix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from zcore.nodes.group import Group

# The record is in a directory of its own, since locks are those of a node.
_RECORD = ".zcore_append", "record"
# Other appends end meanwhile, each of them once.
_MAX_TRIES = 1000


class PendingAppend:
    """The target of elements that a stored array is about to get: a pickle of it works in other processes.

    Parameters
    ----------
    array : Array
    old, new : tuple of int
        Its shapes.
    """

    def __init__(self, array: Array, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        self._made_of = array, old, new
        self._target = None
        self._is_longer = False

    def __reduce__(self) -> tuple[Any, ...]:
        return PendingAppend, self._made_of

    @property
    def shape(self) -> tuple[int, ...]:
        return self._made_of[2]

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._target is None:
            array, old, new = self._made_of
            self._target = Array(resizing.GrowingBinding(array._binding, old, new))
        self._target[key] = value

    def make_room(self) -> None:
        """Erase what lies in the place of the new elements."""
        array, old, _ = self._made_of
        resizing.make_room(array._binding, old)

    def reserve(self) -> None:
        """Let the document say now that the elements are there."""
        resizing.resize(self._made_of[0]._binding, self.shape, self._check)

    def append(self, values: npt.NDArray[Any], axis: int) -> None:
        """Write the elements and let the document say that they are there."""
        array, old, _ = self._made_of

        def at(length):
            self._check(old[:axis] + (length,) + old[axis + 1:])
            return values

        resizing.append(array._binding, at, axis)

    def lengthen(self) -> None:
        """Let the document say that the elements are there."""
        resizing.lengthen(self._made_of[0]._binding, self.shape, self._check)

    def _check(self, shape):
        array, old, _ = self._made_of
        if shape != old:
            raise resizing.another_writer(array._binding, shape, old)
        self._is_longer = True

    def undo(self) -> None:
        """Give the array its old shape, unless another writer has resized it since."""
        array, old, new = self._made_of
        if self._is_longer and array.refresh().shape == new:
            resizing.resize(array._binding, old)


def home_of(dims_of: Mapping[str, tuple[str, ...]], dim: str) -> str:
    """Return the name of the array that has the record of an append: the dimension's coordinate, or the first one.

    `dims_of`: by name the dimensions of arrays; at least one has `dim`.
    """
    names = sorted([name for name, dims in dims_of.items() if dim in dims])
    return dim if dim in names else names[0]


@contextmanager
def appending(home: Array, dim: str, length: int, grown: Iterable[PendingAppend] = ()) -> Iterator[None]:
    """Return a context manager for an append, with a record of it that is removed in the end.

    Other appends wait for it, except those of other processes at a service, and in a session of Icechunk.

    Parameters
    ----------
    home : Array
        See `home_of`; open for writing.
    dim : str
    length : int
        Of this dimension, before.
    grown : iterable of PendingAppend
        The arrays that are appended to. After an error they have their old shapes.
    """
    store, key = home.store, _key_of(home)
    if store.is_transaction:
        with _undoing(grown):
            yield
        return
    raw = json.dumps({"dimension": dim, "length": length}).encode()
    for _ in range(_MAX_TRIES):
        store.set_if_not_exists(key, raw)
        with ExitStack() as stack:
            try:
                hold = stack.enter_context(_locks(home).whole())
            except FileNotFoundError:
                continue     # the append that it waited for has ended
            if store.get(key) == raw:
                if hold.dir_fd >= 0:
                    # Once more: what is replaced is written out, and whole after a power cut if documents are changed.
                    hold.replace(raw, token=int.from_bytes(os.urandom(8)))
                with _undoing(grown, partial(store.erase, key)):
                    yield
                store.erase(key)
                return
            store.erase(key)     # of one that was cut off
    raise LockError(f"{key}: the record of an append is gone as soon as it is made", key=key)


@contextmanager
def _undoing(grown, after=None):
    """Return a context manager that gives arrays their old shapes after an error, and then calls `after`."""
    try:
        yield
    except BaseException:
        with suppress(ZcoreError):
            for one in grown:
                one.undo()
            if after is not None:
                after()
        raise


def undo_append(group: Group, shown: Callable[[], Group], dim: str, dims_of: Mapping[str, tuple[str, ...]]) -> None:
    """Go back to the length that readers find, if an append was cut off while arrays got their new shapes.

    Parameters
    ----------
    group : Group
        Open for writing, as the documents of its arrays are now.
    shown : callable
        Returns the group as readers open it.
    dim : str
        Of the append.
    dims_of : dict
        By name the dimensions of the group's arrays.
    """
    if not any([dim in dims for dims in dims_of.values()]):
        return
    home = group[home_of(dims_of, dim)]
    if (length := length_before(home, dim)) is None:
        return
    with appending(home, dim, length):
        # Copies of the metadata are what readers find. Without one they find arrays of two lengths.
        found = shown()
        if length == min([found[name].shape[dims.index(dim)] for name, dims in dims_of.items()
                          if dim in dims and name in found]):
            for name, dims in dims_of.items():
                if dim in dims and (array := group[name]).shape[dims.index(dim)] > length:
                    array.resize([length if other == dim else n for other, n in zip(dims, array.shape, strict=True)])


def _key_of(home):
    return prefix_of(home.path) + "/".join(_RECORD)


def _locks(home):
    return home._binding.options.locks_of(home.store, prefix_of(home.path) + _RECORD[0], _RECORD[1])


def length_before(home: Array, dim: str) -> int | None:
    """Return the length that a dimension had before the last append, if that is at work, or was cut off; else None."""
    raw = home.store.get(_key_of(home))
    try:
        record = json.loads(raw or b"{}")
        return record["length"] if record.get("dimension") == dim and type(record["length"]) is int else None
    except (ValueError, AttributeError, KeyError):
        return None
