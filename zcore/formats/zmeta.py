"""The `__zmeta__` format of early 2016: one array in a directory, every chunk a file that is one blosc chunk.

::

    example.zarr/
        __zmeta__              JSON: shape chunks dtype fill_value cname clevel shuffle   (all mandatory)
        __zattr__              JSON: the user's attributes                               (may be absent: none)
        __zdata__/4.2.blosc    chunk (4, 2), in C order, in the byte order of dtype      (may be absent: fill value)

Source: zarr "Persistence" (2016). Where the document is silent, zcore follows the arrays that zarr 0.4 wrote:

- `dtype` may be a list of fields; `fill_value` may be null (undefined, read as zeros), a bare NaN, or a number on any
  type, and means what `ndarray.fill` stores: 0 on ``|S10`` is the character "0", 0 on ``<M8[D]`` is the epoch.
- 0-d arrays are read (their chunk would be ``0.blosc``), never written.
- Members that the document does not name are kept. There is no `order`: chunks are in C order.
- Border chunks are stored in full shape. Older arrays may have cut them at the border, and `__zmeta__` does not tell;
  the decoder of a chunk has to find out.
- Version 0.3 wrote `__zmeta__` as a pickle, which is recognised and never loaded.

NaN and infinities in `__zmeta__` are written as strings, which is JSON; in attributes as Python's bare tokens, because
the only other reader expects those.
"""
from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from zcore.blosc import COMPRESSORS
from zcore.errors import UnsupportedError
from zcore.formats.base import Format
from zcore.formats.codec_specs import (
    BLOSC_DEFAULTS,
    BLOSC_SHUFFLES,
    MAX_BLOSC_NBYTES,
    blosc_spec,
    blosc_typesize,
    bytes_spec,
    check_blosc_nbytes,
    given_specs,
)
from zcore.formats.json_documents import (
    Document,
    around_shape,
    render_json,
    render_shape,
    scalar_from_json,
    scalar_to_json,
)
from zcore.model.auto_chunks import normalize_chunks
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.dtypes import from_descr, numpy_dtype, to_descr
from zcore.model.fill_value import fill_bytes, fill_scalar, naming_fill, real_to_json
from zcore.model.metadata import ArrayMetadata, CodecSpec, check_chunk_shape, check_shape, shape_of
from zcore.model.value import IdentityKey
from zcore.text.arguments import integer_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from zcore.typing import Chunks, DTypeLike, Shape

_MEMBERS = frozenset(("shape", "chunks", "dtype", "fill_value", "cname", "clevel", "shuffle"))
_CHUNK_KEYS = ChunkKeyEncoding.zmeta()
_PICKLES = (b"\x80", b"(d", b"}q")  # how protocols 2 and later, 0, and 1 begin a dictionary


class Zmeta(Format):
    """The `__zmeta__` format; see `Format`."""

    title: str = "__zmeta__"
    attributes_document: str | None = "__zattr__"
    chunk_directory: str | None = "__zdata__"
    implies_typesize = True
    only_compressor: str | None = "blosc"
    is_standard = False

    def parse_node(self, document: str, raw: bytes, path: str) -> ArrayMetadata:
        if raw.startswith(_PICKLES):
            raise UnsupportedError(
                f"{path or document}: the metadata are a pickle, as zarr 0.3 wrote them; pickles are never loaded",
                feature="pickled metadata of zarr 0.3",
            )
        found = Document(raw, path, document, bare_constants=True)
        shape = found.checked("shape", check_shape, found.integers("shape", 0))
        chunk_shape = found.checked("chunks", check_chunk_shape, found.integers("chunks", 1), shape)
        dtype = found.checked("dtype", _parse_dtype, found.required("dtype"))
        found.checked("chunks", check_blosc_nbytes, chunk_shape, dtype.itemsize)
        raw_fill = found.checked("fill_value", parse_fill, dtype, found.required("fill_value"))
        members = found.members
        return ArrayMetadata(
            shape, dtype, chunk_shape, _CHUNK_KEYS,
            codecs=(bytes_spec(dtype), blosc_spec({
                "cname": found.choice("cname", COMPRESSORS), "clevel": found.integer("clevel", 0, 9),
                "shuffle": found.integer("shuffle", 0, 2),
            }, dtype.itemsize)),
            fill_value=None if members["fill_value"] is None else fill_scalar(dtype, raw_fill),
            fill_bytes=raw_fill,
            zarr_format=self.name,
            extra={member: value for member, value in members.items() if member not in _MEMBERS},
        )

    def render_array(self, metadata: ArrayMetadata) -> bytes:
        """Return the `__zmeta__` document of an array, byte for byte as zarr of the time wrote it.

        Raises
        ------
        ValueError
            If the format cannot express it: 0-d, another chain of codecs than bytes and blosc, dimension names, a fill
            value without a JSON scalar for it.
        UnsupportedError
            If the type has no fixed, portable bytes.
        """
        if not metadata.shape:
            raise ValueError("a __zmeta__ array has at least one dimension")
        if metadata.dimension_names is not None:
            raise ValueError("a __zmeta__ array has no dimension names")
        if metadata.chunk_keys != _CHUNK_KEYS:
            raise ValueError(f"the chunks of a __zmeta__ array are named {_CHUNK_KEYS!r}, not {metadata.chunk_keys!r}")
        if not _MEMBERS.isdisjoint(metadata.extra):
            raise ValueError(f"extra members {sorted(_MEMBERS.intersection(metadata.extra))} are the format's own")
        what = (IdentityKey(metadata.dtype), metadata.chunk_shape, IdentityKey(metadata.codecs),
                metadata.fill_value is None, metadata.fill_bytes)
        if metadata.extra:
            return render_json({**metadata.extra, **_members(*what), "shape": metadata.shape})
        return render_shape(_around_shape(*what), metadata.shape)

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """Return the data type of arrays for the type that a caller names.

        Raises : ValueError, TypeError, UnsupportedError, if it is no type, or the format cannot store it.
        """
        dtype = numpy_dtype(dtype)
        if dtype.itemsize == 0:
            raise ValueError(f"data type {dtype.str!r} has items of no bytes; text needs a length, such as 'U10'")
        return from_descr(to_descr(dtype))

    def new_array(self, shape: Shape, dtype: DTypeLike, chunks: Chunks = None, fill_value: Any = ...,
                  codecs: Iterable[CodecSpec] | None = None, *, compressors: Iterable[CodecSpec] | None = None,
                  cname: str | None = None, clevel: int | None = None, shuffle: int | str | None = None,
                  **others: object) -> ArrayMetadata:
        """Return the metadata of an array to be created.

        Parameters
        ----------
        shape : int or sequence of int
            At least one dimension.
        dtype : object
            Any argument of `numpy.dtype`; stored in canonical form, with its byte order.
        chunks : None, "auto", str, int or sequence of int
            See `zcore.model.auto_chunks.normalize_chunks`; stored in full.
        fill_value : object
            None is undefined; else an argument of `ndarray.fill`, so 0 in text is the character "0". By default zero or
            empty text, and undefined for structures, for which no scalar is both.
        codecs : sequence of codec, optional
            ``bytes`` and ``blosc``, the only chain of the format.
        compressors : sequence of CodecSpec, optional
            ``blosc``.
        cname, clevel, shuffle : str, int, and int or str, optional
            Instead of `compressors`: level 0 to 9; 0, 1, 2 or a name. By default ``"lz4"``, 5 and ``"shuffle"``.
        **others
            Settings of other formats, which are refused.

        Raises
        ------
        ValueError, TypeError, UnsupportedError
            If the format cannot express the settings.

        Examples
        --------
        >>> from zcore.formats import format_of
        >>> zmeta = format_of("zmeta")
        >>> array = zmeta.new_array((1000000, 1000), "i4", (10000, -1), fill_value=42, cname="lz4", clevel=3, shuffle=1)
        >>> array.chunk_shape, array.dtype.str, array.chunk_keys.encode((4, 0))
        ((10000, 1000), '<i4', '__zdata__/4.0.blosc')
        """
        if others:
            raise ValueError(f"a __zmeta__ array cannot record {', '.join(others)}")
        shape = shape_of(shape)
        dtype = self.as_dtype(dtype)
        settings = {"cname": cname, "clevel": clevel, "shuffle": shuffle}
        settings = {setting: value for setting, value in settings.items() if value is not None}
        codecs = compressors if codecs is None else codecs
        if codecs is None:
            chain = bytes_spec(dtype), blosc_spec(settings, dtype.itemsize, shuffle="shuffle")
        elif settings:
            raise ValueError(f"{', '.join(settings)} and codecs exclude each other")
        else:
            chain = _completed(tuple(given_specs(codecs)), dtype)
        if fill_value is ...:
            fill_value = None if dtype.names is not None else "" if dtype.kind in "SU" else 0
        with naming_fill(dtype, fill_value):
            stored_fill = None if fill_value is None else render_fill(dtype, fill_bytes(dtype, fill_value))
        raw_fill = parse_fill(dtype, stored_fill)  # as a reader of the document gets it: NaN without a payload
        metadata = ArrayMetadata(
            shape, dtype, normalize_chunks(chunks, shape, dtype.itemsize or 1, MAX_BLOSC_NBYTES), _CHUNK_KEYS, chain,
            fill_value=None if stored_fill is None else fill_scalar(dtype, raw_fill), fill_bytes=raw_fill,
            zarr_format=self.name,
        )
        self.render_array(metadata)  # raises if the format cannot express the metadata
        return metadata


def _parse_dtype(descr):
    dtype = from_descr(descr, default_order="<")
    if dtype.itemsize == 0:
        raise ValueError("expected a data type with items of at least one byte")
    return dtype


def _members(dtype, chunk_shape, codecs, is_undefined, raw_fill):
    """Return the members of the document that the format names, but the shape.

    Type and codecs are each an `IdentityKey`.
    """
    dtype = dtype()
    check_blosc_nbytes(chunk_shape, dtype.itemsize)
    cname, clevel, shuffle = _chain_members(codecs(), dtype)
    return {
        "chunks": chunk_shape,
        "dtype": to_descr(dtype),
        "fill_value": None if is_undefined else render_fill(dtype, raw_fill),
        "cname": cname,
        "clevel": clevel,
        "shuffle": shuffle,
    }


@lru_cache(maxsize=64)
def _around_shape(*what):
    return around_shape(_members(*what))


# The codec chain: cname, clevel and shuffle are v3's `bytes` and `blosc`.


def _completed(codecs, dtype):
    """Return a chain of `blosc`, or of `bytes` and `blosc`, with all parameters."""
    if len(codecs) == 1 and codecs[0].name == "blosc":
        codecs = (bytes_spec(dtype), *codecs)
    if [codec.name for codec in codecs] != ["bytes", "blosc"]:
        return codecs  # refused when it is rendered
    given = {member: value for member, value in codecs[1].configuration.items() if value is not None}
    return codecs[0], blosc_spec(given, dtype.itemsize)


def _chain_members(codecs, dtype):
    """Return `(cname, clevel, shuffle)` of a chain for the document."""
    names = [codec.name for codec in codecs]
    if "blosc" not in names:
        raise ValueError("the __zmeta__ format always compresses by blosc; clevel=0 stores the bytes as they are")
    if names != ["bytes", "blosc"]:
        raise ValueError(f"a __zmeta__ array is encoded by 'bytes' and 'blosc', not by {names}")
    if codecs[0] != bytes_spec(dtype):
        raise ValueError(f"the bytes of {dtype.str} have its byte order, but {codecs[0].configuration} has another one")
    blosc = codecs[1].configuration
    expected = {*BLOSC_DEFAULTS, "shuffle", "typesize", "blocksize"}
    if blosc.keys() != expected:
        raise ValueError(f"blosc is configured by {sorted(expected)}, found {sorted(blosc)}")
    if not isinstance(blosc["cname"], str) or blosc["cname"] not in COMPRESSORS:
        raise ValueError(f"cname: expected one of {', '.join(COMPRESSORS)}, found {blosc['cname']!r:.60}")
    clevel = integer_of(blosc["clevel"])
    if clevel is None or not 0 <= clevel <= 9:
        raise ValueError(f"clevel: expected an integer from 0 to 9, found {blosc['clevel']!r:.60}")
    if not isinstance(blosc["shuffle"], str) or blosc["shuffle"] not in BLOSC_SHUFFLES:
        raise ValueError(f"shuffle: expected 0, 1, 2 or one of {', '.join(BLOSC_SHUFFLES)}, found {blosc['shuffle']!r}")
    typesize = blosc_typesize(dtype.itemsize)
    if blosc["typesize"] != typesize or blosc["blocksize"] != 0:
        raise ValueError(
            f"a __zmeta__ array cannot record typesize {blosc['typesize']} and blocksize {blosc['blocksize']}; "
            f"expected {typesize} and 0"
        )
    return blosc["cname"], clevel, BLOSC_SHUFFLES.index(blosc["shuffle"])


def parse_fill(dtype: np.dtype[Any], value: object) -> bytes:
    """Return the bytes of the fill value in a document; None, JSON's null, is undefined and reads as zeros.

    Raises : ValueError, if it is no scalar, or the type cannot have it.
    """
    return fill_bytes(dtype, scalar_from_json(dtype, value), cut_text=True)


def render_fill(dtype: np.dtype[Any], raw: bytes) -> Any:
    """Return the JSON scalar for the fill value of bytes `raw`.

    Raises : ValueError, if there is none: text that is not ASCII, fields that no single scalar fills.
    """
    if dtype.names is not None:
        for candidate in _candidates(dtype, raw):
            with suppress(ValueError):
                if fill_bytes(dtype, candidate, cut_text=True) == raw:
                    return candidate
        raise ValueError(
            "a __zmeta__ array cannot record a fill value whose fields differ; expected None, or one scalar that every "
            "field of the data type can hold"
        )
    if dtype.kind in "SV":
        text = raw.rstrip(b"\0")
        if not text.isascii():
            raise ValueError(f"a __zmeta__ array cannot record the fill value {text[:40]!r}: it is not ASCII")
        return text.decode("ascii")
    return scalar_to_json(dtype, raw, real_to_json)


def _candidates(dtype, raw):
    """Yield the scalars that may have filled a structure: the value of each field, as number and as text."""
    yield from (0, False, True)
    for name in dtype.names:
        base, offset = dtype.fields[name][:2]
        base = base.subdtype[0] if base.subdtype else base
        part = raw[offset:offset + base.itemsize]
        if base.names is not None:
            yield from _candidates(base, part)
        elif base.kind not in "SV" or part.isascii():
            value = render_fill(base, part)
            value = value[0] if base.kind == "c" else value
            yield value
            try:
                number = float(value)
            except (ValueError, OverflowError):
                continue
            yield number
            if number.is_integer():
                yield int(value if base.kind in "iumM" else number)
