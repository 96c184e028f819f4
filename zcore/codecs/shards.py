"""What `sharding_indexed` makes of a shard, in Python: for any store, any inner chain, and shards in shards.

Zarr v3, codec "sharding_indexed", "Binary shard format": the encoded chunks in any order, and the index, (offset,
nbytes) of each chunk in C order, whose words are both 2**64 - 1 for a chunk of nothing but the fill value.

A shard is held whole, and only those of its chunks are decoded whose elements are asked for. A changed shard is what
the kernel would make of it: chunks that stay, as they follow each other in the old shard, then those that were encoded
anew, in C order.
"""
import math
from collections import namedtuple

import numpy as np

from zcore.codecs.lowering import in_array
from zcore.errors import ChunkError, CodecError, MetadataError, ShardIndexError, UnsupportedError
from zcore.kernel.copy import is_filled
from zcore.kernel.grid import project
from zcore.model.metadata import MAX_NDIM, has_varying_items, viewed

NO_CHUNK = 2**64 - 1  # both words of an empty chunk's entry
MAX_END = 2**63 - 1   # of a file
MAX_CHUNKS = 2**26    # of a shard; the index has 16 bytes for each
MIN_GAPS_NBYTES = 1 << 16
MAX_KEPT_SHAPES = 64  # of shards that differ from the largest


class Change(namedtuple("Change", ("selection", "assign", "is_whole", "first"), defaults=((),))):
    """Elements of a shard that are replaced.

    Attributes
    ----------
    selection : tuple of slice
        See `Shards.read`.
    assign : callable
        ``assign(place, places)`` brings values to `place`, an ndarray of some of these elements as they are or as they
        are in an empty chunk, and `places`, slices, tells which they are. Both have the dimensions of the array.
    is_whole : bool
        All of these elements are replaced, and wholly.
    first : tuple of int
        Where in the selection of the outermost shard this one's begins, where that is not all of it.
    """

    __slots__ = ()


class _Found(namedtuple("_Found", ("offset", "first", "shards", "raw", "n_bytes", "path", "inside", "axes"))):
    """A selected chunk.

    Attributes
    ----------
    offset : int
        Where it lies in the outermost shard; -1: it is empty.
    first : tuple of int
        Where its elements begin in the selection, in the array's dimensions.
    shards, raw, n_bytes
        What it is a chunk of, the bytes of that, and its own size.
    path : tuple of (coords, offset)
        The shards in shards that lead here: which chunk each is of the one before, and where it begins in that.
    inside : tuple of slice
        Its selected elements.
    axes : tuple of int
        Which dimensions of the array its own are.
    """

    __slots__ = ()


class _Section:
    """A shard within another one: its bytes are taken from there where they are looked at, and not before."""

    __slots__ = ("_raw", "_offset", "_n_bytes")

    def __init__(self, raw, offset, n_bytes):
        self._raw = raw
        self._offset = offset
        self._n_bytes = n_bytes

    def __len__(self):
        return self._n_bytes

    def __getitem__(self, part):
        return self._raw[self._offset + part.start:self._offset + part.stop]


class Shards:
    """The shards of one array.

    Parameters
    ----------
    codec : ShardingCodec
    make_chain : type
        `CodecChain`, of which this is a part.
    dtype : numpy.dtype
        Of the decoded chunks, stored byte order included.
    shard_shape : tuple of int
    fill : ndarray or None
        Of one element, what empty chunks are made of; zero when None.
    strict : bool
        Of the chains.

    Attributes
    ----------
    chain : CodecChain
        Of a chunk.
    max_encoded : int or None
        The most bytes of a shard that are read at once: other programs leave gaps where a chunk was replaced by
        another one, and as much room is given to these as to the chunks. In a shard of shards, the most that one of
        these may have. None where chunks have no bound.
    chunk_room : int or None
        What of that each chunk adds, beside its entry in the index.

    Raises
    ------
    MetadataError
        The shard is not cut into chunks of that shape exactly.
    """

    def __init__(self, codec, make_chain, dtype, shard_shape, fill=None, strict=True):
        self._made_of = codec, make_chain, dtype, fill, strict
        self._others = {}
        chunk_shape = codec.chunk_shape
        if len(chunk_shape) != len(shard_shape) or any(
                [length % chunk for length, chunk in zip(shard_shape, chunk_shape, strict=True)]):
            raise MetadataError(f"chunk_shape of sharding_indexed is {chunk_shape}, which does not divide the shard's "
                                f"shape {shard_shape}", member="chunk_shape")
        self.dtype = dtype
        self._is_varying = has_varying_items(dtype)
        self.raw_type = dtype if self._is_varying else np.dtype((np.void, dtype.itemsize))
        fill = np.zeros(1, dtype) if fill is None else np.ascontiguousarray(fill, dtype).reshape(1)
        self._fill = self._raw(fill)[0]
        self._fill_bytes = None if self._is_varying else fill.tobytes()
        self.shard_shape = shard_shape
        self.chunk_shape = chunk_shape
        self.grid_shape = tuple([length // chunk for length, chunk in zip(shard_shape, chunk_shape, strict=True)])
        self.n_chunks = math.prod(self.grid_shape)
        if self.n_chunks > MAX_CHUNKS:
            raise UnsupportedError(f"shards of {self.n_chunks} chunks, at most {MAX_CHUNKS} are supported",
                                   feature="shards of more than 2**26 chunks")
        self.chain = make_chain(codec.codecs, dtype, chunk_shape, strict, fill)
        # An array of 65 dimensions NumPy does not have.
        self._index_shape = (*self.grid_shape, 2) if len(self.grid_shape) < MAX_NDIM else (self.n_chunks, 2)
        self.index_chain = make_chain(codec.index_codecs, np.dtype(np.uint64), self._index_shape, strict)
        self.index_nbytes = self.index_chain.max_encoded
        self.at_start = codec.index_location == "start"
        self.max_encoded = self.chunk_room = None
        if self.chain.max_encoded is not None:
            self.chunk_room = 2 * self.chain.max_encoded
            self.max_encoded = self.n_chunks * self.chunk_room + self.index_nbytes + MIN_GAPS_NBYTES

    def of_shape(self, shard_shape):
        """Return the same of shards of another shape, where they differ.

        Raises : ValueError, if these are not cut into chunks exactly.
        """
        if shard_shape == self.shard_shape:
            return self
        other = self._others.get(shard_shape)
        if other is None:
            if len(self._others) >= MAX_KEPT_SHAPES:
                self._others = {}
            codec, make_chain, dtype, fill, strict = self._made_of
            other = self._others[shard_shape] = Shards(codec, make_chain, dtype, shard_shape, fill, strict)
        return other

    # whole shards: what a chain asks of the codec that makes bytes of elements

    def encoded_nbytes(self, dtype, shape):
        """Return the most bytes that a shard may have; None where that has no bound."""
        return self.of_shape(shape).max_encoded

    def decode(self, raw, dtype, shape):
        """Return all elements of a shard."""
        shards = self.of_shape(shape)
        out = np.empty(shape, self.raw_type)
        for _, places, elements in shards.read(raw, [shards._everything()]):
            out[places] = elements
        return viewed(out, dtype)

    def encode(self, shard):
        """Return the object of a shard; one of nothing but the fill value is an index alone."""
        if shard.shape != self.shard_shape:
            return self.of_shape(shard.shape).encode(shard)
        values = self._raw(shard)

        def assign(place, places):
            place[...] = values[places]

        encoded = self.change(None, [Change(self._everything(), assign, True)], self.shard_shape)
        if encoded is None:
            return self._encode_index(np.full((self.n_chunks, 2), NO_CHUNK, np.uint64))
        return encoded

    def _everything(self):
        return tuple([slice(0, length, 1) for length in self.shard_shape])

    # parts of shards

    def read(self, raw, selections, axes=None):
        """Yield the elements of selections, chunk by chunk.

        Parameters
        ----------
        raw : bytes-like
            Or anything else that has a length and slices that are bytes. Its method ``expect(parts)``, if there is one,
            is told which slices are going to be asked for, a list of (start, stop).
        selections : sequence of tuple of slice
            Start, stop and step of each dimension are numbers within the shard, steps are positive.
        axes : sequence of int, optional
            Which dimensions of the array those of the shard are.

        Yields
        ------
        (i, places, elements)
            The elements of the i-th selection, of `raw_type`, that lie in one chunk, and slices: their places among all
            of that selection. Both have the dimensions of the array. One element stands for all of an empty chunk.
        """
        axes = range(len(self.shard_shape)) if axes is None else axes
        found = []
        for i, selection in enumerate(selections):
            first = (0,) * len(selection)
            found += [(chunk, i) for chunk in self._find(raw, selection, axes, {}, first=first)]
        if hasattr(raw, "expect"):
            raw.expect([(chunk.offset, chunk.offset + chunk.n_bytes) for chunk, _ in found if chunk.n_bytes])
        # As in the kernel: all entries are checked, then chunks are decoded as they follow each other in the shard.
        for chunk, i in sorted(found, key=lambda item: (item[0].offset, item[1], item[0].first)):
            counts = [len(range(part.start, part.stop, part.step)) for part in chunk.inside]
            places = tuple([slice(n, n + count) for n, count in zip(chunk.first, in_array(counts, chunk.axes),
                                                                    strict=True)])
            elements = self._fill
            if chunk.offset >= 0:
                elements = chunk.shards._decode_part(chunk).transpose(np.argsort(chunk.axes))
            yield i, (*places, ...), elements

    def _find(self, raw, selection, axes, indices, base=0, first=(), path=()):
        """Yield the `_Found` chunks of a selection, those of shards in shards.

        Parameters
        ----------
        raw, selection, axes
            See `read`.
        indices : dict
            Those that were read before, by the place of their shard.
        base : int
            Where in the outermost shard this one begins.
        first : tuple of int
            Where in the selection of the outermost one this one's begins, in the array's dimensions.
        path : tuple of (coords, offset)
            The shards in shards that lead here: which chunk each is of the one before, and where it begins in that.
        """
        index = indices.get((base, len(raw)))
        if index is None:
            index = indices[base, len(raw)] = self._read_index(raw)
        chain = self.chain
        for coords, inside, outside in self._project(selection, axes):
            position = self._position(coords)
            here = _moved_on(first, axes, outside)
            if _is_empty(index, position):
                yield _Found(-1, here, self, raw, 0, path, inside, axes)
                continue
            offset, n_bytes = self._entry(raw, index, position)
            longer = (*path, (coords, offset))
            if not chain.is_partial or chain.compressors:
                yield _Found(base + offset, here, self, raw, n_bytes, longer, inside, axes)
                continue
            try:
                yield from chain.shards._find(_Section(raw, offset, n_bytes), chain.transposed(inside),
                                              chain.transposed(axes), indices, base + offset, here, longer)
            except (ChunkError, UnsupportedError) as error:
                raise _in_chunks(error, longer[-1:]) from error

    def change(self, raw, changes, kept, keep_filled=False, axes=None):
        """Return the object of a shard after changes, or None when nothing of it is left.

        Parameters
        ----------
        raw : bytes-like or None
            The old shard; see `read`.
        changes : sequence of Change, or None
        kept : tuple of int
            What of the old shard is kept, per dimension from its origin on; beyond that is the fill value.
        keep_filled : bool
            Store chunks that hold nothing but the fill value.
        axes : sequence of int, optional
            Which dimensions of the array those of the shard are.

        Returns
        -------
        bytes or None
        """
        old = np.full((self.n_chunks, 2), NO_CHUNK, np.uint64) if raw is None else self._read_index(raw)
        new = np.full((self.n_chunks, 2), NO_CHUNK, np.uint64)
        parts = []
        end = self.index_nbytes if self.at_start else 0
        touched = {}
        axes = range(len(kept)) if axes is None else axes
        for change in changes or ():
            for coords, inside, outside in self._project(change.selection, axes):
                first = _moved_on(change.first or (0,) * len(axes), axes, outside)
                touched.setdefault(self._position(coords), []).append(change._replace(selection=inside, first=first))
        carried = []
        for position in np.flatnonzero((old != NO_CHUNK).any(axis=1)).tolist():
            if position in touched:
                continue
            origin = [i * length for i, length in zip(self._coords(position), self.chunk_shape, strict=True)]
            if any([i >= n for i, n in zip(origin, kept, strict=True)]):
                continue
            if changes is None and any([i + length > n for i, length, n in zip(origin, self.chunk_shape, kept,
                                                                               strict=True)]):
                touched[position] = None
            else:
                carried.append((*self._entry(raw, old, position), position))
        end = self._carry_over(raw, carried, new, parts, end)
        for position, here in touched.items():
            encoded = self._encode_chunk(raw, old, position, here, kept, keep_filled, axes)
            if encoded is not None:
                new[position] = end, len(encoded)
                parts.append(encoded)
                end += len(encoded)
        if not parts and not keep_filled:
            return None
        index = self._encode_index(new)
        return b"".join([index, *parts] if self.at_start else [*parts, index])

    def _carry_over(self, raw, carried, new, parts, end):
        """Copy chunks as they are stored; chunks that touch or share bytes go together."""
        carried.sort()
        i = 0
        while i < len(carried):
            low, n_bytes, _ = carried[i]
            high = low + n_bytes
            moved = end - low
            while i < len(carried) and carried[i][0] <= high:
                offset, n_bytes, position = carried[i]
                high = max(high, offset + n_bytes)
                new[position] = offset + moved, n_bytes
                i += 1
            parts.append(bytes(raw[low:high]))
            end += high - low
        return end

    def _encode_chunk(self, raw, old, position, changes, kept, keep_filled, axes):
        """Return a chunk that is changed, encoded; None when it is empty."""
        coords = self._coords(position)
        stays = tuple([min(length, max(0, n - i * length)) for i, length, n
                       in zip(coords, self.chunk_shape, kept, strict=True)])
        is_covered = any([change.is_whole and _covers(change.selection, stays) for change in changes or ()])
        is_there = raw is not None and not _is_empty(old, position) and not is_covered
        offset, n_bytes = self._entry(raw, old, position) if is_there else (0, 0)
        if self.chain.is_partial:
            try:
                encoded = self.chain.change_parts(raw[offset:offset + n_bytes] if is_there else None, changes, stays,
                                                 self.chunk_shape, keep_filled, axes)
            except (ChunkError, UnsupportedError) as error:
                raise _in_chunks(error, ((coords, offset),)) from error
            return None if encoded is None else bytes(encoded)
        chunk = np.empty(self.chunk_shape, self.raw_type)
        chunk[...] = self._fill
        if is_there:
            part = tuple([slice(0, n, 1) for n in stays])
            chunk[part] = self._decode_part(_Found(offset, (), self, raw, n_bytes, ((coords, offset),), part, axes))
        for change in changes or ():
            place = chunk[(*change.selection, ...)].transpose(np.argsort(axes))
            change.assign(place, tuple([slice(n, n + count) for n, count in zip(change.first, place.shape,
                                                                                strict=True)]))
        if not keep_filled and self._is_filled(chunk):
            return None
        try:
            return bytes(self.chain.encode(viewed(chunk, self.dtype)))
        except ChunkError as error:
            raise _in_chunks(error, ((coords, 0),)) from error

    def _read_index(self, raw):
        """Return the entries of the index, an array of (offset, nbytes)."""
        n_bytes = self.index_nbytes
        if len(raw) < n_bytes:
            raise ShardIndexError(f"shard index: shard has {len(raw)} bytes, its index alone needs {n_bytes}",
                                  direction="decode", offset=0, expected=n_bytes, found=len(raw))
        offset = 0 if self.at_start else len(raw) - n_bytes
        try:
            return self.index_chain.decode(raw[offset:offset + n_bytes]).reshape(-1, 2)
        except ChunkError as error:
            raise _moved(error, "shard index", offset, codec=None) from error

    def _encode_index(self, entries):
        return bytes(self.index_chain.encode(entries.reshape(self._index_shape)))

    def _entry(self, raw, index, position):
        """Return (offset, nbytes) of a chunk that is there, checked against the size of the shard."""
        offset, n_bytes = index[position].tolist()
        low, high = (self.index_nbytes, len(raw)) if self.at_start else (0, len(raw) - self.index_nbytes)
        if NO_CHUNK in (offset, n_bytes):
            other = min(offset if n_bytes == NO_CHUNK else n_bytes, MAX_END)
            message, expected, found = (
                f"one half of the index entry marks an empty chunk, the other half is {other}", -1, other)
        elif offset + n_bytes > high:
            found = min(offset + n_bytes, MAX_END)
            message, expected = f"index entry ends at byte {found}, expected at most {high}", high
        elif n_bytes and offset < low:
            message, expected, found = (
                f"index entry starts at byte {offset}, inside the index, which ends at byte {low}", low, offset)
        else:
            limit = self.chain.max_encoded
            if limit is not None and n_bytes > limit:
                raise self._error(CodecError, position, offset,
                                  f"stored object has {n_bytes} bytes, its chunk encodes to at most {limit}", limit,
                                  n_bytes)
            return offset, n_bytes
        raise self._error(ShardIndexError, position, (0 if self.at_start else high) + 16 * position, message, expected,
                          found)

    def _error(self, cls, position, offset, message, expected, found):
        coords = self._coords(position)
        return cls(f"inner chunk {coords}: {message}", direction="decode", offset=offset, inner_coords=coords,
                   expected=expected, found=found)

    def _decode_part(self, found):
        """Return the selected elements of a chunk, of `raw_type` and with the shard's dimensions."""
        _, offset = found.path[-1]
        try:
            part = found.raw[offset:offset + found.n_bytes]
            if self.chain.is_partial:
                return self.chain.read_part(part, found.inside, self.chunk_shape, found.axes)
            return self._raw(self.chain.decode(part))[(*found.inside, ...)]
        except (ChunkError, UnsupportedError) as error:
            raise _in_chunks(error, found.path) from error

    # elements

    def _raw(self, array):
        """Return a view of an array as its elements are moved: as bytes, where they have any."""
        return viewed(array, self.raw_type)

    def _is_filled(self, chunk):
        """Whether all elements of a chunk are the fill value, byte for byte."""
        if not self._is_varying:
            return is_filled(chunk.reshape(-1).view(np.uint8), self._fill_bytes)
        # Other values may be equal and not the same: numbers, arrays, containers of these.
        return (self._fill is None or isinstance(self._fill, (str, bytes))) and all(
            type(item) is type(self._fill) and item == self._fill for item in chunk.reshape(-1).tolist())

    # geometry

    def _project(self, selection, axes):
        """Yield what `project` does, in the order of the array's dimensions; see `read`."""
        dims = sorted(range(len(selection)), key=axes.__getitem__)
        back = np.argsort(dims).tolist()
        parts = [selection[d] for d in dims]
        counts = [len(range(part.start, part.stop, part.step)) for part in parts]
        for found in project([self.shard_shape[d] for d in dims], [self.chunk_shape[d] for d in dims],
                             [part.start for part in parts], [part.step for part in parts], counts):
            yield [tuple([each[i] for i in back]) for each in found]

    def _position(self, coords):
        position = 0
        for i, n in zip(coords, self.grid_shape, strict=True):
            position = position * n + i
        return position

    def _coords(self, position):
        coords = []
        for n in reversed(self.grid_shape):
            position, i = divmod(position, n)
            coords.append(i)
        return tuple(reversed(coords))


def _moved_on(first, axes, places):
    """Return where places begin, slices with the dimensions `axes` of the array, among those that begin at `first`."""
    moved = list(first)
    for d, part in zip(axes, places, strict=True):
        moved[d] += part.start
    return tuple(moved)


def _covers(selection, shape):
    """Whether a selection takes all of the first elements, `shape` of them per dimension."""
    return 0 in shape or all([part.start == 0 and part.stop >= n and (part.step == 1 or n == 1) for part, n
                              in zip(selection, shape, strict=True)])


def _is_empty(index, position):
    return (index[position] == NO_CHUNK).all()


def _in_chunks(error, path):
    """Return an error of a chunk as one of the outermost shard, from which `path` leads to it: (coords, offset)."""
    for coords, offset in reversed(path):
        what = f"inner chunk {coords}"
        if isinstance(error, ChunkError):
            # Of a shard in a shard the outer one counts: its chunks are those of the array's grid.
            error = _moved(error, what, offset, inner_coords=coords)
        else:
            error = type(error)(f"{what}: {error.message}",
                                **{name: getattr(error, name) for name in error.fields})
    return error


def _moved(error, what, offset, **changed):
    """Return an error of a part of a shard as one of the shard; what does not encode lies nowhere in it."""
    fields = {name: getattr(error, name) for name in error.fields}
    if fields["offset"] is not None and fields["direction"] != "encode":
        fields["offset"] += offset
    return type(error)(f"{what}: {error.message}", **fields | changed)
