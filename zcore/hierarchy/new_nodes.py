"""Creates nodes: a format makes metadata from the caller's keywords, which are then written to the store.

The functions return bindings, from which `zcore.api` and `zcore.nodes.group` make arrays and groups.
"""
from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from zcore import blosc
from zcore.codecs.chain import codec_of
from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import GroupBinding
from zcore.engine.options import Options
from zcore.errors import NodeExistsError, UnsupportedError
from zcore.formats import format_of
from zcore.formats.codec_specs import MAX_BLOSC_NBYTES, given_specs
from zcore.hierarchy import creation, exchange, lookup
from zcore.indexing.assign import cast_to, check_complete, in_memory
from zcore.model.dtypes import plain_dtype
from zcore.model.fill_value import fill_bytes, in_order_of_bits, naming_fill
from zcore.model.metadata import ArrayMetadata, GroupMetadata, has_varying_items, unshared
from zcore.model.value import text_of
from zcore.stores.base import SMALL_NBYTES, run_together
from zcore.stores.keys import above, prefix_of
from zcore.stores.memory import MemoryStore
from zcore.text.arguments import as_bool
from zcore.text.characters import fault_of_text
from zcore.text.tried_names import unexpected, with_advice

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import EllipsisType
    from typing import Any, Literal, TypeVar

    from zcore.formats.base import Format
    from zcore.stores.base import Store
    from zcore.typing import Attributes, Chunks, DTypeLike, Elements, Shape
    from zcore.typing import Format as FormatName

    _Found = TypeVar("_Found")

# Attempts to find a node that others create and delete again.
_MAX_TRIES = 20
# Advice for data whose elements all have one of these types.
_FOR_OBJECTS = {int: "dtype='f8' rounds integers of more than 64 bits", str: "dtype=str is for text",
                bytes: "dtype=bytes is for bytes", date: "dtype='M8[D]' is for dates",
                datetime: "dtype='M8[us]' is for times",
                dict: "arrays by their names are keywords of zcore.save, as in save(store, **arrays)"}
# Codecs that refuse some values of their type.
_CHOOSY = ("cast_value", "scale_offset")
# Keywords of a new array whose default lets the format choose, and is not passed on.
_LEFT_OPEN = {
    "shards": None, "filters": None, "serializer": "auto", "compressors": "auto", "codecs": None, "order": "C",
    "chunk_key_encoding": None, "dimension_names": None, "checksum": True, "cname": None, "clevel": None,
    "shuffle": None,
}


def create_array(store: Store, path: str, options: Options, *, overwrite: bool = False,
                 **keywords: Any) -> ArrayBinding:
    """Create an array and return its `ArrayBinding`; see `zcore.create_array`."""
    overwrite = as_bool(overwrite, "overwrite")
    return new_array(**keywords).create(store, path, options, overwrite)


def create_group(store: Store, path: str, options: Options, *, overwrite: bool = False,
                 **keywords: Any) -> GroupBinding:
    """Create a group and return its `GroupBinding`; see `zcore.create_group`."""
    overwrite = as_bool(overwrite, "overwrite")
    return new_group(**keywords).create(store, path, options, overwrite)


def new_array(*, shape: Shape | None = None, dtype: DTypeLike | None = None, data: Elements | None = None,
              chunks: Chunks = "auto", fill_value: Any = ..., zarr_format: FormatName = 3,
              attributes: Attributes | None = None, **settings: Any) -> creation.NewNode:
    """Return the `NewNode` of an array; see `zcore.create_array`."""
    if settings and (unknown := settings.keys() - _LEFT_OPEN.keys()):
        raise TypeError(unexpected("create_array", min(unknown), (
            *new_array.__kwdefaults__, *_LEFT_OPEN, *Options.MEANT, "overwrite")))
    if data is not None:
        if shape is not None:
            raise TypeError("shape= and data= exclude each other: the array has the shape of its data")
        found = in_memory(data)      # if it is masked, it is refused below
        if dtype is None and found.dtype.kind == "O":
            dtype = _type_of_objects(data, found, format_of(zarr_format))
        shape, dtype = found.shape, found.dtype if dtype is None else dtype
        # NumPy refuses numbers in a list that the type does not hold. For numbers in an array it takes the lowest bits.
        data = found if hasattr(data, "dtype") else data
    if shape is None or dtype is None:
        raise TypeError("creating an array needs shape= and dtype=, or data=")
    if hasattr(dtype, "to_native_dtype"):
        dtype = plain_dtype(dtype)
    if isinstance(chunks, bool):
        chunks = "auto" if chunks else -1     # as h5py and zarr-python write it
    if settings:
        if "checksum" in settings:
            settings["checksum"] = as_bool(settings["checksum"], "checksum")
        settings = {name: value for name, value in settings.items()
                    if type(value) is not type(_LEFT_OPEN[name]) or value != _LEFT_OPEN[name]}
    format = format_of(zarr_format)
    if format.is_standard and (blosc_only := settings.keys() & {"cname", "clevel", "shuffle"}):
        name = min(blosc_only)
        raise TypeError(with_advice(f"{name}= is of __zmeta__ arrays, and this one is of {format.title}", name))
    attributes = _checked(attributes)
    if "compressors" in settings:
        settings["compressors"] = compressors_for(format, settings["compressors"])
    inline, metadata = None, None
    if format.has_inline_attributes:
        inline, attributes = dict(attributes or ()), None
    if not settings and fill_value is ... and _is_plain(shape, dtype, chunks):
        metadata = _plain_array(format, dtype, len(shape)).resized(shape, inline, chunks)
    if metadata is None or metadata.chunk_nbytes > MAX_BLOSC_NBYTES:
        if inline is not None:
            settings["attributes"] = inline
        if isinstance(fill_value, np.void) and (fault := fault_of_text(np.asarray(fill_value))):
            raise ValueError(fault)
        metadata = format.new_array(shape, dtype, chunks, fill_value, **settings)
        if fill_value is not None and fill_value is not ...:
            _check_fill(format, metadata, fill_value)
        _check_can_compress(metadata.codecs)
    if data is not None:
        data = cast_to(data, metadata.dtype)     # an error here leaves no array behind
        if fault := fault_of_text(data):
            raise ValueError(fault)
    new = creation.NewNode(format, metadata, attributes, data)
    if data is not None and _may_refuse(metadata):
        # The codecs may refuse elements, so they are tried before anything is replaced.
        new.create(MemoryStore(), "", Options(), False)
    return new


def _is_plain(shape, dtype, chunks):
    """Return whether the arguments are a name and tuples of lengths, as most callers write them."""
    if type(dtype) is not str or type(shape) is not tuple or type(chunks) is not tuple or len(chunks) != len(shape):
        return False
    for length in chunks:
        if type(length) is not int or length < 1:
            return False
    return True


@lru_cache(maxsize=64)
def _plain_array(format, dtype, ndim):
    """Return the metadata of an array with all defaults. Others of its type differ in lengths and attributes alone."""
    metadata = format.new_array((1,) * ndim, dtype, (1,) * ndim, ...)
    _check_can_compress(metadata.codecs)
    return metadata


def _type_of_objects(data, found, format):
    """Return the type of data that NumPy takes for objects: text, if pandas says so, or objects for a codec of them.

    Raises : ValueError, if it is neither.
    """
    if str(getattr(data, "dtype", None)) in ("str", "string"):
        return str
    if hasattr(data, "__next__"):
        raise ValueError(f"data is a {type(data).__name__}, expected values; list(data) has those that it gives")
    if format.has_objects:
        return found.dtype     # it names the codecs that it needs
    kinds = {*map(type, found.flat)}
    raise ValueError(f"data has objects, such as {next(iter(found.flat), None)!r:.60}, and objects are no data type; "
                     + _FOR_OBJECTS.get(kinds.pop() if len(kinds) == 1 else None, "dtype=str is for text, dtype=bytes "
                                        "for bytes, and others need a type of fixed size"))


def _check_fill(format, metadata, fill_value):
    """Raise ValueError if the fill value is no text where text is expected, or not the NaN of the caller.

    Zarr v2 has one NaN alone. NumPy makes the words "nan" and "None" of missing text.
    """
    dtype = metadata.dtype
    with naming_fill(dtype, fill_value):
        check_complete(fill_value, dtype.kind in "TUS")
    if dtype.kind not in "fc" or isinstance(fill_value, str) or not format.is_standard:
        return     # in __zmeta__ every NaN means the usual one
    asked = fill_bytes(dtype, fill_value)
    if asked != metadata.fill_bytes:
        n = dtype.itemsize >> (dtype.kind == "c")
        bits = [f"0x{in_order_of_bits(dtype, asked[i:i + n]).hex()}" for i in range(0, len(asked), n)]
        raise ValueError(f"{format.title} has one NaN, without sign and payload, and cannot record the fill value "
                         f"{', '.join(bits)}; Zarr v3 can")


def _may_refuse(metadata):
    """Return whether the codecs of an array may refuse elements of its type."""
    return has_varying_items(metadata.dtype) or any([name in text_of(metadata.codecs) for name in _CHOOSY])


def new_group(*, zarr_format: FormatName = 3, attributes: Attributes | None = None) -> creation.NewNode:
    """Return the `NewNode` of a group; see `zcore.create_group`."""
    format = format_of(zarr_format)
    if not format.has_groups:
        raise UnsupportedError(f"the format {zarr_format!r} has no groups", feature=f"groups of {zarr_format}")
    attributes = _checked(attributes)
    inline = format.has_inline_attributes
    metadata = format.new_group((attributes or {}) if inline else None)
    return creation.NewNode(format, metadata, None if inline else attributes)


def found_or_made(find: Callable[[], _Found | None], make: Callable[[], _Found], path: str) -> _Found:
    """Return the result of `find()`, or else of `make()`. Others may create and delete the node at any moment.

    Parameters
    ----------
    find : callable
        Returns None if there is nothing.
    make : callable
        Raises NodeExistsError if a node was created meanwhile.
    path : str
        Path of the node.

    Raises
    ------
    NodeExistsError
        Repeatedly, no node is found but one is in the way.
    """
    for n_left in reversed(range(_MAX_TRIES)):
        found = find()
        if found is not None:
            return found
        try:
            return make()
        except NodeExistsError as error:
            if n_left == 0 or error.path != path:
                raise
    raise AssertionError


def zero_of(dtype: DTypeLike) -> Literal[0] | EllipsisType:
    """Return the fill value of an array of zeros of a type, in the caller's form.

    For dates and durations it is 0, as in NumPy. For all others it is the default: zero, or empty text.
    """
    try:
        return 0 if np.dtype(plain_dtype(dtype)).kind in "mM" else ...
    except (TypeError, ValueError):
        return ...     # only Zarr v3 has such types


def create_hierarchy(store: Store, path: str, below: Mapping[str, ArrayMetadata | GroupMetadata], options: Options, *,
                     overwrite: bool = False) -> list[tuple[str, ArrayBinding | GroupBinding]]:
    """Create the nodes of a mapping of paths relative to `path` to metadata; see `zcore.create_hierarchy`.

    Returns a list of (relative path, binding).
    """
    if not isinstance(below, Mapping):
        raise TypeError(f"nodes are a mapping of paths to metadata, not {type(below).__name__}")
    for name, metadata in below.items():
        if not isinstance(metadata, (ArrayMetadata, GroupMetadata)):
            raise TypeError(f"{name!r}: expected the metadata of an array or a group, found {type(metadata).__name__}")
    n_nodes = len(below)
    below = {lookup.path_of(name, metadata.zarr_format): metadata for name, metadata in below.items()}
    if len(below) < n_nodes:
        raise ValueError("two of the paths are spellings of one")
    new = {}
    # The caller may change the dicts of codecs later, and documents are cached by the identity of metadata.
    own = {id(metadata): unshared(metadata) for metadata in below.values()}
    for name in sorted(below, key=lambda name: (name.count("/"), name)):   # groups before their members
        metadata = own[id(below[name])]
        if isinstance(metadata, GroupMetadata):
            metadata = metadata.replace(consolidated=None)
        format = format_of(metadata.zarr_format)
        attributes = None if format.has_inline_attributes else metadata.attributes
        new[name] = creation.NewNode(format, metadata, attributes)
    return create_all(store, path, new, options, overwrite=overwrite)


def create_all(store: Store, path: str, new: Mapping[str, creation.NewNode], options: Options, *,
               overwrite: bool = False) -> list[tuple[str, ArrayBinding | GroupBinding]]:
    """Create several nodes below `path`, or none of them when one cannot be; return a list of (relative path, binding).

    `new` are the nodes by their paths relative to `path`, groups before their members.
    """
    places = {name: f"{prefix_of(path)}{name}" if name else path for name in new}
    trees = {}      # the nodes by the topmost one above them
    for name in new:
        groups = [other for other in above(name) if other in new]
        for other in groups:
            if isinstance(new[other].metadata, ArrayMetadata):
                raise NodeExistsError(f"{other!r} is an array, {name!r} cannot be below it", path=places[name])
        trees.setdefault([name, *groups][-1], []).append(name)
    run_together(lambda name: new[name].check(store, places[name], options, overwrite, is_topmost=name in trees),
                 [*new], store.n_requests)
    made, left = {}, {}
    for top, names in trees.items():
        if overwrite and len(names) > 1 and _replaced(
                store, places[top], {name[len(prefix_of(top)):]: new[name] for name in names}, options):
            made.update([(name, new[name].opened(store, places[name], options)) for name in names])
        else:
            for name in names:
                left.setdefault(_turn_of(name, new[name]), []).append(name)
    for _, names in sorted(left.items()):
        nodes = run_together(lambda name: new[name].create(store, places[name], options, overwrite), names,
                             store.n_requests)
        made.update(zip(names, nodes, strict=True))
    return [(name, made[name]) for name in new]


def _turn_of(name, node):
    """Return when a node is created: groups before their members, then small arrays together, then each large one."""
    if isinstance(node.metadata, GroupMetadata):
        return 0, name.count("/") + bool(name)
    return (2, name) if node.data is not None and node.data.nbytes > SMALL_NBYTES else (1, "")


def _replaced(store, path, new, options):
    """Replace a node and all below it in one step; return False, with nothing changed, if that is impossible."""
    with (contextlib.suppress(exchange.NoExchangeError, NodeExistsError),
          creation.replacing(store, path, options) as inner):
        if inner is None:
            return False
        for name, node in new.items():
            node.create(inner, name, options.changed({"lock": False}), False, is_below=True)
        return True
    return False


def _checked(attributes):
    if attributes is not None and type(attributes) is not dict and not isinstance(attributes, Mapping):
        raise TypeError(f"attributes are a mapping, not {type(attributes).__name__}")
    return attributes


def _check_can_compress(codecs):
    for codec in codecs:
        if codec.name == "blosc" and not blosc.can_compress(cname := codec.configuration.get("cname")):
            raise UnsupportedError(
                f"the linked c-blosc cannot compress by {cname}; it has "
                f"{', '.join(filter(blosc.can_compress, blosc.COMPRESSORS))}", feature=cname)


def compressors_for(format: Format, compressors: Any) -> Any:
    """Return the caller's codecs for `format.new_array`: a tuple of `CodecSpec`, or unchanged."""
    if format.has_own_codec_names:
        return compressors
    given = given_specs(() if compressors is None else compressors)
    return tuple([codec_of(spec.name, spec.configuration).spec() for spec in given])
