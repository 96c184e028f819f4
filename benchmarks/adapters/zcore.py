"""zcore itself, locks on, as a user gets it.

`zarr_format` is passed on opening, as it is to the others.
"""
import contextlib
import functools
import importlib.metadata
import os

import numpy as np

import zcore
from benchmarks.adapters import KEPT_NBYTES, N_REQUESTS, Base
from benchmarks.inputs import reference_sets
from benchmarks.inputs.encodings import REFERENCES, V2, V3
from benchmarks.inputs.object_server import BUCKET
from zcore import config, create_group, open_group
from zcore import open as open_array

_FORMATS = {V2: 2, V3: 3}


@functools.cache
def _store(place):
    return zcore.RemoteStore(f"s3://{BUCKET}", n_requests=N_REQUESTS, **place.options)


def _listed(group):
    return [(name, array.shape, str(array.dtype)) for name, array in group.arrays()]


class Adapter(Base):
    views = (V2, V3, REFERENCES)
    kinds = Base.kinds | {"first_read", "create", "list", "member", "kept_elements", "set", "set_memory", "remote",
                          "remote_list"}
    first_read = "import zcore; first = zcore.open(path)[:n]"

    def versions(self):
        return {"zcore": zcore.__version__, **self.extras()}

    @staticmethod
    def extras():
        """Return the library that does gzip, and the versions of the extra "gzip" where it is installed."""
        found = {"deflate": zcore.show_config(mode="dicts")["libraries"]["deflate"]}
        for name in ("isal", "zlib-ng"):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                found[name] = importlib.metadata.version(name)
        return found

    def activate(self):
        config.threads = self.threads

    def open(self, path, view):
        if view == REFERENCES:
            return open_array(os.path.join(path, reference_sets.NAME), zarr_format=2)
        return open_array(path, zarr_format=_FORMATS[view])

    def open_remote(self, place, path):
        return open_array(_store(place), path=path, zarr_format=3)

    def list_remote(self, place, path):
        return _listed(open_group(_store(place), path=path, zarr_format=3))

    def open_set(self, path):
        return zcore.ReferenceStore(path)

    def set_says(self, handle, expected):
        return handle.to_v0() == expected

    def length_of_set(self, handle):
        return sum(1 for _ in handle.list())

    def open_keeping(self, path, view):
        return open_array(path, zarr_format=_FORMATS[view], cache=KEPT_NBYTES)

    def open_to_write(self, path, view):
        return open_array(path, mode="r+", zarr_format=_FORMATS[view])

    def read_parts_at_once(self, handle, boxes):
        return list(self.read_crops(handle, boxes))

    def read_crops(self, handle, boxes):
        starts = np.array([[part.start for part in box] for box in boxes])
        return handle.read_many(starts, shape=tuple(part.stop - part.start for part in boxes[0]))

    def stream(self, handle, parts):
        with handle.writer() as writer:
            for part in parts:
                writer.append(part[0])

    def create_group(self, path, arrays):
        group = create_group(path)
        for one in arrays:
            group.create_array(one.name, shape=one.shape, chunks=one.chunks, dtype=one.dtype,
                               attributes=one.attributes)

    def list_group(self, path):
        return _listed(open_group(path))

    def open_member(self, path, name):
        return open_group(path)[name]
