"""An array of zcore as a variable of xarray: its values are read lazily, its dimensions named, its encoding told.

Names of dimensions and the meaning of fill values are those of xarray's own Zarr backend ("Zarr Encoding
Specification" in xarray's documentation). NCZarr's names are those of netcdf-c. CF conventions are left to xarray.
"""
from __future__ import annotations

import asyncio
import struct
from collections import Counter
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.backends.zarr import DIMENSION_KEY, FillValueCoder
from xarray.core import indexing

import zcore
from zcore.codecs.sharding import documents_of
from zcore.formats.zarr_v2.chain import from_chain
from zcore.formats.zarr_v2.fill import parse_fill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# Members and attributes where netcdf-c keeps what NCZarr adds to an array, and in there the dimensions; by versions.
_NCZARR = ("_NCZARR_ARRAY", "_nczarr_array")
_NCZARR_DIMENSIONS = ("dimrefs", "dimension_references", "dimensions")

# Default prefix and separator of chunk keys, which `encoding` leaves out.
_KEYS = {2: ("", "."), 3: ("c", "/")}


class LazyArray(BackendArray):
    """The values of an array, read when they are asked for, in the calling thread or awaited."""

    __slots__ = ("_array", "shape", "dtype")

    def __init__(self, array: zcore.Array) -> None:
        self._array = array
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        array = self._array
        if isinstance(key, indexing.BasicIndexer):
            read = array.read
        elif isinstance(key, indexing.OuterIndexer):
            read = array.get_orthogonal_selection
        else:
            read = array.vindex.__getitem__
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.VECTORIZED, read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        return await asyncio.to_thread(self.__getitem__, key)


class StoredVariable(NamedTuple):
    """An array and all of its attributes, read once."""

    array: zcore.Array
    attributes: dict[str, Any]


def shown(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes without those that netcdf-c hides, and those that name dimensions."""
    return {name: value for name, value in attributes.items()
            if not (name == DIMENSION_KEY or name.lower().startswith("_nc"))}


class Dimensions:
    """The names of the dimensions of all arrays of a dataset, or of a tree of datasets.

    A dimension without a name gets ``dim_0``, ``dim_1`` and so on. Unnamed dimensions of equal length share a name, so
    that arrays of one shape have the same dimensions. Within an array every unnamed dimension has a name of its own.
    No new name is one that the files use already, for a dimension or a variable.

    Parameters
    ----------
    sources : iterable of (str, StoredVariable)
        The name of each variable, and its array.

    Raises
    ------
    MetadataError
        An array names another number of dimensions than it has, or a name is not text.
    """

    def __init__(self, sources: Iterable[tuple[str, StoredVariable]]) -> None:
        sources = list(sources)
        self._declared = {source.array.path: _declared(source) for _, source in sources}
        taken = {name for name, _ in sources}.union(*self._declared.values())
        free = (name for i in count() if (name := f"dim_{i}") not in taken)
        self._made = {}
        for _, source in sources:
            if None in self._declared[source.array.path]:
                for key in self._unnamed(source.array):
                    if key is not None and key not in self._made:
                        self._made[key] = next(free)

    def of(self, array: zcore.Array) -> tuple[str, ...]:
        """Return the names of the dimensions of one of the arrays, a tuple."""
        return tuple([self._made[key] if name is None else name
                      for name, key in zip(self._declared[array.path], self._unnamed(array), strict=True)])

    def _unnamed(self, array):
        """Return for each dimension the parts of its new name: its length, and how many of this length came before."""
        n_before = Counter()
        keys = []
        for length, name in zip(array.shape, self._declared[array.path], strict=True):
            keys.append((length, n_before[length]) if name is None else None)
            n_before[length] += name is None
        return keys


def dims_of(sources: Mapping[str, StoredVariable]) -> dict[str, tuple[str, ...]]:
    """Return the names of the dimensions of each array of a group."""
    dimensions = Dimensions(sources.items())
    return {name: dimensions.of(source.array) for name, source in sources.items()}


def _declared(source):
    """Return a name or None for each dimension of an array, as its documents say."""
    array, attributes = source
    names, member = array.dimension_names, "dimension_names"
    if names is None:
        names, member = attributes.get(DIMENSION_KEY), DIMENSION_KEY
    if names is None:
        names, member = _nczarr_names({**attributes, **array.metadata.extra})
    if names is None:
        return (None,) * array.ndim
    if not isinstance(names, (list, tuple)) or len(names) != array.ndim or any([
            not isinstance(name, (str, type(None))) for name in names]):
        raise zcore.MetadataError(f"{member} is {names!r:.200}, expected a name for each of {array.ndim} dimensions",
                                  place=array.store.describe(array.path), path=array.path, member=member)
    return tuple(names)


def _nczarr_names(members):
    """Return the names that netcdf-c gives to dimensions, and their positions; None for none, and for a scalar."""
    for member in _NCZARR:
        found = members.get(member)
        for key in _NCZARR_DIMENSIONS if isinstance(found, dict) else ():
            names = found.get(key)
            # A scalar has one element in one dimension that is none.
            if isinstance(names, list) and names:
                # They are paths of groups, and names in these.
                return [name.rpartition("/")[2] if isinstance(name, str) else name for name in names], member
    return None, None


def variable_of(source: StoredVariable, dimensions: tuple[str, ...], mask_fill: bool | None = None) -> xarray.Variable:
    """Return the `xarray.Variable` of an array; nothing is read.

    Parameters
    ----------
    source : StoredVariable
    dimensions : tuple of str
    mask_fill : bool, optional
        Elements that are the array's fill value are missing, as those that are ``_FillValue`` in netCDF. By default so
        in Zarr v2 alone, as in xarray's own backend.
    """
    array = source.array
    attributes = shown(source.attributes)
    encoding = _encoding(array, dimensions)
    if array.zarr_format == 2 if mask_fill is None else mask_fill:
        if array.fill_value is not None:
            attributes["_FillValue"] = array.fill_value
    else:
        if array.zarr_format == 3:
            encoding["fill_value"] = array.fill_value
        if "_FillValue" in attributes:
            attributes["_FillValue"] = _decoded_fill(attributes["_FillValue"], array.dtype)
    return xarray.Variable(dimensions, indexing.LazilyIndexedArray(LazyArray(array)), attributes, encoding,
                           fastpath=True)


def _decoded_fill(value, dtype):
    """Return a ``_FillValue`` of an attribute; xarray writes most of them in base64, others write JSON's numbers."""
    try:
        if dtype.kind == "S":     # xarray ignores characters that are not Base64
            return parse_fill(dtype, value).rstrip(b"\0")
        return FillValueCoder.decode(value, {"T": "string"}.get(dtype.kind, dtype))
    except (TypeError, ValueError, struct.error):
        return value


def _encoding(array, dimensions):
    """Return how an array is stored, so that a copy can be stored alike.

    The keys are those of xarray's Zarr backend. Codecs are told as documents of Zarr v3 have them; those of Zarr v2 are
    objects of numcodecs, as zarr-python takes no others there.
    """
    metadata = array.metadata
    if metadata.n_chunks <= 1 and isinstance(array.store, zcore.AsdfStore):
        return {}     # one block of a file; it says nothing of how to store the array in chunks
    write = metadata.chunk_shape if metadata.edges is None else _chunk_lengths(array.write_chunk_sizes)
    is_sharded = any([codec.name == "sharding_indexed" for codec in metadata.codecs])
    if not is_sharded:
        read = write
    else:
        read = array.chunks if metadata.edges is None else _chunk_lengths(array.read_chunk_sizes)
    encoding = {
        "chunks": read,
        "preferred_chunks": dict(zip(dimensions, write, strict=True)),
        "shards": write if is_sharded else None,
    }
    keys = metadata.chunk_keys.prefix, metadata.chunk_keys.separator
    if keys != _KEYS.get(array.zarr_format, keys):
        encoding["chunk_key_encoding"] = {"name": "default" if keys[0] else "v2", "separator": keys[1]}
    if array.zarr_format == 2:
        stored = np.dtype(object) if array.dtype.kind == "T" else array.dtype
        encoding["filters"], encoding["compressors"] = _codecs_of_v2(metadata.codecs, stored, array.ndim)
    else:
        encoding["compressors"] = tuple(map(_document, array.compressors))
        encoding["filters"] = tuple(map(_document, array.filters))
        encoding["serializer"] = _document(array.serializer)
    if array.dtype.kind == "T" or not array.dtype.isnative:
        # Set here, because xarray converts to the native byte order and would record that instead.
        encoding["dtype"] = array.dtype
    return encoding


def _chunk_lengths(sizes):
    """Return the lengths of chunks with one integer for a dimension where the chunks are regular."""
    return tuple([lengths[0] if lengths and len(set(lengths[:-1])) <= 1 and lengths[-1] <= lengths[0]
                  else lengths or (0,) for lengths in sizes])


def _document(codec):
    """Return a codec as documents of Zarr v3 have it."""
    return documents_of([codec.spec()])[0]


@lru_cache(maxsize=64)
def _codecs_of_v2(chain, dtype, ndim):
    """Return filters and compressors as zarr-python has them, two tuples."""
    _, filters, compressor = from_chain(chain, dtype, ndim)
    return (tuple([_of_numcodecs(config) for config in filters or ()]),
            () if compressor is None else (_of_numcodecs(compressor),))


def _of_numcodecs(config):
    """Return the codec of numcodecs that a document of Zarr v2 has, or the document if numcodecs has none."""
    try:
        from numcodecs import get_codec

        return get_codec(config)
    except (ImportError, ValueError):
        return config
