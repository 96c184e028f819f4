"""For type checkers: the keywords of functions that pass them on to `zcore.create_array` and its kin.

Those functions take ``**keywords: Unpack[…]`` (PEP 692). Keywords and types are those that `zcore.create_array` and
`zcore.open` annotate; `tests/types/test_types.py` compares them. This module is not imported by a program.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

from zcore.codecs.base import Codec
from zcore.model.metadata import CodecSpec
from zcore.stores.base import StoreLike
from zcore.typing import (
    Attributes,
    CacheSize,
    Chunks,
    Cname,
    DimensionNames,
    DTypeLike,
    Elements,
    Format,
    Lock,
    Missing,
    Order,
    Shape,
    Shards,
    Shuffle,
)


class HasToDict(Protocol):
    """A codec of zarr-python."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return the codec as in a document of Zarr v3."""


class HasGetConfig(Protocol):
    """A codec of numcodecs."""

    def get_config(self) -> Mapping[str, Any]:
        """Return the codec as in a document of Zarr v2."""


# A codec of zcore, zarr-python or numcodecs, or a dict as in a document.
CodecLike: TypeAlias = str | Codec | CodecSpec | Mapping[str, Any] | HasToDict | HasGetConfig
CodecsLike: TypeAlias = CodecLike | Sequence[CodecLike]


class HandleKeywords(TypedDict, total=False):
    """How a handle reads and writes."""

    lock: Lock
    missing: Missing
    threads: int | None
    strict: bool
    write_empty_chunks: bool | None
    cache: CacheSize | None


class FormKeywords(HandleKeywords, total=False):
    """How a new array is stored."""

    chunks: Chunks
    shards: Shards | None
    filters: CodecsLike | None
    serializer: CodecLike | str
    compressors: CodecsLike | str | None
    codecs: CodecsLike | None
    order: Order
    zarr_format: Format
    attributes: Attributes | None
    chunk_key_encoding: str | Attributes | None
    dimension_names: DimensionNames | None
    checksum: bool
    overwrite: bool
    config: Attributes | None


class FilledKeywords(FormKeywords, total=False):
    """The same, with the fill value."""

    fill_value: Any


class MemberKeywords(FilledKeywords, total=False):
    """All that describes an array in a group."""

    shape: Shape | None
    dtype: DTypeLike | None
    data: Elements | None


class TypedKeywords(FormKeywords, total=False):
    """How a new array is stored, and the type of its elements."""

    dtype: DTypeLike


class GroupKeywords(HandleKeywords, total=False):
    """All that describes a group in a group."""

    zarr_format: Format
    attributes: Attributes | None
    overwrite: bool


# Keywords of the functions of `zcore` itself, which also take `fsync`, and a place.


class StoredKeywords(HandleKeywords, total=False):
    """How a handle reads and writes, whether a change is on the disk when a call returns, and options of a URL."""

    fsync: bool | None
    storage_options: Attributes | None


class StoredFilledKeywords(FilledKeywords, StoredKeywords, total=False):
    """How a new array is stored, with the fill value."""


class StoredTypedKeywords(StoredFilledKeywords, total=False):
    """The same, with the type of the elements."""

    dtype: DTypeLike | None


class PlacedKeywords(FormKeywords, StoredKeywords, total=False):
    """All that describes a new array but its shape and fill value, and its place."""

    store: StoreLike | None
    path: str | None
    dtype: DTypeLike


class PlacedFilledKeywords(PlacedKeywords, total=False):
    """The same, with the fill value."""

    fill_value: Any


class LikeKeywords(PlacedKeywords, total=False):
    """All that a new array may have that another one has not, but the fill value."""

    shape: Shape


class LikeFilledKeywords(LikeKeywords, total=False):
    """The same, with the fill value."""

    fill_value: Any


class PathlessKeywords(StoredKeywords, total=False):
    """Keywords of `zcore.open` but shape and path."""

    chunks: Chunks
    dtype: DTypeLike | None
    fill_value: Any
    cname: Cname | None
    clevel: int | None
    shuffle: Shuffle | None
    compressors: CodecsLike | str | None
    zarr_format: Format | None
    dimension_separator: Literal["/", "."] | None
    attributes: Attributes | None
    config: Attributes | None


class OpenKeywords(PathlessKeywords, total=False):
    """Keywords of `zcore.open` but the shape."""

    path: str | None


class OpenArrayKeywords(OpenKeywords, total=False):
    """Keywords of `zcore.open_array`."""

    shape: Shape | None


class ConsolidatedKeywords(StoredKeywords, total=False):
    """Keywords of `zcore.open_consolidated`."""

    path: str | None
    zarr_format: Format | None
    attributes: Attributes | None


class OpenGroupKeywords(ConsolidatedKeywords, total=False):
    """Keywords of `zcore.open_group`."""

    use_consolidated: bool | None


class CreateKeywords(MemberKeywords, StoredKeywords, total=False):
    """Keywords of `zcore.create_array`."""

    name: str | None
