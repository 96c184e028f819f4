"""What a power cut interrupts. Each verb has a state before it, a deed, and a look at what is there afterwards."""
from __future__ import annotations

import os
import warnings
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import zcore
import zcore.mpi
import zcore.xarray

if TYPE_CHECKING:
    from collections.abc import Callable

_SHAPE, _CHUNKS = (6, 64, 64), (1, 64, 64)


class Verb(NamedTuple):
    """`before` and `deed` take a folder, `deed` also fsync; `look` returns what it finds, something that compares."""

    before: Callable[[str], Any]
    deed: Callable[[str, bool], Any]
    look: Callable[[str], Any]
    has_parts: bool = False     # each element may be the old or the new one


def _data(seed: int, n: int = 6) -> Any:
    return np.random.default_rng(seed).random((n, 64, 64))


_OLD, _NEW = _data(1), _data(2)
_FORM = {"chunks": _CHUNKS, "compressors": None}


def _store(folder):
    return os.path.join(folder, "store")


def _make(folder, data=_OLD, **options):
    group = zcore.open_group(_store(folder), mode="a", attributes={"made": True})
    group.create_array("a", data=data, **_FORM, **options)
    group.create_array("b", data=data, **_FORM)


def _group(folder, fsync=False):
    return zcore.open_group(_store(folder), mode="r+", fsync=fsync)


def _look(folder):
    """Return all that a hierarchy holds."""
    group = zcore.open_group(_store(folder), mode="r")
    found = {"": dict(group.attrs)}
    for name, node in group.members(max_depth=None):
        found[name] = (dict(node.attrs), node[...].tobytes(), node.shape) if isinstance(node, zcore.Array) else ()
    return found


def _look_or_none(folder):
    return _look(folder) if os.path.exists(_store(folder)) else None


def _overwrite(folder, fsync):
    _group(folder, fsync).create_array("a", data=_NEW, overwrite=True, **_FORM)


def _overwrite_empty(folder, fsync):
    _group(folder, fsync).create_array("a", shape=_SHAPE, dtype="f8", overwrite=True, **_FORM)


def _overwrite_root(folder, fsync):
    zcore.create_array(_store(folder), data=_NEW, overwrite=True, fsync=fsync, **_FORM)


def _look_at_root(folder):
    node = zcore.open(_store(folder))
    return node[...].tobytes() if isinstance(node, zcore.Array) else _look(folder)


def _source(folder):
    _make(folder)
    zcore.create_array(os.path.join(folder, "source"), data=_NEW, **_FORM)


def _copy_over(folder, fsync):
    zcore.copy(os.path.join(folder, "source"), _store(folder), destination_path="a", overwrite=True, fsync=fsync)


def _copy_new(folder, fsync):
    zcore.copy(os.path.join(folder, "source"), _store(folder), destination_path="c", fsync=fsync)


def _move(folder, fsync):
    _group(folder, fsync).move("a", "moved")


def _delete(folder, fsync):
    del _group(folder, fsync)["a"]


def _resize(folder, fsync):
    _group(folder, fsync)["a"].resize(3, 64, 64)


def _append(folder, fsync):
    _group(folder, fsync)["a"].append(_NEW)


class _One:
    """A communicator of MPI of one rank."""

    Get_rank, Get_size = int, lambda self: 1
    bcast, allgather = lambda self, value, root=0: value, lambda self, value: [value]


def _append_by_mpi(folder, fsync):
    zcore.mpi.append(_One(), _group(folder, fsync)["a"], _NEW)


def _append_within(folder, fsync):
    _group(folder, fsync)["w"].append(_NEW)


def _append_frames(folder, fsync):
    with _group(folder, fsync)["w"].writer() as writer:
        for frame in _NEW:
            writer.append(frame)


def _make_rows(folder):
    group = zcore.open_group(_store(folder), mode="a")
    for name in ("a", "t"):
        group.create_array(name, data=_OLD, chunks=(100, 64, 64), compressors=None, dimension_names=("t", "y", "x"))


def _append_rows(folder, fsync):
    with _group(folder, fsync).writer("t") as writer:
        for frame in _NEW:
            writer.append({"a": frame, "t": frame})


def _look_at_rows(folder):
    """Return how many rows the coordinate has. The other array has them too, and may have more."""
    group = zcore.open_group(_store(folder), mode="r")
    both = np.concatenate([_OLD, _NEW])
    for array in (group["t"], group["a"]):
        assert (array[...] == both[:len(array)]).all(), array
    assert len(group["t"]) <= len(group["a"])
    return len(group["t"])


def _references(folder, n=6):
    zcore.ReferenceStore.of({f"x/{i}": bytes([i] * 1000) for i in range(n)}).save(os.path.join(folder, "set.json"))


def _references_over(folder, fsync):
    zcore.config.fsync = fsync
    _references(folder, 60)


def _look_at_references(folder):
    store = zcore.ReferenceStore(os.path.join(folder, "set.json"))
    return {key: store.get(key) for key in store.list()}


def _make_wide(folder, n=4):
    zcore.open_group(_store(folder), mode="a").create_array("w", data=_OLD, chunks=(n, 64, 64), compressors=None)


def _make_dataset(folder):
    xarray = pytest.importorskip("xarray")
    old = xarray.Dataset({"a": (("t", "y", "x"), _OLD)}, coords={"t": np.arange(6.0)})
    zcore.xarray.to_zarr(old, _store(folder), encoding={"a": {"chunks": _CHUNKS}})


def _append_to_dataset(folder, fsync):
    import xarray

    new = xarray.Dataset({"a": (("t", "y", "x"), _NEW)}, coords={"t": np.arange(6.0, 12.0)})
    zcore.config.fsync = fsync
    zcore.xarray.to_zarr(new, _store(folder), append_dim="t")


def _look_at_dataset(folder):
    """Return what readers find with and without a copy of the metadata: all variables are old, or all are new."""
    import xarray

    found = {}
    for consolidated in (True, False):
        with warnings.catch_warnings(action="ignore"):     # of an append that was cut off
            ds = xarray.open_dataset(_store(folder), engine="zcore", consolidated=consolidated)
        found[str(consolidated)] = str({name: (ds[name].shape, zlib.crc32(ds[name].values.tobytes()))
                                        for name in sorted(ds.variables)})
    return found


def _overwrite_dataset(folder, fsync):
    import xarray

    new = xarray.Dataset({"a": (("t", "y", "x"), _NEW[:4])}, coords={"t": np.arange(4.0)})
    zcore.config.fsync = fsync
    zcore.xarray.to_zarr(new, _store(folder), mode="w", encoding={"a": {"chunks": _CHUNKS}})


def _attributes(folder, fsync):
    _group(folder, fsync)["a"].attrs.update(title="a" * 5000)


def _consolidate(folder, fsync):
    zcore.consolidate_metadata(zcore.DirectoryStore(_store(folder), fsync=fsync))


def _look_consolidated(folder):
    with open(os.path.join(_store(folder), "zarr.json"), "rb") as file:
        return file.read(), _look(folder)


def _write(folder, fsync):
    _group(folder, fsync)["a"][...] = _NEW


def _make_empty(folder):
    zcore.open_group(_store(folder), mode="a").create_array("a", shape=_SHAPE, dtype="f8", **_FORM)


def _write_part(folder, fsync):
    _group(folder, fsync)["a"][:, 3:20] = _NEW[:, 3:20]


def _save_group(folder, data=_OLD):
    zcore.save_group(_store(folder), a=data, b=data + 1, overwrite=True)


def _save_group_over(folder, fsync):
    zcore.config.fsync = fsync
    _save_group(folder, _NEW)


def _archive(folder, data=_OLD):
    zcore.save_array(os.path.join(folder, "file.zip"), data, **_FORM)


def _archive_over(folder, fsync):
    zcore.save_array(os.path.join(folder, "file.zip"), _NEW, overwrite=True, fsync=fsync, **_FORM)


def _look_at_archive(folder):
    path = os.path.join(folder, "file.zip")
    return zcore.load(path).tobytes() if os.path.exists(path) else None


def _asdf(folder):
    zcore.asdf.write(os.path.join(folder, "file.asdf"), {"a": _OLD, "b": np.arange(3)}, pad=5000)


def _asdf_over(folder, fsync):
    zcore.asdf.write(os.path.join(folder, "file.asdf"), {"a": _NEW, "b": np.arange(3)}, fsync=fsync)


def _asdf_update(folder, fsync):
    with zcore.asdf.open(os.path.join(folder, "file.asdf"), "rw") as file:
        file.tree["a"] = _NEW
        file.update(fsync=fsync)


def _asdf_defragment(folder, fsync):
    zcore.asdf.defragment(os.path.join(folder, "file.asdf"), fsync=fsync)


def _look_at_asdf(folder):
    with zcore.asdf.open(os.path.join(folder, "file.asdf")) as file:
        return file.tree["a"].read().tobytes(), os.path.getsize(file.path)


def _copy_to_file(name, source="source"):
    def before(folder):
        zcore.create_array(os.path.join(folder, "source"), data=_NEW, **_FORM)
        zcore.create_array(os.path.join(folder, "older"), data=_OLD, **_FORM)
        zcore.copy(os.path.join(folder, "older"), os.path.join(folder, name))

    def deed(folder, fsync):
        zcore.copy(os.path.join(folder, source), os.path.join(folder, name), overwrite=True, fsync=fsync)

    def look(folder):
        path = os.path.join(folder, name)
        if name.endswith(".npy"):
            return np.load(path).tobytes()
        target = zcore.MemoryStore()
        zcore.copy(path, target)
        node = zcore.open(target)
        node = node if isinstance(node, zcore.Array) else next(iter(node.arrays()))[1]
        return node[...].tobytes()

    return Verb(before, deed, look)


VERBS = {
    "create_array over an array": Verb(_make, _overwrite, _look),
    "create_array over an array, without data": Verb(_make, _overwrite_empty, _look),
    "create_array over a store": Verb(_make, _overwrite_root, _look_at_root),
    "copy over an array": Verb(_source, _copy_over, _look),
    "move": Verb(_make, _move, _look),
    "del": Verb(_make, _delete, _look),
    "resize": Verb(_make, _resize, _look),
    "append": Verb(_make, _append, _look),
    "append by MPI": Verb(_make, _append_by_mpi, _look),
    "append to a chunk that is not full": Verb(_make_wide, _append_within, _look),
    "append by a writer": Verb(lambda folder: _make_wide(folder, 100), _append_frames, _look),
    "append by a writer of a group": Verb(_make_rows, _append_rows, _look_at_rows),
    "append to a dataset": Verb(_make_dataset, _append_to_dataset, _look_at_dataset, True),
    "write over a dataset": Verb(_make_dataset, _overwrite_dataset, _look_at_dataset),
    "attributes": Verb(_make, _attributes, _look),
    "consolidate_metadata": Verb(_make, _consolidate, _look_consolidated),
    "write chunks again": Verb(_make, _write, _look, True),
    "write parts of chunks": Verb(_make, _write_part, _look, True),
    "save over a group": Verb(_save_group, _save_group_over, _look),
    "references over a set": Verb(_references, _references_over, _look_at_references),
    "save an archive": Verb(lambda folder: None, _archive_over, _look_at_archive),
    "save over an archive": Verb(_archive, _archive_over, _look_at_archive),
    "asdf.write over a file": Verb(_asdf, _asdf_over, _look_at_asdf),
    "asdf update": Verb(_asdf, _asdf_update, _look_at_asdf),
    "asdf defragment": Verb(_asdf, _asdf_defragment, _look_at_asdf),
    "copy over a file of NumPy": _copy_to_file("file.npy"),
    "copy over an ASDF file": _copy_to_file("copy.asdf"),
    "copy over an HDF5 file": _copy_to_file("file.h5"),
    "copy over an archive": _copy_to_file("copy.zip"),
}
# They replace nothing. After a cut, what is new may be missing, or without its data, unless fsync was asked for.
NEW = {
    "create_array": Verb(lambda folder: None, lambda folder, fsync: zcore.create_array(
        _store(folder), data=_NEW, fsync=fsync, **_FORM), lambda folder: os.path.exists(_store(folder)) and
        _look_at_root(folder)),
    "copy": Verb(_source, _copy_new, _look),
    "write new chunks": Verb(_make_empty, _write, _look, True),
}
