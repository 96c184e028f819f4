"""tensorstore's `zarr` and `zarr3` drivers over its `file` and `s3` stores.

One context for all calls, so that an open pays for no thread pool; the chunk cache is off, as it is by default.
`data_copy_concurrency` (decoding, encoding) is the number of threads; `file_io_concurrency`, the number of files at
once, is not below the library's own default of 4. The library syncs every file that it writes, which no other here
does: `file_io_sync` is off, and its default is the variant ``sync``. The variant ``mmap`` maps files to read them, and
``cache`` has a cache of 64 MiB, new with every handle, which keeps the indices of shards and, where elements are read,
decoded chunks; it asks for the file each time, as by default.
Locking of files stays at its default. A write may refer to the source, which spares the library a copy of it. Many
new arrays, and many selections where the workload allows it, are asked for at once and waited for then, selections in
one `Batch`. A stream of parts gets its final shape at once, and its writes are waited for together.
"""
import os

import numpy as np
import tensorstore

from benchmarks.adapters import KEPT_NBYTES, N_REQUESTS, Base
from benchmarks.inputs.encodings import V2
from benchmarks.inputs.object_server import BUCKET

_VARIANTS = {  # settings of the context beside the common ones, kinds of workload on which they matter
    None: ({}, Base.kinds | {"first_read", "create", "list", "member", "remote", "remote_list"}),
    "mmap": ({"file_io_mode": {"mode": "memmap"}}, frozenset({"read", "memory"})),
    "sync": ({"file_io_sync": True}, frozenset({"write"})),
    "cache": ({}, frozenset({"parts", "parts_at_once", "kept_elements"})),
}


class Adapter(Base):
    distributions = ("tensorstore",)
    first_read = ("import tensorstore; first = tensorstore.open({'driver': 'zarr3', 'kvstore': {'driver': 'file', "
                  "'path': path}}, read=True).result()[:n].read().result()")

    def __init__(self, threads, variant=None):
        super().__init__(threads)
        settings, self.kinds = _VARIANTS[variant]
        self.cached = variant == "cache"
        self.context = tensorstore.Context({
            "data_copy_concurrency": {"limit": threads},
            "file_io_concurrency": {"limit": max(4, threads)},
            "file_io_sync": False,
            "s3_request_concurrency": {"limit": N_REQUESTS},
        } | settings)

    def _spec(self, path, view):
        spec = {"driver": "zarr" if view == V2 else "zarr3", "kvstore": {"driver": "file", "path": path}}
        if self.cached:
            # Named here it is nobody else's: what one handle has read, the next one reads again.
            spec["cache_pool"] = {"total_bytes_limit": KEPT_NBYTES}
        return spec

    def open(self, path, view):
        return tensorstore.open(self._spec(path, view), read=True, context=self.context).result()

    def _kvstore(self, place, path):
        # There is no other way to tell it.
        os.environ["TENSORSTORE_CA_BUNDLE"] = place.certificate
        os.environ["AWS_ACCESS_KEY_ID"] = place.options["access_key_id"]
        os.environ["AWS_SECRET_ACCESS_KEY"] = place.options["secret_access_key"]
        return {"driver": "s3", "bucket": BUCKET, "path": path + "/", "endpoint": place.endpoint,
                "aws_region": place.options["region"], "aws_credentials": {"type": "environment"}}

    def open_remote(self, place, path):
        spec = {"driver": "zarr3", "kvstore": self._kvstore(place, path)}
        return tensorstore.open(spec, read=True, context=self.context).result()

    def list_remote(self, place, path):
        return self._list(self._kvstore(place, path))

    def open_keeping(self, path, view):
        return self.open(path, view)

    def open_to_write(self, path, view):
        return tensorstore.open(self._spec(path, view), write=True, context=self.context).result()

    def read(self, handle):
        return handle.read().result()

    def read_parts(self, handle, boxes):
        return [handle[box].read().result() for box in boxes]

    def read_parts_at_once(self, handle, boxes):
        with tensorstore.Batch() as batch:
            readings = [handle[box].read(batch=batch) for box in boxes]
        return [reading.result() for reading in readings]

    def read_box(self, handle, box):
        return handle[box].read().result()

    def read_points(self, handle, rows, columns):
        return handle.vindex[rows, columns].read().result()

    def read_mask(self, handle, mask):
        return handle.vindex[mask].read().result()

    def read_product(self, handle, rows, columns):
        return handle.oindex[rows, columns].read().result()

    def read_strided(self, handle, *steps):
        return handle[tuple(slice(None, None, step) for step in steps)].read().result()

    def read_elements(self, handle, places):
        return [handle[place].read().result() for place in places]

    def read_first(self, handle, count):
        return handle[:count].read().result()

    def write(self, handle, data):
        handle.write(data, can_reference_source_data_indefinitely=True).result()

    def round_trip(self, source, target):
        target.write(source).result()

    def write_box(self, handle, box, values):
        handle[box].write(values, can_reference_source_data_indefinitely=True).result()

    def append(self, handle, parts):
        length = handle.shape[0]
        for part in parts:
            grown = length + len(part)
            handle = handle.resize(exclusive_max=(grown, *handle.shape[1:]), expand_only=True).result()
            handle[length:grown].write(part, can_reference_source_data_indefinitely=True).result()
            length = grown

    def stream(self, handle, parts):
        handle = handle.resize(exclusive_max=(len(parts) * len(parts[0]), *handle.shape[1:])).result()
        length = len(parts[0])
        writing = [handle[i * length:(i + 1) * length].write(part, can_reference_source_data_indefinitely=True)
                   for i, part in enumerate(parts)]
        for one in writing:
            one.result()

    def create_group(self, path, arrays):
        # The library has no groups: only the arrays are made by it, and an empty group's document is written here.
        os.mkdir(path)
        with open(os.path.join(path, "zarr.json"), "w") as file:
            file.write('{"zarr_format": 3, "node_type": "group"}')
        making = []
        for one in arrays:
            metadata = {"shape": one.shape, "data_type": one.dtype, "fill_value": np.zeros((), one.dtype).item(),
                        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": one.chunks}},
                        "attributes": one.attributes}
            spec = self._spec(os.path.join(path, one.name), "v3") | {"metadata": metadata, "create": True}
            making.append(tensorstore.open(spec, context=self.context))
        for array in making:
            array.result()

    def list_group(self, path):
        return self._list({"driver": "file", "path": path + "/"})

    def _list(self, kvstore):
        # There are no groups here either: what lies in the store is listed, and every array of it opened at once.
        store = tensorstore.KvStore.open(kvstore, context=self.context).result()
        names = [key.removesuffix(b"/zarr.json").decode() for key in store.list().result()
                 if key.endswith(b"/zarr.json")]
        opening = [(name, tensorstore.open({"driver": "zarr3", "kvstore": kvstore | {"path": kvstore["path"] + name}},
                                           read=True, context=self.context)) for name in names]
        return [(name, array.result().shape, array.result().dtype.name) for name, array in opening]

    def open_member(self, path, name):
        return self.open(os.path.join(path, name), "v3")
