"""The codec chain of a new Zarr v3 array, from the caller's settings, with defaults.

By default, chunks are blosc with a checksum, so damage is always found. Parameters of a codec that depend on the array
are completed, such as the item size of blosc.
"""
from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from zcore.formats.codec_specs import MAX_BLOSC_NBYTES, blosc_spec
from zcore.formats.zarr_v3.chain import check_configuration, parse_codec, render_chain
from zcore.formats.zarr_v3.dtypes import parse_data_type, stored_byte_order
from zcore.model.metadata import CodecSpec, has_varying_items
from zcore.model.named_codecs import named_codec

if TYPE_CHECKING:
    from typing import Any

CHECKSUM = CodecSpec("crc32c")
# Codecs of numcodecs whose documents have the types of their input and their output.
_FILTERS = frozenset(("numcodecs.delta", "numcodecs.fixedscaleoffset", "numcodecs.quantize"))


def new_chain(dtype: np.dtype[Any], chunk_shape: tuple[int, ...], order: str, filters: object,
              serializer: CodecSpec | None, compressors: object, checksum: bool) -> tuple[CodecSpec, ...]:
    """Return the chain of a chunk; see `zcore.formats.zarr_v3.new.new_array`. The serializer is a `CodecSpec` or None.

    By default no codec follows shards, because their chunks could not be read one by one then.
    """
    if math.prod(chunk_shape) * dtype.itemsize <= MAX_BLOSC_NBYTES and (
            filters is serializer is None) and (isinstance(order, str) and order == "C") and (
            isinstance(compressors, str) and compressors == "auto"):
        return _default_chain(dtype, bool(checksum))
    ndim = len(chunk_shape)
    chain = ()
    if not isinstance(order, str) or order not in ("C", "F"):
        raise ValueError(f"order: expected 'C' or 'F', found {order!r:.60}")
    if order == "F":
        if has_varying_items(dtype):
            raise ValueError(f"order: expected 'C' for {dtype}, whose items vary in length, found 'F'")
        if ndim > 1:
            chain = (CodecSpec("transpose", {"order": list(range(ndim))[::-1]}),)
    if filters is not None and not (isinstance(filters, str) and filters == "auto"):
        filters = specs_of(filters, dtype, ndim)
        chain += filters
        dtype = _filtered_type(filters, dtype)
    if serializer is None:
        serializer = _serializer(dtype)
    chain += (serializer,)
    is_sharded = serializer.name == "sharding_indexed"
    if isinstance(compressors, str) and compressors == "auto":
        if is_sharded:
            return chain
        if math.prod(chunk_shape) * dtype.itemsize > MAX_BLOSC_NBYTES:
            raise ValueError(f"chunks of shape {chunk_shape} exceed the {MAX_BLOSC_NBYTES} bytes that blosc takes; "
                             "pass smaller ones, or compressors=")
        chain += (_completed(CodecSpec("blosc"), dtype),)
    elif compressors is not None:
        chain += specs_of(compressors, dtype, ndim)
    if checksum and not is_sharded and chain[-1].name != "crc32c":
        chain += (CHECKSUM,)
    return chain


@lru_cache(maxsize=64)
def _default_chain(dtype, checksum):
    """Return the default chain of a type. Arrays share it, so its text is rendered once."""
    chain = _serializer(dtype), _completed(CodecSpec("blosc"), dtype)
    return (*chain, CHECKSUM) if checksum else chain


def _filtered_type(filters, dtype):
    """Return the type of the items behind filters, as far as their documents tell it."""
    for codec in filters:
        if codec.name == "cast_value" and "data_type" in codec.configuration:
            dtype, _ = parse_data_type(codec.configuration["data_type"], stored_byte_order(dtype) or "<")
        elif codec.name.startswith("numcodecs."):
            made = codec.configuration.get("encode_dtype" if codec.name == "numcodecs.astype" else "astype")
            # The byte order of a filter is ignored; that of the array stays.
            dtype = dtype if made is None else np.dtype(made).newbyteorder(stored_byte_order(dtype) or "=")
    return dtype


def _serializer(dtype):
    if has_varying_items(dtype):
        return CodecSpec("vlen-utf8" if dtype.kind == "T" else "vlen-bytes")
    byte_order = stored_byte_order(dtype)
    if byte_order is None and dtype.names is not None:
        byte_order = "<"  # without meaning, but readers expect it for every structure
    return CodecSpec("bytes", {} if byte_order is None else {"endian": "big" if byte_order == ">" else "little"})


def specs_of(codecs: object, dtype: np.dtype[Any], ndim: int) -> tuple[CodecSpec, ...]:
    """Return one codec of a caller, or several, as a tuple of `CodecSpec`; `dtype` is the input of the first."""
    if not isinstance(codecs, (list, tuple)):
        codecs = (codecs,)
    specs = []
    for codec in codecs:
        specs.append(spec_of(codec, dtype, ndim))
        dtype = _filtered_type(specs[-1:], dtype)
    return tuple(specs)


def spec_of(codec: object, dtype: np.dtype[Any], ndim: int) -> CodecSpec:
    """Return a codec of a caller as a complete `CodecSpec`."""
    codec = named_codec(codec)
    configuration = dict(codec.configuration)
    if codec.name == "sharding_indexed":
        # zarr-python has tuples here.
        configuration = {member: list(value) if isinstance(value, tuple) else value
                         for member, value in configuration.items()}
        for member, items in (("codecs", dtype), ("index_codecs", np.dtype("u8"))):
            if type(configuration.get(member)) is list:
                configuration[member] = render_chain(specs_of(configuration[member], items, ndim))
    codec = _completed(parse_codec({"name": codec.name, "configuration": configuration}, ndim), dtype)
    check_configuration(codec)
    return codec


def _completed(codec, dtype):
    """Return a codec with the members that are missing or None, for items of `dtype`."""
    name = codec.name
    given = {member: value for member, value in codec.configuration.items() if value is not None}
    varying = has_varying_items(dtype)
    itemsize = 1 if varying else dtype.itemsize
    # Readers have no default for these members of numcodecs, or a different one.
    if name in _FILTERS:
        taken = given.get("dtype", dtype.str)
        return CodecSpec(name, {"dtype": taken, "astype": taken, **given})
    if name == "numcodecs.astype":
        return CodecSpec(name, {"decode_dtype": dtype.str, **given})
    if name == "numcodecs.shuffle":
        return CodecSpec(name, {**given, "elementsize": given.get("elementsize") or itemsize})
    if name != "blosc":
        return codec
    return blosc_spec(given, itemsize, shuffle="noshuffle" if varying else None)
