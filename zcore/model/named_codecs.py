"""What a caller names a codec by: an object of zcore's, of zarr-python's or of numcodecs', or what documents have."""
from collections.abc import Mapping

from zcore.model.metadata import CodecSpec


def named_codec(codec):
    """Return a codec as a `CodecSpec`, or as a Zarr v3 document has it: a dict, whose members are for who knows codecs.

    Parameters
    ----------
    codec : object
        A `CodecSpec`, a dict, or an object with a method `spec` that returns the one, or `to_dict` that returns the
        other, as zarr-python's codecs have it.

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
            codec = codec.to_dict()
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
