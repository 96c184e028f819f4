"""zarr-python with its own codec pipelines: the default one and the fused one that its configuration offers.

`zarr_format` is passed on opening, which spares the library the search for documents of the other format. The executor
of the event loop and the fused pipeline's pool are made once a process, with the number of threads of the first use.
Servers are asked by obstore, with as many requests at a time as by the others: by default they would be 10.
"""
import functools

import zarr
import zarr.core.codec_pipeline

from benchmarks.adapters import N_REQUESTS, Base
from benchmarks.inputs.encodings import V2
from benchmarks.inputs.object_server import BUCKET

_PIPELINES = {"batched": "BatchedCodecPipeline", "fused": "FusedCodecPipeline"}


def read_forwards(handle, steps):
    """Return what slices with these steps select, for a library that knows positive steps only."""
    forwards = tuple(slice(None, None, step) if step > 0 else slice((n - 1) % -step, None, -step)
                     for step, n in zip(steps, handle.shape, strict=True))
    return handle[forwards][tuple(slice(None, None, -1 if step < 0 else 1) for step in steps)]


@functools.cache
def _store(place):
    from obstore.store import S3Store

    return zarr.storage.ObjectStore(S3Store(BUCKET, **place.options), read_only=True)


def _listed(group):
    return [(name, array.shape, str(array.dtype)) for name, array in group.arrays()]


class Adapter(Base):
    kinds = Base.kinds - {"parts_at_once"} | {"remote"}
    distributions = ("zarr", "numcodecs")

    def __init__(self, threads, pipeline):
        super().__init__(threads)
        name = _PIPELINES[pipeline]
        if not hasattr(zarr.core.codec_pipeline, name):
            raise ImportError(f"zarr {zarr.__version__} has no {name}")
        self.settings = {
            "codec_pipeline.path": f"zarr.core.codec_pipeline.{name}",
            "codec_pipeline.max_workers": threads,
            "threading.max_workers": threads,
            "async.concurrency": zarr.config.get("async.concurrency"),
        }
        if pipeline == "batched":  # what no pipeline takes part in is the same for both
            self.kinds = self.kinds | {"first_read", "create", "list", "member", "remote_list"}
            self.first_read = "import zarr; first = zarr.open_array(path, mode='r')[:n]"

    def activate(self):
        zarr.config.set(self.settings)

    def open(self, path, view):
        return zarr.open_array(path, mode="r", zarr_format=2 if view == V2 else 3)

    def open_remote(self, place, path):
        zarr.config.set({"async.concurrency": N_REQUESTS})
        return zarr.open_array(_store(place), path=path, mode="r", zarr_format=3)

    def list_remote(self, place, path):
        zarr.config.set({"async.concurrency": N_REQUESTS})
        return _listed(zarr.open_group(_store(place), path=path, mode="r", zarr_format=3))

    def open_to_write(self, path, view):
        return zarr.open_array(path, mode="r+", zarr_format=2 if view == V2 else 3)

    def read_points(self, handle, rows, columns):
        return handle.vindex[rows, columns]

    def read_mask(self, handle, mask):
        return handle.vindex[mask]

    def read_product(self, handle, rows, columns):
        return handle.oindex[rows, columns]

    def read_strided(self, handle, *steps):
        return read_forwards(handle, steps)

    def create_group(self, path, arrays):
        group = zarr.create_group(path, zarr_format=3)
        for one in arrays:
            group.create_array(one.name, shape=one.shape, chunks=one.chunks, dtype=one.dtype,
                               attributes=one.attributes)

    def list_group(self, path):
        return _listed(zarr.open_group(path, mode="r", zarr_format=3))

    def open_member(self, path, name):
        return zarr.open_group(path, mode="r", zarr_format=3)[name]
