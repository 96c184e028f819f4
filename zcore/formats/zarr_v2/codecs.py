"""The codecs of Zarr v2 documents, one by one: ``{"id": "zlib", "level": 1}`` ↔ `CodecSpec` in Zarr v3's terms.

Source: v2.0, "Metadata" (compressor, filters: objects with a string `id`, everything else is the codec's own), and the
codecs' parameters as numcodecs records them. A missing parameter gets numcodecs' default. A parameter that a known
codec does not have is ignored, because v2 is not strict.

A codec that v3 or its registry also has is named as there (``blosc``, ``zstd``, ``gzip``, ``crc32c``, ``bitround``,
``vlen-utf8``, ``vlen-bytes``), with v3's configuration; all others are ``numcodecs.<id>``, configured as in v2. v2's
`packbits` is not v3's: it packs the most significant bit first.

Unknown codecs are kept unchanged: they may be installed elsewhere.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.blosc import COMPRESSORS
from zcore.errors import UnsupportedError
from zcore.formats.codec_specs import BLOSC_SHUFFLES, blosc_spec, blosc_typesize
from zcore.model.dtypes import from_typestr
from zcore.model.metadata import CodecSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ARRAY, SERIALIZER, BYTES = "array to array", "array to bytes", "bytes to bytes"

BLOSC_AUTO_SHUFFLE = -1  # numcodecs: bits for items of one byte, bytes for others

_REQUIRED = object()
_OF_DTYPE = object()  # the default of `astype`: the value of `dtype`
_REFUSED = {
    "pickle": "unpickling runs any code that the data name",
    "json": "its layout is older than that of 'json2'",
    "msgpack": "its layout is older than that of 'msgpack2'",
}


def _integer(minimum, maximum):
    def read(value):
        if type(value) is not int or not minimum <= value <= maximum:
            raise ValueError(f"expected an integer from {minimum} to {maximum}")
        return value
    return read


def _element_nbytes(value):
    # netcdf-c before 4.10 writes texts.
    return _SIZE(int(value) if type(value) is str and value.isascii() and value.isdecimal() else value)


def _spelled(read, words):
    """Return a parser that takes words, too: GDAL writes those of its options."""
    return lambda value: read(words.get(value, value) if type(value) is str else value)


def _level_of_zstd(value):
    """Return the level that the library uses for this one."""
    return max(-131072, min(_ANY_INT32(value), 22))


def _one_of(*choices):
    def read(value):
        if value not in choices or type(value) is not type(choices[0]):
            raise ValueError(f"expected one of {', '.join(map(str, choices))}")
        return value
    return read


def _number(value):
    if type(value) not in (int, float) or value - value != 0:
        raise ValueError("expected a finite number")
    return value


def _labels(value):
    if type(value) is not list or not all(type(label) is str for label in value):
        raise ValueError("expected a list of strings")
    return value


def _typestr(value):
    if type(value) is not str:
        raise ValueError("expected a data type")
    return from_typestr(value, "<").str


def _typestr_or_object(value):
    return "|O" if value in ("|O", "O", "object") else _typestr(value)


_ANY_INT32 = _integer(-2**31, 2**31 - 1)
_SIZE = _integer(0, 2**31 - 1)
_SHUFFLES = _spelled(_integer(-1, 2), {"NONE": 0, "BYTE": 1, "BIT": 2})
_TRUTH = _spelled(_one_of(False, True), {"NO": False, "YES": True})
_DTYPES = {"dtype": (_REQUIRED, _typestr), "astype": (_OF_DTYPE, _typestr)}
_LOCATION = _one_of("start", "end")

# id: (kind, v3's name or None, parameters or None for any); parameter: (default, parser).
_CODECS = {
    "delta": (ARRAY, None, _DTYPES),
    "fixedscaleoffset": (ARRAY, None, {"offset": (_REQUIRED, _number), "scale": (_REQUIRED, _number), **_DTYPES}),
    "quantize": (ARRAY, None, {"digits": (_REQUIRED, _ANY_INT32), **_DTYPES}),
    "bitround": (ARRAY, "bitround", {"keepbits": (_REQUIRED, _integer(0, 52))}),
    "astype": (ARRAY, None, {"encode_dtype": (_REQUIRED, _typestr), "decode_dtype": (_REQUIRED, _typestr)}),
    "packbits": (ARRAY, None, {}),
    "categorize": (ARRAY, None, {"labels": (_REQUIRED, _labels), "dtype": (_REQUIRED, _typestr_or_object),
                                 "astype": ("|u1", _typestr)}),
    "vlen-utf8": (SERIALIZER, "vlen-utf8", {}),
    "vlen-bytes": (SERIALIZER, "vlen-bytes", {}),
    "vlen-array": (SERIALIZER, None, {"dtype": (_REQUIRED, _typestr)}),
    "json2": (SERIALIZER, None, None),
    "msgpack2": (SERIALIZER, None, None),
    "zfpy": (SERIALIZER, None, None),
    "pcodec": (SERIALIZER, None, None),
    "blosc": (BYTES, "blosc", {
        "cname": ("lz4", _one_of(*COMPRESSORS)), "clevel": (5, _integer(0, 9)), "shuffle": (1, _SHUFFLES),
        "blocksize": (0, _integer(0, 2**31 - 17)), "typesize": (None, _integer(1, 2**31 - 1)),
    }),
    "zstd": (BYTES, "zstd", {"level": (0, _level_of_zstd), "checksum": (False, _TRUTH)}),
    "gzip": (BYTES, "gzip", {"level": (1, _integer(-1, 9))}),
    "lz4": (BYTES, None, {"acceleration": (1, _ANY_INT32)}),
    "zlib": (BYTES, None, {"level": (1, _integer(-1, 9))}),
    "bz2": (BYTES, None, {"level": (1, _integer(1, 9))}),
    "lzma": (BYTES, None, None),
    "shuffle": (BYTES, None, {"elementsize": (4, _element_nbytes)}),
    "fletcher32": (BYTES, None, {}),
    "crc32": (BYTES, None, {"location": ("start", _LOCATION)}),
    "adler32": (BYTES, None, {"location": ("start", _LOCATION)}),
    "crc32c": (BYTES, "crc32c", {"location": ("end", _LOCATION)}),
    "jenkins_lookup3": (BYTES, None, None),
    "base64": (BYTES, None, {}),
}
# Recorded only if it is not the default: by numcodecs, and zstd's by zarr-python 3.
_UNRECORDED_DEFAULTS = {("crc32", "location"), ("adler32", "location"), ("crc32c", "location"), ("zstd", "checksum"),
                        ("blosc", "typesize")}
_IDS = {codec[1]: id for id, codec in _CODECS.items() if codec[1] is not None}
# The last codec of a chain becomes the document's compressor if it is one of these.
COMPRESSOR_IDS = frozenset(("blosc", "zstd", "gzip", "lz4", "zlib", "bz2", "lzma", "zfpy", "pcodec"))
OBJECT_CODECS = frozenset(("vlen-utf8", "vlen-bytes", "vlen-array"))  # only for objects


def kind_of(id: str) -> str:
    """Return `ARRAY`, `SERIALIZER` or `BYTES` for a codec; an unknown one goes from bytes to bytes."""
    return _CODECS[id][0] if id in _CODECS else BYTES


def read_config(config: object) -> tuple[str, dict[str, Any]]:
    """Return `(id, parameters)` of a codec in a document, every known parameter checked or set to its default.

    Raises
    ------
    ValueError
        If it is no object with a string `id`, or a parameter of a known codec is missing or out of its range.
    UnsupportedError
        If it is a codec that is never run.
    """
    if type(config) is not dict or type(config.get("id")) is not str or not config["id"]:
        raise ValueError(f"expected codecs as objects with a string 'id', found {config!r:.60}")
    id = config["id"]
    if id in _REFUSED:
        raise UnsupportedError(f"the codec {id!r} is never run: {_REFUSED[id]}", feature=f"codec {id}")
    known = _CODECS[id][2] if id in _CODECS else None
    if known is None:
        return id, {name: value for name, value in config.items() if name != "id"}
    parameters = {}
    for name, (default, read) in known.items():
        value = config.get(name)
        if value is None:
            if default is _REQUIRED:
                raise ValueError(f"{name!r} of codec {id!r}: expected this mandatory parameter, found none")
            parameters[name] = parameters["dtype"] if default is _OF_DTYPE else default
            continue
        try:
            parameters[name] = read(value)
        except ValueError as exc:
            raise ValueError(f"{name!r} of codec {id!r}: {exc}, found {value!r:.60}") from exc
    return id, parameters


def unknown_parameters(config: Mapping[str, Any]) -> list[str]:
    """Return the sorted names of parameters that a known codec does not have; `read_config` drops them."""
    known = _CODECS[config["id"]][2] if config["id"] in _CODECS else None
    return [] if known is None else sorted(config.keys() - known.keys() - {"id"}, key=str)


def to_spec(id: str, parameters: Mapping[str, Any], itemsize: int) -> CodecSpec:
    """Return the `CodecSpec` of a codec that `read_config` has read, for items of `itemsize` bytes."""
    name = _CODECS[id][1] if id in _CODECS else None
    if name == "blosc":
        given = {key: value for key, value in parameters.items() if value is not None}
        if given["shuffle"] == BLOSC_AUTO_SHUFFLE:
            del given["shuffle"]
        return blosc_spec(given, itemsize)
    if name == "gzip" and parameters["level"] < 0:
        return CodecSpec("gzip", {"level": 6})  # zlib's meaning of -1
    if name == "crc32c" and parameters["location"] == "start":
        name = None
    elif name == "zstd":
        return CodecSpec("zstd", parameters)
    return CodecSpec(name or f"numcodecs.{id}", _recorded(id, parameters))


def _recorded(id, parameters):
    """Return the parameters of a codec without defaults that are not recorded."""
    return {key: value for key, value in parameters.items()
            if (id, key) not in _UNRECORDED_DEFAULTS or value != _CODECS[id][2][key][0]}


def from_spec(spec: CodecSpec, itemsize: int | None) -> dict[str, Any]:
    """Return the codec for a v2 document, as numcodecs writes it.

    The item size of a codec is left out of the document if it is the `itemsize` of its input; None is unknown.

    Raises : ValueError, if Zarr v2 has no such codec.

    >>> from_spec(CodecSpec("numcodecs.zlib", {"level": 3}), 4)
    {'id': 'zlib', 'level': 3}
    """
    name, configuration = spec.name, spec.configuration
    id = _IDS.get(name) or name.removeprefix("numcodecs.")
    if id == name and name not in _IDS:
        raise ValueError(f"a Zarr v2 array cannot record the codec {name!r}")
    if name == "blosc":
        configuration = _blosc_v2(configuration, itemsize)
    id, parameters = read_config({**configuration, "id": id})
    return {"id": id, **_recorded(id, parameters)}


def _blosc_v2(configuration, itemsize):
    configuration = dict(configuration)
    shuffle = configuration.get("shuffle")
    if shuffle in BLOSC_SHUFFLES:
        configuration["shuffle"] = BLOSC_SHUFFLES.index(shuffle)
    elif shuffle is None:
        configuration["shuffle"] = BLOSC_AUTO_SHUFFLE
    if itemsize is not None and configuration.get("typesize") == blosc_typesize(itemsize):
        del configuration["typesize"]  # numcodecs uses that of the data, and old versions have no such parameter
    return configuration
