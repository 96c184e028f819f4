"""zarrs, the pipeline in Rust that zarr-python runs when it is configured to.

`codec_pipeline.strict` forbids the silent way back to zarr-python's own pipeline: what is measured here is zarrs. Lists
of indices and steps it leaves to that pipeline, so it has no time of its own on them.
"""
import zarrs  # noqa: F401 (zarr-python imports it by name; here it shows whether it is installed)

from benchmarks.adapters import zarr_python

_LEFT = "left to zarr-python's pipeline"


class Adapter(zarr_python.Adapter):
    cannot = {"points": _LEFT, "mask": _LEFT, "product": _LEFT, "strided": _LEFT}
    distributions = ("zarrs", "zarr")

    def __init__(self, threads):
        super().__init__(threads, pipeline="batched")
        self.settings |= {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}
        self.kinds = self.kinds - {"first_read", "create", "list", "member", "remote", "remote_list", *self.cannot}
        self.first_read = None
