"""zarr-python with its own codec pipelines: the default one and the fused one that its configuration offers.

`zarr_format=2` is passed on opening, which spares the library the search for a `zarr.json`. The executor of the event
loop and the fused pipeline's pool are made once a process, with the number of threads of the first use.
"""
import numcodecs
import zarr
import zarr.core.codec_pipeline

from benchmarks import fixtures
from benchmarks.adapters import Base

_PIPELINES = {"batched": "BatchedCodecPipeline", "fused": "FusedCodecPipeline"}


class Adapter(Base):
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
        }
        if pipeline == "batched":  # the import is the same for both
            self.kinds = self.kinds | {"import"}
            self.module = "zarr"

    def activate(self):
        zarr.config.set(self.settings)

    def open(self, path):
        return zarr.open_array(path, mode="r", zarr_format=2)

    def read(self, handle):
        return handle[...]

    def read_first(self, handle, count):
        return handle[:count]

    def create(self, path, shape, chunks):
        blosc = numcodecs.Blosc(cname=fixtures.CNAME, clevel=fixtures.CLEVEL, shuffle=fixtures.SHUFFLE)
        return zarr.create_array(path, shape=shape, chunks=chunks, dtype="<f4", fill_value=0.0, zarr_format=2,
                                 filters=None, compressors=blosc,
                                 chunk_key_encoding={"name": "v2", "separator": "."})

    def write(self, handle, data):
        handle[...] = data
