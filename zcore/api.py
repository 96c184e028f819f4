"""The functions that make arrays and groups: open and create. Names and keywords are those of zarr-python."""
from zcore import consolidated, creation, nodes
from zcore.arrays import Array
from zcore.binding import GroupBinding
from zcore.errors import NodeExistsError, NodeNotFoundError
from zcore.formats import check_format
from zcore.groups import Group, node_of
from zcore.options import Options, as_bool

MODES = ("r", "r+", "a", "w", "w-", "x")


def open(store, mode="r", *, path="", shape=None, chunks=None, dtype=None, fill_value=..., cname=None, clevel=None,
         shuffle=None, compressors="auto", zarr_format=None, dimension_separator=None, attributes=None, lock=True,
         missing="fill", threads=None, strict=True, write_empty_chunks=False, fsync=False, cache=None):
    """Open an array or a group, or create it.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a ``file:`` URI, or a store.
    mode : {"r", "r+", "a", "w", "w-", "x"}
        Read; read and write; open or create; create, and replace what is there with all below it; create where nothing
        is, by two names.
    path : str, optional
        Of the node in the store; its root by default.
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
    dimension_separator : {"/", "."}, optional
        What joins the indices in the chunk keys of a Zarr v2 array whose document does not say it: old programs, such
        as those that wrote OME-Zarr 0.2, nested their chunks without a word. The handle keeps it, and the document says
        it from its next change on, a resize. Of a Zarr v2 array that is created it is the separator.
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
        Store chunks that hold only the fill value; else they are erased. An undefined fill value is in none.
    fsync : bool
        Every change reaches the disk before the call returns.
    cache : int or str, optional
        Memory for decoded chunks that are read again, such as ``"64 MB"``: those used last are kept, each as long as
        its object stays as it was. For this handle, and what is opened through it; 0 for none. By default what
        `zcore.config.cache` says for all of them together, which is none.

    Returns
    -------
    Array or Group
        What stands there; what is created is an array when there is a `shape`, else a group.

    Raises
    ------
    NodeNotFoundError
        Nothing to open.
    NodeExistsError
        Mode ``"w-"`` or ``"x"``, and a node is there.
    StoreError
        A node is to be created where there is none, but attributes or chunks of one whose document was lost; mode
        ``"w"`` erases them.
    TypeError
        An array is described that is to be created, and it has no `shape` or no `dtype`.
    ArrayMismatchError
        The array that is there has another shape, chunk shape, type, fill value or separator than was given, or has no
        separator as it is not of Zarr v2. It is both a TypeError, as in h5py and zarr-python, and a ValueError.
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
    _check_mode(mode)
    check_format(zarr_format)
    options = Options(lock, missing, threads, strict, write_empty_chunks, mode == "r", dimension_separator, cache)
    if dimension_separator is not None and zarr_format not in (None, 2):
        raise ValueError(f"dimension_separator is of Zarr v2, zarr_format is {zarr_format!r}")
    store = nodes.store_of(store, mode == "r", as_bool(fsync, "fsync"), check_base=mode not in ("r", "r+"))
    path = nodes.path_of(path, zarr_format)
    if zarr_format is None and shape is not None and (cname, clevel, shuffle) != (None, None, None):
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
                                 compressors=None if compressors == "auto" else repr(compressors))
            return Group(creation.create_group(store, path, options, zarr_format=of_new, attributes=attributes,
                                               overwrite=mode == "w"))
        if dimension_separator is not None and zarr_format != 2:
            raise ValueError("a new array of a dimension_separator is of Zarr v2 and needs zarr_format=2")
        return Array(creation.create_array(
            # Its document says the separator.
            store, path, options.changed({"dimension_separator": None}) if dimension_separator else options,
            shape=shape, dtype=dtype, chunks=chunks, fill_value=fill_value, cname=cname, clevel=clevel,
            shuffle=shuffle, compressors=compressors, zarr_format=of_new, chunk_key_encoding=dimension_separator,
            attributes=attributes, overwrite=mode == "w"))

    return _opened(store, path, zarr_format, options, mode, "node", find, make)


def _opened(store, path, zarr_format, options, mode, what, find, make):
    """Return the node that is found or made, as the mode says; `find` and `make` as for `creation.found_or_made`."""
    if mode in ("w", "w-", "x"):
        return make()
    found = None
    try:
        found = creation.found_or_made(find, make, path) if mode == "a" else find()
    except NodeExistsError as error:
        if error.path != path:
            raise
        # A node of another format, or one that others create and delete faster than we look.
    if found is None:
        raise nodes.not_found(store, path, zarr_format, options, what)
    return found


def _check_is_of_a_group(mode, **of_arrays):
    """Raise TypeError when what is to be created without a shape is described as an array."""
    given = [name for name, value in of_arrays.items() if value is not None]
    if given:
        raise TypeError(f"mode {mode!r} creates an array and needs shape= and dtype=, as {given[0]}= is given")


def create_array(store, *, name=None, shape=None, dtype=None, data=None, chunks="auto", shards=None, filters=None,
                 serializer="auto", compressors="auto", codecs=None, order="C", fill_value=..., zarr_format=3,
                 attributes=None, chunk_key_encoding=None, dimension_names=None, checksum=True, overwrite=False,
                 lock=True, missing="fill", threads=None, strict=True, write_empty_chunks=False, fsync=False,
                 cache=None):
    """Create an array, and the groups above it that are missing.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a ``file:`` URI, or a store.
    name : str, optional
        Path of the array in the store; its root by default.
    shape : int or tuple of int
    dtype : object
        What `numpy.dtype` takes, `str` and `bytes` being of any length; in Zarr v3 also the name of a type that NumPy
        has not, such as ``"bfloat16"``.
    data : array_like, optional
        What the array is to hold. It says the shape, and the type unless `dtype` does.
    chunks : tuple of int, int, "auto" or str
        Elements per chunk; an int in every dimension, -1 or None for the whole of a dimension, a size such as
        ``"4 MB"`` lets zcore choose, "auto" does so with 1 MiB. A dimension may have a list of the lengths of all its
        chunks, as in ``[[2, 3, 5], 4]``; Zarr v3 only (chunk grid ``rectilinear``).
    shards : tuple of int, int, "auto", str or dict, optional
        Elements per stored object, a multiple of the chunks; the rest as in `chunks`, "auto" being 64 MiB. A dict has
        them as ``"shape"``, beside ``"index_location"``, ``"start"`` or ``"end"``. Zarr v3 only.
    filters, serializer
        Codecs before the compressors: array to array, and array to bytes; by default what the type needs.
    compressors : codec, dict, sequence of these, None or "auto"
        Such as ``zcore.codecs.BloscCodec(cname="lz4", clevel=3, shuffle=1)``, or as documents have it,
        ``{"name": "numcodecs.lzma", "configuration": {"preset": 1}}``; None for none, where the format can do without.
    codecs : sequence, optional
        The whole chain from array to bytes, literally, instead of the three above, `order` and `shards`; not for
        ``"zmeta"``.
    order : {"C", "F"}
        Of the elements in a chunk.
    fill_value : scalar or None
        Of elements never written; None leaves it undefined where the format can. By default zero, empty text, or in
        Zarr v3 NaT.
    zarr_format : {3, 2, "zmeta"}
    attributes : dict, optional
    chunk_key_encoding : {"default", "v2"} or dict, optional
        How chunks are named in Zarr v3: ``c/0/1`` by default, or ``0.1``; ``{"name": …, "separator": …}`` has another
        separator, ``"/"`` or ``"."``. In Zarr v2 the second one, or the separator alone.
    dimension_names : sequence of str or None, optional
        One for each dimension; Zarr v3 only.
    checksum : bool
        Let a checksum follow the compressors, so that every damage is found; Zarr v3 only.
    overwrite : bool
        Replace the node that is there, with all nodes below it, and what nodes whose documents were lost have left.
    lock, missing, threads, strict, write_empty_chunks, fsync, cache
        See `open`.

    Returns
    -------
    Array

    Raises
    ------
    NodeExistsError
        A node is there, and `overwrite` is false.
    StoreError
        There is no node, but attributes or chunks of one whose document was lost, and `overwrite` is false.
    UnknownCodecError
        There is no codec of a name; it is an UnsupportedError.
    ValueError, TypeError, UnsupportedError
        The format cannot express what is asked for.

    Examples
    --------
    >>> import zcore
    >>> a = zcore.create_array(zcore.MemoryStore(), name="t2m", shape=(48, 90, 180), chunks=(4, 30, 60),
    ...                        shards=(24, 90, 180), dtype="f4", fill_value=float("nan"),
    ...                        compressors=zcore.codecs.ZstdCodec(level=3), dimension_names=("time", "lat", "lon"))
    >>> a
    <zcore.Array 'MemoryStore/t2m' (48, 90, 180) float32, chunks (4, 30, 60), shards (24, 90, 180), format 3>
    """
    options = Options(lock, missing, threads, strict, write_empty_chunks, cache=cache)
    store = nodes.store_of(store, False, as_bool(fsync, "fsync"))
    return Array(creation.create_array(
        store, nodes.path_of(name, zarr_format), options, shape=shape, dtype=dtype, data=data, chunks=chunks,
        shards=shards, filters=filters, serializer=serializer, compressors=compressors, codecs=codecs, order=order,
        fill_value=fill_value, zarr_format=zarr_format, attributes=attributes, chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names, checksum=checksum, overwrite=overwrite))


def create_group(store, *, path="", zarr_format=3, attributes=None, overwrite=False, lock=True, missing="fill",
                 threads=None, strict=True, write_empty_chunks=False, fsync=False, cache=None):
    """Create a group, and the groups above it that are missing.

    Parameters
    ----------
    store : str, os.PathLike or Store
        A directory, a ``file:`` URI, or a store.
    path : str, optional
        Of the group in the store; its root by default.
    zarr_format : {3, 2}
    attributes : dict, optional
        Of the group.
    overwrite : bool
        Replace the node that is there, with all nodes below it, and what nodes whose documents were lost have left.
    lock, missing, threads, strict, write_empty_chunks, fsync, cache
        See `open`; for the group and the arrays that are opened through it.

    Returns
    -------
    Group

    Raises
    ------
    NodeExistsError
        A node is there, and `overwrite` is false.
    StoreError
        There is no node, but attributes of one whose document was lost, and `overwrite` is false.
    """
    options = Options(lock, missing, threads, strict, write_empty_chunks, cache=cache)
    store = nodes.store_of(store, False, as_bool(fsync, "fsync"))
    return Group(creation.create_group(store, nodes.path_of(path, zarr_format), options, zarr_format=zarr_format,
                                       attributes=attributes, overwrite=overwrite))


def open_array(store, mode="r", **keywords):
    """Open an array, or create it.

    Parameters
    ----------
    store, mode, **keywords
        Those of `open`, which gives a group where one stands. Without a `shape` mode ``"a"`` creates nothing.

    Returns
    -------
    Array

    Raises
    ------
    NodeNotFoundError
        There is none, or a group.
    """
    if keywords.get("shape") is None:
        if mode in ("w", "w-", "x"):
            raise TypeError(f"mode {mode!r} creates an array and needs shape= and dtype=")
        if mode == "a":
            mode = "r+"     # what could be created is no array
    found = open(store, mode, **keywords)
    if not isinstance(found, Array):
        raise NodeNotFoundError(f"{found.store.describe(found.path)} holds a group, not an array", path=found.path)
    return found


def open_group(store, mode="r", *, path="", zarr_format=None, use_consolidated=None, attributes=None, lock=True,
               missing="fill", threads=None, strict=True, write_empty_chunks=False, fsync=False, cache=None):
    """Open a group, or create it.

    Parameters
    ----------
    store, mode, path, lock, missing, threads, strict, write_empty_chunks, fsync, cache
        See `open`.
    zarr_format : {3, 2}, optional
        Of a group that is created, 3 by default; what must be there, of one that exists.
    use_consolidated : bool, optional
        List members by the copy of their metadata that the group has, which may be older than they are: False never,
        True always, None where there is one. The members themselves are read from the store.
    attributes : dict, optional
        Of a group that is created.

    Returns
    -------
    Group

    Raises
    ------
    NodeNotFoundError
        There is none, or an array.
    ValueError
        `use_consolidated` is true, and there is no copy.
    NodeExistsError
        Mode ``"w-"``, and a node is there.
    """
    _check_mode(mode)
    options = Options(lock, missing, threads, strict, write_empty_chunks, mode == "r", cache=cache)
    store = nodes.store_of(store, mode == "r", as_bool(fsync, "fsync"))
    path = nodes.path_of(path, zarr_format)
    def find():
        found = nodes.find_or_read_set(store, path, zarr_format, options)
        if found is None:
            return None
        if not isinstance(found, GroupBinding):
            raise NodeNotFoundError(f"{store.describe(path)} holds an array, not a group", path=path)
        copy = None if use_consolidated is False else consolidated.copy_of(found)
        if copy is None and use_consolidated:
            raise ValueError(f"{store.describe(path)} has no consolidated metadata")
        return Group(found, copy)

    def make():
        if use_consolidated:
            raise ValueError(f"{store.describe(path)} would be a new group, which has no consolidated metadata")
        return Group(creation.create_group(store, path, options, zarr_format=zarr_format or 3, attributes=attributes,
                                           overwrite=mode == "w"))

    return _opened(store, path, zarr_format, options, mode, "group", find, make)


def _existing(store, path, zarr_format, options, described):
    """Return the node at `path`, or None; `described` is what a caller expects of an array."""
    binding = nodes.find_or_read_set(store, path, zarr_format, options)
    if binding is None:
        return None
    node = node_of(binding)
    if isinstance(node, Array):
        nodes.check_is_asked_for(binding, *described)
    elif (described[0], described[2], options.dimension_separator) != (None, None, None):
        raise NodeNotFoundError(f"{store.describe(path)} holds a group, not an array", path=path)
    return node


def _check_mode(mode):
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {', '.join(MODES)}")
