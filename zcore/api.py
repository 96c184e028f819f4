"""The functions that people call: open and create, NumPy's `zeros` and its kin, save and load, whole hierarchies.

Names and keywords are those of zarr-python. `zeros` and its kin are one call to `create_array` each; without ``store=``
their array lies in a `MemoryStore` of its own.
"""
from __future__ import annotations

import os
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, overload

import numpy as np

from zcore.engine.node_binding import GroupBinding
from zcore.engine.options import Options
from zcore.errors import NodeExistsError, NodeNotFoundError, UnsupportedError
from zcore.formats import check_format, format_of
from zcore.hierarchy import consolidated, lookup, new_nodes
from zcore.hierarchy.attributes import read_attributes
from zcore.hierarchy.new_nodes import zero_of
from zcore.indexing.assign import in_memory
from zcore.model.chunk_grid import chunk_regions
from zcore.nodes.array import Array
from zcore.nodes.group import Group, node_of
from zcore.stores.base import SMALL_NBYTES, together
from zcore.stores.memory import MemoryStore
from zcore.stores.openers import as_path, check_directory, named_kind, names_archive, store_of
from zcore.text.arguments import as_bool, as_optional_bool
from zcore.text.tried_names import advising

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal, Unpack

    import numpy.typing as npt

    from zcore.model.metadata import ArrayMetadata, GroupMetadata
    from zcore.nodes.keywords import (
        CodecLike,
        CodecsLike,
        ConsolidatedKeywords,
        LikeFilledKeywords,
        LikeKeywords,
        OpenArrayKeywords,
        OpenGroupKeywords,
        OpenKeywords,
        PlacedFilledKeywords,
        PlacedKeywords,
        StoredFilledKeywords,
        StoredKeywords,
        StoredTypedKeywords,
    )
    from zcore.stores.base import StoreLike
    from zcore.typing import (
        Attributes,
        CacheSize,
        Chunks,
        Cname,
        DimensionNames,
        DTypeLike,
        Elements,
        Format,
        Lock,
        Missing,
        Mode,
        Order,
        Shape,
        Shards,
        Shuffle,
    )

MODES = ("r", "r+", "a", "w", "w-", "x")


@overload
def open(store: StoreLike, mode: Mode = "r", *, shape: Shape, **keywords: Unpack[OpenKeywords]) -> Array: ...


@overload
def open(store: StoreLike, mode: Mode = "r", *, shape: None = None,
         **keywords: Unpack[OpenKeywords]) -> Array | Group: ...


@advising
def open(store: StoreLike, mode: Mode = "r", *, path: str | None = "", shape: Shape | None = None,
         chunks: Chunks = None, dtype: DTypeLike | None = None, fill_value: Any = ..., cname: Cname | None = None,
         clevel: int | None = None, shuffle: Shuffle | None = None, compressors: CodecsLike | str | None = "auto",
         zarr_format: Format | None = None, dimension_separator: Literal["/", "."] | None = None,
         attributes: Attributes | None = None, lock: Lock = True, missing: Missing = "fill",
         threads: int | None = None, strict: bool = True, write_empty_chunks: bool | None = None,
         fsync: bool | None = None, cache: CacheSize | None = None, config: Attributes | None = None,
         storage_options: Attributes | None = None) -> Array | Group:
    """Open an array or a group, or create it.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a file such as a zip archive, a URL, or a store.
    mode : {"r", "r+", "a", "w", "w-", "x"}
        ``"r"`` reads. ``"r+"`` reads and writes. ``"a"`` opens, or creates if there is no node. ``"w"`` creates, and
        first deletes the node that is there with all nodes below it. ``"w-"`` and ``"x"`` create, and fail if there
        is a node. Modes that create make a zip archive of a path that ends with ``.zip`` or ``.ozx``, unless a
        directory has that name. The archive is there when the handle is closed: by `close`, or at the end of a ``with``
        block. An existing archive is only read, or replaced as a whole by ``"w"``.
    path : str, optional
        Path of the node in the store; the root by default.
    shape, chunks, dtype, fill_value
        Describe a new array; see `create_array`. An existing array must agree with those that you give: otherwise you
        would read or write other elements than you expect.
    attributes, compressors
        Describe a new array; see `create_array`. An existing array keeps its own, because they do not change its
        elements.
    cname, clevel, shuffle
        Describe a new array in the ``__zmeta__`` format: the compressor, the level (0 to 9), and the shuffle (0 none,
        1 bytes, 2 bits). Each of them selects that format. An existing array keeps its own.
    zarr_format : {"zmeta", 3, 2}, optional
        Format of a new node; an existing node must have it.
    dimension_separator : {"/", "."}, optional
        Joins the indices in the chunk keys of a Zarr v2 array. Give it for an array whose document does not name its
        separator: old programs, for example those that wrote OME-Zarr 0.2, nested chunks and did not say so. The handle
        remembers it, and the next change of the document (a resize) stores it.
    lock : bool, None or {"on", "off", "file"}
        Lock every stored object while it is replaced, so that threads and processes that write parts of one chunk lose
        nothing. True locks as `zcore.config.lock` says, ``"on"`` unless it was set; ``"file"`` makes lock files, for
        file systems without locks. None and False, as ``"off"``, write without locks.
    missing : {"fill", "raise"}
        An absent object reads as the fill value, or it is an error.
    threads : int, optional
        Threads of each read and write; `zcore.config.threads` by default.
    strict : bool
        Refuse chunks that the format forbids, even if zcore could read them.
    write_empty_chunks : bool, optional
        Store chunks in which every element has the fill value. By default `zcore.config.write_empty_chunks`: False,
        they are erased. If the fill value is undefined, every chunk is stored.
    fsync : bool, optional
        Every change is on the disk when a call returns, that of an archive when it is closed. Otherwise the system
        decides when; but nothing old goes before the new one is on the disk. By default `zcore.config.fsync`, which
        is False unless you set it.
    cache : int or str, optional
        Memory for decoded chunks, for example ``"64 MB"``: an LRU cache for this handle and for all handles that are
        opened through it. A cached chunk is used only while its object is unchanged. 0 means no cache. By default all
        handles share the cache of `zcore.config.cache`, which is empty unless you give it memory.
    config : mapping, optional
        Settings as zarr-python takes them: ``write_empty_chunks``; ``read_missing_chunks``, False for
        ``missing="raise"``; and ``order``, which is always ``"C"`` here, as a warning says.
    storage_options : mapping, optional
        Options of fsspec, which then opens the URL; see `zcore.RemoteStore.from_url`.

    Returns
    -------
    Array or Group
        A new node is an array if you give a `shape`, else a group.

    Raises
    ------
    NodeNotFoundError
        There is no node to open.
    NodeExistsError
        The mode is ``"w-"`` or ``"x"``, and there is a node; or it is ``"w"``, and nodes lie below what is none.
    StoreError
        There is no node, but there are attributes or chunks whose document was lost; mode ``"w"`` erases them.
    TypeError
        You describe a new array without a `shape` or without a `dtype`.
    ArrayMismatchError
        The existing array has another shape, chunk shape, type, fill value or separator than you gave, or it has no
        separator because it is not of Zarr v2. It is a TypeError, as in h5py and zarr-python, and a ValueError.
    MetadataError
        A metadata document breaks a rule of its format.
    UnsupportedError
        The node needs a feature that zcore does not have.

    Examples
    --------
    >>> import tempfile, zcore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     a = zcore.open(folder, mode="w", shape=(10, 10), chunks=(5, 5), dtype="i4", fill_value=42)
    ...     a[0, :] = 1
    ...     b = zcore.open(folder)
    ...     int(b[0, 0]), int(b[9, 9])
    (1, 42)
    """
    _check_mode(mode)
    check_format(zarr_format)
    options = Options(lock, missing, threads, strict, write_empty_chunks, mode == "r", dimension_separator, cache,
                      config)
    if not (dimension_separator is None or zarr_format is None or format_of(zarr_format).has_dimension_separator):
        raise ValueError(f"dimension_separator is of Zarr v2, zarr_format is {zarr_format!r}")
    path = lookup.path_of(path, zarr_format)
    place, new = store, _new_archive(store, mode, path)
    store = store_of(store, mode == "r", fsync, check_base=mode not in ("r", "r+"), new=new,
                     storage_options=storage_options)
    if zarr_format is None and shape is not None and not cname is clevel is shuffle is None:
        of_new = "zmeta"
    else:
        of_new = zarr_format or 3

    def find():
        return _existing(store, path, zarr_format, options, (shape, chunks, dtype, fill_value))

    def make():
        if shape is None:
            _check_is_of_a_group(mode, dtype=dtype, chunks=chunks, cname=cname, clevel=clevel, shuffle=shuffle,
                                 dimension_separator=dimension_separator,
                                 fill_value=None if fill_value is ... else repr(fill_value),
                                 compressors=None if repr(compressors) == "'auto'" else repr(compressors))
            return Group(new_nodes.create_group(store, path, options, zarr_format=of_new, attributes=attributes,
                                               overwrite=mode == "w"))
        if dimension_separator is not None and zarr_format is None:
            raise ValueError("a new array of a dimension_separator is of Zarr v2 and needs zarr_format=2")
        return Array(new_nodes.create_array(
            # Its document says the separator.
            store, path, options.changed({"dimension_separator": None}) if dimension_separator else options,
            shape=shape, dtype=dtype, chunks=chunks, fill_value=fill_value, cname=cname, clevel=clevel,
            shuffle=shuffle, compressors=compressors, zarr_format=of_new, chunk_key_encoding=dimension_separator,
            attributes=attributes, overwrite=mode == "w"))

    return _handed(place, store, lambda: _opened(store, path, zarr_format, options, mode, "node", find, make))


def _opened(store, path, zarr_format, options, mode, what, find, make):
    """Open the node with ``find()``, or create it with ``make()``, as the mode says; see `new_nodes.found_or_made`."""
    if mode in ("w", "w-", "x"):
        return make()
    found = None
    try:
        found = new_nodes.found_or_made(find, make, path) if mode == "a" else find()
    except NodeExistsError as error:
        if error.path != path:
            raise
        # The node has another format, or other processes create and delete it faster than we look.
    if found is None:
        raise lookup.not_found(store, path, zarr_format, options, what, is_wanted=True)
    return found


def _check_is_of_a_group(mode, **of_arrays):
    """Raise TypeError if keywords describe an array and there is no shape: without a shape we create a group."""
    given = [name for name, value in of_arrays.items() if value is not None]
    if given:
        raise TypeError(f"mode {mode!r} creates an array and needs shape= and dtype=, as {given[0]}= is given")


@advising
def create_array(store: StoreLike, *, name: str | None = None, shape: Shape | None = None,
                 dtype: DTypeLike | None = None, data: Elements | None = None, chunks: Chunks = "auto",
                 shards: Shards | None = None, filters: CodecsLike | None = None, serializer: CodecLike | str = "auto",
                 compressors: CodecsLike | str | None = "auto", codecs: CodecsLike | None = None, order: Order = "C",
                 fill_value: Any = ..., zarr_format: Format = 3, attributes: Attributes | None = None,
                 chunk_key_encoding: str | Attributes | None = None, dimension_names: DimensionNames | None = None,
                 checksum: bool = True, overwrite: bool = False, lock: Lock = True, missing: Missing = "fill",
                 threads: int | None = None, strict: bool = True, write_empty_chunks: bool | None = None,
                 fsync: bool | None = None, cache: CacheSize | None = None, config: Attributes | None = None,
                 storage_options: Attributes | None = None) -> Array:
    """Create an array, and the groups above it that are missing.

    These groups stay if the array cannot be written then, for example on a full disk.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a ``file:`` URI, or a store.
    name : str, optional
        Path of the array in the store; the root by default.
    shape : int or tuple of int
    dtype : object
        Type of the elements, as for `numpy.dtype`. `str` and `bytes` have any length. In Zarr v3 also the name of a
        type that NumPy does not have, for example ``"bfloat16"``.
    data : array_like, optional
        Elements of the new array. They give the shape, and the type unless you give `dtype`.
    chunks : tuple of int, int, "auto" or str
        Elements per chunk. An int counts for every dimension; -1 or None is the whole dimension, and False one chunk.
        For a size such as ``"4 MB"`` zcore chooses the chunk shape; "auto" and True mean 1 MiB. A list gives the
        lengths of all chunks along a dimension, as in ``[[2, 3, 5], 4]``; Zarr v3 only (chunk grid ``rectilinear``).
    shards : tuple of int, int, "auto", str or dict, optional
        Elements per stored object, a multiple of the chunks. Values are as in `chunks`; "auto" means 64 MiB. A dict
        has the members ``"shape"`` and ``"index_location"`` (``"start"`` or ``"end"``). Zarr v3 only.
    filters, serializer
        Codecs before the compressors: from array to array, and from array to bytes. By default those that the type
        needs.
    compressors : codec, dict, str, sequence of these, None or "auto"
        For example ``zcore.codecs.BloscCodec(cname="lz4", clevel=3, shuffle=1)``, a member of a document,
        ``{"name": "numcodecs.lzma", "configuration": {"preset": 1}}``, or a name alone, ``"zstd"``. Codecs of
        numcodecs and zarr-python are taken, too. None means no compression, if the format allows that.
    codecs : sequence, optional
        The whole chain from array to bytes, used as it is. It replaces `filters`, `serializer`, `compressors`, `order`
        and `shards`. For ``"zmeta"`` it is ``bytes`` and ``blosc``.
    order : {"C", "F"}
        Memory order of the elements in a chunk.
    fill_value : scalar or None
        Value of elements that were never written. None leaves it undefined, if the format allows that. By default
        zero, empty text, or in Zarr v3 NaT.
    zarr_format : {3, 2, "zmeta"}
    attributes : dict, optional
    chunk_key_encoding : {"default", "v2"} or dict, optional
        Names of chunks in Zarr v3: ``c/0/1`` ("default") or ``0.1`` ("v2"). ``{"name": …, "separator": …}`` sets the
        separator, ``"/"`` or ``"."``. For Zarr v2 give "v2", or the separator alone.
    dimension_names : sequence of str or None, optional
        One name for each dimension; Zarr v3 only.
    checksum : bool
        Add a checksum after the compressors, which finds every damage; Zarr v3 only.
    overwrite : bool
        First delete the node that is there with all nodes below it, and chunks and attributes whose document was lost.
    lock, missing, threads, strict, write_empty_chunks, fsync, cache, config, storage_options
        See `open`.

    Returns
    -------
    Array

    Raises
    ------
    NodeExistsError
        There is a node, and `overwrite` is false; or there is none, but nodes lie below, and `overwrite` is true.
    StoreError
        There is no node, but there are attributes or chunks whose document was lost, and `overwrite` is false.
    UnknownCodecError
        There is no codec of that name; it is an UnsupportedError.
    ValueError, TypeError, UnsupportedError
        The format cannot express the array that you describe.

    Examples
    --------
    >>> import zcore
    >>> a = zcore.create_array(zcore.MemoryStore(), name="t2m", shape=(48, 90, 180), chunks=(4, 30, 60),
    ...                        shards=(24, 90, 180), dtype="f4", fill_value=float("nan"),
    ...                        compressors=zcore.codecs.ZstdCodec(level=3), dimension_names=("time", "lat", "lon"))
    >>> a
    <zcore.Array 'MemoryStore/t2m' (48, 90, 180) float32, chunks (4, 30, 60), shards (24, 90, 180), format 3>
    """
    options = Options(lock, missing, threads, strict, write_empty_chunks, cache=cache, config=config)
    path = lookup.path_of(name, zarr_format)
    overwrite = as_bool(overwrite, "overwrite")
    place, new = store, _new_archive(store, "w" if overwrite else "x", path)
    store = store_of(store, False, fsync, new=new, storage_options=storage_options)
    return _handed(place, store, lambda: Array(new_nodes.create_array(
        store, path, options, shape=shape, dtype=dtype, data=data, chunks=chunks,
        shards=shards, filters=filters, serializer=serializer, compressors=compressors, codecs=codecs, order=order,
        fill_value=fill_value, zarr_format=zarr_format, attributes=attributes, chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names, checksum=checksum, overwrite=overwrite)))


@advising
def create_group(store: StoreLike, *, path: str | None = "", zarr_format: Format = 3,
                 attributes: Attributes | None = None, overwrite: bool = False, lock: Lock = True,
                 missing: Missing = "fill", threads: int | None = None, strict: bool = True,
                 write_empty_chunks: bool | None = None, fsync: bool | None = None, cache: CacheSize | None = None,
                 storage_options: Attributes | None = None) -> Group:
    """Create a group, and the groups above it that are missing.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a ``file:`` URI, or a store.
    path : str, optional
        Path of the group in the store; the root by default.
    zarr_format : {3, 2}
    attributes : dict, optional
        Attributes of the group.
    overwrite : bool
        First delete the node that is there with all nodes below it, and chunks and attributes whose document was lost.
    lock, missing, threads, strict, write_empty_chunks, fsync, cache, storage_options
        See `open`. They count for the group and for arrays that are opened through it.

    Returns
    -------
    Group

    Raises
    ------
    NodeExistsError
        There is a node, and `overwrite` is false; or there is none, but nodes lie below, and `overwrite` is true.
    StoreError
        There is no node, but there are attributes whose document was lost, and `overwrite` is false.
    """
    options = Options(lock, missing, threads, strict, write_empty_chunks, cache=cache)
    path = lookup.path_of(path, zarr_format)
    overwrite = as_bool(overwrite, "overwrite")
    place, new = store, _new_archive(store, "w" if overwrite else "x", path)
    store = store_of(store, False, fsync, new=new, storage_options=storage_options)
    return _handed(place, store, lambda: Group(new_nodes.create_group(
        store, path, options, zarr_format=zarr_format, attributes=attributes, overwrite=overwrite)))


def _new_archive(store, mode, path):
    """Return the mode of `ZipStore` for a new archive, or None if no archive is made.

    Raises
    ------
    NodeExistsError
        The mode creates, and there is a file.
    UnsupportedError
        A part of an existing archive would be replaced. Or the path of a new directory has the ending of a file.
    """
    if mode in ("r", "r+"):
        return None
    if (place := as_path(store)) is None or named_kind(place.rstrip("/")) is None:
        return None
    if not names_archive(place):
        check_directory(place)
        return None
    if not os.path.lexists(place):
        return "w" if mode == "w" else "x"
    if mode == "a":
        return None
    if mode != "w":
        raise NodeExistsError(f"{place} is there already; overwrite=True (mode 'w') replaces it", path=path)
    if path:
        raise UnsupportedError(f"{place} is there, and an archive is written as a whole: all in it beside "
                               f"{path!r:.200} would be lost", feature="nodes replaced in a file")
    return "w"


def _handed(place, store, make):
    """Return the node of ``make()``. If its store is an archive that was made for it, it closes the store."""
    if store is place or store.read_only or not hasattr(store, "opened_for"):
        return make()
    try:
        node = make()
    except BaseException:
        store.discard()
        raise
    store.opened_for = weakref.ref(node)
    return node


@advising
def open_array(store: StoreLike, mode: Mode = "r", **keywords: Unpack[OpenArrayKeywords]) -> Array:
    """Open an array, or create it.

    Parameters
    ----------
    store, mode, **keywords
        As for `open`. Without a `shape`, mode ``"a"`` creates nothing.

    Returns
    -------
    Array

    Raises
    ------
    NodeNotFoundError
        There is no node, or it is a group.
    """
    if keywords.get("shape") is None:
        _check_mode(mode)
        if mode in ("w", "w-", "x"):
            raise TypeError(f"mode {mode!r} creates an array and needs shape= and dtype=")
        if mode == "a":
            mode = "r+"     # `open` would create a group
    found = open(store, mode, **keywords)
    if not isinstance(found, Array):
        raise NodeNotFoundError(f"{found.store.describe(found.path)} holds a group, not an array; zcore.open_group "
                                "opens it", path=found.path)
    return found


@advising
def open_group(store: StoreLike, mode: Mode = "r", *, path: str | None = "", zarr_format: Format | None = None,
               use_consolidated: bool | None = None, attributes: Attributes | None = None, lock: Lock = True,
               missing: Missing = "fill", threads: int | None = None, strict: bool = True,
               write_empty_chunks: bool | None = None, fsync: bool | None = None, cache: CacheSize | None = None,
               storage_options: Attributes | None = None) -> Group:
    """Open a group, or create it.

    Parameters
    ----------
    store, mode, path, lock, missing, threads, strict, write_empty_chunks, fsync, cache, storage_options
        See `open`.
    zarr_format : {3, 2}, optional
        Format of a new group, 3 by default; an existing group must have it.
    use_consolidated : bool, optional
        Take the members from the group's consolidated metadata, a copy of all documents below that may be out of date:
        False never, True always, None if the group has them. In mode ``"r"`` they are listed and opened by the copy,
        without a request each; in other modes they are only listed by it. The first read of an array compares the copy
        with the document in the store: if the array is gone, shrunk or replaced, that is an error. `Array.refresh`
        takes over a new shape, `Group.refresh` forgets the copy.
    attributes : dict, optional
        Attributes of a new group.

    Returns
    -------
    Group

    Raises
    ------
    NodeNotFoundError
        There is no node, or it is an array.
    ValueError
        `use_consolidated` is true, and the group has no consolidated metadata.
    NodeExistsError
        The mode is ``"w-"``, and there is a node; or it is ``"w"``, and nodes lie below what is none.
    """
    _check_mode(mode)
    check_format(zarr_format)
    use_consolidated = as_optional_bool(use_consolidated, "use_consolidated")
    options = Options(lock, missing, threads, strict, write_empty_chunks, mode == "r", cache=cache)
    path = lookup.path_of(path, zarr_format)
    place, new = store, _new_archive(store, mode, path)
    store = store_of(store, mode == "r", fsync, new=new, storage_options=storage_options)

    def find():
        found = lookup.find_or_read_set(store, path, zarr_format, options)
        if found is None:
            return None
        if not isinstance(found, GroupBinding):
            raise NodeNotFoundError(f"{store.describe(path)} holds an array, not a group; zcore.open opens it",
                                    path=path)
        copy = None if use_consolidated is False else consolidated.copy_of(found)
        if copy is None and use_consolidated:
            raise ValueError(f"{store.describe(path)} has no consolidated metadata")
        return Group(found, copy)

    def make():
        if use_consolidated:
            raise ValueError(f"{store.describe(path)} would be a new group, which has no consolidated metadata")
        return Group(new_nodes.create_group(store, path, options, zarr_format=zarr_format or 3, attributes=attributes,
                                           overwrite=mode == "w"))

    return _handed(place, store, lambda: _opened(store, path, zarr_format, options, mode, "group", find, make))


def _existing(store, path, zarr_format, options, described):
    """Return the node at `path`, or None; `described` is what the caller expects of an array."""
    binding = lookup.find_or_read_set(store, path, zarr_format, options)
    if binding is None:
        return None
    node = node_of(binding)
    if isinstance(node, Array):
        lookup.check_is_asked_for(node._binding, *described, "; without these keywords it is opened as it is")
    elif not described[0] is described[2] is options.dimension_separator is None:
        raise NodeNotFoundError(f"{store.describe(path)} holds a group, not an array", path=path)
    elif options.read_only:
        return Group(binding, consolidated.usable_copy(binding))
    return node


def _check_mode(mode):
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"mode is {mode!r:.60}, expected one of {', '.join(MODES)}")


# Keywords that change how elements become bytes: an array that is given one of them has a chain of its own.
_ENCODING = frozenset(("dtype", "chunks", "shards", "filters", "serializer", "compressors", "codecs", "order",
                       "zarr_format", "checksum"))


@advising
def create(shape: Shape, *, store: StoreLike | None = None, path: str | None = None, dtype: DTypeLike = "f8",
           **keywords: Unpack[StoredFilledKeywords]) -> Array:
    """Return a new array of `shape`.

    Parameters
    ----------
    shape : int or tuple of int
    store : str, os.PathLike or Store, optional
        A new `MemoryStore` by default.
    path : str, optional
        Path of the array in the store; the root by default.
    dtype : object
        As for `zcore.create_array`.
    **keywords
        See `zcore.create_array`.

    Returns
    -------
    Array

    >>> create((4, 6), chunks=(2, 3)).nchunks
    4
    """
    return create_array(_store(store), name=path, shape=shape, dtype=dtype, **keywords)


@advising
def array(data: Elements, *, store: StoreLike | None = None, path: str | None = None,
          **keywords: Unpack[StoredTypedKeywords]) -> Array:
    """Return a new array that holds `data`: an `Array`, which is read whole, or anything that `numpy.asarray` takes.

    The copy of an `Array` also has its type, chunks, codecs and attributes, unless `keywords` say otherwise. `store`,
    `path` and `keywords` are as for `create`.

    >>> array([[1, 2], [3, 4]], chunks=(1, 2))[1]
    array([3, 4])
    """
    settings: dict[str, Any] = {**keywords}
    if isinstance(data, Array):
        settings = _settings_like(data, {"attributes": data.attrs.asdict(), **keywords})
        del settings["shape"]
    return create_array(_store(store), name=path, data=data, **settings)


@advising
def from_array(store: StoreLike | None, *, data: Elements, name: str | None = None, write_data: bool = True,
               **keywords: Unpack[StoredFilledKeywords]) -> Array:
    """Return a new array like `data`; ``write_data=False`` leaves the elements out.

    An `Array` is copied object by object. `keywords` are as for `array`; ``"keep"`` leaves one out.

    >>> from_array(None, data=array([[1, 2], [3, 4]], chunks=(1, 2)), chunks="keep").chunks
    (1, 2)
    """
    write_data = as_bool(write_data, "write_data")
    settings: dict[str, Any] = {key: value for key, value in keywords.items()
                                if not (isinstance(value, str) and value == "keep")}
    if not isinstance(data, Array):
        make = array if write_data else empty_like
        return make(data, store=store, path=name, **settings)
    made = empty_like(data, store=store, path=name, **{"attributes": data.attrs.asdict(), **settings})
    if write_data:
        for region in chunk_regions(made.shape, made.metadata.chunk_shape, made.metadata.edges):
            made[region] = data[region]
    return made


@advising
def empty(shape: Shape, **keywords: Unpack[PlacedFilledKeywords]) -> Array:
    """Return a new array in which nothing is written; it reads as the fill value. `keywords` as for `create`."""
    return create(shape, **keywords)


@advising
def full(shape: Shape, fill_value: Any, **keywords: Unpack[PlacedKeywords]) -> Array:
    """Return a new array whose fill value is `fill_value`; `keywords` as for `create`.

    Only the metadata document is stored, until an element is written.

    >>> full((2, 2), 7, dtype="i4")[0]
    array([7, 7], dtype=int32)
    """
    return create(shape, fill_value=fill_value, **keywords)


@advising
def zeros(shape: Shape, **keywords: Unpack[PlacedKeywords]) -> Array:
    """Return a new array of zeros; `keywords` as for `create`.

    >>> zeros(3, dtype="M8[D]")[0]
    np.datetime64('1970-01-01')
    """
    return full(shape, zero_of(keywords.get("dtype")), **keywords)


@advising
def ones(shape: Shape, **keywords: Unpack[PlacedKeywords]) -> Array:
    """Return a new array of ones; `keywords` as for `create`.

    >>> ones((2, 3), dtype="i4")[...].sum()
    np.int64(6)
    """
    return full(shape, 1, **keywords)


@advising
def empty_like(a: Elements, **keywords: Unpack[LikeFilledKeywords]) -> Array:
    """Return a new array of the shape and type of `a`; for an `Array` also with its fill value, chunks and codecs.

    `keywords`, as for `create`, override these. The codecs of `a` are kept only if no keyword changes what they depend
    on, and the fill value only if the type is the same apart from its byte order. Attributes are not copied.

    >>> a = create((4, 6), dtype="i2", chunks=(2, 3), compressors=None)
    >>> b = zeros_like(a, shape=(8, 6))
    >>> b.shape, b.dtype, b.chunks, b.codecs
    ((8, 6), dtype('int16'), (2, 3), (Crc32cCodec(),))
    """
    return create(**_settings_like(a, keywords))


@advising
def full_like(a: Elements, fill_value: Any, **keywords: Unpack[LikeKeywords]) -> Array:
    """Return a new array like `a` whose fill value is `fill_value`; see `empty_like`."""
    return empty_like(a, fill_value=fill_value, **keywords)


@advising
def zeros_like(a: Elements, **keywords: Unpack[LikeKeywords]) -> Array:
    """Return a new array of zeros like `a`; see `empty_like`."""
    return full_like(a, zero_of(_settings_like(a, keywords)["dtype"]), **keywords)


@advising
def ones_like(a: Elements, **keywords: Unpack[LikeKeywords]) -> Array:
    """Return a new array of ones like `a`; see `empty_like`."""
    return full_like(a, 1, **keywords)


def _store(store):
    return MemoryStore() if store is None else store


def _settings_like(a, keywords):
    """Return keywords of `zcore.create_array` for an array like `a`; `keywords` come first."""
    if not isinstance(a, Array):
        a = a if hasattr(a, "dtype") else in_memory(a)
        return {"shape": a.shape, "dtype": a.dtype, **keywords}
    metadata = a.metadata
    settings = {"shape": a.shape, "dtype": metadata.type_of_items, "zarr_format": a.zarr_format}
    if _is_same_type(a.dtype, keywords.get("dtype", a.dtype)):
        settings["fill_value"] = a.fill_value
    if a.dimension_names is not None and "shape" not in keywords:
        settings["dimension_names"] = a.dimension_names
    if not _ENCODING.intersection(keywords):
        settings.update(chunks=_objects_of(metadata), codecs=metadata.codecs)
        if format_of(a.zarr_format).has_chunk_key_encoding:
            settings["chunk_key_encoding"] = metadata.chunk_keys
    elif not {"chunks", "shards"}.intersection(keywords):
        sizes = _objects_of(metadata)
        is_sharded = any([codec.name == "sharding_indexed" for codec in metadata.codecs])
        settings.update(chunks=a.chunks, shards=sizes) if is_sharded else settings.update(chunks=sizes)
    return {**settings, **keywords}


def _is_same_type(dtype, asked):
    """Return whether `asked` is the type `dtype`, in any byte order."""
    try:
        return np.can_cast(dtype, np.dtype(asked), "equiv")
    except (TypeError, ValueError):
        return False     # a type that only Zarr v3 knows


def _objects_of(metadata):
    """Return the lengths of an array's objects, in the form of the keyword `chunks`."""
    if metadata.edges is None:
        return metadata.chunk_shape
    return [chunk if unequal is None else unequal
            for chunk, unequal in zip(metadata.chunk_shape, metadata.edges, strict=True)]


def save(store: StoreLike, *arrays: Elements, path: str | None = None, zarr_format: Format = 3, overwrite: bool = False,
         **named: Elements) -> None:
    """Store one array, or several as members of a group.

    Parameters
    ----------
    store : str, os.PathLike or Store
    *arrays, **named : array_like
        A single array without a name is stored as an array. Several are the members of a group; those without a name
        are called ``arr_0``, ``arr_1``, … as in `numpy.savez`.
    path, zarr_format, overwrite
        See `zcore.create_array`. An existing node is replaced only with ``overwrite=True``.

    Raises
    ------
    NodeExistsError
        There is a node, and `overwrite` is false.

    Examples
    --------
    >>> import numpy as np, zcore
    >>> store = zcore.MemoryStore()
    >>> save(store, np.arange(4), weights=np.ones(2))
    >>> load(store)
    {'arr_0': array([0, 1, 2, 3]), 'weights': array([1., 1.])}
    """
    if len(arrays) == 1 and not named:
        save_array(store, arrays[0], path=path, zarr_format=zarr_format, overwrite=overwrite)
    else:
        save_group(store, *arrays, path=path, zarr_format=zarr_format, overwrite=overwrite, **named)


@advising
def save_array(store: StoreLike, data: Elements, *, path: str | None = None,
               **keywords: Unpack[StoredTypedKeywords]) -> None:
    """Store one array; see `save`. `keywords` are those of `zcore.create_array`."""
    create_array(store, name=path, data=data, **keywords).close()


def save_group(store: StoreLike, *arrays: Elements, path: str | None = None, zarr_format: Format = 3,
               overwrite: bool = False, **named: Elements) -> None:
    """Store one or more arrays as members of a group; see `save`.

    Nothing is replaced unless all of them can be stored.

    Raises : ValueError, if there is no array, or a name is given twice.
    """
    if not arrays and not named:
        raise ValueError("expected at least one array")
    unnamed = {f"arr_{i}": array for i, array in enumerate(arrays)}
    twice = unnamed.keys() & named.keys()
    if twice:
        raise ValueError(f"an array without a name would be {min(twice)}, as the one of that name")
    members = {lookup.path_of(name, zarr_format): new_nodes.new_array(data=array, zarr_format=zarr_format)
               for name, array in {**unnamed, **named}.items()}
    if "" in members or len(members) < len(unnamed) + len(named):
        raise ValueError(f"the names {', '.join(map(repr, named))} are not those of as many members")
    path = lookup.path_of(path, zarr_format)
    overwrite = as_bool(overwrite, "overwrite")
    with _written(store, path, overwrite) as store:
        new_nodes.create_all(store, path, {"": new_nodes.new_group(zarr_format=zarr_format), **members}, Options(),
                            overwrite=overwrite)


@contextmanager
def _written(place, path, overwrite, fsync=None, storage_options=None):
    """Return a context manager of a store. If it is a new archive, it is closed in the end."""
    store = store_of(place, False, fsync, new=_new_archive(place, "w" if overwrite else "x", path),
                     storage_options=storage_options)
    if store is place or not hasattr(store, "opened_for"):
        yield store
        return
    with store:
        yield store


def load(store: StoreLike, path: str | None = None, *,
         zarr_format: Format | None = None) -> npt.NDArray[Any] | dict[str, npt.NDArray[Any]]:
    """Return an array as an ndarray, or a group as a dict: the path of each array below it, and its ndarray.

    Parameters
    ----------
    store : str, os.PathLike or Store
    path : str, optional
        Path of the node in the store.
    zarr_format : {3, 2, "zmeta"}, optional
        The node must have this format.

    Raises
    ------
    NodeNotFoundError
        There is no node, or none of that format.
    ChunkError, StoreError, OutOfMemoryError
        See `zcore.Array.read`.
    """
    check_format(zarr_format)
    options, path = Options(read_only=True), lookup.path_of(path, zarr_format)
    store = store_of(store, True)
    node = _existing(store, path, zarr_format, options, (None, None, None, ...))
    if node is None:
        raise lookup.not_found(store, path, zarr_format, options, "node")
    if isinstance(node, Array):
        return node[...]
    arrays = {name: member for name, member in node.members(None) if isinstance(member, Array)}
    small = [name for name, array in arrays.items() if max(array.nbytes, array.metadata.chunk_nbytes) <= SMALL_NBYTES]
    values = dict(zip(small, together(store, lambda name: arrays[name][...], small), strict=True))
    return {name: values[name] if name in values else array[...] for name, array in arrays.items()}


@advising
def group(store: StoreLike | None = None, *, overwrite: bool = False, **keywords: Unpack[OpenGroupKeywords]) -> Group:
    """Open a group for reading and writing, or create it.

    Parameters
    ----------
    store : str, os.PathLike or Store, optional
        A new `MemoryStore` by default.
    overwrite : bool
        First delete the node that is there with all nodes below it.
    **keywords
        See `zcore.open_group`.

    Returns
    -------
    Group

    >>> group(attributes={"title": "weather"}).attrs["title"]
    'weather'
    """
    mode = "w" if as_bool(overwrite, "overwrite") else "a"
    return open_group(MemoryStore() if store is None else store, mode, **keywords)


@advising
def open_consolidated(store: StoreLike, mode: Mode = "r", **keywords: Unpack[ConsolidatedKeywords]) -> Group:
    """Open a group and list its members from its consolidated metadata; see `zcore.open_group`.

    Raises : ValueError, if the group has no consolidated metadata; and what `zcore.open_group` raises.
    """
    return open_group(store, mode, use_consolidated=True, **keywords)


def consolidate_metadata(store: StoreLike, *, path: str | None = "", zarr_format: Format | None = None) -> Group:
    """Copy the metadata of all nodes below a group into one document; listing the group then reads only that document.

    A later change below the group first deletes the copy. A change at the same time is either in the copy, or the copy
    is gone when the change is done.

    Parameters
    ----------
    store : str, os.PathLike or Store
    path : str
        Path of the group in the store.
    zarr_format : {3, 2}, optional
        The group must have this format.

    Returns
    -------
    Group
        Its ``metadata.consolidated`` is the copy, a mapping of paths to metadata.

    Raises
    ------
    NodeNotFoundError
        There is no group.
    MetadataError, UnsupportedError
        A member cannot be read, or has another format than the group: it would be missing in the copy.
    StoreError
        A member is unreachable, or the hierarchy changes faster than it can be copied. No copy is made.
    """
    group = open_group(store, "r+", path=path, zarr_format=zarr_format, use_consolidated=False)
    consolidated.consolidate(group._binding, read_attributes)
    return Group(group._binding, consolidated.copy_of(group._binding))


@advising
def create_hierarchy(*, store: StoreLike, nodes: Mapping[str, ArrayMetadata | GroupMetadata], overwrite: bool = False,
                     **options: Unpack[StoredKeywords]) -> Iterator[tuple[str, Array | Group]]:
    """Create arrays and groups from metadata, without elements.

    Parameters
    ----------
    store : str, os.PathLike or Store
    nodes : mapping of str to ArrayMetadata or GroupMetadata
        The new paths, and the `metadata` of a handle for each. Missing groups above them are created. Attributes of
        Zarr v2 have a document of their own and are not copied.
    overwrite : bool
        First delete the nodes that are there, each with all nodes below it, as `zcore.create_array` does.
    **options
        ``lock`` and the other options of `zcore.open`.

    Returns
    -------
    iterator of (str, Array or Group)
        In the order of creation: a group comes before its members.

    Raises
    ------
    NodeExistsError
        There is a node, and `overwrite` is false; or one of `nodes` lies below an array. Nothing was changed.
    StoreError, UnsupportedError, ValueError, TypeError
        As for `zcore.create_array`, for any of the nodes. Nothing was changed.

    Examples
    --------
    >>> g = group()
    >>> a = g.create_array("a/b", shape=(4, 6), dtype="f4")
    >>> nodes = {path: node.metadata for path, node in g.members(None)}
    >>> copy = dict(create_hierarchy(store=MemoryStore(), nodes=nodes))
    >>> list(copy), copy["a/b"].shape
    (['a', 'a/b'], (4, 6))
    """
    overwrite = as_bool(overwrite, "overwrite")
    stored = {key: options.pop(key, None) for key in ("fsync", "storage_options")}
    with _written(store, "", overwrite, **stored) as opened:
        made = new_nodes.create_hierarchy(opened, "", nodes, Options(**options), overwrite=overwrite)
    if opened is not store and hasattr(opened, "opened_for"):
        # An archive, which is complete by now.
        return iter([(path, open(store, path=path)) for path, _ in made])
    return iter([(path, node_of(binding)) for path, binding in made])


@advising
def tree(place: Group | StoreLike, *, path: str | None = None, max_depth: int | None = None) -> str:
    """Return a hierarchy as text, one line for each node.

    Parameters
    ----------
    place : Group, str, os.PathLike or Store
    path : str, optional
        Path of the group in the store.
    max_depth : int, optional
        0 shows only the direct members; by default all levels are shown.

    Examples
    --------
    >>> g = group()
    >>> a = g.create_array("a/b", shape=(4, 6), dtype="f4")
    >>> print(tree(g.store))
    /
    └── a
        └── b (4, 6) float32
    """
    found = place if isinstance(place, Group) else open_group(place, path=path)
    return found.tree(max_depth)
