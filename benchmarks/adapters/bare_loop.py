"""The limit: the harness's own C loop over the chunk files, which knows shape and chunks beforehand."""
import json
from pathlib import Path

import numpy as np

from benchmarks.adapters import Base
from benchmarks.harness import native


class Adapter(Base):
    kinds = frozenset({"read", "box", "points", "product", "strided", "write", "memory"})
    encodings = frozenset({"v3"})
    distributions = ("blosc",)

    def __init__(self, threads):
        super().__init__(threads)
        self.library = native.library()

    def takes_part(self, workload):
        return super().takes_part(workload) and not workload.shards

    def open(self, path, view):
        document = json.loads(Path(path, "zarr.json").read_text("utf-8"))
        return path, tuple(document["shape"]), tuple(document["chunk_grid"]["configuration"]["chunk_shape"])

    def open_to_write(self, path, view):
        return self.open(path, view)

    def read(self, handle):
        path, shape, chunks = handle
        out = np.empty(shape, np.float32)
        native.whole_array(self.library.read_array, path, chunks, out, self.threads)
        return out

    def read_box(self, handle, box):
        return self._product(handle, box)

    def read_strided(self, handle, *steps):
        return self._product(handle, [slice(None, None, step) for step in steps])

    def _product(self, handle, slices):
        return self.read_product(handle, *[np.arange(length)[part]
                                           for length, part in zip(handle[1], slices, strict=True)])

    def read_product(self, handle, *lists):
        return self._selected(handle, lists, False, tuple(map(len, lists)))

    def read_points(self, handle, *lists):
        return self._selected(handle, lists, True, lists[0].shape)

    def _selected(self, handle, lists, are_points, result_shape):
        path, shape, chunks = handle
        out = np.empty(result_shape, np.float32)
        native.selected(path, shape, chunks, [np.ascontiguousarray(one, np.int64) for one in lists], are_points, out,
                        self.threads)
        return out

    def write(self, handle, data):
        path, _shape, chunks = handle
        native.whole_array(self.library.write_array, path, chunks, data, self.threads)
