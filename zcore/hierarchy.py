"""Whole hierarchies: opened or created as a group, made of metadata, shown, their metadata gathered in one document.

Names and keywords are those of zarr-python.
"""
from zcore import consolidated, creation
from zcore.api import open_group
from zcore.groups import Group, node_of
from zcore.lifecycle import read_attributes
from zcore.nodes import store_of
from zcore.options import Options, as_bool
from zcore.stores.memory import MemoryStore


def group(store=None, *, overwrite=False, **keywords):
    """Open a group for reading and writing, or create it.

    Parameters
    ----------
    store : str, os.PathLike or Store, optional
        By default a `MemoryStore` of its own.
    overwrite : bool
        Replace the node that is there, with all nodes below it.
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


def open_consolidated(store, mode="r", **keywords):
    """Open a group, and list its members by the copy of their metadata that it must have; see `zcore.open_group`.

    Raises : ValueError, if there is no copy; what `zcore.open_group` raises.
    """
    return open_group(store, mode, use_consolidated=True, **keywords)


def consolidate_metadata(store, *, path="", zarr_format=None):
    """Copy the metadata of all nodes below a group into one document, so that listing them needs only that.

    A later change below drops the copy before it happens. One that happens meanwhile is either in the copy, or has
    dropped it when it is done.

    Parameters
    ----------
    store : str, os.PathLike or Store
    path : str
        Of the group in the store.
    zarr_format : {3, 2}, optional
        Which must be there.

    Returns
    -------
    Group
        Its ``metadata.consolidated`` is the copy, a mapping of paths to metadata.

    Raises
    ------
    NodeNotFoundError
        There is no group.
    MetadataError, UnsupportedError
        A member cannot be read, or is of another format than the group: the copy would say that it is not there.
    StoreError
        A member is unreachable. Or the hierarchy changes faster than it can be copied; there is no copy then.
    """
    group = open_group(store, "r+", path=path, zarr_format=zarr_format, use_consolidated=False)
    consolidated.consolidate(group._binding, read_attributes)
    return Group(group._binding, consolidated.copy_of(group._binding))


def create_hierarchy(*, store, nodes, overwrite=False, **options):
    """Create arrays and groups, nothing written yet, from their metadata.

    Parameters
    ----------
    store : str, os.PathLike or Store
    nodes : mapping of str to ArrayMetadata or GroupMetadata
        What `metadata` of a handle is, by its new path. Groups above that are missing are created. Zarr v2 has
        attributes in a document of their own: they do not come along.
    overwrite : bool
        Replace the nodes that are there, each with all nodes below it, as `zcore.create_array` does.
    **options
        ``lock`` and its kin, see `zcore.open`.

    Returns
    -------
    iterator of (str, Array or Group)
        In the order of creation, groups before what they hold.

    Raises
    ------
    NodeExistsError
        A node is there, and `overwrite` is false; or one of `nodes` lies below an array. Nothing has been changed then.
    StoreError, UnsupportedError, ValueError, TypeError
        As for `zcore.create_array`, of any of them; nothing has been changed then either.

    Examples
    --------
    >>> g = group()
    >>> a = g.create_array("a/b", shape=(4, 6), dtype="f4")
    >>> nodes = {path: node.metadata for path, node in g.members(None)}
    >>> copy = dict(create_hierarchy(store=MemoryStore(), nodes=nodes))
    >>> list(copy), copy["a/b"].shape
    (['a', 'a/b'], (4, 6))
    """
    fsync = as_bool(options.pop("fsync", False), "fsync")
    made = creation.create_hierarchy(store_of(store, False, fsync), "", nodes, Options(**options),
                                     overwrite=as_bool(overwrite, "overwrite"))
    return iter([(path, node_of(binding)) for path, binding in made])


def tree(place, *, path=None, max_depth=None):
    """Return a hierarchy as text, a node a line.

    Parameters
    ----------
    place : Group, str, os.PathLike or Store
    path : str, optional
        Of the group in the store.
    max_depth : int, optional
        0 shows the members right below; by default all are shown.

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
