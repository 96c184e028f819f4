"""tensorstore's `zarr` driver over its `file` store.

One context for all calls, so that an open pays for no thread pool; the chunk cache is off, as it is by default.
`data_copy_concurrency` (decoding, encoding) is the number of threads; `file_io_concurrency`, the number of files at
once, is not below the library's own default of 4. The library syncs every file that it writes, which no other here
does: `file_io_sync` is off, and its default is the variant ``sync``. The variant ``mmap`` maps files to read them.
Locking of files stays at its default. A write may refer to the source, which spares the library a copy of it.
"""
import tensorstore

from benchmarks import fixtures
from benchmarks.adapters import Base

_VARIANTS = {  # settings of the context beside the common ones, kinds of workload on which they matter
    None: ({}, Base.kinds | {"import"}),
    "mmap": ({"file_io_mode": {"mode": "memmap"}}, frozenset({"read", "memory"})),
    "sync": ({"file_io_sync": True}, frozenset({"write"})),
}


class Adapter(Base):
    distributions = ("tensorstore",)
    module = "tensorstore"

    def __init__(self, threads, variant=None):
        super().__init__(threads)
        settings, self.kinds = _VARIANTS[variant]
        self.context = tensorstore.Context({
            "data_copy_concurrency": {"limit": threads},
            "file_io_concurrency": {"limit": max(4, threads)},
            "file_io_sync": False,
        } | settings)

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
