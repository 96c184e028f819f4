"""What Zarr v3 documents say of codecs: their list, and which byte order it gives to the items of an array.

Zarr v3 core, "Chunk encoding". A chain is a list of extension objects, nested where `sharding_indexed` has chains of
its own. What each configuration means is left to the codecs; the format only needs the codec that makes bytes of
elements, since the byte order is a part of the model's type.
"""
from zcore.formats.codec_specs import BLOSC_SHUFFLES
from zcore.formats.json_documents import shown
from zcore.formats.zarr_v3.extensions import parse_extension, render_extension
from zcore.model.metadata import CodecSpec

_NESTED = ("codecs", "index_codecs")
_OLD_NAMES = {"endian": "bytes"}  # drafts before August 2023
_VARYING = {"T": "vlen-utf8", "O": "vlen-bytes"}
_FIXED = ("bytes", "packbits")  # array-to-bytes codecs that need items of one size
# What the texts of codecs ask of every document, though it says nothing about chunks that are there already.
_NEEDED = {"blosc": ("cname", "clevel", "shuffle", "blocksize"), "gzip": ("level",), "transpose": ("order",),
           "zstd": ("level",)}
# Array-to-array codecs behind which items still have the array's type; behind others (`delta`, `cast_value`, …) only
# the codecs themselves can tell.
_KEEP_TYPE = frozenset(("transpose", "reshape", "bitround", "scale_offset", "numcodecs.bitround"))


def parse_chain(value, ndim):
    """Return the tuple of `CodecSpec` of a list of codecs; nested lists are brought to the form of objects.

    No codec is ever skipped, not even one that says it need not be understood: without it elements would be wrong.

    Raises : ValueError, if it is none.
    """
    if type(value) is not list or not value:
        raise ValueError(f"expected a list of at least one codec, found {shown(value)}")
    codecs = tuple([parse_codec(codec, ndim) for codec in value])
    for codec in codecs:
        check_configuration(codec)
    return codecs


def check_configuration(codec):
    """Check that the configuration of a `CodecSpec` is one for documents: complete, and shuffles by their names.

    What values mean is left to the codecs, which may be made of less.
    """
    name, configuration = codec.name, codec.configuration
    for member in _NEEDED.get(name, ()):
        if member not in configuration:
            raise ValueError(f"{name!r} needs the member {member!r} in its configuration")
    if name == "blosc":
        shuffle = configuration["shuffle"]
        if shuffle not in BLOSC_SHUFFLES:
            raise ValueError(f"'blosc': expected one of {', '.join(BLOSC_SHUFFLES)} as 'shuffle', found "
                             f"{shown(shuffle)}")
        if shuffle != "noshuffle" and "typesize" not in configuration:
            raise ValueError(f"'blosc' needs the member 'typesize' in its configuration for the shuffle {shuffle!r}")


def parse_codec(value, ndim):
    """Return the `CodecSpec` of one codec: a name or an extension object."""
    name, configuration = parse_extension(value)
    name = _OLD_NAMES.get(name, name)
    if name == "sharding_indexed":
        nested = {member: render_chain(parse_chain(configuration[member], ndim + (member == "index_codecs")))
                  for member in _NESTED if member in configuration}
        configuration = {**configuration, **nested}
    elif name == "transpose" and configuration.get("order") in ("C", "F"):  # drafts before 2023
        step = 1 if configuration["order"] == "C" else -1
        configuration = {**configuration, "order": list(range(ndim))[::step]}
    return CodecSpec(name, configuration)


def render_chain(codecs):
    """Return the list of extension objects of a chain."""
    return [render_extension(codec.name, codec.configuration) for codec in codecs]


def array_to_bytes(codecs):
    """Return `(codec, keeps_type)`: the codec that makes bytes of elements, the innermost one of a shard.

    None, if the chain has none that is known here. `keeps_type`: no codec before it changes the type of the items.
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


def stored_endian(codecs):
    """Return ``"<"`` or ``">"`` as the `bytes` codec of a chain says, None if it does not or there is none.

    Raises : ValueError, if it says something else.
    """
    codec, _ = array_to_bytes(codecs)
    endian = None if codec is None or codec.name != "bytes" else codec.configuration.get("endian")
    if endian not in (None, "little", "big"):
        raise ValueError(f"'bytes': expected 'little' or 'big' as 'endian', found {shown(endian)}")
    return {None: None, "little": "<", "big": ">"}[endian]


def check_chain(codecs, dtype, order, name):
    """Check that a chain can store items of a type.

    Parameters
    ----------
    codecs : sequence of CodecSpec
    dtype : numpy.dtype
    order : {"<", ">", None}
        Of the type's items of several bytes; None if it has none.
    name : str or dict
        How the document names the type, for messages.

    Raises
    ------
    ValueError
        If items of varying length go to a codec for fixed ones or the other way round, or the `bytes` codec does not
        say the byte order, or another one than the type has.
    """
    codec, keeps_type = array_to_bytes(codecs)
    if codec is None or not keeps_type:
        return
    needed = _VARYING.get(dtype.kind)
    if codec.name != needed if needed else codec.name in _VARYING.values():
        raise ValueError(f"{codec.name!r} cannot store the data type {shown(name)}"
                         + (f", which needs {needed!r}" if needed else ""))
    if codec.name == "bytes" and order is not None:
        endian = "big" if order == ">" else "little"
        if "endian" not in codec.configuration:
            raise ValueError(f"'bytes' needs the member 'endian' in its configuration for the data type {shown(name)}")
        if codec.configuration["endian"] != endian:
            raise ValueError(f"'bytes' says {codec.configuration['endian']!r}, the data type is {endian}-endian")
