"""One class a library, behind one small interface; a library that is not installed is skipped.

`LIBRARIES` is the table: name in results → module of this package and keywords of its `Adapter`. Variants of one
library (pipelines, durability) are rows of their own.
"""
import importlib
import importlib.metadata

LIBRARIES = {
    "zcore": ("zcore", {}),
    "zarr": ("zarr_python", {"pipeline": "batched"}),
    "zarr_fused": ("zarr_python", {"pipeline": "fused"}),
    "zarrs": ("zarrs", {}),
    "tensorstore": ("tensorstore", {}),
    "tensorstore_mmap": ("tensorstore", {"variant": "mmap"}),
    "tensorstore_sync": ("tensorstore", {"variant": "sync"}),
    "bare_loop": ("bare_loop", {}),
}


class Base:
    """What the runner asks of a library; an adapter says in `kinds` what it can do.

    `view` names the view of a fixture that the library opens, `kinds` the kinds of workload it takes part in,
    `module` what a child process imports to learn its cost (None: nothing).
    """

    view = "v2"
    kinds = frozenset({"read", "write", "open", "memory"})
    distributions = ()
    module = None

    def __init__(self, threads):
        self.threads = threads

    def versions(self):
        """Return name → version of the distributions behind this adapter."""
        return {name: importlib.metadata.version(name) for name in self.distributions}

    def activate(self):
        """Make the library's global settings those of this adapter; called before the clock starts."""

    def open(self, path):
        """Return a handle of the array for reading."""
        raise NotImplementedError

    def read(self, handle):
        """Return the whole array in new memory."""
        raise NotImplementedError

    def read_first(self, handle, count):
        """Return the first `count` elements of an array of one dimension."""
        raise NotImplementedError

    def create(self, path, shape, chunks):
        """Create a float32 array with fill value 0 and blosc lz4 level 5 shuffle at a new path, return its handle."""
        raise NotImplementedError

    def write(self, handle, data):
        """Write `data` over the whole array and return when readers see it."""
        raise NotImplementedError


def load(name, threads):
    """Return the adapter of one library.

    Raises : KeyError, if the table has no such name; ImportError, if the library or what it needs is not installed.
    """
    module, keywords = LIBRARIES[name]
    return importlib.import_module(f"{__name__}.{module}").Adapter(threads, **keywords)


def load_all(names, threads):
    """Return name → adapter of those that can be had, and name → reason of those that cannot."""
    found, skipped = {}, {}
    for name in names:
        try:
            found[name] = load(name, threads)
        except ImportError as exc:
            skipped[name] = str(exc)
    return found, skipped
