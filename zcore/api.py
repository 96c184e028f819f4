"""The functions that make arrays: open and create. Names and keywords are those of zarr-python."""
import os
from collections import namedtuple
from collections.abc import Mapping

import numpy as np

from zcore import blosc, lifecycle
from zcore.arrays import Array
from zcore.engine import Binding
from zcore.errors import NodeExistsError, NodeNotFoundError, UnsupportedError
from zcore.formats import FORMATS
from zcore.formats.json_documents import MAX_NBYTES
from zcore.options import Options
from zcore.stores.base import Store
from zcore.stores.directory import DirectoryStore

MODES = ("r", "r+", "a", "w", "w-")
# Which document makes a directory a node of which format; the first one that is there counts. Without a module: of a
# format that this version does not read.
_Kind = namedtuple("_Kind", ("document", "name", "format"))
_KINDS = (_Kind("zarr.json", "Zarr v3", None),
          *(_Kind(format.array_document, name, format) for name, format in FORMATS.items()),
          _Kind(".zarray", "Zarr v2", None), _Kind(".zgroup", "Zarr v2", None), _Kind("meta", "Zarr v1", None))


def open(store, mode="r", *, path="", shape=None, chunks=None, dtype=None, fill_value=..., cname=None, clevel=None,
         shuffle=None, compressors=None, zarr_format=None, attributes=None, lock=True, missing="fill", threads=None,
         strict=True, write_empty_chunks=False, fsync=False):
    """Open an array, or create it.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a ``file:`` URI, or a store.
    mode : {"r", "r+", "a", "w", "w-"}
        Read; read and write; open or create; create and replace; create where nothing is.
    path : str
        Of the array in the store.
    shape, chunks, dtype, fill_value, attributes, compressors
        Of an array that is created; see `create_array`.
    cname, clevel, shuffle
        Of an array that is created in the ``__zmeta__`` format: compressor, level 0 to 9, and 0, 1 or 2 for no, byte
        or bit shuffle. Any of them asks for that format.
    zarr_format : {"zmeta", 3, 2}, optional
        Of an array that is created; what `open` must find, of one that exists.
    lock : bool
        Lock every stored object while it is replaced, so that threads and processes that write parts of one chunk
        lose nothing. None and False write without locks.
    missing : {"fill", "raise"}
        Whether an absent object stands for the fill value or is an error.
    threads : int, optional
        Of each read and write; `zcore.config.threads` by default.
    strict : bool
        Refuse chunks that the format forbids, even where they can be read.
    write_empty_chunks : bool
        Store chunks that hold only the fill value; else they are erased.
    fsync : bool
        Every change reaches the disk before the call returns.

    Returns
    -------
    Array

    Raises
    ------
    NodeNotFoundError
        Nothing to open.
    NodeExistsError
        Mode ``"w-"``, and an array is there.
    MetadataError
        A metadata document breaks a rule of its format.
    UnsupportedError
        What is there needs something that zcore does not have.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     a = open(folder, mode="w", shape=(10, 10), chunks=(5, 5), dtype="i4", fill_value=42, cname="lz4")
    ...     a[0, :] = 1
    ...     b = open(folder)
    ...     int(b[0, 0]), int(b[9, 9])
    (1, 42)
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {', '.join(MODES)}")
    options = Options(lock, missing, threads, strict, write_empty_chunks, mode == "r")
    store = _store_of(store, mode == "r", fsync, check_base=mode not in ("r", "r+"))
    path = _path_of(path)
    if mode in ("r", "r+", "a"):
        binding = _find(store, path, zarr_format, options)
        if binding is not None:
            return Array(binding)
        if mode != "a" or shape is None:
            raise _not_found(store, path, zarr_format, options)
    if shape is None:
        raise TypeError(f"mode {mode!r} creates an array and needs shape= and dtype=")
    if zarr_format is None and (cname, clevel, shuffle) != (None, None, None):
        zarr_format = "zmeta"
    settings = {"cname": cname, "clevel": clevel, "shuffle": shuffle}
    try:
        return _create(store, path, shape, dtype, chunks, fill_value, compressors, settings, zarr_format or 3,
                       attributes, options, mode == "w")
    except NodeExistsError:
        if mode != "a":
            raise
        # Somebody else created it since we looked, and may have deleted it again.
        binding = _find(store, path, zarr_format, options)
        if binding is None:
            raise _not_found(store, path, zarr_format, options) from None
        return Array(binding)


def create_array(store, *, name=None, shape, dtype, chunks="auto", compressors="auto", fill_value=..., zarr_format=3,
                 attributes=None, overwrite=False, lock=True, missing="fill", threads=None, strict=True,
                 write_empty_chunks=False, fsync=False):
    """Create an array.

    Parameters
    ----------
    store : str, os.PathLike or Store
    name : str, optional
        Path of the array in the store; its root by default.
    shape : int or tuple of int
    dtype : object
        What `numpy.dtype` takes.
    chunks : tuple of int, int, "auto" or str
        Elements per chunk; a size such as ``"4 MB"`` lets zcore choose.
    compressors : codec, dict, None or "auto"
        One compressor, such as ``zcore.codecs.BloscCodec(cname="lz4", clevel=3, shuffle=1)``; None for no
        compressor, where the format can do without.
    fill_value : scalar or None
        Of elements never written; None leaves it undefined. By default zero, or empty text.
    zarr_format : {3, 2, "zmeta"}
    attributes : dict, optional
    overwrite : bool
        Replace an array that is there.
    lock, missing, threads, strict, write_empty_chunks, fsync
        See `open`.

    Returns
    -------
    Array

    Raises
    ------
    NodeExistsError
        An array is there, and `overwrite` is false.
    ValueError, TypeError, UnsupportedError
        The format cannot express what is asked for.
    """
    options = Options(lock, missing, threads, strict, write_empty_chunks)
    path = _path_of("" if name is None else name)
    return _create(_store_of(store, False, fsync), path, shape, dtype, chunks, fill_value, _chosen(compressors), {},
                   zarr_format, attributes, options, overwrite)


def _create(store, path, shape, dtype, chunks, fill_value, compressors, settings, zarr_format, attributes, options,
            overwrite):
    if dtype is None:
        raise TypeError("creating an array needs dtype=")
    format = FORMATS.get(zarr_format)
    if format is None:
        raise UnsupportedError(
            f"this version cannot write zarr_format {zarr_format!r}; pass zarr_format="
            f"{' or '.join(map(repr, FORMATS))}", feature=f"zarr_format {zarr_format}")
    dtype = np.dtype(dtype)
    if dtype.itemsize == 0:
        raise ValueError(f"data type {dtype.str!r} has items of no bytes; text needs a length, such as 'U10'")
    if attributes is not None and not isinstance(attributes, Mapping):
        raise TypeError(f"attributes are a mapping, not {type(attributes).__name__}")
    if fill_value is ...:
        fill_value = _zero(dtype)
    prefix = path + "/" if path else ""
    for kind in _KINDS:
        if kind.format is None and store.exists(prefix + kind.document):
            raise NodeExistsError(f"{path or store!r} holds a {kind.name} node ({kind.document}), which this version "
                                  "does not replace", path=path)
    metadata = format.new_array(shape, dtype, chunks, fill_value, _specs_of(compressors, dtype), **settings)
    _check_can_compress(metadata.codecs)
    return Array(lifecycle.create(store, path, format, metadata, attributes, options, overwrite=overwrite))


def _zero(dtype):
    """Return the fill value of an array for which none was given, as a format records it."""
    if dtype.names is not None:
        # No scalar is zero in a number and empty in a text; undefined reads as both.
        return None
    return "" if dtype.kind in "SU" else 0


def _check_can_compress(codecs):
    for codec in codecs:
        cname = codec.configuration.get("cname")
        if codec.name == "blosc" and not blosc.can_compress(cname):
            raise UnsupportedError(
                f"the linked c-blosc cannot compress by {cname}; it has "
                f"{', '.join(filter(blosc.can_compress, blosc.COMPRESSORS))}", feature=cname)


def _chosen(compressors):
    """Return what `create_array` calls compressors as `open` does: there None leaves the choice."""
    if compressors is None:
        return ()
    return None if isinstance(compressors, str) and compressors == "auto" else compressors


def _specs_of(compressors, dtype):
    """Return the codecs that a caller named as a tuple of `CodecSpec`, or None when he left the choice."""
    if compressors is None:
        return None
    from zcore.codecs.chain import CODECS
    from zcore.errors import UnknownCodecError

    specs = []
    for codec in compressors if isinstance(compressors, (list, tuple)) else [compressors]:
        if isinstance(codec, dict):
            cls = CODECS.get(codec.get("name"))
            if cls is None:
                raise UnknownCodecError(f"no codec is named {codec.get('name')!r}", feature="codec",
                                        codec=codec.get("name"))
            codec = cls.from_configuration(codec.get("configuration") or {})
        if hasattr(codec, "resolve"):
            codec = codec.resolve(np.dtype(dtype).itemsize)
        if not hasattr(codec, "spec"):
            raise TypeError(f"a compressor is a codec or a dict, not {type(codec).__name__}")
        specs.append(codec.spec())
    return tuple(specs)


def _store_of(store, read_only, fsync, check_base=True):
    if not isinstance(store, str):
        if isinstance(store, Store):
            return store
        store = os.fspath(store)
    if isinstance(store, str) and ":" in store:
        # A colon is either a URI's or part of a name: the URI rules decide.
        return DirectoryStore.from_uri(store, read_only=read_only, fsync=fsync)
    return DirectoryStore(store, read_only=read_only, fsync=fsync, check_base=check_base)


def _path_of(path):
    """Return a path without the one leading ``/`` that the hierarchy's own spelling has.

    What else is wrong with it is found when the first key is made of it.
    """
    if not isinstance(path, str):
        raise TypeError(f"the path of an array is a str, not {type(path).__name__}")
    return path[1:] if path.startswith("/") else path


def _not_found(store, path, zarr_format, options):
    """Return the error that says what is there instead of the array that was asked for."""
    place = store.describe(path)
    if store.native_path is not None and not os.path.lexists(os.path.join(store.native_path, path)):
        reason = f"{place} does not exist"
    elif zarr_format is not None and (other := _find(store, path, None, options)) is not None:
        reason = f"{place} is of the format {other.format.name!r}, asked for was {zarr_format!r}"
    else:
        reason = f"{place} holds no array"
    return NodeNotFoundError(reason, path=path, format=zarr_format)


def _find(store, path, zarr_format, options):
    """Return the binding of the array at `path`, or None."""
    prefix = path + "/" if path else ""
    kinds = _KINDS
    if zarr_format is not None:
        kinds = [kind for kind in _KINDS if kind.format is None or kind.name == zarr_format]
    found = store.get_first([prefix + kind.document for kind in kinds], MAX_NBYTES + 1)
    if found is None:
        return None
    kind = kinds[found[0]]
    if kind.format is None:
        raise UnsupportedError(f"{path or store!r} is a {kind.name} node, which this version does not read",
                               feature=kind.name)
    return Binding(store, path, kind.format, options, found[1:])
