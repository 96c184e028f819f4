"""One class a library, behind one small interface; a library that is not installed is skipped.

`LIBRARIES` is the table: name in results → module of this package and keywords of its `Adapter`. Variants of one
library (pipelines, durability) are rows of their own.
"""
import importlib
import importlib.metadata

import numpy as np

from benchmarks.inputs.encodings import ENCODINGS, V2, V3

LIBRARIES = {
    "zcore": ("zcore", {}),
    "zarr": ("zarr_python", {"pipeline": "batched"}),
    "zarr_fused": ("zarr_python", {"pipeline": "fused"}),
    "zarrs": ("zarrs", {}),
    "tensorstore": ("tensorstore", {}),
    "tensorstore_mmap": ("tensorstore", {"variant": "mmap"}),
    "tensorstore_cache": ("tensorstore", {"variant": "cache"}),
    "tensorstore_sync": ("tensorstore", {"variant": "sync"}),
    "h5py": ("hdf5", {}),
    "fsspec": ("fsspec_references", {}),
    "icechunk": ("icechunk", {}),
    "bare_loop": ("bare_loop", {}),
}

GROUP = "zcore_benchmarks"
KEPT_NBYTES = 2**26
N_REQUESTS = 32  # to a server at a time


class Base:
    """What the runner asks of a library; an adapter says in `kinds` what it can do.

    `views` names the formats that the library opens, `kinds` the kinds of workload it takes part in, `cannot` those
    that it would take part in if it could, with the reason, `encodings` those it knows (None: all), `first_read` the
    program that opens the Zarr v3 array at `path` and makes `first` of its first `n` elements.
    """

    views = (V2, V3)
    kinds = frozenset({"read", "sparse", "parts", "parts_at_once", "pieces", "crops", "box", "points", "mask",
                       "product", "strided", "elements", "write", "write_box", "append", "stream", "open", "memory",
                       "write_memory"})
    cannot = {}
    encodings = None
    distributions = ()
    first_read = None

    def __init__(self, threads):
        self.threads = threads

    def versions(self):
        """Return name → version of the distributions behind this adapter."""
        return {name: importlib.metadata.version(name) for name in self.distributions}

    def takes_part(self, workload):
        """Return whether the library is measured on a workload."""
        return workload.kind in self.kinds and self.knows(workload.encoding)

    def knows(self, encoding):
        """Return whether the library reads arrays of an encoding, by its name."""
        return ENCODINGS[encoding].view in self.views and (self.encodings is None or encoding in self.encodings)

    def activate(self):
        """Make the library's global settings those of this adapter; called before the clock starts."""

    def open(self, path, view):
        """Return a handle of the array for reading."""
        raise NotImplementedError

    def open_keeping(self, path, view):
        """Return a handle that keeps `KEPT_NBYTES` bytes of decoded chunks between reads."""
        raise NotImplementedError

    def open_to_write(self, path, view):
        """Return a handle of an array without chunks for writing."""
        raise NotImplementedError

    def read(self, handle):
        """Return the whole array in new memory."""
        return handle[...]

    def read_parts(self, handle, boxes):
        """Return the selections, one array each, one after the other."""
        return [handle[box] for box in boxes]

    def read_parts_at_once(self, handle, boxes):
        """Return the same, in whatever way the library has for many selections."""
        return self.read_parts(handle, boxes)

    def read_crops(self, handle, boxes):
        """Return the selections, of one shape, stacked, in whatever way the library has for many."""
        return np.stack(self.read_parts_at_once(handle, boxes))

    def read_box(self, handle, box):
        """Return one selection by slices."""
        return handle[box]

    def read_points(self, handle, rows, columns):
        """Return the elements of two dimensions at these rows and columns, index by index."""
        return handle[rows, columns]

    def read_mask(self, handle, mask):
        """Return the elements for which a mask of the array's shape is true."""
        return handle[mask]

    def read_product(self, handle, rows, columns):
        """Return these rows in these columns."""
        return handle[np.ix_(rows, columns)]

    def read_strided(self, handle, *steps):
        """Return what slices with these steps select, some of them negative."""
        return handle[tuple(slice(None, None, step) for step in steps)]

    def read_elements(self, handle, places):
        """Return the elements at these places, each before the next one is asked for."""
        return [handle[place] for place in places]

    def read_first(self, handle, count):
        """Return the first `count` elements of an array of one dimension."""
        return handle[:count]

    def write(self, handle, data):
        """Write `data` over the whole array and return when readers see it."""
        handle[...] = data

    def round_trip(self, source, target):
        """Read all of one array and write it over all of another, opened for reading and for writing."""
        self.write(target, self.read(source))

    def write_box(self, handle, box, values):
        """Write to one selection by slices and return when readers see it."""
        handle[box] = values

    def append(self, handle, parts):
        """Append each of the parts to the first dimension, after readers can see the one before."""
        for part in parts:
            handle.append(part)

    def stream(self, handle, parts):
        """Append each of the parts; readers see all when the call returns."""
        self.append(handle, parts)

    def open_remote(self, place, path):
        """Return a handle for reading of a Zarr v3 array at a path of a server, an `object_server.Place`.

        Connections to a place are kept from one call to the next.
        """
        raise NotImplementedError

    def list_remote(self, place, path):
        """Return (name, shape, dtype as text) of all arrays of a Zarr v3 group there."""
        raise NotImplementedError

    def open_set(self, path):
        """Return a handle of a reference set, when the place of each reference is known."""
        raise NotImplementedError

    def set_says(self, handle, expected):
        """Return whether a reference set says this, a dict of keys to text or [url, offset, length]."""
        raise NotImplementedError

    def length_of_set(self, handle):
        """Return how many references a set has."""
        raise NotImplementedError

    def create_group(self, path, arrays):
        """Create a Zarr v3 group with these `fixtures.Member`, with the library's own defaults."""
        raise NotImplementedError

    def list_group(self, path):
        """Return (name, shape, dtype as text) of all arrays of a Zarr v3 group."""
        raise NotImplementedError

    def open_member(self, path, name):
        """Return a handle of one array of a Zarr v3 group, opened through the group where the library has groups."""
        raise NotImplementedError


def names():
    """Return the names of all libraries: those of the table, and those that installed distributions bring."""
    return [*LIBRARIES, *importlib.metadata.entry_points(group=GROUP).names]


def load(name, threads):
    """Return the adapter of one library.

    Raises : KeyError, if there is no such name; ImportError, if the library or what it needs is not installed.
    """
    if name in LIBRARIES:
        module, keywords = LIBRARIES[name]
        return importlib.import_module(f"{__name__}.{module}").Adapter(threads, **keywords)
    return importlib.metadata.entry_points(group=GROUP)[name].load().Adapter(threads)


def load_all(names, threads):
    """Return name → adapter of those that can be had, and name → reason of those that cannot."""
    found, skipped = {}, {}
    for name in names:
        try:
            found[name] = load(name, threads)
        except ImportError as exc:
            skipped[name] = str(exc)
    return found, skipped
