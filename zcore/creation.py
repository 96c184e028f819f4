"""How a node is created: what a caller says and leaves open, made into metadata by the format and put into the store.

The functions return bindings; `zcore.api` and `zcore.groups` make of them what the user holds.
"""
from collections.abc import Mapping

import numpy as np

from zcore import blosc, lifecycle, nodes
from zcore.assignment import cast_to
from zcore.codecs.chain import codec_of
from zcore.errors import UnsupportedError, ZcoreError
from zcore.formats import format_of
from zcore.kernel.selection import whole
from zcore.model.metadata import ArrayMetadata, CodecSpec, GroupMetadata
from zcore.model.named_codecs import named_codec
from zcore.options import as_bool
from zcore.stores.keys import prefix_of

# Keywords of a new array whose default leaves the choice to the format, and is not passed on.
_LEFT_OPEN = {
    "shards": None, "filters": None, "serializer": "auto", "compressors": "auto", "codecs": None, "order": "C",
    "chunk_key_encoding": None, "dimension_names": None, "checksum": True, "cname": None, "clevel": None,
    "shuffle": None,
}


def create_array(store, path, options, *, shape=None, dtype=None, data=None, chunks="auto", fill_value=...,
                 zarr_format=3, attributes=None, overwrite=False, **settings):
    """Create an array and return its `Binding`; see `zcore.create_array`."""
    if data is not None:
        if shape is not None:
            raise TypeError("shape= and data= exclude each other: the array has the shape of its data")
        found = np.asarray(data)
        shape, dtype = found.shape, found.dtype if dtype is None else dtype
        # Of lists and numbers NumPy says whether a type holds them; of an array it takes the lowest bits.
        data = found if hasattr(data, "dtype") else data
    if shape is None or dtype is None:
        raise TypeError("creating an array needs shape= and dtype=, or data=")
    unknown = settings.keys() - _LEFT_OPEN.keys()
    if unknown:
        raise TypeError(f"create_array() got an unexpected keyword argument {min(unknown)!r}")
    if "checksum" in settings:
        settings["checksum"] = as_bool(settings["checksum"], "checksum")
    settings = {name: value for name, value in settings.items()
                if type(value) is not type(_LEFT_OPEN[name]) or value != _LEFT_OPEN[name]}
    format = format_of(zarr_format)
    attributes = _checked(attributes)
    overwrite = as_bool(overwrite, "overwrite")
    nodes.check_replaceable(store, path)
    if "compressors" in settings and format.name != 2:  # Zarr v2 also has its own way to name them, and numcodecs'
        settings["compressors"] = specs_of(settings["compressors"])
    if format.attributes_document is None:
        settings["attributes"], attributes = attributes, None
    metadata = format.new_array(shape, dtype, chunks, fill_value, **settings)
    _check_can_compress(metadata.codecs)
    if data is not None:
        data = cast_to(data, metadata.dtype)     # what the type does not hold leaves no array behind
    binding = _put(store, path, format, metadata, attributes, options, overwrite)
    if data is not None:
        try:
            binding.write(whole(metadata.shape), data)
        except ZcoreError as error:
            error.locate(binding.describe())
            raise
    return binding


def create_group(store, path, options, *, zarr_format=3, attributes=None, overwrite=False):
    """Create a group and return its `GroupBinding`; see `zcore.create_group`."""
    format = format_of(zarr_format)
    if format.group_document is None:
        raise UnsupportedError(f"the format {zarr_format!r} has no groups", feature=f"groups of {zarr_format}")
    attributes = _checked(attributes)
    overwrite = as_bool(overwrite, "overwrite")
    nodes.check_replaceable(store, path)
    inline = format.attributes_document is None
    metadata = format.new_group((attributes or {}) if inline else None)
    return _put(store, path, format, metadata, None if inline else attributes, options, overwrite)


def zero_of(dtype):
    """Return the fill value of an array of zeros of a type, as a caller names it.

    Of dates and durations it is 0, as in NumPy; of all others what is not said: zero, or empty text.
    """
    try:
        return 0 if np.dtype(dtype).kind in "mM" else ...
    except (TypeError, ValueError):
        return ...     # a type that only Zarr v3 knows


def create_hierarchy(store, path, below, options, *, overwrite=False):
    """Create the nodes of a mapping of paths relative to `path` to metadata; see `zcore.create_hierarchy`.

    Returns a list of (relative path, binding).
    """
    if not isinstance(below, Mapping):
        raise TypeError(f"nodes are a mapping of paths to metadata, not {type(below).__name__}")
    for name, metadata in below.items():
        if not isinstance(metadata, (ArrayMetadata, GroupMetadata)):
            raise TypeError(f"{name!r}: expected the metadata of an array or a group, found {type(metadata).__name__}")
    below = {nodes.path_of(name, metadata.zarr_format): metadata for name, metadata in below.items()}
    made = []
    for name in sorted(below, key=lambda name: (name.count("/"), name)):   # groups before what they hold
        metadata = below[name]
        if isinstance(metadata, GroupMetadata):
            metadata = metadata.replace(consolidated=None)
        format = format_of(metadata.zarr_format)
        attributes = None if format.attributes_document is None else metadata.attributes
        at = f"{prefix_of(path)}{name}" if name else path
        nodes.check_replaceable(store, at)
        made.append((name, _put(store, at, format, metadata, attributes, options, overwrite)))
    return made


def _put(store, path, format, metadata, attributes, options, overwrite):
    nodes.check_new_names(path, format)
    try:
        return lifecycle.create(store, path, format, metadata, attributes, options, overwrite=overwrite)
    except ZcoreError as error:
        error.locate(store.describe(path))
        raise


def _checked(attributes):
    if attributes is not None and not isinstance(attributes, Mapping):
        raise TypeError(f"attributes are a mapping, not {type(attributes).__name__}")
    return attributes


def _check_can_compress(codecs):
    for codec in codecs:
        cname = codec.configuration.get("cname")
        if codec.name == "blosc" and not blosc.can_compress(cname):
            raise UnsupportedError(
                f"the linked c-blosc cannot compress by {cname}; it has "
                f"{', '.join(filter(blosc.can_compress, blosc.COMPRESSORS))}", feature=cname)


def specs_of(compressors):
    """Return the codecs that a caller named as a tuple of `CodecSpec`; no name stands for none that zcore has."""
    specs = []
    if not isinstance(compressors, (list, tuple)):
        compressors = () if compressors is None else (compressors,)
    for codec in compressors:
        codec = named_codec(codec)
        if not isinstance(codec, CodecSpec):
            codec = codec_of(codec.get("name"), codec.get("configuration") or {}).spec()
        specs.append(codec)
    return tuple(specs)
