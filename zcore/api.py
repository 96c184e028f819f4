"""The functions that make arrays: open and create. Names and keywords are those of zarr-python."""
from collections.abc import Mapping

import numpy as np

from zcore import blosc, lifecycle, nodes
from zcore.arrays import Array
from zcore.codecs.chain import codec_of
from zcore.errors import NodeExistsError, UnsupportedError, ZcoreError
from zcore.formats import FORMATS, check_format
from zcore.options import Options, as_bool

MODES = ("r", "r+", "a", "w", "w-", "x")


def open(store, mode="r", *, path="", shape=None, chunks=None, dtype=None, fill_value=..., cname=None, clevel=None,
         shuffle=None, compressors="auto", zarr_format=None, attributes=None, lock=True, missing="fill", threads=None,
         strict=True, write_empty_chunks=False, fsync=False):
    """Open an array, or create it.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a ``file:`` URI, or a store.
    mode : {"r", "r+", "a", "w", "w-", "x"}
        Read; read and write; open or create; create and replace; create where nothing is, by two names.
    path : str
        Of the array in the store.
    shape, chunks, dtype, fill_value
        Of an array that is created; see `create_array`. One that exists must have what is given of these, since a
        caller who is wrong about it would read or write something else than he means.
    attributes, compressors
        Of an array that is created; see `create_array`. One that exists keeps its own: they do not change what its
        elements are.
    cname, clevel, shuffle
        Of an array that is created in the ``__zmeta__`` format: compressor, level 0 to 9, and 0, 1 or 2 for no, byte
        or bit shuffle. Any of them asks for that format. One that exists keeps its own.
    zarr_format : {"zmeta", 3, 2}, optional
        Of an array that is created; what `open` must find, of one that exists.
    lock : bool or None
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
        Mode ``"w-"`` or ``"x"``, and an array is there.
    ArrayMismatchError
        The array that is there has another shape, chunk shape, type or fill value than was given. It is both a
        TypeError, as in h5py and zarr-python, and a ValueError.
    MetadataError
        A metadata document breaks a rule of its format.
    UnsupportedError
        What is there needs something that zcore does not have.

    Examples
    --------
    >>> import tempfile, zcore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     a = zcore.open(folder, mode="w", shape=(10, 10), chunks=(5, 5), dtype="i4", fill_value=42, cname="lz4")
    ...     a[0, :] = 1
    ...     b = zcore.open(folder)
    ...     int(b[0, 0]), int(b[9, 9])
    (1, 42)
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {', '.join(MODES)}")
    check_format(zarr_format)
    options = Options(lock, missing, threads, strict, write_empty_chunks, mode == "r")
    store = nodes.store_of(store, mode == "r", as_bool(fsync, "fsync"), check_base=mode not in ("r", "r+"))
    path = nodes.path_of(path)
    described = shape, chunks, dtype, fill_value
    if mode in ("r", "r+", "a"):
        array = _existing(store, path, zarr_format, options, described)
        if array is not None:
            return array
        if mode != "a" or shape is None:
            advice = "; mode 'a' creates an array where shape= and dtype= are given" if mode == "a" else ""
            raise nodes.not_found(store, path, zarr_format, options, advice)
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
        array = _existing(store, path, zarr_format, options, described)
        if array is None:
            raise nodes.not_found(store, path, zarr_format, options) from None
        return array


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
    overwrite = as_bool(overwrite, "overwrite")
    store = nodes.store_of(store, False, as_bool(fsync, "fsync"))
    path = nodes.path_of("" if name is None else name)
    return _create(store, path, shape, dtype, chunks, fill_value, compressors, {}, zarr_format, attributes, options,
                   overwrite)


def _existing(store, path, zarr_format, options, described):
    """Return the array at `path`, or None; `described` is what a caller expects of it."""
    binding = nodes.find(store, path, zarr_format, options)
    if binding is None:
        return None
    nodes.check_is_asked_for(binding, *described)
    return Array(binding)


def _create(store, path, shape, dtype, chunks, fill_value, compressors, settings, zarr_format, attributes, options,
            overwrite):
    if dtype is None:
        raise TypeError("creating an array needs dtype=")
    check_format(zarr_format)
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
    nodes.check_replaceable(store, path)
    metadata = format.new_array(shape, dtype, chunks, fill_value, _specs_of(compressors, dtype), **settings)
    _check_can_compress(metadata.codecs)
    try:
        return Array(lifecycle.create(store, path, format, metadata, attributes, options, overwrite=overwrite))
    except ZcoreError as error:
        error.locate(store.describe(path))
        raise


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


def _specs_of(compressors, dtype):
    """Return the codecs that a caller named as a tuple of `CodecSpec`, or None when he left the choice."""
    if isinstance(compressors, str) and compressors == "auto":
        return None
    if compressors is None:
        compressors = ()
    specs = []
    for codec in compressors if isinstance(compressors, (list, tuple)) else [compressors]:
        if isinstance(codec, dict):
            codec = codec_of(codec.get("name"), codec.get("configuration") or {})
        if hasattr(codec, "resolve"):
            codec = codec.resolve(dtype.itemsize)
        if not hasattr(codec, "spec"):
            raise TypeError(f"a compressor is a codec, such as zcore.codecs.BloscCodec(cname='lz4'), or a dict of its "
                            f"name and configuration, not {codec!r:.60}")
        specs.append(codec.spec())
    return tuple(specs)
