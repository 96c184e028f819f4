"""Finds the stored arrays that dask still reads for a write, so that the write does not change them first.

The graph holds the arrays. It is pickled to nowhere, since a pickle visits all that a task holds: tuples, partials,
closures. An array is known by the place of its store, however that is spelled, and by its path.

A write that replaces nodes may read none of them. A write that changes elements may read the same arrays if no block of
dask reads a box that another block is written to: what a block reads itself, it reads before it is written.
"""
from __future__ import annotations

import os
import sys
from itertools import product
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import zcore
from zcore.stores.base import FileParts, Store
from zcore.stores.keys import prefix_of
from zcore.stores.openers import is_url, store_of
from zcore.trust.file_uri import uri_to_path

if TYPE_CHECKING:
    import xarray

_ADVICE = "load it first, by load() or compute(), or write to another place"
# Protocols of fsspec, and the class of obstore, whose objects are files.
_LOCAL = ("file", "local", "LocalStore")


class Write(NamedTuple):
    """One write to an array.

    Attributes
    ----------
    source : dask.array.Array or numpy.ndarray
    given : dask.array.Array or numpy.ndarray
        The elements before they were encoded.
    path : str
        Of the array.
    starts : tuple of int
        Where in the array the box of the elements begins.
    """

    source: Any
    given: Any
    path: str
    starts: tuple[int, ...]

    @property
    def is_lazy(self) -> bool:
        return hasattr(self.source, "__dask_graph__")


def check_not_deleted(place: Any, path: str, ds: xarray.Dataset) -> None:
    """Raise ValueError if what is not computed yet is read from a group that is about to be replaced.

    Parameters
    ----------
    place : object
        What `zcore.open` takes.
    path : str
        Of the group in it.
    ds : xarray.Dataset
    """
    graphs = [variable.data.__dask_graph__() for variable in ds.variables.values()
              if hasattr(variable._data, "__dask_graph__")]
    group = _place(place, path) if graphs else ()
    # Where nothing is, nothing is deleted.
    for source in _Finder().found_in(graphs) if group else ():
        if any([_overlap(group, other) for other in _places_of(source)]):
            raise ValueError(f"mode 'w' would delete {source!r}, which the dataset is still read from; {_ADVICE}")


def check_not_overwritten(place: Any, writes: list[Write]) -> None:
    """Raise ValueError if a block of dask may read elements that another write has replaced.

    Parameters
    ----------
    place : object
        What `zcore.open` takes.
    writes : list of Write
    """
    graphs = [array.__dask_graph__() for write in writes if write.is_lazy for array in (write.source, write.given)]
    sources = _Finder().found_in(graphs) if graphs else []
    targets = {write.path: _place(place, write.path) for write in writes} if sources else {}
    hits = {id(source): path for source in sources for path, target in targets.items()
            if any([_overlap(target, other) for other in _places_of(source)])}
    if hits:
        _Reads(graphs, hits).check(writes)


# The arrays that a graph holds


class _Finder:
    """Finds arrays, groups and stores of zcore and zarr-python in whatever a pickle of an object visits."""

    def __init__(self):
        import cloudpickle

        kinds = [zcore.Array, zcore.Group, Store]
        zarr = sys.modules.get("zarr")
        if zarr is not None:
            kinds += [zarr.Array, zarr.AsyncArray, zarr.Group, zarr.AsyncGroup, zarr.abc.store.Store]
        kinds = tuple(kinds)
        found = self._found = {}

        class Visitor(cloudpickle.Pickler):
            def persistent_id(self, value):
                if isinstance(value, kinds):
                    found[id(value)] = value
                    return 0
                # Arrays in memory hold no others.
                return 0 if isinstance(value, (np.ndarray, type, ModuleType)) else None

            def reducer_override(self, value):
                made = super().reducer_override(value)
                if made is not NotImplemented or isinstance(value, FunctionType):
                    return made
                try:
                    reduce = self.dispatch_table.get(type(value))
                    return value.__reduce_ex__(5) if reduce is None else reduce(value)
                except Exception:
                    # It stays in this process, such as a lock or an open file.
                    return tuple, ((*vars(value).values(),) if hasattr(value, "__dict__") else (),)

        self._kind = Visitor

    def found_in(self, value):
        """Return the list of what an object holds, each once."""
        self._found.clear()
        self._kind(_Nowhere(), protocol=5, buffer_callback=lambda _: None).dump(value)
        return list(self._found.values())


class _Nowhere:
    def write(self, data):
        return len(data)


# Places


def _places_of(source):
    """Return the places of an array, a group or a store of zcore or zarr-python: its own, and those of its bytes."""
    if isinstance(source, (zcore.Array, zcore.Group)):
        store, path = source.store, source.path
    elif hasattr(source, "store_path"):
        store, path = source.store_path.store, source.store_path.path
    else:
        store, path = source, ""
    places = [_place(store, path)]
    if isinstance(store, zcore.ReferenceStore):
        located = store.locate(prefix_of(path))
        for url in located.table.targets if isinstance(located, FileParts) else ():
            try:
                places.append(_files(store.targets.path_of(path, url)))
            except zcore.ZcoreError:
                pass     # at a service, or it cannot be read anyway
    return places


def _place(place, path):
    """Return what is compared of a node at a path of a store, or of what `zcore.open` takes.

    In files: a list of identities, of a file or directory and of those above it. Else a tuple of parts of an address.
    """
    if isinstance(place, str) and not is_url(place):
        return _files(uri_to_path(place) if place.startswith("file:") else place, path)
    store = place if isinstance(place, Store) or _is_of_zarr(place) else store_of(place, False)
    if isinstance(store, (zcore.ZipStore, zcore.AsdfStore)):
        return _files(store.path)
    if isinstance(store, zcore.DirectoryStore):
        return _files(store.path, path)
    if _is_of_zarr(store) and hasattr(store, "root"):
        return _files(store.root, path)     # of a `LocalStore`, whose text has no working directory
    if _is_of_zarr(store) and hasattr(store, "fs"):
        return _of_fsspec(store.fs, store.path, path)
    if isinstance(store, zcore.RemoteStore) and hasattr(store._made_of[0], "_strip_protocol"):
        return _of_fsspec(store._made_of[0], store._made_of[1]["path"], path)
    inner = getattr(store, "zcore_store", None) or (_is_of_zarr(store) and getattr(store, "_store", None))
    if inner:
        return _place(inner, path)     # a wrapper
    if type(store).__name__ in ("ZarrPythonStore", "ObjectStore"):
        return _place(store.store, path)
    if isinstance(store, zcore.RemoteStore):
        address = store.url if store.uri or "://" in store.url else f"{id(store._made_of[0])}/{store.url}"
    elif hasattr(store, "session"):
        # Of Icechunk, whose stores are new objects for each use.
        return (store.session, *filter(None, path.split("/")))
    elif _is_of_zarr(store):
        address = str(store)
    else:
        address = store.uri or str(id(store))
    scheme, _, rest = address.partition("://")
    if scheme == "zip":
        return _files(rest)
    if scheme in _LOCAL:
        return _files("/" + rest.lstrip("/"), path)
    return tuple([part for part in f"{address}/{path}".split("/") if part])


def _of_fsspec(fs, root, path):
    """Return the place of a node below a root in a filesystem of fsspec, which may have another one below."""
    while True:
        if hasattr(fs, "_join"):
            root = fs._join(root)     # a directory of another one
        inner = getattr(fs, "sync_fs", None) or getattr(fs, "fs", None)
        if inner is None:
            break
        fs = inner
    protocol = np.atleast_1d(fs.protocol)[0]
    root = fs._strip_protocol(root)
    if protocol in _LOCAL:
        return _files(root, path)
    return tuple([part for part in f"{protocol}://{root}/{path}".split("/") if part])


def _is_of_zarr(store):
    return hasattr(store, "supports_listing")


def _files(path, below=""):
    """Return the identities of a file or directory and of those above it, from below; an empty list if it is absent."""
    path = os.path.realpath(os.path.join(path, below))
    found = []
    while True:
        try:
            status = os.stat(path)
        except OSError:
            return []
        found.append((status.st_dev, status.st_ino))
        if path == (path := os.path.dirname(path)):
            return found


def _overlap(a, b):
    """Return whether one of two places is the other, or above it."""
    if type(a) is not type(b) or not a or not b:
        return False
    if isinstance(a, list):
        return a[0] in b or b[0] in a
    n = min(len(a), len(b))
    return a[:n] == b[:n]


# The boxes that blocks read


class _Reads:
    """What the tasks of graphs read of arrays that are changed.

    Parameters
    ----------
    graphs : list of mappings
    hits : dict
        By the `id` of an array in the graphs, the path of the array that is changed.
    """

    def __init__(self, graphs, hits):
        self._graph = {key: task for graph in graphs for key, task in graph.items()}
        finder = _Finder()

        def held_by(value):
            return frozenset([hits[id(source)] for source in finder.found_in(value) if id(source) in hits])

        self._held = dict.fromkeys(self._graph, frozenset())
        layers = [layer for graph in graphs for layer in getattr(graph, "layers", {"": graph}).values()]
        for layer in {id(layer): layer for layer in layers}.values():
            # Most layers hold none; to look at each task takes longer.
            if held_by(layer):
                self._held |= {key: held_by(self._graph[key]) for key in layer}

    def check(self, writes):
        """Raise ValueError if a block reads a box of these arrays that is written from anything but this block."""
        from dask.core import toposort

        written = {}
        for write in writes:
            blocks = list(_blocks(write.source, write.starts))
            # What is written back as it was read does not change.
            if not write.is_lazy or any([self._of(key) != {(write.path, box)}
                                         for key, box in _blocks(write.given, write.starts)]):
                written[write.path] = np.array([box for _, box in blocks]).reshape(len(blocks), -1, 2)
        reads = {}
        for key in toposort(self._graph):
            reads[key] = self._of(key).union(*[reads[other] for other in self._before(key)])
        for write in writes:
            for i, (key, _) in enumerate(_blocks(write.source, write.starts)) if write.is_lazy else ():
                for path, read in reads[key]:
                    own = i if path == write.path else None
                    if path in written and _meets(read, written[path], own):
                        raise ValueError(f"{write.path!r} is computed from stored elements of {path!r} that are "
                                         f"overwritten before, or may be; {_ADVICE}")

    def _before(self, key):
        from dask.core import get_dependencies

        return get_dependencies(self._graph, key)

    def _of(self, key):
        """Return pairs of path and box of what a task reads itself. The box is None if it is not known."""
        call = _call_of(self._graph[key])
        if call is None:
            return set()
        # An array is in the task, or in a node of its own that several tasks refer to.
        paths = self._held[key].union(*[self._held[other] for other in self._before(key)
                                        if _call_of(self._graph[other]) is None])
        return {(path, _box_of(*call, self._graph)) for path in paths}


def _blocks(array, starts):
    """Iterate over the key of each block of an array, of dask or not, and its box in the stored array."""
    chunks = getattr(array, "chunks", None) or [(length,) for length in array.shape]
    edges = [np.cumsum([start, *lengths], dtype=np.int64).tolist()
             for start, lengths in zip(starts, chunks, strict=True)]
    for coords in product(*[range(len(ends) - 1) for ends in edges]):
        yield ((getattr(array, "name", None), *coords),
               tuple([(ends[i], ends[i + 1]) for i, ends in zip(coords, edges, strict=True)]))


def _meets(read, written, own):
    """Return whether a box, or one that is not known, has elements in one of several boxes, except for number `own`."""
    if read is None:
        return True
    starts, stops = np.array(read).reshape(-1, 2).T
    meet = ((written[:, :, 0] < stops) & (written[:, :, 1] > starts)).all(axis=1)
    if own is not None:
        meet[own] = False
    return meet.any()


def _call_of(task):
    """Return the function and the arguments of a task, None for any other node of a graph."""
    if callable(getattr(task, "func", None)):
        return task.func, task.args
    return (task[0], task[1:]) if type(task) is tuple and task and callable(task[0]) else None


def _box_of(function, arguments, graph):
    """Return the box of a stored array that a task reads, a pair of start and stop for each dimension, or None."""
    if not getattr(function, "__name__", "").startswith(("getter", "getitem")) or len(arguments) < 2:
        return None
    view, key = arguments[:2]
    if not hasattr(view, "shape"):
        view = view.value if hasattr(view, "value") else graph.get(getattr(view, "key", view))
    key = getattr(key, "value", key)
    box = _added(((0, None),) * len(key), key) if isinstance(key, tuple) else None
    # Through xarray's views, of which one may be an area of the next.
    while box is not None and not isinstance(view, zcore.Array) and not hasattr(view, "store_path"):
        if (area := getattr(view, "key", None)) is not None:
            box = _added(box, area.tuple)
        inner = next((getattr(view, name) for name in ("array", "_array") if hasattr(view, name)), None)
        if inner is None or area is None and inner.shape != view.shape:
            return None
        view = inner
    return box


def _added(box, key):
    """Return the box of an array, for a box of its area that a key of slices has; None if the key has others."""
    if len(key) != len(box) or any([type(part) is not slice or part.step not in (None, 1) or (part.start or 0) < 0
                                    for part in key]):
        return None
    return tuple([(start + (part.start or 0), part.stop if stop is None else stop + (part.start or 0))
                  for (start, stop), part in zip(box, key, strict=True)])
