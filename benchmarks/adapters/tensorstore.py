"""tensorstore's `zarr` driver over its `file` store.

One context for all calls, so that an open pays for no thread pool; the chunk cache is off, as it is by default.
`sync=True` is the library's default durability (fsync of every file); `sync=False` asks of the system what the other
libraries ask of it. Locking of files stays at its default.
"""
import tensorstore

from benchmarks import fixtures
from benchmarks.adapters import Base


class Adapter(Base):
    distributions = ("tensorstore",)

    def __init__(self, threads, sync):
        super().__init__(threads)
        self.context = tensorstore.Context({
            "data_copy_concurrency": {"limit": threads},
            "file_io_concurrency": {"limit": threads},
            "file_io_sync": sync,
        })
        if sync:  # differs in writing alone
            self.kinds = frozenset({"write"})
        else:
            self.kinds = self.kinds | {"import"}
            self.module = "tensorstore"

    def open(self, path):
        return tensorstore.open({"driver": "zarr", "kvstore": {"driver": "file", "path": path}},
                                read=True, context=self.context).result()

    def read(self, handle):
        return handle.read().result()

    def read_first(self, handle, count):
        return handle[:count].read().result()

    def create(self, path, shape, chunks):
        compressor = {"id": "blosc", "cname": fixtures.CNAME, "clevel": fixtures.CLEVEL, "shuffle": fixtures.SHUFFLE}
        return tensorstore.open({
            "driver": "zarr",
            "kvstore": {"driver": "file", "path": path},
            "metadata": {"shape": shape, "chunks": chunks, "dtype": "<f4", "fill_value": 0.0, "order": "C",
                         "filters": None, "dimension_separator": ".", "compressor": compressor},
            "create": True,
        }, context=self.context).result()

    def write(self, handle, data):
        handle.write(data, can_reference_source_data_indefinitely=True).result()
