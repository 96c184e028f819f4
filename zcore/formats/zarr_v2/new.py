"""What a new Zarr v2 array gets: chunks, codecs and fill value from what a caller says, and what he leaves open.

Codecs may be named in any way that users of Zarr know: as v2 documents have them, as codecs of numcodecs, as codecs of
zcore or as v3 documents have them.
"""
import math
from collections.abc import Mapping

import numpy as np

from zcore.formats.codec_specs import MAX_BLOSC_NBYTES
from zcore.formats.zarr_v2.chain import from_chain, to_chain
from zcore.formats.zarr_v2.codecs import SERIALIZER, from_spec, kind_of
from zcore.formats.zarr_v2.fill import parse_fill, parse_object_fill, render_fill, render_object_fill
from zcore.model.auto_chunks import normalize_chunks
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.dtypes import from_descr, is_bytes, is_text, to_descr
from zcore.model.fill_value import fill_bytes, fill_scalar
from zcore.model.metadata import ArrayMetadata, CodecSpec, GroupMetadata, has_varying_items, shape_of
from zcore.model.named_codecs import named_codec

DEFAULT_COMPRESSOR = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}  # zarr-python 2's
_OBJECT = np.dtype(object)
_EMPTY_OBJECTS = {"vlen-utf8": "", "vlen-bytes": b""}


def new_array(shape, dtype, chunks=None, fill_value=..., codecs=None, *, order="C", filters=None, serializer=None,
              compressors="auto", shards=None, dimension_names=None, attributes=None, chunk_key_encoding=None,
              checksum=True):
    """Return the metadata of a Zarr v2 array to be created.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : object
        What `numpy.dtype` takes; `str` (see `is_text`) and `numpy.dtypes.StringDType` are text of any length, `bytes`
        (see `is_bytes`) bytes of any length, and objects need a codec that makes bytes of them.
    chunks : None, "auto", str, int or sequence of int
        See `zcore.model.auto_chunks.normalize_chunks`.
    fill_value : object
        None is undefined; by default, and for 0, it is zero or empty.
    codecs : sequence, optional
        The chain in Zarr v3's terms, instead of `order`, `filters`, `serializer` and `compressors`.
    order : {"C", "F"}
        How elements lie in a chunk.
    filters : sequence, optional
        Codecs in front of the compressor, of arrays or bytes.
    serializer : object, optional
        The codec that makes bytes of objects, if it is not among the filters.
    compressors : "auto", None, codec or sequence of codecs
        The last one becomes the document's compressor, those in front of it filters.
    shards, dimension_names : None
        Zarr v2 has none.
    attributes : dict, optional
        They become part of the value, not of its document.
    chunk_key_encoding : ChunkKeyEncoding, "v2", ".", "/" or dict, optional
        The separator of chunk keys, ``.`` by default; a dict is ``{"name": "v2", "separator": "/"}``.
    checksum : bool
        Without effect: the compressor comes last here, and any checksum is a filter that the caller names.

    Raises
    ------
    ValueError, TypeError, UnsupportedError
        If the format cannot express what is asked for.

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
    if order not in ("C", "F"):
        raise ValueError(f"order: expected 'C' or 'F', found {order!r:.60}")
    shape = shape_of(shape)
    serializer_id = "vlen-bytes" if is_bytes(dtype) else None
    dtype = as_dtype(dtype)
    if dtype.kind == "T":
        serializer_id = "vlen-utf8"
    stored = _OBJECT if has_varying_items(dtype) else dtype
    if codecs is not None:
        order, configs, compressor = from_chain([_spec(codec) for codec in codecs], stored, len(shape))
    else:
        is_auto = isinstance(compressors, str) and compressors == "auto"
        configs = _configs(filters) + _configs(serializer)
        compressor = None
        if serializer_id is not None and not any(kind_of(config.get("id")) == SERIALIZER for config in configs):
            configs.insert(0, {"id": serializer_id})
        configs += [DEFAULT_COMPRESSOR] if is_auto else _configs(compressors)
    chain = to_chain(order, configs, compressor, stored, len(shape))
    if stored is _OBJECT:
        stored, fill_value, raw_fill = _object_fill(chain, fill_value)
    else:
        fill_value, raw_fill = _fill(stored, fill_value)
    max_nbytes = MAX_BLOSC_NBYTES if any(codec.name == "blosc" for codec in chain) else None
    chunk_shape = normalize_chunks(chunks, shape, stored.itemsize or 1, max_nbytes)
    n_bytes = 0 if has_varying_items(stored) else math.prod(chunk_shape) * stored.itemsize
    if max_nbytes is not None and n_bytes > max_nbytes:
        raise ValueError(f"expected chunks of at most {max_nbytes} bytes, the limit of blosc, found {n_bytes}")
    return ArrayMetadata(shape, stored, chunk_shape, _chunk_keys(chunk_key_encoding), chain, fill_value, raw_fill, 2,
                         attributes)


def as_dtype(dtype):
    """Return the type that a caller names, as arrays have it; what makes bytes of objects is another matter.

    Raises : ValueError, TypeError, UnsupportedError, if there is none, or Zarr v2 cannot store it.
    """
    if is_bytes(dtype):
        return _OBJECT
    dtype = np.dtypes.StringDType() if is_text(dtype) else np.dtype(dtype)
    if dtype.kind == "T":
        return np.dtypes.StringDType()  # without the missing value that the caller's may have
    return dtype if dtype.kind == "O" else from_descr(to_descr(dtype))


def new_group(attributes=None):
    """Return the metadata of a Zarr v2 group to be created."""
    return GroupMetadata(2, attributes)


def _configs(codecs):
    """Return codecs, however they are named, as v2 documents have them; "auto" and `bytes` say nothing there."""
    if codecs is None or (isinstance(codecs, str) and codecs == "auto"):
        return []
    if not isinstance(codecs, (list, tuple)):
        codecs = [codecs]
    configs = []
    for codec in codecs:
        if isinstance(codec, Mapping) and "id" in codec:
            configs.append(dict(codec))
        elif hasattr(codec, "get_config"):
            configs.append(codec.get_config())
        elif (spec := _spec(codec)).name != "bytes":
            configs.append(from_spec(spec, None))
    return configs


def _spec(codec):
    """Return a codec of zcore, or one as v3 documents have it, as a `CodecSpec`."""
    codec = named_codec(codec)
    if not isinstance(codec, CodecSpec):
        codec = CodecSpec(codec.get("name"), codec.get("configuration"))
    if type(codec.name) is not str:
        raise TypeError(f"expected a dict with the codec's name, found the name {codec.name!r:.60}")
    return codec


def _fill(dtype, value):
    if value is None:
        return None, parse_fill(dtype, None)
    if value is ... or (dtype.kind in "SUV" and isinstance(value, (int, np.integer)) and value == 0):
        raw = bytes(dtype.itemsize)
    else:
        raw = fill_bytes(dtype, value)
    raw = parse_fill(dtype, render_fill(dtype, raw))  # as a reader of the document will find it: NaN without a payload
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
    if encoding.separator not in (".", "/") or encoding != ChunkKeyEncoding.v2(encoding.separator):
        raise ValueError(f"the chunk keys of a Zarr v2 array are indices joined by '.' or '/', not {encoding!r}")
    return encoding
