"""zcore itself: the `__zmeta__` view where there is one, locks on, as a user gets it.

`zarr_format` is passed on opening, as it is to the others.
"""
import contextlib
import importlib.metadata
import os

import zcore
from benchmarks.adapters import KEPT_NBYTES, N_REQUESTS, Base
from benchmarks.inputs import reference_sets
from benchmarks.inputs.encodings import REFERENCES, V2, V3, ZMETA
from benchmarks.inputs.object_server import BUCKET
from zcore import config, create_group, open_group
from zcore import open as open_array

_FORMATS = {ZMETA: "zmeta", V2: 2, V3: 3}


class Adapter(Base):
    views = (ZMETA, V2, V3, REFERENCES)
    kinds = Base.kinds | {"import", "import_open", "create", "list", "member", "kept_elements", "set", "set_memory",
                          "remote"}
    module = "zcore"

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

    def open_remote(self, place):
        return open_array(zcore.RemoteStore(f"s3://{BUCKET}/{place.path}", n_requests=N_REQUESTS, **place.options),
                          zarr_format=3)

    def open_set(self, path, spelling):
        return zcore.ReferenceStore(path)

    def set_says(self, handle, expected):
        return handle.to_v0() == expected

    def length_of_set(self, handle):
        return sum(1 for _ in handle.list())

    def open_keeping(self, path, view):
        return open_array(path, zarr_format=_FORMATS[view], cache=KEPT_NBYTES)

    def open_to_write(self, path, view):
        return open_array(path, mode="r+", zarr_format=_FORMATS[view])

    def create_group(self, path, names, shape, chunks):
        group = create_group(path)
        for name in names:
            group.create_array(name, shape=shape, chunks=chunks, dtype="f4")

    def list_group(self, path):
        return [(name, array.shape, str(array.dtype)) for name, array in open_group(path).arrays()]

    def open_member(self, path, name):
        return open_group(path)[name]
