"""What a caller names a codec by: an object of zcore's, of zarr-python's or of numcodecs', or what documents have."""
from collections.abc import Mapping

from zcore.model.metadata import CodecSpec


def named_codec(codec):
    """Return a codec as a `CodecSpec`, or as a Zarr v3 document has it: a dict, whose members the codecs understand.

    Parameters
    ----------
    codec : object
        A `CodecSpec`, a dict, or an object with a method `spec` that returns the one, or `to_dict` that returns the
        other, as zarr-python's codecs have it. Members that these leave to the array are left out.

    Raises
    ------
    TypeError
        It is none of these: a class of codecs, a name alone.
    ValueError
        It is a dict with an ``"id"`` in the place of a name, by which Zarr v2 and numcodecs name codecs.

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
    """Return the document of a codec of zarr-python without the members that it leaves to the array.

    There they have values for an array of bytes until the codec is adapted (`evolve_from_array_spec`), those in shards
    as well.
    """
    document = codec.to_dict()
    configuration = dict(document.get("configuration") or {})
    for member in getattr(codec, "_tunable_attrs", ()):
        configuration.pop(member, None)
    for member in ("codecs", "index_codecs"):
        if member in configuration:
            configuration[member] = [named_codec(inner) for inner in getattr(codec, member)]
    return {**document, "configuration": configuration} if configuration else document
