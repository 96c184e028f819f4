"""Metadata of a new Zarr v3 array: chunks, codecs and fill value from the caller's settings, with defaults.

In a sharded array the inner chunks and the index have their own checksums. With one for the whole shard, each read
would need the whole shard.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from zcore.buffers import MAX_NDIM
from zcore.formats.codec_specs import MAX_BLOSC_NBYTES
from zcore.formats.zarr_v3.chain import byte_order_of, check_chain, render_chain
from zcore.formats.zarr_v3.dtypes import named_dtype, packed, render_data_type
from zcore.formats.zarr_v3.fill import parse_fill
from zcore.formats.zarr_v3.grids import parse_key_encoding, render_key_encoding
from zcore.formats.zarr_v3.new_chain import CHECKSUM, new_chain, spec_of, specs_of
from zcore.model.auto_chunks import is_listed, normalize_chunks, normalize_grid, whole_dimensions
from zcore.model.chunk_grid import dimensions_of, shown_chunks
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.fill_value import fill_bytes, fill_scalar, naming_fill
from zcore.model.foreign_dtypes import is_foreign
from zcore.model.metadata import ArrayMetadata, CodecSpec, GroupMetadata, has_varying_items, shape_of
from zcore.model.value import IdentityKey, first_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from zcore.typing import Attributes, Chunks, DimensionNames, Order, Shape, Shards

AUTO_SHARD = "64 MiB"
_KEYS = parse_key_encoding("default")
_INDEX_CODECS = (CodecSpec("bytes", {"endian": "little"}), CHECKSUM)


def new_group(attributes: Attributes | None = None) -> GroupMetadata:
    """Return the metadata of a group to be created."""
    return GroupMetadata(3, {} if attributes is None else dict(attributes))


def new_array(shape: Shape, dtype: Any, chunks: Chunks = None, fill_value: Any = ...,
              codecs: Iterable[object] | None = None, *, order: Order = "C",
              dimension_names: DimensionNames | None = None, attributes: Attributes | None = None,
              chunk_key_encoding: ChunkKeyEncoding | Mapping[str, Any] | str | None = None, filters: object = None,
              serializer: object = None, compressors: object = "auto", shards: Shards | None = None,
              checksum: bool = True) -> ArrayMetadata:
    """Return the metadata of an array to be created.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : object
        A name or object of Zarr v3 (``"string"``, ``"bfloat16"``, ``{"name": "struct", …}``), or an argument of
        `numpy.dtype`; `str` is text and `bytes` are bytes of varying length. Byte order is kept. Structures are packed,
        and little-endian if their fields differ.
    chunks : None, "auto", str, int or sequence of (int or sequence of int)
        See `zcore.model.auto_chunks.normalize_grid`: a sequence of lengths in a dimension makes the grid rectilinear.
        In a sharded array, of the inner chunks, which have one shape.
    fill_value : object
        An argument of `numpy.ndarray.fill`, or a mapping of fields for a structure. By default, and for None: zero,
        empty text, NaT.
    codecs : sequence of codec, optional
        The whole chain, which is not changed. It excludes `order`, `filters`, `serializer`, `compressors` and `shards`.
    order : {"C", "F"}
        Of the elements in a chunk; F is a `transpose` ahead of all other codecs.
    dimension_names : sequence of (str or None), optional
    attributes : mapping, optional
    chunk_key_encoding : ChunkKeyEncoding, str or dict, optional
        By default ``c/0/0``.
    filters : sequence of codec, optional
        Array to array.
    serializer : codec, optional
        Array to bytes; by default `bytes`, `vlen-utf8` or `vlen-bytes`, as the type needs.
    compressors : "auto", None, codec or sequence of codec
        Bytes to bytes; ``"auto"`` is blosc with lz4, level 5, and none after shards.
    shards : None, "auto", str, int, sequence of (int or sequence of int), or dict
        Shape of the stored objects, in elements and a multiple of the inner chunks', or their target size. The length
        of a whole dimension (-1) is rounded up to such a multiple. A sequence of lengths in a dimension makes the grid
        rectilinear. A dict has the shape as ``"shape"``, and ``"index_location"``, ``"start"`` or ``"end"``.
    checksum : bool
        End each chunk with a `crc32c` (inside a shard, each inner chunk).

    Returns
    -------
    ArrayMetadata
        A codec above is an argument of `zcore.model.named_codecs.named_codec`.

    Raises
    ------
    ValueError, TypeError, UnsupportedError
        If Zarr v3 cannot express the settings.

    Examples
    --------
    >>> array = new_array((10000, 1000), "f4", (500, 500))
    >>> [codec.name for codec in array.codecs], array.chunk_keys.encode((4, 2))
    (['bytes', 'blosc', 'crc32c'], 'c/4/2')
    """
    shape = shape_of(shape)
    dtype, data_type = named_dtype(dtype)
    if codecs is None:
        serializer = None if isinstance(serializer, str) and serializer == "auto" else serializer
        if serializer is not None:
            serializer = spec_of(serializer, dtype, len(shape))
            dtype = _in_byte_order_of((serializer,), dtype)
        chunk_shape, shard_shape, edges, index_location = _chunks_and_shards(chunks, shards, shape, dtype.itemsize)
        chain = new_chain(dtype, chunk_shape, order, filters, serializer, compressors, checksum)
        if shard_shape is not None:
            chain = (_sharding(chunk_shape, chain, index_location),)
            chunk_shape = shard_shape
    else:
        if (order, filters, serializer, compressors, shards) != ("C", None, None, "auto", None):
            raise ValueError("codecs= is the whole chain; it excludes order, filters, serializer, compressors, shards")
        chain = specs_of(codecs, dtype, len(shape))
        dtype = _in_byte_order_of(chain, dtype)
        chunk_shape, edges = normalize_grid(chunks, shape, dtype.itemsize)
    name = _checked_name(dtype, IdentityKey(chain))
    with naming_fill(dtype, fill_value):
        value, raw = _fill(dtype, fill_value)
    return ArrayMetadata(
        shape, dtype, chunk_shape, _chunk_keys(chunk_key_encoding), chain, value, raw, 3,
        {} if attributes is None else dict(attributes), dimension_names,
        data_type=None if data_type == name else data_type, edges=edges,
    )


@lru_cache(maxsize=64)
def _checked_name(dtype, chain):
    """Return the name of a type in documents. Raises : ValueError, if the chain, an `IdentityKey`, cannot store it."""
    name = render_data_type(dtype)
    check_chain(chain(), dtype, name)
    return name


def _in_byte_order_of(chain, dtype):
    """Return the type in the byte order of the `bytes` codec of a chain, if that has one."""
    byte_order = byte_order_of(chain)
    return dtype if byte_order is None or has_varying_items(dtype) else packed(dtype, byte_order)


# Chunks and shards.


def _chunks_and_shards(chunks, shards, shape, itemsize):
    """Return `(chunk_shape, shard_shape, edges, index_location)`; `shard_shape` is None without shards.

    `edges` are those of the stored objects.
    """
    index_location = "end"
    if shards is None:
        chunk_shape, edges = normalize_grid(chunks, shape, itemsize, MAX_BLOSC_NBYTES)
        return chunk_shape, None, edges, index_location
    if isinstance(shards, Mapping):
        if not {"shape"} <= shards.keys() <= {"shape", "index_location"}:
            raise ValueError(f"shards: expected 'shape' and 'index_location', found {sorted(shards)}")
        index_location = shards.get("index_location", "end")
        if index_location not in ("start", "end"):
            raise ValueError(f"index_location: expected 'start' or 'end', found {index_location!r}")
        shards = shards["shape"]
    if isinstance(shards, str):
        chunk_shape = normalize_chunks(chunks, shape, itemsize, MAX_BLOSC_NBYTES)
        grid_shape = [-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True)]
        counts = normalize_chunks(AUTO_SHARD if shards == "auto" else shards, grid_shape,
                                  math.prod(chunk_shape) * itemsize, what="shards")
        shard_shape = tuple([chunk * count for chunk, count in zip(chunk_shape, counts, strict=True)])
        return chunk_shape, shard_shape, None, index_location
    if is_listed(shards):
        shards = list(first_of(shards, MAX_NDIM))
    shard_shape, edges = normalize_grid(shards, shape, itemsize, what="shards")
    if chunks is None or isinstance(chunks, str):
        target = normalize_chunks(chunks, shard_shape, itemsize, MAX_BLOSC_NBYTES)
        if edges is not None:
            raise ValueError("shards that differ in length need chunks of a given shape")
        return tuple(map(_divisor, shard_shape, target)), shard_shape, None, index_location
    chunk_shape = normalize_chunks(chunks, shape, itemsize)
    # A shard as long as its dimension ends with a whole chunk.
    shard_shape = tuple([-(-shard // chunk) * chunk if is_whole else shard for chunk, shard, is_whole
                         in zip(chunk_shape, shard_shape, whole_dimensions(shards, len(shape)), strict=True)])
    if any([shard % chunk if unequal is None else not unequal.are_multiples_of(chunk) for chunk, (_, shard, unequal)
            in zip(chunk_shape, dimensions_of(shape, shard_shape, edges), strict=True)]):
        raise ValueError(f"shards: expected multiples of the chunk shape {chunk_shape}, found "
                         f"{shown_chunks(shard_shape, edges)}")
    return chunk_shape, shard_shape, edges, index_location


def _divisor(length, target):
    """Return the largest divisor of a shard's length that is at most `target`."""
    smallest = target // 4
    chunk = target
    while length % chunk and chunk > smallest:
        chunk -= 1
    if length % chunk or chunk == 0:
        raise ValueError(f"chunks: no length near {target} divides the shard's length {length}; pass both")
    return chunk


def _sharding(chunk_shape, codecs, index_location):
    return CodecSpec("sharding_indexed", {
        "chunk_shape": list(chunk_shape),
        "codecs": render_chain(codecs),
        "index_codecs": render_chain(_INDEX_CODECS),
        "index_location": index_location,
    })


# Fill value and keys.


def _fill(dtype, value):
    """Return the fill value and its bytes."""
    default = value is ... or value is None
    if dtype.kind == "T":
        if not default and not isinstance(value, str):
            raise ValueError(f"expected text as the fill value of text, found {value!r:.60}")
        return parse_fill(dtype, "" if default else value)
    if dtype.kind == "O":
        if not default and not isinstance(value, (bytes, bytearray)):
            raise ValueError(f"expected bytes as the fill value of bytes, found {value!r:.60}")
        return b"" if default else bytes(value), b""
    if dtype.names is not None and isinstance(value, Mapping):
        if value.keys() != set(dtype.names):
            raise ValueError(f"expected a fill value of the fields {', '.join(dtype.names):.60}, found {value!r:.60}")
        value = tuple([value[label] for label in dtype.names])
    if not default:
        raw = fill_bytes(dtype, value)
    elif dtype.kind in "mM":
        raw = fill_bytes(dtype, "NaT")
    else:
        raw = fill_bytes(dtype, 0) if is_foreign(dtype) else bytes(dtype.itemsize)
    return fill_scalar(dtype, raw), raw


def _chunk_keys(encoding):
    """Return the `ChunkKeyEncoding` that a caller names; the separator may be beside the name, as in zarr-python."""
    if encoding is None:
        return _KEYS
    if isinstance(encoding, ChunkKeyEncoding):
        render_key_encoding(encoding)  # raises if Zarr v3 cannot express it
        return encoding
    if isinstance(encoding, Mapping) and encoding.keys() == {"name", "separator"}:
        encoding = {"name": encoding["name"], "configuration": {"separator": encoding["separator"]}}
    if not isinstance(encoding, (str, dict)):
        raise TypeError(f"chunk_key_encoding: expected a ChunkKeyEncoding, a name or an object, found {encoding!r:.60}")
    return parse_key_encoding(encoding)
