"""Reads few and small chunks on zarr-python's loop.

A store of zarr-python answers on its loop. A thread that asks it waits until the loop has time, and then for its own
turn, which takes longer than to decode a small chunk. So the read begins on the loop, with no answer at all; what it
asks for is fetched, and it begins again with these answers, until it is done. Then the document is looked for.
"""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zarr.core.buffer import Buffer
from zarr.core.buffer.cpu import buffer_prototype

from zcore.engine.array_binding import ArrayBinding
from zcore.nodes.array import Array
from zcore.stores.base import AtMost, Store, Within
from zcore.stores.zarr_python import request_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from zarr.abc.store import Store as ZarrStore

    from zcore.stores.base import ByteRange, Listing

MAX_NBYTES = 1 << 16    # of decoded chunks: to decode more takes longer than two changes of threads


async def is_read(store: ZarrStore, binding: ArrayBinding, read: Callable[[Array], object]) -> bool:
    """Read from an array on the loop, if its chunks are few and small, and return whether that was done.

    Otherwise, and after any error, the caller reads in a thread: elements of the result may have changed.

    Parameters
    ----------
    store : zarr.abc.store.Store
    binding : ArrayBinding
        Binding of an array in that store.
    read : callable
        ``read(array)`` reads from an array.
    """
    view, answers = binding.view, _Answers()
    array = Array(_SmallBinding(answers, binding, view))
    try:
        while True:
            read(array)
            if not answers.asked:
                break
            asked, answers.asked = answers.asked, {}
            calls = [store.get(key, buffer_prototype, request_of(part)) for key, part in asked]
            found = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
            answers.known.update(zip(asked, map(_bytes_of, found), strict=True))
        document = _bytes_of(await store.get(binding.document, buffer_prototype))
    except Exception:
        return False
    return document == view.raw


def _bytes_of(found):
    """Return the bytes of a value."""
    if found is None:
        return None
    if not isinstance(found, Buffer):
        raise TypeError     # a thread reports it
    return found.to_bytes()


class _UnansweredError(Exception):
    """What a read asks for is left to a thread."""


class _Answers(Store):
    """The values, or parts of them, that were fetched for a read, and what it asks for next."""

    n_requests: int = 1     # takes long, as for the store behind it: parts that lie close are asked for together

    def __init__(self) -> None:
        self.known: dict[tuple[str, Within | None], bytes | None] = {}
        self.asked: dict[tuple[str, Within | None], None] = {}

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        if byte_range is not None and type(byte_range) not in (AtMost, Within):
            raise _UnansweredError
        part = byte_range if type(byte_range) is Within else None
        if (key, part) in self.known:
            found = self.known[key, part]
            return found[:byte_range[1]] if type(byte_range) is AtMost and found is not None else found
        # The read goes on as if there were no value, and asks for others. It takes missing parts of a shard for
        # damage, and the whole shard is not asked for because of that.
        if all([asked != key for asked, _ in self.asked]):
            self.asked[key, part] = None
        return None

    def get_parts_with_identity(self, key, parts):
        self.asked.update({(key, part): None for part in parts if (key, part) not in self.known})
        return [(self.known.get((key, part), b""), None) for part in parts]

    def getsize(self, key: str) -> int | None:
        raise _UnansweredError

    def list_dir(self, prefix: str) -> Listing:
        raise _UnansweredError


class _SmallBinding(ArrayBinding):
    """An array for one small read, without a look at its document."""

    __slots__ = ()

    def __init__(self, answers, binding, view):
        super().__init__(answers, binding.path, binding.format, binding.options, view)
        self._opened = view, binding.opened(view)

    def read(self, box, out, field=None, *, holds_zeros=False):
        self.read_once(self.view, box, out, field, lambda plan: True, holds_zeros=holds_zeros)

    def _run(self, view, plan, n_threads, work):
        if plan.n_left * plan.task_nbytes > MAX_NBYTES:
            raise _UnansweredError
        super()._run(view, plan, 1, work)
