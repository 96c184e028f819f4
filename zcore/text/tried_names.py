"""Names of h5py, zarr-python 2 and NumPy that people try first: a sentence for each, which the error of Python gets."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Never, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])

_IN_MEMORY = "z[...] reads an array into memory, as an ndarray, which has it; dask.array.from_array(z) works in pieces"
_FILE = "zcore.open_group(path, mode) opens a store, and zcore.copy makes one of an HDF5 file"
_XARRAY = "xarray.open_dataset(path, engine='zcore') opens a dataset"
_COMPRESSORS = "compressors= takes a codec or a name, as in compressors='gzip' or zcore.codecs.GzipCodec(level=4)"
_RESIZED = "every array can be resized, so leave it out"
_CREATE = "zcore.create_array(store, name=name, shape=shape, dtype=dtype) creates an array"
_STORES = "zcore.storage has the stores under zarr-python's names"
_FOLDER = "zcore.storage.LocalStore(path) is a directory"
_DATABASE = "zcore has no databases; zcore.storage has directories, archives and remote stores"
_MAPPING = "a dict is a store as it is"
_CACHED = "zcore reads documents again when they may have changed, so leave it out"
_LINKS = "there are no links; an attribute may hold a node's path"
_COPY = "zcore.copy(source, destination) copies arrays, groups and whole stores"
_DIMENSIONS = "dimension_names= of zcore.create_array names dimensions, and z.metadata.dimension_names are their names"
_READ_ONLY = "read_only says whether it only reads"
_ABOVE = "zcore.open_group(node.store) is the group that holds all others"

SENTENCES = {
    "File": _FILE, "Dataset": "zcore.Array is the class", "create_dataset": _CREATE, "require_dataset": _CREATE,
    "open_zarr": _XARRAY, "open_dataset": _XARRAY, "to_zarr": "zcore.xarray.to_zarr writes a dataset",
    "core": "zcore.Array and zcore.Group are the classes",
    "Blosc": "zcore.codecs.BloscCodec is the codec", "savez": "zcore.save stores arrays", "rechunk":
    "zcore.copy(source, destination, chunks=chunks) rechunks", **dict.fromkeys(
        ("LocalStore", "FsspecStore", "ObjectStore"), _STORES),
    **dict.fromkeys(("DirectoryStore", "NestedDirectoryStore", "TempStore"), _FOLDER),
    **dict.fromkeys(("LMDBStore", "SQLiteStore", "DBMStore", "MongoDBStore", "RedisStore"), _DATABASE),
    **dict.fromkeys(("DictStore", "KVStore"), _MAPPING), **dict.fromkeys(("N5Store", "N5FSStore"), "zcore has no N5"),
    "FSStore": "zcore.storage.FsspecStore.from_url(url) is a store of fsspec",
    "LoggingStore": "a class of your own that derives from zcore.storage.Store may pass calls on to another store",
    "LRUStoreCache": "cache='64 MB' of zcore.open keeps what was read",
    "chunk_store": "documents and chunks are in one store, so leave it out",
    "dimension_separator": "chunk_key_encoding={'name': 'v2', 'separator': '/'} sets it", "level": "it is max_depth",
    "object_codec": "objects are not stored, and dtype=str is text of any length, so leave it out",
    **dict.fromkeys(("cache_metadata", "cache_attrs"), _CACHED), "path": "it is name", "name": "it is path",
    "read_only": "mode='r' of zcore.open, the default, only reads", "recurse":
    "members(max_depth=None) gives the nodes of all levels", "exact": "shape and dtype must be equal, so leave it out",
    **dict.fromkeys(("track_times", "track_order"), "zcore keeps no times and no order, so leave it out"),
    **dict.fromkeys(("compression", "compressor", "compression_opts"), _COMPRESSORS), **dict.fromkeys(
        ("cname", "clevel"), "compressors=zcore.codecs.BloscCodec(cname='zstd', clevel=5) sets it"), "shuffle":
    "compressors=zcore.codecs.BloscCodec(shuffle='shuffle') shuffles", "fletcher32":
    "new arrays have a checksum, crc32c, unless checksum=False", "maxshape": _RESIZED, "fillvalue": "it is fill_value",
    **dict.fromkeys(("synchronizer", "ThreadSynchronizer", "ProcessSynchronizer"), "writers lock, so leave it out"),
    "mode": "overwrite=True replaces what is there", "zarr_version": "it is zarr_format",
    **dict.fromkeys(("mean", "sum", "min", "max", "std", "var", "any", "all", "T", "transpose", "reshape", "ravel",
                     "copy", "tolist", "to_numpy", "value", "item", "argmax", "flatten", "squeeze"), _IN_MEMORY),
    "flush": "every write is stored when it returns",
    "new_shape": "the new shape has no name, as in z.resize((4, 6))", "dest": "it is destination", "new_attributes":
    "it is attributes", "write_data": "zcore.from_array has it",
    **dict.fromkeys(("copy_store", "copy_all"), _COPY), "string_dtype": "dtype=str is text of any length",
    **dict.fromkeys(("dims", "make_scale"), _DIMENSIONS), **dict.fromkeys(("SoftLink", "ExternalLink", "ref"), _LINKS),
    **dict.fromkeys(("AsyncArray", "async_array"), "await z.async_read(selection)"), "open_like":
    "zcore.empty_like(z, store=store)", "print_debug_info": "zcore.show_config() shows it", "VirtualLayout":
    "zcore.references([...], along=0) joins arrays without a copy",
}
OF_ARRAY = SENTENCES | {
    **dict.fromkeys(("parent", "file"), _ABOVE),
    "mode": _READ_ONLY, "asstr": "text is read as str", "fields": "z['name', selection] reads a field",
    "len": "len(z)", "view": "z.astype(dtype) casts what it reads", "create": _CREATE,
    "open": "zcore.open_array(store) opens an array",
}
OF_METADATA = {"dimension_separator": "it is chunk_keys.separator", "chunk_key_encoding": "it is chunk_keys",
               "data_type": "it is dtype"}
OF_GROUP = {
    **dict.fromkeys(("parent", "file", "filename"), _ABOVE), "copy": _COPY, "flush": SENTENCES["flush"],
    **dict.fromkeys(("array", "create"), "g.create_array(name, data=data) creates an array"),
    **{name: f"zcore.{kind}_like(array, store=g.store, path=name) creates an array like another" for name, kind in (
        ("create_dataset_like", "empty"), *[(f"{kind}_like", kind) for kind in ("empty", "full", "ones", "zeros")])},
    "ref": _LINKS, "mode": _READ_ONLY, "require_groups": "g.require_group(name) gives each",
    "synchronizer": SENTENCES["synchronizer"], "update": "g[name] = values creates an array",
    "pop": "del g[name] deletes a member", "open": "zcore.open_group(store) opens a group",
    **dict.fromkeys(("visit", "visitvalues", "visitkeys"), "g.visititems(function) gives each name and node"),
}
OF_ATTRIBUTES = dict.fromkeys(("create", "modify"), "attrs[name] = value sets one, attrs.update(...) several")


class Tried(NamedTuple):
    """A name that people try on an object, and its class lacks. `__getattr__` would make all other names slower."""

    name: str
    sentence: str

    def __get__(self, node: object, owner: type) -> Never:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}; {self.sentence}",
                             name=self.name, obj=owner if node is None else node)


def add_tried(cls: type, sentences: dict[str, str]) -> None:
    """Give a class the names that people try on its objects; `dir` does not show them."""
    for name, sentence in sentences.items():
        if not hasattr(cls, name):
            setattr(cls, name, Tried(name, sentence))
    cls.__dir__ = lambda self: [name for name in object.__dir__(self) if type(vars(cls).get(name)) is not Tried]


def with_advice(message: str, name: str, known: Iterable[str] = (), where: str = "") -> str:
    """Return the message of an error about a name, with the sentence for that name, or the known name most like it.

    >>> with_advice("no attribute 'maxshape'", "maxshape")
    "no attribute 'maxshape'; every array can be resized, so leave it out"
    >>> with_advice("no attribute 'opn'", "opn", ["open", "copy"], "zcore.")
    "no attribute 'opn'; did you mean zcore.open?"
    """
    if name in SENTENCES:
        return f"{message}; {SENTENCES[name]}"
    from difflib import get_close_matches

    alike = get_close_matches(name, known, 1)
    return f"{message}; did you mean {where}{alike[0]}?" if alike else message


def no_attribute(module: str, name: str, known: Iterable[str], where: str | None = None) -> AttributeError:
    """Return the error about a name that a module does not have; those it has, or those of `where`, are `known`.

    A name like `__wrapped__` is asked for by Python's tools, of which some ask thousands of times: none is like it.
    """
    known = () if name.startswith("__") else known
    message = f"module {module!r} has no attribute {name!r}"
    return AttributeError(with_advice(message, name, known, f"{where or module}."), name=name)


def unexpected(function: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a keyword that a function does not have; those it has are `known`."""
    return with_advice(f"{function}() got an unexpected keyword argument {name!r}", name, [f"{own}=" for own in known])


def advising(function: _F) -> _F:
    """Return a function whose error for a keyword that it does not have says what to write instead.

    That for arguments without a name names the first ones that need theirs.
    """
    code = function.__code__
    known = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def call(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            head, _, rest = str(error).partition("() got an unexpected keyword argument '")
            name = rest.partition("'")[0]
            if head == function.__qualname__ and ";" not in rest:
                # Python 3.13 adds a keyword that is spelled alike.
                error.args = (unexpected(head, name, known),)
            elif "name" in keywords and str(error).endswith(" got multiple values for keyword argument 'name'"):
                # The function that it was passed on to gets the path by this name.
                error.args = (unexpected(function.__qualname__, "name", known),)
            elif name in keywords and name not in known:
                # The function that it was passed on to.
                error.args = (str(error).replace(head, function.__qualname__, 1),)
            elif head.startswith(f"{function.__qualname__}() takes ") and "positional argument" in head:
                named = ", ".join([f"{name}=" for name in known[code.co_argcount:][:3] or ("shape", "dtype")])
                error.args = (f"{head}; all others are named, such as {named}",)
            raise

    return call
