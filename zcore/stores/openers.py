"""The table of file kinds, and what opens each: `zcore.open`, `zcore.copy` and the command's verbs all ask here.

A file is known by the ending of its name, in capital letters or not, and without an ending of the table by its first
bytes. So the ending decides between ``.zip`` and ``.npz``, which begin alike. A file that does not exist yet, such as
the destination of a copy, is known by its ending alone. A new directory cannot have the ending of a file.

A kind without an opener is no store. `zcore.copy` reads and writes such files by `zcore.tools.files`, which maps kinds
to its own classes. To add a kind, add one row here.
"""
from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

from zcore import config
from zcore.errors import StoreError, UnsupportedError
from zcore.stores.base import Store
from zcore.text.arguments import as_bool


class Kind(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        Of the kind, for messages.
    endings : tuple of str
        Of file names, in small letters.
    magics : tuple of bytes
        First bytes of a file.
    opener : str or None
        Opens it as a store for reading: ``"module:name"``, imported at its first use.
    advice : str or None
        For a caller that expected a directory.
    is_far : bool
        The opener also takes a `RemoteStore` of a file's URL.
    maker : str or None
        The function that writes such files. The error names it when something else is to be written under such a name.
    """

    name: str
    endings: tuple[str, ...] = ()
    magics: tuple[bytes, ...] = ()
    opener: str | None = None
    advice: str | None = None
    is_far: bool = False
    maker: str | None = None


_REFERENCE_STORE = "zcore.stores.reference.store:ReferenceStore"
_REFERENCES_ADVICE = "a reference set is read, or changed as zcore.ReferenceStore(path, read_only=False)"
_COPY_ADVICE = "zcore.copy converts it"
_COPY_MAKER = "zcore.copy writes such files of what is stored"

DIRECTORY = Kind("directory", opener="zcore.stores.directory.store:DirectoryStore")
# `.ozx` is OME-Zarr in a zip file: RFC-9 of NGFF, "Specification", recommendation 6.
ZIP = Kind("zip archive", (".zip", ".ozx"), (b"PK\x03\x04", b"PK\x05\x06"), "zcore.stores.zip.store:ZipStore",
           "an archive is read, or made as a whole by mode 'w' or zcore.ZipStore(path, mode='w')", True)
ASDF = Kind("ASDF file", (".asdf",), (b"#ASDF ",), "zcore.stores.asdf.store:AsdfStore",
            "an ASDF file is read, or changed by zcore.asdf.open(path, mode='rw')", True, _COPY_MAKER)
# And a mapping of them.
REFERENCES = Kind("reference set", (".json",), (), _REFERENCE_STORE, _REFERENCES_ADVICE,
                  maker="zcore.references(source).save(path) writes such files")
# Of keys to bytes, or empty.
MAPPING = Kind("mapping", opener="zcore.stores.mapping:MappingStore.of")
# As the stores of zarr-python: None, ``memory://``, and ``memory://name`` of this process.
MEMORY = Kind("store in memory", opener="zcore.stores.memory:MemoryStore.named")
PARQUET = Kind("reference set in Parquet", (".parq", ".parquet"), (), _REFERENCE_STORE, _REFERENCES_ADVICE)
HDF5 = Kind("HDF5 file", (".h5", ".hdf5", ".he5", ".nc", ".nc4", ".nxs"), (b"\x89HDF\r\n\x1a\n",), None,
            f"{_COPY_ADVICE}, and zcore.references_from_hdf5 makes a reference set of it", maker=_COPY_MAKER)
NPY = Kind(".npy file", (".npy",), (b"\x93NUMPY",), None, _COPY_ADVICE,
           maker=f"numpy.save writes such files, and {_COPY_MAKER}")
NPZ = Kind(".npz file", (".npz",), (), None, _COPY_ADVICE, maker=f"numpy.savez writes such files, and {_COPY_MAKER}")
TIFF = Kind("TIFF file", (".tif", ".tiff"), (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
            "zcore.stores.zarr_python:store_of_tiff", _COPY_ADVICE)
# An .hdf file may be of HDF4 or of HDF5, and some others are HDF5 of a layout of their own: first bytes tell.
FOREIGN = Kind("file of another format", (
    ".csv", ".tsv", ".txt", ".xls", ".xlsx", ".mat", ".pkl", ".pickle", ".hdf", ".hdf4", ".h4", ".h5ad", ".h5mu",
    ".loom", ".nwb", ".netcdf", ".ncf", ".cdf", ".n5", ".fits", ".grib", ".grb", ".grib2", ".arrow", ".feather", ".db",
    ".tar", ".gz", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".htm", ".html"),
    advice="zcore does not read such files")
# URLs, by their scheme; and objects of obstore and fsspec, or with `get` and `get_range`.
REMOTE = Kind("remote store", opener="zcore.stores.remote.store:RemoteStore")
ZARR_PYTHON = Kind("store of zarr-python", opener="zcore.stores.zarr_python:store_of_zarr")
STORE = Kind("store")

KINDS = (DIRECTORY, ZIP, ASDF, REFERENCES, PARQUET, HDF5, NPY, NPZ, TIFF, FOREIGN, MAPPING, MEMORY, REMOTE, ZARR_PYTHON,
         STORE)
_BY_ENDING = {ending: kind for kind in KINDS for ending in kind.endings}
_BY_MAGIC = {magic: kind for kind in KINDS for magic in kind.magics}
_N_MAGIC = max(map(len, _BY_MAGIC))
_MEMORY = "memory://"

# Base classes of clients and foreign stores, and the libraries that define them.
_LIBRARY_OF = {"Client": "zcore", "ObjectStoreMethods": "obstore", "AbstractFileSystem": "fsspec", "FSMap": "fsspec",
               "Store": "zarr"}

# The document that makes a directory a reference set in Parquet.
PARQUET_DOCUMENT = ".zmetadata"


def named_kind(name: str) -> Kind | None:
    """Return the kind that has the ending of a name, or None.

    >>> named_kind("a/FORECAST.NC4").name, named_kind("a.zarr"), named_kind("zip")
    ('HDF5 file', None, None)
    """
    if name.rpartition("/")[2] == "zarr.json":
        return None     # the document of a node, and no reference set
    _, dot, ending = name.rpartition(".")
    return _BY_ENDING.get((dot + ending).lower())


def kind_of(store_like: object) -> Kind | None:
    """Return the kind of a path, a URL, a store, a mapping, or a client of a service.

    For a path this costs one `stat`, and for a file whose ending is not in the table a read of its first bytes. None
    for a missing path, and for any other kind.
    """
    path = as_path(store_like)
    if path is None:
        if isinstance(store_like, Store):
            return STORE
        library = library_of(store_like)
        if library is not None:
            return ZARR_PYTHON if library == "zarr" else REMOTE
        if not isinstance(store_like, Mapping):
            return None
        value = next(iter(store_like.values()), b"")
        return REFERENCES if value is None or isinstance(value, (str, list, tuple, int, Mapping)) else MAPPING
    if (kind := _kind_of_url(path)) is not None:
        named = named_kind(path.partition("?")[0].rstrip("/")) if kind is REMOTE else None
        return named if named is REFERENCES or named is PARQUET else kind
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode):
        named = named_kind(path)
        # The ending of a set in Parquet is that of a directory.
        if named is None or named is PARQUET:
            return _kind_by_magic(path)
        return (named is FOREIGN and _kind_by_magic(path)) or named
    if not stat.S_ISDIR(mode):
        return None
    # The name first: most directories are then not looked into.
    is_parquet = named_kind(path.rstrip("/")) is PARQUET and os.path.isfile(os.path.join(path, PARQUET_DOCUMENT))
    return PARQUET if is_parquet else DIRECTORY


def _kind_of_url(text):
    """Return what a URL names, unless it is a file; None for any other text."""
    return MEMORY if text.startswith(_MEMORY) else REMOTE if is_url(text) else None


def as_path(place: object) -> str | None:
    """Return the text of a path or a URL; None for all else.

    A store and a node have `__fspath__` for other libraries. They are no paths here, which would lose their options.
    """
    # `os.PathLike` is asked last: for a str it costs more than all else here.
    if type(place) is str:
        return place
    if isinstance(place, Store) or hasattr(place, "store_path") or not isinstance(place, (str, os.PathLike)):
        return None
    text = os.fspath(place)
    return text if isinstance(text, str) else None


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a service."""
    if "://" not in text:
        return False
    from zcore.trust.urls import is_remote

    return is_remote(text)


def library_of(client: object) -> str | None:
    """Return the library whose stores, filesystems or clients an object is one of, without importing the library.

    ``"object"`` for any object with `get` and `get_range`; None for any other object.
    """
    for kind in type(client).__mro__:
        library = kind.__module__.partition(".")[0]
        if library == _LIBRARY_OF.get(kind.__name__):
            return library
    return "object" if all([callable(getattr(client, name, None)) for name in ("get", "get_range")]) else None


def _kind_by_magic(path):
    try:
        with open(path, "rb", buffering=0) as file:
            start = file.read(_N_MAGIC)
    except OSError:
        return None
    return next((kind for magic, kind in _BY_MAGIC.items() if start.startswith(magic)), None)


@cache
def loaded(name: str) -> Any:
    """Import and return the class ``"module:name"``, such as the `opener` of a kind."""
    module, _, attribute = name.partition(":")
    return attrgetter(attribute)(import_module(module))


def store_of(store_like: Any, read_only: bool, fsync: bool | None = None, check_base: bool = True, *,
             new: str | None = None, storage_options: Mapping[str, Any] | None = None) -> Store:
    """Return the store for a path, a URL, a store, a mapping, or a client of a service.

    Files that are stores, such as zip archives, are opened only for reading. For writing, a path is a directory. But if
    `new` is a mode of `ZipStore`, ``"w"`` or ``"x"``, a path that names an archive is a new archive. A URL with
    `storage_options` is opened by fsspec.

    Raises
    ------
    TypeError
        `store_like` is none of these, or it is no URL and there are `storage_options`.
    ValueError
        `fsync` is true, and it is a store without it.
    """
    if fsync is not None:
        fsync = as_bool(fsync, "fsync")
    path = _MEMORY if store_like is None and not read_only else as_path(store_like)
    store_like = store_like if path is None else path
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options is {storage_options!r:.60}, expected a mapping")
    if storage_options:
        if not isinstance(store_like, str) or "://" not in store_like:
            raise TypeError(f"storage_options are for a URL, not for {store_like!r:.200}")
        store_like = loaded(REMOTE.opener).from_url(store_like, storage_options=storage_options, read_only=read_only)
    if isinstance(store_like, str):
        if new is not None and names_archive(store_like):
            return loaded(ZIP.opener)(store_like, mode=new, fsync=fsync)
        kind = kind_of(store_like) if read_only else _kind_of_url(store_like) or DIRECTORY
    else:
        kind = kind_of(store_like)
    if kind is STORE:
        if read_only and type(store_like).__name__ == "RemoteStore":
            return _file_at(store_like)
        if fsync and not store_like.fsync:
            raise ValueError(f"{store_like!r} was made without fsync; pass fsync=True to the store, as in "
                             "DirectoryStore(path, fsync=True)")
        return store_like
    if fsync and kind in (REMOTE, ZARR_PYTHON, MAPPING, MEMORY):
        raise ValueError(f"{store_like!r:.200} is no directory, so fsync=True has no meaning")
    if kind is REMOTE or kind is ZARR_PYTHON:
        store = loaded(kind.opener)(store_like, read_only=read_only)
        return _file_at(store) if read_only and kind is REMOTE else store
    if kind is None and not isinstance(store_like, str):
        hint = "; pass its .store, and path= its .path" if hasattr(store_like, "store") else ""
        raise TypeError("expected a path, a URI, a store, such as MemoryStore(), or a reference set, found "
                        f"{type(store_like).__name__}{hint}")
    if kind is REFERENCES and not read_only:
        raise TypeError("this mapping is a reference set, which is read; a mapping of bytes, or an empty one, is a "
                        "store, and a set that changes ReferenceStore(refs, read_only=False)")
    if kind is not None and kind is not DIRECTORY and kind.opener is not None:
        return loaded(kind.opener)(store_like)
    if fsync is None:
        fsync = config.fsync
    directory_store = loaded(DIRECTORY.opener)
    if isinstance(store_like, str):
        if ":" in store_like:
            # The rules of URIs decide whether this is the colon of a URI or of a name.
            return directory_store.from_uri(store_like, read_only=read_only, fsync=fsync, check_base=check_base)
        if store_like[:1] == "/" and ".." not in store_like and not check_base:
            return _absolute_store(store_like, read_only, fsync)
    return directory_store(store_like, read_only=read_only, fsync=fsync, check_base=check_base)


def _file_at(store):
    """Return the file at a service that the URL of a `RemoteStore` names by its ending; else the store itself."""
    kind = named_kind(store.url.rstrip("/"))
    if kind is None or not kind.is_far:
        return store
    try:
        return loaded(kind.opener)(store)
    except FileNotFoundError as exc:
        if isinstance(exc, StoreError):
            raise
        return store


def names_archive(path: str) -> bool:
    """Return whether a path names an archive, which may not exist yet; a directory of that name is none."""
    return named_kind(path) is ZIP and ":" not in path and not os.path.isdir(path)


def check_directory(path: str) -> None:
    """Check that a path may be a new directory: no ending may promise a file.

    Raises : UnsupportedError, if there is nothing yet, and the ending is that of a file.
    """
    kind = named_kind(path.rstrip("/"))
    if kind is not None and kind is not ZIP and ":" not in path and not os.path.lexists(path):
        raise UnsupportedError(f"{path}: zcore would make a directory, which cannot end with "
                               f"{os.path.splitext(path)[1]}; {kind.maker or 'zcore does not write such files'}",
                               feature=f"{kind.name}s as directories")


def check_file(path: str, what: str, *endings: str, needs_ending: bool = False) -> None:
    """Check that a new file which holds `what` may have a name: it has one of the `endings`, or one without a meaning.

    Raises : ValueError, if the ending promises something else, or is none of the `endings` although `needs_ending`.
    """
    kind, ending = named_kind(path), os.path.splitext(path)[1].lower()
    if ending not in endings and (needs_ending or kind is not None or ending == ".zarr"):
        raise ValueError(f"{path}: zcore would write {what}; name it {', '.join(endings)}"
                         + (f"; {kind.maker}" if kind is not None and kind.maker else ""))


@lru_cache(maxsize=64)
def _absolute_store(path, read_only, fsync):
    """Return the store of an absolute path. It does not depend on the current directory or on links.

    A task scheduler that opens an array for every task gets the same store again.
    """
    return loaded(DIRECTORY.opener)(path, read_only=read_only, fsync=fsync, check_base=False)
