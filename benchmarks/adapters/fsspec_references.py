"""fsspec's file system of reference sets, and zarr-python reading through it.

What it keeps of former sets and listings is left out.
"""
import os

import zarr
from fsspec.implementations.reference import ReferenceFileSystem

from benchmarks.adapters import zarr_python
from benchmarks.inputs import reference_sets
from benchmarks.inputs.encodings import REFERENCES


class Adapter(zarr_python.Adapter):
    views = (REFERENCES,)
    distributions = ("fsspec", "zarr")

    def __init__(self, threads):
        super().__init__(threads, pipeline="batched")
        self.kinds = frozenset({"read", "parts", "set", "set_memory"})

    def open(self, path, view):
        store = zarr.storage.FsspecStore(self.open_set(os.path.join(path, reference_sets.NAME)), read_only=True)
        return zarr.open_array(store, mode="r", zarr_format=2)

    def open_set(self, path):
        return ReferenceFileSystem(path, remote_protocol="file", asynchronous=True, skip_instance_cache=True)

    def set_says(self, handle, expected):
        return handle.references == expected

    def length_of_set(self, handle):
        return len(handle.references)
