"""One task of a plan in Python: what the kernel does with an object in a file, for any store and any codec.

Elements are moved as runs of bytes, like in the kernel: NumPy's assignment of structures would leave out the bytes
that belong to no field. Items of varying length (text, objects) have no bytes and are assigned.
"""
import contextlib
import math
from bisect import bisect_right

import numpy as np

from zcore.errors import ChunkError, ChunkMemoryError, CodecError, LockError, StoreError, UnsupportedError
from zcore.fields import part_bytes
from zcore.kernel.copy import is_filled
from zcore.model.metadata import has_varying_items, viewed
from zcore.stores.ranges import merged
from zcore.views import form_of, is_trusted

_UNCHANGED = object()  # what an object is that a change leaves as it was
MAX_REPLACED = 8       # times that parts of a shard turn out to be those of several before it is read otherwise
MAX_SWAPS = 64         # times that an object is read to be changed before others have replaced it
MAX_PAUSE = 0.25       # seconds between two of them


def read_object(binding, view, plan, task, out, part=None, source=None):
    """Bring the elements of a task's object to their places in `out`; those of an absent object are the fill value.

    Of a `part` only these bytes of the elements, which `out` consists of. Of a `source` other than the binding's store,
    objects are taken as they are from there.
    """
    source = source or binding.store
    key, coords, inside, outside, _ = plan.task(task)
    origin, shape = plan.place(task)
    if view.chain.is_partial:
        elements = _read_shard(binding, source, view, key, coords, shape, inside)
    else:
        chunk = _load_kept(binding, source, view, plan, key, coords, origin, shape)
        elements = None if chunk is None else chunk[_as_array(inside)]
    if elements is None:
        elements = fill_of(view.metadata)
    places = _raw(out, view.metadata, part)
    places[_as_array(outside)] = _part(elements, view.metadata, part)


def write_object(binding, view, plan, task, values, old_shape, part=None):
    """Replace, change or erase the object of a task; see `WritePlan` for what `values` and `old_shape` are.

    Of a `part` only these bytes of the elements are changed. The caller holds the object.
    """
    key, coords, inside, outside, covered = plan.task(task)
    elements = None if values is None else _raw(values, view.metadata, part)[_as_array(outside)]
    origin, shape = plan.place(task)
    kept = tuple([min(length, max(0, n - first)) for first, length, n in zip(origin, shape, old_shape, strict=True)])
    is_merge = values is None or not covered or part is not None
    change = _changed_shard if view.chain.is_partial else _changed_chunk
    store = binding.store
    if is_merge and store.swaps and binding.options.lock:
        def changed(seen):
            # Never erased: what another one writes meanwhile would go as well.
            return change(binding, seen, view, key, coords, (origin, shape), inside, elements, kept, True, part, True)

        swap(store, binding.prefix + key, changed)
        return
    encoded = change(binding, store, view, key, coords, (origin, shape), inside, elements, kept, is_merge, part,
                     plan.keep_filled)
    if encoded is None:
        store.erase(binding.prefix + key)
    elif encoded is not _UNCHANGED:
        store.set(binding.prefix + key, encoded)


class _Seen:
    """A store as somebody has seen it who changes what he saw."""

    def __init__(self, store):
        self._store = store
        self.identity = None
        self.exists = False

    def get_with_identity(self, key, byte_range=None):
        found = self._store.get_with_identity(key, byte_range)
        self.exists = found is not None
        self.identity = found[1] if self.exists else None
        return found

    def get(self, key, byte_range=None):
        found = self.get_with_identity(key, byte_range)
        return None if found is None else found[0]

    def getsize(self, key):
        return self._store.getsize(key)


def swap(store, key, changed):
    """Replace a value by ``changed(seen)``, made of what there is, until nobody has replaced it in between.

    `seen` has the `get` of a store, by which the value is read.

    Raises
    ------
    LockError
        Others were faster `MAX_SWAPS` times, or the service has no means to compare.
    """
    for i in range(MAX_SWAPS):
        seen = _Seen(store)
        value = changed(seen)
        if value is _UNCHANGED:
            return
        if seen.exists and seen.identity is None:
            raise LockError(f"{key} has no tag (ETag) by which a change in between would be seen; lock=None writes "
                            "nonetheless", key=key)
        if store.set_if_same(key, value, seen.identity) is not None:
            return
        import random
        import time

        # Each at another time than those that were as late.
        time.sleep(random.random() * min(MAX_PAUSE, 0.002 * 2**i))
    raise LockError(f"{key}: others have replaced it each of {MAX_SWAPS} times that it was read to be changed", key=key)


def _changed_chunk(binding, source, view, key, coords, place, inside, values, kept, is_merge, part, keeps_filled):
    """Return the object of a chunk after a change: None for one that is erased, `_UNCHANGED` for none at all."""
    metadata = view.metadata
    old = _load(binding, source, view, key, coords, *place) if is_merge else None
    if old is None and values is None:
        return _UNCHANGED
    with _located(key, coords, "encode"):
        chunk = _filled_chunk(metadata, place[1])
        if old is not None:
            stays = tuple([slice(n) for n in kept])
            chunk[stays] = old[stays]
        if values is not None:
            _part(chunk, metadata, part)[_as_array(inside)] = values
        if not keeps_filled and _is_filled(chunk, metadata):
            return None
        return view.chain.encode(viewed(chunk, metadata.dtype))


def _changed_shard(binding, source, view, key, coords, place, inside, values, kept, is_merge, part, keeps_filled):
    """The same of a shard, of which only those chunks are decoded that change in part."""
    from zcore.codecs.shards import Change

    metadata, shape = view.metadata, place[1]

    def assign(place, places):
        _part(place, metadata, part)[...] = values[places]

    def change(old):
        if old is None and values is None:
            return _UNCHANGED
        changes = None
        if values is not None and _has_lists(inside):
            changes = [Change(box, _assign_at(points, values[places], metadata, part), is_whole and part is None)
                       for box, points, places, is_whole in _pieces(inside, view)]
        elif values is not None:
            changes = [Change(inside, assign, part is None)]
        with _located(key, coords, "encode" if old is None else "decode"):
            return view.chain.change_parts(old, changes, kept, shape, keeps_filled)

    return _with_shard(binding, source, view.chain, shape, key, coords, change) if is_merge else change(None)


def _assign_at(points, values, metadata, part):
    """Return what a `Change` does that brings values to points of its selection."""
    def assign(place, places):
        _part(place, metadata, part)[points] = values

    return assign


def _read_shard(binding, source, view, key, coords, shape, inside):
    """Return the selected elements of a shard, of `_raw_type`, or None when its object is absent."""
    found = list(_pieces(inside, view)) if _has_lists(inside) else None
    boxes = [inside] if found is None else [box for box, _, _, _ in found]

    def read(raw):
        if raw is None:
            return None
        with _located(key, coords, "decode"):
            if found is None:
                return view.chain.read_part(raw, inside, shape)
            out = np.empty(np.broadcast_shapes(*[indices.shape for indices in inside]), _raw_type(view.metadata))
            for i, _, elements in view.chain.read_parts(raw, boxes, shape):
                _, points, places, _ = found[i]
                out[places] = elements[points] if isinstance(elements, np.ndarray) else elements
            return out

    are_few = _are_few(boxes, view.chain.inner_shape, shape)
    return _with_shard(binding, source, view.chain, shape, key, coords, read, are_few)


def _are_few(boxes, chunk_shape, shape):
    """Whether boxes of a shard touch less than half of its chunks."""
    n_touched = sum([math.prod([(side.stop - 1) // length - side.start // length + 1
                                for side, length in zip(box, chunk_shape, strict=True)]) for box in boxes])
    return 2 * n_touched < math.prod([n // length for n, length in zip(shape, chunk_shape, strict=True)])


def _load_kept(binding, source, view, plan, key, coords, origin, shape):
    """Return one decoded chunk as `_load` does, kept from an earlier read or for the next one if there is a cache."""
    chunks, metadata = binding.options.chunks, view.metadata
    if chunks is None or has_varying_items(metadata.dtype):
        return _load(binding, source, view, key, coords, origin, shape)
    # Not as the kernel keeps them: here the elements are in their order and byte order.
    form = hash((form_of(view, binding.options.strict), shape))
    identity = source.identity(binding.prefix + key)
    found = identity and chunks.find_chunk(identity, form, metadata.itemsize * math.prod(shape))
    if found:
        return np.frombuffer(found, _raw_type(metadata)).reshape(shape)

    def keep(identity, chunk):
        chunks.keep_chunk(identity, form, np.ascontiguousarray(chunk).reshape(-1).view(np.uint8))

    is_kept = plan.n_tasks * plan.task_nbytes <= chunks.capacity
    return _load(binding, source, view, key, coords, origin, shape, chunks.trusts_now if is_kept else None, keep)


def _load(binding, source, view, key, coords, origin, shape, trusts=None, keep=None):
    """Return one decoded chunk, of `_raw_type`, or None when its object is absent.

    ``keep(identity, chunk)`` is called where ``trusts(identity)``, asked before the chunk is decoded, is true.
    """
    metadata, chain = view.metadata, view.chain
    limit = chain.max_encoded_of(shape)
    if trusts is None:
        raw, identity = _get(binding, source, key, coords, limit), None
    else:
        raw, identity = _get_with_identity(binding, source, key, coords, limit)
    if raw is None:
        return None
    is_trusted = identity is not None and trusts(identity)
    with _located(key, coords, "decode"):
        try:
            chunk = chain.decode(raw, shape)
        except ChunkError as error:
            inside = tuple([min(length, n - first) for first, length, n in zip(origin, shape, metadata.shape,
                                                                               strict=True)])
            if binding.options.strict or error.found != metadata.itemsize * math.prod(inside):
                raise
            # A border chunk that was stored without its overhang, as early 2016 code did.
            chunk = _filled_chunk(metadata, shape)
            chunk[tuple([slice(n) for n in inside])] = _raw(chain.decode(raw, inside), metadata)
            is_trusted = False
        chunk = _raw(chunk, metadata)
    if is_trusted:
        keep(identity, chunk)
    return chunk


def _get(binding, source, key, coords, limit):
    """Return the bytes of an object, at most `limit` where that is known, or None when it is absent."""
    return _checked(binding, source, key, coords, limit, source.get(binding.prefix + key, _range_of(limit)))


def _get_with_identity(binding, source, key, coords, limit):
    """The same, and the identity under which they were read."""
    raw, identity = source.get_with_identity(binding.prefix + key, _range_of(limit)) or (None, None)
    return _checked(binding, source, key, coords, limit, raw), identity


def _range_of(limit):
    # One byte more than any encoding of a chunk has: a file of any size costs no more memory than that.
    return None if limit is None else (0, limit + 1)


def _checked(binding, source, key, coords, limit, raw):
    """Return the bytes of an object, if it may be as long as that, or absent."""
    if raw is None:
        _check_may_be_absent(binding, key, coords)
    elif limit is not None and len(raw) > limit:
        found = source.getsize(binding.prefix + key)
        raise CodecError(f"{key}: stored object has {found} bytes, its chunk encodes to at most {limit}", key=key,
                         chunk_coords=coords, direction="decode", offset=limit, expected=limit, found=found)
    return raw


def _with_shard(binding, source, chain, shape, key, coords, use, few=False):
    """Return ``use(shard)``, of a shard of `shape` as `Shards.read` takes it, or of None when it is absent.

    With `few`, the shard is read in parts, where its identity tells that they are parts of one.
    """
    limit = chain.max_encoded_of(shape)
    if chain.compressors:
        return use(_get(binding, source, key, coords, limit))
    for i in range(2 * MAX_REPLACED):
        # Some services have tags that differ without a change: what is read whole needs none.
        few = few and i < MAX_REPLACED
        raw = _index_of(source, binding.prefix + key, chain.shards_of(shape)) if few else None
        if raw is None:
            found = source.get_with_identity(binding.prefix + key, _range_of(limit))
            if found is None:
                _check_may_be_absent(binding, key, coords)
                return use(None)
            raw, identity = found
            if limit is not None and len(raw) > limit:
                if identity is None:
                    raw = source.get(binding.prefix + key)
                else:
                    # No entry names all of its bytes: gaps of any size cost no memory, as in the kernel.
                    raw = _ShardInParts(source, binding.prefix + key, identity)
        try:
            return use(raw)
        except _Replaced:
            continue
    raise StoreError(f"{key}: it was replaced by another object each of {2 * MAX_REPLACED} times that it was read in "
                     "parts", key=binding.prefix + key)


def _index_of(source, key, shards):
    """Return a `_ShardInParts` that has read the index, or None where the shard is absent or has to be read whole."""
    n = shards.index_nbytes
    found = source.get_with_identity(key, (0, n) if shards.at_start else (None, n))
    if found is None or found[1] is None or not is_trusted(found[1]):
        return None
    index, identity = found
    raw = _ShardInParts(source, key, identity)
    start = 0 if shards.at_start else max(0, len(raw) - n)
    raw.keep(start, index)
    return raw


def _check_may_be_absent(binding, key, coords):
    if binding.options.missing == "raise":
        raise ChunkError(f"{key}: object is absent and the array was opened with missing='raise'", key=key,
                         chunk_coords=coords, direction="decode")


class _Replaced(Exception):
    """Of a shard that is read in parts, the next part is another object's."""


class _ShardInParts:
    """A shard that is read where it is looked at: few of its chunks are needed, or it is longer than they can be."""

    def __init__(self, store, key, identity):
        self._store = store
        self._key = key
        self._identity = identity
        self._starts = []
        self._blocks = []   # that were read, sorted by where they start

    def __len__(self):
        return self._identity[2]

    def __getitem__(self, part):
        i = bisect_right(self._starts, part.start) - 1
        if i >= 0 and part.stop <= self._starts[i] + len(self._blocks[i]):
            return self._blocks[i][part.start - self._starts[i]:part.stop - self._starts[i]]
        block = self._read([(part.start, part.stop)])[0]
        if not self._blocks:
            # The index, which all chunks need.
            self.keep(part.start, block)
        return block

    def keep(self, start, block):
        """Have a part at hand that was read."""
        i = bisect_right(self._starts, start)
        self._starts.insert(i, start)
        self._blocks.insert(i, block)

    def expect(self, parts):
        """Read parts that are going to be looked at, where each request takes long: together, and those nearby as one.

        Entries of a damaged index may name any bytes of the shard, but no more than these are read.
        """
        if self._store.n_requests:
            blocks = merged(parts)
            for (start, _), block in zip(blocks, self._read(blocks), strict=True):
                self.keep(start, block)

    def _read(self, parts):
        found = self._store.get_parts_with_identity(self._key, [(start, stop - start) for start, stop in parts])
        if any([one is None or one[1] != self._identity for one in found]):
            raise _Replaced
        return [block for block, _ in found]


def _raw_type(metadata):
    """Return the type by which Python moves elements: bytes, like the kernel, also those that belong to no field."""
    # Not (np.void, n): for that NumPy calls a function in Python and drops what a signal handler raises in it.
    return metadata.dtype if has_varying_items(metadata.dtype) else np.dtype(f"V{metadata.itemsize}")


def _raw(array, metadata, part=None):
    """Return a view of an array as Python moves its elements, or parts of these if it holds no more."""
    return viewed(array, _raw_type(metadata) if part is None else np.dtype(f"V{part.nbytes}"))


def _part(elements, metadata, part):
    """Return a view of a part of elements, as Python moves them."""
    return elements if part is None else part_bytes(elements, part, metadata.itemsize)


def _has_lists(selection):
    """Whether a selection of a task consists of arrays of indices, not of slices."""
    return any([isinstance(indices, np.ndarray) for indices in selection])


def _pieces(selection, view):
    """Return what lists of indices select of each chunk of a shard; see `pieces`."""
    from zcore.pieces import pieces

    return pieces(selection, view.chain.levels())


def _as_array(selection):
    """Return a selection that gives an array, not an item, also of an array without dimensions."""
    return (*selection, ...)


def fill_of(metadata):
    """Return the fill value as an array without dimensions, of bytes or of items of varying length.

    By itself a fill value that is a list would be one of many items.
    """
    if not has_varying_items(metadata.dtype):
        return np.frombuffer(metadata.fill_bytes, _raw_type(metadata)).reshape(())
    fill = np.empty((), metadata.dtype)
    fill[()] = metadata.item_of_fill
    return fill


def _filled_chunk(metadata, shape):
    chunk = np.empty(shape, _raw_type(metadata))
    chunk[...] = fill_of(metadata)
    return chunk


def _is_filled(chunk, metadata):
    """Whether all elements of a chunk are the fill value, byte for byte."""
    if not has_varying_items(metadata.dtype):
        return is_filled(chunk.reshape(-1).view(np.uint8), metadata.fill_bytes)
    fill = fill_of(metadata).item()
    # Other values may be equal and not the same: numbers, arrays, containers of these.
    return (fill is None or isinstance(fill, (str, bytes))) and all(
        type(item) is type(fill) and item == fill for item in chunk.flat)  # most chunks differ at their first item


@contextlib.contextmanager
def _located(key, coords, direction):
    """Say which chunk it was that could not be decoded or encoded."""
    try:
        yield
    except MemoryError as error:
        raise ChunkMemoryError(f"{key}: no memory for the chunk", key=key, chunk_coords=coords,
                               direction=direction) from error
    except UnsupportedError as error:
        raise type(error)(f"{key}: {error.message}", **{name: getattr(error, name) for name in error.fields}) from error
    except ChunkError as error:
        fields = {name: getattr(error, name) for name in error.fields}
        fields.update(key=key, chunk_coords=coords)
        raise type(error)(f"{key}: {error.message}", **fields) from error
