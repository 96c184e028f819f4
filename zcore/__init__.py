"""zcore: the small, fast, trustworthy reader and writer of chunked N-dimensional arrays.

>>> import tempfile, zcore
>>> with tempfile.TemporaryDirectory() as folder:
...     z = zcore.open(folder, mode="w", shape=(100, 100), chunks=(10, 10), dtype="<f4")
...     z[:10] = 1.5
...     float(zcore.open(folder)[0:20, 0].sum())
15.0
"""
try:
    import zcore.kernel.build_info  # noqa: F401
except ImportError as exc:
    if not (exc.name or "").startswith("zcore.kernel"):
        raise
    raise ImportError(f"zcore is imported from its sources in {__path__[0]}, which are not built: start Python in "
                      "another folder, or build in place by `python -m pip install -e .`") from exc
if not zcore.kernel.__path__[0].startswith(__path__[0]):
    # The finder of an editable installation answers for what this copy lacks.
    raise ImportError(f"zcore is imported from {__path__[0]}, its compiled part from another copy, "
                      f"{zcore.kernel.__path__[0]}: uninstall one of them, or start Python in another folder")

# Where each public name comes from; its module is imported with its first use (SPEC 1 of Scientific Python). So a
# program that embeds zcore pays for it when it opens an array, and only for what it then needs.
_MODULE_OF = {
    **dict.fromkeys(("create_array", "create_group", "open", "open_array", "open_group"), "zcore.api"),
    "Array": "zcore.nodes.array",
    "Group": "zcore.nodes.group",
    "GroupWriter": "zcore.nodes.group_writer",
    "Writer": "zcore.nodes.writer",
    **dict.fromkeys(("__version__", "get_include", "show_config"), "zcore.config"),
    **dict.fromkeys((
        "ArrayMismatchError", "AsdfFormatError", "ChecksumError", "ChunkError", "ChunkMemoryError",
        "ChunkNotFoundError", "CodecError", "InvalidKeyError", "KeyConflictError", "LockError", "MetadataError",
        "NodeExistsError", "NodeNotFoundError", "NotADirectoryStoreError", "OutOfMemoryError", "ReadOnlyError",
        "ReferenceFormatError", "ReferenceTargetError", "SelectionError", "StoreError", "TruncatedError",
        "UnknownCodecError", "UnsupportedError", "WriterError", "ZcoreError",
    ), "zcore.errors"),
    **dict.fromkeys(("array", "create", "empty", "empty_like", "from_array", "full", "full_like", "ones", "ones_like",
                     "zeros", "zeros_like"), "zcore.api"),
    **dict.fromkeys(("consolidate_metadata", "create_hierarchy", "group", "open_consolidated", "tree"),
                    "zcore.api"),
    **dict.fromkeys(("load", "save", "save_array", "save_group"), "zcore.api"),
    "copy": "zcore.tools.copy.copy",
    "verify": "zcore.tools.verify.verify",
    "references": "zcore.tools.references.references",
    "references_from_hdf5": "zcore.tools.references.hdf5",
    "AsdfStore": "zcore.stores.asdf.store",
    "DirectoryStore": "zcore.stores.directory.store",
    "MemoryStore": "zcore.stores.memory",
    "ReferenceStore": "zcore.stores.reference.store",
    "RemoteStore": "zcore.stores.remote.store",
    "ZipStore": "zcore.stores.zip.store",
}
_MODULES = ("asdf", "blosc", "codecs", "config", "storage")
# Not for `import *`: some need an extra, and a program has its own `typing`.
_MODULES_BY_NAME = ("dask", "dtype", "errors", "mpi", "typing", "xarray", "zarr")

__all__ = sorted([*_MODULE_OF, *_MODULES])


def __getattr__(name):
    """Import what a public name stands for, with its first use."""
    if name in _MODULES or name in _MODULES_BY_NAME:
        return _import_module(f"zcore.{name}")
    if name not in _MODULE_OF:
        raise _import_module("zcore.text.tried_names").no_attribute(__name__, name, [*__all__, *_MODULES_BY_NAME])
    value = getattr(_import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__():
    """Return the public names, for completion at a prompt: submodules that imports leave here are not."""
    return __all__


def _import_module(name):
    from importlib import import_module

    return import_module(name)
