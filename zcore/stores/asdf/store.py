"""An ASDF file as a store: a virtual hierarchy of Zarr v2.

Documents are made from the tree when they are read. An array is one chunk, and its value is the elements. If they are
not compressed, the compiled code reads the selected elements from the file, by the offset and the strides of the array.

Of a file at a service the beginning and the block index are read, and then only the bytes that are wanted. So a large
array without compression is shown in chunks of about 1 MiB, each of which is one range of its block. Other files that
such a tree names are not read.
"""
from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.checksums import check
from zcore.asdf.file import AsdfFile
from zcore.asdf.source import FileSource
from zcore.asdf.tree.ndarray import MAX_NBYTES, NDArrayNode
from zcore.buffers import MAX_NDIM, strides_of
from zcore.errors import AsdfFormatError, ZcoreError
from zcore.kernel.refs.table import ReferenceTable
from zcore.model.chunk_grid import coords_at, number_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.dtypes import to_descr
from zcore.stores.asdf.nodes import ChunkedNode, TreeGroup, attributes_of, plain_of, root_of
from zcore.stores.base import (
    OBJECTS,
    ByteRange,
    FileParts,
    Identity,
    Listing,
    Objects,
    Strided,
    resolve_range,
    right_below,
    sliced,
)
from zcore.stores.keys import check_key, check_prefix, prefix_of
from zcore.stores.one_file import HERE, IN_PYTHON, FileStore
from zcore.text.arguments import as_bool

if TYPE_CHECKING:
    from typing import Literal

    from zcore.ranges import ByteSource
    from zcore.stores.base import Blocks
    from zcore.stores.remote.store import RemoteStore
    from zcore.typing import StrPath

# Header, comments and most trees.
_START_NBYTES = 1 << 16
# At a service: an array is cut into chunks from this size on, and chunks have up to this size.
_LARGE_NBYTES = 1 << 22
_CHUNK_NBYTES = 1 << 20
# Of one array: those of larger arrays are larger.
_MAX_CHUNKS = 1 << 16
_GROUP = b'{"zarr_format": 2}'
_KEYS = ChunkKeyEncoding.v2()

_is_name: Callable[[str], re.Match[str] | None] = re.compile(r"[0-9]+(?:[./][0-9]+)*").fullmatch


class AsdfStore(FileStore):
    """The arrays of an ASDF file, for reading.

    Parameters
    ----------
    path : str, os.PathLike, RemoteStore or ByteSource
        A `RemoteStore` has the URL of the file.
    allowed : sequence of str, optional
        See `zcore.asdf.open`.
    verify : bool
        Compare the checksum of a compressed block whenever it is decoded. Other blocks are read in parts;
        `zcore.asdf.AsdfFile.verify` compares theirs.

    Attributes
    ----------
    file : AsdfFile
        The file, with its tree and its blocks.

    Raises
    ------
    AsdfFormatError, UnsupportedError
        The file, or its tree, breaks a rule, or needs a feature that zcore lacks.
    StoreError
        It cannot be read.

    Notes
    -----
    The store reads the file that it opened, even if another file gets its name.

    Examples
    --------
    >>> import os, tempfile, numpy, zcore
    >>> path = os.path.join(tempfile.mkdtemp(), "x.asdf")
    >>> zcore.asdf.write(path, {"image": numpy.ones((4, 4)), "of": {"name": "M 31"}})
    >>> store = AsdfStore(path)
    >>> store.list_dir("")[:2], store.get("image/0.0", (0, 8)), json.loads(store.get(".zattrs"))["of"]
    ((['.zattrs', '.zgroup'], ['image/']), b'\\x00\\x00\\x00\\x00\\x00\\x00\\xf0?', {'name': 'M 31'})
    """

    def __init__(self, path: StrPath | RemoteStore | ByteSource, *, allowed: Sequence[StrPath] | None = None,
                 verify: bool = True) -> None:
        self._options = {"allowed": allowed, "verify": as_bool(verify, "verify")}
        source = self._open(path, (0, _START_NBYTES), FileSource)
        self.file: AsdfFile = AsdfFile(self.path, source=source, **self._options)
        try:
            self._root = root_of(self.file.tree)
        except BaseException:
            self.file.close()
            raise
        self._maps = {}
        self._tables = {}

    # Reading

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        """See `Store.get`.

        Raises
        ------
        AsdfFormatError
            The tree describes an array wrongly.
        ChecksumError
            The block has another checksum.
        """
        node, name = self._find(check_key(key))
        if name not in _documents_of(node):
            return self._chunk(node, name, byte_range) if self._has_chunk(node, name) else None
        return sliced(self._document(node, name), byte_range)

    def identity(self, key: str) -> Identity | None:
        """Return the identity of the file that was opened, with the size of the value of `key`; documents have size 0.

        A hash of the device and the key distinguishes values of one size. None for elements in another file.
        """
        node, name = self._find(check_key(key))
        size = 0
        if name not in _documents_of(node):
            size = self.getsize(key)
            if size is None or isinstance(node, NDArrayNode) and isinstance(node.source, str):
                return None
        return self._source.identity(key, size)

    def get_first(self, prefix: str, names: Sequence[str], limit: int) -> tuple[int, bytes, Identity | None] | None:
        # Without reading it: the content of a document may be wrong.
        for i in self._standing(prefix, names):
            return (i, *self.get_with_identity(prefix + names[i], (0, limit))) if limit else (i, b"", None)
        return None

    def existing(self, prefix: str, names: Sequence[str]) -> list[str]:
        return [names[i] for i in self._standing(prefix, names)]

    def _standing(self, prefix, names):
        """Iterate over the numbers of the names for which ``prefix + name`` is a key."""
        parent, start = self._find(prefix)
        documents = _documents_of(parent)
        for i, name in enumerate(names):
            node, rest = self._find(prefix + check_key(name)) if "/" in name else (parent, start + check_key(name))
            if rest in (documents if node is parent else _documents_of(node)) or self._has_chunk(node, rest):
                yield i

    def getsize(self, key: str) -> int | None:
        node, name = self._find(check_key(key))
        if name in _documents_of(node):
            return len(self._document(node, name))
        if not self._has_chunk(node, name):
            return None
        return self._block_of(node, name).data_size if isinstance(node, ChunkedNode) else self._chunk_nbytes(node)

    def list_dir(self, prefix: str) -> Listing:
        # Behind the path of an array, `start` begins the names of its chunks.
        node, start = self._find(check_prefix(prefix))
        if node is None or isinstance(node, TreeGroup) and start:
            return Listing([], [])
        if isinstance(node, TreeGroup):
            names = [*_documents_of(node), *[f"{name}/" for name in node.members]]
        else:
            chunks = (map(_KEYS.encode, itertools.product(*map(range, self._grid(node))))
                      if isinstance(node, NDArrayNode) else self._map_of(node)[0])
            names = [name[len(start):] for name in (*_documents_of(node), *chunks) if name.startswith(start)]
        return right_below(prefix, [prefix + name for name in names])

    # Where the bytes are

    def locate(self, prefix: str) -> FileParts | Strided | Objects:
        node, is_far = self._node(prefix[:-1]), self._source.is_far
        if isinstance(node, ChunkedNode):
            return OBJECTS if is_far else FileParts(self._table_of(node, prefix), self._open_target)
        if not isinstance(node, NDArrayNode) or node.nbytes == 0:
            return OBJECTS
        if node.source is None:
            return Strided(lambda: _bytes_of(node.elements()), 0, strides_of(node.shape, node.dtype.itemsize), True)
        if is_far and not node.block.is_compressed:
            return OBJECTS
        node.reach()
        block = node.block
        if block.is_compressed:
            return Strided(block.read, node.offset, node.strides, True)
        return Strided(block.descriptor, block.data_offset + node.offset, node.strides)

    def _table_of(self, node, prefix):
        """Return the table of an array with chunks in blocks. Python reads the compressed ones."""
        table = self._tables.get(prefix)
        if table is None:
            table = ReferenceTable()
            for name in self._map_of(node)[0]:
                block = self._block_of(node, name)
                if block.is_compressed:
                    table.put(f"{prefix}{name}".encode(), IN_PYTHON, 0, None)
                else:
                    table.put(f"{prefix}{name}".encode(), HERE, block.data_offset, block.used)
            self._tables[prefix] = table
        return table

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        node, name = self._find(check_key(key))
        # At a service, a part of a chunk may be missing in the file.
        if not self._has_chunk(node, name) or self._source.is_far:
            return None
        if isinstance(node, ChunkedNode):
            return self._block_of(node, name).extent()
        if node.source is None or node.nbytes == 0 or order_of(node) is None or node.block.is_compressed:
            return None
        start, stop = node.reach()
        path, offset, _ = node.block.extent()
        return path, offset + start, stop - start

    def blocks(self, path: str) -> Blocks:
        blocks = self.file.blocks
        n_blocks, block_of = len(blocks.found.offsets), self.file.origin.block_of
        # The first array of each block. A block of another file is the URI.
        users = {} if path else dict.fromkeys(range(n_blocks), "")
        for name, node in self._nodes():
            if not path or f"{name}/".startswith(f"{path}/"):
                for source in self._sources(node):
                    users[source] = users.get(source) or name
        for source, user in users.items():
            # A missing block is a mistake in the arrays that name it.
            if isinstance(source, str) or source < n_blocks:
                try:
                    n_bytes = block_of(source).data_size
                except ZcoreError:
                    n_bytes = 0
                label = source if isinstance(source, str) else f"block {source}"
                yield label, user, n_bytes, lambda source=source: check(block_of(source))
        if not path and blocks.fault is not None:
            yield f"block {n_blocks}", "", 0, lambda: len(blocks)     # which raises it

    def _sources(self, node):
        """Return the numbers of the blocks of an array, or the URI of its file; nothing for an invalid array."""
        try:
            number_of = self.file.origin.number_of
            if isinstance(node, ChunkedNode):
                return [number_of(node.map), *[number for number in self._map_of(node)[1].tolist() if number >= 0]]
            source = node.source
            return () if source is None else (source if isinstance(source, str) else number_of(source),)
        except ZcoreError:
            return ()

    def is_in_blocks(self, path: str) -> bool:
        node = self._node(path)
        if isinstance(node, ChunkedNode):
            self._map_of(node)
        elif isinstance(node, NDArrayNode):
            if node.source is None:
                node.elements()
            else:
                node.reach()
        return isinstance(node, NDArrayNode)

    # Nodes

    def _node(self, path):
        node, rest = self._find(prefix_of(path))
        return None if rest else node

    def _find(self, key):
        """Return the node of a key, or None, and the rest of the key behind the node's path."""
        node, rest = self._root, key
        while isinstance(node, TreeGroup) and "/" in rest:
            name, _, rest = rest.partition("/")
            if name not in node.members:
                return None, rest
            node = node.members[name]
        return node, rest

    def _nodes(self):
        """Iterate over (path, node) of all arrays."""
        pending = [("", self._root)]
        while pending:
            path, node = pending.pop()
            if not isinstance(node, TreeGroup):
                yield path, node
                continue
            pending += [(f"{path}/{name}".lstrip("/"), node.members[name]) for name in reversed(node.members)]

    # Of an array that is no `ChunkedNode`

    def _chunk_shape(self, node):
        """Return the shape of its chunks: all of it, or at a service what one range should bring."""
        if not self._source.is_far or node.nbytes < _LARGE_NBYTES or not self._is_in_ranges(node):
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

    def _is_in_ranges(self, node):
        """Return whether ranges of the file are its elements."""
        if node.source is None or node.nbytes == 0 or order_of(node) is None:
            return False
        return not (isinstance(node.source, str) and self._source.is_far) and not node.block.is_compressed

    def _chunk_nbytes(self, node):
        return math.prod(self._chunk_shape(node)) * node.dtype.itemsize

    def _grid(self, node):
        return [-(-n // max(1, chunk)) for n, chunk in zip(node.shape, self._chunk_shape(node), strict=True)]

    def _coords(self, node, name):
        """Return the coordinates in the name of a chunk, or None."""
        # In this sequence: a mistake in an array does not matter for other keys.
        if _is_name(name) is None:
            return None
        grid = self._grid(node)
        coords = _KEYS.decode(name, len(grid))
        return None if coords is None or number_of(coords, grid) is None else coords

    def _document(self, node, name):
        if name == ".zgroup":
            return _GROUP
        if name == ".zattrs":
            return json.dumps(attributes_of(node)).encode()
        if isinstance(node, ChunkedNode):
            return json.dumps(plain_of(node.document)).encode()
        return json.dumps({
            "zarr_format": 2, "shape": node.shape, "chunks": [max(1, n) for n in self._chunk_shape(node)],
            "dtype": to_descr(node.dtype), "compressor": None, "fill_value": None, "order": order_of(node) or "C",
            "filters": None}).encode()

    def _has_chunk(self, node, name):
        if isinstance(node, ChunkedNode):
            # In this sequence: the map may be damaged, and missing documents are looked up, too.
            return _is_name(name) is not None and name in self._map_of(node)[0]
        return isinstance(node, NDArrayNode) and self._coords(node, name) is not None

    def _chunk(self, node, name, byte_range):
        if isinstance(node, ChunkedNode):
            block = self._block_of(node, name)
            start, stop = resolve_range(byte_range, block.data_size)
            return bytes(block.read_range(start, stop - start))
        chunk, itemsize = self._chunk_shape(node), node.dtype.itemsize
        start, stop = resolve_range(byte_range, self._chunk_nbytes(node))
        if not self._is_in_ranges(node) or not self._source.is_far and stop - start == node.nbytes:
            return node.elements().tobytes(order_of(node) or "C")[start:stop]
        first = [i * n for i, n in zip(self._coords(node, name), chunk, strict=True)]
        counts = [min(n, length - at) for n, length, at in zip(chunk, node.shape, first, strict=True)]
        # Only the outermost dimension that is cut has a border: those outside of it have chunks of one element.
        begin = node.reach()[0] + sum([at * stride for at, stride in zip(first, node.strides, strict=True)])
        end = min(stop, math.prod(counts) * itemsize)
        data = bytes(node.block.read_range(begin + start, end - start)) if end > start else b""
        return data + bytes(stop - start - len(data))

    # Arrays in chunks

    def _map_of(self, node):
        """Return (dict of chunk names to positions, block numbers in C order) of a chunked node."""
        found = self._maps.get(id(node))
        if found is None:
            found = self._maps[id(node)] = _read_map(node, self.file)
        return found

    def _block_of(self, node, name):
        names, numbers = self._map_of(node)
        return self.file.blocks[int(numbers[names[name]])]


def _bytes_of(elements):
    return np.ascontiguousarray(elements).reshape(-1).view(np.uint8)


def _documents_of(node):
    if node is None:
        return ()
    return (".zattrs", ".zgroup") if isinstance(node, TreeGroup) else (".zarray", ".zattrs")


def order_of(node: NDArrayNode) -> Literal["C", "F"] | None:
    """Return the memory order, C or F, if the elements are contiguous, else None."""
    if node.source is None or node.strides == strides_of(node.shape, node.dtype.itemsize):
        return "C"
    return "F" if node.strides == strides_of(node.shape, node.dtype.itemsize, "F") else None


def _read_map(node, file):
    """Return the positions of the stored chunks by their names, and the block numbers of all chunks.

    The map of the asdf-zarr package has an int32 for each chunk in C order: the number of its block, or -1 for an
    absent chunk.

    Raises : AsdfFormatError, if the document is invalid, or the map has not one number for each chunk, or names a
    missing block.
    """
    document = node.document
    shape = document.get("shape") if isinstance(document, dict) else None
    chunks = document.get("chunks") if isinstance(document, dict) else None
    if not (isinstance(shape, list) and isinstance(chunks, list) and len(shape) == len(chunks)
            and len(shape) <= MAX_NDIM and all(type(n) is int and 0 <= n <= MAX_NBYTES for n in shape)
            and all(type(n) is int and 0 < n <= MAX_NBYTES for n in chunks)):
        raise AsdfFormatError("expected shape and chunks in .zarray", member=".zarray")
    grid = [-(-n // chunk) for n, chunk in zip(shape, chunks, strict=True)]
    block = file.origin.block_of(node.map) if type(node.map) is int else None
    if block is None or block.data_size != 4 * math.prod(grid):
        raise AsdfFormatError(f"chunk_block_map: expected the number of a block with {math.prod(grid)} int32",
                              member="chunk_block_map")
    numbers = np.frombuffer(block.read(), "<i4")
    if numbers.size and (numbers.min() < -1 or numbers.max() >= len(file.blocks)):
        raise AsdfFormatError("chunk_block_map: a missing block", member="chunk_block_map")
    keys = ChunkKeyEncoding.v2("/") if document.get("dimension_separator") == "/" else _KEYS
    return {keys.encode(coords_at(i, grid)): i for i in np.flatnonzero(numbers >= 0).tolist()}, numbers
