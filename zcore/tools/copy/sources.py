"""Sources of copies: nodes of a store, whole or a selection; and which kind of source a caller means."""
from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from zcore.engine.binding import GroupBinding
from zcore.engine.freshness import Freshness
from zcore.engine.options import Options
from zcore.errors import SelectionError, StoreError
from zcore.hierarchy import consolidated, lookup
from zcore.hierarchy.lifecycle import read_attributes
from zcore.model.metadata import NAMES_ATTRIBUTE
from zcore.nodes.array import Array
from zcore.nodes.group import Group
from zcore.stores import openers
from zcore.tools.copy.translate import inner_chain
from zcore.tools.source import Source, SourceArray, SourceGroup
from zcore.tools.stored import MAX_LOOKS, Way

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from zcore.engine.binding import ArrayBinding
    from zcore.model.metadata import ArrayMetadata, CodecSpec
    from zcore.stores.base import Store, StoreLike
    from zcore.tools.source import Lengths
    from zcore.typing import Format, Order, Selection

# The sources of files that are no stores.
SOURCES: dict[openers.Kind, str] = {
    openers.NPY: "zcore.tools.files.numpy:NumpySource",
    openers.NPZ: "zcore.tools.files.numpy:NumpySource",
    openers.HDF5: "zcore.tools.files.hdf5:Hdf5Source",
}


class StoredArray(SourceArray):
    """An array in a store; see `SourceArray`."""

    def __init__(self, binding: ArrayBinding, attributes: dict[str, Any], selection: Selection = None) -> None:
        metadata, chain = binding.metadata, binding.chain
        super().__init__(metadata.shape, metadata.dtype, attributes, selection)
        self.binding: ArrayBinding = binding
        self._selection = selection
        self._freshness = Freshness(binding, self.box)
        self._is_watched = False
        self.metadata: ArrayMetadata = metadata
        self.zarr_format: Format = metadata.zarr_format
        self.fill_value: Any = metadata.fill_value
        names = metadata.dimension_names
        if not binding.format.has_dimension_names and _are_names(attributes.get(NAMES_ATTRIBUTE), metadata.ndim):
            names = attributes.pop(NAMES_ATTRIBUTE)
        self.dimension_names: tuple[str | None, ...] | None = self.kept(names)
        self.is_whole: bool = selection is None
        self._edges = metadata.edges if self.is_whole else None
        self.chunks_of_objects: Lengths = _asked(self.kept(metadata.chunk_shape), self._edges)
        self.codecs: tuple[CodecSpec, ...] = metadata.codecs
        self.inner_codecs: tuple[CodecSpec, ...] | None = inner_chain(metadata.codecs, metadata.ndim)
        if chain.shards is None:
            self.chunk_shape: Lengths = self.chunks_of_objects
        elif self.inner_codecs is not None:
            self.chunk_shape = self.kept(chain.inner_shape)
            self.shard_shape: Lengths = self.chunks_of_objects
        if chain.order is not None and tuple(chain.order) == tuple(range(metadata.ndim))[::-1]:
            self.order: Order = "F"

    @property
    def object_shape(self) -> tuple[int, ...]:
        return tuple([max(1, n // abs(step)) for n, step in zip(
            self.kept(self.metadata.chunk_shape), self.kept(self.box.steps), strict=True)])

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored_array, (Array(self.binding), self._selection)

    def _read(self, box, out):
        self.binding.read(box, out)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        try:
            self._freshness.begin()
            self._is_watched = True
            yield
        finally:
            self._freshness.files = []     # no call, which Ctrl-C could keep from its end

    def check(self) -> None:
        if self._is_watched and self._freshness.ends():
            return
        self._freshness.look()     # says what is wrong, if anything is
        if self._is_watched:
            raise StoreError(f"{self.binding.document}: the array was replaced by another one while it was copied, or "
                             "nothing of it stayed the same while its document was replaced; copy again",
                             key=self.binding.document)


def _stored_array(array, selection):
    return StoredArray(array._binding, {}, selection)


def _are_names(value, ndim):
    return type(value) is list and len(value) == ndim and all([isinstance(name, str) for name in value])


def _asked(chunk_shape, edges):
    if edges is None:
        return chunk_shape
    return [chunk if unequal is None else unequal for chunk, unequal in zip(chunk_shape, edges, strict=True)]


class StoreSource(Source):
    """A node of a store."""

    def __init__(self, binding: ArrayBinding | GroupBinding, selection: Selection) -> None:
        self.store: Store = binding.store
        self.path: str = binding.path
        if selection is not None and isinstance(binding, GroupBinding):
            raise SelectionError("a selection is one of an array, the source is a group")
        for _ in range(MAX_LOOKS):
            way = Way(self.store, self.path)
            self._find(binding, selection)
            if way.stands():
                break
        else:
            way.check()
        self.identity: str = self._hash.hexdigest()

    def _find(self, binding, selection):
        self._hash = hashlib.sha256(f"{type(self.store).__name__} {_place_of(self.store)} {self.path}".encode())
        self._groups = []
        self.nodes: list[tuple[str, SourceGroup | SourceArray]] = [("", self._node(binding, selection))]
        if isinstance(binding, GroupBinding):
            for path, found in lookup.below(self.store, self.path, None, binding.options):
                self.nodes.append((path[len(binding.prefix):], self._node(found, None)))

    def check(self) -> None:
        for binding in self._groups:
            binding.look()

    def _node(self, binding, selection):
        view = binding.reload()
        for _ in range(MAX_LOOKS):
            attributes, before = read_attributes(binding, view), view
            if not binding.format.has_inline_attributes:
                view = binding.reload()
            if view.raw == before.raw:
                break     # both are of one moment
        self._hash.update(repr((binding.path, binding.view.raw, attributes)).encode())
        if isinstance(binding, GroupBinding):
            self._groups.append(binding)
            return SourceGroup(attributes, binding.format.name, consolidated.usable_copy(binding) is not None)
        return StoredArray(binding, attributes, selection)


def _place_of(store):
    place = getattr(store, "path", None)
    return place if isinstance(place, str) else f"{id(store)}"


def open_source(source: StoreLike | Mapping[str, Any] | Array | Group, path: str, selection: Selection,
                threads: int | None) -> Source:
    """Return the source that a caller of `zcore.copy` means.

    Raises
    ------
    NodeNotFoundError
        There is none.
    """
    options = Options(threads=threads, read_only=True, cache=0)
    if isinstance(source, (Array, Group)):
        binding = source._binding
        path = "/".join(part for part in (binding.path, lookup.path_of(path)) if part)
        source = binding.store
    elif (made := SOURCES.get(openers.kind_of(source))) is not None:
        return openers.loaded(made)(openers.as_path(source), path, selection, threads)
    store = openers.store_of(source, True)
    path = lookup.path_of(path)
    binding = lookup.find(store, path, None, options)
    if binding is None:
        # The options are the default ones: no advice to open a source in another mode.
        raise lookup.not_found(store, path, None, Options(), "node")
    return StoreSource(binding, selection)
