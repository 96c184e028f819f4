"""Sources of copies: their nodes, groups before their members, as `SourceGroup` and `SourceArray`.

Each array has the properties that a new one may take over, and reads boxes of its elements. `StoreSource` has the nodes
of a store; files of other programs are sources as well (`tools.files`). `open_source` says which one a caller means.
"""
from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from zcore.descriptors import identity_of
from zcore.engine.freshness import Freshness
from zcore.engine.node_binding import GroupBinding
from zcore.engine.options import Options
from zcore.errors import SelectionError, StoreError, ZcoreError
from zcore.formats import DOCUMENTS, NODE_DOCUMENTS, format_of
from zcore.hierarchy import consolidated, lookup
from zcore.hierarchy.attributes import read_attributes
from zcore.kernel.select.box import Box, basic, whole
from zcore.model.metadata import NAMES_ATTRIBUTE
from zcore.nodes.array import Array
from zcore.nodes.group import Group
from zcore.stores import openers
from zcore.stores.base import directory_at, together
from zcore.stores.keys import prefix_of
from zcore.tools.copy.translate import inner_chain
from zcore.tools.stored import MAX_LOOKS, Stored, has_changed_since, until_unmoved

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self, TypeAlias

    import numpy as np
    import numpy.typing as npt

    from zcore.engine.array_binding import ArrayBinding
    from zcore.kernel.select.grid import Edges
    from zcore.model.metadata import ArrayMetadata, CodecSpec
    from zcore.stores.base import Store, StoreLike
    from zcore.typing import Chunks, Format, Order, Selection

    Lengths: TypeAlias = Chunks | list[int | Edges]


class SourceGroup(NamedTuple):
    """A group: its attributes, and whether it has consolidated metadata."""

    attributes: dict[str, Any]
    zarr_format: Format | None = None
    is_consolidated: bool = False


class SourceArray:
    """An array, or a selection of it.

    Attributes
    ----------
    shape, dtype, attributes, dimension_names, fill_value
        As of an array of these elements alone; None where there is none.
    missing_value : object
        The attribute ``_FillValue`` of a file, as an element; None where there is none.
    fill_is_needed : bool
        Elements may be absent, or be missing data if they are the fill value.
    has_enum : bool
        Numbers have names, which only HDF5 keeps.
    zarr_format : {3, 2, "zmeta"} or None
    metadata : ArrayMetadata or None
        Of the whole array, as it is stored.
    is_whole : bool
        There are metadata, and nothing is selected.
    keeps_dimensions : bool
        No dimension was dropped.
    chunk_shape : tuple, "auto" or list
        Of the smallest parts that have codecs, as a format takes it; a list where they differ in length.
    object_shape : tuple of int
        Of the stored objects, the longest one.
    shard_shape : tuple of int or None
        Of objects, where these are shards.
    chunks_of_objects : tuple or list
        Of objects, shards or chunks, as a format takes it.
    codecs, inner_codecs : tuple of CodecSpec, or None
        The chain of objects, and of the chunks in them; None where it is unknown.
    order : {"C", "F"}
    nbytes_stored : int or None
        Of elements that the file compresses as a whole.
    place : str
        Of the array, or its file, in messages.
    """

    fill_value: Any = None
    missing_value: Any = None
    fill_is_needed: bool = True
    has_enum: bool = False
    dimension_names: tuple[str | None, ...] | None = None
    zarr_format: Format | None = None
    metadata: ArrayMetadata | None = None
    shard_shape: Lengths = None
    codecs: tuple[CodecSpec, ...] | None = None
    inner_codecs: tuple[CodecSpec, ...] | None = None
    binding: ArrayBinding | None = None
    chunks_of_objects: Lengths = "auto"
    chunk_shape: Lengths = "auto"
    order: Order = "C"
    is_whole: bool = False
    keeps_dimensions: bool = True
    nbytes_stored: int | None = None
    place: str = ""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], attributes: dict[str, Any],
                 selection: Selection = None) -> None:
        self.attributes = attributes
        self.dtype = dtype
        box = whole(shape) if selection is None else basic(selection, shape)
        if box is None:
            raise SelectionError("a copy takes integers, slices and ... as its selection")
        self.box: Box = box
        self.shape: tuple[int, ...] = box.shape
        # The dimensions of the stored array that the selection keeps.
        self.dimensions: list[int] = [d for d, kept in enumerate(box.expand or (slice(None),) * len(shape))
                                      if kept is not None]
        self.keeps_dimensions = len(self.dimensions) == len(shape)

    def kept(self, lengths: Sequence[Any] | None) -> Any:
        """Return the values of the dimensions that the selection keeps."""
        return None if lengths is None else tuple([lengths[d] for d in self.dimensions])

    @property
    def object_shape(self) -> tuple[int, ...]:
        return (1,) * len(self.shape)

    def read(self, starts: tuple[int, ...], out: npt.NDArray[Any]) -> None:
        """Read the elements from `starts` on into `out`, a C-contiguous ndarray of the type."""
        box = self.box
        first, steps, counts = list(box.starts), box.steps, [1] * len(box.starts)
        for d, start, n in zip(self.dimensions, starts, out.shape, strict=True):
            first[d] += start * steps[d]
            counts[d] = n
        try:
            self._read(Box(tuple(first), steps, tuple(counts)), out.reshape(counts))
        except ZcoreError as error:
            error.locate(self.place)     # else the error would name the destination
            raise

    def stored(self) -> Stored | None:
        """Return a `Stored`, which tells what exists; None where only reading tells."""
        return None if self.binding is None else Stored(self.binding, self.box, self.dimensions)

    def sizes(self) -> dict[tuple[int, ...], int] | None:
        """Return the bytes of each chunk that the file has, by its coordinates; None where it has no chunks."""
        return None

    def lacks(self, coords: tuple[int, ...]) -> bool:
        """Return whether the file is known not to have a chunk, so that all elements of it are the fill value."""
        return False

    def _read(self, box, out):
        """Read a box of the stored array into `out`, which has its counts."""
        raise NotImplementedError

    def watched(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager in which `check` tells whether the array has been the same since the beginning."""
        return contextlib.nullcontext()

    def check(self) -> None:
        """Raise ZcoreError unless the array is still the one that was opened."""


class Source:
    """A node with all below it, a context manager.

    Attributes
    ----------
    nodes : list of (str, SourceGroup or SourceArray)
        By their paths relative to the node, whose own is empty; groups before their members.
    identity : str
        Text that is the same only for the same documents, or the same file, at the same path.
    lost : list of (str, str)
        Parts of nodes that cannot be copied to any destination, and the names of the nodes.
    left_out : list of (str, str)
        The same for members that are not among the nodes, as no destination can hold them.
    leaves_out : bool
        A node that the destination cannot hold is left out as well, unless it is the only one.
    address : str or None
        Of the node, by `address_of`; None if it is in no store.
    n_requests : int
        As of a store.
    """

    nodes: list[tuple[str, SourceGroup | SourceArray]]
    identity: str
    lost: Sequence[tuple[str, str]] = ()
    left_out: Sequence[tuple[str, str]] = ()
    leaves_out: bool = False
    address: str | None = None
    n_requests: int = 0

    def has_changed_since(self, moment: int) -> bool:
        """Return whether elements may have changed since a moment, in ns, although the identity is the same."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def check(self) -> None:
        """Raise ZcoreError unless the groups that were opened still exist; arrays are checked one by one."""

    def close(self) -> None:
        """Close the files."""


# Members of groups that belong to no node: tables in Parquet, texts. Hidden files are none of them.
FOREIGN = "files that belong to no node"
_DOCUMENTS = frozenset((*DOCUMENTS, *[format_of(name).attributes_document for name in NODE_DOCUMENTS]))

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
        self.place: str = binding.describe()
        self._selection = selection
        self._freshness = Freshness(binding, self.box)
        self._is_watched = False
        self.metadata: ArrayMetadata = metadata
        self.zarr_format: Format | None = None if binding.store.decodes else metadata.zarr_format
        self.fill_value: Any = metadata.fill_value
        names = metadata.dimension_names
        if not binding.format.has_dimension_names and are_names(attributes.get(NAMES_ATTRIBUTE), metadata.ndim):
            names = attributes.pop(NAMES_ATTRIBUTE)
        self.dimension_names: tuple[str | None, ...] | None = self.kept(names)
        self.is_whole: bool = selection is None and not binding.store.decodes
        self._edges = metadata.edges if self.is_whole else None
        self.chunks_of_objects: Lengths = _asked(self.kept(metadata.chunk_shape), self._edges)
        if not binding.store.decodes:
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
                             key=self.binding.document, place=self.place, errno=errno.ESTALE)


def _stored_array(array, selection):
    return StoredArray(array._binding, {}, selection)


def are_names(value: Any, ndim: int) -> bool:
    """Return whether an attribute has a name for each dimension."""
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
        self.address: str = address_of(self.store, self.path)
        self.n_requests: int = self.store.n_requests
        if selection is not None and isinstance(binding, GroupBinding):
            raise SelectionError("a selection is one of an array, the source is a group")
        until_unmoved(self.store, self.path, lambda: self._find(binding, selection))

    def _find(self, binding, selection):
        others, bindings = [], [binding]
        if isinstance(binding, GroupBinding):
            bindings += [found for _, found in lookup.below(self.store, self.path, None, binding.options,
                                                            others=others.append)]
        self._groups = [one for one in bindings if isinstance(one, GroupBinding)]
        self.left_out: list[tuple[str, str]] = [
            (FOREIGN, key[len(binding.prefix):]) for key in sorted(others) if self._is_foreign(key)]
        found = together(self.store, partial(self._node, selection), bindings)
        self.nodes: list[tuple[str, SourceGroup | SourceArray]] = [
            (one.path[len(binding.prefix):], node) for one, (node, _) in zip(bindings, found, strict=True)]
        self.identity: str = hashlib.sha256(b"".join(
            [f"{type(self.store).__name__} {self.address} {_file_of(self.store)}".encode(),
             *[digest for _, digest in found]])).hexdigest()

    def _is_foreign(self, key):
        name = key.rstrip("/").rpartition("/")[2]
        # zarr.json.1f3a.partial is a temporary file of another program.
        if name.startswith(".") or name in _DOCUMENTS or name.startswith(tuple([f"{one}." for one in DOCUMENTS])):
            return False
        return not key.endswith("/") or (not self.store.folders.leads_up(key)
                                         and any(True for _ in self.store.list_prefix(key)))

    def check(self) -> None:
        for binding in self._groups:
            binding.look()

    def has_changed_since(self, moment: int) -> bool:
        directory = directory_at(self.store, prefix_of(self.path))
        return directory is not None and has_changed_since(directory, moment)

    def _node(self, selection, binding):
        """Return a node, and a digest of its path and documents. `selection` is None in a group."""
        for _ in range(MAX_LOOKS):
            view = binding.reload()
            attributes = read_attributes(binding, view)
            if binding.format.has_inline_attributes or binding.reload().raw == view.raw:
                break     # both are of one moment
        # Another array may have an equal document.
        identity = None if directory_at(self.store) is None else binding.view.identity
        digest = hashlib.sha256(repr((binding.path, binding.view.raw, attributes, identity)).encode()).digest()
        if isinstance(binding, GroupBinding):
            return SourceGroup(attributes, None if self.store.decodes else binding.format.name,
                               consolidated.usable_copy(binding) is not None), digest
        return StoredArray(binding, attributes, selection), digest


def _file_of(store):
    """Return the identity of the file that has all of a store, or None."""
    path = getattr(store, "path", None)
    return identity_of(os.stat(path)) if isinstance(path, str) and os.path.isfile(path) else None


def address_of(store: Store, path: str) -> str:
    """Return text for a node: the same in all processes if its store has an address, else in this one alone."""
    place = getattr(store, "path", None)
    return f"{place if isinstance(place, str) else store.uri or id(store)}/{path}".rstrip("/")


def open_source(source: StoreLike | Mapping[str, Any] | Array | Group, path: str, selection: Selection,
                threads: int | None) -> Source:
    """Return the source that a caller of `zcore.copy` means.

    Raises
    ------
    NodeNotFoundError
        There is none.
    """
    options = Options(threads=threads, read_only=True, cache=0)
    if (made := SOURCES.get(openers.kind_of(source))) is not None:
        return openers.loaded(made)(openers.as_path(source), path, selection, threads)
    source, path = lookup.store_and_path(source, path)
    store = openers.store_of(source, True)
    binding = lookup.find(store, path, None, options)
    if binding is None:
        # The options are the default ones: no advice to open a source in another mode.
        raise lookup.not_found(store, path, None, Options(), "node")
    return StoreSource(binding, selection)
