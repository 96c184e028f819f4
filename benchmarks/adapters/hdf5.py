"""h5py, which has no Zarr: the same array in an HDF5 file, for reads through its cache of decoded chunks.

The file is made of the Zarr array at first use, beside it, with h5py's own fast compressor. What is measured through a
cache of 64 MiB is that cache, into which the only chunk has come before. By default it is of 1 MiB, less than the
chunk, which is decoded for each element then. HDF5 takes its file to be its own, and does not look whether somebody has
changed it.
"""
import os

import h5py

import zcore
from benchmarks.adapters import KEPT_NBYTES, Base


class Adapter(Base):
    kinds = frozenset({"elements", "kept_elements"})
    distributions = ("h5py",)

    def open_keeping(self, path, view):
        return self._open(path, rdcc_nbytes=KEPT_NBYTES)

    def open(self, path, view):
        return self._open(path)

    @staticmethod
    def _open(path, **keywords):
        name = path + ".h5"
        if not os.path.exists(name):
            array = zcore.open(path)
            with h5py.File(name, "w") as file:
                file.create_dataset("a", data=array[...], chunks=array.chunks, compression="lzf", shuffle=True)
        return h5py.File(name, "r", **keywords)["a"]
