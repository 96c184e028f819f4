"""A node with all below it, brought to another place, format, chunking or type."""
from zcore.errors import UnsupportedError


def copy(source, destination, *, path="", destination_path="", chunks=None, shards=None, codecs=None,
         compressors=None, dtype=None, order=None, zarr_format=None, selection=None, memory="1 GB", overwrite=False,
         threads=None, progress=None):
    """Copy an array, or a group with all below it.

    What nothing changes about is passed on as it is stored, without a decode: a ``__zmeta__`` array becomes one of
    Zarr v2 or v3 by copying its objects under other names. Else elements are read and written in parallel, each object
    once as far as `memory` allows. The destination is not there before it is complete. Where it is a directory, a copy
    that was interrupted goes on from where it was when it is called again with the same arguments.

    Parameters
    ----------
    source : str, os.PathLike, mapping, Store, Array or Group
        A directory, a zip file, a reference set, a ``file:`` URI, a store, a node; or a file ``.npy``, ``.npz``,
        ``.h5``, ``.hdf5`` or ``.nc`` (extra "hdf5").
    destination : str, os.PathLike or Store
        A directory, ``.zip``, ``.npy``, ``.npz``, ``.h5``, ``.hdf5`` or ``.nc``, or a store.
    path, destination_path : str, optional
        Of the node in the source, and of the new one in the destination; by default the root.
    chunks, shards, codecs, compressors, dtype, order
        Of new arrays, as `zcore.create_array` has them; None for those of the source. ``shards=False`` cuts shards up
        into their chunks.
    zarr_format : {3, 2, "zmeta"}, optional
        By default that of the source, or 3.
    selection : object, optional
        Integers, slices with any step and ..., of an array; by default all.
    memory : int or str
        How much is held at once, of elements and of what their codecs need besides.
    overwrite : bool
        Replace the node that stands at the destination, with all below it.
    threads : int, optional
        By default `zcore.config.threads`.
    progress : callable, optional
        ``progress(done, total)`` is called now and then, in bytes of elements.

    Returns
    -------
    Array, Group or None
        The new node, opened for reading; None where the destination is a file that is no store.

    Raises
    ------
    NodeNotFoundError
        There is no node at the source.
    NodeExistsError
        A node, or a file, stands at the destination, and `overwrite` is false.
    ValueError, TypeError, UnsupportedError
        The destination cannot express what is asked for.
    ChunkError, StoreError
        Something could not be read or written. The state of a copy to a directory is kept, to go on from.

    Warns
    -----
    UserWarning
        Of attributes, dimension names, groups and consolidated metadata that the destination cannot keep, by name.

    Examples
    --------
    >>> import zcore
    >>> a = zcore.array([[1, 2, 3], [4, 5, 6]], chunks=(1, 3))
    >>> b = copy(a, zcore.MemoryStore(), chunks=(2, 1), zarr_format=2)
    >>> b.chunks, b.zarr_format, b[:, 1]
    ((2, 1), 2, array([2, 5]))
    """
    raise UnsupportedError("copy is being written", feature="copy")
