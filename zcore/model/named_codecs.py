"""Codecs as callers name them: objects of zcore, zarr-python or numcodecs, or dicts as in documents."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from zcore.model.metadata import CodecSpec

if TYPE_CHECKING:
    from typing import Any

# Codecs that numcodecs and Zarr v3 configure by the same members. All others of numcodecs have its name before theirs.
_IN_BOTH = ("blosc", "gzip", "vlen-bytes", "vlen-utf8", "zstd")


def named_codec(codec: Any) -> CodecSpec:
    """Return a codec as a `CodecSpec`, whose parameters are unchecked.

    Parameters
    ----------
    codec : object
        A `CodecSpec`, a dict, the name of a codec that needs no configuration, or an object with a method `spec` that
        returns a `CodecSpec` or `to_dict` that returns a dict, like zarr-python's codecs. Members that such an object
        leaves to the array are left out. Also a codec of numcodecs, or a dict with ``"id"`` as in Zarr v2.

    Raises
    ------
    TypeError
        It is none of these, for example a class of codecs, or a dict with members beside name and configuration.

    Examples
    --------
    >>> named_codec("zstd")
    CodecSpec(name='zstd', configuration={})
    >>> named_codec({"id": "zlib", "level": 1})
    CodecSpec(name='numcodecs.zlib', configuration={'level': 1})
    """
    if isinstance(codec, str):
        return CodecSpec(codec)
    if not isinstance(codec, type):
        if hasattr(codec, "spec"):
            codec = codec.spec()
        elif hasattr(codec, "to_dict"):
            codec = _left_open(codec)
        elif hasattr(codec, "get_config"):
            codec = codec.get_config()
    if isinstance(codec, CodecSpec):
        return codec
    if not isinstance(codec, Mapping):
        found = f"the class {codec.__name__}" if isinstance(codec, type) else f"{codec!r:.60}"
        raise TypeError("expected a codec, such as zcore.codecs.BloscCodec(cname='lz4'), or a dict of its name and "
                        f"configuration, found {found}")
    if "id" in codec and "name" not in codec:
        id, configuration = codec["id"], {member: value for member, value in codec.items() if member != "id"}
        return CodecSpec(id if id in _IN_BOTH else f"numcodecs.{id}", configuration)
    if unknown := codec.keys() - {"name", "configuration", "must_understand"}:
        raise TypeError(f"{min(unknown, key=str)!r} is no member of a codec; its parameters are those of "
                        f"'configuration', as in {{'name': 'gzip', 'configuration': {{'level': 5}}}}")
    name, configuration = codec.get("name"), codec.get("configuration")
    if not isinstance(name, str):
        raise TypeError(f"expected a dict with the codec's name, found the name {name!r:.60}")
    if not isinstance(configuration, (Mapping, type(None))):
        raise TypeError(f"expected the configuration of {name!r:.60} as a dict, found {configuration!r:.60}")
    return CodecSpec(name, configuration)


def _left_open(codec):
    """Return the document of a zarr-python codec without the members that it leaves to the array.

    Until the codec is adapted (`evolve_from_array_spec`), these members have values for an array of bytes. The same
    holds for codecs inside shards.
    """
    document = codec.to_dict()
    configuration = dict(document.get("configuration") or {})
    for member in getattr(codec, "_tunable_attrs", ()):
        configuration.pop(member, None)
    for member in ("codecs", "index_codecs"):
        if member in configuration:
            configuration[member] = [named_codec(inner) for inner in getattr(codec, member)]
    return {**document, "configuration": configuration} if configuration else document
