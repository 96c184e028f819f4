"""Metadata of a new Zarr v2 array: chunks, codecs and fill value from the caller's settings, with defaults.

A codec may be given as in v2 documents, as a codec of numcodecs, as a codec of zcore, or as in v3 documents.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from zcore.formats.codec_specs import MAX_BLOSC_NBYTES, check_blosc_nbytes, given_specs
from zcore.formats.zarr_v2.chain import from_chain, to_chain
from zcore.formats.zarr_v2.codecs import SERIALIZER, from_spec, kind_of, unknown_parameters
from zcore.formats.zarr_v2.fill import parse_fill, parse_object_fill, render_fill, render_object_fill
from zcore.model.auto_chunks import normalize_chunks
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.dtypes import from_descr, is_bytes, is_text, numpy_dtype, to_descr
from zcore.model.fill_value import fill_bytes, fill_scalar, naming_fill
from zcore.model.metadata import ArrayMetadata, GroupMetadata, has_varying_items, shape_of
from zcore.model.named_codecs import named_codec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from zcore.typing import Attributes, Chunks, DTypeLike, Order, Shape

DEFAULT_COMPRESSOR: dict[str, Any] = {  # zarr-python 2's
    "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
_OBJECT = np.dtype(object)
_EMPTY_OBJECTS = {"vlen-utf8": "", "vlen-bytes": b""}


def new_array(shape: Shape, dtype: DTypeLike, chunks: Chunks = None, fill_value: Any = ...,
              codecs: Iterable[object] | None = None, *, order: Order = "C", filters: object = None,
              serializer: object = None, compressors: object = "auto", shards: None = None,
              dimension_names: None = None, attributes: Attributes | None = None,
              chunk_key_encoding: ChunkKeyEncoding | Mapping[str, Any] | str | None = None,
              checksum: bool = True) -> ArrayMetadata:
    """Return the metadata of a Zarr v2 array to be created.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : object
        Any argument of `numpy.dtype`; `str` (see `is_text`) and `numpy.dtypes.StringDType` are text of any length,
        `bytes` (see `is_bytes`) bytes of any length, and objects need a codec that encodes them.
    chunks : None, "auto", str, int or sequence of int
        See `zcore.model.auto_chunks.normalize_chunks`.
    fill_value : object
        None is undefined; by default, and for 0, it is zero or empty.
    codecs : sequence, optional
        The chain in Zarr v3's terms, instead of `order`, `filters`, `serializer` and `compressors`.
    order : {"C", "F"}
        Memory order of a chunk.
    filters : sequence, optional
        Codecs before the compressor, of arrays or bytes.
    serializer : object, optional
        The codec that encodes objects, if it is not among the filters.
    compressors : "auto", None, codec or sequence of codecs
        The last one becomes the document's compressor, the others filters.
    shards, dimension_names : None
        Zarr v2 has none.
    attributes : dict, optional
        They become part of the metadata, not of the `.zarray` document.
    chunk_key_encoding : ChunkKeyEncoding, "v2", ".", "/" or dict, optional
        The separator of chunk keys, ``.`` by default; a dict is ``{"name": "v2", "separator": "/"}``.
    checksum : bool
        Without effect: the compressor is the last codec, and a checksum is a filter that the caller names.

    Raises
    ------
    ValueError, TypeError, UnsupportedError
        If the format cannot express the settings.

    Examples
    --------
    >>> array = new_array((100, 100), ">i4", (10, 50), order="F", compressors={"id": "zlib"})
    >>> [codec.name for codec in array.codecs], array.chunk_keys.encode((2, 1))
    (['transpose', 'bytes', 'numcodecs.zlib'], '2.1')
    """
    if shards is not None:
        raise ValueError("a Zarr v2 array has no shards")
    if dimension_names is not None:
        raise ValueError("a Zarr v2 array has no dimension names (xarray reads the attribute '_ARRAY_DIMENSIONS')")
    if not isinstance(order, str) or order not in ("C", "F"):
        raise ValueError(f"order: expected 'C' or 'F', found {order!r:.60}")
    shape = shape_of(shape)
    serializer_id = "vlen-bytes" if is_bytes(dtype) else None
    dtype = as_dtype(dtype)
    if dtype.kind == "T":
        serializer_id = "vlen-utf8"
    stored = _OBJECT if has_varying_items(dtype) else dtype
    if codecs is not None:
        order, configs, compressor = from_chain(given_specs(codecs), stored, len(shape))
    else:
        is_auto = isinstance(compressors, str) and compressors == "auto"
        configs = _configs(filters) + _configs(serializer)
        compressor = None
        if serializer_id is not None and not any(kind_of(config.get("id")) == SERIALIZER for config in configs):
            configs.insert(0, {"id": serializer_id})
        configs += [DEFAULT_COMPRESSOR] if is_auto else _configs(compressors)
    chain = to_chain(order, configs, compressor, stored, len(shape))
    with naming_fill(dtype, fill_value):
        stored, fill_value, raw_fill = (_object_fill(chain, fill_value) if stored is _OBJECT
                                        else (stored, *_fill(stored, fill_value)))
    max_nbytes = MAX_BLOSC_NBYTES if any(codec.name == "blosc" for codec in chain) else None
    chunk_shape = normalize_chunks(chunks, shape, stored.itemsize or 1, max_nbytes)
    if max_nbytes is not None and not has_varying_items(stored):
        check_blosc_nbytes(chunk_shape, stored.itemsize)
    return ArrayMetadata(shape, stored, chunk_shape, _chunk_keys(chunk_key_encoding), chain, fill_value, raw_fill, 2,
                         attributes)


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the data type of arrays for the type that a caller names, without the codec for objects.

    Raises : ValueError, TypeError, UnsupportedError, if it is no type, or Zarr v2 cannot store it.
    """
    if is_bytes(dtype):
        return _OBJECT
    dtype = np.dtypes.StringDType() if is_text(dtype) else numpy_dtype(dtype)
    if dtype.kind == "T":
        return np.dtypes.StringDType()  # without the missing value that the given type may have
    return dtype if dtype.kind == "O" else from_descr(to_descr(dtype))


def new_group(attributes: Attributes | None = None) -> GroupMetadata:
    """Return the metadata of a Zarr v2 group to be created."""
    return GroupMetadata(2, attributes)


def _configs(codecs):
    """Return codecs in any form as in v2 documents, which do not need "auto" and `bytes`."""
    if codecs is None or (isinstance(codecs, str) and codecs == "auto"):
        return []
    if not isinstance(codecs, (list, tuple)):
        codecs = [codecs]
    configs = []
    for codec in codecs:
        if isinstance(codec, Mapping) and "id" in codec:
            configs.append(_checked(codec, codec["id"], "stand beside 'id', as in {'id': 'zlib', 'level': 1}"))
        elif isinstance(codec, str):
            configs.append({"id": codec.removeprefix("numcodecs.")})
        elif hasattr(codec, "get_config") and not isinstance(codec, type):
            configs.append(codec.get_config())
        elif (spec := named_codec(codec)).name != "bytes":
            config = from_spec(spec, None)
            _checked({**spec.configuration, "id": config["id"]}, spec.name, "are those of 'configuration'")
            configs.append(config)
    return configs


def _checked(config, name, where):
    """Return a codec's parameters, of Python, not NumPy. Raises : TypeError, if the codec does not have one of them."""
    if isinstance(config["id"], str) and (unknown := unknown_parameters(config)):
        raise TypeError(f"codec {name!r} has no parameter {unknown[0]!r}; its parameters {where}")
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in config.items()}


def _fill(dtype, value):
    if value is None:
        return None, parse_fill(dtype, None)
    if value is ... or (dtype.kind in "SUV" and isinstance(value, (int, np.integer)) and value == 0):
        raw = bytes(dtype.itemsize)
    else:
        raw = fill_bytes(dtype, value)
    raw = parse_fill(dtype, render_fill(dtype, raw))  # as a reader of the document gets it: NaN without a payload
    return fill_scalar(dtype, raw), raw


def _object_fill(chain, value):
    name = chain[1 if chain[0].name == "transpose" else 0].name
    dtype = np.dtypes.StringDType() if name == "vlen-utf8" else _OBJECT
    if value is ... or (name in _EMPTY_OBJECTS and type(value) is int and value == 0):
        value = _EMPTY_OBJECTS.get(name)
    return dtype, parse_object_fill(name, render_object_fill(name, value)), b""


def _chunk_keys(encoding):
    if isinstance(encoding, Mapping):
        configuration = encoding.get("configuration") or encoding
        if encoding.get("name") != "v2":
            raise ValueError(f"expected the chunk key encoding 'v2', found {encoding.get('name')!r:.60}")
        encoding = configuration.get("separator")
    elif isinstance(encoding, str) and encoding == "v2":
        encoding = None
    if encoding is None or isinstance(encoding, str):
        encoding = ChunkKeyEncoding.v2("." if encoding is None else encoding)
    if not isinstance(encoding, ChunkKeyEncoding):
        raise TypeError(f"chunk_key_encoding: expected 'v2', '.', '/' or a dict, found {encoding!r:.60}")
    if encoding.separator not in (".", "/") or encoding != ChunkKeyEncoding.v2(encoding.separator):
        raise ValueError(f"the chunk keys of a Zarr v2 array are indices joined by '.' or '/', not {encoding!r}")
    return encoding
