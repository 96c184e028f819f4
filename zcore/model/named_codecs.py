"""Codecs as callers name them: objects of zcore, zarr-python or numcodecs, or dicts as in documents."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from zcore.model.metadata import CodecSpec

if TYPE_CHECKING:
    from typing import Any


def named_codec(codec: Any) -> CodecSpec | Mapping[str, Any]:
    """Return a codec as a `CodecSpec`, or as in a Zarr v3 document: a dict, whose members the codecs check.

    Parameters
    ----------
    codec : object
        A `CodecSpec`, a dict, or an object with a method `spec` that returns the former or `to_dict` that returns the
        latter, like zarr-python's codecs. Members that such an object leaves to the array are left out.

    Raises
    ------
    TypeError
        It is none of these, for example a class of codecs or only a name.
    ValueError
        It is a dict with ``"id"`` instead of ``"name"``, as in Zarr v2 and numcodecs.

    Examples
    --------
    >>> named_codec({"id": "zlib", "level": 1})
    Traceback (most recent call last):
    ValueError: Zarr v3 names a codec by 'name', not by 'id': {'name': 'numcodecs.zlib', 'configuration': {'level': 1}}
    """
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
        configuration = {member: value for member, value in codec.items() if member != "id"}
        meant = {"name": f"numcodecs.{codec['id']}", "configuration": configuration}
        raise ValueError(f"Zarr v3 names a codec by 'name', not by 'id': {meant!r:.200}")
    return codec


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
