"""What is stored in a folder, as another process sees it: `python -m tests.crash.failing.state` answers on its output.

Nodes are read with all their elements, files by the libraries that they belong to, where there is one.
"""
import io
import os
import pickle
import struct
import subprocess
import sys

import numpy as np

import zcore

TEMPORARY = ".__zc_tmp."


def state_of(base):
    """Return what is in a folder.

    Returns
    -------
    nodes : dict
        Of each node and file: its shape, type, attributes and elements.
    names : set of str
        Of all files that are not temporary, relative.
    temporary : set of str
        Of those that are.
    """
    nodes, names, temporary = {}, set(), set()
    for folder, inner, files in os.walk(base):
        for name in [*files, *(name for name in inner if TEMPORARY in name)]:
            place = os.path.relpath(os.path.join(folder, name), base)
            (temporary if TEMPORARY in place else names).add(place)
    for name in sorted(os.listdir(base)):
        if TEMPORARY not in name:
            nodes.update(_read(os.path.join(base, name), name))
    return nodes, names, temporary


def store_state(store, path=""):
    """Return the nodes of a store, as `state_of` does."""
    return _nodes(store, "", path)


def _read(path, name):
    ending = os.path.splitext(name)[1]
    if ending == ".npy":
        return {name: _elements(np.load(path))}
    if ending == ".npz":
        with np.load(path) as file:
            return {f"{name}/{key}": _elements(file[key]) for key in file}
    if ending == ".h5":
        return _read_hdf5(path, name)
    if ending == ".asdf":
        with zcore.asdf.open(path) as file:
            file.verify()
            return {name: len(file.blocks), **_read_tree(file.tree, name)}
    if ending == ".zip":
        with zcore.ZipStore(path) as store:
            return _nodes(store, name)
    if ending == ".json":
        return _nodes(zcore.ReferenceStore(path), name)
    if ending == ".values":
        store = zcore.DirectoryStore(path)
        return {f"{name}/{key}": store.get(key) for key in store.list()}
    return _nodes(path, name)


def _read_tree(value, place):
    if isinstance(value, dict):
        return {inner: found for key, part in value.items()
                for inner, found in _read_tree(part, f"{place}/{key}").items()}
    return {place: _elements(value.read()) if hasattr(value, "read") else repr(value)}


def _read_hdf5(path, name):
    import h5py

    found = {}
    with h5py.File(path) as file:
        def visit(place, node):
            if isinstance(node, h5py.Dataset):
                found[f"{name}/{place}"] = _elements(node[...], dict(node.attrs))

        file.visititems(visit)
    return found


def _nodes(store, name, path=""):
    try:
        top = zcore.open(store, path=path)
    except zcore.NodeNotFoundError:
        return {}
    nodes = {name: top}
    if isinstance(top, zcore.Group):
        nodes.update({f"{name}/{place}": node for place, node in top.members(None)})
    found = {place: _array(node) if isinstance(node, zcore.Array) else ("group", node.attrs.asdict())
             for place, node in nodes.items()}
    if isinstance(top, zcore.Group):
        found[f"{name}: consolidated"] = top.metadata.consolidated is not None
    return found


def _array(node):
    try:
        return _elements(node[...], node.attrs.asdict(), node.chunks, node.zarr_format, node.shards)
    except zcore.ChunkError as error:
        return type(error).__name__


def _elements(values, attributes=None, chunks=None, zarr_format=None, shards=None):
    return values.shape, values.dtype.str, repr(attributes), shards or chunks, zarr_format, np.ascontiguousarray(values)


def same(a, b):
    """Whether two values of a state are the same, up to the last byte."""
    return type(a) is type(b) and pickle.dumps(a) == pickle.dumps(b)


class Observer:
    """Another process, which is asked what it sees."""

    def __init__(self):
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self._process = subprocess.Popen([sys.executable, "-W", "ignore", "-m", "tests.crash.failing.state"],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def state_of(self, base):
        """Return what `state_of` returns there. Raises : AssertionError, with the error that it raised."""
        self._process.stdin.write(os.fsencode(base) + b"\n")
        self._process.stdin.flush()
        [n] = struct.unpack("q", self._process.stdout.read(8))
        found = pickle.loads(self._process.stdout.read(n))
        assert not isinstance(found, str), found
        return found

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def main():
    out = io.FileIO(os.dup(1), "w")
    for line in sys.stdin.buffer:
        try:
            answer = state_of(os.fsdecode(line[:-1]))
        except Exception as error:
            answer = repr(error)
        data = memoryview(pickle.dumps(answer))
        data = struct.pack("q", len(data)) + data
        while data:
            data = data[out.write(data):]


if __name__ == "__main__":
    main()
