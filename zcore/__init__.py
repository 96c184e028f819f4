"""zcore: the small, fast, trustworthy reader and writer of chunked N-dimensional arrays.

>>> import tempfile, zcore
>>> with tempfile.TemporaryDirectory() as folder:
...     z = zcore.open(folder, mode="w", shape=(100, 100), chunks=(10, 10), dtype="<f4", cname="lz4")
...     z[:10] = 1.5
...     float(zcore.open(folder)[0:20, 0].sum())
15.0
"""
try:
    from zcore import blosc, codecs, config
except ImportError as exc:
    if not (exc.name or "").startswith("zcore.kernel"):
        raise
    raise ImportError("zcore is imported from its sources, which are not built: leave this folder, or build in place "
                      "by `python -m pip install -e .`") from exc
from zcore.api import create_array, create_group, open, open_array, open_group
from zcore.arrays import Array
from zcore.config import __version__, get_include, show_config
from zcore.errors import (
    ArrayMismatchError,
    ChecksumError,
    ChunkError,
    ChunkMemoryError,
    CodecError,
    InvalidKeyError,
    KeyConflictError,
    LockError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NotADirectoryStoreError,
    OutOfMemoryError,
    ReadOnlyError,
    ReferenceFormatError,
    ReferenceTargetError,
    SelectionError,
    StoreError,
    TruncatedError,
    UnknownCodecError,
    UnsupportedError,
    ZcoreError,
)
from zcore.groups import Group
from zcore.stores.directory import DirectoryStore
from zcore.stores.memory import MemoryStore

# Imported with the first use of a name: most programs need none of them.
_LATER = {
    **dict.fromkeys(("array", "create", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros",
                     "zeros_like"), "zcore.filled"),
    **dict.fromkeys(("consolidate_metadata", "create_hierarchy", "group", "open_consolidated", "tree"),
                    "zcore.hierarchy"),
    **dict.fromkeys(("load", "save", "save_array", "save_group"), "zcore.saved"),
    "ReferenceStore": "zcore.stores.reference",
    "ZipStore": "zcore.stores.zip",
    "asdf": None,
    "storage": None,
}

__all__ = [
    "Array", "ArrayMismatchError", "ChecksumError", "ChunkError", "ChunkMemoryError", "CodecError",
    "DirectoryStore", "Group", "InvalidKeyError", "KeyConflictError", "LockError", "MemoryStore", "MetadataError",
    "NodeExistsError", "NodeNotFoundError", "NotADirectoryStoreError", "OutOfMemoryError", "ReadOnlyError",
    "ReferenceFormatError", "ReferenceStore", "ReferenceTargetError", "SelectionError", "StoreError",
    "TruncatedError", "UnknownCodecError", "UnsupportedError", "ZcoreError", "ZipStore", "__version__", "array",
    "asdf", "blosc", "codecs", "config", "consolidate_metadata", "create", "create_array", "create_group",
    "create_hierarchy", "empty", "empty_like", "full", "full_like", "get_include", "group", "load", "ones",
    "ones_like", "open", "open_array", "open_consolidated", "open_group", "save", "save_array", "save_group",
    "show_config", "storage", "tree", "zeros", "zeros_like",
]


def __getattr__(name):
    """Import what is needed by some programs only."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = _LATER[name]
    value = import_module(f"zcore.{name}") if module is None else getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__():
    """Return the public names, for completion at a prompt: submodules that imports leave here are not."""
    return __all__
