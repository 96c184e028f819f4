"""The `__zmeta__` format of early 2016: one array in a directory, every chunk a file that is one blosc chunk.

::

    example.zarr/
        __zmeta__              JSON: shape chunks dtype fill_value cname clevel shuffle   (all mandatory)
        __zattr__              JSON: the user's attributes                               (may be absent: none)
        __zdata__/4.2.blosc    chunk (4, 2), in C order, in the byte order of dtype      (may be absent: fill value)

Source: zarr "Persistence" (2016). The document leaves points open; where arrays written by zarr 0.4 decide them, we
follow the arrays:

- `dtype` may be a list of fields; `fill_value` may be null (undefined, read as zeros), a bare NaN, or a number on any
  type, and means what `ndarray.fill` stores: 0 on ``|S10`` is the character "0", 0 on ``<M8[D]`` is the epoch.
- 0-d arrays are read (their chunk would be ``0.blosc``), never written.
- Members that the document does not name are kept. There is no `order`: chunks are in C order.
- Border chunks are stored in full shape. Arrays from before the document may have cut them at the border; to read those
  is a choice of whoever decodes the chunk, nothing in `__zmeta__` tells.
- Version 0.3 wrote `__zmeta__` as a pickle, which is recognised and never loaded.

NaN and infinities are written as strings, which is JSON; attributes keep Python's bare tokens, which is what their only
other reader knows.
"""
import numpy as np

from zcore.errors import UnsupportedError
from zcore.formats.json_documents import Document, render_json
from zcore.formats.zmeta_fill import parse_fill, render_fill
from zcore.model import node_names
from zcore.model.auto_chunks import normalize_chunks
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.dtypes import byte_order, from_descr, to_descr
from zcore.model.fill_value import fill_bytes, fill_scalar
from zcore.model.metadata import ArrayMetadata, CodecSpec, check_chunk_shape, check_shape, shape_of

name = "zmeta"
names = node_names.ANY
strict_attributes = False  # NaN and infinities are bare tokens, as all writers of this format have them
implies_typesize = True  # that of blosc chunks is the item size of the array
array_document = "__zmeta__"
group_document = None  # an array stands alone
attributes_document = "__zattr__"
node_documents = (array_document,)
consolidated_document = None
chunk_directory = "__zdata__"
with_separator = None  # every document says how chunks are named, or there is one way

MAX_CHUNK_NBYTES = 2**31 - 1 - 16  # c-blosc, BLOSC_MAX_BUFFERSIZE
COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")  # the position is the number in the document
DEFAULTS = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}

_MEMBERS = frozenset(("shape", "chunks", "dtype", "fill_value", "cname", "clevel", "shuffle"))
_CHUNK_KEYS = ChunkKeyEncoding.zmeta()
_PICKLES = (b"\x80", b"(d", b"}q")  # how protocols 2 and later, 0, and 1 begin a dictionary


def parse_node(document, raw, path):
    """Return the metadata that the document of this name describes; see `parse_array`."""
    return parse_array(raw, path)


def parse_array(raw, path):
    """Return the metadata that a `__zmeta__` document describes.

    Parameters
    ----------
    raw : bytes
        The document.
    path : str
        Of the array, for messages.

    Raises
    ------
    MetadataError
        If the document breaks a rule; it names the member.
    UnsupportedError
        If the type is one that zcore cannot read (objects, unknown names), or the document is a pickle.
    """
    if raw.startswith(_PICKLES):
        raise UnsupportedError(
            f"{path or array_document}: the metadata are a pickle, as zarr 0.3 wrote them; pickles are never loaded",
            feature="pickled metadata of zarr 0.3",
        )
    document = Document(raw, path, array_document, bare_constants=True)
    shape = document.checked("shape", check_shape, document.integers("shape", 0))
    chunk_shape = document.checked("chunks", check_chunk_shape, document.integers("chunks", 1), shape)
    dtype = document.checked("dtype", _parse_dtype, document.required("dtype"))
    document.checked("chunks", _check_chunk_nbytes, chunk_shape, dtype)
    raw_fill = document.checked("fill_value", parse_fill, dtype, document.required("fill_value"))
    members = document.members
    return ArrayMetadata(
        shape, dtype, chunk_shape, _CHUNK_KEYS,
        codecs=_chain(
            dtype, document.choice("cname", COMPRESSORS), document.integer("clevel", 0, 9),
            SHUFFLES[document.integer("shuffle", 0, 2)],
        ),
        fill_value=None if members["fill_value"] is None else fill_scalar(dtype, raw_fill),
        fill_bytes=raw_fill,
        zarr_format="zmeta",
        extra={member: value for member, value in members.items() if member not in _MEMBERS},
    )


def render_array(metadata):
    """Return the `__zmeta__` document of an array, byte for byte as zarr of the time wrote it.

    Raises
    ------
    ValueError
        If the format cannot express it: 0-d, another chain of codecs than bytes and blosc, dimension names, a fill
        value that no JSON scalar stands for.
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
    _check_chunk_nbytes(metadata.chunk_shape, metadata.dtype)
    cname, clevel, shuffle = _chain_members(metadata.codecs, metadata.dtype)
    return render_json({
        **metadata.extra,
        "shape": metadata.shape,
        "chunks": metadata.chunk_shape,
        "dtype": to_descr(metadata.dtype),
        "fill_value": None if metadata.fill_value is None else render_fill(metadata.dtype, metadata.fill_bytes),
        "cname": cname,
        "clevel": clevel,
        "shuffle": shuffle,
    })


def parse_attributes(raw, path):
    """Return the attributes that a `__zattr__` document holds; none when it is absent (None).

    Raises : MetadataError, if it is not a JSON object.
    """
    return {} if raw is None else Document(raw, path, attributes_document, bare_constants=True).members


def render_attributes(attributes):
    """Return the `__zattr__` document of a dict of attributes.

    Raises : TypeError, if a name is not a string or a value is not JSON's.
    """
    return render_json(attributes)


def as_dtype(dtype):
    """Return the type that a caller names, as arrays have it.

    Raises : ValueError, TypeError, UnsupportedError, if there is none, or the format cannot store it.
    """
    dtype = np.dtype(dtype)
    if dtype.itemsize == 0:
        raise ValueError(f"data type {dtype.str!r} has items of no bytes; text needs a length, such as 'U10'")
    return from_descr(to_descr(dtype))


def new_array(shape, dtype, chunks=None, fill_value=..., codecs=None, *, compressors=None, cname=None, clevel=None,
              shuffle=None, **others):
    """Return the metadata of an array to be created.

    Parameters
    ----------
    shape : int or sequence of int
        At least one dimension.
    dtype : object
        What `numpy.dtype` takes; stored in canonical form, with its byte order.
    chunks : None, "auto", str, int or sequence of int
        See `zcore.model.auto_chunks.normalize_chunks`; stored in full.
    fill_value : object
        None is undefined; else as `ndarray.fill` takes it, so that 0 on text is the character "0". By default zero or
        empty text, and undefined for structures, in which no scalar is both.
    codecs : sequence of CodecSpec, optional
        ``bytes`` and ``blosc``, the only chain of the format.
    compressors : sequence of CodecSpec, optional
        ``blosc``.
    cname, clevel, shuffle : str, int, and int or str, optional
        Instead of `compressors`: level 0 to 9; 0, 1, 2 or a name. What is not given comes from `DEFAULTS`.
    **others
        What other formats record, and this one refuses.

    Raises
    ------
    ValueError, TypeError, UnsupportedError
        If the format cannot express what is asked for.

    Examples
    --------
    >>> array = new_array((1000000, 1000), "i4", (10000,), fill_value=42, cname="lz4", clevel=3, shuffle=1)
    >>> array.chunk_shape, array.dtype.str, array.chunk_keys.encode((4, 0))
    ((10000, 1000), '<i4', '__zdata__/4.0.blosc')
    """
    if others:
        raise ValueError(f"a __zmeta__ array cannot record {', '.join(others)}")
    shape = shape_of(shape)
    dtype = as_dtype(dtype)
    settings = {"cname": cname, "clevel": clevel, "shuffle": shuffle}
    settings = {setting: value for setting, value in settings.items() if value is not None}
    codecs = compressors if codecs is None else codecs
    if codecs is None:
        chain = _chain(dtype, **{**DEFAULTS, **settings})
    elif settings:
        raise ValueError(f"{', '.join(settings)} and codecs exclude each other")
    else:
        chain = _completed(tuple(codecs), dtype)
    if fill_value is ...:
        fill_value = None if dtype.names is not None else "" if dtype.kind in "SU" else 0
    stored_fill = None if fill_value is None else render_fill(dtype, fill_bytes(dtype, fill_value))
    raw_fill = parse_fill(dtype, stored_fill)  # as a reader of the document will find it: NaN without a payload
    metadata = ArrayMetadata(
        shape, dtype, normalize_chunks(chunks, shape, dtype.itemsize or 1, MAX_CHUNK_NBYTES), _CHUNK_KEYS, chain,
        fill_value=None if stored_fill is None else fill_scalar(dtype, raw_fill), fill_bytes=raw_fill,
        zarr_format="zmeta",
    )
    render_array(metadata)  # what cannot be written down is not made
    return metadata


def _parse_dtype(descr):
    dtype = from_descr(descr, default_order="<")
    if dtype.itemsize == 0:
        raise ValueError("expected a data type with items of at least one byte")
    return dtype


def _check_chunk_nbytes(chunk_shape, dtype):
    nbytes = dtype.itemsize
    for length in chunk_shape:
        nbytes *= length
    if nbytes > MAX_CHUNK_NBYTES:
        raise ValueError(f"expected chunks of at most {MAX_CHUNK_NBYTES} bytes, the limit of blosc, found {nbytes}")


# The codec chain: cname, clevel and shuffle stand for v3's `bytes` and `blosc`.


def _chain(dtype, cname, clevel, shuffle):
    """Return the chain of an array; `shuffle` is a name or its number."""
    if type(shuffle) is int and 0 <= shuffle < len(SHUFFLES):
        shuffle = SHUFFLES[shuffle]
    return _bytes_codec(dtype), CodecSpec("blosc", {
        "cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": _typesize(dtype), "blocksize": 0,
    })


def _bytes_codec(dtype):
    endian = byte_order(dtype)
    return CodecSpec("bytes", {} if endian is None else {"endian": endian})


def _typesize(dtype):
    return dtype.itemsize if dtype.itemsize <= 255 else 1  # what c-blosc makes of larger ones


def _completed(codecs, dtype):
    """Return a chain of `blosc`, or of `bytes` and `blosc`, with everything spelled out that it leaves open."""
    if len(codecs) == 1 and codecs[0].name == "blosc":
        codecs = (_bytes_codec(dtype), *codecs)
    if [codec.name for codec in codecs] != ["bytes", "blosc"]:
        return codecs  # refused when it is rendered
    given = {member: value for member, value in codecs[1].configuration.items() if value is not None}
    configuration = {**DEFAULTS, "shuffle": "bitshuffle" if dtype.itemsize == 1 else "shuffle",
                     "typesize": _typesize(dtype), "blocksize": 0, **given}
    if type(configuration["shuffle"]) is int and 0 <= configuration["shuffle"] < len(SHUFFLES):
        configuration["shuffle"] = SHUFFLES[configuration["shuffle"]]
    return codecs[0], CodecSpec("blosc", configuration)


def _chain_members(codecs, dtype):
    """Return `(cname, clevel, shuffle)` of a chain, as the document has them."""
    names = [codec.name for codec in codecs]
    if "blosc" not in names:
        raise ValueError("the __zmeta__ format always compresses by blosc; clevel=0 stores the bytes as they are")
    if names != ["bytes", "blosc"]:
        raise ValueError(f"a __zmeta__ array is encoded by 'bytes' and 'blosc', not by {names}")
    if codecs[0] != _bytes_codec(dtype):
        raise ValueError(f"the bytes of {dtype.str} are in its own order; {codecs[0].configuration} says another")
    blosc = codecs[1].configuration
    expected = {"cname", "clevel", "shuffle", "typesize", "blocksize"}
    if blosc.keys() != expected:
        raise ValueError(f"blosc is configured by {sorted(expected)}, found {sorted(blosc)}")
    if blosc["cname"] not in COMPRESSORS:
        raise ValueError(f"cname: expected one of {', '.join(COMPRESSORS)}, found {blosc['cname']!r}")
    if type(blosc["clevel"]) is not int or not 0 <= blosc["clevel"] <= 9:
        raise ValueError(f"clevel: expected an integer from 0 to 9, found {blosc['clevel']!r}")
    if blosc["shuffle"] not in SHUFFLES:
        raise ValueError(f"shuffle: expected 0, 1, 2 or one of {', '.join(SHUFFLES)}, found {blosc['shuffle']!r}")
    if blosc["typesize"] != _typesize(dtype) or blosc["blocksize"] != 0:
        raise ValueError(
            f"a __zmeta__ array cannot record typesize {blosc['typesize']} and blocksize {blosc['blocksize']}; "
            f"expected {_typesize(dtype)} and 0"
        )
    return blosc["cname"], blosc["clevel"], SHUFFLES.index(blosc["shuffle"])
