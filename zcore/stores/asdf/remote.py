"""An ASDF file at a service: its beginning, its block index, and then only the bytes of arrays that are wanted.

A large array without compression is shown in chunks of about 1 MiB, each of which is one range of its block. All other
arrays are one chunk, as in a local file. Other files that the tree names are not read.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from zcore.asdf.file import AsdfFile
from zcore.asdf.tree.ndarray import NDArrayNode
from zcore.errors import StoreError, TruncatedError, UnsupportedError
from zcore.stores.asdf.store import AsdfStore, is_name_of_many, order_of
from zcore.stores.base import OBJECTS, FileParts, Objects, Strided, resolve_range
from zcore.stores.remote.file import RemoteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from zcore.stores.remote.store import RemoteStore

# Header, comments and most trees.
_START_NBYTES = 1 << 16
# An array is cut into chunks from this size on, and chunks have up to this size.
_LARGE_NBYTES = 1 << 22
_CHUNK_NBYTES = 1 << 20
# Of one array: those of larger arrays are larger.
_MAX_CHUNKS = 1 << 16
# That one request brings.
_PIECE_NBYTES = 1 << 24


class RemoteSource:
    """The bytes of an ASDF file at a service, as `zcore.asdf.source.FileSource` has those of a local one."""

    is_far = True
    is_writable = False

    def __init__(self, file: RemoteFile) -> None:
        self.path: str = file.url
        self.size: int = file.size
        self.read: Callable[[int, int], bytes] = file.read

    @property
    def fd(self) -> int:
        """There is no descriptor."""
        raise UnsupportedError(f"{self.path} is remote: it cannot be mapped", feature="maps of remote files")

    def refresh(self, least: int = 0) -> None:
        """Do nothing: only one version of the file is read."""

    def close(self) -> None:
        """Do nothing: there is one request after the other."""

    def skip_hole(self, offset: int) -> int:
        """Return the offset: services do not tell holes."""
        return offset

    def read_into(self, offset: int, view: memoryview) -> None:
        """Fill a flat view of bytes by those from `offset` on."""
        at = 0
        for piece in self.pieces(offset, len(view), _PIECE_NBYTES):
            view[at:at + len(piece)] = piece
            at += len(piece)

    def pieces(self, offset: int, n_bytes: int, piece_nbytes: int) -> Iterator[bytes]:
        """Iterate over the bytes from `offset` on, `piece_nbytes` at a time."""
        end = offset + n_bytes
        if end > self.size:
            raise TruncatedError(f"{self.path} ends at byte {self.size}", key=self.path, offset=offset, expected=end,
                                 found=self.size)
        while offset < end:
            piece = self.read(offset, min(piece_nbytes, end - offset))
            yield piece
            offset += len(piece)


class RemoteAsdfStore(AsdfStore):
    """The arrays of an ASDF file at a service, for reading. `zcore.open` makes it.

    Parameters
    ----------
    store : RemoteStore
        Its URL is that of the file.

    Raises
    ------
    FileNotFoundError
        There is no such object.
    AsdfFormatError, UnsupportedError, StoreError
        See `AsdfStore`.
    """

    def __init__(self, store: RemoteStore) -> None:
        self._remote = store
        self._object = RemoteFile(store, (0, _START_NBYTES))
        self.path: str = self._object.url
        self.n_requests: int = store.n_requests
        self.uri: str | None = self.path if store.uri else None
        self._take(AsdfFile(self.path, source=RemoteSource(self._object)))

    def __repr__(self) -> str:
        return f"RemoteAsdfStore({self.path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteAsdfStore, (self._remote,)

    def _identity(self, key, node, name):
        # That of the version of the file that was opened, and of the key.
        size = self.getsize(key)
        return None if size is None else self._object.identity(key, size)

    def locate(self, prefix: str) -> FileParts | Strided | Objects:
        node = self._node(prefix[:-1])
        if isinstance(node, NDArrayNode) and node.nbytes and (node.source is None or node.block.is_compressed):
            return super().locate(prefix)     # decoded as a whole
        return OBJECTS

    def extent(self, key: str) -> None:
        """Return None: a part of a chunk may be missing in the file."""
        self.getsize(key)

    # Large arrays in chunks

    def _chunk_shape(self, node):
        if node.nbytes < _LARGE_NBYTES or not _is_in_ranges(node):
            return node.shape
        is_c = order_of(node) == "C"
        shape = node.shape if is_c else node.shape[::-1]
        node.reach()     # what a damaged tree claims may be larger than any file
        room = max(1, max(_CHUNK_NBYTES, node.nbytes // _MAX_CHUNKS) // node.dtype.itemsize)
        chunks = []
        for n in reversed(shape):
            chunks.append(min(n, room))
            room = room // n if room >= n else 1
        return tuple(reversed(chunks)) if is_c else tuple(chunks)

    def _chunk_nbytes(self, node):
        return math.prod(self._chunk_shape(node)) * node.dtype.itemsize

    def _grid(self, node):
        return [-(-n // max(1, chunk)) for n, chunk in zip(node.shape, self._chunk_shape(node), strict=True)]

    def _chunk_names(self, node):
        grid = self._grid(node)
        names = [""]
        for n in grid:
            names = [f"{name}.{i}" if name else str(i) for name in names for i in range(n)]
        return names if grid else ["0"]

    def _is_chunk(self, node, name):
        return is_name_of_many(name) is not None and self._coords(node, name) is not None

    def _coords(self, node, name):
        """Return the coordinates in the name of a chunk, or None."""
        grid = self._grid(node)
        if not grid:
            return () if name == "0" else None
        coords = [int(part) for part in name.split(".")] if "/" not in name and len(name) < 1000 else []
        is_one = len(coords) == len(grid) and all([i < n for i, n in zip(coords, grid, strict=True)])
        return coords if is_one and ".".join(map(str, coords)) == name else None

    def _elements(self, node, name, byte_range):
        if not _is_in_ranges(node):
            return super()._elements(node, name, byte_range)
        chunk = self._chunk_shape(node)
        coords = self._coords(node, name)
        first = [i * n for i, n in zip(coords, chunk, strict=True)]
        counts = [min(n, length - at) for n, length, at in zip(chunk, node.shape, first, strict=True)]
        # Only the outermost dimension that is cut has a border: those outside of it have chunks of one element.
        n_stored = math.prod(counts) * node.dtype.itemsize
        start, stop = resolve_range(byte_range, self._chunk_nbytes(node))
        begin = node.reach()[0] + sum([at * stride for at, stride in zip(first, node.strides, strict=True)])
        end = min(stop, n_stored)
        data = bytes(node.block.read_range(begin + start, end - start)) if end > start else b""
        return data + bytes(stop - start - len(data))


def _is_in_ranges(node):
    """Return whether ranges of the file are the elements of an array."""
    if node.source is None or isinstance(node.source, str) or node.nbytes == 0 or order_of(node) is None:
        return False
    return not node.block.is_compressed


def opened(store: RemoteStore) -> RemoteAsdfStore | None:
    """Return the file at the URL of a `RemoteStore`, or None if there is no object."""
    try:
        return RemoteAsdfStore(store)
    except FileNotFoundError as exc:
        if isinstance(exc, StoreError):
            raise
        return None
