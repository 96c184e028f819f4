"""The table of file kinds, and what opens each: `zcore.open`, `zcore.copy` and the command's verbs all ask here.

A file is known by the ending of its name, in capital letters or not, and without an ending of the table by its first
bytes. So the ending decides between ``.zip`` and ``.npz``, which begin alike. A file that does not exist yet, such as
the destination of a copy, is known by its ending alone.

A kind without an opener is no store. `zcore.copy` reads and writes such files by `zcore.tools.files`, which stands
above this module and maps kinds to its own classes. To add a kind, add one row here.
"""
from __future__ import annotations

import os
import stat
from collections import namedtuple
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module

from zcore.stores.base import Store

# name     of the kind, for people
# endings  of names, in small letters
# magics   first bytes of a file
# opener   of what opens it as a store for reading: "module:name", imported when it is needed first
# advice   for callers who take such a file for a directory
Kind = namedtuple("Kind", ("name", "endings", "magics", "opener", "advice"), defaults=((), (), None, None))

_REFERENCE_STORE = "zcore.stores.reference.store:ReferenceStore"
_REFERENCES_ADVICE = "a reference set is read, or changed as zcore.ReferenceStore(path, read_only=False)"
_COPY_ADVICE = "zcore.copy makes arrays of it"

DIRECTORY = Kind("directory", opener="zcore.stores.directory.store:DirectoryStore")
ZIP = Kind("zip archive", (".zip",), (b"PK\x03\x04", b"PK\x05\x06"), "zcore.stores.zip.store:ZipStore",
           "an archive is read, or made by zcore.ZipStore(path, mode='w')")
ASDF = Kind("ASDF file", (".asdf",), (b"#ASDF ",), "zcore.stores.asdf.store:AsdfStore",
            "an ASDF file is read, or changed by zcore.asdf.open(path, mode='rw')")
REFERENCES = Kind("reference set", (".json",), (), _REFERENCE_STORE, _REFERENCES_ADVICE)     # and a mapping
PARQUET = Kind("reference set in Parquet", (".parq", ".parquet"), (), _REFERENCE_STORE, _REFERENCES_ADVICE)
HDF5 = Kind("HDF5 file", (".h5", ".hdf5", ".he5", ".nc", ".nc4"), (b"\x89HDF\r\n\x1a\n",), None,
            f"{_COPY_ADVICE}, and zcore.references_from_hdf5 a set")
NPY = Kind(".npy file", (".npy",), (b"\x93NUMPY",), None, _COPY_ADVICE)
NPZ = Kind(".npz file", (".npz",), (), None, _COPY_ADVICE)
# URLs, by their scheme; and objects of obstore and fsspec, or with `get` and `get_range`.
REMOTE = Kind("remote store", opener="zcore.stores.remote.store:RemoteStore")
ZARR_PYTHON = Kind("store of zarr-python", opener="zcore.stores.zarr_python:store_of_zarr")
STORE = Kind("store")

KINDS = (DIRECTORY, ZIP, ASDF, REFERENCES, PARQUET, HDF5, NPY, NPZ, REMOTE, ZARR_PYTHON, STORE)
_BY_ENDING = {ending: kind for kind in KINDS for ending in kind.endings}
_BY_MAGIC = {magic: kind for kind in KINDS for magic in kind.magics}
_N_MAGIC = max(map(len, _BY_MAGIC))

# The document that makes a directory a reference set in Parquet.
PARQUET_DOCUMENT = ".zmetadata"


def named_kind(name: str) -> Kind | None:
    """Return the kind that the ending of a name says, or None.

    >>> named_kind("a/FORECAST.NC4").name, named_kind("a.zarr"), named_kind("zip")
    ('HDF5 file', None, None)
    """
    _, dot, ending = name.rpartition(".")
    return _BY_ENDING.get((dot + ending).lower())


def kind_of(place) -> Kind | None:
    """Return the kind of what a caller names: a path, a URL, a store, a mapping, or a client of a service.

    Costs one look at the file system for a path, and of a file whose ending is not in the table a read of its first
    bytes. None where nothing lies at the path, or something of no known kind.
    """
    if isinstance(place, os.PathLike):
        place = os.fspath(place)
    if not isinstance(place, str):
        if isinstance(place, Store):
            return STORE
        from zcore.stores.remote.clients import is_client, is_store_of_zarr

        if is_store_of_zarr(place):
            return ZARR_PYTHON
        return REMOTE if is_client(place) else REFERENCES if isinstance(place, Mapping) else None
    if is_url(place):
        named = named_kind(place.partition("?")[0].rstrip("/"))
        return named if named is REFERENCES or named is PARQUET else REMOTE
    try:
        mode = os.stat(place).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode):
        named = named_kind(place)
        # A directory's ending says nothing of a file.
        return _kind_by_magic(place) if named is None or named is PARQUET else named
    if not stat.S_ISDIR(mode):
        return None
    is_set = named_kind(place.rstrip("/")) is PARQUET and os.path.isfile(os.path.join(place, PARQUET_DOCUMENT))
    return PARQUET if is_set else DIRECTORY


def is_url(place: str) -> bool:
    """Return whether a text is the URL of a service."""
    if "://" not in place:
        return False
    from zcore.stores.remote.urls import is_remote

    return is_remote(place)


def _kind_by_magic(path):
    try:
        with open(path, "rb", buffering=0) as file:
            start = file.read(_N_MAGIC)
    except OSError:
        return None
    return next((kind for magic, kind in _BY_MAGIC.items() if start.startswith(magic)), None)


@cache
def loaded(name: str):
    """Return the class that ``"module:name"`` names, such as the `opener` of a kind."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def store_of(place, read_only: bool, fsync: bool, check_base: bool = True) -> Store:
    """Return the store that a caller names by a path, a URL, a store, a mapping, or a client of a service.

    Files that are stores, such as zip archives, are opened for reading alone; for writing, a path is a directory.

    Raises
    ------
    TypeError
        `place` is none of these.
    ValueError
        It is a store that leaves it to the system when a change reaches the disk, and `fsync` is true.
    """
    if isinstance(place, os.PathLike):
        place = os.fspath(place)
    if isinstance(place, str):
        kind = kind_of(place) if read_only else REMOTE if is_url(place) else DIRECTORY
    else:
        kind = kind_of(place)
    if kind is STORE:
        if fsync and not place.fsync:
            raise ValueError(f"{place!r} was made without fsync; a store is asked for it when it is made, as in "
                             "DirectoryStore(path, fsync=True)")
        return place
    if kind is REMOTE or kind is ZARR_PYTHON:
        if fsync:
            raise ValueError(f"{place!r:.200} is no directory, whose files could be made to reach the disk")
        return loaded(kind.opener)(place, read_only=read_only)
    if kind is None and not isinstance(place, str):
        raise TypeError("expected a path, a URI, a store, such as MemoryStore(), or a reference set, found "
                        f"{type(place).__name__}")
    if kind is REFERENCES and not read_only:
        raise TypeError("a mapping is a reference set, which is read; a store in memory is MemoryStore(items), and a "
                        "set that changes ReferenceStore(refs, read_only=False)")
    if kind is not None and kind is not DIRECTORY and kind.opener is not None:
        return loaded(kind.opener)(place)
    directory_store = loaded(DIRECTORY.opener)
    if isinstance(place, str):
        if ":" in place:
            # It is either a URI's or part of a name: the URI rules decide.
            return directory_store.from_uri(place, read_only=read_only, fsync=fsync, check_base=check_base)
        if place[:1] == "/" and ".." not in place and not check_base:
            return _absolute_store(place, read_only, fsync)
    return directory_store(place, read_only=read_only, fsync=fsync, check_base=check_base)


@lru_cache(maxsize=64)
def _absolute_store(path, read_only, fsync):
    """Return the store of a path that means the same whatever the current directory and the links on its way are.

    A task scheduler that opens an array for every task finds it here.
    """
    return loaded(DIRECTORY.opener)(path, read_only=read_only, fsync=fsync, check_base=False)
