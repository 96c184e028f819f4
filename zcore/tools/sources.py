"""What a copy reads: nodes of a store as they are, or selected, and what files of other kinds hold, seen alike.

A source lists its nodes, groups before what they hold, as `SourceGroup` and as arrays. Each array says what a new one
could take over from it, and reads boxes of its elements.
"""
import hashlib
import os

from zcore import consolidated, nodes
from zcore.arrays import Array
from zcore.binding import GroupBinding
from zcore.errors import SelectionError
from zcore.groups import Group
from zcore.kernel.selection import Box, basic, whole
from zcore.lifecycle import read_attributes
from zcore.options import Options
from zcore.tools.translated import NAMES_ATTRIBUTE, inner_chain


class SourceGroup:
    """A group: its attributes, and whether a copy of all metadata below it is kept with it."""

    def __init__(self, attributes, zarr_format=None, is_consolidated=False):
        self.attributes = attributes
        self.zarr_format = zarr_format
        self.is_consolidated = is_consolidated


class SourceArray:
    """An array, or what is selected of it.

    Attributes
    ----------
    shape, dtype, attributes, dimension_names, fill_value
        As of an array that holds just these elements; None for what there is not.
    zarr_format : {3, 2, "zmeta"} or None
    metadata : ArrayMetadata or None
        As it is stored, of all of it.
    is_whole : bool
        There are metadata, and nothing is selected.
    keeps_dimensions : bool
        No dimension was dropped.
    chunk_shape : tuple, "auto" or list
        Of the smallest parts that have codecs, to ask a format for; a list where they differ in length.
    object_shape : tuple of int
        Of what is read at once, the longest.
    shard_shape : tuple of int or None
        Of objects, where these are shards.
    chunks_of_objects : tuple or list
        Of objects, be they shards or chunks, to ask a format for.
    codecs, inner_codecs : tuple of CodecSpec, or None
        The chain of objects, and of the chunks in them; None where nothing says it.
    order : {"C", "F"}
    """

    fill_value = dimension_names = zarr_format = metadata = shard_shape = codecs = inner_codecs = binding = None
    chunks_of_objects = chunk_shape = "auto"
    order = "C"
    is_whole = False
    keeps_dimensions = True

    def __init__(self, shape, dtype, attributes, selection=None):
        self.attributes = attributes
        self.dtype = dtype
        self.box = whole(shape) if selection is None else basic(selection, shape)
        if self.box is None:
            raise SelectionError("a copy takes integers, slices and ... as its selection")
        self.shape = self.box.shape
        # Which dimensions of what is stored those of the elements are.
        self.dimensions = [d for d, kept in enumerate(self.box.expand or (slice(None),) * len(shape))
                           if kept is not None]
        self.keeps_dimensions = len(self.dimensions) == len(shape)

    def kept(self, lengths):
        """Return what belongs to each dimension, without those that are dropped."""
        return None if lengths is None else tuple([lengths[d] for d in self.dimensions])

    @property
    def object_shape(self):
        return (1,) * len(self.shape)

    def read(self, starts, out):
        """Read the elements from `starts` on into `out`, a C-contiguous ndarray of the type."""
        box = self.box
        first, steps, counts = list(box.starts), box.steps, [1] * len(box.starts)
        for d, start, n in zip(self.dimensions, starts, out.shape, strict=True):
            first[d] += start * steps[d]
            counts[d] = n
        self._read(Box(tuple(first), steps, tuple(counts)), out.reshape(counts))

    def _read(self, box, out):
        """Read a box of what is stored into `out`, which has its counts."""
        raise NotImplementedError


class StoredArray(SourceArray):
    """An array in a store; see `SourceArray`."""

    def __init__(self, binding, attributes, selection=None):
        metadata, chain = binding.metadata, binding.chain
        super().__init__(metadata.shape, metadata.dtype, attributes, selection)
        self.binding = binding
        self.metadata = metadata
        self.zarr_format = metadata.zarr_format
        self.fill_value = metadata.fill_value
        names = metadata.dimension_names
        if metadata.zarr_format != 3 and _are_names(attributes.get(NAMES_ATTRIBUTE), metadata.ndim):
            names = attributes.pop(NAMES_ATTRIBUTE)
        self.dimension_names = self.kept(names)
        self.is_whole = selection is None
        self._edges = metadata.edges if self.is_whole else None
        self.chunks_of_objects = _asked(self.kept(metadata.chunk_shape), self._edges)
        self.codecs = metadata.codecs
        self.inner_codecs = inner_chain(metadata.codecs, metadata.ndim)
        if chain.shards is None:
            self.chunk_shape = self.chunks_of_objects
        elif self.inner_codecs is not None:
            self.chunk_shape = self.kept(chain.inner_shape)
            self.shard_shape = self.chunks_of_objects
        if chain.order is not None and tuple(chain.order) == tuple(range(metadata.ndim))[::-1]:
            self.order = "F"

    @property
    def object_shape(self):
        return tuple([max(1, n // abs(step)) for n, step in zip(
            self.kept(self.metadata.chunk_shape), self.kept(self.box.steps), strict=True)])

    def _read(self, box, out):
        self.binding.read(box, out)


def _are_names(value, ndim):
    return type(value) is list and len(value) == ndim and all([isinstance(name, str) for name in value])


def _asked(chunk_shape, edges):
    if edges is None:
        return chunk_shape
    return [chunk if unequal is None else unequal for chunk, unequal in zip(chunk_shape, edges, strict=True)]


class Source:
    """A node with all below it, a context manager.

    Attributes
    ----------
    nodes : list of (str, SourceGroup or SourceArray)
        By their paths relative to the node, whose own is empty; groups before what they hold.
    identity : str
        Text that is the same only for what has the same documents at the same place.
    lost : list of (str, str)
        What of nodes cannot be copied to any destination, and the names of these.
    """

    lost = ()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def close(self):
        """Close what was opened."""


class StoreSource(Source):
    """A node of a store."""

    def __init__(self, binding, selection):
        self.store = binding.store
        self.path = binding.path
        self._hash = hashlib.sha256(f"{type(self.store).__name__} {_place_of(self.store)} {self.path}".encode())
        self.nodes = [("", self._node(binding, selection))]
        if isinstance(binding, GroupBinding):
            if selection is not None:
                raise SelectionError("a selection is one of an array, the source is a group")
            pending = list(nodes.members(self.store, self.path))[::-1]
            while pending:
                path = pending.pop()
                found = nodes.find(self.store, path, None, binding.options)
                if found is None:
                    continue     # deleted since it was listed
                self.nodes.append((path[len(binding.prefix):], self._node(found, None)))
                if isinstance(found, GroupBinding):
                    pending += list(nodes.members(self.store, path))[::-1]

    @property
    def identity(self):
        return self._hash.hexdigest()

    def _node(self, binding, selection):
        attributes = read_attributes(binding)
        self._hash.update(repr((binding.path, binding.view.raw, attributes)).encode())
        if isinstance(binding, GroupBinding):
            return SourceGroup(attributes, binding.format.name, consolidated.copied(binding) is not None)
        return StoredArray(binding, attributes, selection)


def _place_of(store):
    place = getattr(store, "path", None)
    return place if isinstance(place, str) else f"{id(store)}"


def open_source(source, path, selection, threads):
    """Return what a caller of `zcore.copy` means by a source.

    Raises
    ------
    NodeNotFoundError
        There is none.
    """
    options = Options(threads=threads, read_only=True, cache=0)
    if isinstance(source, (Array, Group)):
        binding = source._binding
        path = "/".join(part for part in (binding.path, nodes.path_of(path)) if part)
        source = binding.store
    elif isinstance(source, (str, os.PathLike)) and os.path.isfile(source):
        name = os.fspath(source).lower()
        if name.endswith((".npy", ".npz")):
            from zcore.tools.numpy_files import NumpySource

            return NumpySource(os.fspath(source), path, selection)
        if name.endswith((".h5", ".hdf5", ".nc")):
            from zcore.tools.hdf5_files import Hdf5Source

            return Hdf5Source(os.fspath(source), path, selection)
    store = nodes.store_of(source, True, False)
    path = nodes.path_of(path)
    binding = nodes.find(store, path, None, options)
    if binding is None:
        raise nodes.not_found(store, path, None, options, "node")
    return StoreSource(binding, selection)
