"""A source of copies that is no store, such as an HDF5 or an ``.npz`` file, seen as a store of Zarr that is read.

Documents are those that a copy to a `MemoryStore` would make. A chunk is read and encoded when it is asked for, and
sizes are those of the file, as far as it has chunks. The command's verbs look at files so; who reads such a file often
copies it, or makes a reference set of it.
"""
from __future__ import annotations

import math
import os
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import noted
from zcore.model.chunk_grid import number_of
from zcore.stores.base import Listing, Store, sliced
from zcore.stores.keys import above, check_key, check_prefix, prefix_of
from zcore.stores.memory import MemoryStore
from zcore.tools.copy.copy import NodeCopier
from zcore.tools.copy.destinations import StoreSink, Work
from zcore.tools.copy.sources import SourceArray
from zcore.tools.copy.translate import CopyRequest, Losses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zcore.stores.base import ByteRange
    from zcore.tools.copy.sources import Source


class SourceStore(Store):
    """The nodes of a `Source`; it warns of those that no array can be.

    Parameters
    ----------
    source : Source
        It stays open as long as the store.
    file : str
    file_kind : str
        For people, such as "HDF5 file".
    path : str
        Of the source in the file, which is that of its node in the store.
    """

    def __init__(self, source: Source, file: str, file_kind: str, path: str) -> None:
        self.uri: str = os.path.abspath(file)
        self.file_kind = file_kind
        self.arrays: dict[str, SourceArray] = {}
        self._source = source
        self._documents = MemoryStore()
        self._targets = {}
        self._lock = Lock()
        self._sizes = {}
        losses = Losses(path)
        for what, name in source.left_out:
            losses.leave_out(what, name)
        # Without a compressor: a chunk is encoded only to be decoded.
        wanted = CopyRequest(None, None, None, (), None, None)
        sink = StoreSink(self._documents, path, 3, Work(), Losses(takes_constants=True), 1)
        copier = NodeCopier(sink, wanted, losses, path)
        with noted():     # names that would not be portable are only looked at
            for name, node in source.nodes:
                target = copier.make(name, node)
                if target is not None and isinstance(node, SourceArray):
                    self.arrays[target.binding.path], self._targets[target.binding.path] = node, target
        losses.warn(f"this view of {file}")

    @property
    def label(self) -> str:
        return os.path.basename(self.uri)

    def __del__(self) -> None:
        self._source.close()

    def __repr__(self) -> str:
        return f"<SourceStore of {self.uri}>"

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        value = self._documents.get(key)
        if value is None and (found := self._chunk_at(key)) is not None:
            value = self._encoded(key, *found)
        return None if value is None else sliced(value, byte_range)

    def _chunk_at(self, key):
        """Return the name of an array, and the coordinates of its chunk of a key; None if it is no key of a chunk."""
        name = next((path for path in above(key) if path in self.arrays), None)
        if name is None:
            return None
        metadata = self._targets[name].binding.metadata
        coords = metadata.chunk_keys.decode(key[len(prefix_of(name)):], metadata.ndim)
        return None if coords is None or number_of(coords, metadata.grid_shape) is None else (name, coords)

    def _encoded(self, key, name, coords):
        """Return the bytes of a chunk; None if all its elements are the fill value."""
        array, target = self.arrays[name], self._targets[name]
        if array.chunks_of_objects == target.binding.metadata.chunk_shape and array.lacks(coords):
            return None
        starts, lengths = self._box(name, coords)
        values = np.empty(lengths, target.dtype)
        with self._lock:
            array.read(starts, values)
            target.write(starts, values)
            value = self._documents.get(key)
            self._documents.erase(key)
        return value

    def list_dir(self, prefix: str) -> Listing:
        """Return the names of documents and of nodes: chunks are listed by `list_sizes` alone."""
        return self._documents.list_dir(prefix)

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        check_prefix(prefix)
        found = dict.fromkeys(self._documents.list_prefix(prefix), 0)     # the file has no such documents
        for name in self.arrays:
            if prefix.startswith(prefix_of(name)) or prefix_of(name).startswith(prefix):
                found.update((key, size) for key, size in self._sizes_of(name).items() if key.startswith(prefix))
        return iter(sorted(found.items()))

    def getsize(self, key: str) -> int | None:
        check_key(key)
        found = self._chunk_at(key)
        return self._documents.getsize(key) if found is None else self._sizes_of(found[0]).get(key)

    def _sizes_of(self, name):
        """Return the sizes in the file of those chunks of an array that exist, a dict by their keys."""
        if name not in self._sizes:
            array, metadata = self.arrays[name], self._targets[name].binding.metadata
            sizes = array.sizes() if array.chunks_of_objects in (metadata.chunk_shape, "auto") else None
            if sizes is None:
                sizes = {coords: math.prod(self._box(name, coords)[1]) * metadata.dtype.itemsize
                         for coords in np.ndindex(metadata.grid_shape)}
                if array.nbytes_stored is not None:
                    # Of one stream: chunks have shares of it, which add up.
                    ends = [end * array.nbytes_stored // max(1, metadata.nbytes) for end in accumulate(sizes.values())]
                    sizes = dict(zip(sizes, np.diff(ends, prepend=0).tolist(), strict=True))
            self._sizes[name] = {prefix_of(name) + metadata.chunk_keys.encode(coords): size
                                 for coords, size in sizes.items()}
        return self._sizes[name]

    def _box(self, name, coords):
        """Return where a chunk begins, and the lengths of its part of the array."""
        starts, lengths = self._targets[name].binding.metadata.place_of(coords)
        return tuple(starts), [min(n, length - start) for start, n, length in zip(
            starts, lengths, self.arrays[name].shape, strict=True)]
