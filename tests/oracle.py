"""A plain, slow reader and writer of arrays, which the tests compare zcore with. It knows nothing of zcore.

It decodes and encodes whole objects, one after the other, and leaves all indexing to NumPy. It reads and writes Zarr v3
(regular and rectilinear grids, shards in shards), Zarr v2 and `__zmeta__`, in a directory or in a dict of bytes. Items
of varying length are objects. It raises any exception for what it does not know: documents that a test hands it are
right.
"""
import base64
import gzip
import itertools
import json
import math
import zlib
from collections import namedtuple
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numcodecs
import numpy as np

DOCUMENTS = ("zarr.json", ".zarray", "__zmeta__")
NO_CHUNK = 2**64 - 1  # sharding_indexed v1, "Binary shard format"

# An array as its document describes it: `edges` has the lengths of the chunks of each dimension, up to the end of the
# array or beyond it; `fill` is an array of no dimensions; `encode(chunk)` gives bytes, `decode(data, shape)` a chunk.
Form = namedtuple("Form", ("shape", "dtype", "edges", "key", "fill", "encode", "decode"))


def read(source, path=""):
    """Return the whole array at `path` of a directory, or of a dict of bytes."""
    form = form_of(*document_of(source, path))
    out = filled(form.shape, form.fill)
    for key, part, chunk_shape in chunks_of(form):
        data = get(source, join(path, key))
        if data is not None:
            inside = tuple([slice(p.stop - p.start) for p in part])
            out[part] = form.decode(data, chunk_shape)[inside]
    return out


def write(target, name, document, array, path="", leave_out=False):
    """Write an array under a document.

    Parameters
    ----------
    target : dict or path
    name : str
        Of the document, one of `DOCUMENTS`.
    document : bytes
    array : ndarray
        Of the shape that the document says.
    leave_out : bool
        Whether chunks, and inner chunks of shards, that are all fill value are not stored.
    """
    form = form_of(name, json.loads(document), leave_out)
    assert array.shape == form.shape
    put(target, join(path, name), document)
    for key, part, chunk_shape in chunks_of(form):
        chunk = filled(chunk_shape, form.fill)
        chunk[tuple([slice(p.stop - p.start) for p in part])] = array[part]
        if not (leave_out and is_filled(chunk, form.fill)):
            put(target, join(path, key), form.encode(chunk))


def rewritten(source, path="", leave_out=False):
    """Return a dict of bytes: an array read, and written once more under the same document."""
    found = {}
    name, _ = document_of(source, path)
    write(found, name, get(source, join(path, name)), read(source, path), leave_out=leave_out)
    return found


# Keys and values


def join(path, key):
    """Return the key of something at a path."""
    return f"{path}/{key}" if path else key


def get(source, key):
    """Return the value of a key, or None."""
    if isinstance(source, Mapping):
        return source.get(key)
    file = Path(source, key)
    return file.read_bytes() if file.is_file() else None


def put(target, key, value):
    """Store a value."""
    if isinstance(target, Mapping):
        target[key] = bytes(value)
        return
    file = Path(target, key)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(value)


def document_of(source, path):
    """Return the name of an array's document, and what it says."""
    for name in DOCUMENTS:
        raw = get(source, join(path, name))
        if raw is not None:
            return name, json.loads(raw)
    raise KeyError(f"no array at {path!r}")


# Grids


def chunks_of(form):
    """Yield (key, selection in the array, shape of the chunk), the selection cut at the end of the array."""
    spans = []
    for edges, length in zip(form.edges, form.shape, strict=True):
        starts = itertools.accumulate([0, *edges[:-1]]) if edges else ()
        spans.append([(slice(start, min(start + edge, length)), edge)
                      for start, edge in zip(starts, edges, strict=True)])
    for coords in itertools.product(*[range(len(span)) for span in spans]):
        here = [span[i] for span, i in zip(spans, coords, strict=True)]
        yield form.key(coords), tuple([part for part, _ in here]), tuple([edge for _, edge in here])


def equal_edges(chunk, length):
    """Return the lengths of chunks of a regular grid."""
    return [chunk] * -(-length // chunk) if length else []


def unequal_edges(entry, length):
    """Return the lengths of chunks of one dimension of a rectilinear grid: a number, or numbers and [number, count]."""
    if isinstance(entry, int):
        return equal_edges(entry, length)
    every = [edge for one in entry for edge in ([one] if isinstance(one, int) else [one[0]] * one[1])]
    edges = []
    for edge in every:
        if sum(edges) >= length:
            break
        edges.append(edge)
    assert sum(edges) >= length
    return edges


def filled(shape, fill):
    """Return an array full of one value; bytes of no field are zero."""
    out = np.zeros(shape, fill.dtype)
    if fill.dtype.kind == "O":
        out.fill(fill.item())
    elif fill.dtype.names is None:
        out[...] = fill
    else:
        for field in fill.dtype.names:
            out[field] = fill[field]
    return out


def is_filled(chunk, fill):
    """Return whether all bytes, or items, are those of the fill value."""
    if chunk.dtype.kind == "O":
        return repr(chunk.tolist()) == repr(filled(chunk.shape, fill).tolist())
    return chunk.tobytes() == filled(chunk.shape, fill).tobytes()


# Documents


def form_of(name, document, leave_out=False):
    """Return the `Form` of a document."""
    return {"zarr.json": zarr_v3, ".zarray": zarr_v2, "__zmeta__": zmeta}[name](document, leave_out)


def zarr_v3(document, leave_out):
    """Zarr v3 core, "Array metadata"."""
    assert document["zarr_format"] == 3 and document["node_type"] == "array"
    shape = tuple(document["shape"])
    dtype = data_type(document["data_type"])
    if dtype.kind == "O":
        fill = fill_of_objects(extension(document["data_type"])[0], document["fill_value"])
    else:
        fill = fill_v3(dtype, document["fill_value"])
    name, grid = extension(document["chunk_grid"])
    if name == "regular":
        edges = list(map(equal_edges, grid["chunk_shape"], shape))
    else:
        assert (name, grid["kind"]) == ("rectilinear", "inline")
        edges = list(map(unequal_edges, grid["chunk_shapes"], shape))
    name, encoding = extension(document["chunk_key_encoding"])
    separator = encoding.get("separator", {"default": "/", "v2": "."}[name])

    def key(coords):
        if name == "default":
            return separator.join(["c", *map(str, coords)])
        return separator.join(map(str, coords)) or "0"

    codecs = [extension(codec) for codec in document["codecs"]]
    return Form(shape, dtype, edges, key, fill, lambda chunk: encode(codecs, chunk, fill, leave_out),
                lambda data, shape: decode(codecs, data, dtype, shape, fill))


def zarr_v2(document, leave_out):
    """Zarr v2, "Metadata"."""
    assert document["zarr_format"] == 2
    shape, dtype = tuple(document["shape"]), from_descr(document["dtype"])
    fill_value = document["fill_value"]
    if dtype.kind == "O" and fill_value in (0, None):
        # Of text and bytes: the empty item; of all else what the document says.
        fill_value = {"vlen-utf8": "", "vlen-bytes": b""}.get(document["filters"][0]["id"], fill_value)
    elif dtype.kind == "O" and document["filters"][0]["id"] == "vlen-bytes":
        fill_value = base64.b64decode(fill_value)
    fill = an_object(fill_value) if dtype.kind == "O" else fill_v2(dtype, fill_value)
    separator, order = document.get("dimension_separator", "."), document["order"]
    filters = [numcodecs.get_codec(codec) for codec in document["filters"] or ()]
    compressor = document["compressor"] and numcodecs.get_codec(document["compressor"])

    def encode_chunk(chunk):
        # JSON stores the shape.
        data = chunk if filters and filters[0].codec_id == "json2" else chunk.ravel(order)
        for codec in filters:
            data = codec.encode(data)
        # As bytes: by which item size they are shuffled is said in what comes out.
        return plain(data) if compressor is None else plain(compressor.encode(plain(data)))

    def decode_chunk(data, chunk_shape):
        data = data if compressor is None else plain(compressor.decode(data))
        for codec in reversed(filters):
            data = codec.decode(data)
            if not has_objects(data):
                data = plain(data)
        items = data if has_objects(data) else np.frombuffer(data, dtype)
        return items.reshape(chunk_shape, order=order)

    return Form(shape, dtype, list(map(equal_edges, document["chunks"], shape)),
                lambda coords: separator.join(map(str, coords)) or "0", fill, encode_chunk, decode_chunk)


def zmeta(document, leave_out):
    """Zarr of early 2016, "Persistence"."""
    shape, dtype = tuple(document["shape"]), from_descr(document["dtype"])
    blosc = {"cname": document["cname"], "clevel": document["clevel"],
             "shuffle": ("noshuffle", "shuffle", "bitshuffle")[document["shuffle"]],
             "typesize": dtype.itemsize if dtype.itemsize <= 255 else 1, "blocksize": 0}
    return Form(shape, dtype, list(map(equal_edges, document["chunks"], shape)),
                lambda coords: f"__zdata__/{'.'.join(map(str, coords)) or '0'}.blosc",
                fill_zmeta(dtype, document["fill_value"]),
                lambda chunk: BYTES["blosc"][0](blosc, chunk.tobytes()),
                lambda data, shape: np.frombuffer(BYTES["blosc"][1](blosc, data), dtype).reshape(shape))


def extension(value):
    """Return the name and the configuration of an extension point of Zarr v3."""
    return (value, {}) if isinstance(value, str) else (value["name"], value.get("configuration") or {})


# Types and fill values

NUMBERS = {
    "bool": "b1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2",
    "uint32": "u4", "uint64": "u8", "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8",
    "complex128": "c16",
}
OF_ML_DTYPES = {
    **{name: name for name in (
        "bfloat16", "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
        "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu")},
    "complex_bfloat16": "bcomplex32", "complex_float16": "complex32",
}


def data_type(value):
    """Return the type of Zarr v3, in little-endian order."""
    name, configuration = extension(value)
    if name in NUMBERS:
        return np.dtype("<" + NUMBERS[name])
    if name in OF_ML_DTYPES:
        import ml_dtypes  # not every machine has it
        return np.dtype(getattr(ml_dtypes, OF_ML_DTYPES[name]))
    if name in ("string", "bytes", "variable_length_bytes"):
        return np.dtype(object)
    if name[0] == "r" and name[1:].isdecimal():
        return np.dtype(f"V{int(name[1:]) // 8}")
    if name in ("numpy.datetime64", "numpy.timedelta64"):
        unit = "" if configuration["unit"] == "generic" else f"[{configuration['scale_factor']}{configuration['unit']}]"
        return np.dtype(f"<{'M8' if 'date' in name else 'm8'}{unit}")
    if name == "struct":
        return np.dtype([(field["name"], data_type(field["data_type"])) for field in configuration["fields"]])
    nbytes = configuration["length_bytes"]
    return np.dtype({"null_terminated_bytes": f"S{nbytes}", "fixed_length_utf32": f"<U{nbytes // 4}",
                     "raw_bytes": f"V{nbytes}"}[name])


def from_descr(descr):
    """Return the type of a description as NumPy has it, from JSON."""
    def tuples(fields):
        return [(name, tuples(kind) if isinstance(kind, list) else kind, *map(tuple, shape))
                for name, kind, *shape in fields]

    return np.lib.format.descr_to_dtype(tuples(descr) if isinstance(descr, list) else descr)


def real(value, dtype):
    """Return a number of a type of floats: a number, a name of one that JSON lacks, or its bits."""
    if isinstance(value, str) and value.startswith("0x"):
        return np.frombuffer(int(value, 16).to_bytes(dtype.itemsize, "big"), dtype.newbyteorder(">"))[0]
    return np.array(float(value), dtype)[()]


def an_object(value):
    """Return an array of no dimensions of an object."""
    out = np.empty((), object)
    out[()] = value
    return out


def number(dtype, value):
    """Return a fill value as all formats write the same, as an array of no dimensions; None for other types."""
    out = np.zeros((), dtype)
    if dtype.kind == "f":
        out[...] = real(value, dtype)
    elif dtype.kind == "c":
        part = np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")
        out.real, out.imag = (real(one, part) for one in (value if isinstance(value, list) else (value, 0)))
    elif dtype.kind in "mM":
        out.view(f"{dtype.str[0]}i8")[...] = -2**63 if value == "NaT" else int(value)
    elif dtype.kind in "biuU":
        out[...] = value
    else:
        return None
    return out


def item(dtype, raw):
    """Return an array of no dimensions of the bytes of one item, which may lack zeros at the end."""
    return np.frombuffer(raw.ljust(dtype.itemsize, b"\0"), dtype)[0:1].reshape(())


def fill_v3(dtype, value):
    """Zarr v3 core, "Permitted fill values"."""
    if isinstance(value, dict):
        out = np.zeros((), dtype)
        for name in dtype.names:
            out[name] = fill_v3(dtype[name], value[name])
        return out
    if dtype.isbuiltin == 2:    # of ml_dtypes
        if isinstance(value, str) and value.startswith("0x"):
            return item(dtype, int(value, 16).to_bytes(dtype.itemsize, "little"))
        return np.array(complex(*map(float, value)) if isinstance(value, list) else float(value)).astype(dtype)
    found = number(dtype, value)
    if found is None:
        found = item(dtype, bytes(value) if isinstance(value, list) else base64.b64decode(value))
    return found


def fill_of_objects(name, value):
    """Return a fill value of text or bytes of varying length."""
    if name == "string":
        return an_object(value)
    return an_object(bytes(value) if isinstance(value, list) else base64.b64decode(value))


def fill_v2(dtype, value):
    """Zarr v2, "Fill value encoding"; null is undefined, here zeros, and of dates and durations not a time."""
    if value is None:
        return number(dtype, "NaT") if dtype.kind in "mM" else np.zeros((), dtype)
    found = None if dtype.names else number(dtype, value)
    return item(dtype, base64.b64decode(value)) if found is None else found


def fill_zmeta(dtype, value):
    """What `ndarray.fill` stores; null is undefined, here zeros."""
    if value is None:
        return np.zeros((), dtype)
    if dtype.names is not None:
        out = np.zeros((), dtype)
        for name in dtype.names:
            out[name] = fill_zmeta(dtype[name].base, value)
        return out
    if dtype.kind in "SV":
        return item(dtype, str(value).encode()) if dtype.kind == "S" or isinstance(value, str) else np.zeros((), dtype)
    if dtype.kind == "U":
        value = str(value)
    return number(dtype, value)


# Codecs of Zarr v3


def encode(codecs, data, fill=None, leave_out=False):
    """Return the bytes of a chunk; `codecs` is a list of (name, configuration)."""
    for name, own in codecs:
        if name == "transpose":
            data = data.transpose(own["order"])
        elif name in ITEMS:
            data = np.asarray(codec_of(name, own).encode(np.ascontiguousarray(data).reshape(-1))).reshape(data.shape)
        elif name in VALUES:
            fill = np.zeros((), data.dtype) if fill is None else fill
            data, fill = VALUES[name][0](own, data), VALUES[name][0](own, fill)
        elif name in VARYING:
            data = plain(VARYING[name].encode(np.ascontiguousarray(data).reshape(-1)))
        elif name == "bytes":
            data = data.astype(ordered(data.dtype, own)).tobytes()
        elif name == "sharding_indexed":
            data = encode_shard(own, data, fill, leave_out)
        else:
            data = (BYTES[name][0] if name in BYTES else encode_bytes_of(name))(own, data)
    return data


def decode(codecs, data, dtype, shape, fill=None):
    """Return the chunk of given type and shape that was encoded as bytes."""
    if not codecs:
        return data
    (name, own), rest = codecs[0], codecs[1:]
    if name == "transpose":
        turned = decode(rest, data, dtype, tuple([shape[d] for d in own["order"]]), fill)
        return turned.transpose(np.argsort(own["order"]))
    if name in ITEMS:
        inner = decode(rest, data, np.dtype(own.get("astype") or own["dtype"]), shape)
        items = np.ascontiguousarray(inner).reshape(-1)
        return np.asarray(codec_of(name, own).decode(items)).astype(dtype).reshape(shape)
    if name in VALUES:
        stored = VALUES[name][0](own, np.zeros((), dtype) if fill is None else fill)
        return VALUES[name][1](own, decode(rest, data, stored.dtype, shape, stored), dtype)
    data = decode(rest, data, dtype, shape)
    if name in VARYING:
        return VARYING[name].decode(data).reshape(shape)
    if name == "bytes":
        return np.frombuffer(data, ordered(dtype, own)).astype(dtype).reshape(shape)
    if name == "sharding_indexed":
        return decode_shard(own, data, dtype, shape, fill)
    return BYTES[name][1](own, data) if name in BYTES else plain(codec_of(name, own).decode(data))


def ordered(dtype, own):
    """Return a type in the byte order that `bytes` says."""
    return dtype.newbyteorder({"little": "<", "big": ">"}[own["endian"]]) if "endian" in own else dtype


def shard_of(own, shape):
    """Return (codecs of inner chunks, codecs of the index, its shape, its size in bytes, parts of inner chunks)."""
    chunk_shape = own["chunk_shape"]
    counts = [length // chunk for length, chunk in zip(shape, chunk_shape, strict=True)]
    assert [n * chunk for n, chunk in zip(counts, chunk_shape, strict=True)] == list(shape)
    # With `...`: of an array without dimensions, too, a part is an array.
    parts = {coords: (*[slice(i * chunk, (i + 1) * chunk) for i, chunk in zip(coords, chunk_shape, strict=True)], ...)
             for coords in np.ndindex(*counts)}
    index_codecs = [extension(codec) for codec in own["index_codecs"]]
    n_bytes = len(encode(index_codecs, np.zeros((*counts, 2), "<u8")))
    return [extension(codec) for codec in own["codecs"]], index_codecs, (*counts, 2), n_bytes, parts


def encode_shard(own, chunk, fill, leave_out):
    """sharding_indexed v1: inner chunks one after the other, and an index of (offset, nbytes) before or behind them."""
    codecs, index_codecs, index_shape, n_bytes, parts = shard_of(own, chunk.shape)
    at_start = own.get("index_location", "end") == "start"
    index = np.full(index_shape, NO_CHUNK, "<u8")
    body, offset = [], n_bytes if at_start else 0
    for coords, part in parts.items():
        if not (leave_out and is_filled(chunk[part], fill)):
            body.append(encode(codecs, chunk[part], fill, leave_out))
            index[coords] = offset, len(body[-1])
            offset += len(body[-1])
    index = encode(index_codecs, index)
    return b"".join([index, *body] if at_start else [*body, index])


def decode_shard(own, data, dtype, shape, fill):
    """Return the chunk of a shard; inner chunks that are missing are fill value."""
    codecs, index_codecs, index_shape, n_bytes, parts = shard_of(own, shape)
    raw = data[:n_bytes] if own.get("index_location", "end") == "start" else data[len(data) - n_bytes:]
    index = decode(index_codecs, raw, np.dtype("<u8"), index_shape)
    chunk = filled(shape, fill.astype(dtype))
    for coords, part in parts.items():
        offset, length = index[coords].tolist()
        if (offset, length) != (NO_CHUNK, NO_CHUNK):
            assert offset + length <= len(data)
            chunk[part] = decode(codecs, data[offset:offset + length], dtype, tuple(own["chunk_shape"]), fill)
    return chunk


# Codecs from items to items, by numcodecs.
ITEMS = frozenset(("numcodecs.delta", "numcodecs.fixedscaleoffset"))


# Codecs from items of varying length to bytes.
VARYING = {"vlen-utf8": numcodecs.VLenUTF8(), "vlen-bytes": numcodecs.VLenBytes()}


def codec_of(name, own):
    """Return a codec of numcodecs, under its name in Zarr v3."""
    return numcodecs.get_codec({"id": name.removeprefix("numcodecs."), **own})


def encode_bytes_of(name):
    """Return what encodes bytes by a codec of numcodecs."""
    return lambda own, data: plain(codec_of(name, own).encode(data))


def has_objects(data):
    """Return whether a codec gave an array of items of varying length."""
    return isinstance(data, np.ndarray) and data.dtype.kind == "O"


def plain(data):
    """Return what a codec gave as bytes."""
    return data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()


def blosc(own):
    """Return numcodecs' blosc."""
    shuffle = ("noshuffle", "shuffle", "bitshuffle").index(own["shuffle"])
    return numcodecs.Blosc(own["cname"], own["clevel"], shuffle, own["blocksize"], own.get("typesize", 1))


def crc32c(data):
    """Return the CRC of RFC 3720, appendix B.4, as four bytes.

    >>> crc32c(b"123456789").hex()
    '839206e3'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def crc_table():
    """Return the remainder of each byte by the reversed polynomial."""
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = crc_table()


def with_crc(own, data):
    """Return bytes and their CRC, behind them or before them."""
    return crc32c(data) + data if own.get("location", "end") == "start" else data + crc32c(data)


def without_crc(own, data):
    """Return bytes whose CRC is right, without it."""
    at_start = own.get("location", "end") == "start"
    found, data = (data[:4], data[4:]) if at_start else (data[-4:], data[:-4])
    assert found == crc32c(data)
    return data


def scaled(own, data):
    """scale_offset, in the arithmetic of the array's type."""
    with np.errstate(all="ignore"):
        return (data - fill_v3(data.dtype, own.get("offset", 0))) * fill_v3(data.dtype, own.get("scale", 1))


def unscaled(own, data, dtype):
    """scale_offset, undone."""
    divide = np.floor_divide if dtype.kind in "iu" else np.divide
    with np.errstate(all="ignore"):
        return divide(data, fill_v3(dtype, own.get("scale", 1))) + fill_v3(dtype, own.get("offset", 0))


ROUNDED = {
    "nearest-even": round, "towards-zero": math.trunc, "towards-positive": math.ceil, "towards-negative": math.floor,
    "nearest-away": lambda x: int(math.copysign(1, x)) * math.floor(abs(x) + Fraction(1, 2)),
}


def cast(own, data, dtype, pairs):
    """cast_value: one number after the other. To floats it rounds as NumPy does, or not at all."""
    pairs = [(fill_v3(data.dtype, key), fill_v3(dtype, value)) for key, value in pairs]
    out = np.zeros(data.shape, dtype)
    for coords in np.ndindex(data.shape):
        x = data[coords]
        found = [value for key, value in pairs if key == x or (key != key and x != x)]
        if found:
            out[coords] = found[0]
        elif dtype.kind == "f":
            with np.errstate(all="ignore"):
                out[coords] = x.astype(dtype)
            assert own.get("rounding", "nearest-even") == "nearest-even" or Fraction(out[coords].item()) == x.item()
        else:
            n = ROUNDED[own.get("rounding", "nearest-even")](Fraction(x.item()))
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            if own.get("out_of_range") == "clamp":
                n = min(max(n, low), high)
            elif own.get("out_of_range") == "wrap":
                n = (n - low) % (high - low + 1) + low
            out[coords] = n
    return out


def cast_pairs(own, direction):
    """Return what numbers become whatever they are."""
    return own.get("scalar_map", {}).get(direction, ())


# Codecs of numbers: (encode, decode), the second one with the type of what comes out.
VALUES = {
    "scale_offset": (scaled, unscaled),
    "cast_value": (lambda own, data: cast(own, data, data_type(own["data_type"]), cast_pairs(own, "encode")),
                   lambda own, data, dtype: cast(own, data, dtype, cast_pairs(own, "decode"))),
}

# Codecs from bytes to bytes: (encode, decode), each of the configuration and bytes.
BYTES = {
    "blosc": (lambda own, data: blosc(own).encode(data), lambda own, data: plain(blosc(own).decode(data))),
    "zstd": (lambda own, data: numcodecs.Zstd(own["level"], own["checksum"]).encode(data),
             lambda own, data: plain(numcodecs.Zstd().decode(data))),
    "gzip": (lambda own, data: gzip.compress(data, own["level"], mtime=0), lambda own, data: gzip.decompress(data)),
    "numcodecs.zlib": (lambda own, data: zlib.compress(data, own["level"]), lambda own, data: zlib.decompress(data)),
    "crc32c": (with_crc, without_crc),
    # As numcodecs names it, where the place is part of the configuration.
    "numcodecs.crc32c": (with_crc, without_crc),
}
