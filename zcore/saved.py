"""NumPy arrays stored and loaded by one call, as `numpy.save`, `numpy.savez` and `numpy.load` do."""
from zcore import creation, nodes
from zcore.api import create_array, open
from zcore.arrays import Array
from zcore.options import Options, as_bool


def save(store, *arrays, path=None, zarr_format=3, overwrite=False, **named):
    """Store one array, or several as members of a group.

    Parameters
    ----------
    store : str, os.PathLike or Store
    *arrays, **named : array_like
        One without a name is stored as an array; else they are members of a group, those without a name ``arr_0``,
        ``arr_1``, … as in `numpy.savez`.
    path, zarr_format, overwrite
        See `zcore.create_array`. What is there is replaced only with ``overwrite=True``.

    Raises
    ------
    NodeExistsError
        A node is there, and `overwrite` is false.

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


def save_array(store, data, *, path=None, **keywords):
    """Store one array; see `save`. `keywords` are those of `zcore.create_array`."""
    create_array(store, name=path, data=data, **keywords)


def save_group(store, *arrays, path=None, zarr_format=3, overwrite=False, **named):
    """Store arrays, be it a single one, as members of a group; see `save`.

    Nothing is replaced unless all of them can be stored.

    Raises : ValueError, if there is none, or a name is given twice.
    """
    if not arrays and not named:
        raise ValueError("expected at least one array")
    unnamed = {f"arr_{i}": array for i, array in enumerate(arrays)}
    twice = unnamed.keys() & named.keys()
    if twice:
        raise ValueError(f"an array without a name would be {min(twice)}, as the one of that name")
    members = {nodes.path_of(name, zarr_format): creation.new_array(data=array, zarr_format=zarr_format)
               for name, array in {**unnamed, **named}.items()}
    if "" in members or len(members) < len(unnamed) + len(named):
        raise ValueError(f"the names {', '.join(map(repr, named))} are not those of as many members")
    creation.create_all(nodes.store_of(store, False, False), nodes.path_of(path, zarr_format),
                        {"": creation.new_group(zarr_format=zarr_format), **members}, Options(),
                        overwrite=as_bool(overwrite, "overwrite"))


def load(store, path=None, *, zarr_format=None):
    """Return an array as an ndarray; of a group a dict of all arrays below it, by their paths.

    Parameters
    ----------
    store : str, os.PathLike or Store
    path : str, optional
        Of the node in the store.
    zarr_format : {3, 2, "zmeta"}, optional
        What must be there.

    Raises
    ------
    NodeNotFoundError
        There is nothing, or nothing of that format.
    ChunkError, StoreError, OutOfMemoryError
        See `zcore.Array.read`.
    """
    node = open(store, path=path, zarr_format=zarr_format)
    if isinstance(node, Array):
        return node[...]
    return {name: member[...] for name, member in node.members(None) if isinstance(member, Array)}
