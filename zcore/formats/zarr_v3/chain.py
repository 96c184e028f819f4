"""Codec chains in Zarr v3 documents, and the byte order that they give to the items of an array.

Zarr v3 core, "Chunk encoding". A chain is a list of extension objects, nested where `sharding_indexed` has its own
chains. The codecs interpret their configurations. The format only needs the codec from array to bytes, because the
byte order is a part of the model's type.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.errors import warn
from zcore.formats.codec_specs import BLOSC_SHUFFLES
from zcore.formats.json_documents import shown
from zcore.formats.zarr_v3.dtypes import stored_byte_order
from zcore.formats.zarr_v3.extensions import parse_extension, render_extension
from zcore.model.metadata import CodecSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal

    import numpy as np

_NESTED = ("codecs", "index_codecs")
_WITH_CODECS = ("sharding_indexed", "n5_default", "conditional")
MAX_CODECS = 4096  # in a list; each is some objects of Python, and a name of nine bytes is enough
_OLD_NAMES = {"endian": "bytes"}  # drafts before August 2023
_VARYING = {"T": "vlen-utf8", "O": "vlen-bytes"}
_FIXED = ("bytes", "packbits")  # array-to-bytes codecs that need items of one size
# Members that the specifications of codecs require, although existing chunks can be read without them.
_NEEDED = {"blosc": ("cname", "clevel", "shuffle", "blocksize"), "gzip": ("level",), "transpose": ("order",),
           "zstd": ("level",)}
_NEEDED_TO_READ = {**_NEEDED, "blosc": ("cname", "clevel", "shuffle")}    # some writers leave the other two out
# Array-to-array codecs that keep the type of the items. Only the codec itself knows the type behind another one
# (`delta`, `cast_value`, …).
_KEEP_TYPE = frozenset(("transpose", "reshape", "bitround", "scale_offset", "numcodecs.bitround"))


def parse_chain(value: object, ndim: int) -> tuple[CodecSpec, ...]:
    """Return the tuple of `CodecSpec` of a list of codecs; nested lists are converted to the form of objects.

    No codec is skipped, not even one that need not be understood: elements would be wrong without it.

    Raises : ValueError, if it is no such list.
    """
    if type(value) is not list or not value:
        raise ValueError(f"expected a list of at least one codec, found {shown(value)}")
    if len(value) > MAX_CODECS:
        raise ValueError(f"expected at most {MAX_CODECS} codecs, found {len(value)}")
    codecs = tuple([_readable(parse_codec(codec, ndim)) for codec in value])
    for codec in codecs:
        check_configuration(codec, _NEEDED_TO_READ)
    return codecs


def _readable(codec):
    """Return a codec without what no writer of the format means: the number of threads that blosc had."""
    if codec.name != "blosc" or "nthreads" not in codec.configuration:
        return codec
    warn("codec 'blosc' has no parameter 'nthreads'; ignored")
    return CodecSpec("blosc", {name: value for name, value in codec.configuration.items() if name != "nthreads"})


def check_configuration(codec: CodecSpec, needed: Mapping[str, tuple[str, ...]] = _NEEDED) -> None:
    """Check that the configuration of a `CodecSpec` has the members that are `needed`, and shuffles by their names.

    The codecs check the values. They also accept incomplete configurations.
    """
    name, configuration = codec.name, codec.configuration
    for member in needed.get(name, ()):
        if member not in configuration:
            raise ValueError(f"{name!r} needs the member {member!r} in its configuration")
    if name == "blosc":
        shuffle = configuration.get("shuffle", "noshuffle")
        if shuffle not in BLOSC_SHUFFLES:
            raise ValueError(f"'blosc': expected one of {', '.join(BLOSC_SHUFFLES)} as 'shuffle', found "
                             f"{shown(shuffle)}")
        if needed is _NEEDED and shuffle != "noshuffle" and "typesize" not in configuration:
            raise ValueError(f"'blosc' needs the member 'typesize' in its configuration for the shuffle {shuffle!r}")


def parse_codec(value: object, ndim: int) -> CodecSpec:
    """Return the `CodecSpec` of one codec: a name or an extension object."""
    name, configuration = parse_extension(value)
    name = _OLD_NAMES.get(name, name)
    if name in _WITH_CODECS:
        nested = {member: render_chain(parse_chain(configuration[member], ndim + (member == "index_codecs")))
                  for member in _NESTED if member in configuration}
        configuration = {**configuration, **nested}
    elif name == "transpose" and configuration.get("order") in ("C", "F"):  # drafts before 2023
        step = 1 if configuration["order"] == "C" else -1
        configuration = {**configuration, "order": list(range(ndim))[::step]}
    return CodecSpec(name, configuration)


def render_chain(codecs: Iterable[CodecSpec]) -> list[dict[str, Any]]:
    """Return the list of extension objects of a chain."""
    return [render_extension(codec.name, codec.configuration) for codec in codecs]


def array_to_bytes(codecs: Iterable[CodecSpec]) -> tuple[CodecSpec | None, bool]:
    """Return `(codec, keeps_type)`: the codec from array to bytes, the innermost one of a shard.

    None, if it is not known here. `keeps_type`: no codec before it changes the type of the items.
    """
    keeps_type = True
    for codec in codecs:
        if codec.name == "sharding_indexed":
            inner = codec.configuration.get("codecs")
            if type(inner) is not list or not inner:
                raise ValueError("'sharding_indexed' needs a list of at least one codec as 'codecs'")
            found, inner_keeps = array_to_bytes([CodecSpec(*parse_extension(spec)) for spec in inner])
            return found, keeps_type and inner_keeps
        if codec.name in _FIXED or codec.name in _VARYING.values():
            return codec, keeps_type
        keeps_type = keeps_type and codec.name in _KEEP_TYPE
    return None, keeps_type


def byte_order_of(codecs: Iterable[CodecSpec]) -> Literal["<", ">"] | None:
    """Return ``"<"`` or ``">"``, the byte order in the `bytes` codec of a chain; None without it.

    Raises : ValueError, if it is another one.
    """
    codec, _ = array_to_bytes(codecs)
    endian = None if codec is None or codec.name != "bytes" else codec.configuration.get("endian")
    if endian not in (None, "little", "big"):
        raise ValueError(f"'bytes': expected 'little' or 'big' as 'endian', found {shown(endian)}")
    return {None: None, "little": "<", "big": ">"}[endian]


def check_chain(codecs: Iterable[CodecSpec], dtype: np.dtype[Any], name: str | dict[str, Any]) -> None:
    """Check that a chain can store items of a type.

    Parameters
    ----------
    codecs : sequence of CodecSpec
    dtype : numpy.dtype
    name : str or dict
        The name of the type in the document, for messages.

    Raises
    ------
    ValueError
        If the codec is for items of fixed length and these vary, or the reverse; or the `bytes` codec has not the byte
        order of the type. Fields that differ in byte order are an error, too.
    """
    byte_order = stored_byte_order(dtype)
    codec, keeps_type = array_to_bytes(codecs)
    if codec is None or not keeps_type:
        return
    needed = _VARYING.get(dtype.kind)
    if codec.name != needed if needed else codec.name in _VARYING.values():
        raise ValueError(f"{codec.name!r} cannot store the data type {shown(name)}"
                         + (f", which needs {needed!r}" if needed else ""))
    if codec.name == "bytes" and byte_order is not None:
        endian = "big" if byte_order == ">" else "little"
        if "endian" not in codec.configuration:
            raise ValueError(f"'bytes' needs the member 'endian' in its configuration for the data type {shown(name)}")
        if codec.configuration["endian"] != endian:
            raise ValueError(f"'bytes' says {codec.configuration['endian']!r}, the data type is {endian}-endian")
