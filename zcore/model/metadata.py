"""Metadata of a node in any format: for an array shape, type, chunks, chunk keys, codecs and fill value.

These are frozen values. A format reads them from documents and writes documents from them; the engine binds them to a
store. Lengths are exact Python integers. They are checked once, here, so that 64-bit arithmetic on them cannot overflow
elsewhere: no length, number of elements, or end of a chunk exceeds 2**63 - 1.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from operator import index as exact_index
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.buffers import MAX_NDIM
from zcore.errors import UnsupportedError
from zcore.model.chunk_grid import check_edges, dimensions_of
from zcore.model.fill_value import fill_bytes as bytes_of_fill
from zcore.model.fill_value import fill_scalar
from zcore.model.value import TEXT, Value, check_kind, first_of
from zcore.text.tried_names import OF_METADATA, add_tried

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal, Self, SupportsIndex, TypeVar

    import numpy.typing as npt

    from zcore.kernel.select.grid import Edges
    from zcore.model.chunk_keys import ChunkKeyEncoding
    from zcore.typing import Shape

    _Metadata = TypeVar("_Metadata", "ArrayMetadata", "GroupMetadata")

MAX_LENGTH = 2**63 - 1
# The attribute for the names of dimensions where a format has none, as xarray writes it.
NAMES_ATTRIBUTE = "_ARRAY_DIMENSIONS"


def shape_of(lengths: Shape) -> tuple[int, ...]:
    """Return the shape from the caller's lengths, or from a single length; see `check_shape`.

    Raises : TypeError too for text and bytes, as NumPy does; iterating over bytes would give integers.
    """
    if isinstance(lengths, TEXT):
        raise TypeError(f"shape: expected an integer or a sequence of integers, found {lengths!r:.60}")
    return check_shape(lengths if type(lengths) is tuple or np.iterable(lengths) else (lengths,))


def check_shape(shape: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return `shape` as a tuple of exact integers >= 0 whose product (without zeros) fits in 63 bits."""
    lengths = integers(shape, "shape", 0)
    if len(lengths) > MAX_NDIM:
        n = len(lengths) if lengths is shape else f"more than {MAX_NDIM}"
        raise UnsupportedError(f"an array of {n} dimensions, expected at most {MAX_NDIM}",
                               feature=f"more than {MAX_NDIM} dimensions")
    if (math.prod([length or 1 for length in lengths]) if 0 in lengths else math.prod(lengths)) > MAX_LENGTH:
        raise ValueError("shape: expected fewer than 2**63 elements")
    return lengths


def check_chunk_shape(chunk_shape: Iterable[SupportsIndex], shape: Sequence[int]) -> tuple[int, ...]:
    """Return `chunk_shape` as a tuple of exact integers >= 1, one for each dimension of `shape`."""
    lengths = integers(chunk_shape, "chunk shape", 1)
    if len(lengths) != len(shape):
        raise ValueError(f"chunk shape: expected one length for each dimension of {shape}, found {len(lengths)}")
    for d, length in enumerate(shape):
        if length + lengths[d] - 1 > MAX_LENGTH:
            raise ValueError("chunk shape: expected chunks that end before 2**63, also the last one along a dimension "
                             f"of length {length}")
    if math.prod(lengths) > MAX_LENGTH:
        raise ValueError("chunk shape: expected fewer than 2**63 elements")
    return lengths


def _check_chunk_nbytes(chunk_shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if math.prod(chunk_shape) * dtype.itemsize > MAX_LENGTH:
        raise ValueError("chunk shape: expected chunks of fewer than 2**63 bytes")


def integers(values: Iterable[SupportsIndex], what: str, minimum: int) -> tuple[int, ...]:
    """Return the integers of a caller, not more than there may be dimensions and one; `what` they are, for errors."""
    lengths: tuple[Any, ...] = values if type(values) is tuple else first_of(values, MAX_NDIM)
    for d, length in enumerate(lengths):
        if type(length) is int and length >= minimum:
            continue
        if type(length) is not int:
            if isinstance(length, (bool, np.bool_)) or not hasattr(length, "__index__"):
                raise TypeError(f"{what}: expected integers, found {length!r:.60}")
            lengths = lengths[:d] + (exact_index(length),) + lengths[d + 1:]
        if lengths[d] < minimum:
            raise ValueError(f"{what}: expected integers >= {minimum}, found {length!r}")
    return lengths


def has_varying_items(dtype: np.dtype[Any]) -> bool:
    """Return whether the items of a type vary in size: strings and objects."""
    return dtype.kind in "TO"


class ChunkGrid(NamedTuple):
    """The `chunk_grid` of an array of zarr-python."""

    chunk_shape: tuple[int, ...]


class CodecSpec(Value):
    """One member of a codec chain in Zarr v3's terms: a name and a configuration (a dict that must not be changed)."""

    __slots__ = _fields = ("name", "configuration")
    name: str
    configuration: Mapping[str, Any]

    def __init__(self, name: str, configuration: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, {} if configuration is None else configuration)

    def __hash__(self) -> int:
        return hash(self.name)


class ArrayMetadata(Value):
    """All metadata for reading and writing the chunks of one array.

    Parameters
    ----------
    shape, chunk_shape : tuple of int
        Elements per dimension, of the array (>= 0) and of each chunk (>= 1; border chunks are stored in full). If
        chunks differ in length, of the longest.
    dtype : numpy.dtype
        Stored type, with byte order; items have at least one byte. `numpy.dtypes.StringDType` and objects are types of
        items of varying length.
    chunk_keys : ChunkKeyEncoding
    codecs : tuple of CodecSpec
        The chain from array to bytes, in Zarr v3's terms.
    fill_value : object
        Value of elements never written; None if undefined. Kept as a NumPy scalar of the type.
    fill_bytes : bytes, optional
        The `itemsize` bytes of `fill_value`, if the caller already has them; else they are computed. For items of
        varying length it is ``b""``, and only the value counts.
    zarr_format : {3, 2, "zmeta"}
    attributes : dict or None
        The user's attributes, or None if the format keeps them in a document of their own.
    dimension_names : tuple of (str or None), or None
    extra : dict
        Members of the document that the format does not define; kept when it is rewritten.
    data_type : object, optional
        The type as in the document, if a format has several spellings for `dtype` and this one must be kept.
    edges : tuple of (Edges or None), optional
        Chunk lengths in the dimensions where these differ; they cover the dimension and may exceed it. None if all
        chunks of the array have one shape.

    Raises
    ------
    ValueError, TypeError
        If the parts contradict each other or a length is not an integer in its range.
    UnsupportedError
        If there are more than 64 dimensions.
    """

    __slots__ = _fields = (
        "shape", "dtype", "chunk_shape", "chunk_keys", "codecs", "fill_value", "fill_bytes", "zarr_format",
        "attributes", "dimension_names", "extra", "data_type", "edges",
    )
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...]
    chunk_keys: ChunkKeyEncoding
    codecs: tuple[CodecSpec, ...]
    fill_value: Any
    fill_bytes: bytes
    zarr_format: Literal[3, 2, "zmeta"]
    attributes: Mapping[str, Any] | None
    dimension_names: tuple[str | None, ...] | None
    extra: Mapping[str, Any]
    data_type: Any
    edges: tuple[Edges | None, ...] | None

    def __init__(self, shape: Iterable[int], dtype: npt.DTypeLike, chunk_shape: Iterable[int],
                 chunk_keys: ChunkKeyEncoding, codecs: Iterable[CodecSpec], fill_value: Any = None,
                 fill_bytes: bytes | None = None, zarr_format: Literal[3, 2, "zmeta"] = 3,
                 attributes: Mapping[str, Any] | None = None, dimension_names: Sequence[str | None] | None = None,
                 extra: Mapping[str, Any] | None = None, data_type: Any = None,
                 edges: Iterable[Edges | None] | None = None) -> None:
        shape = check_shape(shape)
        chunk_shape = check_chunk_shape(chunk_shape, shape)
        if edges is not None:
            edges = check_edges(edges, chunk_shape, shape)
        dtype = np.dtype(dtype)
        itemsize = dtype.itemsize
        if itemsize < 1:
            raise ValueError(f"data type {dtype.str} has items of no bytes")
        _check_chunk_nbytes(chunk_shape, dtype)
        if has_varying_items(dtype):
            fill_bytes = b""
        elif fill_bytes is None:
            fill_bytes = bytes_of_fill(dtype, fill_value)
            if fill_value is not None:
                fill_value = fill_scalar(dtype, fill_bytes)
        elif len(fill_bytes) != itemsize:
            raise ValueError(f"fill value: expected {itemsize} bytes, found {len(fill_bytes)}")
        if dimension_names is not None:
            check_kind(dimension_names, "dimension_names", (Iterable,), "a list of str or None")
            names = first_of(dimension_names, MAX_NDIM)
            if isinstance(dimension_names, str) or any([not isinstance(name, (str, type(None))) for name in names]):
                raise TypeError(f"dimension_names={dimension_names!r:.200}: expected a list of str or None")
            dimension_names = names
            if len(dimension_names) != len(shape):
                raise ValueError(f"dimension_names: expected one for each dimension of {shape}, found {len(names)}")
        super().__init__(shape, dtype, chunk_shape, chunk_keys, tuple(codecs), fill_value, fill_bytes, zarr_format,
                         attributes, dimension_names, {} if extra is None else extra, data_type, edges)

    def _compared(self):
        """Return the fields that are compared: the fill value by its bytes, so that NaN equals itself."""
        fill_value = self.fill_value if has_varying_items(self.dtype) else self.fill_value is None
        return [fill_value if name == "fill_value" else getattr(self, name) for name in self._fields]

    def __eq__(self, other: object) -> bool:
        if type(other) is not ArrayMetadata:
            return NotImplemented
        return self is other or self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.chunk_shape, self.chunk_keys, self.codecs, self.fill_bytes))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values for the named fields.

        >>> from zcore.model.chunk_keys import ChunkKeyEncoding
        >>> array = ArrayMetadata((4,), "<i2", (2,), ChunkKeyEncoding.v3(), (CodecSpec("bytes"),), fill_value=-1)
        >>> array.replace(shape=(7,)).grid_shape
        (4,)
        """
        if "dtype" in changes or "fill_value" in changes:
            changes.setdefault("fill_bytes", None)
        if "dtype" in changes:
            changes.setdefault("data_type", None)
        if "data_type" in self.extra and not changes.keys().isdisjoint(("dtype", "fill_value", "codecs")):
            # Spellings of the old values.
            changes.setdefault("extra", {name: value for name, value in self.extra.items()
                                         if name not in ("data_type", "fill_value", "codecs")})
        return super().replace(**changes)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def item_of_fill(self) -> Any:
        """Value of elements of varying length that were never written: an empty item if the fill value is undefined."""
        if self.fill_value is not None:
            return self.fill_value
        if self.dtype.kind == "T":
            return ""
        return b"" if any([codec.name == "vlen-bytes" for codec in self.codecs]) else None

    @property
    def type_of_items(self) -> Any:
        """Type to create such an array with: `bytes` for objects that are bytes, else `dtype`."""
        return bytes if self.dtype.kind == "O" and isinstance(self.item_of_fill, bytes) else self.dtype

    @property
    def size(self) -> int:
        """Number of elements: 1 for no dimensions, 0 if a length is 0."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, decoded."""
        return self.size * self.dtype.itemsize

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Number of chunks in each dimension, including the last one that exceeds the array."""
        return tuple([-(-length // chunk) if unequal is None else unequal.count(length)
                      for length, chunk, unequal in dimensions_of(self.shape, self.chunk_shape, self.edges)])

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the grid, stored or not."""
        return math.prod(self.grid_shape)

    def place_of(self, chunk_coords: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the first element and the shape of a chunk of the grid, two tuples of int.

        >>> from zcore.kernel.select.grid import Edges
        >>> from zcore.model.chunk_keys import ChunkKeyEncoding
        >>> array = ArrayMetadata((5, 9), "<i2", (2, 6), ChunkKeyEncoding.v3(), (CodecSpec("bytes"),), fill_value=0,
        ...                       edges=(None, Edges([(4, 1), (6, 1)])))
        >>> array.grid_shape, array.place_of((1, 1))
        ((3, 2), ((2, 4), (2, 6)))
        """
        places = [(i * chunk, chunk) if unequal is None else unequal.place(i)
                  for i, chunk, unequal in dimensions_of(chunk_coords, self.chunk_shape, self.edges)]
        return tuple([origin for origin, _ in places]), tuple([length for _, length in places])

    def span_of(self, axis: int, element: int) -> tuple[int, int]:
        """Return the first element and the length, along an axis, of the chunks that have an element.

        Elements behind the end are in the chunks that the array would have if it had grown.
        """
        if self.edges is None or self.edges[axis] is None:
            length = self.chunk_shape[axis]
            return element - element % length, length
        edges = self.edges[axis].covering(element + 1)
        return edges.place(edges.count(element + 1) - 1)

    def resized(self, shape: Iterable[int], attributes: Mapping[str, Any] | None = None,
                chunk_shape: Iterable[int] | None = None) -> ArrayMetadata:
        """Return the metadata of the array with another shape, and perhaps other attributes and another chunk shape.

        Chunks stay in place. If chunks of different lengths do not reach the new end, chunks of the last length are
        added as needed. Shrinking keeps all of them.
        """
        shape = check_shape(shape)
        if self.edges is None and len(shape) == len(self.shape):
            # Every append does this. The other fields were checked, and do not depend on the shape.
            chunk_shape = check_chunk_shape(self.chunk_shape if chunk_shape is None else chunk_shape, shape)
            _check_chunk_nbytes(chunk_shape, self.dtype)
            new = object.__new__(_Unfrozen)
            new.shape, new.chunk_shape = shape, chunk_shape
            new.attributes = self.attributes if attributes is None else attributes
            new.dtype, new.chunk_keys, new.codecs = self.dtype, self.chunk_keys, self.codecs
            new.fill_value, new.fill_bytes, new.zarr_format = self.fill_value, self.fill_bytes, self.zarr_format
            new.dimension_names, new.extra = self.dimension_names, self.extra
            new.data_type, new.edges = self.data_type, None
            new.__class__ = ArrayMetadata
            return new
        if len(shape) != len(self.shape):
            return self.replace(shape=shape)
        return self.replace(shape=shape, edges=tuple([
            None if unequal is None else unequal.covering(length)
            for unequal, length in zip(self.edges, shape, strict=True)]))

    def same_grid(self, other: ArrayMetadata) -> bool:
        """Return whether the elements that are in both arrays lie in the same chunks."""
        if len(self.shape) != len(other.shape):
            return False
        for (length, chunk, edges), (other_length, other_chunk, other_edges) in zip(
                dimensions_of(self.shape, self.chunk_shape, self.edges),
                dimensions_of(other.shape, other.chunk_shape, other.edges), strict=True):
            both = min(length, other_length)
            if edges is None and other_edges is None:
                if chunk != other_chunk:
                    return False
            elif not _unequal(edges, other_edges, chunk, both).agrees(_unequal(other_edges, edges, other_chunk, both),
                                                                      both):
                return False
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the array's document, as zarr-python calls it."""
        return document_of(self)

    @property
    def chunk_grid(self) -> ChunkGrid:
        """The chunk shape as zarr-python has it: ``chunk_grid.chunk_shape`` is `chunk_shape`."""
        return ChunkGrid(self.chunk_shape)

    @property
    def filters(self) -> list[dict[str, Any]] | None:
        """The filters as a document of Zarr v2 has them; other formats have no such attribute, and no `compressor`."""
        return self._of_v2("filters")

    @property
    def compressor(self) -> dict[str, Any] | None:
        """The compressor as a document of Zarr v2 has it."""
        return self._of_v2("compressor")

    def _of_v2(self, name):
        document = document_of(self)
        if name not in document:
            raise AttributeError(f"only Zarr v2 has {name!r}; metadata.codecs is the chain", name=name, obj=self)
        return document[name]

    @property
    def chunk_nbytes(self) -> int:
        """Decoded bytes of one full chunk; of one of the longest, if they differ."""
        return math.prod(self.chunk_shape) * self.dtype.itemsize


def _unequal(edges, others, chunk, length):
    """Return `edges`, or if there are none `chunk` as often as it covers `length`, of the same class as `others`.

    An array of chunks of one length may become one of other lengths, when it grows.
    """
    return type(others)([(chunk, max(1, -(-length // chunk)))]) if edges is None else edges


class _Unfrozen(Value):
    """The metadata of an array while its fields are set, which takes a quarter of the time that it takes later."""

    __slots__ = ArrayMetadata._fields
    __setattr__, __delattr__ = object.__setattr__, object.__delattr__  # type: ignore[assignment]


add_tried(ArrayMetadata, OF_METADATA)


class GroupMetadata(Value):
    """All metadata of a group.

    Parameters
    ----------
    zarr_format : {3, 2}
    attributes : dict or None
        The user's attributes, or None if the format keeps them in a document of their own.
    consolidated : Mapping or None
        The `ArrayMetadata` and `GroupMetadata` of all nodes below, by path relative to the group, from the consolidated
        metadata in the group's document; None without it. A copy, which may be older than the nodes' own documents.
    extra : dict
        Members of the document that the format does not define; kept when it is rewritten.
    """

    __slots__ = _fields = ("zarr_format", "attributes", "consolidated", "extra")
    zarr_format: Literal[3, 2]
    attributes: Mapping[str, Any] | None
    consolidated: Mapping[str, ArrayMetadata | GroupMetadata] | None
    extra: Mapping[str, Any]

    def __init__(self, zarr_format: Literal[3, 2] = 3, attributes: Mapping[str, Any] | None = None,
                 consolidated: Mapping[str, ArrayMetadata | GroupMetadata] | None = None,
                 extra: Mapping[str, Any] | None = None) -> None:
        super().__init__(zarr_format, attributes, consolidated, {} if extra is None else extra)

    def __hash__(self) -> int:
        return hash(("group", self.zarr_format))

    def to_dict(self) -> dict[str, Any]:
        """Return the group's document, as zarr-python calls it."""
        return document_of(self)

    @property
    def consolidated_metadata(self) -> Mapping[str, ArrayMetadata | GroupMetadata] | None:
        """Another name for `consolidated`, which zarr-python has; what it has as `metadata` in it, is itself."""
        return self.consolidated


# Returns the document of metadata. The layer above, `zcore.formats.base`, knows documents and sets it.
document_of: Any = None


def unshared(metadata: _Metadata) -> _Metadata:
    """Return equal metadata for a caller, who may change the dicts. Handles share the metadata of equal documents."""
    changes = {"attributes": deepcopy(metadata.attributes), "extra": deepcopy(metadata.extra)}
    if type(metadata) is ArrayMetadata:
        changes["codecs"] = [CodecSpec(codec.name, deepcopy(codec.configuration)) for codec in metadata.codecs]
        changes["data_type"] = deepcopy(metadata.data_type)
    return metadata.replace(**changes)
