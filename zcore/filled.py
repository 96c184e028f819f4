"""Arrays made of a value, of an ndarray, or like another one: `numpy`'s functions of these names, with chunks.

Without ``store=`` an array lies in a `MemoryStore` of its own. All keywords but those named here are those of
`zcore.create_array`, to which each of these functions is one call.
"""
import numpy as np

from zcore.api import create_array
from zcore.arrays import Array
from zcore.creation import zero_of
from zcore.stores.memory import MemoryStore

# Keywords that change how elements become bytes: an array that is given one of them has a chain of its own.
_ENCODING = frozenset(("dtype", "chunks", "shards", "filters", "serializer", "compressors", "codecs", "order",
                       "zarr_format", "checksum"))


def create(shape, *, store=None, path=None, dtype="f8", **keywords):
    """Return a new array of `shape`.

    Parameters
    ----------
    shape : int or tuple of int
    store : str, os.PathLike or Store, optional
        By default a `MemoryStore` of its own.
    path : str, optional
        Of the array in the store; its root by default.
    dtype : object
        As for `zcore.create_array`.
    **keywords
        See `zcore.create_array`.

    Returns
    -------
    Array

    >>> create((4, 6), chunks=(2, 3)).nchunks
    4
    """
    return create_array(_store(store), name=path, shape=shape, dtype=dtype, **keywords)


def array(data, *, store=None, path=None, **keywords):
    """Return a new array that holds `data`, what `numpy.asarray` takes, or an `Array`, which is read whole.

    Of an `Array` it has the type, the chunks and all else, too, unless `keywords` say otherwise. These, `store` and
    `path` are as for `create`.

    >>> array([[1, 2], [3, 4]], chunks=(1, 2))[1]
    array([3, 4])
    """
    settings = _settings_like(data, keywords)
    del settings["shape"]
    if isinstance(data, Array):
        settings["attributes"] = keywords.get("attributes", data.attrs.asdict())
    return create_array(_store(store), name=path, data=data, **settings)


def empty(shape, **keywords):
    """Return a new array of which nothing is written: it has the default fill value. `keywords` as for `create`."""
    return create(shape, **keywords)


def full(shape, fill_value, **keywords):
    """Return a new array whose fill value is `fill_value`; `keywords` as for `create`.

    Nothing else is stored: as long as no element is written there is but the document.

    >>> full((2, 2), 7, dtype="i4")[0]
    array([7, 7], dtype=int32)
    """
    return create(shape, fill_value=fill_value, **keywords)


def zeros(shape, **keywords):
    """Return a new array of zeros; `keywords` as for `create`.

    >>> zeros(3, dtype="M8[D]")[0]
    np.datetime64('1970-01-01')
    """
    return full(shape, zero_of(keywords.get("dtype")), **keywords)


def ones(shape, **keywords):
    """Return a new array of ones; `keywords` as for `create`.

    >>> ones((2, 3), dtype="i4")[...].sum()
    np.int64(6)
    """
    return full(shape, 1, **keywords)


def empty_like(a, **keywords):
    """Return a new array of shape and type of `a`; if that is an `Array`, with its fill value, chunks and codecs.

    What `keywords`, those of `create`, say comes first. The codecs are those of `a` only where nothing is said that
    they depend on, and the fill value only where the type is the same but for the order of its bytes. Attributes stay
    behind.

    >>> a = create((4, 6), dtype="i2", chunks=(2, 3), compressors=None)
    >>> b = zeros_like(a, shape=(8, 6))
    >>> b.shape, b.dtype, b.chunks, b.codecs
    ((8, 6), dtype('int16'), (2, 3), (Crc32cCodec(),))
    """
    return create(**_settings_like(a, keywords))


def full_like(a, fill_value, **keywords):
    """Return a new array like `a` whose fill value is `fill_value`; see `empty_like`."""
    return empty_like(a, fill_value=fill_value, **keywords)


def zeros_like(a, **keywords):
    """Return a new array of zeros like `a`; see `empty_like`."""
    return full_like(a, zero_of(_settings_like(a, keywords)["dtype"]), **keywords)


def ones_like(a, **keywords):
    """Return a new array of ones like `a`; see `empty_like`."""
    return full_like(a, 1, **keywords)


def _store(store):
    return MemoryStore() if store is None else store


def _settings_like(a, keywords):
    """Return keywords of `zcore.create_array` for an array like `a`; `keywords` come first."""
    if not isinstance(a, Array):
        a = a if hasattr(a, "dtype") else np.asarray(a)
        return {"shape": a.shape, "dtype": a.dtype, **keywords}
    metadata = a.metadata
    settings = {"shape": a.shape, "dtype": a.dtype, "zarr_format": a.zarr_format}
    if _is_same_type(a.dtype, keywords.get("dtype", a.dtype)):
        settings["fill_value"] = a.fill_value
    if a.dimension_names is not None and "shape" not in keywords:
        settings["dimension_names"] = a.dimension_names
    if not _ENCODING.intersection(keywords):
        settings.update(chunks=_objects_of(metadata), codecs=metadata.codecs)
        if a.zarr_format != "zmeta":
            settings["chunk_key_encoding"] = metadata.chunk_keys
    elif not {"chunks", "shards"}.intersection(keywords):
        sizes = _objects_of(metadata)
        is_sharded = any([codec.name == "sharding_indexed" for codec in metadata.codecs])
        settings.update(chunks=a.chunks, shards=sizes) if is_sharded else settings.update(chunks=sizes)
    return {**settings, **keywords}


def _is_same_type(dtype, asked):
    """Return whether a caller asks for a type again, be it in another byte order."""
    try:
        return np.can_cast(dtype, np.dtype(asked), "equiv")
    except (TypeError, ValueError):
        return False     # a type that only Zarr v3 knows


def _objects_of(metadata):
    """Return the lengths of an array's objects as a new array takes them, whatever its shape."""
    if metadata.edges is None:
        return metadata.chunk_shape
    return [chunk if unequal is None else unequal
            for chunk, unequal in zip(metadata.chunk_shape, metadata.edges, strict=True)]
