"""Shards: objects that hold many chunks, each encoded on its own, and an index that says where each of them lies.

`sharding_indexed` (Zarr v3, codec "sharding_indexed"). What it makes of a shard is in `zcore.codecs.shards`.
"""
from operator import index as exact_index

from zcore.codecs.base import Codec
from zcore.errors import MetadataError
from zcore.model.metadata import CodecSpec
from zcore.model.named_codecs import named_codec

LOCATIONS = ("start", "end")
DEFAULT_CODECS = (CodecSpec("bytes", {"endian": "little"}),)
DEFAULT_INDEX_CODECS = (CodecSpec("bytes", {"endian": "little"}), CodecSpec("crc32c"))
# What may encode an index: its length has to follow from the number of chunks.
FIXED_SIZE = frozenset(("bytes", "transpose", "crc32c", "numcodecs.crc32c", "numcodecs.crc32", "numcodecs.adler32",
                        "numcodecs.fletcher32", "numcodecs.jenkins_lookup3", "numcodecs.shuffle"))


class ShardingCodec(Codec):
    """A shard cut into chunks.

    Parameters
    ----------
    chunk_shape : tuple of int
        Elements of a chunk per dimension; it divides the shard's shape.
    codecs : sequence of codec, dict or CodecSpec
        How a chunk becomes bytes.
    index_codecs : sequence of codec, dict or CodecSpec
        How the index becomes bytes, always as many of them.
    index_location : {"end", "start"}
        Where it stands.

    Raises
    ------
    ValueError
        A parameter is out of its range, or a codec of the index gives bytes of no fixed number.

    >>> ShardingCodec(chunk_shape=(32, 32)).spec().configuration["index_location"]
    'end'
    """

    name = "sharding_indexed"
    kind = "array_bytes"

    def __init__(self, *, chunk_shape, codecs=DEFAULT_CODECS, index_codecs=DEFAULT_INDEX_CODECS, index_location="end"):
        self.chunk_shape = tuple([exact_index(length) for length in chunk_shape])
        if any(length < 1 for length in self.chunk_shape):
            raise ValueError(f"chunk_shape is {self.chunk_shape}, expected lengths of at least 1")
        self.codecs = _specs("codecs", codecs)
        self.index_codecs = _specs("index_codecs", index_codecs)
        for spec in self.index_codecs:
            if spec.name not in FIXED_SIZE:
                raise ValueError(f"index_codecs has {spec.name!r}, expected codecs whose output has a fixed size")
        if index_location not in LOCATIONS:
            raise ValueError(f"index_location is {index_location!r}, expected 'start' or 'end'")
        self.index_location = index_location

    @classmethod
    def from_configuration(cls, configuration):
        """Return the codec of a document's configuration.

        Raises
        ------
        MetadataError
            A member is missing, unknown, or not what it has to be.
        """
        for member in ("chunk_shape", "codecs", "index_codecs"):
            if member not in configuration:
                raise MetadataError(f"sharding_indexed needs {member!r}", member=member)
        for member, value in configuration.items():
            if member not in ("chunk_shape", "codecs", "index_codecs", "index_location"):
                raise MetadataError(f"sharding_indexed has no member {member!r}", member=member)
            if member != "index_location" and not isinstance(value, (list, tuple)):
                raise MetadataError(f"{member} of sharding_indexed: expected a list, found {value!r}", member=member)
        if any(type(length) is not int for length in configuration["chunk_shape"]):
            raise MetadataError(f"chunk_shape of sharding_indexed: expected integers, found "
                                f"{configuration['chunk_shape']!r}", member="chunk_shape")
        try:
            return cls(**configuration)
        except (TypeError, ValueError) as exc:
            raise MetadataError(f"sharding_indexed: {exc}", member="codecs") from exc

    def configuration(self):
        """Return what documents record, a dict."""
        return {"chunk_shape": list(self.chunk_shape), "codecs": _documents(self.codecs),
                "index_codecs": _documents(self.index_codecs), "index_location": self.index_location}

    def __repr__(self):
        return (f"ShardingCodec(chunk_shape={self.chunk_shape}, codecs={_documents(self.codecs)}, "
                f"index_codecs={_documents(self.index_codecs)}, index_location={self.index_location!r})")


def _specs(member, codecs):
    """Return the `CodecSpec` of each codec of a chain."""
    specs = []
    for codec in codecs:
        codec = named_codec(codec)
        if not isinstance(codec, CodecSpec):
            if not isinstance(codec.get("name"), str) or not isinstance(codec.get("configuration", {}), dict):
                raise ValueError(f"{member}: expected a name and a configuration, found {codec!r:.60}")
            codec = CodecSpec(codec["name"], codec.get("configuration"))
        specs.append(codec)
    if not specs:
        raise ValueError(f"{member}: expected at least the codec that makes bytes")
    return tuple(specs)


def _documents(specs):
    """Return a chain as documents write it."""
    return [{"name": spec.name, "configuration": spec.configuration} if spec.configuration else {"name": spec.name}
            for spec in specs]
