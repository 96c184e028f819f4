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
from zcore.api import consolidate_metadata, create_array, create_group, open, open_array, open_group
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

__all__ = [
    "Array", "ArrayMismatchError", "ChecksumError", "ChunkError", "ChunkMemoryError", "CodecError", "DirectoryStore",
    "Group", "InvalidKeyError", "KeyConflictError", "LockError", "MemoryStore", "MetadataError", "NodeExistsError",
    "NodeNotFoundError", "NotADirectoryStoreError", "OutOfMemoryError", "ReadOnlyError", "SelectionError", "StoreError",
    "TruncatedError", "UnknownCodecError", "UnsupportedError", "ZcoreError", "__version__", "blosc", "codecs", "config",
    "consolidate_metadata", "create_array", "create_group", "get_include", "open", "open_array", "open_group",
    "show_config",
]


def __dir__():
    """Return the public names, for completion at a prompt: submodules that imports leave here are not."""
    return __all__
